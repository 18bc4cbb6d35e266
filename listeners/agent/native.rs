//! Calls in a provider's own protocol, as a prompt shows them: the model's calls with their ids,
//! followed by their results. This module is pure.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use pumphouse::limits::XmlLimits;
use pumphouse::model::{Call, PromptMessage, Role, Signed};
use pumphouse::prelude::*;
use pumphouse::schema::json;
use pumphouse::wire::budget::Charge;
use pumphouse::xml::{Profile, read};

use super::super::action::words::{Action, ActionResult, Dialect, Status};
use super::cut_result::shown;
use super::escape;
use super::prompt_form::Form;
use super::tools::legal;
use super::words::{CognitionOut, Notice, ReasoningSigned};

/// The text in place of the result of a call that has none.
const NOTHING: &str = "no result came";
/// The text in place of the result of a call that still runs.
const RUNNING: &str = "It still runs. Its result will stand here.";

/// The native calls of an agent's turns, and their results.
#[derive(Default)]
pub(super) struct Natives {
    /// Maps the turn and our own id of each call to its result, as the model reads it.
    results: BTreeMap<(u64, String), String>,
    /// Maps each turn to the parts that the provider signed.
    signed: BTreeMap<u64, Vec<Signed>>,
    /// Maps each turn to the description of the model that its charge names.
    models: BTreeMap<u64, String>,
    /// The numbers of the entries that have these results. The prompt shows each result after its
    /// call, and leaves out its entry.
    told: BTreeSet<u64>,
    /// The turn and the id of each call that has begun. It runs until it has a result.
    begun: BTreeSet<(u64, String)>,
}

impl Natives {
    /// The native calls of an agent's turns in a view. Empty for a form that isn't native.
    pub(super) fn of(form: Form<'_>, agent: &str, view: &[Entry]) -> Natives {
        let mut all = Natives::default();
        if !form.is_native {
            return all;
        }
        let own = |it: &&Entry| it.from() == agent && !it.is_refused();
        let turns = view.iter().filter(own).filter_map(Entry::decode_if::<CognitionOut>);
        let calls: BTreeSet<(u64, String)> = turns
            .flat_map(|it| written(&it).1.into_iter().map(move |(id, _)| (it.turn, id)))
            .collect();
        if calls.is_empty() {
            return all;
        }
        let mut actions: BTreeMap<u64, (u64, String)> = BTreeMap::new();
        let mut charged = None;
        for entry in view.iter().filter(|it| !it.is_refused()) {
            let (key, text) = if entry.from() == agent {
                if let Some(it) = entry.decode_if::<Action>() {
                    let is_native = it.dialect == Some(Dialect::Native);
                    let key = it.turn.filter(|_| is_native).map(|turn| (turn, it.id));
                    all.begun.extend(key.clone());
                    actions.extend(key.map(|key| (entry.seq(), key)));
                    continue;
                }
                if let Some(it) = entry.decode_if::<ReasoningSigned>() {
                    all.signed.insert(it.turn, it.signed());
                    continue;
                }
                if entry.is::<Charge>() {
                    charged = entry.attribute("model").map(Cow::into_owned);
                    continue;
                }
                if entry.is::<CognitionOut>() {
                    let turn = entry.attribute("turn").and_then(|it| it.parse().ok());
                    all.models.extend(turn.zip(charged.clone()));
                    continue;
                }
                let Some(it) = entry.decode_if::<Notice>() else { continue };
                let Some(id) = it.call else { continue };
                ((it.turn, id), form.line(&form.quoted(&it.text)))
            } else {
                let to_agent = entry.to() == Some(agent);
                let it = to_agent.then(|| entry.decode_if::<ActionResult>()).flatten();
                let Some(it) = it else { continue };
                let Some(key) = actions.get(&it.of) else { continue };
                (key.clone(), result(form, entry.seq(), &it))
            };
            if calls.contains(&key) && !all.results.contains_key(&key) {
                all.results.insert(key, text);
                all.told.insert(entry.seq());
            }
        }
        all
    }

    /// Whether an entry has the result of a native call, which the prompt shows after that call.
    pub(super) fn tells(&self, entry: &Entry) -> bool {
        self.told.contains(&entry.seq())
    }

    /// The messages for a reply with native calls: the reply, and the results of its calls. None if
    /// the reply has no native call.
    pub(super) fn said(&self, form: Form<'_>, it: &CognitionOut) -> Option<Vec<PromptMessage>> {
        let (text, calls) = written(it);
        if calls.is_empty() {
            return None;
        }
        let results: Vec<PromptMessage> = calls
            .iter()
            .map(|(id, call)| {
                let key = (it.turn, id.clone());
                let nothing = if self.begun.contains(&key) { RUNNING } else { NOTHING };
                let text = self.results.get(&key).cloned().unwrap_or_else(|| form.line(nothing));
                PromptMessage { of: Some(call.id.clone()), ..PromptMessage::new(Role::Tool, text) }
            })
            .collect();
        let calls = calls.into_iter().map(|(_, call)| call).collect();
        let signed = self.signed.get(&it.turn).cloned().unwrap_or_default();
        let written_by = it.answered_by.clone().or_else(|| self.models.get(&it.turn).cloned());
        let said = PromptMessage::new(Role::Assistant, text);
        let mut said = vec![PromptMessage { calls, signed, written_by, ..said }];
        said.extend(results);
        Some(said)
    }
}

/// The result of a call, as a model reads it.
fn result(form: Form<'_>, entry: u64, it: &ActionResult) -> String {
    let (text, note) = shown(entry, it, form.result_bytes);
    let text = form.unmarked(text.into());
    match it.status {
        Status::Ok => text.into_owned() + &note,
        status => format!("{} {text}{note}", form.line(status.as_str())),
    }
}

/// Splits a reply into its text without the native calls, and these calls, each with our own id.
fn written(it: &CognitionOut) -> (String, Vec<(String, Call)>) {
    let (mut text, mut calls, mut from) = (String::new(), Vec::new(), 0);
    let place = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
    for range in it.calls.as_deref().unwrap_or_default().chunks_exact(2) {
        let (begin, end) = (place(range[0]), place(range[1]));
        let Some(call) = it.text.get(begin..end).and_then(call) else { continue };
        text += it.text.get(from..begin).unwrap_or_default();
        calls.push(call);
        from = end;
    }
    text += it.text.get(from..).unwrap_or_default();
    (text.trim().to_owned(), calls)
}

/// Reads a native call in its recorded form, `<tool_use id="…" name="…">{…}</tool_use>`, with our
/// own id of the call. None if the text has another form.
fn call(element: &str) -> Option<(String, Call)> {
    let (tag, body) = element.split_once('>')?;
    let arguments = body.trim_end().strip_suffix("</tool_use>")?;
    let tag = read(format!("{tag}/>"), Profile::Wire, &XmlLimits::INSIDE).ok()?;
    let arguments = escape::written(arguments);
    let arguments = json::mended(&arguments);
    // Providers refuse a history with invalid JSON. The call's result reports the error.
    let is_sound = arguments.trim_start().starts_with('{')
        && serde_json::from_str::<serde::de::IgnoredAny>(&arguments).is_ok();
    let arguments = if is_sound { &*arguments } else { "{}" };
    let id = tag.attribute("id")?;
    // The provider's id is escaped twice: by itself, and as a part of the reply's text.
    let theirs = tag.attribute("call").map(|it| escape::written(&escape::written(it)).into_owned());
    let theirs = theirs.unwrap_or_else(|| id.to_owned());
    Some((id.to_owned(), Call::new(theirs, legal(tag.attribute("name")?), arguments)))
}
