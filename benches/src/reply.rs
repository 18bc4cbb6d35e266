//! Measures how fast a model's reply is parsed. The replies are plain text, a thought, and the
//! protocol's own example. They come whole, in large chunks, or in chunks of a token's size.

use std::hint::black_box;

use pumphouse::reply::{Config, Dialect, Event, Parser};

use crate::measure::{number, quickest_us};
use crate::output::Failure;
use crate::row::{Figure, Row};
use crate::sitting::Sitting;

/// The protocol's example: five actions, a thought and a response.
const EXAMPLE: &str = include_str!("../../tests/it/reply/protocol/execution-21.txt");
/// A line of 76 characters.
const LINE: &str = "The quick brown fox jumps over the lazy dog, and then it rests for a while.\n";

const BYTES: f64 = 16e6;
/// The size of large chunks, in bytes.
const MUCH: usize = 64 << 10;
/// The size of chunks of a token, in bytes.
const TOKEN: usize = 4;

/// The goal for plain text in large chunks, in megabytes a second.
const TEXT_MIN: f64 = 1_000.0;
/// The goal for the example in chunks of a token, in megabytes a second.
const EXAMPLE_MIN: f64 = 100.0;

pub(crate) fn rows(sitting: &mut Sitting) -> Result<(), Failure> {
    let (tags, mut json) = (Config::default(), Config::default());
    json.dialect = Dialect::ToolUse;
    let lines = repeated(sitting, LINE);
    let (spaced, thought) = (lines.replace('\n', " "), format!("<thought>{lines}"));
    let example = repeated(sitting, EXAMPLE);
    let whole = example.len();
    let rows = [
        ("reply: text in lines, 64 KiB at a time", &tags, &lines, MUCH, Some(TEXT_MIN)),
        ("reply: text in one line, 64 KiB at a time", &tags, &spaced, MUCH, Some(TEXT_MIN)),
        ("reply: a thought, 64 KiB at a time", &tags, &thought, MUCH, None),
        ("reply: text, calls in JSON looked for", &json, &lines, MUCH, None),
        ("reply: text, 4 characters at a time", &tags, &lines, TOKEN, None),
        ("reply: the example, whole", &tags, &example, whole, None),
        ("reply: the example, 4 characters at a time", &tags, &example, TOKEN, Some(EXAMPLE_MIN)),
    ];
    for (what, config, text, at_once, goal) in rows {
        if !sitting.wants(what, None) {
            continue;
        }
        let chunks = chunks(text, at_once);
        let rate = number(text.len() as u64) / quickest_us(1, || understand(config, &chunks));
        let row = Row::new(what, None).figure(Figure::Megabytes(rate));
        sitting.show(&match goal {
            Some(TEXT_MIN) => row.goal("≥ 1,000 MB/s", rate >= TEXT_MIN),
            Some(_) => row.goal("≥ 100 MB/s", rate >= EXAMPLE_MIN),
            None => row,
        })?;
    }
    Ok(())
}

/// Parses the chunks, and returns the number of events.
fn understand(config: &Config, chunks: &[&str]) -> usize {
    let (mut parser, mut events) = (Parser::new(config.clone()), 0);
    let mut take = |event: Event<'_>| {
        black_box(event.source.len());
        events += 1;
    };
    for chunk in chunks {
        parser.feed(black_box(chunk), &mut take);
    }
    parser.finish(&mut take);
    events
}

fn repeated(sitting: &Sitting, text: &str) -> String {
    let times = sitting.times(BYTES) / text.len() as u64;
    text.repeat(usize::try_from(times).unwrap_or(1).max(1))
}

fn chunks(text: &str, bytes: usize) -> Vec<&str> {
    let (mut chunks, mut rest) = (Vec::new(), text);
    while !rest.is_empty() {
        let (chunk, later) = rest.split_at(rest.ceil_char_boundary(bytes.min(rest.len())));
        chunks.push(chunk);
        rest = later;
    }
    chunks
}
