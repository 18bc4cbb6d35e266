//! Converts the text of a scalar to JSON and back. A scalar's JSON value is a number, a string, a
//! boolean or an array. The scalar [`Scalar::Json`] may have any JSON value.

use serde_json::{Number, Value};

use super::number::{is_double, is_single};
use crate::schema::json::{read, text as json_text};
use crate::schema::scalar::{self, trim};
use crate::schema::{
    Facets, List, Scalar, base64, base64_text, double, duration, duration_text, float, integer,
    items, timestamp, timestamp_text, uuid,
};

/// Whole numbers of at least this size may have lost digits when they became floating-point
/// numbers.
const WHOLE_MAX: f64 = 9_007_199_254_740_992.0;

/// The form of a scalar's value in JSON.
pub(in crate::schema) enum Sort<'a> {
    /// A string with the unchanged text.
    Text,
    /// A string with the canonical text. If the facets refuse the canonical text, a string with
    /// the original text, trimmed.
    Token,
    /// `true` or `false`.
    Truth,
    /// A whole number.
    Whole,
    /// A number, or one of the strings `INF`, `-INF` and `NaN`.
    Real,
    /// An array of items.
    List(&'a List),
    /// Any JSON value.
    Any,
}

/// What becomes of a whole number that a floating-point number would round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wide {
    /// Its digits are the text, since nothing but this text holds the value.
    Carried,
    /// It is refused, since the value goes into a Rust type.
    Refused,
}

/// Returns the form of a scalar's value in JSON. A number or boolean becomes a string if facets
/// restrict its text.
pub(in crate::schema) fn sort(scalar: &Scalar) -> Sort<'_> {
    match scalar.base() {
        Scalar::String | Scalar::Character => Sort::Text,
        Scalar::List(list) => Sort::List(list),
        Scalar::Json => Sort::Any,
        base if !is_short(base) || is_written(scalar) => Sort::Token,
        Scalar::Boolean => Sort::Truth,
        Scalar::F32 | Scalar::F64 => Sort::Real,
        _ => Sort::Whole,
    }
}

/// Returns whether JSON numbers or booleans can express all values of `base`, except `INF`, `-INF`
/// and `NaN`.
fn is_short(base: &Scalar) -> bool {
    use Scalar::{Boolean, F32, F64, I8, I16, I32, I64, U8, U16, U32, U64};
    matches!(base, I8 | I16 | I32 | I64 | U8 | U16 | U32 | U64 | Boolean | F32 | F64)
}

/// Returns whether the scalar is a number or a boolean whose text is restricted by facets, such as
/// a pattern or a length.
pub(in crate::schema) fn is_written(scalar: &Scalar) -> bool {
    let by_text =
        |it: &Facets| it.pattern.is_some() || it.length_min.is_some() || it.length_max.is_some();
    is_short(scalar.base()) && scalar.facets().any(by_text)
}

/// Converts a text that the scalar accepts into JSON. Any other text may become a string.
pub(super) fn to_json(scalar: &Scalar, text: &str) -> Value {
    let value = match sort(scalar) {
        Sort::Text => None,
        Sort::Token => {
            let texts = [canonical(scalar.base(), text), Some(trim(text).to_owned())];
            texts.into_iter().flatten().find(|text| scalar.accepts(text)).map(Value::String)
        }
        Sort::Truth => scalar::boolean(text).map(Value::Bool),
        Sort::Whole => {
            let small = || integer::<i64>(text).map(Value::from);
            integer::<u64>(text).map(Value::from).or_else(small)
        }
        Sort::Real => Some(real(scalar.base(), text)),
        Sort::Any => read(text).ok(),
        Sort::List(list) => Some(items(text).map(|text| to_json(&list.item, text)).collect()),
    };
    value.unwrap_or_else(|| text.into())
}

/// Converts a text from a scalar's facet `one_of` to JSON. A text that the scalar refuses becomes a
/// string.
pub(in crate::schema) fn constant(scalar: &Scalar, text: &str) -> Value {
    if scalar.accepts(text) { to_json(scalar, text) } else { text.into() }
}

/// Returns the text of a JSON value, for a scalar that isn't a list. Returns `None` if the scalar
/// accepts no text with this value.
pub(super) fn from_json(scalar: &Scalar, value: &Value, wide: Wide) -> Option<String> {
    let base = scalar.base();
    let texts = match (sort(scalar), value) {
        (Sort::Text, Value::String(text)) => return scalar.accepts(text).then(|| text.clone()),
        (Sort::Any, value) => vec![Some(json_text(value))],
        (Sort::Token, Value::String(text)) => vec![canonical(base, text), Some(text.clone())],
        (Sort::Truth, Value::Bool(truth)) => {
            vec![Some(truth.to_string()), Some(u8::from(*truth).to_string())]
        }
        (Sort::Whole, Value::Number(number)) => vec![whole(number)],
        (Sort::Real, Value::Number(number)) => number_texts(base, number, wide),
        (Sort::Real, Value::String(name)) if matches!(&**name, "INF" | "-INF" | "NaN") => {
            vec![Some(name.clone())]
        }
        _ => return None,
    };
    let found = texts.into_iter().flatten().find(|text| scalar.accepts(text));
    // The facet `one_of` may list the value in a notation that wasn't tried above.
    let mut few = scalar.facets().flat_map(|it| it.one_of.iter());
    found.or_else(|| {
        let same = few.find(|text| scalar.accepts(text) && to_json(scalar, text) == *value);
        same.map(ToString::to_string)
    })
}

/// Returns the canonical text for the value of `text`. Returns `None` if `text` isn't written like
/// a value of `base`. Callers check the range.
fn canonical(base: &Scalar, text: &str) -> Option<String> {
    match base {
        Scalar::Boolean => scalar::boolean(text).map(|it| it.to_string()),
        Scalar::U128 => integer::<u128>(text).map(|it| it.to_string()),
        Scalar::F32 => float(text).map(|it| name_or(it.into(), || plain_or_short32(it))),
        Scalar::F64 => double(text).map(|it| name_or(it, || plain_or_short(it))),
        Scalar::Bytes => base64(text).map(|it| base64_text(&it)),
        Scalar::Timestamp => timestamp(text).map(timestamp_text),
        Scalar::Duration => duration(text).map(duration_text),
        Scalar::Uuid => uuid(text).map(|it| it.to_string()),
        Scalar::Words(words) => words.find(text).map(|_| trim(text).to_owned()),
        _ => integer::<i128>(text).map(|it| it.to_string()),
    }
}

fn real(base: &Scalar, text: &str) -> Value {
    let whole = integer::<i64>(text).map(i128::from).or(integer::<u64>(text).map(i128::from));
    if let Some(whole) = whole.filter(|it| *base == Scalar::F64 && !is_double(*it)) {
        let number = i64::try_from(whole).map(Value::from);
        return number.or(u64::try_from(whole).map(Value::from)).unwrap_or_else(|_| text.into());
    }
    // A conversion from single to double precision would add digits. So the double is read from
    // the shortest text of the number.
    let short = canonical(base, text).and_then(|it| double(&it));
    match short.map(|it| (Number::from_f64(it), it)) {
        Some((Some(number), _)) => number.into(),
        Some((None, it)) => name_or(it, String::new).into(),
        None => text.into(),
    }
}

fn whole(number: &Number) -> Option<String> {
    if !number.is_f64() {
        return Some(number.to_string());
    }
    let exact = |it: &f64| it.fract() == 0.0 && it.abs() < WHOLE_MAX;
    number.as_f64().filter(exact).map(|it| format!("{}", it + 0.0)).map(|text| match &*text {
        "-0" => "0".to_owned(),
        _ => text,
    })
}

/// Returns two texts for a number: a short one, which may have an exponent, and one without an
/// exponent. Facets that count digits refuse texts with an exponent.
fn number_texts(base: &Scalar, number: &Number, wide: Wide) -> Vec<Option<String>> {
    let whole = number.as_i64().map(i128::from).or(number.as_u64().map(i128::from));
    let is_exact = |it: i128| if *base == Scalar::F32 { is_single(it) } else { is_double(it) };
    if let Some(whole) = whole.filter(|it| !is_exact(*it)) {
        let is_carried = wide == Wide::Carried && *base == Scalar::F64;
        return vec![is_carried.then(|| whole.to_string())];
    }
    let Some(number) = number.as_f64() else { return Vec::new() };
    match base {
        Scalar::F32 => match format!("{number}").parse::<f32>().ok().filter(|it| it.is_finite()) {
            Some(it) => vec![Some(plain_or_short32(it)), Some(format!("{it}"))],
            None => Vec::new(),
        },
        _ => vec![Some(plain_or_short(number)), Some(format!("{number}"))],
    }
}

fn name_or(number: f64, text: impl FnOnce() -> String) -> String {
    match () {
        () if number.is_nan() => "NaN".to_owned(),
        () if number.is_infinite() => if number > 0.0 { "INF" } else { "-INF" }.to_owned(),
        () => text(),
    }
}

fn plain_or_short(number: f64) -> String {
    let size = number.abs();
    if size == 0.0 || (1e-5..1e16).contains(&size) {
        format!("{number}")
    } else {
        format!("{number:e}")
    }
}

fn plain_or_short32(number: f32) -> String {
    let size = number.abs();
    if size == 0.0 || (1e-5..1e16).contains(&size) {
        format!("{number}")
    } else {
        format!("{number:e}")
    }
}
