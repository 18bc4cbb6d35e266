//! A generation: what the model writes, acted on while it is written.

use pumphouse::model::{Piece, Prompt, Reply as ModelReply, Stop, Usage};
use pumphouse::prelude::*;

use super::super::action::read::Mistakes;
use super::super::action::words::{Action, ActionKind, Mode};
use super::super::metadata::Said;
use super::super::todo::words::{TodoComplete, TodoUntil};
use super::hand::{Told, Turning};
use super::words::{
    CognitionOut, CognitionReasoning, Delta, Interrupt, Notice, Repair, Response, Thought,
};
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
    /// How many actions began, and
    pub(super) began: usize,
    /// how many of them somebody waits for.
    pub(super) actions: usize,
    /// Whether it did anything.
    pub(super) did: bool,
    /// The checklists that it wrote, and
    pub(super) todos: Vec<TodoUntil>,
    /// those that it closed.
    pub(super) closed: Vec<u64>,
}

impl Spoken {
    /// Counts an action.
    pub(super) fn begins(&mut self, action: &Action) {
        self.began += 1;
        self.actions += usize::from(action.mode != Mode::FireAndForget);
    }

    /// Whether more was to come.
    pub(super) fn is_cut(&self) -> bool {
        self.error.is_some() || self.truncated
    }

    /// What the end of the words comes to.
    fn finished(&self, writing: Writing) -> (String, Vec<Heard>) {
        if self.is_cut() { writing.cut() } else { writing.finish() }
    }
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
    /// The partial responses that an earlier attempt sent: variables had the values of then.
    earlier: std::vec::IntoIter<Response>,
    reasoning: String,
    spoken: Spoken,
    /// Whether something came behind the final response.
    is_late: bool,
}

/// What a reply came to that was written to its end before a stop: nothing is sent again.
pub(super) fn recalled(it: &Turning, over: CognitionOut, told: &Told) -> Spoken {
    let CognitionOut { turn, stop, error, truncated, text, .. } = over;
    let settings = &it.agent().settings;
    let mut writing = Writing::new(turn, told.markup.clone(), settings);
    let mut spoken = Spoken { text, stop, error, truncated, ..Spoken::default() };
    let mut heard = writing.again(&spoken.text);
    heard.extend(spoken.finished(writing).1);
    for heard in heard {
        if spoken.answer.is_some() || spoken.finale.is_some() {
            break;
        }
        match heard {
            Heard::Call(call) => {
                spoken.did = true;
                if let Ok(it) = *call
                    && turn < settings.max_turns
                {
                    spoken.begins(&it);
                }
            }
            Heard::Response { is_final, text, from, to }
                if is_final.unwrap_or(settings.final_default) =>
            {
                spoken.answer = Some(Answer { text, from, to });
            }
            Heard::Payload { local, element: Ok(element), .. }
                if settings.final_payloads.contains(&local) =>
            {
                let name = open_name(&it.capabilities, &local);
                spoken.finale =
                    name.and_then(|name| it.capabilities.understand(&element, name).ok());
            }
            Heard::Response { .. } | Heard::Payload { .. } | Heard::Own => spoken.did = true,
            _ => {}
        }
    }
    spoken
}

/// The first payload of this local name that isn't the pump's own to say.
fn open_name<'a>(all: &'a Capabilities, local: &str) -> Option<&'a Name> {
    let is_open = |it: &&Name| all.schema(it).is_some_and(|it| !it.reserved);
    all.named(local).iter().find(is_open)
}

impl<'a> Speaking<'a> {
    pub(super) fn new(it: &'a Turning, turn: u64, earlier: &[Entry]) -> Speaking<'a> {
        let spoken = Spoken::default();
        let earlier = earlier.iter().filter_map(|it| it.decode().ok());
        let earlier = earlier.collect::<Vec<Response>>().into_iter();
        Speaking { it, turn, earlier, reasoning: String::new(), spoken, is_late: false }
    }

    pub(super) async fn speak(mut self, prompt: Prompt, told: &Told) -> Result<Spoken, Fault> {
        let agent = self.it.agent();
        let mut writing = Writing::new(self.turn, told.markup.clone(), &agent.settings);
        match &self.it.record.0 {
            Some(record) => self.reads(record, &mut writing).await?,
            None => self.generates(prompt, &mut writing, told).await?,
        }
        if !self.reasoning.is_empty() {
            let is_cut = self.spoken.error.is_some();
            let (turn, text) = (self.turn, std::mem::take(&mut self.reasoning));
            let it = CognitionReasoning { turn, is_partial: is_cut, was_interrupted: is_cut, text };
            self.it.out.reasoning.send(Note(it)).await?;
        }
        let (text, heard) = self.spoken.finished(writing);
        for heard in heard {
            self.act(heard).await?;
        }
        self.spoken.text = text;
        Ok(self.spoken)
    }

    /// Has the model write, unless somebody interrupts that.
    async fn generates(
        &mut self,
        prompt: Prompt,
        writing: &mut Writing,
        told: &Told,
    ) -> Result<(), Fault> {
        let (model, arrivals) = (&self.it.agent().model, &self.it.arrivals);
        match arrivals.unless::<Interrupt, _>(model.turn(prompt)).await {
            Some(Ok(reply)) => self.listen(reply, writing, told).await?,
            Some(Err(error)) => self.spoken.error = Some(error.to_string()),
            None => self.is_interrupted(),
        }
        if self.spoken.error.is_some() && self.spoken.stop != Interrupt::WORD {
            self.spoken.stop = "error".to_owned();
        }
        // A reply that is read from a log is as it was recorded there: 0.1.0 said otherwise.
        self.spoken.truncated |= self.spoken.error.is_some();
        Ok(())
    }

    fn is_interrupted(&mut self) {
        self.spoken.error = Some(Interrupt::ERROR.to_owned());
        self.spoken.stop = Interrupt::WORD.to_owned();
    }

    /// Takes what the model said then: nobody asks it again.
    async fn reads(&mut self, record: &[Entry], writing: &mut Writing) -> Result<(), Fault> {
        let Some(over) = record.iter().find_map(|it| it.decode_if::<CognitionOut>()) else {
            self.spoken.error = Some("the log has no reply".to_owned());
            return Ok(());
        };
        let reasoning = record.iter().find_map(|it| it.decode_if::<CognitionReasoning>());
        self.reasoning = reasoning.map(|it| it.text).unwrap_or_default();
        let CognitionOut { stop, error, truncated, tokens_in, tokens_out, text, .. } = over;
        self.spoken.usage = tokens_in.zip(tokens_out).map(|(from, to)| Usage::new(from, to));
        self.spoken = Spoken { stop, error, truncated, ..std::mem::take(&mut self.spoken) };
        for heard in writing.again(&text) {
            self.act(heard).await?;
        }
        Ok(())
    }

    async fn listen(
        &mut self,
        mut reply: Box<dyn ModelReply>,
        writing: &mut Writing,
        told: &Told,
    ) -> Result<(), Fault> {
        loop {
            let piece = self.it.arrivals.unless::<Interrupt, _>(reply.next()).await;
            let Some(piece) = piece else {
                self.is_interrupted();
                return Ok(());
            };
            match piece {
                Ok(Some(Piece::Text(text))) => {
                    for heard in writing.feed(&text) {
                        self.act(heard).await?;
                    }
                }
                Ok(Some(Piece::Reasoning(text))) => {
                    self.live("reasoning", text.clone());
                    self.reasoning += &text;
                }
                Ok(Some(Piece::Call(call))) => {
                    for heard in writing.call(&told.tools.meant(call)) {
                        self.act(heard).await?;
                    }
                }
                Ok(Some(Piece::Usage(usage))) => self.spoken.usage = Some(usage),
                Ok(Some(Piece::Stop(stop))) => {
                    self.spoken.truncated = stop == Stop::MaxTokens;
                    self.spoken.stop = stop.as_str().to_owned();
                }
                Ok(Some(Piece::Refusal(why))) => {
                    self.spoken.error = Some(format!("the model declined: {why}"));
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
            Ok(it) if !self.may(&it) => {
                let why = Fault::undeliverable().message;
                self.notice(format!("{} did not run: {why}", it.id), None).await
            }
            Ok(action) => {
                self.spoken.begins(&action);
                self.it.out.act.send(To("action", action)).await
            }
            Err(mistakes) => {
                let name = if mistakes.id.is_empty() { "An action" } else { &*mistakes.id };
                self.notice(format!("{name} did not run: {mistakes}"), None).await
            }
        }
    }

    /// Whether it may take an action, if that changes its own surroundings.
    fn may(&self, it: &Action) -> bool {
        let is_internal = matches!(it.kind, ActionKind::Internal | ActionKind::ContextFeed);
        !is_internal || self.it.agent().settings.internal_actions.allows(&it.name)
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
        let now = || Response { turn: self.turn, ..self.it.response(&text, false, false) };
        let response = self.earlier.next().unwrap_or_else(now);
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
            Ok(element) => {
                if name == TodoUntil::NAME {
                    self.spoken.todos.extend(TodoUntil::read(element.view()));
                } else if name == TodoComplete::NAME {
                    let closed = TodoComplete::read(element.view());
                    self.spoken.closed.extend(closed.map(|it| it.id));
                }
                self.it.out.say.send(To(taker, element)).await
            }
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
        let Some(name) = open_name(capabilities, local) else {
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
            // What is the pump's own to say is nobody's to write.
            let is_reserved = seen.schema(name).is_some_and(|it| it.reserved);
            let is_meant = [name.namespace(), ""].contains(&element.namespace());
            if is_cores != is_core || is_reserved || !is_meant {
                continue;
            }
            if let Some(taker) = seen.takers(name).next() {
                return Some((taker.name.clone(), name.clone()));
            }
        }
        None
    }
}
