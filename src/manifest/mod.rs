//! Manifests: YAML files that describe a pump. Most keys stand for calls of the builder.
//!
//! ```yaml
//! name: sums
//! data: data
//! tokens: {file: tokens.txt}
//! doors:
//!   - tcp: ${HOST:-127.0.0.1}:8765
//! listeners:
//!   - use: calculate
//!   - use: echo
//!     name: parrot
//!     peers: []
//! limits:
//!   handlers_max: 40
//! ```
//!
//! A program in Rust can do all that a manifest can. `docs/manifest.md` has every key.

mod amount;
mod mistake;
mod yaml;
mod expand_variables;
mod hide_variables;
mod key_table;
mod check;
mod editor_schema;
mod settings;
mod document;
mod contents;
mod sinks;
pub mod provider;
mod read;
mod single_settings;

use crate::engine::{Builder, Plugin};
use crate::listeners::describe::describe;
use crate::listeners::models::WithModels;

#[doc(hidden)]
pub use contents::{AgentFeed, Context, DATA, Overrides};
pub use contents::{Door, Manifest, Otel, Places, UsedProvider};
#[doc(hidden)]
pub use document::Document;
pub use editor_schema::json_schema;
pub use mistake::{Mistake, Mistakes, Place};
#[doc(hidden)]
pub use read::workflow;

/// The file name of the manifest that commands read if no other is given.
pub const FILE: &str = "organism.yaml";
/// Installs the name, listeners, models, payloads, limits, workers and heartbeat, and `describe` if
/// the manifest has `meta`. The caller opens the doors, the log and the sinks, and sends the spans.
impl Plugin for Manifest {
    fn install(self, builder: &mut Builder) {
        let mut all = std::mem::take(builder).limits(self.limits);
        if let Some(workers) = self.workers {
            all = all.workers(workers);
        }
        if let Some(name) = self.name {
            all = all.name(name);
        }
        if let Some(every) = self.heartbeat {
            all = all.heartbeat(every);
        }
        all.secrets(self.secrets);
        self.schemas.into_iter().for_each(|it| all.declare(it));
        self.models.iter().for_each(|(name, it)| all.model(name, it.clone()));
        *builder = all.with((self.listeners.unwrap_or_default(), self.meta.map(describe)));
    }
}

/// The values of a manifest, each with its path, such as `listeners[coder].max_turns`. Variables
/// stay as they are written. Of a value that may be or hold a secret, the length stands there. None
/// for a text that is no manifest.
pub fn outline(bytes: &[u8]) -> Option<Vec<(String, String)>> {
    let mut all = Vec::new();
    leaves(&yaml::read(bytes).ok()?, String::new(), &mut all);
    Some(all)
}

fn leaves(node: &yaml::Node, path: String, all: &mut Vec<(String, String)>) {
    use yaml::{Plain, Value};

    match &node.value {
        Value::Scalar(it) => {
            let value = match it.kind {
                Plain::Null | Plain::Flag(_) => it.source.clone(),
                _ if is_told(&path) => it.source.clone(),
                _ => format!("({} bytes)", it.source.len()),
            };
            all.push((path, value));
        }
        Value::Map(pairs) => {
            for it in pairs {
                leaves(&it.value, check::joined(&path, &it.key), all);
            }
        }
        Value::List(items) => {
            for (at, it) in items.iter().enumerate() {
                let name = it.key("name").or_else(|| it.key("use")).and_then(yaml::Node::text);
                let name = name.map_or_else(|| at.to_string(), str::to_owned);
                leaves(it, format!("{path}[{name}]"), all);
            }
        }
    }
}

/// Whether a value at this path is recorded as it is. Any other text or number may be a secret or
/// hold one, such as an address, an argument or a header.
fn is_told(path: &str) -> bool {
    let mut key = path;
    while let Some((before, _)) = key.rsplit_once('[').filter(|_| key.ends_with(']')) {
        key = before;
    }
    let key = key.rsplit('.').next().unwrap_or_default();
    let is_limit = ["limits.", "price."].iter().any(|it| path.contains(it));
    is_limit || TOLD.contains(&key)
}

/// The keys of a manifest whose values are recorded as they are.
const TOLD: [&str; 22] = [
    "use",
    "name",
    "model",
    "models",
    "peers",
    "workflows",
    "kind",
    "type",
    "dialect",
    "mode",
    "policy",
    "level",
    "durability",
    "max_turns",
    "wake",
    "references",
    "file",
    "root",
    "include",
    "window",
    "max_tokens",
    "price",
];
