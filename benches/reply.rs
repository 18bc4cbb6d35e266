//! How fast a model's reply is understood: plain text in large chunks, the protocol's own example
//! in chunks of a token's size. `just reply`.
#![expect(clippy::print_stdout, reason = "that is what it is for")]
#![expect(clippy::disallowed_methods, reason = "it measures time")]

use std::hint::black_box;
use std::time::Instant;

use pumphouse::reply::{Config, Dialect, Parser};

/// The server's own.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Five actions, a thought and a response.
const MIXED: &str = include_str!("../tests/it/reply/protocol/execution-21.txt");

const MEGABYTE: usize = 1_000_000;

fn main() {
    let prose = "The quick brown fox jumps over the lazy dog, and then it rests for a while.\n";
    let prose = prose.repeat(64 * MEGABYTE / prose.len());
    let spaced = prose.replace('\n', " ");
    let mixed = MIXED.repeat(16 * MEGABYTE / MIXED.len());
    let calls = Config::default();
    let mut json = Config::default();
    json.dialect = Dialect::ToolUse;
    measure("plain text, one line, 64 KiB at a time", &calls, &spaced, 64 << 10);
    measure("plain text, lines of 76, 64 KiB at a time", &calls, &prose, 64 << 10);
    measure("plain text, calls in JSON looked for, 64 KiB", &json, &prose, 64 << 10);
    measure("plain text, 4 characters at a time", &calls, &prose, 4);
    measure("a thought, 64 KiB at a time", &calls, &format!("<thought>{prose}"), 64 << 10);
    measure("the protocol's example, whole", &calls, &mixed, usize::MAX);
    measure("the protocol's example, 4 characters at a time", &calls, &mixed, 4);
}

/// The best of five: what the machine can do when nobody disturbs it.
fn measure(what: &str, config: &Config, text: &str, characters: usize) {
    let chunks = chunks(text, characters);
    let mut best = f64::MAX;
    let mut events = 0;
    for _ in 0..5 {
        let mut parser = Parser::new(config.clone());
        events = 0;
        let begun = Instant::now();
        let mut take = |event: pumphouse::reply::Event<'_>| {
            events += 1;
            black_box(event.source.len());
        };
        for chunk in &chunks {
            parser.feed(black_box(chunk), &mut take);
        }
        parser.finish(&mut take);
        best = best.min(begun.elapsed().as_secs_f64());
    }
    let rate = text.len() as f64 / best / 1e6;
    println!("{what:48} {rate:9.0} MB/s  {events:9} events");
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
