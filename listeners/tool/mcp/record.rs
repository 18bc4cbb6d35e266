//! What each server was found to have: a file beside the manifest, which people can read and keep
//! under version control.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

/// The file's name.
const FILE: &str = "mcp.lock.json";
/// Bytes that it may have.
const BYTES_MAX: u64 = 64 << 20;

/// The record of one server.
#[derive(Clone, Debug)]
pub(super) struct Record {
    path: PathBuf,
    /// What the server is known by: its command.
    key: String,
}

impl Record {
    pub(super) fn new(folder: &Path, key: String) -> Record {
        Record { path: folder.join(FILE), key }
    }

    /// Its tools by name, if any are recorded.
    pub(super) fn read(&self) -> Result<Option<Map<String, Value>>, String> {
        let all = self.all()?;
        let tools = all.get(&self.key).and_then(|it| it.get("tools")).and_then(Value::as_object);
        Ok(tools.map(|tools| {
            let definition = |it: &Value| it.get("definition").cloned().unwrap_or_default();
            tools.iter().map(|(name, it)| (name.clone(), definition(it))).collect()
        }))
    }

    /// Keeps these; the file is replaced as a whole.
    pub(super) fn write(&self, tools: &Map<String, Value>) -> Result<(), String> {
        let mut all = self.all()?;
        let entry = |it: &Value| json!({ "digest": super::tools::digest(it), "definition": it });
        let tools: Map<String, Value> =
            tools.iter().map(|(name, it)| (name.clone(), entry(it))).collect();
        all.insert(self.key.clone(), json!({ "tools": tools }));
        let text = format!("{:#}\n", Value::Object(all));
        let failed = |error: std::io::Error| format!("{}: {error}", self.path.display());
        let beside = self.path.with_extension(format!("new-{}", std::process::id()));
        fs::write(&beside, text).map_err(failed)?;
        fs::rename(&beside, &self.path).map_err(failed)
    }

    fn all(&self) -> Result<Map<String, Value>, String> {
        let shown = self.path.display();
        let text = match fs::metadata(&self.path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Map::new()),
            Err(error) => return Err(format!("{shown}: {error}")),
            Ok(it) if it.len() > BYTES_MAX => {
                return Err(format!("{shown} has more than {BYTES_MAX} bytes"));
            }
            Ok(_) => fs::read_to_string(&self.path).map_err(|it| format!("{shown}: {it}"))?,
        };
        let read = pumphouse::schema::json::read(&text).map_err(|it| format!("{shown}: {it}"))?;
        match read {
            Value::Object(all) => Ok(all),
            _ => Err(format!("{shown} holds no object")),
        }
    }
}
