//! The errors of a payload's JSON form: what is wrong, at which path, and what would be right.

use std::fmt;

use serde_json::Value;

use super::member::Property;
use super::scalar::{self, Sort, is_written, sort};
use super::to::example_of;
use crate::schema::error::{EXAMPLE_MAX, cut, joined, nearest};
use crate::schema::import::Wrong;
use crate::schema::scalar::counted;
use crate::schema::{Field, Scalar};
use crate::xml;

/// The most mistakes that are reported.
pub(super) const ERRORS_MAX: usize = 16;
/// How many characters of a path an error keeps.
const PATH_MAX: usize = 400;

/// The mistakes in a JSON form, from one to sixteen.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Errors {
    /// The mistakes. For each object, unknown properties come first, and the other mistakes follow
    /// in the order of the schema. Violations of a JSON Schema are in the validator's order.
    pub all: Vec<Error>,
    /// Whether checking stopped at the limit, so that there may be more mistakes.
    pub is_cut: bool,
}

/// One mistake: where it is, what is wrong, and what would be right.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Error {
    /// The rule that is broken.
    pub rule: Rule,
    /// The path of the value, in the form of RFC 9535: `$.items[3].count`.
    pub path: String,
    /// The description of the mistake, as the rest of a sentence that begins with the path: `takes
    /// true or false, not 1`.
    pub message: String,
    /// A short description of what would be right there, such as a list of names.
    pub expected: Box<str>,
    /// The right name or word that is most similar to the wrong one.
    pub nearest: Option<Box<str>>,
    /// The name of the property that isn't declared.
    pub property: Option<Box<str>>,
    /// An example of what would be right there.
    pub example: Option<Box<str>>,
}

/// The rules that a JSON form may break.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Rule {
    /// A property must be declared in the schema.
    Property,
    /// A required property must be there.
    Missing,
    /// Exactly one property of a choice must be there, or at most one if the choice is optional.
    Choice,
    /// A value must have the form that the schema declares for it.
    Value,
    /// An optional property without a value must be left out. It can't be null.
    Null,
    /// Text may only have characters that XML allows.
    Character,
    /// A string of XML must be one well-formed element that the schema allows there.
    Xml,
    /// Elements may only be nested up to a limit.
    Depth,
    /// The payload may not be larger than the limit.
    Size,
    /// A value whose schema was made from a JSON Schema must be valid against that JSON Schema.
    Schema,
}

impl fmt::Display for Errors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, error) in self.all.iter().enumerate() {
            let end = if place == 0 { "" } else { "\n" };
            write!(f, "{end}{error}")?;
        }
        if self.is_cut { f.write_str("\nand perhaps more") } else { Ok(()) }
    }
}

impl std::error::Error for Errors {}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.path, self.message)
    }
}

impl std::error::Error for Error {}

impl Error {
    pub(super) fn new(rule: Rule, path: &[Step<'_>], message: String) -> Error {
        let path = written(path);
        let (expected, nearest, property, example) = Default::default();
        Error { rule, path, message, expected, nearest, property, example }
    }

    /// Returns how to correct the mistake, in one sentence.
    #[must_use]
    pub fn advice(&self) -> String {
        let Error { rule, expected, nearest, example, .. } = self;
        match (rule, nearest, example) {
            (Rule::Property | Rule::Value, Some(it), _) => format!("Write {it} instead."),
            (Rule::Property | Rule::Null, ..) => "Leave it out.".to_owned(),
            (Rule::Missing, _, Some(it)) => format!("Add {it}."),
            (Rule::Missing, ..) => format!("Add {expected}."),
            (Rule::Choice, _, Some(it)) => format!("Keep or add one, as in {it}."),
            (Rule::Choice, ..) => format!("Keep or add {expected}."),
            (Rule::Value, _, Some(it)) => format!("Write it as in {it}."),
            (Rule::Value, ..) => format!("Write {expected}."),
            (Rule::Character, ..) => "Leave that character out.".to_owned(),
            (Rule::Xml, ..) => format!("Write {expected}."),
            (Rule::Depth, ..) => "Put fewer objects into one another.".to_owned(),
            (Rule::Schema, ..) => "Make it what that schema says.".to_owned(),
            (Rule::Size, ..) => "Send less, or a reference instead.".to_owned(),
        }
    }

    fn expecting(self, expected: impl Into<Box<str>>) -> Error {
        Error { expected: expected.into(), ..self }
    }

    /// Adds an example, unless it is too long to be read.
    fn showing(mut self, example: Option<String>) -> Error {
        self.example = example.filter(|it| it.len() <= EXAMPLE_MAX).map(Box::from);
        self
    }

    /// Records which name is most similar to the wrong one, if any is. If there are several names,
    /// the message asks whether the most similar one was meant.
    fn or_nearest<'n>(
        mut self,
        wrong: &str,
        names: impl Iterator<Item = &'n str> + Clone,
    ) -> Error {
        self.nearest = nearest(wrong, names.clone()).map(|it| quoted(it).into());
        if let (Some(nearest), true) = (&self.nearest, names.count() > 1) {
            self.message = format!("{}; did you mean {nearest}?", self.message);
        }
        self
    }
}

/// A step of a path: into an object, or into an array.
#[derive(Clone, Copy)]
pub(super) enum Step<'a> {
    Name(&'a str),
    Item(usize),
}

pub(super) fn unknown(path: &[Step<'_>], name: &str, properties: &[&Property<'_>]) -> Error {
    let names: Vec<_> = properties.iter().map(|it| quoted(&it.name)).collect();
    let list = listed(&names, "and");
    let message = match &*names {
        [] => format!("has no property {}; it is empty", quoted(name)),
        _ => format!("has no property {}; it has {list}", quoted(name)),
    };
    let error = Error { property: Some(name.into()), ..Error::new(Rule::Property, path, message) };
    error.expecting(list).or_nearest(name, properties.iter().map(|it| &*it.name))
}

pub(super) fn missing(path: &[Step<'_>], property: &Property<'_>) -> Error {
    let name = quoted(&property.name);
    let message = format!("needs the property {name}");
    Error::new(Rule::Missing, path, message).expecting(name).showing(pair(property))
}

pub(super) fn none(path: &[Step<'_>], variants: &[Property<'_>]) -> Error {
    let needed = one_of(variants);
    Error::new(Rule::Choice, path, format!("needs {needed}"))
        .expecting(needed)
        .showing(variants.first().and_then(pair))
}

pub(super) fn several(path: &[Step<'_>], there: &[&str], variants: &[Property<'_>]) -> Error {
    let needed = one_of(variants);
    let there: Vec<_> = there.iter().map(|it| quoted(it)).collect();
    let message = format!("takes only {needed}, but has {}", listed(&there, "and"));
    Error::new(Rule::Choice, path, message)
        .expecting(needed)
        .showing(variants.first().and_then(pair))
}

/// Returns the error for a value of another kind than expected. `expected` is a text such as `an
/// object`.
pub(super) fn kind(path: &[Step<'_>], value: &Value, expected: &str, field: &Field) -> Error {
    let message = format!("takes {expected}, not {}", shown(value));
    let example = match (example_of(field), path.last()) {
        (Some(Value::Array(mut items)), Some(Step::Item(_))) => items.pop(),
        (example, _) => example,
    };
    let example = example.map(|it| it.to_string());
    Error::new(Rule::Value, path, message).expecting(expected).showing(example)
}

pub(super) fn null(path: &[Step<'_>]) -> Error {
    let message = "takes no null, but may be left out".to_owned();
    Error::new(Rule::Null, path, message).expecting("nothing")
}

/// Returns the error for a payload whose JSON form isn't an object.
pub(super) fn no_object(path: &[Step<'_>], value: &Value) -> Error {
    let message = format!("takes an object, not {}", shown(value));
    Error::new(Rule::Value, path, message).expecting("an object")
}

pub(super) fn value(path: &[Step<'_>], value: &Value, scalar: &Scalar) -> Error {
    let expected = described(scalar);
    let message = format!("takes {expected}, not {}", shown(value));
    let words: Vec<&str> = match scalar.base() {
        Scalar::Words(words) => words.list.iter().map(|it| &*it.text).collect(),
        _ => Vec::new(),
    };
    let few = scalar.narrowest().one_of;
    let names = words.into_iter().chain(few.iter().map(|it| &**it));
    // A string may be what an element's text would be, such as `"7"` for a number. Then the example
    // is the JSON form of that text.
    let meant =
        value.as_str().filter(|it| scalar.accepts(it)).map(|it| scalar::to_json(scalar, it));
    let meant = meant.filter(|it| it != value);
    let example =
        meant.unwrap_or_else(|| scalar::to_json(scalar, &crate::schema::example_text(scalar)));
    Error::new(Rule::Value, path, message)
        .expecting(expected)
        .showing(Some(example.to_string()))
        .or_nearest(value.as_str().unwrap_or_default(), names)
}

pub(super) fn item(path: &[Step<'_>], text: &str) -> Error {
    let message = format!("takes an item without white space, not {}", quoted(text));
    Error::new(Rule::Value, path, message).expecting("a text of one word")
}

pub(super) fn character(path: &[Step<'_>], letter: char) -> Error {
    let message = format!("holds U+{:04X}, which is no XML character", u32::from(letter));
    Error::new(Rule::Character, path, message).expecting("characters of XML")
}

pub(super) fn xml(path: &[Step<'_>], error: &xml::Error) -> Error {
    let xml::Place { line, column, .. } = error.place;
    let message = format!("holds no XML; its line {line}, column {column}: {}", error.message);
    Error::new(Rule::Xml, path, message).expecting("one well-formed element")
}

pub(super) fn not_this(path: &[Step<'_>], local: &str, expected: &str) -> Error {
    let message = format!("holds <{}>, but takes {expected}", cut(local));
    Error::new(Rule::Xml, path, message).expecting(expected)
}

pub(super) fn depth(path: &[Step<'_>], most: usize) -> Error {
    Error::new(Rule::Depth, path, format!("stands more than {most} elements deep"))
}

pub(super) fn size(error: &xml::Error) -> Error {
    Error::new(Rule::Size, &[], format!("is more than a payload may be: {}", error.message))
}

pub(super) fn schema(path: &[Step<'_>], error: &crate::schema::Error) -> Error {
    let message = format!("is not what its schema says, at {}: {}", error.path, error.message);
    Error::new(Rule::Xml, path, message).expecting(error.expected.clone())
}

/// Returns the error for a violation of the JSON Schema from which the schema was made.
pub(super) fn judged(wrong: &Wrong) -> Error {
    fn step(text: &str) -> Step<'_> {
        let is_item = !text.is_empty() && text.chars().all(|it| it.is_ascii_digit());
        match text.parse() {
            Ok(place) if is_item => Step::Item(place),
            _ => Step::Name(text),
        }
    }
    let path: Vec<Step<'_>> = wrong.path.iter().map(|it| step(it)).collect();
    let message = format!("isn't what its schema says: {}", wrong.message);
    Error::new(Rule::Schema, &path, message).expecting("what its schema says")
}

/// Describes in words which JSON values a scalar takes.
fn described(scalar: &Scalar) -> String {
    match sort(scalar) {
        Sort::List(list) => {
            let count = counted(list.length_min, list.length_max);
            let count = if count.is_empty() { count } else { format!(" of {count}") };
            format!("an array{count}, each {}", described(&list.item))
        }
        Sort::Token if is_written(scalar) || is_wide(scalar.base()) => {
            format!("{}, as a string", scalar.describe())
        }
        Sort::Real => scalar.describe().replace("INF, -INF or NaN", "\"INF\", \"-INF\" or \"NaN\""),
        _ => scalar.describe(),
    }
}

fn is_wide(base: &Scalar) -> bool {
    matches!(base, Scalar::I128 | Scalar::U128)
}

/// Returns a property's name with an example of its value, such as `"a": 1`.
fn pair(property: &Property<'_>) -> Option<String> {
    let value = example_of(property.field)?;
    Some(format!("{}: {value}", quoted(&property.name)))
}

fn one_of(variants: &[Property<'_>]) -> String {
    let names: Vec<_> = variants.iter().map(|it| quoted(&it.name)).collect();
    match &*names {
        [one] => one.clone(),
        _ => format!("one of {}", joined(&names, ", ")),
    }
}

fn listed(names: &[String], word: &str) -> String {
    match names {
        [first @ .., last] if (1..3).contains(&first.len()) => {
            format!("{} {word} {last}", first.join(", "))
        }
        _ => joined(names, ", "),
    }
}

/// Returns a value as an error quotes it: short, and on one line.
fn shown(value: &Value) -> String {
    match value {
        Value::Object(_) => "an object".to_owned(),
        Value::Array(items) if items.is_empty() => "an empty array".to_owned(),
        Value::Array(items) => format!("an array of {}", items.len()),
        Value::String(text) => quoted(text),
        other => other.to_string(),
    }
}

fn quoted(text: &str) -> String {
    Value::from(cut(text)).to_string()
}

/// Writes a path in the form of RFC 9535. A path longer than [`PATH_MAX`] loses its beginning.
fn written(path: &[Step<'_>]) -> String {
    let mut text = "$".to_owned();
    for step in path {
        match step {
            Step::Item(place) => text.push_str(&format!("[{place}]")),
            Step::Name(name) if is_plain(name) => {
                text.push('.');
                text.push_str(&cut(name));
            }
            Step::Name(name) => text.push_str(&format!("[{}]", quoted(name))),
        }
    }
    match text.char_indices().rev().nth(PATH_MAX - 1) {
        Some((start, _)) if start > 0 => format!("…{}", &text[start..]),
        _ => text,
    }
}

fn is_plain(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|it: char| it.is_ascii_digit())
        && name.chars().all(|it| it == '_' || it.is_ascii_alphanumeric() || it > '\u{7F}')
}
