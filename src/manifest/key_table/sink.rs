//! The keys of a sink in a manifest.

use crate::manifest::key_table::{Key, Kind, Map, key};

pub(super) const SINKS: &str = "Where the entries of the log and live payloads go as well.";
pub(super) const EXAMPLE: &str = "sinks: [{type: file, path: \"sinks/{thread_id}/stream.jsonl\"}]";

const TYPE: &[(&str, &str)] = &[
    ("file", "Files of JSON lines, which are rotated by their size."),
    ("websocket", "A WebSocket that gets JSON objects."),
    ("return", "The program that embeds the pump."),
];

const FORMAT: &[(&str, &str)] = &[("jsonl", "A JSON object in each line.")];

const DROP: &[(&str, &str)] = &[
    ("delta", "Live payloads, such as what an agent is writing."),
    ("raw", "The events of providers' streams, where it gets those."),
];

/// A sink, of any type.
pub(super) fn sink() -> Kind {
    let maps = vec![("file", file()), ("websocket", websocket()), ("return", returned())];
    Kind::Use { by: "type", maps, other: None }
}

fn file() -> Map {
    let path = "The file. `{thread_id}` in it gives each thread a file of its own.";
    let format = "What is in it; `jsonl` unless said.";
    let max_size = "How large a file may grow before a new one is begun; 10 MiB unless said.";
    let keep = "How many older files stay, as .1, .2 and so on; 5 unless said.";
    let example = "path: \"sinks/{thread_id}/stream.jsonl\"";
    let mut keys = common("type: file");
    keys.extend([
        Key { needed: true, ..key("path", Kind::Path, path, example) },
        key("format", Kind::Word(FORMAT), format, "format: jsonl"),
        key("max_size", Kind::Bytes { min: 1_024 }, max_size, "max_size: 10MiB"),
        key("keep", Kind::Count { min: 0, max: 1_000 }, keep, "keep: 5"),
    ]);
    Map { what: "a sink of the type file", keys, one_of: &[] }
}

fn websocket() -> Map {
    let url = "Where the WebSocket is.";
    let example = "url: \"${THREAD_UI_WEBSOCKET_URL:-ws://localhost:8080/events}\"";
    let attempts = "How often it is tried before the sink rests until the next entry; 3 unless \
                    said.";
    let buffers = "Whether it gets what was written while it was away; `true` unless said.";
    let most = Kind::Count { min: 1, max: 1_000 };
    let mut keys = common("type: websocket");
    keys.extend([
        Key { needed: true, ..key("url", Kind::Text, url, example) },
        key("reconnect_attempts", most, attempts, "reconnect_attempts: 3"),
        key("buffer_on_disconnect", Kind::Flag, buffers, "buffer_on_disconnect: true"),
    ]);
    Map { what: "a sink of the type websocket", keys, one_of: &[] }
}

fn returned() -> Map {
    let buffer = "How many objects may wait for the program; 256 unless said.";
    let most = Kind::Count { min: 1, max: 1_000_000 };
    let mut keys = common("type: return");
    keys.push(key("buffer_size", most, buffer, "buffer_size: 256"));
    Map { what: "a sink of the type return", keys, one_of: &[] }
}

/// The keys of every sink.
fn common(example: &str) -> Vec<Key> {
    let name = "What it is called in traces, metrics and the file of its position; as its type \
                unless said.";
    let drop = "What it doesn't get.";
    let raw = "Whether it gets the events of providers' streams as well; `false` unless said.";
    let words = Kind::List(Box::new(Kind::Word(DROP)));
    vec![
        Key { needed: true, ..key("type", Kind::Word(TYPE), "Which type it is.", example) },
        key("name", Kind::Name, name, "name: ui"),
        key("drop", words, drop, "drop: [delta]"),
        key("raw", Kind::Flag, raw, "raw: true"),
    ]
}
