//! Reads settings with serde into a type that a listener's author wrote, and gives every mistake
//! its place.

use std::cell::RefCell;
use std::fmt;
use std::path::{Path, PathBuf};

use serde::de::value::MapDeserializer;
use serde::de::{
    self, DeserializeSeed, Deserializer, EnumAccess, Expected, MapAccess, SeqAccess, Unexpected,
    VariantAccess, Visitor,
};

use crate::listener::{CommandPart, DeclaredPayload, ManifestPath};
use crate::manifest::check::joined;
use crate::manifest::mistake::{Mistake, cut, listed};
use crate::manifest::yaml::{Node, Pair, Plain, Scalar, Value};
use crate::schema::Schema;

/// Collects the mistakes in settings.
pub(super) struct Findings {
    /// The manifest's folder, where its paths start.
    folder: PathBuf,
    /// The payloads that the manifest declares: a local name and a JSON Schema each.
    payloads: Vec<(String, String)>,
    /// A mistake for each key that no field reads.
    unknown: RefCell<Vec<Mistake>>,
    /// The error at which serde stopped reading.
    end: RefCell<Option<Mistake>>,
}

impl Findings {
    /// A collection without mistakes, for settings in this file.
    pub(super) fn of(file: &Path) -> Findings {
        let folder = file.parent().unwrap_or(Path::new("")).to_owned();
        let (unknown, end) = (RefCell::default(), RefCell::default());
        Findings { folder, payloads: Vec::new(), unknown, end }
    }

    /// Adds the payloads that the manifest declares.
    pub(super) fn with(mut self, schemas: &[Schema]) -> Findings {
        let each = |it: &Schema| Some((it.name.local().to_owned(), it.original()?.to_string()));
        self.payloads = schemas.iter().filter_map(each).collect();
        self
    }

    pub(super) fn all(self) -> Vec<Mistake> {
        let mut all = self.unknown.into_inner();
        all.extend(self.end.into_inner());
        all
    }

    /// Keeps the first error. The first error is the innermost one, so `at` is its place.
    fn keep(&self, at: &At<'_>, error: Wrong) -> Wrong {
        let mut end = self.end.borrow_mut();
        if end.is_none() {
            *end = Some(error.mistake(at));
        }
        error
    }
}

/// A deserializer of one value of the settings.
#[derive(Clone)]
pub(super) struct At<'a> {
    pub(super) node: &'a Node,
    pub(super) path: String,
    pub(super) findings: &'a Findings,
}

/// An error of serde.
#[derive(Clone, Debug)]
pub(super) enum Wrong {
    /// Any other error, with its message.
    Said(String),
    /// The value is of another kind than the type expects.
    Other { expected: String },
    /// The word `wrong` isn't one of the words `right`.
    Word { wrong: String, right: &'static [&'static str] },
    /// A key is missing.
    Missing(&'static str),
}

impl Wrong {
    fn mistake(&self, at: &At<'_>) -> Mistake {
        let place = at.node.place;
        let mistake = match self {
            Wrong::Said(text) => Mistake::new(place, text.as_str()),
            Wrong::Other { expected } => {
                let text = format!("this is {}, and {expected} is expected", at.node.said());
                Mistake::new(place, text)
            }
            Wrong::Word { wrong, right } => {
                let all = listed(right.iter().copied()).replace(" and ", " or ");
                let text = format!("this is {}, and {all} is expected", at.node.said());
                Mistake::new(place, text).or_nearest(wrong, right.iter().copied())
            }
            Wrong::Missing(key) => {
                let text = format!("here the key `{key}` is missing");
                Mistake::new(place, text).advice(format!("add `{key}: …`"))
            }
        };
        mistake.at(&at.path)
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Wrong::Said(text) => f.write_str(text),
            Wrong::Other { expected } => write!(f, "{expected} is expected"),
            Wrong::Word { right, .. } => write!(f, "one of {} is expected", right.join(", ")),
            Wrong::Missing(key) => write!(f, "the key {key} is missing"),
        }
    }
}

impl std::error::Error for Wrong {}

impl de::Error for Wrong {
    fn custom<T: fmt::Display>(text: T) -> Wrong {
        Wrong::Said(text.to_string())
    }

    // The error leaves the value out, because a filled-in variable may be a secret. [`Node::said`]
    // shows the value as the manifest has it.
    fn invalid_type(_: Unexpected<'_>, expected: &dyn Expected) -> Wrong {
        Wrong::Other { expected: plainly(expected) }
    }

    fn invalid_value(_: Unexpected<'_>, expected: &dyn Expected) -> Wrong {
        Wrong::Other { expected: plainly(expected) }
    }

    fn invalid_length(_: usize, expected: &dyn Expected) -> Wrong {
        Wrong::Other { expected: plainly(expected) }
    }

    fn unknown_variant(wrong: &str, right: &'static [&'static str]) -> Wrong {
        Wrong::Word { wrong: wrong.to_owned(), right }
    }

    fn unknown_field(wrong: &str, right: &'static [&'static str]) -> Wrong {
        Wrong::Word { wrong: wrong.to_owned(), right }
    }

    fn missing_field(key: &'static str) -> Wrong {
        Wrong::Missing(key)
    }
}

/// Describes what serde expects, in words for an author of YAML.
fn plainly(expected: &dyn Expected) -> String {
    let whole = |min: String, max: String| format!("a whole number from {min} to {max}");
    match expected.to_string().as_str() {
        "u8" => whole(u8::MIN.to_string(), u8::MAX.to_string()),
        "u16" => whole(u16::MIN.to_string(), u16::MAX.to_string()),
        "u32" => whole(u32::MIN.to_string(), u32::MAX.to_string()),
        "u64" | "usize" => whole(u64::MIN.to_string(), u64::MAX.to_string()),
        "i8" => whole(i8::MIN.to_string(), i8::MAX.to_string()),
        "i16" => whole(i16::MIN.to_string(), i16::MAX.to_string()),
        "i32" => whole(i32::MIN.to_string(), i32::MAX.to_string()),
        "i64" | "isize" => whole(i64::MIN.to_string(), i64::MAX.to_string()),
        "f32" | "f64" => "a number".to_owned(),
        "a boolean" => "`true` or `false`".to_owned(),
        "a string" => "a text".to_owned(),
        // The name of a type in Rust means nothing to the author.
        other if other.starts_with("struct ") => "a map of keys, as in `key: value`,".to_owned(),
        other => other.to_owned(),
    }
}

impl<'a> At<'a> {
    fn below(&self, node: &'a Node, path: String) -> At<'a> {
        At { node, path, findings: self.findings }
    }

    fn kept<T>(&self, read: Result<T, Wrong>) -> Result<T, Wrong> {
        read.map_err(|it| self.findings.keep(self, it))
    }

    /// Returns the manifest's folder and a path, as the fields of a [`ManifestPath`].
    fn beside(&self, path: &str) -> Result<impl Iterator<Item = (&'static str, String)>, Wrong> {
        let folder = self.findings.folder.clone().into_os_string().into_string();
        let unknown = |_| Wrong::Said("the manifest's folder has a name that is no text".into());
        let values = [folder.map_err(unknown)?, path.to_owned()];
        Ok(ManifestPath::KEYS.into_iter().zip(values))
    }

    /// Returns a payload that the manifest declares, as the fields of a [`DeclaredPayload`].
    fn declared(
        &self,
        name: &str,
    ) -> Result<impl Iterator<Item = (&'static str, String)> + use<>, Wrong> {
        let all = &self.findings.payloads;
        let Some((name, schema)) = all.iter().find(|it| it.0 == name) else {
            let there: Vec<&str> = all.iter().map(|it| it.0.as_str()).collect();
            let there = if there.is_empty() { "none".to_owned() } else { there.join(", ") };
            let text = format!("`{}` is no payload of the manifest's `schemas`", cut(name));
            return Err(Wrong::Said(format!("{text}; there is {there}")));
        };
        let values = [name.clone(), schema.clone()];
        Ok(DeclaredPayload::KEYS.into_iter().zip(values))
    }

    fn any<'de, V: Visitor<'de>>(&self, visitor: V) -> Result<V::Value, Wrong> {
        match &self.node.value {
            Value::Scalar(it) => plain(it, visitor),
            Value::List(items) => visitor.visit_seq(self.items(items)),
            Value::Map(entries) => visitor.visit_map(self.keys(entries.iter().collect())),
        }
    }

    fn items(&self, items: &'a [Node]) -> Items<'a> {
        Items { at: self.clone(), items, next: 0 }
    }

    fn keys(&self, entries: Vec<&'a Pair>) -> Keys<'a> {
        Keys { at: self.clone(), entries: entries.into_iter(), value: None }
    }

    /// Returns the entries whose keys are among `fields`, and adds a mistake for each unknown key.
    /// Entries without a value are left out, and of a repeated key the first entry counts. Returns
    /// None if the value isn't a map.
    fn known(&self, fields: &[&'static str]) -> Option<Vec<&'a Pair>> {
        let Value::Map(entries) = &self.node.value else { return None };
        let mut known: Vec<&Pair> = Vec::new();
        for entry in entries {
            let key = entry.key.as_str();
            if !fields.contains(&key) {
                self.findings.unknown.borrow_mut().push(self.unknown(entry, fields));
            } else if entry.value.is_null() {
                // A key without a value counts as absent.
            } else if known.iter().all(|it| it.key != key) {
                known.push(entry);
            }
        }
        Some(known)
    }

    fn unknown(&self, entry: &Pair, fields: &[&'static str]) -> Mistake {
        let text = match fields {
            [] => format!("here is no key `{}`: there is nothing to set", cut(&entry.key)),
            _ => format!("here is no key `{}`", cut(&entry.key)),
        };
        let mistake = Mistake::new(entry.place, text).at(&joined(&self.path, &entry.key));
        let mistake = mistake.or_nearest(&entry.key, fields.iter().copied());
        match (mistake.nearest.clone(), fields) {
            (Some(it), _) => mistake.advice(format!("write `{it}`")),
            (None, []) => mistake.advice("leave it out"),
            (None, _) => mistake.advice(format!("there is {}", fields.join(", "))),
        }
    }
}

/// Passes a scalar to a visitor, as the kind that serde_yaml reads.
fn plain<'de, V: Visitor<'de>>(scalar: &Scalar, visitor: V) -> Result<V::Value, Wrong> {
    match scalar.kind {
        Plain::Null => visitor.visit_unit(),
        Plain::Flag(it) => visitor.visit_bool(it),
        Plain::Number(it) => visitor.visit_f64(it),
        Plain::Text => visitor.visit_str(&scalar.text),
        Plain::Whole(it) => match (u64::try_from(it), i64::try_from(it)) {
            (Ok(it), _) => visitor.visit_u64(it),
            (_, Ok(it)) => visitor.visit_i64(it),
            _ => visitor.visit_i128(it),
        },
    }
}

impl<'de> Deserializer<'de> for At<'_> {
    type Error = Wrong;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        self.kept(self.any(visitor))
    }

    /// A text may stand without quotes, even if it looks like a number.
    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        match &self.node.value {
            Value::Scalar(it) if it.kind != Plain::Null => self.kept(visitor.visit_str(&it.text)),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        self.deserialize_str(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        match self.node.is_null() {
            true => self.kept(visitor.visit_none()),
            false => self.kept(visitor.visit_some(self.clone())),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Wrong> {
        match &self.node.value {
            Value::Scalar(it) if name == DeclaredPayload::MARK => {
                let pair = self.declared(&it.text);
                self.kept(pair.and_then(|it| visitor.visit_map(MapDeserializer::new(it))))
            }
            Value::Scalar(it) if name == CommandPart::MARK && it.kind != Plain::Null => {
                let pair = self.beside(&it.text);
                self.kept(pair.and_then(|it| visitor.visit_map(MapDeserializer::new(it))))
            }
            _ if name == CommandPart::MARK => {
                let expected = "a program or an argument".to_owned();
                self.kept(Err(Wrong::Other { expected }))
            }
            _ if name != ManifestPath::MARK => {
                self.kept(visitor.visit_newtype_struct(self.clone()))
            }
            Value::Scalar(it) if it.kind == Plain::Text && !it.text.is_empty() => {
                let pair = self.beside(&it.text);
                self.kept(pair.and_then(|it| visitor.visit_map(MapDeserializer::new(it))))
            }
            Value::List(items) => self.kept(visitor.visit_seq(self.items(items))),
            _ => self.kept(Err(Wrong::Other { expected: "a path".to_owned() })),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Wrong> {
        let known = if self.node.is_null() { Some(Vec::new()) } else { self.known(fields) };
        match (known, &self.node.value) {
            (Some(known), _) => self.kept(visitor.visit_map(self.keys(known))),
            // Without this case, serde would read a list as the fields in their order.
            (None, Value::List(_)) => {
                self.kept(Err(de::Error::invalid_type(Unexpected::Seq, &visitor)))
            }
            (None, _) => self.deserialize_any(visitor),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Wrong> {
        let read = match &self.node.value {
            Value::Scalar(it) if it.kind != Plain::Null => {
                visitor.visit_enum(Chosen { at: self.clone(), word: &it.text })
            }
            Value::Map(entries) if entries.len() == 1 => {
                visitor.visit_enum(Choice { at: self.clone(), entry: &entries[0] })
            }
            _ => Err(Wrong::Other { expected: "one word, or one key with a value".to_owned() }),
        };
        self.kept(read)
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char bytes byte_buf unit unit_struct
        seq tuple tuple_struct map identifier ignored_any
    }
}

struct Items<'a> {
    at: At<'a>,
    items: &'a [Node],
    next: usize,
}

impl<'de> SeqAccess<'de> for Items<'_> {
    type Error = Wrong;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Wrong> {
        let Some(node) = self.items.get(self.next) else { return Ok(None) };
        let path = format!("{}[{}]", self.at.path, self.next);
        self.next += 1;
        seed.deserialize(self.at.below(node, path)).map(Some)
    }
}

struct Keys<'a> {
    at: At<'a>,
    entries: std::vec::IntoIter<&'a Pair>,
    value: Option<&'a Pair>,
}

impl<'de> MapAccess<'de> for Keys<'_> {
    type Error = Wrong;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Wrong> {
        self.value = self.entries.next();
        let Some(entry) = self.value else { return Ok(None) };
        seed.deserialize(Word { at: &self.at, text: &entry.key }).map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Wrong> {
        let Some(entry) = self.value.take() else {
            return Err(Wrong::Said("a value was asked for before its key".to_owned()));
        };
        let path = joined(&self.at.path, &entry.key);
        seed.deserialize(self.at.below(&entry.value, path))
    }
}

/// A key, or the name of a variant. Errors about the word are kept at once, before outer code can
/// wrap them.
struct Word<'a> {
    at: &'a At<'a>,
    text: &'a str,
}

impl<'de> Deserializer<'de> for Word<'_> {
    type Error = Wrong;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        self.at.kept(visitor.visit_str(self.text))
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct newtype_struct seq tuple tuple_struct map struct enum identifier
        ignored_any
    }
}

/// An enum's variant that is written as a word alone.
struct Chosen<'a> {
    at: At<'a>,
    word: &'a str,
}

impl<'de> EnumAccess<'de> for Chosen<'_> {
    type Error = Wrong;
    type Variant = Alone;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Alone), Wrong> {
        let variant = seed.deserialize(Word { at: &self.at, text: self.word })?;
        Ok((variant, Alone(self.at.path)))
    }
}

/// The missing content of a [`Chosen`] variant, with the variant's path.
struct Alone(String);

impl Alone {
    fn needs<T>(&self) -> Result<T, Wrong> {
        Err(Wrong::Said(format!("{} needs a value: write it as a key with one", self.0)))
    }
}

impl<'de> VariantAccess<'de> for Alone {
    type Error = Wrong;

    fn unit_variant(self) -> Result<(), Wrong> {
        Ok(())
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, _: S) -> Result<S::Value, Wrong> {
        self.needs()
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, _: V) -> Result<V::Value, Wrong> {
        self.needs()
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Wrong> {
        self.needs()
    }
}

/// An enum's variant that is written as `{variant: value}`.
struct Choice<'a> {
    at: At<'a>,
    entry: &'a Pair,
}

impl<'de, 'a> EnumAccess<'de> for Choice<'a> {
    type Error = Wrong;
    type Variant = At<'a>;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, At<'a>), Wrong> {
        let variant = seed.deserialize(Word { at: &self.at, text: &self.entry.key })?;
        let path = joined(&self.at.path, &self.entry.key);
        Ok((variant, self.at.below(&self.entry.value, path)))
    }
}

impl<'de> VariantAccess<'de> for At<'_> {
    type Error = Wrong;

    fn unit_variant(self) -> Result<(), Wrong> {
        match self.node.is_null() {
            true => Ok(()),
            false => self.kept(Err(Wrong::Other { expected: "nothing".to_owned() })),
        }
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, Wrong> {
        seed.deserialize(self)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Wrong> {
        self.deserialize_any(visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Wrong> {
        self.deserialize_struct("", fields, visitor)
    }
}
