//! A generation: what the model writes, acted on while it is written.

use pumphouse::model::{Call, Piece, Prompt, Reply as ModelReply, Stop, Usage};
use pumphouse::prelude::*;
use pumphouse::reply::Markup;

use super::super::action::read::Mistakes;
use super::super::action::words::{Action, Dialect as ActionDialect, Mode};
use super::super::metadata::Said;
use super::hand::Turning;
use super::words::{CognitionReasoning, Delta, Notice, Repair, Response, Thought};
use super::write::{Heard, Writing};

/// What a generation came to.
#[derive(Default)]
pub(super) struct Spoken {
    pub(super) text: String,
    pub(super) stop: String,
    pub(super) error: Option<String>,
    pub(super) truncated: bool,
    pub(super) usage: Option<Usage>,
    pub(super) answer: Option<Answer>,
    /// A payload that ends the agent's work as a response does.
    pub(super) finale: Option<Element>,
    /// How many actions began that somebody waits for.
    pub(super) actions: usize,
    /// Whether it did anything.
    pub(super) did: bool,
}

/// The words of a final response, and where they stand.
pub(super) struct Answer {
    pub(super) text: String,
    pub(super) from: usize,
    pub(super) to: usize,
}

/// A generation under way.
pub(super) struct Speaking<'a> {
    it: &'a Turning,
    turn: u64,
    reasoning: String,
    spoken: Spoken,
    /// Whether something came behind the final response.
    is_late: bool,
}

impl<'a> Speaking<'a> {
    pub(super) fn new(it: &'a Turning, turn: u64) -> Speaking<'a> {
        let spoken = Spoken::default();
        Speaking { it, turn, reasoning: String::new(), spoken, is_late: false }
    }

    pub(super) async fn speak(mut self, prompt: Prompt, markup: Markup) -> Result<Spoken, Fault> {
        let agent = self.it.agent();
        let mut writing = Writing::new(self.turn, markup, agent.settings.dialect);
        match agent.model.turn(prompt).await {
            Ok(reply) => self.listen(reply, &mut writing).await?,
            Err(error) => self.spoken.error = Some(error.to_string()),
        }
        if !self.reasoning.is_empty() {
            let is_cut = self.spoken.error.is_some();
            let (turn, text) = (self.turn, std::mem::take(&mut self.reasoning));
            let it = CognitionReasoning { turn, is_partial: is_cut, was_interrupted: is_cut, text };
            self.it.out.reasoning.send(Note(it)).await?;
        }
        let (text, heard) = writing.finish();
        for heard in heard {
            self.act(heard).await?;
        }
        self.spoken.text = text;
        if self.spoken.error.is_some() {
            self.spoken.stop = "error".to_owned();
        }
        Ok(self.spoken)
    }

    async fn listen(
        &mut self,
        mut reply: Box<dyn ModelReply>,
        writing: &mut Writing,
    ) -> Result<(), Fault> {
        loop {
            match reply.next().await {
                Ok(Some(Piece::Text(text))) => {
                    for heard in writing.feed(&text) {
                        self.act(heard).await?;
                    }
                }
                Ok(Some(Piece::Reasoning(text))) => {
                    self.live("reasoning", text.clone());
                    self.reasoning += &text;
                }
                Ok(Some(Piece::Call(call))) => self.call(&call, writing).await?,
                Ok(Some(Piece::Usage(usage))) => self.spoken.usage = Some(usage),
                Ok(Some(Piece::Stop(stop))) => {
                    self.spoken.truncated = stop == Stop::MaxTokens;
                    self.spoken.stop = stop.as_str().to_owned();
                }
                Ok(Some(_)) => {}
                Ok(None) => return Ok(()),
                Err(error) => {
                    self.spoken.error = Some(error.to_string());
                    return Ok(());
                }
            }
        }
    }

    /// A call in the provider's own protocol means what a `<tool_use>` means.
    async fn call(&mut self, call: &Call, writing: &mut Writing) -> Result<(), Fault> {
        let mut text = String::from("<tool_use");
        for (name, value) in [("id", &call.id), ("name", &call.name)] {
            text += &format!(" {name}=\"");
            pumphouse::xml::escape_attribute(value, &mut text);
            text.push('"');
        }
        text += &format!(">{}</tool_use>\n", call.arguments);
        for heard in writing.feed(&text) {
            let heard = match heard {
                Heard::Call(it) => Heard::Call(Box::new(
                    it.map(|it| Action { dialect: Some(ActionDialect::Native), ..it }),
                )),
                it => it,
            };
            self.act(heard).await?;
        }
        Ok(())
    }

    fn live(&self, within: &str, text: String) {
        let within = within.to_owned();
        self.it.out.delta.live(&Delta { turn: self.turn, within, text });
    }

    async fn notice(&self, text: String, place: Option<(u32, u32)>) -> Result<(), Fault> {
        let (line, column) = place.unzip();
        self.it.out.notice.send(Note(Notice { turn: self.turn, line, column, text })).await
    }

    /// Does what the reply says.
    async fn act(&mut self, heard: Heard) -> Result<(), Fault> {
        let is_over = self.spoken.answer.is_some() || self.spoken.finale.is_some();
        if is_over && !matches!(heard, Heard::Text(..)) {
            if !std::mem::replace(&mut self.is_late, true) {
                let text = "What you wrote behind your final response did not run.";
                self.notice(text.to_owned(), None).await?;
            }
            return Ok(());
        }
        let (out, turn) = (&self.it.out, self.turn);
        match heard {
            Heard::Text(within, text) => self.live(within, text),
            Heard::Thought(text) if text.is_empty() => {}
            Heard::Thought(text) => out.thought.send(Note(Thought { turn, text })).await?,
            Heard::Call(it) => return self.action(*it).await,
            Heard::Response { is_final, text, from, to } => {
                return self.response(is_final, text, from, to).await;
            }
            Heard::Payload { local, element, is_core } => {
                return self.payload(local, element, is_core).await;
            }
            Heard::Metadata(it) => return self.metadata(it).await,
            Heard::Own => self.spoken.did = true,
            Heard::Meaningless(name) => {
                self.notice(format!("<{name}> has no meaning here, and nothing came of it."), None)
                    .await?;
            }
            Heard::Broken { text, line, column } => self.notice(text, Some((line, column))).await?,
            Heard::Repaired { text, line, column } => {
                out.repair.send(Note(Repair { turn, line, column, text })).await?;
            }
        }
        Ok(())
    }

    /// What it says of its own state is kept as far as it fits; the rest is told next turn.
    async fn metadata(&self, said: Result<Said, String>) -> Result<(), Fault> {
        let fields = &self.it.agent().settings.metadata;
        if fields.is_empty() {
            let text = "<metadata> has no meaning here: you have no fields.";
            return self.notice(text.to_owned(), None).await;
        }
        match said {
            Ok(said) => {
                let said = said.held_against(fields, self.turn);
                self.it.out.metadata.send(Note(said)).await
            }
            Err(why) => self.notice(format!("<metadata> was not kept: {why}"), None).await,
        }
    }

    async fn action(&mut self, it: Result<Action, Mistakes>) -> Result<(), Fault> {
        self.spoken.did = true;
        if self.turn == self.it.agent().settings.max_turns {
            let text = "This was your last turn: no action runs. Give your final response.";
            return self.notice(text.to_owned(), None).await;
        }
        match it {
            Ok(action) => {
                let is_awaited = action.mode != Mode::FireAndForget;
                self.spoken.actions += usize::from(is_awaited);
                self.it.out.act.send(To("action", action)).await
            }
            Err(mistakes) => {
                let name = if mistakes.id.is_empty() { "An action" } else { &*mistakes.id };
                self.notice(format!("{name} did not run: {mistakes}"), None).await
            }
        }
    }

    async fn response(
        &mut self,
        is_final: Option<bool>,
        text: String,
        from: usize,
        to: usize,
    ) -> Result<(), Fault> {
        if is_final.unwrap_or(self.it.agent().settings.final_default) {
            self.spoken.answer = Some(Answer { text, from, to });
            return Ok(());
        }
        self.spoken.did = true;
        let response = Response { turn: self.turn, ..self.it.response(&text, false, false) };
        self.it.out.partial.send(Partial(response)).await
    }

    async fn payload(
        &mut self,
        local: String,
        element: Result<Element, String>,
        is_core: bool,
    ) -> Result<(), Fault> {
        self.spoken.did = true;
        let element = match element {
            Ok(element) => element,
            Err(why) => return self.notice(format!("<{local}> was not sent: {why}"), None).await,
        };
        let settings = &self.it.agent().settings;
        if settings.final_payloads.contains(&local) {
            return self.finale(&local, &element).await;
        }
        let Some((taker, name)) = self.taker(&local, &element, is_core) else {
            return self.notice(format!("<{local}> was not sent: nobody takes it"), None).await;
        };
        match self.it.capabilities.understand(&element, &name) {
            Ok(element) => self.it.out.say.send(To(taker, element)).await,
            Err(fault) => self.misunderstood(&local, &fault).await,
        }
    }

    async fn misunderstood(&self, local: &str, fault: &Fault) -> Result<(), Fault> {
        let advice = fault.advice.as_deref().unwrap_or_default();
        self.notice(format!("<{local}> was not sent: {} {advice}", fault.message), None).await
    }

    /// A payload beside a response that ends the agent's work.
    async fn finale(&mut self, local: &str, element: &Element) -> Result<(), Fault> {
        let capabilities = &self.it.capabilities;
        let Some(name) = capabilities.named(local).first() else {
            return self.notice(format!("<{local}> was not sent: nobody knows it"), None).await;
        };
        match capabilities.understand(element, name) {
            Ok(element) => {
                self.spoken.finale = Some(element);
                Ok(())
            }
            Err(fault) => self.misunderstood(local, &fault).await,
        }
    }

    /// Who takes a payload that the agent wrote, and what its whole name is.
    fn taker(&self, local: &str, element: &Element, is_core: bool) -> Option<(String, Name)> {
        let seen = self.it.capabilities.seen_by(&self.it.agent().name);
        for name in seen.named(local) {
            let is_cores = name.namespace() == "https://xml-pipeline.org/ns/core/v1";
            if is_cores != is_core || ![name.namespace(), ""].contains(&element.namespace()) {
                continue;
            }
            if let Some(taker) = seen.takers(name).next() {
                return Some((taker.name.clone(), name.clone()));
            }
        }
        None
    }
}
