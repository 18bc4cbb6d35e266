//! Counts the instructions of parse, check, encode, append and hop under valgrind. So the figures
//! don't depend on how busy the machine is. `just counts` installs the runner and runs it.
#![allow(clippy::expect_used, reason = "a benchmark may fail where it stands")]
#![allow(clippy::disallowed_methods, reason = "the macro at the end writes its own main")]
#![allow(unused_qualifications, reason = "the macros below write them")]
#![allow(missing_docs, reason = "the macros below write functions without docs")]

use std::hint::black_box;

use gungraun::{library_benchmark, library_benchmark_group, main};
use pumphouse::limits::XmlLimits;
use pumphouse::log::{Batch, Draft, Log, MemoryLog, NewThread};
use pumphouse::prelude::*;
use pumphouse::xml::{Profile, Splitter, read};

/// Adds two integers.
#[derive(Clone, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/calculator/v1")]
struct Add {
    a: i64,
    b: i64,
}

/// The 250-byte envelope that all rows of `docs/speed.md` measure.
const ENVELOPE: &str = concat!(
    "<message xmlns=\"https://xml-pipeline.org/ns/envelope/v1\"><meta><from>console</from>",
    "<to>calculator.add</to><thread>sess-k3v9x2ma</thread></meta>",
    "<add xmlns=\"https://xml-pipeline.org/ns/calculator/v1\"><a>12345</a><b>2</b></add>",
    "</message>\n"
);

fn payload() -> Element {
    Add { a: 12345, b: 2 }.encode().expect("two numbers can be written")
}

#[library_benchmark]
fn split() -> usize {
    let mut splitter = Splitter::new(XmlLimits::DOOR);
    splitter.feed(black_box(ENVELOPE.as_bytes()));
    splitter.next().expect("it is whole").map_or(0, |it| it.bytes.len())
}

#[library_benchmark]
fn parse() -> Element {
    read(black_box(ENVELOPE), Profile::Wire, &XmlLimits::DOOR).expect("it is well-formed")
}

#[library_benchmark]
#[bench::add(payload())]
fn check(element: Element) -> bool {
    Add::schema().check(black_box(&element).view()).is_ok()
}

#[library_benchmark]
#[bench::add(payload())]
fn decode(element: Element) -> i64 {
    Add::decode(black_box(&element)).map_or(0, |it| it.a)
}

#[library_benchmark]
#[bench::add(Add { a: 12345, b: 2 })]
fn encode(add: Add) -> Element {
    black_box(add).encode().expect("two numbers can be written")
}

fn batch() -> (MemoryLog, Batch) {
    let log = MemoryLog::new();
    let id = ThreadId::session(1);
    let thread = NewThread { id: id.clone(), parent: None, fork: None };
    let body = payload().canonical();
    let draft = |seq| {
        let id = EntryId::new(&id, seq);
        Draft::new(id, 1, "console".into(), Add::NAME, body.clone())
    };
    let entries = (1..=100).map(draft).collect();
    (log, Batch { threads: vec![thread], entries, marks: Vec::new() })
}

// Appends a hundred entries in one batch.
#[library_benchmark]
#[bench::hundred(batch())]
fn append((log, batch): (MemoryLog, Batch)) -> bool {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(log.append(batch)).is_ok()
}

/// Counts down.
#[derive(Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/bench/v1")]
struct Down {
    n: u64,
}

fn pump() -> (tokio::runtime::Runtime, Pump) {
    let down = async |Down { n }: Down| (n > 1).then(|| Again(Down { n: n - 1 }));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    let _inside = runtime.enter();
    let listener = Listener::new("down").on(down).inline().pure();
    let plan = pumphouse::builder().with(listener).workers(1).build().expect("it is sound");
    let pump = plan.start();
    runtime.block_on(pump.ready()).expect("an empty log can be read");
    drop(_inside);
    (runtime, pump)
}

// Runs a thousand hops: emit, encode, route, append, decode, handle.
#[library_benchmark]
#[bench::thousand(pump())]
fn hop((runtime, pump): (tokio::runtime::Runtime, Pump)) -> bool {
    runtime.block_on(pump.ask::<Done>(Down { n: 1_000 })).is_ok()
}

library_benchmark_group!(name = message, benchmarks = [split, parse, check, decode, encode]);
library_benchmark_group!(name = journey, benchmarks = [append, hop]);
main!(library_benchmark_groups = [message, journey]);
