//! `describe`: shows the payloads of the organism, or what one of them looks like.

use serde_json::{Map, Value, json};

use crate::audit::{self, Paint};
use crate::cli::base::organism;
use crate::cli::base::screen::{Ending, Failure, Screen};
use crate::engine::Builder;
use crate::listener::{Capabilities, Described, Unfound};
use crate::listeners::agent::offered_tools::{LeftOut, OfferedTools};
use crate::model::{NoProvider, Provider};
use crate::name::Name;
use crate::schema::import::Loose;
use crate::schema::{self, Schema};

/// Describes the organism's payloads: without NAME, every payload and its takers; with NAME, this
/// payload.
///
/// With --xsd, --json-schema, --example or --prompt, only one form of the payload is printed.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  pumphouse describe
  pumphouse describe calculate
  pumphouse describe calculate --example | pumphouse send
  pumphouse describe huh --xsd > huh.xsd
  pumphouse describe --provider anthropic > acme.yaml
  pumphouse describe '{https://xml-pipeline.org/ns/echo/v1}echo' --json

NAME is a payload's local name, LISTENER.PAYLOAD, {NAMESPACE}PAYLOAD, or a listener that takes one
payload only. Nothing is started, and no log is read.")]
pub(crate) struct Describe {
    /// The payload to describe.
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// Prints a built-in model provider or wire as a provider file.
    #[arg(long, value_name = "PROVIDER", conflicts_with = "name")]
    provider: Option<String>,
    #[command(flatten)]
    form: Form,
}

/// The one form of a payload to print.
#[derive(Clone, Copy, Debug, clap::Args)]
#[group(multiple = false, requires = "name")]
struct Form {
    /// Prints only the payload's XSD.
    #[arg(long)]
    xsd: bool,
    /// Prints only the JSON Schema of the payload's JSON form.
    #[arg(long)]
    json_schema: bool,
    /// Prints only a filled example.
    #[arg(long)]
    example: bool,
    /// Prints only the text that tells a model about the payload.
    #[arg(long)]
    prompt: bool,
}

impl Describe {
    pub(crate) fn run(self, builder: Builder, to: &mut Screen<'_>) -> Result<Ending, Failure> {
        if let Some(name) = &self.provider {
            return describe_provider(name, to);
        }
        let plan =
            organism::served(builder)?.build().map_err(|it| Failure::Untried(it.to_string()))?;
        let all = plan.capabilities();
        let Some(name) = &self.name else { return list(all, to) };
        let schema = all.find(name).map_err(|it| unfound(&it))?;
        match (self.form.name(), to.json) {
            (None, false) => page(all, schema, to)?,
            (None, true) => to.object(&Value::Object(object(all, schema)))?,
            (Some(form), false) => to.text(&alone(all, schema, form))?,
            (Some(form), true) => {
                let mut object = object(all, schema);
                object.retain(|key, _| key == "name" || key == form);
                to.object(&Value::Object(object))?;
            }
        }
        Ok(Ending::Well)
    }
}

/// Prints a built-in provider as a provider file.
fn describe_provider(name: &str, to: &mut Screen<'_>) -> Result<Ending, Failure> {
    let unknown = || Failure::Wrong(NoProvider::not_built_in(name).to_string());
    let text = Provider::built_in(name).ok_or_else(unknown)?;
    match to.json {
        true => {
            let object = serde_yaml::from_str(text);
            to.object(&object.map_err(|it| Failure::Untried(it.to_string()))?)?;
        }
        false => to.text(text)?,
    }
    Ok(Ending::Well)
}

impl Form {
    /// Returns the form's key in a JSON object, or None if no form was chosen.
    fn name(self) -> Option<&'static str> {
        let all = [
            (self.xsd, "xsd"),
            (self.json_schema, "json_schema"),
            (self.example, "example"),
            (self.prompt, "prompt"),
        ];
        all.into_iter().find_map(|(is_it, name)| is_it.then_some(name))
    }
}

fn unfound(it: &Unfound) -> Failure {
    let way = "`pumphouse describe` lists what there is";
    Failure::Wrong(match (&it.choices[..], &it.nearest) {
        ([], Some(_)) => format!("{it} {way}"),
        ([], None) => format!("{it}; {way}"),
        _ => it.to_string(),
    })
}

/// Returns one form of a payload, as the content of a file.
fn alone(all: &Capabilities, schema: &Schema, form: &str) -> String {
    match form {
        "xsd" => audit::text(&schema::xsd(schema)).into_owned(),
        "json_schema" => {
            let json = format!("{:#}", schema::json_schema(schema));
            json.lines().map(|it| audit::ascii(it) + "\n").collect()
        }
        "example" => audit::text(&all.example(schema)).into_owned(),
        _ => audit::text(&all.prompt(schema)).into_owned(),
    }
}

/// Lists every payload, in groups: payloads that a listener takes, payloads that a listener only
/// emits, payloads that a manifest only declares, and the pump's own.
fn list(all: &Capabilities, to: &mut Screen<'_>) -> Result<Ending, Failure> {
    let schemas = all.schemas();
    if to.json {
        for schema in schemas {
            to.object(&Value::Object(summary(all, schema)))?;
        }
        return Ok(Ending::Well);
    }
    let is_taken = |it: &&Schema| all.takers(&it.name).next().is_some();
    let is_emitted = |it: &&Schema| all.emitters(&it.name).next().is_some();
    let (taken, rest): (Vec<_>, Vec<_>) = schemas.into_iter().partition(is_taken);
    let (emitted, rest): (Vec<_>, Vec<_>) = rest.into_iter().partition(is_emitted);
    let is_declared = |it: &&Schema| it.original().is_some();
    let (declared, own): (Vec<_>, Vec<_>) = rest.into_iter().partition(is_declared);
    let width = |it: &&Schema| audit::cells(&all.word(&it.name));
    let width =
        taken.iter().chain(&emitted).chain(&declared).chain(&own).map(width).max().unwrap_or(0);
    let mut between = "";
    let groups =
        [("taken", taken), ("emitted", emitted), ("declared", declared), ("the pump's own", own)];
    for (heading, schemas) in groups {
        if schemas.is_empty() {
            continue;
        }
        to.text(between)?;
        to.line(&to.style.paint(Paint::Strong, heading))?;
        for schema in schemas {
            let line = row(all, schema, width, to);
            to.line(&line)?;
        }
        between = "\n";
    }
    to.line("\n`pumphouse describe NAME` tells all about one.")?;
    Ok(Ending::Well)
}

/// Formats a payload as a line: its short name, the listeners that take or emit it, and what it is
/// for.
fn row(all: &Capabilities, schema: &Schema, width: usize, to: &Screen<'_>) -> String {
    let word = all.word(&schema.name);
    let gap = " ".repeat(width - audit::cells(&word).min(width));
    let (takers, emitters) = (names(all.takers(&schema.name)), names(all.emitters(&schema.name)));
    // Reserved payloads without listeners are listed under the heading `the pump's own`, so the
    // word `reserved` isn't needed there.
    let reserved = if schema.reserved { ", reserved" } else { "" };
    let who = match (takers.is_empty(), emitters.is_empty()) {
        (false, _) => format!("by {}{reserved}: ", takers.join(", ")),
        (true, false) => format!("by {}{reserved}: ", emitters.join(", ")),
        (true, true) => String::new(),
    };
    let doc = audit::line(&first(schema.doc())).into_owned();
    let who = to.style.paint(Paint::Who, &who);
    format!("  {}{gap}  {who}{doc}", to.style.paint(Paint::Tag, &audit::line(&word)))
}

/// Shows a payload for people: its text, facts about it, what it may hold, and an example.
fn page(all: &Capabilities, schema: &Schema, to: &mut Screen<'_>) -> Result<(), Failure> {
    let style = to.style;
    let told = |text: &str| audit::text(text).trim_end().to_owned();
    to.line(&style.paint(Paint::Strong, &audit::line(&schema.name.to_string())))?;
    to.line(&told(schema.doc()))?;
    to.line("")?;
    for (what, who) in facts(all, schema) {
        to.line(&format!("{} {}", style.paint(Paint::Faint, &format!("{what:<10}")), told(&who)))?;
    }
    to.line(&format!("\n{}", style.paint(Paint::Faint, "holds")))?;
    let outline = schema::outline(schema);
    to.line(if outline.is_empty() { "nothing" } else { outline.trim_end() })?;
    to.line(&format!("\n{}", style.paint(Paint::Faint, "example")))?;
    to.line(&told(&all.example(schema)))?;
    if !schema.loose().is_empty() {
        to.line(&format!("\n{}", style.paint(Paint::Faint, "held against its JSON Schema")))?;
        for it in schema.loose() {
            to.line(&audit::line(&loose(it)))?;
        }
    }
    let word = all.word(&schema.name);
    let forms = "[--xsd|--json-schema|--example|--prompt]";
    to.line(&format!("\nalone: pumphouse describe {} {forms}", audit::line(&word)))?;
    Ok(())
}

/// Describes a place where a payload's schema allows more than the JSON Schema that it was made
/// from.
fn loose(it: &Loose) -> String {
    let holds = if it.is_open { "any JSON value" } else { "more than that schema lets through" };
    format!("{}: {holds} ({})", it.path, it.why)
}

/// Returns the calls that models of agents can't be offered, each with its agent.
fn left_out(all: &Capabilities) -> impl Iterator<Item = (&str, LeftOut)> {
    let agents = all.listeners().iter();
    let agents = agents.filter_map(|it| Some((it.name.as_str(), it.extension::<OfferedTools>()?)));
    agents.flat_map(|(agent, it)| it.left_out(all).into_iter().map(move |it| (agent, it)))
}

/// Returns facts about a payload: the listeners that take or emit it, and its special properties.
fn facts(all: &Capabilities, schema: &Schema) -> Vec<(&'static str, String)> {
    let name = &schema.name;
    let mut facts = Vec::new();
    for it in all.takers(name) {
        let text = it.text.as_deref().map(|it| format!(": {it}")).unwrap_or_default();
        facts.push(("taken by", format!("{}{text}", it.name)));
        if let Some(effects) = it.effects {
            facts.push(("effects", effects.as_str().to_owned()));
            facts.push(("door", it.door.to_string()));
        }
    }
    for (agent, it) in left_out(all).filter(|(_, it)| it.payload == *name) {
        facts.push(("left out", format!("{agent} can't be offered it: {}", it.why)));
    }
    let answers = words(all, emitted_for(all, name));
    if !answers.is_empty() {
        facts.push(("may cause", answers.join(", ")));
    }
    let then = words(all, emitted_then(all, name));
    if !then.is_empty() {
        facts.push(("after replies", then.join(", ")));
    }
    let emitters = names(all.emitters(name));
    if !emitters.is_empty() {
        facts.push(("emitted by", emitters.join(", ")));
    }
    if schema.reserved {
        facts.push(("reserved", "the pump and who has the grant emit:core may send it".to_owned()));
    }
    if schema.live {
        facts.push(("live", "it may be sent to followers only, past the log".to_owned()));
    }
    if schema.bookkeeping {
        facts.push(("unshown", "no prompt shows it: it is bookkeeping".to_owned()));
    }
    if facts.is_empty() && schema.original().is_some() {
        facts.push(("taken by", "nobody: a manifest declares it".to_owned()));
    }
    if facts.is_empty() {
        facts.push(("taken by", "the pump itself, or a reply that somebody waits for".to_owned()));
    }
    facts
}

/// Returns the payloads that may be emitted while a payload is handled.
fn emitted_for<'a>(all: &'a Capabilities, name: &Name) -> Vec<&'a Name> {
    let mut names: Vec<&Name> = all.takers(name).flat_map(|it| &it.emits[name]).collect();
    names.sort();
    names.dedup();
    names
}

/// Returns the payloads that the takers of a payload may emit only later, when they handle replies
/// to their own messages.
fn emitted_then<'a>(all: &'a Capabilities, name: &Name) -> Vec<&'a Name> {
    let at_once = emitted_for(all, name);
    let mut names: Vec<&Name> = all.takers(name).flat_map(|it| it.causes(name)).collect();
    names.sort();
    names.dedup();
    names.retain(|it| !at_once.contains(it));
    names
}

fn words(all: &Capabilities, names: Vec<&Name>) -> Vec<String> {
    names.into_iter().map(|it| all.word(it)).collect()
}

fn names<'a>(listeners: impl Iterator<Item = &'a Described>) -> Vec<&'a str> {
    listeners.map(|it| it.name.as_str()).collect()
}

/// Maps each listener that takes a payload to the effects that the listener declares.
fn effects(all: &Capabilities, name: &Name) -> Map<String, Value> {
    let said = all.takers(name).filter_map(|it| Some((it.name.clone(), it.effects?)));
    said.map(|(name, it)| (name, it.as_str().into())).collect()
}

/// Maps each listener that takes a payload to those who may send it at a door.
fn door(all: &Capabilities, name: &Name) -> Map<String, Value> {
    all.takers(name).map(|it| (it.name.clone(), it.door.to_string().into())).collect()
}

/// Returns a payload as the list shows it, for programs.
fn summary(all: &Capabilities, schema: &Schema) -> Map<String, Value> {
    let name = &schema.name;
    let emits: Vec<String> = emitted_for(all, name).into_iter().map(Name::to_string).collect();
    let then: Vec<String> = emitted_then(all, name).into_iter().map(Name::to_string).collect();
    let object = json!({
        "name": name.to_string(),
        "namespace": name.namespace(),
        "local": name.local(),
        "text": schema.doc(),
        "taken_by": names(all.takers(name)),
        "effects": effects(all, name),
        "door": door(all, name),
        "may_cause": emits,
        "after_replies": then,
        "emitted_by": names(all.emitters(name)),
        "reserved": schema.reserved,
        "live": schema.live,
        "bookkeeping": schema.bookkeeping,
    });
    match object {
        Value::Object(it) => it,
        _ => Map::new(),
    }
}

/// Returns a payload with all its forms, for programs.
fn object(all: &Capabilities, schema: &Schema) -> Map<String, Value> {
    let mut object = summary(all, schema);
    object.insert("xsd".to_owned(), schema::xsd(schema).into());
    object.insert("json_schema".to_owned(), schema::json_schema(schema));
    if schema.original().is_some() {
        let loose = schema
            .loose()
            .iter()
            .map(|it| json!({ "path": it.path, "why": it.why, "any_json": it.is_open }));
        object.insert("held_against_its_json_schema".to_owned(), loose.collect());
    }
    object.insert("example".to_owned(), all.example(schema).into());
    object.insert("prompt".to_owned(), all.prompt(schema).into());
    object
}

/// Returns the first paragraph of a text, on one line.
fn first(doc: &str) -> String {
    let paragraph = doc.split("\n\n").next().unwrap_or_default();
    paragraph.split_whitespace().collect::<Vec<_>>().join(" ")
}
