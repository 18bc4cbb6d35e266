//! Reads the sinks of a manifest or of a provider file.

use std::collections::BTreeMap;
use std::path::Path;

use crate::manifest::amount;
use crate::manifest::check::joined;
use crate::manifest::mistake::{Mistake, cut};
use crate::manifest::yaml::Node;
use crate::model::ProviderEvents;
use crate::sink::{Files, NoSink, Return, Sink, SinkSelection, WebSocket};

/// How many items of a sink `return` may wait for the program, unless `buffer_size` is set.
const RETURNED_MAX: usize = 256;

/// A list of sinks in a file.
pub(crate) struct SinksOf<'a> {
    pub(crate) file: &'a Path,
    /// The key of the list.
    pub(crate) key: &'a str,
    /// The events of providers' streams that the sinks get.
    pub events: &'a ProviderEvents,
    /// The name of the provider file, if the list stands in such a file. The sinks of a provider
    /// file get only the events of the provider's streams.
    pub provider: Option<&'a str>,
}

impl SinksOf<'_> {
    /// Reads the sinks. Returns those that have no mistakes, and separately those of the type
    /// `return`.
    pub(crate) fn read(
        &self,
        node: &Node,
        wrong: &mut dyn FnMut(Mistake),
    ) -> (Vec<Sink>, Vec<Return>) {
        let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
        let (mut sinks, mut returns) = (Vec::new(), Vec::new());
        for (number, item) in node.items().iter().enumerate() {
            let path = format!("{}[{number}]", self.key);
            let text = |key: &str| item.key(key).and_then(Node::text);
            let Some(own) = text("name").or(text("type")) else { continue };
            if let Some(line) = seen.insert(own, item.place.line) {
                let text = format!("line {line} has a sink `{}` already", cut(own));
                let at = item.key("name").unwrap_or(item).place;
                let mistake = Mistake::new(at, text).at(&path);
                wrong(mistake.advice("give this one a `name:` of its own"));
                continue;
            }
            if let Some(at) = item.key("drop").filter(|_| self.gets_nothing(item)) {
                let text = "a sink of a provider file gets the provider's events alone";
                let mistake = Mistake::new(at.place, text).at(&joined(&path, "drop"));
                wrong(mistake.advice("leave `raw` out of `drop`, or leave the sink out"));
            }
            let name = match self.provider {
                Some(provider) if text("name").is_none() => format!("{provider}-{own}"),
                _ => own.to_owned(),
            };
            let sink = match text("type") {
                Some("file") => file_sink(self.file, &name, item),
                Some("websocket") => websocket_sink(&name, item),
                Some("return") => {
                    returns.push(self.returned(&name, item));
                    continue;
                }
                // `manifest::check` has reported any other word.
                _ => continue,
            };
            match sink.map(|sink| sink.map(|sink| sink.selection(self.selection(item)))) {
                Ok(sink) => sinks.extend(sink),
                Err(error) => {
                    let place = item.key(error.setting).unwrap_or(item).place;
                    let path = joined(&path, error.setting);
                    wrong(Mistake::new(place, error.to_string()).at(&path));
                }
            }
        }
        (sinks, returns)
    }

    fn gets_nothing(&self, item: &Node) -> bool {
        self.provider.is_some() && drops(item, "raw")
    }

    /// Returns the selection of what a sink gets.
    fn selection(&self, item: &Node) -> SinkSelection {
        if self.provider.is_some() {
            return SinkSelection::only_raw(self.events);
        }
        let is_raw = item.key("raw").and_then(Node::flag) == Some(true) && !drops(item, "raw");
        let events = is_raw.then(|| self.events.clone());
        SinkSelection { live: !drops(item, "delta"), events, ..SinkSelection::default() }
    }

    fn returned(&self, name: &str, item: &Node) -> Return {
        let items_max = item.key("buffer_size").and_then(Node::text).and_then(amount::count);
        Return::new(name, items_max.unwrap_or(RETURNED_MAX), self.selection(item))
    }
}

fn file_sink(file: &Path, name: &str, item: &Node) -> Result<Option<Sink>, NoSink> {
    let text = |key: &str| item.key(key).and_then(Node::text);
    let Some(path) = text("path") else { return Ok(None) };
    let folder = file.parent().unwrap_or(Path::new(""));
    let mut files = Files::at(path)?.within(folder);
    if let Some(bytes) = text("max_size").and_then(amount::bytes) {
        files = files.max_size(u64::try_from(bytes).unwrap_or(u64::MAX));
    }
    if let Some(keep) = text("keep").and_then(amount::count) {
        files = files.keep(keep);
    }
    Ok(Some(Sink::files(name, files)))
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

/// Whether `drop` names this word.
fn drops(item: &Node, what: &str) -> bool {
    let words = item.key("drop").map(Node::items).unwrap_or_default();
    words.iter().any(|word| word.text() == Some(what))
}
