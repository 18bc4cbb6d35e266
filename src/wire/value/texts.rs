//! The scalars, and the text by which attributes and elements hold each of them.

use std::borrow::Cow;
use std::fmt::{self, Write as _};

use bytes::Bytes;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use uuid::Uuid;

use super::{Item, Names, Part, Text, read_text};
use crate::schema::walk::At;
use crate::schema::{self, Error, Form, Kind};
use crate::xml::Writer;

/// Implements [`Part`] and [`Item`] for types that implement [`Text`]. The item's element has the
/// field's name.
macro_rules! texts {
    ($($type:ty)*) => { $(
        impl Part for $type {
            const FORM: Form = <$type as Text>::FORM;

            fn kind() -> Kind {
                Kind::Scalar(<$type>::scalar())
            }

            fn write(&self, _: &str, to: &mut Writer) {
                Text::write(self, to);
            }

            fn read(at: At<'_>) -> Result<$type, Error> {
                read_text(at)
            }
        }

        impl Item for $type {
            const FORM: Form = <$type as Text>::FORM;
            const NAMES: Names = Names::Field;

            fn kind() -> Kind {
                <$type as Part>::kind()
            }

            fn write(&self, namespace: &str, local: &str, to: &mut Writer) {
                self.write_as(namespace, local, to);
            }

            fn read(at: At<'_>) -> Result<$type, Error> {
                read_text(at)
            }
        }
    )* };
}

texts! {
    String bool char i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64
    Bytes Timestamp SignedDuration Uuid Json
}

/// Any JSON value. In XML, the value is text. In a payload's JSON form, it is the value itself.
///
/// ```
/// # extern crate pumphouse_core as pumphouse;
/// use pumphouse::prelude::*;
/// use pumphouse::schema;
/// use pumphouse::wire::Json;
///
/// /// Keeps something.
/// #[derive(Payload)]
/// #[payload(ns = "urn:example")]
/// struct Keep {
///     it: Json,
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let json = schema::json::read(r#"{"it": {"a": [1, "<b>"]}}"#)?;
/// let keep = schema::from_json(Keep::schema(), &json)?;
/// let text = r#"<keep xmlns="urn:example"><it>{"a":[1,"&lt;b&gt;"]}</it></keep>"#;
/// assert_eq!(keep.canonical(), text);
/// assert_eq!(schema::to_json(Keep::schema(), keep.view())?, json);
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(transparent)]
#[expect(clippy::exhaustive_structs, reason = "a value, and nothing else")]
pub struct Json(
    /// The value.
    pub Value,
);

impl Text for Json {
    const FORM: Form = Form::Text;

    fn scalar() -> schema::Scalar {
        schema::Scalar::Json
    }

    fn parse(text: Cow<'_, str>) -> Option<Json> {
        schema::json::read(&text).ok().map(Json)
    }

    fn with_text<R>(&self, then: impl FnOnce(&str) -> R) -> R {
        then(&schema::json::text(&self.0))
    }
}

impl Text for String {
    const FORM: Form = Form::Text;

    fn scalar() -> schema::Scalar {
        schema::Scalar::String
    }

    fn parse(text: Cow<'_, str>) -> Option<String> {
        Some(text.into_owned())
    }

    fn with_text<R>(&self, then: impl FnOnce(&str) -> R) -> R {
        then(self)
    }
}

impl Text for bool {
    const FORM: Form = Form::Token;

    fn scalar() -> schema::Scalar {
        schema::Scalar::Boolean
    }

    fn parse(text: Cow<'_, str>) -> Option<bool> {
        schema::boolean(&text)
    }

    fn with_text<R>(&self, then: impl FnOnce(&str) -> R) -> R {
        then(if *self { "true" } else { "false" })
    }
}

impl Text for char {
    const FORM: Form = Form::Character;

    fn scalar() -> schema::Scalar {
        schema::Scalar::Character
    }

    fn parse(text: Cow<'_, str>) -> Option<char> {
        schema::character(&text)
    }

    fn with_text<R>(&self, then: impl FnOnce(&str) -> R) -> R {
        then(self.encode_utf8(&mut [0; 4]))
    }
}

macro_rules! formed {
    ($($type:ident $form:ident $parse:ident $it:ident => $text:expr;)*) => { $(
        impl Text for $type {
            const FORM: Form = Form::$form;

            fn scalar() -> schema::Scalar {
                schema::Scalar::$type
            }

            fn parse(text: Cow<'_, str>) -> Option<$type> {
                schema::$parse(&text)
            }

            fn with_text<R>(&self, then: impl FnOnce(&str) -> R) -> R {
                let $it = self;
                then(&$text)
            }
        }
    )* };
}

formed! {
    Bytes Bytes base64 it => schema::base64_text(it);
    Timestamp Token timestamp it => schema::timestamp_text(*it);
    Uuid Token uuid it => it.to_string();
}

impl Text for SignedDuration {
    const FORM: Form = Form::Token;

    fn scalar() -> schema::Scalar {
        schema::Scalar::Duration
    }

    fn parse(text: Cow<'_, str>) -> Option<SignedDuration> {
        schema::duration(&text)
    }

    fn with_text<R>(&self, then: impl FnOnce(&str) -> R) -> R {
        then(&schema::duration_text(*self))
    }
}

macro_rules! integers {
    ($($type:ident $scalar:ident)*) => { $(
        impl Text for $type {
            const FORM: Form = Form::Whole;

            fn scalar() -> schema::Scalar {
                schema::Scalar::$scalar
            }

            fn parse(text: Cow<'_, str>) -> Option<$type> {
                schema::integer(&text)
            }

            fn with_text<R>(&self, then: impl FnOnce(&str) -> R) -> R {
                match u64::try_from(*self) {
                    Ok(number) => then(Digits::decimal(number).as_str()),
                    Err(_) => then(Digits::of(format_args!("{self}")).as_str()),
                }
            }
        }
    )* };
}

integers! { i8 I8 i16 I16 i32 I32 i64 I64 i128 I128 u8 U8 u16 U16 u32 U32 u64 U64 u128 U128 }

macro_rules! floats {
    ($($type:ident $scalar:ident $parse:ident)*) => { $(
        impl Text for $type {
            const FORM: Form = Form::Float;

            fn scalar() -> schema::Scalar {
                schema::Scalar::$scalar
            }

            fn parse(text: Cow<'_, str>) -> Option<$type> {
                schema::$parse(&text)
            }

            fn with_text<R>(&self, then: impl FnOnce(&str) -> R) -> R {
                let size = self.abs();
                if self.is_nan() {
                    then("NaN")
                } else if self.is_infinite() {
                    then(if *self > 0.0 { "INF" } else { "-INF" })
                } else if size == 0.0 || (1e-5..1e16).contains(&size) {
                    then(Digits::of(format_args!("{self}")).as_str())
                } else {
                    then(Digits::of(format_args!("{self:e}")).as_str())
                }
            }
        }
    )* };
}

floats! { f32 F32 float f64 F64 double }

/// The text of a number, on the stack. The longest text has 40 characters: that of the least
/// `i128`.
struct Digits {
    bytes: [u8; 48],
    used: usize,
}

impl Digits {
    /// Returns the digits of a whole number that isn't negative. This is faster than formatting for
    /// most numbers.
    fn decimal(mut number: u64) -> Digits {
        let used = number.checked_ilog10().unwrap_or(0) as usize + 1;
        let mut digits = Digits { bytes: [0; 48], used };
        for digit in digits.bytes[..used].iter_mut().rev() {
            *digit = b'0' + (number % 10) as u8;
            number /= 10;
        }
        digits
    }

    fn of(number: fmt::Arguments<'_>) -> Digits {
        let mut digits = Digits { bytes: [0; 48], used: 0 };
        let written = digits.write_fmt(number);
        debug_assert!(written.is_ok(), "a number has forty characters at the most");
        digits
    }

    fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..self.used]).unwrap_or_default()
    }
}

impl fmt::Write for Digits {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = self.bytes.get_mut(self.used..self.used + text.len()).ok_or(fmt::Error)?;
        room.copy_from_slice(text.as_bytes());
        self.used += text.len();
        Ok(())
    }
}
