//! The errors for elements that don't fit their schema. An error says what is wrong, where, and
//! what would be right. This file contains the texts of all these errors.

use std::borrow::Cow;
use std::fmt;

use super::example::{example_text, of_field};
use super::import::Wrong;
use super::walk::takes;
use super::{Content, ENTRY, Field, KEY, Kind, Occurs, Scalar};
use crate::name::Name;
use crate::xml::{Place, View, escape_attribute, escape_text};

/// How many characters of a name or a text an error quotes.
const ECHO_MAX: usize = 40;
/// How many characters of a path an error keeps.
const PATH_MAX: usize = 200;
/// How many bytes an example in an error may have. A longer example is left out.
pub(super) const EXAMPLE_MAX: usize = 200;
/// A wrong name with at least this many bytes counts as similar to every right name that begins
/// with the wrong name.
const SHORT_MIN: usize = 3;
/// How many names an error lists. The others are only counted.
const LIST_MAX: usize = 16;

/// A mistake in an element: what is wrong, where it is, and what would be right.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Error {
    /// The rule that is broken.
    pub rule: Rule,
    /// The position of the mistake in the XML text.
    pub place: Place,
    /// The path of the element, such as `/add/a`, or of the attribute, such as `/step/@done`.
    pub path: String,
    /// The description of the mistake.
    pub message: String,
    /// A short description of what would be right there, such as a list of names.
    pub expected: Box<str>,
    /// The right name that is most similar to the wrong one.
    pub nearest: Option<Box<str>>,
    /// An example of what would be right there.
    pub example: Option<Box<str>>,
}

/// The rules that an element may break.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Rule {
    /// The root element must have the schema's name.
    Root,
    /// A field's element must be in the payload's namespace.
    Namespace,
    /// An attribute must be declared in the schema.
    Attribute,
    /// An element must be declared in the schema.
    Field,
    /// Fields must stand in the schema's order.
    Order,
    /// A required field must be there.
    Missing,
    /// A field that isn't repeatable may occur only once. A key may occur only once in a map.
    Twice,
    /// Text may only stand where the schema allows text, and elements only where the schema allows
    /// elements.
    Text,
    /// A text must have the form of its scalar.
    Value,
    /// Elements may only be nested up to a limit.
    Depth,
    /// A payload whose schema was made from a JSON Schema must also be valid against that JSON
    /// Schema.
    Schema,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Error { place, message, .. } = self;
        write!(f, "line {}, column {}: {message}", place.line, place.column)
    }
}

impl std::error::Error for Error {}

impl Error {
    fn new(rule: Rule, view: View<'_>, message: String) -> Error {
        Error {
            rule,
            place: view.place(),
            path: tail(view.path()),
            message,
            expected: Box::default(),
            nearest: None,
            example: None,
        }
    }

    /// Returns how to correct the mistake, in one sentence.
    #[must_use]
    pub fn advice(&self) -> String {
        let Error { rule, expected, nearest, example, .. } = self;
        match (rule, nearest, example) {
            (Rule::Field, Some(found), Some(example)) => {
                format!("Write {found} instead, as in {example}.")
            }
            (Rule::Attribute | Rule::Field | Rule::Missing | Rule::Value, Some(found), _) => {
                format!("Write {found} instead.")
            }
            (Rule::Root, _, Some(it)) => format!("Begin with {it}."),
            (Rule::Missing, _, Some(it)) => format!("Add {it}."),
            (Rule::Missing, ..) => format!("Add {expected}."),
            (Rule::Value, _, Some(it)) => format!("Write it as in {it}."),
            (Rule::Order, ..) => "Move it to its place in that order.".to_owned(),
            (Rule::Namespace, ..) => {
                "Write it with the prefix of its payload, or with none and no xmlns where that has \
                 none."
                    .to_owned()
            }
            (Rule::Twice, ..) => "Keep one of the two.".to_owned(),
            (Rule::Text, ..) if &**expected == "elements" => {
                "Put the text into one of the elements, or leave it out.".to_owned()
            }
            (Rule::Text, ..) if &**expected == "text" => {
                "Write text only; for a `<` in it write `&lt;`.".to_owned()
            }
            (Rule::Depth, ..) => "Put fewer elements into one another.".to_owned(),
            (Rule::Value, ..) => format!("Write {expected}."),
            (Rule::Schema, ..) => "Make it what that schema says.".to_owned(),
            (Rule::Root | Rule::Attribute | Rule::Field | Rule::Text, ..) => {
                "Leave it out.".to_owned()
            }
        }
    }

    /// Adds an example, unless it is too long to be read.
    fn showing(mut self, example: impl Into<Option<String>>) -> Error {
        let short = example.into().filter(|it| it.len() <= EXAMPLE_MAX);
        self.example = short.map(Box::from);
        self
    }

    fn at_attribute(mut self, local: &str) -> Error {
        self.path = format!("{}/@{}", self.path, cut(local));
        self
    }

    fn expecting(self, expected: impl Into<Box<str>>) -> Error {
        Error { expected: expected.into(), ..self }
    }

    /// Records which name is most similar to the wrong one, if any is. If there are several names,
    /// the message asks whether the most similar one was meant.
    fn or_nearest(mut self, wrong: &str, names: &[String]) -> Error {
        self.nearest = nearest(wrong, names.iter().map(String::as_str)).map(Box::from);
        if let (Some(nearest), true) = (&self.nearest, names.len() > 1) {
            self.message = format!("{}; did you mean {nearest}?", self.message);
        }
        self
    }
}

pub(super) fn root(view: View<'_>, name: &Name) -> Error {
    let shown = Name::new(cut(view.namespace()), cut(view.local()));
    Error::new(Rule::Root, view, format!("this is {shown}, not {name}"))
        .expecting(name.to_string())
        .showing(format!("<{} xmlns={:?}>", name.local(), name.namespace()))
}

pub(super) fn depth(view: View<'_>, most: usize) -> Error {
    let message = format!("<{}> stands more than {most} elements deep", cut(view.local()));
    Error::new(Rule::Depth, view, message)
}

/// Returns the error for a violation of the JSON Schema from which the schema was made.
pub(super) fn judged(view: View<'_>, wrong: &Wrong) -> Error {
    let steps = wrong.path.iter().map(|it| format!("/{}", cut(it))).collect::<String>();
    let at = if steps.is_empty() { String::new() } else { format!(" at {steps}") };
    let name = cut(view.local());
    let message = format!("<{name}> isn't what its JSON Schema says{at}: {}", wrong.message);
    Error::new(Rule::Schema, view, message)
}

/// Returns the error for a field with two values. For example, the field has an element and is also
/// listed as null.
pub(super) fn twofold(view: View<'_>, field: &str) -> Error {
    let message = format!("<{}> says two things of {}", cut(view.local()), cut(field));
    Error::new(Rule::Schema, view, message)
}

pub(super) fn attribute(view: View<'_>, namespace: &str, local: &str, fields: &[Field]) -> Error {
    let name = Name::new(cut(namespace), cut(local));
    let names: Vec<_> = fields.iter().map(|it| it.name.to_string()).collect();
    let list = joined(&names, ", ");
    let end = if names.is_empty() { "it has none".to_owned() } else { format!("it has {list}") };
    let message = format!("<{}> has no attribute {name}; {end}", cut(view.local()));
    Error::new(Rule::Attribute, view, message)
        .at_attribute(local)
        .expecting(list)
        .or_nearest(local, &names)
}

pub(super) fn no_attribute(view: View<'_>, field: &Field) -> Error {
    let message = format!("<{}> needs the attribute {}", cut(view.local()), field.name);
    Error::new(Rule::Missing, view, message)
        .expecting(field.name.to_string())
        .showing(attribute_example(field))
}

fn attribute_example(field: &Field) -> Option<String> {
    match &field.kind {
        Kind::Scalar(scalar) => Some(attributed(&field.name, scalar)),
        _ => None,
    }
}

fn attributed(name: &str, scalar: &Scalar) -> String {
    let mut text = format!("{name}=\"");
    escape_attribute(&example_text(scalar), &mut text);
    text + "\""
}

fn tagged(name: &str, scalar: &Scalar) -> String {
    let mut text = format!("<{name}>");
    escape_text(&example_text(scalar), &mut text);
    format!("{text}</{name}>")
}

pub(super) fn no_entry(view: View<'_>, child: View<'_>) -> Error {
    if child.local() == ENTRY {
        let entry = [Field::new(ENTRY, "", Kind::Scalar(Scalar::String), Occurs::Many)];
        return elsewhere(view, child, &entry);
    }
    let message = format!("<{}> holds <entry key=\"…\">, not {}", cut(view.local()), tag(child));
    Error::new(Rule::Field, child, message)
        .expecting("<entry>")
        .or_nearest(&tag(child), &["<entry>".to_owned()])
}

pub(super) fn no_key(child: View<'_>) -> Error {
    let message = "<entry> needs the attribute key".to_owned();
    Error::new(Rule::Missing, child, message)
        .expecting("key")
        .showing("<entry key=\"name\">".to_owned())
}

pub(super) fn key_twice(view: View<'_>, child: View<'_>, key: &str) -> Error {
    let message = format!("<{}> has the key {} twice", cut(view.local()), quoted(key));
    Error::new(Rule::Twice, child, message).at_attribute(KEY).expecting("another key")
}

pub(super) fn text(view: View<'_>, text: &str, empty: bool) -> Error {
    let (local, text) = (cut(view.local()), quoted(text));
    let message = match empty {
        true => format!("<{local}> is empty, but {text} stands there"),
        false => format!("<{local}> holds elements and no text, but {text} stands there"),
    };
    Error::new(Rule::Text, view, message).expecting(if empty { "nothing" } else { "elements" })
}

pub(super) fn element(view: View<'_>, child: View<'_>) -> Error {
    let (local, child_local) = (cut(view.local()), cut(child.local()));
    let message = format!("<{local}> holds text and no elements, but <{child_local}> stands there");
    Error::new(Rule::Text, child, message).expecting("text")
}

pub(super) fn value(view: View<'_>, attribute: Option<&str>, text: &str, scalar: &Scalar) -> Error {
    let expected = scalar.describe();
    let who = match attribute {
        Some(name) => format!("the attribute {name} of <{}>", cut(view.local())),
        None => format!("<{}>", cut(view.local())),
    };
    let message = format!("{who} takes {expected}, not {}", quoted(super::scalar::trim(text)));
    let mut error = Error::new(Rule::Value, view, message).expecting(expected);
    if let Some(name) = attribute {
        error = error.at_attribute(name);
    }
    let names: Vec<_> = match scalar.base() {
        Scalar::Words(words) => words.list.iter().map(|it| it.text.to_string()).collect(),
        _ => scalar.narrowest().one_of.iter().map(ToString::to_string).collect(),
    };
    let example = match attribute {
        Some(name) => attributed(name, scalar),
        None => tagged(&cut(view.local()), scalar),
    };
    error.showing(example).or_nearest(text, &names)
}

/// Returns the error for an element that the schema doesn't allow at its position. `place` is the
/// index of the field that may come next in the sequence.
pub(super) fn unexpected(view: View<'_>, child: View<'_>, fields: &[Field], place: usize) -> Error {
    let is_for = |it: &Field, other: View<'_>| takes(it, fields, view, other);
    let its = fields.iter().position(|it| is_for(it, child));
    let any = its.is_some_and(|it| matches!(fields[it].kind, Kind::Element));
    let (local, tag, names) = (cut(view.local()), tag(child), names(fields));
    let away = child.namespace() != view.namespace();
    if away && (any || its.is_none()) && names.contains(&tag) {
        return elsewhere(view, child, fields);
    }
    let Some(its) = its else { return unknown(view, child, fields) };
    let order = shown(fields);
    let error = |rule, message| Error::new(rule, child, message);
    if its < place {
        let mut earlier = view.elements().take_while(|other| other.place() != child.place());
        let once = fields[its].occurs != Occurs::Many;
        if once && earlier.any(|other| is_for(&fields[its], other)) {
            return error(Rule::Twice, format!("<{local}> has {tag} twice")).expecting(order);
        }
        let message = format!("{tag} stands too late in <{local}>; the order is {order}");
        return error(Rule::Order, message).expecting(order);
    }
    // The element's field comes later in the sequence. So the walk has stopped at a required field
    // whose element is missing here.
    let missing = fields[place..its].iter().find(|it| it.occurs == Occurs::One);
    let Some(missing) = missing else { return unknown(view, child, fields) };
    if view.elements().any(|other| is_for(missing, other)) {
        let message = format!("{tag} stands too early in <{local}>; the order is {order}");
        return error(Rule::Order, message).expecting(order);
    }
    let needed = needed(missing);
    let message = format!("<{local}> needs {needed} before {tag}");
    let error = error(Rule::Missing, message).expecting(needed).showing(of_field(missing));
    if any { error.or_nearest(&tag, &names) } else { error }
}

fn elsewhere(view: View<'_>, child: View<'_>, fields: &[Field]) -> Error {
    let message = format!(
        "{} is in {}, but the fields of <{}> are in {}",
        tag(child),
        space(child.namespace()),
        cut(view.local()),
        space(view.namespace()),
    );
    Error::new(Rule::Namespace, child, message).expecting(shown(fields))
}

fn unknown(view: View<'_>, child: View<'_>, fields: &[Field]) -> Error {
    let (local, tag, list) = (cut(view.local()), tag(child), shown(fields));
    let message = match fields {
        [] => format!("<{local}> has no field {tag}; it is empty"),
        _ => format!("<{local}> has no field {tag}; it has {list}"),
    };
    let mut error = Error::new(Rule::Field, child, message);
    error = error.expecting(list).or_nearest(&tag, &names(fields));
    let right = error.nearest.as_deref().and_then(|it| called(it, fields));
    error.showing(right)
}

/// Returns an example of the field that has this tag.
fn called(tag: &str, fields: &[Field]) -> Option<String> {
    let variants = |field: &Field| match &field.kind {
        Kind::Choice(link) => match &link.shape().content {
            Content::Choice(variants) => variants.iter().find_map(|it| own(tag, it)),
            _ => None,
        },
        _ => own(tag, field),
    };
    fields.iter().find_map(variants)
}

fn own(tag: &str, field: &Field) -> Option<String> {
    if names_of(field).iter().any(|it| it == tag) { of_field(field) } else { None }
}

pub(super) fn missing(view: View<'_>, field: &Field, fields: &[Field]) -> Error {
    let needed = needed(field);
    let before = fields.iter().take_while(|it| it.name != field.name);
    let message = match before.filter(|it| it.occurs == Occurs::One).last() {
        Some(last) => {
            format!("<{}> needs {needed} after {}", cut(view.local()), self::needed(last))
        }
        None => format!("<{}> needs {needed}", cut(view.local())),
    };
    Error::new(Rule::Missing, view, message).expecting(needed).showing(of_field(field))
}

pub(super) fn incomplete(view: View<'_>) -> Error {
    Error::new(Rule::Missing, view, format!("<{}> is not complete", cut(view.local())))
}

pub(super) fn no_choice(view: View<'_>, variants: &[Field]) -> Error {
    let needed = one_of(&names(variants));
    Error::new(Rule::Missing, view, format!("<{}> needs {needed}", cut(view.local())))
        .expecting(needed)
        .showing(variants.first().and_then(of_field))
}

pub(super) fn two(view: View<'_>, child: View<'_>, variants: &[Field]) -> Error {
    let needed = one_of(&names(variants));
    let message = format!("<{}> holds only {needed}", cut(view.local()));
    Error::new(Rule::Twice, child, message).expecting(needed)
}

pub(super) fn none_of(view: View<'_>, variants: &[Field]) -> Error {
    let (names, tag) = (names(variants), tag(view));
    let needed = one_of(&names);
    let message = format!("{tag} is not {needed}");
    let mut error = Error::new(Rule::Field, view, message);
    error = error.expecting(needed).or_nearest(&tag, &names);
    let right = error.nearest.as_deref().and_then(|it| called(it, variants));
    error.showing(right)
}

fn tag(view: View<'_>) -> String {
    format!("<{}>", cut(view.local()))
}

/// Returns the tags of all fields. A field that is a choice has the tags of its variants.
fn names(fields: &[Field]) -> Vec<String> {
    fields.iter().flat_map(names_of).collect()
}

fn names_of(field: &Field) -> Vec<String> {
    match &field.kind {
        Kind::Element => vec!["an element of any name".to_owned()],
        Kind::Choice(link) => match &link.shape().content {
            Content::Choice(variants) => {
                variants.iter().map(|it| format!("<{}>", it.name)).collect()
            }
            _ => Vec::new(),
        },
        Kind::Scalar(_) | Kind::Shape(_) | Kind::Map(_) => vec![format!("<{}>", field.name)],
    }
}

/// Returns the fields in their order as a text for people: `<a>, <b> or <c>, <d>`.
fn shown(fields: &[Field]) -> String {
    let each: Vec<_> = fields.iter().map(|it| joined(&names_of(it), " or ")).collect();
    joined(&each, ", ")
}

fn needed(field: &Field) -> String {
    one_of(&names_of(field))
}

fn one_of(names: &[String]) -> String {
    match names {
        [one] => one.clone(),
        _ => format!("one of {}", joined(names, ", ")),
    }
}

pub(super) fn joined(names: &[String], by: &str) -> String {
    match names.get(..LIST_MAX) {
        Some(first) if names.len() > LIST_MAX => {
            format!("{}{by}{} more", first.join(by), names.len() - LIST_MAX)
        }
        _ => names.join(by),
    }
}

fn space(namespace: &str) -> String {
    match namespace {
        "" => "no namespace".to_owned(),
        it => format!("the namespace {}", quoted(it)),
    }
}

/// Keeps only the end of a path that is longer than [`PATH_MAX`].
pub(super) fn tail(path: String) -> String {
    match path.char_indices().rev().nth(PATH_MAX - 1) {
        Some((start, _)) if start > 0 => format!("…{}", &path[start..]),
        _ => path,
    }
}

/// Returns a text as an error quotes it: shortened, and on one line. Control characters are
/// escaped, since a terminal might obey them.
fn quoted(text: &str) -> String {
    format!("{:?}", cut(text))
}

pub(super) fn cut(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(ECHO_MAX) {
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
        None => Cow::Borrowed(text),
    }
}

/// Returns the name that is most similar to `wrong`, among the first 1024 of `names`. Returns
/// `None` if no name is similar.
#[must_use]
pub fn nearest<'a>(wrong: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let plain = |it: &str| it.trim_matches(['<', '>']).replace('_', "-").to_lowercase();
    let wrong = plain(&cut(wrong));
    let close = |text: &&str| {
        let right = plain(text);
        let (steps, most) = (distance(&wrong, &right), wrong.len().max(right.len()));
        let begins = wrong.len() >= SHORT_MIN && right.starts_with(&wrong);
        (steps, steps < most && (steps <= 1.max(most / 3) || begins))
    };
    let close = names.take(1_024).map(|it| (close(&it), it)).filter(|((_, is_close), _)| *is_close);
    close.min_by_key(|((steps, _), _)| *steps).map(|(_, it)| it)
}

/// Returns the edit distance: how many letters must be changed, added, dropped or swapped with a
/// neighbour to turn one text into the other.
fn distance(left: &str, right: &str) -> usize {
    let (left, right): (Vec<_>, Vec<_>) = (left.chars().collect(), right.chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=right.len()).collect();
    for row in 1..=left.len() {
        let mut this = vec![row];
        for column in 1..=right.len() {
            let same = left[row - 1] == right[column - 1];
            let change = last[column - 1] + usize::from(!same);
            let mut steps = change.min(last[column] + 1).min(this[column - 1] + 1);
            let swapped = row > 1
                && column > 1
                && left[row - 1] == right[column - 2]
                && left[row - 2] == right[column - 1];
            if swapped {
                steps = steps.min(before[column - 2] + 1);
            }
            this.push(steps);
        }
        before = std::mem::replace(&mut last, this);
    }
    last[right.len()]
}
