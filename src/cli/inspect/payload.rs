//! `inspect payload`: checks whether files hold payloads of the organism, with one line of output
//! for each file.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::{digest, unreadable};
use crate::cli::base::organism;
use crate::cli::base::screen::{Ending, Failure, Screen};
use crate::engine::Builder;
use crate::limits::Limits;
use crate::listener::{Capabilities, Described};
use crate::name::Name;
use crate::schema;
use crate::wire::missing_namespace::{adopt, meant, place_in};
use crate::wire::{Code, Envelope, Fault};
use crate::xml::{self, Element, Profile, Writer};

/// Checks payloads, bare or in their envelopes, against the organism's schemas, and prints one JSON
/// object a line for each file. The object of an accepted file names the payload and the listeners
/// that would take it. The object of a rejected file says what is wrong, where, and what would be
/// right.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  pumphouse inspect payload message.xml
  pumphouse describe calculate --example > a.xml && pumphouse inspect payload a.xml
  find . -name '*.xml' | pumphouse inspect payload - | jq -r '.error.advice // empty'

A file is read as strictly as a message at a door, and within a door's limits.
A file that can't be read is rejected with the code \"unreadable\" and without a place.
Exits with 0 once each file has its verdict, whichever it is.")]
pub(crate) struct Payload {
    /// The files to read; - stands for a list of files on the standard input, one a line.
    #[arg(value_name = "FILE", required = true)]
    files: Vec<String>,
}

impl Payload {
    pub(crate) fn run(self, builder: Builder, to: &mut Screen<'_>) -> Result<Ending, Failure> {
        let plan =
            organism::served(builder)?.build().map_err(|it| Failure::Untried(it.to_string()))?;
        let (all, limits) = (plan.capabilities(), plan.limits());
        super::each(&self.files, to, |file| verdict(file, all, limits))
    }
}

fn verdict(file: &str, all: &Capabilities, limits: &Limits) -> Value {
    match inspect(Path::new(file), all, limits) {
        Err(error) => json!({
            "file": file,
            "verdict": "reject",
            "error": error,
            "payload": null,
            "taken_by": [],
            "canonical_blake3": null,
        }),
        Ok(payload) => {
            let name = Name::new(payload.namespace(), payload.local());
            let takers: Vec<&Described> = all.takers(&name).collect();
            json!({
                "file": file,
                "verdict": "accept",
                "error": null,
                "payload": name.to_string(),
                "taken_by": takers.iter().map(|it| &it.name).collect::<Vec<_>>(),
                "canonical_blake3": digest(payload.view()),
            })
        }
    }
}

/// Reads a payload from a file, adds a missing namespace, and checks the payload. An error is the
/// verdict's `error`.
fn inspect(path: &Path, all: &Capabilities, limits: &Limits) -> Result<Element, Value> {
    let bytes = fs::read(path).map_err(|error| unreadable(&error))?;
    let document = xml::read(&bytes, Profile::Wire, &limits.door);
    let document = document.map_err(|error| refused(&Fault::from(error)))?;
    let envelope = Envelope::open(&document, limits).map_err(|it| refused(&it))?;
    let sent = envelope.payload;
    let payload = named(&sent, all, limits)?;
    let name = Name::new(payload.namespace(), payload.local());
    let schema = all.schema(&name).ok_or_else(|| unknown(&payload, all))?;
    match schema.check(payload.view()) {
        Ok(()) => Ok(payload),
        Err(mut error) => {
            error.place = place_in(&sent, &payload, error.place.line, error.place.column);
            Err(wrong(error))
        }
    }
}

/// Adds the missing namespace to a payload, as a door does. The namespace is the one in which
/// listeners take a payload of this local name.
fn named(payload: &Element, all: &Capabilities, limits: &Limits) -> Result<Element, Value> {
    if !payload.namespace().is_empty() {
        return Ok(payload.clone());
    }
    let is_taken = |it: &&Name| all.takers(it).next().is_some();
    let names: Vec<&Name> = all.named(payload.local()).iter().filter(is_taken).collect();
    let namespace = meant(payload, &names).map_err(|_| unknown(payload, all))?;
    let name = Name::new(namespace.clone(), payload.local().to_owned());
    let adopted = adopt(payload, &namespace, all.schema(&name), Writer::new(limits.door));
    adopted.map_err(|it| refused(&it))
}

fn wrong(error: schema::Error) -> Value {
    let advice = error.advice();
    let schema::Error { place, path, message, expected, nearest, example, .. } = error;
    json!({
        "code": Code::Invalid.to_string(),
        "line": place.line,
        "column": place.column,
        "message": message,
        "path": path,
        "expected": expected,
        "nearest": nearest,
        "example": example,
        "advice": advice,
    })
}

/// Makes the error that the organism knows no such payload. Unlike a door's error, this error names
/// similar payloads, because the user of this program may see all payloads of the organism.
fn unknown(payload: &Element, all: &Capabilities) -> Value {
    let name = Name::new(payload.namespace(), payload.local());
    let choices = match all.find(&name.to_string()) {
        Ok(schema) => vec![schema.name.to_string()],
        Err(it) => it.choices.into_iter().chain(it.nearest).collect(),
    };
    let expected = match &choices[..] {
        [] => "a payload of the organism".to_owned(),
        [one] => one.clone(),
        several => format!("one of {}", several.join(", ")),
    };
    let nearest = choices.first().and_then(|it| all.find(it).ok());
    let example = nearest.map(|it| {
        let name = &it.name;
        format!("<{} xmlns=\"{}\">", name.local(), name.namespace())
    });
    let listing = || "Choose one that `pumphouse describe` lists.".to_owned();
    let advice = example.as_ref().map_or_else(listing, |it| format!("Begin with {it}."));
    json!({
        "code": Code::Undeliverable.to_string(),
        "line": payload.place().line,
        "column": payload.place().column,
        "message": format!("the organism has no payload {name}"),
        "path": payload.path(),
        "expected": expected,
        "nearest": nearest.map(|it| it.name.to_string()),
        "example": example,
        "advice": advice,
    })
}

fn refused(fault: &Fault) -> Value {
    json!({
        "code": fault.code.to_string(),
        "line": fault.line,
        "column": fault.column,
        "message": fault.message,
        "path": fault.path,
        "expected": null,
        "nearest": null,
        "example": null,
        "advice": fault.advice.as_deref().unwrap_or(fault.code.advice()),
    })
}
