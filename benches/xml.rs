//! How fast XML is read: the envelope beside one pass of the tokenizer, documents of a megabyte,
//! and what twice the size costs of every shape that hurts parsers. `just xml`.
#![expect(clippy::expect_used, reason = "a benchmark may fail where it stands")]
#![expect(clippy::unwrap_used, reason = "a benchmark may fail where it stands")]
#![expect(clippy::print_stdout, reason = "that is what it is for")]
#![expect(clippy::disallowed_methods, reason = "it measures time")]

#[expect(dead_code, reason = "verdicts are for tests")]
#[path = "../tests/it/suites/shapes/make.rs"]
mod make;

use std::hint::black_box;
use std::time::{Duration, Instant};

use pumphouse::limits::XmlLimits;
use pumphouse::prelude::*;
use pumphouse::xml::{Profile, Splitter, read, tokens};

/// The server's own.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Adds two integers.
#[derive(Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/calculator/v1")]
struct Add {
    a: i64,
    b: i64,
}

/// What an envelope is.
const ENVELOPE: &str = concat!(
    "<message xmlns=\"https://xml-pipeline.org/ns/envelope/v1\"><meta><from>console</from>",
    "<to>calculator.add</to><thread>sess-k3v9x2ma</thread></meta>",
    "<add xmlns=\"https://xml-pipeline.org/ns/calculator/v1\"><a>12345</a><b>2</b></add></message>",
    "\n"
);

/// Many records.
#[derive(Payload)]
#[payload(ns = "urn:bench")]
struct Records {
    record: Vec<Record>,
}

/// One record.
#[derive(Payload)]
struct Record {
    #[payload(attribute)]
    id: u64,
    #[payload(attribute)]
    unit: Option<String>,
    name: String,
    value: f64,
    note: Option<String>,
}

/// A long text.
#[derive(Payload)]
#[payload(ns = "urn:bench")]
struct Prose {
    paragraph: Vec<String>,
}

const MEGABYTE: usize = 1_000_000;

fn main() {
    let only = std::env::args().nth(1).filter(|it| !it.starts_with('-'));
    let wanted = |name: &str| only.as_deref().is_none_or(|it| name.contains(it));
    if wanted("envelope") {
        envelope();
    }
    if wanted("megabyte") {
        megabyte();
    }
    if wanted("shapes") {
        shapes();
    }
}

fn envelope() {
    let floor = nanoseconds(200_000, || tokens(black_box(ENVELOPE)));
    println!("envelope of {} bytes: one NsReader pass {floor:.0} ns", ENVELOPE.len());
    let row = |what: &str, time: f64| {
        println!("  {what:34} {time:6.0} ns   x{:.2}", time / floor);
    };
    row("split", nanoseconds(200_000, split));
    row("parse", nanoseconds(200_000, parse));
    row("parse, check", nanoseconds(200_000, || Add::schema().check(payload(&parse())).is_ok()));
    row("parse, check, canonical digest", nanoseconds(200_000, digest));
}

fn split() -> usize {
    let mut splitter = Splitter::new(XmlLimits::DOOR);
    splitter.feed(black_box(ENVELOPE.as_bytes()));
    splitter.next().expect("it is whole").map_or(0, |it| it.bytes.len())
}

fn parse() -> Element {
    read(black_box(ENVELOPE), Profile::Wire, &XmlLimits::DOOR).expect("it is well-formed")
}

fn payload(message: &Element) -> pumphouse::xml::View<'_> {
    message.elements().nth(1).expect("it has a payload")
}

fn digest() -> blake3::Hash {
    let message = parse();
    let payload = payload(&message);
    Add::schema().check(payload).expect("it is valid");
    blake3::hash(&payload.canonical())
}

fn megabyte() {
    let records = repeated("<records xmlns=\"urn:bench\">", "</records>", |i| {
        let note = if i % 3 == 0 { "<note>a &amp; b</note>" } else { "" };
        format!(
            "<record id=\"{i}\" unit=\"kg\"><name>part number {i}</name>\
             <value>{i}.25</value>{note}</record>"
        )
    });
    let prose = repeated("<prose xmlns=\"urn:bench\">", "</prose>", |_| {
        let text = "It was a bright cold day in April, and the clocks were striking. ".repeat(8);
        format!("<paragraph>{text}</paragraph>\n")
    });
    let pretty = records.replace('<', "\n  <").replace("\n  </", "</");
    row::<Records>("records", &records);
    row::<Records>("records, one tag a line", pretty.trim_start());
    row::<Prose>("prose", &prose);
}

fn repeated(open: &str, close: &str, piece: impl Fn(usize) -> String) -> String {
    let mut text = open.to_owned();
    for number in 0.. {
        if text.len() >= MEGABYTE {
            break;
        }
        text.push_str(&piece(number));
    }
    text + close
}

fn row<P: Payload>(name: &str, text: &str) {
    let read = || read(black_box(text), Profile::Wire, &XmlLimits::INSIDE).expect("right");
    let rate = |time: f64| text.len() as f64 * 1e3 / time;
    let floor = rate(nanoseconds(20, || tokens(black_box(text))));
    let parse = rate(nanoseconds(20, read));
    let check = rate(nanoseconds(20, || P::schema().check(read().view()).expect("valid")));
    println!(
        "{name:26} {:9} bytes: NsReader {floor:4.0} MB/s, parse {parse:4.0} MB/s, \
         parse and check {check:4.0} MB/s",
        text.len()
    );
}

fn shapes() {
    println!("{:42} {:>9} {:>10} {:>6}", "shape", "bytes", "time", "x2");
    for shape in make::SHAPES {
        let time = |bytes: usize| {
            let text = (shape.make)(bytes);
            let mut limits = XmlLimits::FILE;
            limits.message_bytes_max = 8 * text.len();
            limits.depth_max = usize::MAX;
            limits.attributes_max = usize::MAX;
            limits.name_bytes_max = usize::MAX;
            limits.declarations_max = usize::MAX;
            limits.bindings_max = usize::MAX;
            let all = || {
                let read = read(black_box(&text), Profile::Document, &limits);
                read.map_or(0, |it| {
                    let mut length = 0;
                    it.view().canonical_pieces(|piece| length += piece.len());
                    length
                })
            };
            let whole = nanoseconds(5, all);
            let split = nanoseconds(2, || {
                let mut splitter = Splitter::new(limits);
                for byte in text.chunks(1) {
                    splitter.feed(byte);
                    if !matches!(splitter.next(), Ok(None)) {
                        break;
                    }
                }
            });
            (whole, split)
        };
        let (once, twice) = (time(MEGABYTE), time(2 * MEGABYTE));
        println!(
            "{:42} {:9} {:7.2} ms x{:4.2}   byte by byte {:7.2} ms x{:4.2}",
            shape.name,
            2 * MEGABYTE,
            twice.0 / 1e6,
            twice.0 / once.0,
            twice.1 / 1e6,
            twice.1 / once.1
        );
    }
}

/// The quickest of several rounds, per call.
fn nanoseconds<T>(times: u32, mut call: impl FnMut() -> T) -> f64 {
    let mut best = Duration::MAX;
    for _ in 0..7 {
        let since = Instant::now();
        for _ in 0..times {
            black_box(call());
        }
        best = best.min(since.elapsed());
    }
    best.as_nanos() as f64 / f64::from(times)
}
