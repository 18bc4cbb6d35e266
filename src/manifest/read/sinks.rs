//! Sinks, as a manifest has them.

use std::collections::BTreeMap;
use std::path::Path;

use crate::manifest::amount;
use crate::manifest::check::joined;
use crate::manifest::mistake::{Mistake, cut};
use crate::manifest::read::Reader;
use crate::manifest::yaml::Node;
use crate::sink::{Files, NoSink, Return, Sink, WebSocket};

/// How many objects wait for a program where nobody says how many.
const RETURNED_MAX: usize = 256;

impl Reader<'_> {
    /// The sinks that are sound, and those of the type `return`.
    pub(super) fn sinks(&self, node: &Node) -> (Vec<Sink>, Vec<Return>) {
        let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
        let (mut sinks, mut returns) = (Vec::new(), Vec::new());
        for (number, item) in node.items().iter().enumerate() {
            let path = format!("sinks[{number}]");
            let text = |key: &str| item.key(key).and_then(Node::text);
            let Some(name) = text("name").or(text("type")) else { continue };
            if let Some(line) = seen.insert(name, item.place.line) {
                let text = format!("line {line} has a sink `{}` already", cut(name));
                let at = item.key("name").unwrap_or(item).place;
                let mistake = Mistake::new(at, text).at(&path);
                self.wrong(mistake.advice("give this one a `name:` of its own"));
                continue;
            }
            let sink = match text("type") {
                Some("file") => self.file_sink(name, item),
                Some("websocket") => websocket_sink(name, item),
                Some("return") => {
                    returns.push(self.returned(name, item));
                    continue;
                }
                // What else it may be was told by the shape.
                _ => continue,
            };
            let sink = sink.map(|sink| sink.map(|sink| self.choose(sink, item)));
            match sink {
                Ok(it) => sinks.extend(it),
                Err(wrong) => {
                    let place = item.key(wrong.setting).unwrap_or(item).place;
                    let path = joined(&path, wrong.setting);
                    self.wrong(Mistake::new(place, wrong.to_string()).at(&path));
                }
            }
        }
        (sinks, returns)
    }

    /// Has a sink get what it is to get.
    fn choose(&self, sink: Sink, item: &Node) -> Sink {
        let sink = if drops(item, "delta") { sink.drop_deltas() } else { sink };
        if gets_raw(item) { sink.raw(&self.events) } else { sink }
    }

    fn returned(&self, name: &str, item: &Node) -> Return {
        let items_max = item.key("buffer_size").and_then(Node::text).and_then(amount::count);
        let sink = Return::new(name, items_max.unwrap_or(RETURNED_MAX));
        let sink = if drops(item, "delta") { sink.drop_deltas() } else { sink };
        if gets_raw(item) { sink.raw(&self.events) } else { sink }
    }

    fn file_sink(&self, name: &str, item: &Node) -> Result<Option<Sink>, NoSink> {
        let text = |key: &str| item.key(key).and_then(Node::text);
        let Some(path) = text("path") else { return Ok(None) };
        let folder = self.file.parent().unwrap_or(Path::new(""));
        let mut files = Files::at(path)?.within(folder);
        if let Some(bytes) = text("max_size").and_then(amount::bytes) {
            files = files.max_size(u64::try_from(bytes).unwrap_or(u64::MAX));
        }
        if let Some(keep) = text("keep").and_then(amount::count) {
            files = files.keep(keep);
        }
        Ok(Some(Sink::files(name, files)))
    }
}

fn websocket_sink(name: &str, item: &Node) -> Result<Option<Sink>, NoSink> {
    let text = |key: &str| item.key(key).and_then(Node::text);
    let Some(url) = text("url") else { return Ok(None) };
    let mut websocket = WebSocket::at(url)?;
    if let Some(attempts) = text("reconnect_attempts").and_then(amount::count) {
        websocket = websocket.reconnect_attempts(u32::try_from(attempts).unwrap_or(u32::MAX));
    }
    if let Some(buffers) = item.key("buffer_on_disconnect").and_then(Node::flag) {
        websocket = websocket.buffer_on_disconnect(buffers);
    }
    Ok(Some(Sink::websocket(name, websocket)))
}

/// Whether a sink leaves something out.
fn drops(item: &Node, what: &str) -> bool {
    let words = item.key("drop").map(Node::items).unwrap_or_default();
    words.iter().any(|word| word.text() == Some(what))
}

/// Whether a sink gets the events of providers' streams.
fn gets_raw(item: &Node) -> bool {
    item.key("raw").and_then(Node::flag) == Some(true) && !drops(item, "raw")
}
