//! Tests of `#[derive(Payload)]`: values of every shape are written, read back, checked and
//! refused.

use std::fmt::Debug;

use crate::name::Name;
use crate::schema::{Error, Rule};
use crate::wire::{Live, Payload};
use crate::xml::{self, Element, Profile};

mod agree;
mod errors;
mod narrow;
mod scalars;
mod shapes;

const NS: &str = "urn:test";

/// Adds two integers.
#[derive(Payload, Debug, PartialEq, Clone)]
#[payload(ns = "urn:test")]
struct Add {
    /// The first.
    a: i64,
    /** The second. */
    b: i64,
}

/// What a fold is for.
#[derive(Payload, Debug, PartialEq, Clone)]
#[payload(ns = "urn:test", rename = "everything")]
struct All {
    #[payload(attribute)]
    id: String,
    #[payload(attribute)]
    level: Option<u8>,
    #[payload(attribute, rename = "tint")]
    color: Option<Color>,
    name: String,
    #[payload(rename = "aka")]
    other_names: Vec<String>,
    note: Option<Note>,
    step: Vec<Step>,
    figure: Figure,
    size: Option<Size>,
    r#type: Option<Box<Color>>,
    inside: Vec<Figures>,
    rest: Vec<Element>,
}

/// One of three.
#[derive(Payload, Debug, PartialEq, Clone, Copy)]
enum Color {
    /// Like blood.
    Red,
    DarkGreen,
    #[payload(rename = "BLUE")]
    Blue,
}

/// Said aside.
#[derive(Payload, Debug, PartialEq, Clone)]
struct Note(String);

/// A step, done or not.
#[derive(Payload, Debug, PartialEq, Clone)]
struct Step {
    #[payload(attribute)]
    done: bool,
    /// What is to be done.
    #[payload(text)]
    what: String,
}

/// A figure.
#[derive(Payload, Debug, PartialEq, Clone)]
enum Figure {
    /// No extent.
    Point,
    Circle {
        radius: f64,
    },
    Square(f64),
    Polygon {
        #[payload(attribute)]
        closed: bool,
        /// A corner.
        corner: Vec<Corner>,
    },
    Group(Tree),
    Either(Box<Figure>),
}

/// A choice beside another.
#[derive(Payload, Debug, PartialEq, Clone)]
enum Size {
    Small,
    Wide { by: u32 },
}

/// A choice in an element of its own.
#[derive(Payload, Debug, PartialEq, Clone)]
struct Figures {
    figure: Figure,
    more: Vec<Size>,
}

/// A corner of a figure.
#[derive(Payload, Debug, PartialEq, Clone)]
struct Corner {
    #[payload(attribute)]
    x: f32,
    #[payload(attribute)]
    y: f32,
}

/// Trees in a tree.
#[derive(Payload, Debug, PartialEq, Clone)]
#[payload(ns = "urn:test")]
struct Tree {
    children: Vec<Tree>,
}

/// A list that ends.
#[derive(Payload, Debug, PartialEq, Clone)]
#[payload(ns = "urn:test")]
struct Chain {
    next: Option<Box<Chain>>,
}

/// A choice as a root.
#[derive(Payload, Debug, PartialEq, Clone)]
#[payload(ns = "urn:test", live)]
enum Said {
    Nothing,
    Word(String),
    Tint(Color),
    Sum { a: i64, b: i64 },
    Again(Box<Said>),
}

/// A word as a root.
#[derive(Payload, Debug, PartialEq, Clone)]
#[payload(ns = "urn:test")]
enum Mood {
    Good,
    NotSoGood,
}

/// A text as a root.
#[derive(Payload, Debug, PartialEq, Clone)]
#[payload(ns = "urn:test")]
struct Say(String);

/// Nothing at all.
#[derive(Payload, Debug, PartialEq, Clone)]
#[payload(ns = "urn:test", live, reserved, bookkeeping)]
struct Ping;

/// An element of any kind between two texts.
#[derive(Payload, Debug, PartialEq, Clone)]
#[payload(ns = "urn:test")]
struct Carry {
    to: Option<String>,
    what: Element,
    then: Option<String>,
}

fn element(text: &str) -> Element {
    let bytes = text.to_owned().into_bytes();
    xml::read(bytes, Profile::Wire, &crate::limits::XmlLimits::FILE).expect(text)
}

/// Asserts that a value is written as this text, and read back unchanged from tree and bytes.
fn round<P: Payload + PartialEq + Debug>(value: &P, text: &str) {
    let written = value.encode().expect(text);
    assert_eq!(String::from_utf8_lossy(&written.canonical()), text);
    assert_eq!(written.name(), P::NAME);
    same(value, &written);
    same(value, &element(text));
}

fn same<P: Payload + PartialEq + Debug>(value: &P, element: &Element) {
    assert_eq!(&P::read(element.view()).expect("as it was written"), value);
    assert_eq!(P::schema().check(element.view()), Ok(()));
}

/// Returns the error with which decoder and check both refuse the text.
fn refused<P: Payload + Debug>(text: &str) -> Error {
    let element = element(text);
    let error = P::read(element.view()).expect_err(text);
    assert_eq!(P::schema().check(element.view()), Err(error.clone()), "{text}");
    error
}
