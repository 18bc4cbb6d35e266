//! References in responses and in texts of authors: `$name`, `${name}` and
//! `${name.path[0].field}`. [`filling`](super::filling) replaces them by results of actions,
//! contents of feeds, fields of metadata and items of lists. [`parameters`](super::parameters) has
//! the rules for what a model writes as parameters.
//!
//! A reference to an unknown name stays as it is written. Inserted text is never searched for
//! references. `$$` becomes `$`, and `$5` is text. In the Markdown code of a response, every `$` is
//! text.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Range;

use pumphouse::reply::code_ranges;
use serde_json::Value;

use super::super::metadata::METADATA;

/// The result of looking up a name.
#[derive(Clone, Debug, PartialEq)]
// The enum is exhaustive, since code that replaces references must handle each variant.
#[expect(clippy::large_enum_variant, reason = "a lookup lives only until its value is used")]
pub enum Lookup<'a> {
    /// A value.
    Value(Cow<'a, KnownValue>),
    /// An action that ended without success. A reference to such an action `fetch` becomes
    /// `[fetch: failed]`.
    Failed,
    /// An action that didn't run because of its condition, or that failed with `on_error` `skip`. A
    /// reference to it becomes null, with any path.
    Skipped,
    /// A feed of which the turn's prompt showed nothing. A reference to such a feed `weather`
    /// becomes `[weather: unavailable]`.
    Unavailable,
    /// Nothing has the name, or the action with this name isn't done. The reference stays as it is
    /// written.
    Unknown,
}

impl Lookup<'_> {
    /// The same result, with a borrowed value.
    #[must_use]
    pub fn borrowed(&self) -> Lookup<'_> {
        match self {
            Lookup::Value(it) => Lookup::Value(Cow::Borrowed(it)),
            Lookup::Failed => Lookup::Failed,
            Lookup::Skipped => Lookup::Skipped,
            Lookup::Unavailable => Lookup::Unavailable,
            Lookup::Unknown => Lookup::Unknown,
        }
    }
}

/// The value of a name, and the payload that the value was taken from.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct KnownValue {
    /// The value that replaces a reference without a path.
    pub value: Value,
    /// The whole payload as JSON. `${name.field}` refers to a field of this payload, if there is
    /// such a field. None if the value is the whole payload.
    pub fields: Option<Value>,
    /// The data for which the value stands, if the payload has such data.
    pub body: Option<Value>,
    /// The names of the fields that the payload may have and lacks. No path leads into the data by
    /// such a name, so that nothing in the data passes for a field of the payload.
    pub missing: Vec<String>,
}

/// The step that leads into what a server said, and past the fields of the payload.
const BODY: &str = "body";

impl From<Value> for KnownValue {
    fn from(value: Value) -> KnownValue {
        KnownValue { value, ..KnownValue::default() }
    }
}

impl KnownValue {
    /// The steps with which a path into this value may begin.
    pub(super) fn steps(&self) -> Vec<String> {
        let besides = self.fields.iter().chain(&self.body).flat_map(steps_of);
        let all: BTreeSet<String> = steps_of(&self.value).into_iter().chain(besides).collect();
        all.into_iter().collect()
    }

    /// The part to which a path leads. A path that begins with a field of the payload leads into
    /// the payload. Any other path leads into the value, or into the data for which it stands, and
    /// so does a path that begins with `body`.
    ///
    /// # Errors
    /// If there is no such part. The error is the first step that leads nowhere.
    pub fn at<'s>(&self, path: &[&'s str]) -> Result<&Value, &'s str> {
        let (Some(fields), Some((first, behind))) = (&self.fields, path.split_first()) else {
            return along(&self.value, path);
        };
        if step_into(fields, first).is_some() {
            return along(fields, path);
        }
        if self.missing.iter().any(|it| it == first) {
            return Err(first);
        }
        let body = self.body.as_ref().unwrap_or(&self.value);
        match (*first, behind) {
            (BODY, []) => Ok(step_into(body, BODY).unwrap_or(body)),
            (BODY, behind) => {
                along(body, behind).or_else(|step| along(body, path).map_err(|_| step))
            }
            _ => along(body, path).or_else(|_| along(&self.value, path)),
        }
    }
}

/// The names that a text refers to.
#[must_use]
pub fn names(text: &str) -> Vec<&str> {
    names_among(&pieces(text))
}

/// The names that a response refers to.
#[must_use]
pub fn names_in_prose(text: &str) -> Vec<&str> {
    names_among(&in_prose(text))
}

fn names_among<'a>(pieces: &[Piece<'a>]) -> Vec<&'a str> {
    references(pieces).map(|it| it.name).collect()
}

/// The names that the texts of a JSON value refer to.
pub fn names_in<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
    let mut references = Vec::new();
    references_in(value, &mut references);
    found.extend(references.iter().map(|it| it.name));
}

/// The references in the texts of a JSON value.
pub fn references_in<'a>(value: &'a Value, found: &mut Vec<Reference<'a>>) {
    match value {
        Value::String(text) => found.extend(references(&pieces(text))),
        Value::Array(items) => items.iter().for_each(|it| references_in(it, found)),
        Value::Object(properties) => properties.values().for_each(|it| references_in(it, found)),
        _ => {}
    }
}

/// The references among a text's pieces.
pub fn references<'p, 'a: 'p>(pieces: &'p [Piece<'a>]) -> impl Iterator<Item = Reference<'a>> + 'p {
    pieces.iter().filter_map(|it| match it {
        Piece::Reference(it) => Some(*it),
        Piece::Text(_) => None,
    })
}

/// A piece of a text. Concatenated, the pieces give the text, with each escaped `$$` as `$`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
// The enum is exhaustive, since code that replaces references must handle each variant.
pub enum Piece<'a> {
    /// Text.
    Text(&'a str),
    /// A reference. If nothing has its name, the reference stays in the text.
    Reference(Reference<'a>),
}

/// A reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reference<'a> {
    /// The position of the reference in the text, in bytes.
    pub at: usize,
    /// The whole reference as it is written.
    pub whole: &'a str,
    /// The name in the reference.
    pub name: &'a str,
    /// The path after the name, such as `.title`. May be empty.
    pub path: &'a str,
}

/// Splits a response into pieces. In fences and code spans of its Markdown, nothing is a reference.
#[must_use]
pub fn in_prose(text: &str) -> Vec<Piece<'_>> {
    let code = if text.contains('$') { code_ranges(text) } else { Vec::new() };
    split(text, &code)
}

/// Splits a text that isn't Markdown into pieces.
#[must_use]
pub fn pieces(text: &str) -> Vec<Piece<'_>> {
    split(text, &[])
}

fn split<'a>(text: &'a str, code: &[Range<usize>]) -> Vec<Piece<'a>> {
    let (mut all, mut from, mut at) = (Vec::new(), 0, 0);
    let mut code = code.iter().peekable();
    while let Some(found) = text[at..].find('$') {
        let dollar = at + found;
        let rest = &text[dollar + 1..];
        at = dollar + 1;
        while code.next_if(|it| it.end <= dollar).is_some() {}
        if code.peek().is_some_and(|it| it.contains(&dollar)) {
            continue;
        }
        if rest.starts_with('$') {
            all.push(Piece::Text(&text[from..at]));
            at += 1;
            from = at;
        } else if let Some(reference) = reference(text, dollar) {
            all.push(Piece::Text(&text[from..dollar]));
            all.push(Piece::Reference(reference));
            at = dollar + reference.whole.len();
            from = at;
        }
    }
    all.push(Piece::Text(&text[from..]));
    all.retain(|it| !matches!(it, Piece::Text("")));
    all
}

/// The most bytes of a reference's name and path. The brace that ends it is searched for within
/// these, so that a text of many open braces takes no long time.
const REFERENCE_BYTES_MAX: usize = 1024;

/// The reference that begins with the `$` at `at`. None if no reference begins there.
fn reference(text: &str, at: usize) -> Option<Reference<'_>> {
    let text = &text[at..];
    let rest = &text[1..];
    let Some(braced) = rest.strip_prefix('{') else {
        let word = |it: char| it.is_ascii_alphanumeric() || it == '_';
        let name = &rest[..rest.find(|it| !word(it)).unwrap_or(rest.len())];
        let begins = name.starts_with(|it: char| it.is_ascii_alphabetic() || it == '_');
        return begins.then(|| Reference { at, whole: &text[..=name.len()], name, path: "" });
    };
    let within = &braced[..braced.floor_char_boundary(REFERENCE_BYTES_MAX)];
    let inner = &within[..within.find('}')?];
    let (name, path) = inner.split_at(inner.find(['.', '[']).unwrap_or(inner.len()));
    let word = |it: char| it.is_ascii_alphanumeric() || matches!(it, '_' | '-' | ':');
    let begins = name.starts_with(|it: char| it.is_ascii_alphabetic() || it == '_');
    (begins && name.chars().all(word) && steps(path).is_some()).then(|| Reference {
        at,
        whole: &text[..inner.len() + 3],
        name,
        path,
    })
}

/// The steps of a path such as `.title` or `[0]`. `.0` means the same as `[0]`. None if the text
/// isn't a path.
#[must_use]
pub fn steps(path: &str) -> Option<Vec<&str>> {
    let (mut all, mut rest) = (Vec::new(), path);
    while !rest.is_empty() {
        let (step, behind) = if let Some(dotted) = rest.strip_prefix('.') {
            dotted.split_at(dotted.find(['.', '[']).unwrap_or(dotted.len()))
        } else {
            let (number, behind) = rest.strip_prefix('[')?.split_once(']')?;
            number.bytes().all(|it| it.is_ascii_digit()).then_some((number, behind))?
        };
        if step.is_empty() {
            return None;
        }
        all.push(step);
        rest = behind;
    }
    Some(all)
}

impl<'t> Reference<'t> {
    /// The field of the agent's metadata to which the reference leads, such as `status` for
    /// `${metadata.status}`. None for any other reference.
    #[must_use]
    pub fn metadata_field(&self) -> Option<&'t str> {
        let path = steps(self.path).filter(|_| self.name == METADATA)?;
        path.first().copied()
    }
}

/// The part of a value that a path leads to. An error is the first step that leads nowhere.
fn along<'v, 's>(value: &'v Value, path: &[&'s str]) -> Result<&'v Value, &'s str> {
    path.iter().try_fold(value, |value, step| step_into(value, step).ok_or(*step))
}

/// The steps that lead into a value.
pub(super) fn steps_of(value: &Value) -> Vec<String> {
    match value {
        Value::Object(properties) => properties.keys().cloned().collect(),
        Value::Array(items) => match items.len() {
            0 => Vec::new(),
            1 => vec!["[0]".to_owned()],
            count => vec![format!("[0] to [{}]", count - 1)],
        },
        _ => Vec::new(),
    }
}

/// Returns a text that is nothing but a reference, or nothing but an escaped one such as `$$name`.
/// The flag says whether it is escaped.
#[must_use]
pub fn whole(text: &str) -> Option<(Reference<'_>, bool)> {
    let is_escaped = text.starts_with("$$");
    let text = &text[usize::from(is_escaped)..];
    let found = text.starts_with('$').then(|| reference(text, 0)).flatten();
    found.filter(|it| it.whole.len() == text.len()).map(|it| (it, is_escaped))
}

/// The part of a value that one step leads to.
#[must_use]
pub fn step_into<'a>(value: &'a Value, step: &str) -> Option<&'a Value> {
    match value {
        Value::Array(items) => items.get(step.parse::<usize>().ok()?),
        it => it.get(step),
    }
}

/// Returns the list of a `foreach` block as a reference. A list without `$` is a bare name, and
/// gets `${` and `}` around it. None if the list is written as JSON.
#[must_use]
pub fn list_reference(list: &str) -> Option<String> {
    let list = list.trim();
    match () {
        () if list.starts_with('[') => None,
        () if list.starts_with('$') => Some(list.to_owned()),
        () => Some(format!("${{{list}}}")),
    }
}
