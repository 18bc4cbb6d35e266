//! Scalars: the texts that attributes and elements hold, such as numbers and booleans.
//!
//! Checking and decoding call the same functions, so they accept the same texts.

use std::borrow::Cow;
use std::str::FromStr;
use std::sync::Arc;

use super::facet::{Bound, Facets, List, Narrow};
use super::{forms, json};

/// The form of a text. White space at the ends of the text is significant only in strings and
/// characters.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Scalar {
    /// Any text.
    String,
    /// One character.
    Character,
    /// `true`, `false`, `1` or `0`.
    Boolean,
    /// A signed whole number of 8 bits.
    I8,
    /// A signed whole number of 16 bits.
    I16,
    /// A signed whole number of 32 bits.
    I32,
    /// A signed whole number of 64 bits.
    I64,
    /// A signed whole number of 128 bits.
    I128,
    /// An unsigned whole number of 8 bits.
    U8,
    /// An unsigned whole number of 16 bits.
    U16,
    /// An unsigned whole number of 32 bits.
    U32,
    /// An unsigned whole number of 64 bits.
    U64,
    /// An unsigned whole number of 128 bits.
    U128,
    /// A floating-point number of single precision, `INF`, `-INF` or `NaN`.
    F32,
    /// A floating-point number of double precision, `INF`, `-INF` or `NaN`.
    F64,
    /// Bytes, in base64.
    Bytes,
    /// A point in time, with its offset from UTC.
    Timestamp,
    /// A span of time in days, hours, minutes and seconds.
    Duration,
    /// A UUID in five groups.
    Uuid,
    /// Any JSON value, written as text.
    Json,
    /// One of a few words.
    Words(Cow<'static, Words>),
    /// A list of scalars, separated by white space.
    List(Arc<List>),
    /// A scalar with facets.
    Narrow(Arc<Narrow>),
}

/// The class of a scalar, which determines the facets that the scalar may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Form {
    /// Any text, or a JSON value.
    Text,
    /// One character.
    Character,
    /// A whole number.
    Whole,
    /// A floating-point number.
    Float,
    /// Bytes, in base64.
    Bytes,
    /// Another scalar whose text has no white space, such as a boolean, a word or a UUID.
    Token,
    /// Something that isn't a scalar.
    Other,
}

/// The allowed words of a scalar.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Words {
    /// The type's name, in kebab-case. Empty if the type has no name.
    pub name: Cow<'static, str>,
    /// The description of the type. Empty if there is none.
    pub doc: Cow<'static, str>,
    /// The allowed words, without duplicates.
    pub list: Cow<'static, [Word]>,
}

/// One word that a scalar may be.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Word {
    /// The word.
    pub text: Cow<'static, str>,
    /// The meaning of the word. Empty if there is no description.
    pub doc: Cow<'static, str>,
}

impl Words {
    /// Creates the words of a Rust type.
    #[must_use]
    pub const fn of(name: &'static str, doc: &'static str, list: &'static [Word]) -> Words {
        Words { name: Cow::Borrowed(name), doc: Cow::Borrowed(doc), list: Cow::Borrowed(list) }
    }

    /// Returns the index of the word that equals the text. White space at the ends of the text is
    /// ignored.
    #[must_use]
    pub fn find(&self, text: &str) -> Option<usize> {
        let text = trim(text);
        self.list.iter().position(|it| it.text == text)
    }
}

impl Word {
    /// Creates a word of a Rust type.
    #[must_use]
    pub const fn of(text: &'static str, doc: &'static str) -> Word {
        Word { text: Cow::Borrowed(text), doc: Cow::Borrowed(doc) }
    }
}

impl Scalar {
    /// Returns whether the text has this form.
    #[must_use]
    pub fn accepts(&self, text: &str) -> bool {
        match self {
            Scalar::String => true,
            Scalar::Character => character(text).is_some(),
            Scalar::Boolean => boolean(text).is_some(),
            Scalar::I8 => integer::<i8>(text).is_some(),
            Scalar::I16 => integer::<i16>(text).is_some(),
            Scalar::I32 => integer::<i32>(text).is_some(),
            Scalar::I64 => integer::<i64>(text).is_some(),
            Scalar::I128 => integer::<i128>(text).is_some(),
            Scalar::U8 => integer::<u8>(text).is_some(),
            Scalar::U16 => integer::<u16>(text).is_some(),
            Scalar::U32 => integer::<u32>(text).is_some(),
            Scalar::U64 => integer::<u64>(text).is_some(),
            Scalar::U128 => integer::<u128>(text).is_some(),
            Scalar::F32 => float(text).is_some(),
            Scalar::F64 => double(text).is_some(),
            Scalar::Bytes => forms::base64(text).is_some(),
            Scalar::Timestamp => forms::timestamp(text).is_some(),
            Scalar::Duration => forms::duration(text).is_some(),
            Scalar::Uuid => forms::uuid(text).is_some(),
            Scalar::Json => json::read(text).is_ok(),
            Scalar::Words(words) => words.find(text).is_some(),
            Scalar::List(list) => {
                let count = forms::items(text).count();
                list.length_min.is_none_or(|it| count >= it)
                    && list.length_max.is_none_or(|it| count <= it)
                    && forms::items(text).all(|it| list.item.accepts(it))
            }
            Scalar::Narrow(it) => it.accepts(text),
        }
    }

    /// Describes the form in English, such as `a whole number from 0 to 255`.
    #[must_use]
    pub fn describe(&self) -> String {
        match self {
            Scalar::String => "text".to_owned(),
            Scalar::Character => "one character".to_owned(),
            Scalar::Boolean => "true or false".to_owned(),
            Scalar::I8 => between(i8::MIN, i8::MAX),
            Scalar::I16 => between(i16::MIN, i16::MAX),
            Scalar::I32 => between(i32::MIN, i32::MAX),
            Scalar::I64 => "a whole number of 64 bits".to_owned(),
            Scalar::I128 => "a whole number of 128 bits".to_owned(),
            Scalar::U8 => between(u8::MIN, u8::MAX),
            Scalar::U16 => between(u16::MIN, u16::MAX),
            Scalar::U32 => between(u32::MIN, u32::MAX),
            Scalar::U64 => "a whole number of 64 bits from 0 up".to_owned(),
            Scalar::U128 => "a whole number of 128 bits from 0 up".to_owned(),
            Scalar::F32 | Scalar::F64 => "a number, INF, -INF or NaN".to_owned(),
            Scalar::Bytes => "bytes in base64".to_owned(),
            Scalar::Timestamp => "a time such as 2026-01-31T12:00:00Z".to_owned(),
            Scalar::Duration => "a duration such as P1DT2H30M".to_owned(),
            Scalar::Uuid => "a UUID".to_owned(),
            Scalar::Json => "a JSON value".to_owned(),
            Scalar::Words(words) => either(words.list.iter().map(|it| it.text.as_ref())),
            Scalar::List(list) => {
                let count = counted(list.length_min, list.length_max);
                let count = if count.is_empty() { String::new() } else { format!(" of {count}") };
                format!("a list{count} with spaces between, each {}", list.item.describe())
            }
            Scalar::Narrow(_) => self.narrowly(),
        }
    }

    fn narrowly(&self) -> String {
        let (base, facets) = (self.base(), self.narrowest());
        let Facets { pattern, one_of, min, max, length_min, length_max, .. } = facets;
        if !one_of.is_empty() {
            return either(one_of.iter().map(AsRef::as_ref));
        }
        let mut text = match (base, min, max) {
            (_, None, None) => base.describe(),
            (Scalar::F32 | Scalar::F64, ..) => bounded("a number", min, max),
            _ => {
                let (least, most) = base.bounds();
                bounded("a whole number", min.or(least), max.or(most))
            }
        };
        match (base, counted(length_min, length_max).as_str()) {
            (_, "") => {}
            (Scalar::Bytes, count) => text = format!("{count} bytes in base64"),
            (_, count) => text = format!("{text} of {count} characters"),
        }
        if let Some(pattern) = pattern {
            text = format!("{text} that matches {pattern}");
        }
        match (facets.digits, facets.fraction_digits) {
            (None, None) => text,
            (Some(all), None) => format!("{text}, with {all} digits at the most"),
            (None, Some(behind)) => format!("{text}, with {behind} digits behind the point"),
            (Some(all), Some(behind)) => {
                format!("{text}, with {all} digits at the most, {behind} of them behind the point")
            }
        }
    }

    /// Returns the bounds of the integer type. Bounds that are too long to show to people, such as
    /// those of 64 bits, are left out.
    pub(super) fn bounds(&self) -> (Option<Bound>, Option<Bound>) {
        let (least, most) = match self {
            Scalar::I8 => (i8::MIN.into(), i8::MAX.into()),
            Scalar::I16 => (i16::MIN.into(), i16::MAX.into()),
            Scalar::I32 => (i32::MIN.into(), i32::MAX.into()),
            Scalar::U8 => (0, u8::MAX.into()),
            Scalar::U16 => (0, u16::MAX.into()),
            Scalar::U32 => (0, u32::MAX.into()),
            Scalar::U64 | Scalar::U128 => return (Some(Bound::Whole(0)), None),
            _ => return (None, None),
        };
        (Some(Bound::Whole(least)), Some(Bound::Whole(most)))
    }
}

fn either<'a>(words: impl Iterator<Item = &'a str>) -> String {
    match words.collect::<Vec<_>>().as_slice() {
        [one] => (*one).to_owned(),
        list => format!("one of {}", list.join(", ")),
    }
}

fn bounded(what: &str, min: Option<Bound>, max: Option<Bound>) -> String {
    match (min, max) {
        (Some(min), Some(max)) => format!("{what} from {min} to {max}"),
        (Some(min), None) => format!("{what} from {min} up"),
        (None, Some(max)) => format!("{what} up to {max}"),
        (None, None) => what.to_owned(),
    }
}

pub(super) fn counted(least: Option<usize>, most: Option<usize>) -> String {
    match (least, most) {
        (Some(least), Some(most)) if least == most => least.to_string(),
        (Some(least), Some(most)) => format!("{least} to {most}"),
        (Some(least), None) => format!("{least} or more"),
        (None, Some(most)) => format!("up to {most}"),
        (None, None) => String::new(),
    }
}

fn between(least: impl std::fmt::Display, most: impl std::fmt::Display) -> String {
    format!("a whole number from {least} to {most}")
}

/// Reads a whole number as in XSD: an optional sign, then digits.
#[must_use]
pub fn integer<T: FromStr + Default>(text: &str) -> Option<T> {
    let text = trim(text);
    match text.parse() {
        Ok(it) => Some(it),
        // `-0` is allowed in unsigned types, too.
        Err(_) => {
            let digits = text.strip_prefix('-')?;
            let zero = !digits.is_empty() && digits.bytes().all(|it| it == b'0');
            zero.then(T::default)
        }
    }
}

/// Reads a number of single precision.
#[must_use]
pub fn float(text: &str) -> Option<f32> {
    match trim(text) {
        "INF" | "+INF" => Some(f32::INFINITY),
        "-INF" => Some(f32::NEG_INFINITY),
        "NaN" => Some(f32::NAN),
        text => decimal(text),
    }
}

/// Reads a number of double precision.
#[must_use]
pub fn double(text: &str) -> Option<f64> {
    match trim(text) {
        "INF" | "+INF" => Some(f64::INFINITY),
        "-INF" => Some(f64::NEG_INFINITY),
        "NaN" => Some(f64::NAN),
        text => decimal(text),
    }
}

/// Reads a number with an optional point and exponent. Rust's `parse` accepts the same texts as
/// XSD, and also `inf`, `infinity` and `nan`, which XSD doesn't have.
fn decimal<T: FromStr>(text: &str) -> Option<T> {
    let plain = |it: u8| it.is_ascii_digit() || matches!(it, b'+' | b'-' | b'.' | b'e' | b'E');
    if !text.bytes().all(plain) {
        return None;
    }
    text.parse().ok()
}

/// Reads a boolean.
#[must_use]
pub fn boolean(text: &str) -> Option<bool> {
    match trim(text) {
        "true" | "1" => Some(true),
        "false" | "0" => Some(false),
        _ => None,
    }
}

/// Reads one character, which may be a space.
#[must_use]
pub fn character(text: &str) -> Option<char> {
    let mut all = text.chars();
    all.next().filter(|_| all.next().is_none())
}

/// Returns the text without white space at its ends. As in XML, white space consists of four ASCII
/// characters.
pub(super) fn trim(text: &str) -> &str {
    text.trim_matches(|it| matches!(it, ' ' | '\t' | '\n' | '\r'))
}
