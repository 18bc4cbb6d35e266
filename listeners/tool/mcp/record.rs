//! The record of each server's tools: a file beside the manifest. People can read this file and
//! keep it under version control. A pump announces the digests of its recorded tools in its thread
//! `organism`.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use pumphouse::prelude::*;
use pumphouse::regular_file;
use pumphouse::secret::Secrets;
use serde_json::{Map, Value, json};

use super::super::text::shown;
use super::tools::digest;

/// The name of the record's file.
pub const FILE: &str = "mcp.lock.json";
/// The maximum number of bytes of the record's file.
const BYTES_MAX: u64 = 64 << 20;

/// The accepted tools of a server, in the thread `organism`. A digest that differs from the tool's
/// previous one means that a changed description was accepted.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/mcp/mcp/v1")]
pub struct ToolsAccepted {
    /// The server: its command, or its URL.
    #[payload(attribute, example = "mcp-server-time")]
    pub server: String,
    /// Each tool.
    pub tool: Vec<AcceptedTool>,
}

/// A tool that is accepted.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
pub struct AcceptedTool {
    /// The tool's name at its server.
    #[payload(attribute, example = "get_current_time")]
    pub name: String,
    /// The BLAKE3 digest of the tool's description, in hexadecimal.
    #[payload(attribute)]
    pub digest: String,
}

impl ToolsAccepted {
    pub(super) fn of(server: String, definitions: &Map<String, Value>) -> ToolsAccepted {
        let tool =
            |(name, it): (&String, &Value)| AcceptedTool { name: shown(name), digest: digest(it) };
        ToolsAccepted { server, tool: definitions.iter().map(tool).collect() }
    }
}

/// Maps each server in a record to its tools, and each tool's name to the digest of the tool.
pub type Digests = BTreeMap<String, BTreeMap<String, String>>;

/// Returns the digests in a folder's record. The map is empty if there is no record.
///
/// # Errors
/// If the file can't be read, is too large, or isn't a JSON object.
pub fn digests(folder: &Path) -> Result<Digests, String> {
    let all = Record::new(folder, String::new()).all()?;
    let tools = |list: &Value| {
        let tools = list.get("tools").and_then(Value::as_object).into_iter().flatten();
        let digest = |it: &Value| it.get("digest").and_then(Value::as_str).map(str::to_owned);
        tools.filter_map(|(name, it)| Some((name.clone(), digest(it)?))).collect()
    };
    Ok(all.iter().map(|(server, it)| (server.clone(), tools(it))).collect())
}

/// The record of one server.
#[derive(Clone, Debug)]
pub(super) struct Record {
    path: PathBuf,
    /// The server's key in the record: its command, or its URL.
    key: String,
}

impl Record {
    pub(super) fn new(folder: &Path, key: String) -> Record {
        Record { path: folder.join(FILE), key }
    }

    /// Hides secrets in the server's key.
    pub(super) fn hiding(self, secrets: &Secrets) -> Record {
        Record { key: secrets.hide_in(self.key), ..self }
    }

    /// Returns the definitions of the server's tools, by the tools' names. `None` if the server
    /// isn't in the record.
    pub(super) fn read(&self) -> Result<Option<Map<String, Value>>, String> {
        let all = self.all()?;
        let tools = all.get(&self.key).and_then(|it| it.get("tools")).and_then(Value::as_object);
        Ok(tools.map(|tools| {
            let definition = |it: &Value| it.get("definition").cloned().unwrap_or_default();
            tools.iter().map(|(name, it)| (name.clone(), definition(it))).collect()
        }))
    }

    /// Records these tools of the server in place of the tools that were recorded before. The file
    /// is replaced as a whole.
    pub(super) fn write(&self, tools: &Map<String, Value>) -> Result<(), String> {
        let mut all = self.all()?;
        let entry = |it: &Value| json!({ "digest": digest(it), "definition": it });
        let tools: Map<String, Value> =
            tools.iter().map(|(name, it)| (name.clone(), entry(it))).collect();
        all.insert(self.key.clone(), json!({ "tools": tools }));
        all.sort_keys();
        let text = format!("{:#}\n", Value::Object(all));
        let failed = |error: std::io::Error| format!("{}: {error}", self.path.display());
        let beside = self.path.with_extension(format!("new-{}", std::process::id()));
        // What a process of the same number has left is removed, and a link there isn't followed.
        let _ = fs::remove_file(&beside);
        // A process that can write the file can accept tools.
        let made = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside);
        let written = made.and_then(|mut it| it.write_all(text.as_bytes()));
        written.map_err(failed)?;
        fs::rename(&beside, &self.path).map_err(failed)
    }

    fn all(&self) -> Result<Map<String, Value>, String> {
        let shown = self.path.display();
        let text = match regular_file::text(&self.path, BYTES_MAX) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Map::new()),
            read => read.map_err(|error| format!("{shown}: {error}"))?,
        };
        let read = pumphouse::schema::json::read(&text).map_err(|it| format!("{shown}: {it}"))?;
        match read {
            Value::Object(all) => Ok(all),
            _ => Err(format!("{shown} holds no object")),
        }
    }
}
