//! The texts that attributes and elements hold: what is a number, a truth, a word.
//!
//! Checking and decoding call the same functions, so what passes one passes the other.

use std::borrow::Cow;
use std::str::FromStr;

/// The form of one text. White space at its ends counts in strings and characters only.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Scalar {
    /// Any text.
    String,
    /// One character.
    Character,
    /// `true`, `false`, `1` or `0`.
    Boolean,
    /// A whole number of 8 bits.
    I8,
    /// A whole number of 16 bits.
    I16,
    /// A whole number of 32 bits.
    I32,
    /// A whole number of 64 bits.
    I64,
    /// A whole number of 128 bits.
    I128,
    /// A whole number of 8 bits, none below zero.
    U8,
    /// A whole number of 16 bits, none below zero.
    U16,
    /// A whole number of 32 bits, none below zero.
    U32,
    /// A whole number of 64 bits, none below zero.
    U64,
    /// A whole number of 128 bits, none below zero.
    U128,
    /// A number of single precision, `INF`, `-INF` or `NaN`.
    F32,
    /// A number of double precision, `INF`, `-INF` or `NaN`.
    F64,
    /// One of a few words.
    Words(Cow<'static, Words>),
}

/// The words that a scalar may be.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Words {
    /// What the type is called, in kebab-case.
    pub name: Cow<'static, str>,
    /// What the type is for.
    pub doc: Cow<'static, str>,
    /// The words, each once.
    pub list: Cow<'static, [Word]>,
}

/// One word that a scalar may be.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Word {
    /// The word.
    pub text: Cow<'static, str>,
    /// What it means; empty where nobody said.
    pub doc: Cow<'static, str>,
}

impl Words {
    /// The words that a type knows.
    #[must_use]
    pub const fn of(name: &'static str, doc: &'static str, list: &'static [Word]) -> Words {
        Words { name: Cow::Borrowed(name), doc: Cow::Borrowed(doc), list: Cow::Borrowed(list) }
    }

    /// Which of them the text is, by its place in the list.
    #[must_use]
    pub fn find(&self, text: &str) -> Option<usize> {
        let text = trim(text);
        self.list.iter().position(|it| it.text == text)
    }
}

impl Word {
    /// A word that a type knows.
    #[must_use]
    pub const fn of(text: &'static str, doc: &'static str) -> Word {
        Word { text: Cow::Borrowed(text), doc: Cow::Borrowed(doc) }
    }
}

impl Scalar {
    /// Whether the text has this form.
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
            Scalar::Words(words) => words.find(text).is_some(),
        }
    }

    /// The form in words: `a whole number from 0 to 255`.
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
            Scalar::Words(words) => {
                let list: Vec<_> = words.list.iter().map(|it| it.text.as_ref()).collect();
                match list.as_slice() {
                    [one] => (*one).to_owned(),
                    _ => format!("one of {}", list.join(", ")),
                }
            }
        }
    }
}

fn between(least: impl std::fmt::Display, most: impl std::fmt::Display) -> String {
    format!("a whole number from {least} to {most}")
}

/// A whole number as XSD writes it: a sign or none, then digits.
#[must_use]
pub fn integer<T: FromStr + Default>(text: &str) -> Option<T> {
    let text = trim(text);
    match text.parse() {
        Ok(it) => Some(it),
        // Zero may carry its sign even where nothing else below it may; only `-0` ends up here.
        Err(_) => {
            let digits = text.strip_prefix('-')?;
            let zero = !digits.is_empty() && digits.bytes().all(|it| it == b'0');
            zero.then(T::default)
        }
    }
}

/// A number of single precision.
#[must_use]
pub fn float(text: &str) -> Option<f32> {
    match trim(text) {
        "INF" | "+INF" => Some(f32::INFINITY),
        "-INF" => Some(f32::NEG_INFINITY),
        "NaN" => Some(f32::NAN),
        text => decimal(text),
    }
}

/// A number of double precision.
#[must_use]
pub fn double(text: &str) -> Option<f64> {
    match trim(text) {
        "INF" | "+INF" => Some(f64::INFINITY),
        "-INF" => Some(f64::NEG_INFINITY),
        "NaN" => Some(f64::NAN),
        text => decimal(text),
    }
}

/// Digits, point and exponent: std reads them as XSD does, but also knows `inf`, `infinity`, `nan`.
fn decimal<T: FromStr>(text: &str) -> Option<T> {
    let plain = |it: u8| it.is_ascii_digit() || matches!(it, b'+' | b'-' | b'.' | b'e' | b'E');
    if !text.bytes().all(plain) {
        return None;
    }
    text.parse().ok()
}

/// A truth.
#[must_use]
pub fn boolean(text: &str) -> Option<bool> {
    match trim(text) {
        "true" | "1" => Some(true),
        "false" | "0" => Some(false),
        _ => None,
    }
}

/// One character, a space too.
#[must_use]
pub fn character(text: &str) -> Option<char> {
    let mut all = text.chars();
    all.next().filter(|_| all.next().is_none())
}

/// The text without the white space of XML at its ends.
pub(super) fn trim(text: &str) -> &str {
    text.trim_matches(|it| matches!(it, ' ' | '\t' | '\n' | '\r'))
}
