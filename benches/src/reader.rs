//! Measures how fast XML is read, compared with one pass of the tokenizer. The texts are an
//! envelope of 250 bytes and documents of a megabyte.

use std::hint::black_box;

use pumphouse::limits::XmlLimits;
use pumphouse::wire::Payload;
use pumphouse::xml::{self, Element, Profile, View};
use pumphouse_bench::{envelope, tokens};

use crate::floors::PASS;
use crate::measure::{number, quickest_us};
use crate::output::Failure;
use crate::pump::Sink;
use crate::row::{Figure, Row};
use crate::sitting::Sitting;

const PARSE: &str = "envelope of 250 bytes: parse";
const DIGEST: &str = "envelope of 250 bytes: parse, check, digest";
const RECORDS: [&str; 2] = ["1 MB of records: parse", "1 MB of records: parse, check"];
const PROSE: [&str; 2] = ["1 MB of prose: parse", "1 MB of prose: parse, check"];

const MEGABYTE: usize = 1_000_000;
/// The least rate that parsing should have, in megabytes a second.
const PARSE_MIN: f64 = 100.0;
/// The least rate that parsing and checking together should have, in megabytes a second.
const CHECK_MIN: f64 = 60.0;

/// Many records.
#[derive(Debug, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/bench/v1")]
struct Records {
    record: Vec<Record>,
}

/// One record.
#[derive(Debug, Payload)]
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
#[derive(Debug, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/bench/v1")]
struct Prose {
    paragraph: Vec<String>,
}

pub(crate) fn rows(sitting: &mut Sitting) -> Result<(), Failure> {
    let (text, times) = (envelope("sess-k3v9x2ma", 12_345), sitting.times(100_000.0));
    if sitting.wants(PARSE, None) {
        let us = quickest_us(times, || parse(black_box(&text)));
        let row = beside_pass(sitting, PARSE, us).0;
        sitting.show(&row)?;
    }
    if sitting.wants(DIGEST, None) {
        let us = quickest_us(times, || digest(black_box(&text)));
        let (row, ratio) = beside_pass(sitting, DIGEST, us);
        sitting.show(&row.goal("≤ 2× a pass", ratio <= 2.0))?;
    }
    document::<Records>(sitting, RECORDS, &records())?;
    document::<Prose>(sitting, PROSE, &prose())
}

fn beside_pass(sitting: &mut Sitting, what: &'static str, us: f64) -> (Row, f64) {
    let pass_us = sitting.pass_us();
    let ratio = us / pass_us;
    let row = Row::new(what, None).figure(Figure::PerSecond(1e6 / us));
    (row.beside(PASS, Figure::PerSecond(1e6 / pass_us), ratio), ratio)
}

/// Measures a document in two rows: parsed alone, and parsed and checked.
fn document<P: Payload>(
    sitting: &mut Sitting,
    [parsed, checked]: [&'static str; 2],
    text: &str,
) -> Result<(), Failure> {
    let wanted = [parsed, checked].map(|it| sitting.wants(it, None));
    if wanted == [false, false] {
        return Ok(());
    }
    let times = sitting.times(10.0);
    let rate = |us: f64| number(text.len() as u64) / us;
    let pass = rate(quickest_us(times, || tokens(black_box(text))));
    let row = |what, rate: f64| {
        let row = Row::new(what, None).figure(Figure::Megabytes(rate));
        row.beside(PASS, Figure::Megabytes(pass), pass / rate)
    };
    if wanted[0] {
        let rate = rate(quickest_us(times, || parse(black_box(text))));
        sitting.show(&row(parsed, rate).goal("≥ 100 MB/s", rate >= PARSE_MIN))?;
    }
    if wanted[1] {
        let check = || parse(black_box(text)).is_some_and(|it| is_right::<P>(it.view()));
        let rate = rate(quickest_us(times, check));
        sitting.show(&row(checked, rate).goal("≥ 60 MB/s", rate >= CHECK_MIN))?;
    }
    Ok(())
}

fn parse(text: &str) -> Option<Element> {
    xml::read(text, Profile::Wire, &XmlLimits::INSIDE).ok()
}

fn is_right<P: Payload>(payload: View<'_>) -> bool {
    P::schema().check(payload).is_ok()
}

/// Reads an envelope, checks its payload, and computes the digest of the payload's canonical bytes.
fn digest(text: &str) -> Option<blake3::Hash> {
    let message = parse(text)?;
    let payload = message.elements().nth(1)?;
    is_right::<Sink>(payload).then(|| blake3::hash(&payload.canonical()))
}

fn records() -> String {
    repeated("records", |number| {
        let note = if number % 3 == 0 { "<note>a &amp; b</note>" } else { "" };
        format!(
            "<record id=\"{number}\" unit=\"kg\"><name>part number {number}</name>\
             <value>{number}.25</value>{note}</record>"
        )
    })
}

fn prose() -> String {
    let sentence = "It was a bright cold day in April, and the clocks were striking. ";
    let paragraph = format!("<paragraph>{}</paragraph>\n", sentence.repeat(8));
    repeated("prose", |_| paragraph.clone())
}

/// Makes a document of at least a megabyte from repeated pieces.
fn repeated(root: &str, piece: impl Fn(usize) -> String) -> String {
    let mut text = format!("<{root} xmlns=\"https://xml-pipeline.org/ns/bench/v1\">");
    for number in 0.. {
        if text.len() >= MEGABYTE {
            break;
        }
        text.push_str(&piece(number));
    }
    text + &format!("</{root}>")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_is_read_whole() {
        assert_eq!(envelope("sess-k3v9x2ma", 12_345).len(), 250);
        assert!(digest(&envelope("sess-k3v9x2ma", 12_345)).is_some());
        let (records, prose) = (parse(&records()).unwrap(), parse(&prose()).unwrap());
        assert!(is_right::<Records>(records.view()) && is_right::<Prose>(prose.view()));
    }
}
