//! Values of settings that mean more to a manifest than their text.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::de::{Deserialize, Deserializer, Visitor};

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
pub struct Beside(PathBuf);

impl Beside {
    /// What a deserializer that knows a folder is asked for by.
    pub(crate) const MARK: &str = "pumphouse::listener::Beside";

    /// The path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl<P: Into<PathBuf>> From<P> for Beside {
    fn from(path: P) -> Beside {
        Beside(path.into())
    }
}

impl<'de> Deserialize<'de> for Beside {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Beside, D::Error> {
        from.deserialize_newtype_struct(Beside::MARK, Text)
    }
}

struct Text;

impl<'de> Visitor<'de> for Text {
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
            text => Ok(Beside(text.into())),
        }
    }
}
