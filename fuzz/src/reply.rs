//! A model's reply: every chunking is told the same, the sources are the reply, and what runs is
//! what it says it is.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::mem;

use pumphouse::limits::XmlLimits;
use pumphouse::reply::{Body, Config, Dialect, Event, Kind, Markup, Parser, What};
use pumphouse::xml::{self, Profile};

/// The first byte chooses the settings and the chunks, the rest is the reply.
pub fn reply(data: &[u8]) {
    let Some((&seed, reply)) = data.split_first() else { return };
    let text = String::from_utf8_lossy(reply);
    let config = config(seed);
    let whole = sum(&config, [&*text], &text, true);
    if sum(&config, characters(&text), &text, false) != whole {
        assert_eq!(tell(&config, characters(&text)), tell(&config, [&*text]), "by characters");
    }
    if sum(&config, cuts(&text, seed), &text, false) != whole {
        assert_eq!(tell(&config, cuts(&text, seed)), tell(&config, [&*text]), "cut by {seed}");
    }
    // Code, comments and sections keep what is in them, unless it ends them.
    if seed & 8 == 8 && !text.contains("~~~~~") {
        let quoted = format!("~~~~~\n{text}\n~~~~~\n");
        let mut parser = Parser::new(config);
        let mut take = |event: Event<'_>| {
            let runs = matches!(event.what, What::Closed(_) | What::Opened(_));
            assert!(!runs, "in a fence: {event:?}");
        };
        parser.feed(&quoted, &mut take);
        parser.finish(&mut take);
    }
}

fn characters(text: &str) -> impl Iterator<Item = &str> {
    text.char_indices().map(|(at, it)| &text[at..at + it.len_utf8()])
}

/// What a parser says, in one number that is the same for every chunking; and the sources are
/// the reply.
fn sum<'a>(
    config: &Config,
    chunks: impl IntoIterator<Item = &'a str>,
    text: &str,
    check: bool,
) -> u64 {
    let (mut said, mut at, mut piece) = (DefaultHasher::new(), 0, None);
    let mut take = |event: Event<'_>| {
        let end = at + event.source.len();
        assert_eq!(text.get(at..end), Some(event.source), "the sources are the reply");
        let this = match event.what {
            What::Text { within } => Some((within, None)),
            What::Discarded { name } => Some((None, Some(name.to_owned()))),
            _ => None,
        };
        if this.is_none() || this != piece {
            at.hash(&mut said);
            hash(&event, &mut said);
        }
        if let (What::Closed(element), true) = (event.what, check) {
            is_sound(element.kind, element.body, event.source);
        }
        (at, piece) = (end, this);
    };
    let mut parser = Parser::new(config.clone());
    for chunk in chunks {
        parser.feed(chunk, &mut take);
    }
    parser.finish(&mut take);
    assert_eq!(at, text.len(), "the sources are the whole reply");
    said.finish()
}

fn hash(event: &Event<'_>, into: &mut DefaultHasher) {
    mem::discriminant(&event.what).hash(into);
    let is_piece = matches!(event.what, What::Text { .. } | What::Discarded { .. });
    if !is_piece {
        (event.place.line, event.place.column).hash(into);
    }
    match event.what {
        What::Text { within } => within.hash(into),
        What::Opened(it) | What::Closed(it) => {
            (it.name, it.kind, it.body.as_str(), mem::discriminant(&it.body)).hash(into);
            for it in it.attributes {
                (&it.name, &it.value).hash(into);
            }
        }
        What::Broken(it) => (it.name, it.fault, it.reason, it.snippet).hash(into),
        What::Repaired(it) => it.hash(into),
        What::Discarded { name } => name.hash(into),
        What::Finished { cut } => {
            cut.map(|it| (it.name, it.place.line, it.place.column)).hash(into);
        }
        _ => {}
    }
}

fn config(seed: u8) -> Config {
    let mut config = Config::default();
    config.markup = Markup::default().root("r").peer("p").tool_use("t").output("o");
    if seed & 1 == 1 {
        config.dialect = Dialect::ToolUse;
    }
    if seed & 2 == 2 {
        config.limits.action_bytes_max = 40;
        config.limits.text_bytes_max = 20;
        config.limits.tag_bytes_max = 24;
        config.limits.depth_max = 2;
    }
    config.actions_in_response = seed & 4 == 4;
    config
}

/// An event in words, and its source.
#[derive(Debug, PartialEq)]
struct Told {
    what: String,
    source: String,
}

fn tell<'a>(config: &Config, chunks: impl IntoIterator<Item = &'a str>) -> Vec<Told> {
    let mut told: Vec<Told> = Vec::new();
    let mut take = |event: Event<'_>| {
        let is_piece = matches!(event.what, What::Text { .. } | What::Discarded { .. });
        let mut what = format!("{:?}", event.what);
        if !is_piece {
            what = format!("{what} {:?}", event.place);
        }
        match told.last_mut() {
            Some(last) if is_piece && last.what == what => last.source.push_str(event.source),
            _ => told.push(Told { what, source: event.source.to_owned() }),
        }
    };
    let mut parser = Parser::new(config.clone());
    for chunk in chunks {
        parser.feed(chunk, &mut take);
    }
    parser.finish(&mut take);
    told
}

fn is_sound(kind: Kind, body: Body<'_>, source: &str) {
    match body {
        Body::Json(json) => {
            serde_json::from_str::<serde_json::Value>(json).expect("JSON is JSON");
        }
        Body::Elements(element) => {
            xml::read(element, Profile::Wire, &XmlLimits::INSIDE).expect("elements are well-formed");
        }
        _ => {}
    }
    if kind == Kind::Action {
        assert!(source.starts_with("<action"), "{source}");
        assert!(source.ends_with("/>") || close_tag(source), "{source}");
    }
}

fn close_tag(source: &str) -> bool {
    let head = source.strip_suffix('>').map(str::trim_ascii_end);
    head.is_some_and(|it| it.ends_with("</action"))
}

fn cuts(text: &str, seed: u8) -> Vec<&str> {
    let (mut chunks, mut rest, mut state) = (Vec::new(), text, u32::from(seed) + 1);
    while !rest.is_empty() {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let count = (state >> 24) as usize % 9 + 1;
        let end = rest.char_indices().nth(count).map_or(rest.len(), |(end, _)| end);
        let (chunk, later) = rest.split_at(end);
        chunks.push(chunk);
        rest = later;
    }
    chunks
}
