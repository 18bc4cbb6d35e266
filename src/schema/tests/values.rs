//! Random values of a schema for tests. Converting a value to XML and back doesn't change the
//! value.

use serde_json::{Map, Number, Value, json};

use super::json::{Member, members};
use super::*;

/// Random numbers. The same seed gives the same numbers.
pub(super) struct Chance(pub(super) u64);

impl Chance {
    pub(super) fn below(&mut self, end: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap_or_default() % end
    }

    fn bits(&mut self) -> u64 {
        let mut part = || u64::try_from(self.below(1 << 16)).unwrap_or_default();
        part() << 48 | part() << 32 | part() << 16 | part()
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }
}

const TEXTS: &[&str] = &[
    "",
    " ",
    "a",
    "text",
    " both ends ",
    "a\tb\r\nc\n",
    "<&>\"']]>",
    "\u{85}\u{2028}é",
    "👍🏽",
    "\u{FFFD}\u{E000}",
    "null",
    "{\"a\":1}",
    "\\u0000",
    "$name ${a.b}",
    "Ω\u{301}",
];

/// Returns a random JSON form of a payload.
pub(super) fn value(schema: &Schema, chance: &mut Chance) -> Value {
    Value::Object(object(&schema.shape, chance, 0))
}

fn object(shape: &Shape, chance: &mut Chance, depth: usize) -> Map<String, Value> {
    let mut all = Map::new();
    for place in members(shape) {
        match place {
            Member::Field(field) => match field.field.occurs {
                Occurs::Many => {
                    let count = if depth > 6 { 0 } else { chance.below(4) };
                    let each = (0..count).map(|_| of_kind(&field.field.kind, chance, depth));
                    all.insert(field.name.to_string(), each.collect());
                }
                Occurs::Optional if chance.below(2) == 0 => {}
                _ => {
                    all.insert(field.name.to_string(), of_kind(&field.field.kind, chance, depth));
                }
            },
            Member::Choice { occurs: Occurs::Optional, .. } if chance.below(2) == 0 => {}
            Member::Choice { variants, .. } => {
                let variant = &variants[chance.below(variants.len())];
                all.insert(variant.name.to_string(), of_kind(&variant.field.kind, chance, depth));
            }
        }
    }
    all
}

fn of_kind(kind: &Kind, chance: &mut Chance, depth: usize) -> Value {
    match kind {
        Kind::Scalar(it) => scalar(it, chance),
        Kind::Shape(link) => Value::Object(object(link.shape(), chance, depth + 1)),
        Kind::Choice(link) => {
            let Content::Choice(variants) = &link.shape().content else { return Value::Null };
            let variant = &variants[chance.below(variants.len())];
            json!({ variant.name.as_ref(): of_kind(&variant.kind, chance, depth + 1) })
        }
        Kind::Element => chance.of(&["<x></x>", "<p:f0 xmlns:p=\"urn:p\" a=\"1\">t</p:f0>"]).into(),
        Kind::Map(entry) => {
            let count = chance.below(4);
            let each = (0..count).map(|_| {
                let key = chance.of(&["", "a", "b c", "<\n\"", "key"]).to_owned();
                (key, of_kind(&entry.kind, chance, depth + 1))
            });
            Value::Object(each.collect())
        }
    }
}

/// Returns a random JSON value of a scalar. For a scalar with facets, the value is its example.
fn scalar(form: &Scalar, chance: &mut Chance) -> Value {
    if let Scalar::List(list) = form.base() {
        let least = list.length_min.unwrap_or_default();
        let more = list.length_max.unwrap_or(least + 4) - least;
        let count = least + chance.below(more + 1);
        return (0..count).map(|_| scalar(&list.item, chance)).collect();
    }
    let text = match form {
        Scalar::Narrow(_) => example_text(form),
        _ => wide(form, chance),
    };
    assert!(form.accepts(&text), "{form:?}: {text:?}");
    let value = match form.base() {
        Scalar::F32 => double(&text).and_then(Number::from_f64).map(Value::Number),
        Scalar::F64 => double(&text).and_then(Number::from_f64).map(Value::Number),
        Scalar::I128 | Scalar::U128 => None,
        Scalar::Boolean => text.parse().ok().map(Value::Bool),
        _ => integer::<i64>(&text).map(Value::from).or(integer::<u64>(&text).map(Value::from)),
    };
    match form.base() {
        Scalar::String | Scalar::Character | Scalar::Bytes | Scalar::Words(_) => text.into(),
        _ => value.unwrap_or(text.into()),
    }
}

fn wide(scalar: &Scalar, chance: &mut Chance) -> String {
    let bits = chance.bits();
    let half = bits >> (bits % 64);
    let wide = i128::from(bits) << (bits % 63) | 1;
    match scalar {
        Scalar::String => chance.of(TEXTS).to_owned(),
        Scalar::Character => chance.of(&["a", " ", "\n", "\"", "é", "👍", "0"]).to_owned(),
        Scalar::Boolean => bits.is_multiple_of(2).to_string(),
        Scalar::I8 => i8::from_be_bytes([bits.to_be_bytes()[0]]).to_string(),
        Scalar::I16 => (i16::from_be_bytes([bits.to_be_bytes()[0], 7])).to_string(),
        Scalar::I32 => chance.of(&[i32::MIN, -1, 0, 1, i32::MAX]).to_string(),
        Scalar::I64 => chance.of(&[i64::MIN, -1, 0, i64::MAX, half.cast_signed()]).to_string(),
        Scalar::U8 => bits.to_be_bytes()[0].to_string(),
        Scalar::U16 => (bits % 65_536).to_string(),
        Scalar::U32 => chance.of(&[0, 1, u32::MAX]).to_string(),
        Scalar::U64 => chance.of(&[0, 1 << 53, (1 << 53) + 1, u64::MAX, half]).to_string(),
        Scalar::I128 => chance.of(&[i128::MIN, -1, 0, i128::MAX, wide]).to_string(),
        Scalar::U128 => chance.of(&[0, 1, u128::MAX, bits.into()]).to_string(),
        Scalar::F32 => {
            real(f64::from(f32::from_bits(u32::try_from(half >> 32).unwrap_or(3))), true, chance)
        }
        Scalar::F64 => real(f64::from_bits(bits), false, chance),
        Scalar::Bytes => base64_text(&bits.to_be_bytes()[..chance.below(9)]),
        Scalar::Words(words) => words.list[chance.below(words.list.len())].text.to_string(),
        _ => example_text(scalar),
    }
}

/// Returns the text of `number`, or of one of a few special numbers. `single` rounds the number to
/// single precision.
fn real(number: f64, single: bool, chance: &mut Chance) -> String {
    let few = [
        number,
        number,
        0.0,
        -0.0,
        0.1,
        42.0,
        1e300,
        5e-324,
        f64::NAN,
        f64::INFINITY,
        -f64::INFINITY,
    ];
    let number = chance.of(&few);
    let number = if single { short(number) } else { number };
    match () {
        () if number.is_nan() => "NaN".to_owned(),
        () if number.is_infinite() => if number > 0.0 { "INF" } else { "-INF" }.to_owned(),
        () => number.to_string(),
    }
}

/// Rounds a number to single precision, and reads the shortest text of the result as a double.
fn short(number: f64) -> f64 {
    let single: f32 = number.to_string().parse().unwrap_or_default();
    single.to_string().parse().unwrap_or_default()
}
