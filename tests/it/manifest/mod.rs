//! Manifests: what they declare, mistakes in them, and texts that must not harm their reader.

mod agents;
mod calls;
mod feeds;
mod hostile;
mod mistakes;
mod models;
mod program;
mod right;
mod schemas;
mod together;

use std::path::Path;

use pumphouse::Builder;
use pumphouse::manifest::{Manifest, Mistakes};
use pumphouse::prelude::*;
use serde::Deserialize;

/// Wants to be greeted.
#[derive(Payload)]
#[payload(ns = "https://example.org/ns/greeter/v1")]
struct Greet {
    name: String,
}

/// A greeting.
#[derive(Payload)]
#[payload(ns = "https://example.org/ns/greeter/v1")]
struct Greeting {
    text: String,
}

/// What a greeter wants to know.
#[derive(Clone, Deserialize)]
struct Settings {
    word: String,
    #[serde(default = "one")]
    times: u8,
    #[serde(default)]
    tone: Tone,
    #[serde(default)]
    places: Vec<Spot>,
}

fn one() -> u8 {
    1
}

#[derive(Clone, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Tone {
    #[default]
    Plain,
    Loud,
}

#[derive(Clone, Deserialize)]
struct Spot {
    x: i32,
    y: Option<i32>,
}

async fn greet(State(it): State<Settings>, Greet { name }: Greet) -> Greeting {
    let end = match it.tone {
        Tone::Loud => "!",
        Tone::Plain => "",
    };
    let sum: i32 = it.places.iter().map(|it| it.x + it.y.unwrap_or(0)).sum();
    Greeting { text: format!("{} {name}{end} {sum}", it.word.repeat(it.times.into())) }
}

fn greeter(settings: Settings) -> Result<Listener<Settings>, &'static str> {
    match settings.word.as_str() {
        "Boo" => Err("nobody is greeted with this word"),
        _ => Ok(Listener::with_state("greeter", settings).on(greet)),
    }
}

/// A builder that knows the house staff and a greeter.
fn builder() -> Builder {
    let greeter = Factory::new("greeter", greeter);
    pumphouse::builder().with((pumphouse::listeners::factories, greeter))
}

/// The variables of the tests.
fn environment(name: &str) -> Option<String> {
    match name {
        "HOST" => Some("127.0.0.1".to_owned()),
        "MANY" => Some("40".to_owned()),
        "WORD" => Some("Hello: [world] # again".to_owned()),
        "SECRET" => Some("s3cret s3cret".to_owned()),
        "LINES" => Some("feeder:s3cret\nops:t0psecret:operator\n".to_owned()),
        "BAD_LINES" => Some("feeder:s3cret\nfeeder\n".to_owned()),
        _ => None,
    }
}

fn read(text: impl AsRef<[u8]>) -> Result<Manifest, Mistakes> {
    read_in("organism.yaml", text)
}

fn read_in(file: impl AsRef<Path>, text: impl AsRef<[u8]>) -> Result<Manifest, Mistakes> {
    Manifest::read(file.as_ref(), text.as_ref(), &environment, &builder())
}
