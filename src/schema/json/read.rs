//! Parses JSON strictly. Errors have the position of the mistake and the text around that position.

use std::cell::Cell;
use std::fmt;

use serde::de::{self, Deserialize, DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde_json::error::Category;
use serde_json::{Deserializer, Map, Number, Value};

use super::half::mended;
use super::number::rounded;
use crate::limits::XmlLimits;

/// How deep objects and arrays may be nested. One level of elements takes at most three levels of
/// JSON.
pub const DEPTH_MAX: usize = 3 * XmlLimits::INSIDE.depth_max;
/// How many levels of a provider's event or of a message may stand around a value.
const OUTSIDE: usize = 16;
/// How many characters an error quotes before its position, and how many after it.
const AROUND_MAX: usize = 40;
/// Numbers of at least this size may have been rounded when they became floating-point numbers.
const ROUNDED_MIN: f64 = 9_007_199_254_740_992.0;

/// A mistake in a JSON text, with its position.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Broken {
    /// The kind of the mistake.
    pub kind: BrokenKind,
    /// The line, from 1.
    pub line: u32,
    /// The column in that line, in characters from 1.
    pub column: u32,
    /// The description of the mistake.
    pub message: String,
    /// Up to forty characters before the mistake, with control characters escaped.
    pub before: String,
    /// Up to forty characters from the mistake on, with control characters escaped.
    pub behind: String,
}

/// The kind of a mistake in a JSON text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BrokenKind {
    /// The text isn't JSON.
    Syntax,
    /// An object has a property twice, so that the property's value is ambiguous.
    Twice,
    /// Objects and arrays are nested deeper than [`DEPTH_MAX`].
    Depth,
    /// A whole number has more digits than a value holds exactly.
    Number,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Broken { line, column, message, before, behind, .. } = self;
        write!(f, "line {line}, column {column}: {message}")?;
        match (before.is_empty(), behind.is_empty()) {
            (true, true) => Ok(()),
            (true, false) => write!(f, ", before `{behind}`"),
            (false, true) => write!(f, ", behind `{before}`"),
            (false, false) => write!(f, ", between `{before}` and `{behind}`"),
        }
    }
}

impl std::error::Error for Broken {}

impl Broken {
    /// Returns how to correct the mistake, in one sentence.
    #[must_use]
    pub fn advice(&self) -> &'static str {
        match self.kind {
            BrokenKind::Syntax => "Write the JSON anew from there; nothing in it is guessed.",
            BrokenKind::Twice => "Keep one of the two.",
            BrokenKind::Depth => "Put fewer objects and arrays into one another.",
            BrokenKind::Number => "Write it as a text, in double quotes.",
        }
    }
}

/// Reads a JSON text, which is one value. Only white space may stand around it. The escape of half
/// a surrogate pair is read as U+FFFD.
///
/// # Errors
///
/// Returns an error if the text isn't JSON, a property stands twice in its object, the value is
/// nested deeper than [`DEPTH_MAX`], or a whole number has more than 64 bits, so that it would be
/// rounded.
pub fn read(text: &str) -> Result<Value, Broken> {
    let text = &*mended(text);
    let (own, is_large) = (Cell::new(BrokenKind::Syntax), Cell::new(false));
    let mut from = Deserializer::from_str(text);
    from.disable_recursion_limit();
    let value = Reader { depth: 0, own: &own, is_large: &is_large }.deserialize(&mut from);
    let value = value.and_then(|it| from.end().map(|()| it));
    let value = value.map_err(|error| broken(text, own.get(), &error))?;
    match is_large.get().then(|| rounded(text)).flatten() {
        Some((offset, number)) => {
            let message = match number.contains('.') {
                true => format!("the number {} can't be held exactly", cut(number)),
                false => format!("the whole number {} has more than 64 bits", cut(number)),
            };
            Err(at(text, offset, BrokenKind::Number, message))
        }
        None => Ok(value),
    }
}

/// Parses JSON as serde does, where objects and arrays may be nested as deep as in [`read`], within
/// a few levels more, such as those of a provider's event around a call.
pub fn deserialize<'de, T: Deserialize<'de>>(text: &'de str) -> serde_json::Result<T> {
    let mut from = Deserializer::from_str(text);
    if nesting(text) <= DEPTH_MAX + OUTSIDE {
        from.disable_recursion_limit();
    }
    let value = T::deserialize(&mut from)?;
    from.end().map(|()| value)
}

/// How deep objects and arrays are nested in a text.
fn nesting(text: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    let (mut is_string, mut is_escaped) = (false, false);
    for byte in text.bytes() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = is_string,
            b'"' => is_string = !is_string,
            _ if is_string => {}
            b'{' | b'[' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// Returns the beginning of a number, if the number is long.
fn cut(number: &str) -> String {
    match number.get(..AROUND_MAX) {
        Some(begin) if begin.len() < number.len() => format!("{begin}…"),
        _ => number.to_owned(),
    }
}

/// Reads one value at the nesting depth `depth`.
#[derive(Clone, Copy)]
struct Reader<'k> {
    depth: usize,
    /// The kind of the mistake that ended the reading. The reader sets this for mistakes that it
    /// finds itself, since the errors of `serde_json` can't carry a kind.
    own: &'k Cell<BrokenKind>,
    /// Whether there was a number that may have been rounded.
    is_large: &'k Cell<bool>,
}

impl Reader<'_> {
    fn deeper<E: de::Error>(self) -> Result<Self, E> {
        if self.depth < DEPTH_MAX {
            return Ok(Reader { depth: self.depth + 1, ..self });
        }
        self.own.set(BrokenKind::Depth);
        let message = format!("more than {DEPTH_MAX} objects and arrays stand in one another");
        Err(E::custom(message))
    }
}

impl<'de> DeserializeSeed<'de> for Reader<'_> {
    type Value = Value;

    fn deserialize<D: de::Deserializer<'de>>(self, from: D) -> Result<Value, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Reader<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Value, E> {
        Ok(flag.into())
    }

    fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_u64<E>(self, number: u64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_f64<E: de::Error>(self, float: f64) -> Result<Value, E> {
        self.is_large.set(self.is_large.get() || float.abs() >= ROUNDED_MIN);
        let number = Number::from_f64(float).ok_or_else(|| E::custom("number out of range"))?;
        Ok(number.into())
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(text.into())
    }

    fn visit_string<E>(self, text: String) -> Result<Value, E> {
        Ok(text.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Value, A::Error> {
        let inside = self.deeper()?;
        let mut all = Vec::new();
        while let Some(value) = from.next_element_seed(inside)? {
            all.push(value);
        }
        Ok(all.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Value, A::Error> {
        let inside = self.deeper()?;
        let mut all = Map::new();
        while let Some(key) = from.next_key::<String>()? {
            if all.contains_key(&key) {
                self.own.set(BrokenKind::Twice);
                let key = serde_json::to_string(&key).unwrap_or_default();
                let message = format!("the property {key} stands twice in its object");
                return Err(de::Error::custom(message));
            }
            all.insert(key, from.next_value_seed(inside)?);
        }
        Ok(all.into())
    }
}

fn broken(text: &str, kind: BrokenKind, error: &serde_json::Error) -> Broken {
    let start = line_start(text, error.line());
    // `serde_json` counts columns in bytes, and reports the column of the byte at which it stopped.
    let mut offset = (start + error.column().saturating_sub(1)).min(text.len());
    if error.classify() == Category::Eof {
        offset = text.len();
    }
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    at(text, offset, kind, message(text, offset, kind, error))
}

/// The error at a place in bytes.
fn at(text: &str, offset: usize, kind: BrokenKind, message: String) -> Broken {
    let (before, behind) = text.split_at(offset);
    let line_start = before.rfind('\n').map_or(0, |it| it + 1);
    let line = before.matches('\n').count() + 1;
    let column = before[line_start..].chars().count() + 1;
    let small = |it: usize| u32::try_from(it).unwrap_or(u32::MAX);
    Broken {
        kind,
        line: small(line),
        column: small(column),
        message,
        before: shown(&before[tail(before)..]),
        behind: shown(&behind[..head(behind)]),
    }
}

/// Describes the mistake in plain words. Unknown messages of `serde_json` are kept, without their
/// position.
fn message(text: &str, offset: usize, kind: BrokenKind, error: &serde_json::Error) -> String {
    if kind == BrokenKind::Syntax {
        if error.classify() == Category::Eof {
            return match text.trim().is_empty() {
                true => "there is nothing".to_owned(),
                false => "the text ends within its value".to_owned(),
            };
        }
        let raw = text[offset..].chars().next().filter(|it| u32::from(*it) < 0x20);
        if let Some(letter) = raw.filter(|it| !matches!(it, '\t' | '\n' | '\r')) {
            let code = u32::from(letter);
            return format!("U+{code:04X} stands there, which JSON writes as \\u{code:04x}");
        }
    }
    let told = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    let told = told.strip_suffix(&place).unwrap_or(&told);
    plain(told, text, offset).unwrap_or_else(|| told.to_owned())
}

/// Translates a message of `serde_json` into plain words. Returns `None` for a message without a
/// translation.
fn plain(told: &str, text: &str, offset: usize) -> Option<String> {
    let fixed = match told {
        "expected ident" | "expected value" => return Some(no_value(text, offset)),
        "expected `:`" => "behind the name of a property `:` is expected",
        "expected `,` or `]`" => "behind an item of a list `,` or `]` is expected",
        "expected `,` or `}`" => "behind a property `,` or `}` is expected",
        "key must be a string" => "the name of a property is expected, in double quotes",
        "trailing comma" => "a comma stands behind the last item or property; leave it out",
        "trailing characters" => "more text stands behind the value, and JSON is one value",
        "number out of range" => "the number is too large",
        "invalid number" => "this is no number; one is 3, -1.5 or 2e3",
        "invalid escape" => {
            "JSON has no such escape; it has \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\u0041"
        }
        "control character (\\u0000-\\u001F) found while parsing a string" => {
            "a line end or a tab stands in a text, which JSON writes as \\n, \\r or \\t"
        }
        _ => return None,
    };
    Some(fixed.to_owned())
}

/// Returns the message for a position at which a value is expected and something else stands.
fn no_value(text: &str, offset: usize) -> String {
    const WORDS: &str =
        "the words of JSON are true, false and null, and a text stands in double quotes";
    let is_letter = |it: &char| it.is_alphanumeric() || *it == '_';
    let before: usize =
        text[..offset].chars().rev().take_while(is_letter).map(char::len_utf8).sum();
    let word: String =
        text[offset - before..].chars().take_while(is_letter).take(AROUND_MAX).collect();
    match word.chars().next() {
        Some(it) if it.is_alphabetic() || it == '_' => {
            format!("`{word}` is no word of JSON: {WORDS}")
        }
        _ => "a value is expected here: a text in double quotes, a number, true, false, null, a \
              list or an object"
            .to_owned(),
    }
}

fn line_start(text: &str, line: usize) -> usize {
    let mut ends = text.match_indices('\n').map(|(at, _)| at + 1);
    match line {
        0 | 1 => 0,
        _ => ends.nth(line - 2).unwrap_or(text.len()),
    }
}

fn tail(text: &str) -> usize {
    text.char_indices().rev().nth(AROUND_MAX - 1).map_or(0, |(at, _)| at)
}

fn head(text: &str) -> usize {
    text.char_indices().nth(AROUND_MAX).map_or(text.len(), |(at, _)| at)
}

/// Returns the text on one line. Control characters are escaped, since a terminal might obey them.
fn shown(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        if letter.is_control() { out.extend(letter.escape_default()) } else { out.push(letter) }
    }
    out
}
