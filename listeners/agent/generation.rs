//! Generations. A generation is a model's reply, on which the agent acts while the model writes it.

use std::collections::BTreeSet;
use std::iter::Peekable;

use pumphouse::model::{Prompt, Signed};
use pumphouse::prelude::*;
use pumphouse::schema::json;
use pumphouse::wire::Json;
use pumphouse::wire::budget::Charge;
use pumphouse::xml::writable;
use serde_json::{Map, Value};

use super::super::action::call::untimed;
use super::super::action::read::Mistakes;
use super::super::action::variables;
use super::super::action::words::{Action, ActionKind, ActionResult, METADATA};
use super::super::metadata::MetadataUpdate;
use super::TRIGGER;
use super::answer_format::AnswerFormat;
use super::blocks::note_metadata;
use super::compensation::Callable;
use super::context::{MetadataSet, TurnContext};
use super::escape;
pub(super) use super::generated::{
    Attempted, Deeds, Ending, FinalAnswer, Generation, WrittenReply,
};
use super::metadata_references::{metadata_in, note_fields};
use super::partial::{Partials, WaitingPartial, recorded};
use super::reply_parts::{ReplyPart, ReplyReader};
use super::system_prompt::SystemPrompt;
use super::words::{
    CognitionReasoning, Delta, Notice, ReasoningSigned, Repair, Response, ResponseWaits, Thought,
};

/// The notice about a call in an agent's last turn.
pub(super) const LAST: &str = "This was your last turn: no action runs. Give your final response.";

/// A generation under way.
pub(super) struct OngoingGeneration<'a> {
    pub(super) context: &'a TurnContext,
    pub(super) turn: u64,
    pub(super) is_last: bool,
    /// The partial responses that the log has of this turn, if an earlier attempt or the replayed
    /// handling sent some. A resumed turn sends the recorded texts, since replacing the references
    /// again could give other texts.
    pub(super) earlier: Peekable<std::vec::IntoIter<Response>>,
    /// The places of the responses that had to wait, as the log has them. None if the turn is
    /// neither resumed nor replayed.
    pub(super) recorded_waits: Option<BTreeSet<u64>>,
    /// The actions of this turn, and the partial responses that wait for them.
    pub(super) partials: Partials,
    pub(super) reasoning: String,
    /// The parts that the provider signed, such as encrypted reasoning. Later prompts return these
    /// parts unchanged, with the reply's calls.
    pub(super) signed: Vec<Signed>,
    pub(super) spoken: Generation,
    /// The number of calls and payloads that were refused.
    refused: usize,
    /// The reservation of the turn.
    pub(super) reserved: Charge,
    /// The number of bytes of the reply that the settlement counts which is booked if the turn is
    /// stopped.
    pub(super) settled_upto: usize,
    /// The metadata that the reply has set so far.
    pub(super) said: Map<String, Value>,
    /// The positions in the reply at which refused payloads begin, in bytes.
    unsent: Vec<usize>,
    /// Whether something other than text came after the final response.
    is_late: bool,
}

impl<'a> OngoingGeneration<'a> {
    pub(super) fn new(
        context: &'a TurnContext,
        turn: u64,
        is_last: bool,
        earlier: &[Entry],
    ) -> OngoingGeneration<'a> {
        let spoken = Generation::default();
        let known = match earlier {
            [] => context.record.0.as_deref(),
            sent => Some(sent),
        };
        let (waits, earlier) = known.map(recorded).unzip();
        context.arrivals.keep::<ActionResult>();
        OngoingGeneration {
            context,
            turn,
            is_last,
            earlier: earlier.unwrap_or_default().into_iter().peekable(),
            recorded_waits: waits,
            partials: Partials::default(),
            reasoning: String::new(),
            signed: Vec::new(),
            spoken,
            refused: 0,
            reserved: Charge::default(),
            settled_upto: 0,
            said: Map::new(),
            unsent: Vec::new(),
            is_late: false,
        }
    }

    pub(super) async fn speak(
        mut self,
        prompt: Prompt,
        system: &SystemPrompt,
        reserved: &Charge,
    ) -> Result<Generation, Fault> {
        self.reserved = reserved.clone();
        let agent = self.context.agent();
        let mut reader = ReplyReader::new(self.turn, &system.reading, &agent.settings);
        reader.allow_calls(Callable::of(&self.context.capabilities, &agent.name));
        if system.format.is_some() {
            reader.expect_json();
        }
        if !self.context.mind.cut_texts.is_empty() {
            reader.expect_continuation();
        }
        let model = &self.context.agent().model;
        self.spoken.reply.tokens_max = prompt.max_tokens.or_else(|| model.max_tokens());
        match &self.context.record.0 {
            Some(record) => self.read_recorded(record, &mut reader).await?,
            None => self.generate(prompt, &mut reader, system).await?,
        }
        if !self.reasoning.is_empty() {
            let is_cut = self.spoken.ending.error.is_some();
            let (turn, text) = (self.turn, std::mem::take(&mut self.reasoning));
            let it = CognitionReasoning { turn, is_partial: is_cut, was_interrupted: is_cut, text };
            self.context.out.reasoning.send(Note(it)).await?;
        }
        if let Some(it) = ReasoningSigned::of(self.turn, &self.signed) {
            self.context.out.signed.send(Note(it)).await?;
        }
        self.spoken.reply.natives = reader.places();
        let json = reader.json();
        let cut = self.spoken.cut_short();
        let (text, parts, words) = reader.finished(cut);
        for part in parts {
            self.spoken.deeds.delivers_cut |=
                cut.is_some() && matches!(part, ReplyPart::Response { .. });
            self.act(part).await?;
        }
        self.spoken.reply.text = text;
        if let Some(format) = &system.format {
            self.answers(format, json, words).await?;
        } else if let Some((from, to)) = words
            && self.spoken.deeds.is_only_text()
            && let Some(text) = self.context.words_as_response(&self.spoken, (from, to))
        {
            self.spoken.deeds.delivers_cut |= cut.is_some();
            self.response(Some(cut.is_none()), text, from, to).await?;
        }
        Ok(self.spoken)
    }

    /// If the reply is only text, reads that text as JSON for the agent's final payload. If the
    /// text can't be read, or was cut, the agent gets a notice.
    async fn answers(
        &mut self,
        format: &AnswerFormat,
        json: Option<(usize, usize)>,
        words: Option<(usize, usize)>,
    ) -> Result<(), Fault> {
        let Some(place) = json.or(words) else { return Ok(()) };
        if !self.spoken.deeds.is_only_text() {
            return Ok(());
        }
        if let Some(cut) = self.spoken.cut_short() {
            return match cut.answer(&self.spoken.ending.stop) {
                Some(text) => self.refuses(&*format.format.name, text, None).await,
                None => Ok(()),
            };
        }
        self.spoken.deeds.attempt(Attempted::Deed);
        let text = self.spoken.reply.text.get(place.0..place.1).unwrap_or_default();
        let read = format.read(&self.context.capabilities, &escape::written(text));
        match read {
            Ok((local, element)) => self.finale(&local, &element, place).await,
            Err((local, why)) => {
                let text = format!("<{local}> was not sent: {why}");
                self.refuses(local, text, None).await
            }
        }
    }

    pub(super) fn live(&self, within: &str, text: String) {
        let within = within.to_owned();
        self.context.out.delta.live(&Delta { turn: self.turn, within, text });
    }

    pub(super) async fn notice(
        &self,
        text: String,
        place: Option<(u32, u32)>,
    ) -> Result<(), Fault> {
        self.notify(None, text, place).await
    }

    /// Counts a refused call or payload, and sends the agent a notice that says why.
    pub(super) async fn refuses(
        &mut self,
        call: impl Into<String>,
        text: String,
        place: Option<(u32, u32)>,
    ) -> Result<(), Fault> {
        self.spoken.deeds.attempt(Attempted::Aside);
        self.spoken.deeds.calls += 1;
        self.refused += 1;
        self.notify(Some(call.into()), text, place).await
    }

    async fn notify(
        &self,
        call: Option<String>,
        text: String,
        place: Option<(u32, u32)>,
    ) -> Result<(), Fault> {
        let (line, column) = place.unzip();
        let (call, text) = (call.map(|it| writable(&it)), writable(&text));
        let (turn, response, held_back) = (self.turn, None, None);
        let notice = Notice { turn, line, column, call, response, held_back, text };
        self.context.out.notice.send(Note(notice)).await
    }

    /// Acts on one part of the reply.
    pub(super) async fn act(&mut self, part: ReplyPart) -> Result<(), Fault> {
        let is_over = self.spoken.deeds.answer.is_some();
        if is_over && !matches!(part, ReplyPart::Text(..)) {
            if !std::mem::replace(&mut self.is_late, true) {
                let text = "What you wrote behind your final response did not run.";
                self.notice(text.to_owned(), None).await?;
            }
            return Ok(());
        }
        let (out, turn) = (&self.context.out, self.turn);
        match part {
            ReplyPart::Text(within, text) => {
                if within == "text" {
                    self.spoken.reply.outside.push_str(&text);
                }
                self.live(within, text);
            }
            ReplyPart::Thought(it) => {
                let text = it.recorded(&self.unsent);
                if !text.is_empty() {
                    self.spoken.deeds.gist.thought = Some(text.clone());
                    let is_told = self.context.agent().settings.control_flow && it.depth > 0;
                    let depth = is_told.then_some(it.depth);
                    out.thought.send(Note(Thought { turn, depth, text })).await?;
                }
            }
            ReplyPart::Call(it) => return self.action(*it).await,
            ReplyPart::Response { is_final, text, from, to } => {
                return self.response(is_final, text, from, to).await;
            }
            ReplyPart::Payload { local, element, is_core, from, to } => {
                let refused = self.refused;
                self.payload(local, element, is_core, (from, to)).await?;
                if self.refused > refused {
                    self.unsent.push(from);
                }
            }
            ReplyPart::Metadata(it) => return self.metadata(it).await,
            ReplyPart::Own if self.is_last => {
                return self
                    .refuses(&*self.context.agent().name.clone(), LAST.to_owned(), None)
                    .await;
            }
            ReplyPart::Own => {
                self.spoken.deeds.attempt(Attempted::Deed);
                self.spoken.deeds.wants_turn = true;
            }
            ReplyPart::Meaningless(name) => {
                self.notice(format!("<{name}> has no meaning here, and nothing came of it."), None)
                    .await?;
            }
            ReplyPart::Ignored { local, element, is_core, text, line, column } => {
                if element.is_none_or(|it| self.is_sound(&local, &it, is_core)) {
                    self.notice(text, Some((line, column))).await?;
                }
            }
            ReplyPart::Broken { call: Some(call), text, line, column } => {
                return self.refuses(call, text, Some((line, column))).await;
            }
            ReplyPart::Broken { text, line, column, .. } => {
                self.notice(text, Some((line, column))).await?;
            }
            ReplyPart::Repaired { text, line, column } => {
                out.repair.send(Note(Repair { turn, line, column, text })).await?;
            }
        }
        Ok(())
    }

    /// Records the values that the agent's metadata fields accept. If the fields are `atomic`, one
    /// wrong value means that none is recorded. The agent's next prompt shows the errors.
    async fn metadata(&mut self, said: Result<MetadataUpdate, String>) -> Result<(), Fault> {
        let fields = &self.context.agent().settings.metadata;
        if fields.is_empty() {
            let text = "<metadata> was not kept: you have no fields.";
            return self.notice(text.to_owned(), None).await;
        }
        self.spoken.deeds.attempt(Attempted::Aside);
        match said {
            Ok(said) => {
                let said = said.held_against(fields, self.turn);
                let kept = said.fields.as_deref().and_then(|it| json::read(it).ok());
                if let Some(Value::Object(kept)) = kept {
                    self.said.extend(kept);
                }
                let changed = said.changed().filter(|_| self.context.agent().settings.has_triggers);
                let changed = changed.map(|it| To(TRIGGER, it));
                let shared = self.context.shared(&said);
                let set = MetadataSet { changed, shared, metadata: Note(said) };
                self.context.out.metadata.send(set).await
            }
            Err(why) => self.notice(format!("<metadata> was not kept: {why}"), None).await,
        }
    }

    async fn action(&mut self, it: Result<Action, Mistakes>) -> Result<(), Fault> {
        self.spoken.deeds.attempt(Attempted::Deed);
        match it {
            Ok(it) if self.is_last => self.refuses(it.id, LAST.to_owned(), None).await,
            Ok(mut action) => {
                if let Some(why) = self.refusal(&action) {
                    let text = format!("{} did not run: {why}", action.id);
                    return self.refuses(action.id, text, None).await;
                }
                let settings = &self.context.agent().settings;
                action.references = settings.references_of(action.dialect);
                note_metadata(&mut action, |field| self.field(field));
                note_fields(&mut action, |field| self.declared_field(field));
                self.context.hand_metadata(&mut action);
                untimed(&mut action, &self.context.capabilities);
                self.spoken.deeds.begins(&action);
                self.partials.begins(&action);
                self.context.out.act.send(To("action", action)).await
            }
            Err(mistakes) => {
                let name = if mistakes.id.is_empty() { "An action" } else { &*mistakes.id };
                let text = format!("{name} did not run: {mistakes}");
                self.refuses(name, text, None).await
            }
        }
    }

    /// Why the agent may not take an action. The setting `internal_actions` can forbid only actions
    /// of the types `internal` and `context_feed`.
    fn refusal(&self, it: &Action) -> Option<String> {
        let is_internal = matches!(it.kind, ActionKind::Internal | ActionKind::ContextFeed);
        is_internal.then(|| self.context.agent().settings.internal_actions.refusal(&it.name))?
    }

    async fn response(
        &mut self,
        is_final: Option<bool>,
        text: String,
        from: usize,
        to: usize,
    ) -> Result<(), Fault> {
        let is_final = is_final.unwrap_or(self.context.agent().settings.final_default);
        self.spoken.deeds.attempt(if is_final { Attempted::Aside } else { Attempted::Deed });
        let has_references = self.context.agent().settings.has_references();
        let (mut names, mut metadata) = (Vec::new(), Map::new());
        if has_references {
            names = variables::names_in_prose(&text);
            metadata = metadata_in(&text, |field| self.declared_field(field));
        }
        let is_free = self.is_free(&names, is_final);
        let mut on: Vec<String> = names.into_iter().map(str::to_owned).collect();
        if !is_final && !is_free {
            let after = self.partials.count();
            let partial = WaitingPartial { text: text.clone(), metadata: metadata.clone(), after };
            match self.deliver_by_now(partial, from).await? {
                Some(partial) => self.partials.wait(partial),
                None => return Ok(()),
            }
        }
        if !is_free {
            let mut has_metadata = false;
            // `metadata` is listed once. An action's name is listed as often as the text has it.
            on.retain(|it| it != METADATA || !std::mem::replace(&mut has_metadata, true));
            let waits = ResponseWaits {
                turn: self.turn,
                is_final,
                payload: None,
                from: from as u64,
                to: to as u64,
                on,
                metadata: (!metadata.is_empty()).then(|| Json(Value::Object(metadata.clone()))),
            };
            self.waits(waits).await?;
        }
        if is_final {
            let (waits, finale) = (!is_free, None);
            self.spoken.deeds.answer = Some(FinalAnswer { text, metadata, finale, waits });
        } else if is_free {
            let recorded = self.earlier.next().filter(|_| self.context.record.0.is_none());
            let now = || self.context.partial(self.turn, &text, metadata, &|_| None);
            let text = recorded.map_or_else(now, |it| it.text);
            let (turn, at) = (self.turn, None);
            self.send_partial(Response { is_final: false, turn, was_held: false, at, text })
                .await?;
        }
        Ok(())
    }

    /// Whether a response may be delivered at once. A final response waits for every call of this
    /// turn. A partial one waits for the turn's `sync` calls, and for the calls of the turn that it
    /// names. Each response also waits for earlier waiting responses. The agent's mind checks the
    /// calls and responses of earlier turns.
    fn is_free(&self, names: &[&str], is_final: bool) -> bool {
        let Deeds { calls, sync_calls, waiting_responses, .. } = self.spoken.deeds;
        let own = match is_final {
            true => calls == 0,
            false => sync_calls == 0 && !names.iter().any(|it| self.partials.has(it)),
        };
        own && waiting_responses == 0 && self.context.mind.is_free(names, is_final)
    }

    /// Records a response that has to wait.
    pub(super) async fn waits(&mut self, it: ResponseWaits) -> Result<(), Fault> {
        self.spoken.deeds.waiting_responses += 1;
        self.context.out.waits.send(Note(it)).await
    }
}
