//! Parser events as lines of text that tests can compare.

use pumphouse::reply::{Config, Event, Markup, Parser, What};
use serde_json::{Value, json};

/// The names that the tests use, beside the protocol's.
pub(super) fn config() -> Config {
    let mut config = Config::default();
    config.markup = Markup::default().root("researcher").peer("calculate");
    config
}

/// What is told of a reply that comes in chunks: adjacent text joined, a line an event.
pub(super) fn tell<'a>(config: &Config, chunks: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let mut told = Told::default();
    let mut parser = Parser::new(config.clone());
    for chunk in chunks {
        parser.feed(chunk, &mut |event| told.take(event));
    }
    parser.finish(&mut |event| told.take(event));
    told.lines
}

/// What is told of a whole reply; that its sources are the reply, and that single characters are
/// told the same.
#[track_caller]
pub(super) fn whole(config: &Config, text: &str) -> Vec<String> {
    let told = tell(config, [text]);
    let characters = text.char_indices().map(|(at, it)| &text[at..at + it.len_utf8()]);
    assert_eq!(tell(config, characters), told, "character by character: {text}");
    assert_eq!(sources(config, text), text, "the sources are the reply");
    told
}

/// The sources of all events, one behind the other.
pub(super) fn sources(config: &Config, text: &str) -> String {
    let mut sources = String::with_capacity(text.len());
    let mut parser = Parser::new(config.clone());
    parser.feed(text, &mut |event| sources.push_str(event.source));
    parser.finish(&mut |event| sources.push_str(event.source));
    sources
}

/// Compares what is told of a reply with what should be: `kind: text`, `<name` and `name>` of what
/// opens and closes, `name attributes body`, `broken name line:column reason`, `repaired`, `cut`.
#[track_caller]
pub(super) fn check(text: &str, expected: &[&str]) {
    check_with(&config(), text, expected);
}

#[track_caller]
pub(super) fn check_with(config: &Config, text: &str, expected: &[&str]) {
    assert_eq!(whole(config, text), expected, "{text}");
}

#[derive(Default)]
struct Told {
    lines: Vec<String>,
    /// What sort of text the last line has.
    text: Option<String>,
}

impl Told {
    fn take(&mut self, event: Event<'_>) {
        let source = event.source;
        let line = match event.what {
            What::Text { within } => {
                return self.text(
                    within.map_or_else(|| "text".to_owned(), |it| format!("{it:?}").to_lowercase()),
                    source,
                );
            }
            What::Discarded { name } => return self.text(format!("discarded {name}"), source),
            What::Opened(it) => format!("<{}{}", it.name, attributes(it.attributes)),
            What::Closed(it) if source.is_empty() || source.starts_with("</") => {
                format!("{}>", it.name)
            }
            What::Closed(it) => {
                format!("{}{} {}", it.name, attributes(it.attributes), it.body.as_str())
            }
            What::Broken(it) => {
                let place = event.place;
                format!("broken {} {}:{} {}", it.name, place.line, place.column, it.reason)
            }
            // What is text was told as such.
            What::Ignored { .. } => return,
            What::Repaired(note) => format!("repaired: {note}"),
            What::Finished { cut: None } => return,
            What::Finished { cut: Some(it) } => format!("cut {}: {source}", it.name),
            _ => unreachable!("an event of a new sort"),
        };
        self.text = None;
        self.lines.push(line);
    }

    fn text(&mut self, kind: String, source: &str) {
        match self.lines.last_mut() {
            Some(last) if self.text.as_ref() == Some(&kind) => last.push_str(source),
            _ => {
                self.lines.push(format!("{kind}: {source}"));
                self.text = Some(kind);
            }
        }
    }
}

fn attributes(all: &[pumphouse::reply::Attribute]) -> String {
    all.iter().map(|it| format!(" {}={}", it.name, it.value)).collect()
}

/// Numbers that look like chance, the same on every machine.
pub(super) fn cuts(text: &str, seed: u64) -> Vec<&str> {
    let (mut chunks, mut rest, mut state) = (Vec::new(), text, seed);
    while !rest.is_empty() {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let count = usize::try_from(state >> 33 & 0x0F).unwrap() + 1;
        let end = rest.char_indices().nth(count).map_or(rest.len(), |(end, _)| end);
        let (chunk, later) = rest.split_at(end);
        chunks.push(chunk);
        rest = later;
    }
    chunks
}

/// An action with a body.
pub(super) fn action(body: &str) -> String {
    format!("<action id=\"a\">{body}</action>")
}

/// The objects that `inspect reply` prints.
pub(super) fn is_action(line: &Value) -> bool {
    line["event"] == json!("closed") && line["name"] == json!("action")
}
