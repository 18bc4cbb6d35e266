//! The listener `command` with declared payloads. An argument of the program can be a field of the
//! message. The program's input can be the message, as text, JSON or XML. The program's output is
//! text, JSON or XML.

use std::sync::Arc;

use pumphouse::limits::XmlLimits;
use pumphouse::listener::DeclaredPayload;
use pumphouse::name::namespace_of;
use pumphouse::prelude::*;
use pumphouse::schema::{self, Schema, json};
use pumphouse::xml::{self, Child, Profile, View, Writer};
use serde_json::Value;

use super::super::text::clean;
use super::arguments::{Argument, filled};
use super::{Bounds, Failed, Input, NAME, Outcome, Output, Program, Reason, Run};
use super::{not_run, output, run};
use pumphouse::listeners::agent_context::CallingAgent;

/// The default local name of the payload that the listener takes.
const TAKES: &str = "run";
/// The default local name of the payload that the listener answers.
const ANSWERS: &str = "answer";

/// Returns the schema of the payload that the listener takes. Returns an error if the declared JSON
/// Schema doesn't have `type: object`.
pub(super) fn takes(declared: &DeclaredPayload) -> Result<Schema, String> {
    let schema = schema_of(declared, TAKES, "What the listener's program is run on.")?;
    match schema.original().and_then(|it| it.get("type")).is_some_and(|it| it == "object") {
        true => Ok(schema),
        false => Err("`takes` is of no object: write `type: object`".to_owned()),
    }
}

/// Returns the schema of the payload that the listener answers.
pub(super) fn answers(declared: &DeclaredPayload) -> Result<Schema, String> {
    schema_of(declared, ANSWERS, "What the listener's program answers.")
}

fn schema_of(declared: &DeclaredPayload, local: &str, doc: &'static str) -> Result<Schema, String> {
    let own = Name::new(namespace_of(NAME), local);
    let mut schema = declared.schema(&own).map_err(|why| format!("{local}: {why}"))?;
    if schema.doc().is_empty() {
        schema.shape.doc = doc.into();
    }
    Ok(schema)
}

/// Returns the fields that an argument may name: the properties of the JSON Schema.
pub(super) fn fields(schema: &Schema) -> Vec<String> {
    let properties = schema.original().and_then(|it| it.get("properties"));
    let properties = properties.and_then(Value::as_object);
    properties.map(|it| it.keys().cloned().collect()).unwrap_or_default()
}

struct Typed {
    program: Program,
    takes: Schema,
    answers: Option<Schema>,
    /// The form of the message on standard input. If this is `None`, standard input is empty,
    /// because arguments contain fields of the message.
    input: Option<Input>,
}

/// Makes the listener of a program. If `takes` is `None`, the listener takes a text.
pub(super) fn listener(
    program: Program,
    takes: Option<Schema>,
    answers: Option<Schema>,
    input: Option<Input>,
) -> Listener {
    let has_fields = program.arguments.iter().any(|it| matches!(it, Argument::Field { .. }));
    let input = match (input, &takes, has_fields) {
        (None, _, true) => None,
        (Some(Input::Text) | None, None, _) => Some(Input::Text),
        (it, ..) => it.or(Some(Input::Json)),
    };
    let takes = takes.unwrap_or_else(|| Run::schema().clone());
    let (taken, answered) = (takes.clone(), answers.clone());
    let typed = Typed { program, takes, answers, input };
    let listener = Listener::with_state(NAME, Arc::new(typed)).own_namespace();
    match answered {
        Some(it) => listener.on_named(taken, run_typed).may_emit_named(it).stateless(),
        None => listener.on_named(taken, run_plain).stateless(),
    }
}

type Ran<T> = Result<Result<T, Failed>, Fault>;

async fn run_plain(
    State(it): State<Arc<Typed>>,
    message: Message,
    agent: CallingAgent,
    came: Element,
) -> Ran<Output> {
    let outcome = it.run(&message, &agent, &came).await?;
    Ok(outcome.and_then(|outcome| {
        let text = output(&it.program.name, &it.program.bounds.limits, &outcome)?;
        Ok(Output { text })
    }))
}

async fn run_typed(
    State(it): State<Arc<Typed>>,
    message: Message,
    agent: CallingAgent,
    came: Element,
) -> Ran<Element> {
    let outcome = it.run(&message, &agent, &came).await?;
    Ok(outcome.and_then(|outcome| answered(&it, &outcome)))
}

/// Reads the payload that a program answered.
fn answered(it: &Typed, outcome: &Outcome) -> Result<Element, Failed> {
    let is_whole = !outcome.out.beginning().1;
    let text = output(&it.program.name, &it.program.bounds.limits, outcome)?;
    let bad = |why: String| {
        let text = format!("{} answered what it may not: {}", it.program.name, clean(&why));
        Failed { reason: Reason::Unknown, text, err: None }
    };
    let Some(schema) = &it.answers else { return Err(bad("nothing is declared".to_owned())) };
    match is_whole {
        true => answer(schema, &text).map_err(bad),
        false => Err(bad("it is too long; the limit is output_bytes_max".to_owned())),
    }
}

impl Typed {
    async fn run(&self, message: &Message, agent: &CallingAgent, came: &Element) -> Ran<Outcome> {
        Ok(match self.program.bounds_for(agent).await? {
            Ok(bounds) => self.run_within(&bounds, message, came).await,
            Err(failed) => Err(failed),
        })
    }

    async fn run_within(
        &self,
        bounds: &Bounds,
        message: &Message,
        came: &Element,
    ) -> Result<Outcome, Failed> {
        let Program { path, arguments, .. } = &self.program;
        let refused = |reason, text| Failed { reason, text, err: None };
        let value = schema::to_json(&self.takes, came.view())
            .map_err(|it| refused(Reason::Failed, it.to_string()))?;
        let arguments = filled(arguments, &value).map_err(|it| refused(Reason::Failed, it))?;
        let input = match self.input {
            None => String::new(),
            Some(Input::Text) => value["text"].as_str().unwrap_or_default().to_owned(),
            Some(Input::Json) => value.to_string(),
            Some(Input::Xml) => String::from_utf8_lossy(&came.canonical()).into_owned(),
        };
        let bytes = input.len() + arguments.iter().map(String::len).sum::<usize>();
        let most = bounds.limits.input_bytes_max;
        if bytes > most {
            let text = format!("it is given {bytes} bytes; the limit input_bytes_max is {most}");
            return Err(refused(Reason::TooLarge, text));
        }
        let key = message.key();
        let outcome = run::run(bounds, path, arguments, input, key.as_deref(), &|_, _| {}).await;
        outcome.map_err(not_run)
    }
}

/// Parses a program's output into the payload that the listener answers. Output that begins with
/// `<` is parsed as XML, and any other output as JSON.
fn answer(schema: &Schema, text: &str) -> Result<Element, String> {
    let text = text.trim();
    let value = match text.starts_with('<') {
        true => {
            let element = xml::read(text, Profile::Wire, &XmlLimits::DOOR);
            let element = element.map_err(|it| it.to_string())?;
            let mut writer = Writer::new(XmlLimits::INSIDE);
            within(element.view(), schema.name.namespace(), &mut writer);
            let element = writer.finish().map_err(|it| it.to_string())?;
            schema.check(element.view()).map_err(|it| it.to_string())?;
            schema::to_json(schema, element.view()).map_err(|it| it.to_string())?
        }
        false => json::read(text).map_err(|it| it.to_string())?,
    };
    schema::from_json(schema, &value).map_err(|it| it.to_string())
}

/// Copies an element to `writer`. Elements without a namespace get `namespace`, and attributes with
/// a namespace are left out.
fn within(view: View<'_>, namespace: &str, writer: &mut Writer) {
    let own = view.namespace();
    writer.start(if own.is_empty() { namespace } else { own }, view.local());
    for attribute in view.attributes().filter(|it| it.namespace.is_empty()) {
        writer.attribute(attribute.local, attribute.value);
    }
    for child in view.children() {
        match child {
            Child::Text(text) => writer.text(text),
            Child::Element(it) => within(it, namespace, writer),
        }
    }
    writer.end();
}
