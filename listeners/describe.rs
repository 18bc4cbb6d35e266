//! The listener `describe` tells senders what the organism can do: its listeners and their
//! payloads, and for each payload the schema, an example, and the description that a model gets.
//!
//! `<request-example payload="echo"/>` is answered with a `<payload-example>`, which holds
//! `<echo xmlns="https://xml-pipeline.org/ns/echo/v1"><text>Hello</text></echo>`.
//!
//! A listener with peers learns only about these peers, about itself, about the listeners that it
//! relies on, and about the pump's own payloads. If it asks about anything else, `describe` answers
//! as if that didn't exist. [`Allow`] sets which senders may make which requests.
//!
//! `<capabilities>` lists only payloads that the asking sender may send. A reserved payload is
//! listed only for a listener that may emit it, and `raise-budget` only for operators.

use std::fmt;
use std::str::FromStr;

use pumphouse::limits::XmlLimits;
use pumphouse::listener::{Context, Described, FromContext, Unfound};
use pumphouse::prelude::*;
use pumphouse::schema::{self, Schema};
use pumphouse::wire::budget::RaiseBudget;
use pumphouse::xml::{self, Profile};

/// Asks what the organism can do.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/meta/v1")]
pub struct ListCapabilities {
    /// The listener; by default all.
    #[payload(attribute, example = "calculate")]
    pub listener: Option<String>,
}

/// What the organism can do, as far as the sender may know.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/meta/v1", rename = "capabilities")]
pub struct CapabilityList {
    /// A listener.
    pub capability: Vec<Capability>,
}

/// A listener: what it is for, and what it takes.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
pub struct Capability {
    /// Its name, for `<to>`.
    #[payload(attribute, example = "calculate")]
    pub listener: String,
    /// What it is for.
    #[payload(example = "Works out arithmetic, exactly where it can.")]
    pub description: Option<String>,
    /// A payload that it takes.
    pub takes: Vec<Taken>,
}

/// A payload that a listener takes, and the payloads that it may cause.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
pub struct Taken {
    /// Its local name.
    #[payload(attribute, example = "calculate")]
    pub name: String,
    /// Its namespace.
    #[payload(attribute, example = "https://xml-pipeline.org/ns/calculate/v1")]
    pub namespace: String,
    /// What it is for.
    #[payload(example = "Works out an arithmetic expression.")]
    pub description: String,
    /// A payload that may be emitted because of it, by `{namespace}` and local name.
    #[payload(example = "{https://xml-pipeline.org/ns/calculate/v1}calculated")]
    pub causes: Vec<String>,
}

/// Asks for the schema of a payload.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/meta/v1")]
pub struct RequestSchema {
    /// A local name, `listener.payload`, `{namespace}payload`, or a listener with a single payload.
    #[payload(attribute, example = "calculate")]
    pub payload: String,
    /// The schema language; by default XSD.
    #[payload(attribute)]
    pub format: Option<Format>,
}

/// A language that schemas are written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Payload)]
pub enum Format {
    /// XML Schema 1.0, of the payload itself.
    Xsd,
    /// JSON Schema 2020-12, of the payload's JSON form.
    JsonSchema,
}

/// Asks for a filled example of a payload.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/meta/v1")]
pub struct RequestExample {
    /// A local name, `listener.payload`, `{namespace}payload`, or a listener with a single payload.
    #[payload(attribute, example = "calculate")]
    pub payload: String,
}

/// Asks for the description of a payload that models get.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/meta/v1")]
pub struct RequestPrompt {
    /// A local name, `listener.payload`, `{namespace}payload`, or a listener with a single payload.
    #[payload(attribute, example = "calculate")]
    pub payload: String,
}

/// The schema of a payload, as the text of a file.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/meta/v1")]
pub struct PayloadSchema {
    /// The payload's local name.
    #[payload(attribute, example = "calculate")]
    pub name: String,
    /// Its namespace.
    #[payload(attribute, example = "https://xml-pipeline.org/ns/calculate/v1")]
    pub namespace: String,
    /// The schema language.
    #[payload(attribute)]
    pub format: Format,
    /// The schema.
    #[payload(text, example = "<xs:schema xmlns:xs=\"http://www.w3.org/2001/XMLSchema\"/>")]
    pub schema: String,
}

/// A filled example of a payload, ready to be sent.
#[derive(Clone, Debug, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/meta/v1")]
pub struct PayloadExample {
    /// The payload's local name.
    #[payload(attribute, example = "calculate")]
    pub name: String,
    /// Its namespace.
    #[payload(attribute, example = "https://xml-pipeline.org/ns/calculate/v1")]
    pub namespace: String,
    /// The example.
    pub example: Element,
}

/// The description of a payload that models get: its purpose, its fields, an example.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/meta/v1")]
pub struct PayloadPrompt {
    /// The payload's local name.
    #[payload(attribute, example = "calculate")]
    pub name: String,
    /// Its namespace.
    #[payload(attribute, example = "https://xml-pipeline.org/ns/calculate/v1")]
    pub namespace: String,
    /// The text.
    #[payload(text, example = "<calculate>: Works out an arithmetic expression.")]
    pub prompt: String,
}

/// Why a request was refused.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/meta/v1")]
pub enum Untold {
    /// The sender knows nothing of this name, or several payloads that have it.
    Unknown {
        /// What was asked for.
        #[payload(attribute, example = "calcluate")]
        word: String,
        /// What is wrong with it.
        #[payload(example = "no payload and no listener is called calcluate")]
        message: String,
        /// The known name that is most like it.
        #[payload(example = "calculate")]
        nearest: Option<String>,
        /// A payload that the name may mean, if there are several.
        #[payload(example = "{https://xml-pipeline.org/ns/calculate/v1}calculate")]
        choice: Vec<String>,
    },
    /// The sender may not ask for this.
    NotAllowed {
        /// Who may.
        #[payload(attribute)]
        needs: Who,
    },
}

/// Who may ask for something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Payload)]
pub enum Who {
    /// Anyone, even without a token.
    #[default]
    Anyone,
    /// Listeners, and authenticated identities.
    Authenticated,
    /// Operators.
    Admin,
    /// Nobody.
    None,
}

/// The settings of `describe`: who may send each of its requests.
///
/// ```
/// # extern crate pumphouse_listeners as pumphouse;
/// use pumphouse::listeners::describe::{Allow, Who};
/// let allow = Allow { schema: "admin".parse()?, ..Allow::default() };
/// assert_eq!((allow.schema, allow.list), (Who::Admin, Who::Anyone));
/// # Ok::<(), pumphouse::listeners::describe::UnknownWho>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allow {
    /// Who may send `list-capabilities`.
    pub list: Who,
    /// Who may send `request-schema`.
    pub schema: Who,
    /// Who may send `request-example`.
    pub example: Who,
    /// Who may send `request-prompt`.
    pub prompt: Who,
}

/// The error for a word that doesn't name a [`Who`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownWho(String);

/// The listener's name.
pub const NAME: &str = "describe";

/// The listener `describe`.
#[must_use]
pub fn describe(allow: Allow) -> Listener {
    Listener::new(NAME)
        .on(move |requester: Requester, it: ListCapabilities| async move {
            list(allow, &requester, &it)
        })
        .on(move |requester: Requester, it: RequestSchema| async move {
            schema_of(allow, &requester, &it)
        })
        .on(move |requester: Requester, it: RequestExample| async move {
            example_of(allow, &requester, &it)
        })
        .on(move |requester: Requester, it: RequestPrompt| async move {
            prompt_of(allow, &requester, &it)
        })
        .idempotent()
        .describe("Tells what there is to talk to, and how the payloads look that it takes.")
}

/// The sender of a request, and the capabilities that the sender may know.
struct Requester {
    role: Role,
    /// The sender, if it is a listener of the organism.
    listener: Option<Described>,
    all: Capabilities,
}

impl<S> FromContext<S> for Requester {
    fn from_context(context: &Context<S>) -> Result<Requester, Fault> {
        let (message, role) = (context.message(), Role::from_context(context)?);
        let all = Capabilities::from_context(context)?;
        if message.is_from_identity() {
            return Ok(Requester { role, listener: None, all });
        }
        let listener = all.listener(message.from()).cloned();
        Ok(Requester { role, listener, all: all.seen_by(message.from()) })
    }
}

fn list(
    allow: Allow,
    requester: &Requester,
    it: &ListCapabilities,
) -> Result<CapabilityList, Untold> {
    requester.may(allow.list)?;
    let all = requester.all.listeners().iter();
    let Some(name) = &it.listener else {
        return Ok(CapabilityList { capability: all.map(|it| requester.capability(it)).collect() });
    };
    let one = requester.all.listener(name).ok_or_else(|| {
        let names = all.map(|it| it.name.as_str());
        Untold::Unknown {
            word: name.clone(),
            message: format!("no listener is called {name}"),
            nearest: schema::nearest(name, names).map(str::to_owned),
            choice: Vec::new(),
        }
    })?;
    Ok(CapabilityList { capability: vec![requester.capability(one)] })
}

fn schema_of(
    allow: Allow,
    requester: &Requester,
    it: &RequestSchema,
) -> Result<PayloadSchema, Untold> {
    requester.may(allow.schema)?;
    let (schema, format) = (requester.find(&it.payload)?, it.format.unwrap_or(Format::Xsd));
    let text = match format {
        Format::Xsd => schema::xsd(schema),
        Format::JsonSchema => format!("{:#}\n", schema::json_schema(schema)),
    };
    let (name, namespace) = parts(&schema.name);
    Ok(PayloadSchema { name, namespace, format, schema: text })
}

fn example_of(
    allow: Allow,
    requester: &Requester,
    it: &RequestExample,
) -> Result<Result<PayloadExample, Untold>, Fault> {
    let schema = match requester.may(allow.example).and_then(|()| requester.find(&it.payload)) {
        Ok(schema) => schema,
        Err(untold) => return Ok(Err(untold)),
    };
    let example = xml::read(requester.all.example(schema), Profile::Wire, &XmlLimits::INSIDE)?;
    let (name, namespace) = parts(&schema.name);
    Ok(Ok(PayloadExample { name, namespace, example }))
}

fn prompt_of(
    allow: Allow,
    requester: &Requester,
    it: &RequestPrompt,
) -> Result<PayloadPrompt, Untold> {
    requester.may(allow.prompt)?;
    let schema = requester.find(&it.payload)?;
    let (name, namespace) = parts(&schema.name);
    Ok(PayloadPrompt { name, namespace, prompt: requester.all.prompt(schema) })
}

fn parts(name: &Name) -> (String, String) {
    (name.local().to_owned(), name.namespace().to_owned())
}

impl Requester {
    fn may(&self, who: Who) -> Result<(), Untold> {
        let may = match who {
            Who::Anyone => true,
            Who::Authenticated => self.role >= Role::Authenticated,
            Who::Admin => self.role >= Role::Operator,
            Who::None => false,
        };
        if may { Ok(()) } else { Err(Untold::NotAllowed { needs: who }) }
    }

    fn find(&self, word: &str) -> Result<&Schema, Untold> {
        self.all.find(word).map_err(Untold::from)
    }

    /// Whether the sender of the request may send a payload.
    fn may_send(&self, name: &Name) -> bool {
        if *name == RaiseBudget::NAME {
            return self.role >= Role::Operator;
        }
        let is_reserved = self.all.schema(name).is_some_and(|it| it.reserved);
        !is_reserved || self.listener.as_ref().is_some_and(|it| it.may_emit(name))
    }

    fn capability(&self, it: &Described) -> Capability {
        let takes = it.takes.iter().filter(|name| self.may_send(name)).map(|name| {
            let (local, namespace) = parts(name);
            let doc = self.all.schema(name).map_or("", Schema::doc);
            let causes = it.causes(name).into_iter().map(Name::to_string).collect();
            Taken { name: local, namespace, description: doc.to_owned(), causes }
        });
        Capability {
            listener: it.name.clone(),
            description: it.text.clone(),
            takes: takes.collect(),
        }
    }
}

impl From<Unfound> for Untold {
    fn from(it: Unfound) -> Untold {
        let message = it.to_string();
        Untold::Unknown { word: it.word, message, nearest: it.nearest, choice: it.choices }
    }
}

impl FromStr for Who {
    type Err = UnknownWho;

    fn from_str(word: &str) -> Result<Who, UnknownWho> {
        match word {
            "anyone" => Ok(Who::Anyone),
            "authenticated" => Ok(Who::Authenticated),
            "admin" => Ok(Who::Admin),
            "none" => Ok(Who::None),
            other => Err(UnknownWho(other.to_owned())),
        }
    }
}

impl fmt::Display for UnknownWho {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is nobody: say anyone, authenticated, admin or none", self.0)
    }
}

impl std::error::Error for UnknownWho {}
