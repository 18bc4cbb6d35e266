//! Reads the JSON Schemas of a manifest as payloads.

use std::path::Path;

use crate::manifest::mistake::{Mistake, cut};
use crate::manifest::read::{Reader, beside};
use crate::manifest::yaml::Node;
use crate::name::{Name, namespace_of};
use crate::regular_file;
use crate::schema::import::xml_name;
use crate::schema::{Schema, json};

/// The largest file of a JSON Schema, in bytes.
const BYTES_MAX: u64 = 4 << 20;

impl Reader<'_> {
    /// The payloads that the files under `schemas` describe.
    pub(super) fn declared(&self, root: &Node) -> Vec<Schema> {
        let mut all: Vec<Schema> = Vec::new();
        let items = root.key("schemas").map(Node::items).unwrap_or_default();
        for (number, at) in items.iter().enumerate() {
            let Some(file) = at.text().filter(|it| !it.is_empty()) else { continue };
            let wrong = |text: String| {
                self.wrong(Mistake::new(at.place, text).at(&format!("schemas[{number}]")));
            };
            match schema(&beside(self.file, file)) {
                Ok(it) if all.iter().any(|other| other.name == it.name) => {
                    wrong(format!("{} is the payload {}, as another file is", cut(file), it.name));
                }
                Ok(it) => all.push(it),
                Err(why) => wrong(format!("{}: {why}", cut(file))),
            }
        }
        all
    }
}

/// Reads the payload of one file. The payload's local name is the file's name up to the first dot.
fn schema(path: &Path) -> Result<Schema, String> {
    let stem = path.file_name().and_then(|it| it.to_str()).unwrap_or_default();
    let local = stem.split('.').next().unwrap_or_default();
    if local.is_empty() || xml_name(local) != local {
        let text = "a payload is called as its file, and that is no name of XML";
        return Err(format!("{text}; call it such as weather.schema.json"));
    }
    let text = regular_file::text(path, BYTES_MAX).map_err(|error| error.to_string())?;
    let original = json::read(&text).map_err(|it| it.to_string())?;
    let name = Name::new(namespace_of(local), local);
    Schema::from_json_schema(name, &original).map_err(|it| it.to_string())
}
