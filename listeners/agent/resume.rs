//! Resumes turns that a stop of the pump cut off.

use std::sync::Arc;
use std::time::Duration;

use pumphouse::model::Call;
use pumphouse::prelude::*;
use serde_json::{Map, Value};

use super::super::action::words::{Action, Dialect};
use super::super::metadata::words::Metadata;
use super::Agent;
use super::answer_format::open_name;
use super::call_text::tool_use;
use super::compensation::Callable;
use super::context::{OwnMind, TurnContext};
use super::escape;
use super::generation::{Attempted, Ending, FinalAnswer, Generation};
use super::metadata_references::metadata_in;
use super::mind::{Mind, Minds};
use super::outcome::{Emissions, TurnOutcome};
use super::provider_limits::Refusal;
use super::reply_parts::{ReplyPart, ReplyReader};
use super::system_prompt::SystemPrompt;
use super::words::{CognitionIn, CognitionOut, Response, ResponseWaits, Thought};

/// Entries read per page.
const PAGE: usize = 1_000;

/// A turn that an earlier attempt began.
pub(super) struct BegunTurn {
    turn: u64,
    /// The number of the last entry that the model was shown.
    until: u64,
    /// The entries that the earlier attempt sent.
    sent: Vec<Entry>,
}

impl TurnContext {
    /// The turn that an earlier attempt at this message began. None if no attempt began one, or if
    /// an interrupt has ended the turn since.
    pub(super) async fn begun(&self) -> Result<Option<BegunTurn>, Fault> {
        if self.attempt.0 <= 1 {
            return Ok(None);
        }
        let sent = self.sent.sent().await?;
        let begun = sent.iter().find_map(|it| it.decode_if::<CognitionIn>());
        let begun = begun.map(|CognitionIn { turn, until, .. }| BegunTurn { turn, until, sent });
        let is_ended = |it: &BegunTurn| {
            let is_over = it.sent.iter().any(Entry::is::<CognitionOut>);
            !is_over && self.mind.turns >= it.turn && !self.mind.is_turning()
        };
        Ok(begun.filter(|it| !is_ended(it)))
    }

    /// Resumes a turn. If its reply was complete, the reply is read from the log and the model
    /// isn't asked. Otherwise a model that always gives the same reply to a prompt is asked again.
    /// With any other model, the turn ends with the recorded part of its reply. Such a model would
    /// write another reply if it were asked again, and actions would run twice. If an interrupt has
    /// come, no model is asked, and the turn ends with the recorded part.
    pub(super) async fn resume(mut self, it: BegunTurn) -> Result<Emissions, Fault> {
        let BegunTurn { turn, until, sent } = it;
        let mut mind = Mind::clone(&self.mind);
        if let Some(over) = sent.iter().find_map(|it| it.decode_if::<CognitionOut>()) {
            sent.iter().for_each(|it| mind.apply_sent(it));
            if over.stop == CognitionOut::FULL {
                return self.after_refusal(mind, until, Refusal::default()).await;
            }
            let system = self.system_prompt(&sent);
            let waits =
                sent.iter().any(|it| it.decode_if::<ResponseWaits>().is_some_and(|it| it.is_final));
            let mut spoken = recalled(&self, &over, system, &sent);
            if let Some(it) = &mut spoken.deeds.answer {
                it.waits = waits;
            }
            return self.after_turn(mind, spoken).await;
        }
        // The prompt of the turn doesn't show messages that came after the turn's beginning.
        self.mind = OwnMind(self.mind_at(until).await?);
        self.take_over_metadata().await?;
        let is_wanted = self.interrupted_at().is_none();
        if is_wanted
            && self.agent().model.is_repeatable()
            && let TurnOutcome::Turned(it) = self.generate(turn, until, &sent).await?
        {
            return self.end_turn(mind, turn, until, *it).await;
        }
        let mut spoken = cut(&sent);
        spoken.charge = self.cut_settlement(&sent, &spoken);
        self.end_turn(mind, turn, until, spoken).await
    }

    /// Returns the value that a field of the agent's metadata has after the entries of an earlier
    /// attempt. Null if a declared field has no value, and None if the field isn't declared.
    fn metadata_after(&self, sent: &[Entry], field: &str) -> Option<Value> {
        let Agent { name, settings, .. } = self.agent();
        let mut known = self.metadata.known.clone();
        let own = sent.iter().filter_map(Metadata::recorded).filter(|(agent, _)| agent == name);
        own.for_each(|(_, it)| known.take(it));
        settings.metadata.get(field)?;
        Some(known.value(&settings.metadata, field).cloned().unwrap_or_default())
    }

    /// The agent's mind as the thread shows it up to an entry.
    async fn mind_at(&self, until: u64) -> Result<Arc<Mind>, Fault> {
        let (mut minds, mut after) = (Minds::default(), 0);
        loop {
            let page = self.history.read(after, PAGE).await?;
            let Some(last) = page.last().map(Entry::seq) else { break };
            page.iter().filter(|it| it.seq() <= until).for_each(|it| minds.apply(it));
            if last >= until {
                break;
            }
            after = last;
        }
        Ok(minds.of(&self.agent().name))
    }
}

/// Builds a generation from the recorded parts of an incomplete reply. Native calls keep their
/// form.
fn cut(sent: &[Entry]) -> Generation {
    let mut spoken = Generation::cut("the pump stopped while the model wrote");
    for entry in sent {
        if let Some(it) = entry.decode_if::<Thought>() {
            spoken.reply.text += &format!("<thought>{}</thought>\n", it.text);
        } else if let Some(it) = entry.decode_if::<Response>() {
            spoken.reply.text += &format!("<response final=\"false\">{}</response>\n", it.text);
        } else if let Some((call, id)) = entry.decode_if().and_then(native) {
            let from = spoken.reply.text.len() as u64;
            spoken.reply.text += &escape::recorded(&tool_use(&call, &id));
            spoken.reply.natives.extend([from, spoken.reply.text.len() as u64]);
        } else if entry.is::<Action>() {
            spoken.reply.text += &format!("{}\n", String::from_utf8_lossy(entry.body()));
        }
    }
    spoken
}

/// The native call by which the model began an action, and our own id of the call. None for an
/// action in another dialect.
fn native(it: Action) -> Option<(Call, String)> {
    let is_native = it.dialect == Some(Dialect::Native);
    let theirs = it.call.map(|it| escape::written(&it).into_owned());
    let theirs = theirs.unwrap_or_else(|| it.id.clone());
    is_native.then(|| (Call::new(theirs, it.name, it.parameters.unwrap_or_default()), it.id))
}

/// Reads a reply that was complete before a stop of the pump, to find its final answer. Nothing is
/// sent again.
fn recalled(
    it: &TurnContext,
    over: &CognitionOut,
    system: &SystemPrompt,
    sent: &[Entry],
) -> Generation {
    let settings = &it.agent().settings;
    let mut reader = ReplyReader::new(over.turn, &system.reading, settings);
    reader.allow_calls(Callable::of(&it.capabilities, &it.agent().name));
    if system.format.is_some() {
        reader.expect_json();
    }
    if !it.mind.cut_texts.is_empty() {
        reader.expect_continuation();
    }
    let CognitionOut { stop, error, waits_ms, truncated, text, .. } = over.clone();
    let limited = waits_ms.map(Duration::from_millis);
    let ending = Ending { stop, error, limited, truncated, ..Ending::default() };
    let mut spoken = Generation { ending, ..Generation::default() };
    spoken.deeds.attempt(Attempted::Aside);
    let mut parts = reader.again(&text);
    let json = reader.json();
    let (_, rest, words) = reader.finished(spoken.cut_short());
    let json = json.or(words).filter(|_| !spoken.ending.is_cut());
    parts.extend(rest);
    spoken.reply.text = text;
    let is_only_text = parts.iter().all(ReplyPart::is_only_text);
    // What a reply was cut at was delivered before the stop.
    let words = words.filter(|_| is_only_text && !spoken.ending.is_cut());
    let words = words.and_then(|place| it.words_as_response(&spoken, place));
    let answer = |finale, text: String| {
        let metadata = match it.agent().settings.has_references() {
            true => metadata_in(&text, |field| it.metadata_after(sent, field)),
            false => Map::new(),
        };
        Some(FinalAnswer { text, metadata, finale, waits: false })
    };
    spoken.deeds.answer = parts.into_iter().find_map(|it_was| match it_was {
        ReplyPart::Response { is_final, text, .. }
            if is_final.unwrap_or(settings.final_default) =>
        {
            answer(None, text)
        }
        ReplyPart::Payload { local, element: Ok(element), .. }
            if settings.final_payloads.contains(&local) =>
        {
            let name = open_name(&it.capabilities, &local)?;
            let element = it.capabilities.understand(&element, name).ok()?;
            answer(Some(element), String::new())
        }
        _ => None,
    });
    let is_json = is_only_text && system.format.is_some();
    if let Some(format) = system.format.as_ref().filter(|_| is_json) {
        let text = json.and_then(|(from, to)| spoken.reply.text.get(from..to)).unwrap_or_default();
        let element = format.read(&it.capabilities, &escape::written(text));
        spoken.deeds.answer = element.ok().and_then(|(_, it)| answer(Some(it), String::new()));
    } else if let Some(text) = words {
        spoken.deeds.answer = answer(None, text);
    }
    spoken
}
