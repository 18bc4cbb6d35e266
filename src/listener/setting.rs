//! Values of settings that mean more to a manifest than their text.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

/// A path in a listener's settings. A manifest's is written from the manifest's own folder, as all
/// its paths are; any other deserializer's stays as it is.
///
/// ```
/// use pumphouse::listener::Beside;
/// use serde::Deserialize;
///
/// #[derive(Deserialize)]
/// struct Settings {
///     root: Beside,
/// }
///
/// # fn main() -> Result<(), serde_json::Error> {
/// let settings: Settings = serde_json::from_str(r#"{"root": "work"}"#)?;
/// assert_eq!(settings.root.path(), std::path::Path::new("work"));
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Beside {
    folder: PathBuf,
    text: String,
}

impl Beside {
    /// What a deserializer that knows a folder is asked for by.
    pub(crate) const MARK: &str = "pumphouse::listener::Beside";
    /// The keys of the map by which it answers.
    pub(crate) const KEYS: [&str; 2] = ["folder", "text"];

    /// The path.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.folder.join(&self.text)
    }

    /// The path as it was written.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The folder from which it was written, empty where that is unknown.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

impl<P: Into<String>> From<P> for Beside {
    fn from(path: P) -> Beside {
        Beside { folder: PathBuf::new(), text: path.into() }
    }
}

impl<'de> Deserialize<'de> for Beside {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Beside, D::Error> {
        from.deserialize_newtype_struct(Beside::MARK, One)
    }
}

/// One path, or a list of them.
///
/// ```
/// use pumphouse::listener::Besides;
///
/// let all: Besides = serde_json::from_str(r#"["a", "b"]"#).unwrap();
/// let one: Besides = serde_json::from_str(r#""a""#).unwrap();
/// assert_eq!((all.0.len(), one.0.len()), (2, 1));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "it is a list")]
pub struct Besides(
    /// The paths.
    pub Vec<Beside>,
);

impl<'de> Deserialize<'de> for Besides {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Besides, D::Error> {
        from.deserialize_newtype_struct(Beside::MARK, Several)
    }
}

struct One;

impl<'de> Visitor<'de> for One {
    type Value = Beside;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a path")
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, from: D) -> Result<Beside, D::Error> {
        from.deserialize_str(self)
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Beside, E> {
        match text {
            "" => Err(E::invalid_value(serde::de::Unexpected::Str(text), &self)),
            text => Ok(text.into()),
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Beside, A::Error> {
        let mut all = BTreeMap::new();
        while let Some((key, value)) = from.next_entry::<String, String>()? {
            all.insert(key, value);
        }
        let [folder, text] = Beside::KEYS.map(|it| all.remove(it).unwrap_or_default());
        Ok(Beside { folder: folder.into(), text })
    }
}

struct Several;

impl<'de> Visitor<'de> for Several {
    type Value = Besides;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a path, or a list of paths")
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, from: D) -> Result<Besides, D::Error> {
        from.deserialize_any(self)
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Besides, E> {
        One.visit_str(text).map(|it| Besides(vec![it]))
    }

    fn visit_map<A: MapAccess<'de>>(self, from: A) -> Result<Besides, A::Error> {
        One.visit_map(from).map(|it| Besides(vec![it]))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Besides, A::Error> {
        let mut all = Vec::new();
        while let Some(it) = from.next_element()? {
            all.push(it);
        }
        Ok(Besides(all))
    }
}
