//! Types for a listener's settings: paths relative to a manifest, and payloads that a manifest
//! declares.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use crate::name::{Name, namespace_of};
use crate::schema::{Schema, import, json};

/// A path in a listener's settings. If the settings come from a manifest, a relative path is
/// relative to the manifest's folder. If they come from elsewhere, the path stays as it is.
///
/// ```
/// # extern crate pumphouse_core as pumphouse;
/// use pumphouse::listener::ManifestPath;
/// use serde::Deserialize;
///
/// #[derive(Deserialize)]
/// struct Settings {
///     root: ManifestPath,
/// }
///
/// # fn main() -> Result<(), serde_json::Error> {
/// let settings: Settings = serde_json::from_str(r#"{"root": "work"}"#)?;
/// assert_eq!(settings.root.path(), std::path::Path::new("work"));
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManifestPath {
    folder: PathBuf,
    text: String,
}

impl ManifestPath {
    /// The struct name that tells a manifest's deserializer to give a path with its folder.
    pub const MARK: &str = "pumphouse::listener::ManifestPath";
    /// The keys of the map that the manifest's deserializer gives for this struct name.
    pub const KEYS: [&str; 2] = ["folder", "text"];

    /// A path in a folder.
    pub fn in_folder(folder: &Path, text: &str) -> ManifestPath {
        ManifestPath { folder: folder.to_owned(), text: text.to_owned() }
    }

    /// The path.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.folder.join(&self.text)
    }

    /// The path as the settings have it.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The manifest's folder, or an empty path if the settings don't come from a manifest.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

impl<P: Into<String>> From<P> for ManifestPath {
    fn from(path: P) -> ManifestPath {
        ManifestPath { folder: PathBuf::new(), text: path.into() }
    }
}

impl<'de> Deserialize<'de> for ManifestPath {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<ManifestPath, D::Error> {
        from.deserialize_newtype_struct(ManifestPath::MARK, One)
    }
}

/// A program or one of its arguments in a listener's settings. Any text can be one, also an empty
/// text, and so can a number, `true` and `false`, as they are written. A program is a path in the
/// manifest's folder, or a name.
///
/// ```
/// # extern crate pumphouse_core as pumphouse;
/// use pumphouse::listener::CommandPart;
///
/// let run: Vec<CommandPart> = serde_json::from_str(r#"["sleep", 5, true, ""]"#).unwrap();
/// let words: Vec<&str> = run.iter().map(|it| it.manifest_path().text()).collect();
/// assert_eq!(words, ["sleep", "5", "true", ""]);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandPart(ManifestPath);

impl CommandPart {
    /// The struct name that tells a manifest's deserializer to give a text with its folder.
    pub const MARK: &str = "pumphouse::listener::CommandPart";

    /// The text, and the manifest's folder.
    #[must_use]
    pub fn manifest_path(&self) -> &ManifestPath {
        &self.0
    }
}

impl<T: Into<String>> From<T> for CommandPart {
    fn from(text: T) -> CommandPart {
        CommandPart(text.into().into())
    }
}

impl<'de> Deserialize<'de> for CommandPart {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<CommandPart, D::Error> {
        from.deserialize_newtype_struct(CommandPart::MARK, OnePart)
    }
}

/// One path, or a list of them.
///
/// ```
/// # extern crate pumphouse_core as pumphouse;
/// use pumphouse::listener::ManifestPaths;
///
/// let all: ManifestPaths = serde_json::from_str(r#"["a", "b"]"#).unwrap();
/// let one: ManifestPaths = serde_json::from_str(r#""a""#).unwrap();
/// assert_eq!((all.0.len(), one.0.len()), (2, 1));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "it is a list")]
pub struct ManifestPaths(
    /// The paths.
    pub Vec<ManifestPath>,
);

impl<'de> Deserialize<'de> for ManifestPaths {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<ManifestPaths, D::Error> {
        from.deserialize_newtype_struct(ManifestPath::MARK, Several)
    }
}

/// A payload in a listener's settings. It is the name of a payload that the manifest declares in
/// `schemas`, or the JSON Schema of a payload of the listener's own.
///
/// ```
/// # extern crate pumphouse_core as pumphouse;
/// use pumphouse::Name;
/// use pumphouse::listener::DeclaredPayload;
///
/// let takes = r#"{"type": "object", "properties": {"city": {"type": "string"}}}"#;
/// let takes: DeclaredPayload = serde_json::from_str(takes).unwrap();
/// let schema = takes.schema(&Name::new("urn:x", "run")).unwrap();
/// assert_eq!(schema.name.local(), "run");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeclaredPayload {
    /// The name under which the manifest declares the payload, if it does.
    name: Option<String>,
    json: Value,
}

impl DeclaredPayload {
    /// The struct name that tells a manifest's deserializer to look a payload up by its name.
    pub const MARK: &str = "pumphouse::listener::DeclaredPayload";
    /// The keys of the map that the manifest's deserializer gives for this struct name. The values
    /// are a payload's name and the text of a JSON Schema.
    pub const KEYS: [&str; 2] = ["name", "schema"];

    /// The payload's schema. If the settings have a JSON Schema, the payload gets the name `own`.
    ///
    /// # Errors
    /// If the JSON Schema can't be used for a payload.
    pub fn schema(&self, own: &Name) -> Result<Schema, import::Error> {
        let name = match &self.name {
            Some(it) => Name::new(namespace_of(it), it.clone()),
            None => own.clone(),
        };
        Schema::from_json_schema(name, &self.json)
    }
}

impl<'de> Deserialize<'de> for DeclaredPayload {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<DeclaredPayload, D::Error> {
        from.deserialize_newtype_struct(DeclaredPayload::MARK, OnePayload)
    }
}

struct OnePayload;

impl<'de> Visitor<'de> for OnePayload {
    type Value = DeclaredPayload;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a payload, or a JSON Schema")
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(
        self,
        from: D,
    ) -> Result<DeclaredPayload, D::Error> {
        match Value::deserialize(from)? {
            json @ Value::Object(_) => Ok(DeclaredPayload { name: None, json }),
            _ => Err(D::Error::custom("the JSON Schema of a payload is expected")),
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<DeclaredPayload, A::Error> {
        let mut all = BTreeMap::new();
        while let Some((key, value)) = from.next_entry::<String, String>()? {
            all.insert(key, value);
        }
        let [name, text] = DeclaredPayload::KEYS.map(|it| all.remove(it).unwrap_or_default());
        let json = json::read(&text).map_err(A::Error::custom)?;
        Ok(DeclaredPayload { name: Some(name), json })
    }
}

struct OnePart;

impl<'de> Visitor<'de> for OnePart {
    type Value = CommandPart;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a program or an argument")
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, from: D) -> Result<CommandPart, D::Error> {
        match Value::deserialize(from)? {
            Value::String(text) => Ok(text.into()),
            it @ (Value::Bool(_) | Value::Number(_)) => Ok(it.to_string().into()),
            _ => Err(D::Error::custom("a program or an argument is expected")),
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, from: A) -> Result<CommandPart, A::Error> {
        One.visit_map(from).map(CommandPart)
    }
}

struct One;

impl<'de> Visitor<'de> for One {
    type Value = ManifestPath;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a path")
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, from: D) -> Result<ManifestPath, D::Error> {
        from.deserialize_str(self)
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<ManifestPath, E> {
        match text {
            "" => Err(E::invalid_value(serde::de::Unexpected::Str(text), &self)),
            text => Ok(text.into()),
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<ManifestPath, A::Error> {
        let mut all = BTreeMap::new();
        while let Some((key, value)) = from.next_entry::<String, String>()? {
            all.insert(key, value);
        }
        let [folder, text] = ManifestPath::KEYS.map(|it| all.remove(it).unwrap_or_default());
        Ok(ManifestPath { folder: folder.into(), text })
    }
}

struct Several;

impl<'de> Visitor<'de> for Several {
    type Value = ManifestPaths;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a path, or a list of paths")
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(
        self,
        from: D,
    ) -> Result<ManifestPaths, D::Error> {
        from.deserialize_any(self)
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<ManifestPaths, E> {
        One.visit_str(text).map(|it| ManifestPaths(vec![it]))
    }

    fn visit_map<A: MapAccess<'de>>(self, from: A) -> Result<ManifestPaths, A::Error> {
        One.visit_map(from).map(|it| ManifestPaths(vec![it]))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<ManifestPaths, A::Error> {
        let mut all = Vec::new();
        while let Some(value) = from.next_element()? {
            all.push(value);
        }
        Ok(ManifestPaths(all))
    }
}
