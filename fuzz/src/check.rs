//! Payloads: whether an element is what a schema says, the check and the type agree; what a type
//! reads it writes, and reads again.

use pumphouse::limits::XmlLimits;
use pumphouse::prelude::*;
use pumphouse::xml::{self, Profile};

/// One of every scalar.
#[derive(Debug, Payload)]
#[payload(ns = "urn:f")]
pub(crate) struct Scalars {
    #[payload(attribute)]
    id: u8,
    #[payload(attribute)]
    word: Option<Word>,
    text: String,
    flag: bool,
    small: i8,
    large: i128,
    whole: u64,
    half: f32,
    real: f64,
    letter: Option<char>,
    words: Vec<Word>,
}

/// One of a few words.
#[derive(Clone, Copy, Debug, Payload)]
pub(crate) enum Word {
    One,
    TwoWords,
}

/// Parts in parts, and things to choose from.
#[derive(Debug, Payload)]
#[payload(ns = "urn:f")]
pub(crate) struct Tree {
    #[payload(attribute)]
    name: Option<String>,
    point: Vec<Point>,
    choice: Choice,
    below: Vec<Branch>,
    any: Option<Element>,
}

/// A text with attributes.
#[derive(Debug, Payload)]
pub(crate) struct Point {
    #[payload(attribute)]
    x: i32,
    #[payload(text)]
    text: String,
}

/// A part that holds itself.
#[derive(Debug, Payload)]
pub(crate) struct Branch {
    below: Vec<Branch>,
    n: Option<u16>,
}

/// Exactly one of these.
#[derive(Debug, Payload)]
pub(crate) enum Choice {
    Nothing,
    Number(u32),
    Pair { a: String, b: bool },
    Spot(Point),
}

/// A choice at the root.
#[derive(Debug, Payload)]
#[payload(ns = "urn:f")]
pub(crate) enum Root {
    Stop,
    Go(Point),
}

/// An element, held against every schema there is here.
pub fn check(data: &[u8]) {
    let Ok(element) = xml::read(data, Profile::Wire, &XmlLimits::DOOR) else { return };
    same::<Scalars>(&element);
    same::<Tree>(&element);
    same::<Root>(&element);
}

fn same<P: Payload>(element: &Element) {
    let checked = P::schema().check(element.view());
    let read = match (checked, P::read(element.view())) {
        (Ok(()), Ok(read)) => read,
        (Err(a), Err(b)) => return assert_eq!(a.to_string(), b.to_string()),
        (checked, read) => panic!("check: {checked:?}, read: {:?}", read.err()),
    };
    let written = read.encode().unwrap_or_else(|fault| panic!("what was read: {fault}"));
    let checked = P::schema().check(written.view());
    checked.unwrap_or_else(|error| panic!("what was written: {error}\n{written:?}"));
    let again = P::decode(&written).unwrap_or_else(|fault| panic!("{fault}\n{written:?}"));
    let again = again.encode().unwrap_or_else(|fault| panic!("again: {fault}"));
    assert_eq!(again.canonical(), written.canonical());
}
