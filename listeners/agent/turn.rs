//! A turn shows the thread to the model, and converts the model's reply into payloads while the
//! model writes it. Between turns, waiting responses are delivered or withdrawn, and work ends.

use pumphouse::listener::{Answer, NoteAbove};
use pumphouse::model::estimate::{TOKEN_BYTES, prompt_bytes};
use pumphouse::model::{Prompt, Stop, Usage};
use pumphouse::prelude::*;

use super::super::feed::PromptFeeds;
use super::Agent;
use super::between_turns::{delivered_as_written, whole};
use super::charge::Prepared;
use super::context::{MetadataSet, TurnContext};
use super::escape;
use super::generation::{Attempted, FinalAnswer, Generation, OngoingGeneration};
use super::mind::{Mind, Next, PendingResponse, Rules};
use super::outcome::{Emissions, TurnOutcome};
use super::prompt_order::ordered;
use super::provider_limits::{FILTERED, rate_limit_timer, rate_limited, wait_ms};
use super::render::{Form, RENDERING, RESULT_BYTES, render};
use super::settings::Dialect;
use super::system_prompt::SystemPrompt;
use super::words::{
    AgentProgress, CognitionIn, CognitionOut, CognitionSystem, CognitionTools, Correction,
    Interrupt, Limited, RULES, Response,
};

/// The maximum number of bytes of a turn's gist, which the agent's caller gets.
const GIST_BYTES_MAX: usize = 400;
/// The maximum number of characters of a reply that a correction quotes.
const QUOTED: usize = 40;

pub(super) async fn turn(context: TurnContext, _: Element) -> Result<Emissions, Fault> {
    context.handle().await
}

pub(super) async fn interrupted(context: TurnContext, _: Interrupt) -> Result<Emissions, Fault> {
    context.handle().await
}

impl TurnContext {
    pub(super) fn agent(&self) -> &Agent {
        &self.state.0.agent
    }

    pub(super) fn rules(&self) -> Rules {
        let settings = &self.agent().settings;
        let mut rules = Rules::new(settings.final_with_actions, settings.max_turns);
        rules.wake = settings.wake;
        rules
    }

    /// The number of the last entry that this handling knows of.
    pub(super) fn until(&self) -> u64 {
        let last = self.queue.0.last().map_or(0, Entry::seq);
        last.max(self.message.seq()).max(self.mind.said)
    }

    async fn handle(mut self) -> Result<Emissions, Fault> {
        self.take_over_metadata().await?;
        if let Some(begun) = self.begun().await? {
            return Box::pin(self.resume(begun)).await;
        }
        self.settle_open().await?;
        let (mut mind, mut emissions) = (Mind::clone(&self.mind), Emissions::default());
        if mind.is_turning() {
            // An earlier handling failed in the middle of this turn, so the turn ends here with an
            // error.
            let mut it = Generation::cut("its handling failed");
            it.ending.stop = "error".to_owned();
            let over = self.cognition_out(mind.turns, &it);
            mind.end_turn(&over);
            emissions.add(To("action", over));
        } else if mind.next(&self.rules()) == Next::Turn {
            // Most handlings begin no turn. Boxing the turn keeps their futures small.
            return Box::pin(self.turn(mind)).await;
        }
        self.settle(&mut mind, &mut emissions).await?;
        self.finish(&mind, emissions)
    }

    async fn turn(&self, mut mind: Mind) -> Result<Emissions, Fault> {
        let turn = mind.turns + 1;
        if let Some(mut emissions) = self.request_feeds(turn) {
            self.park(&mind, &mut emissions);
            return Ok(emissions);
        }
        let until = self.until();
        match self.generate(turn, until, &[]).await? {
            TurnOutcome::Turned(it) => self.end_turn(mind, turn, until, *it).await,
            TurnOutcome::Full(mut emissions) => {
                self.park(&mind, &mut emissions);
                Ok(emissions)
            }
            TurnOutcome::Interrupted => {
                // The interrupt is the next message, and ends the work.
                let mut emissions = Emissions::default();
                self.park(&mind, &mut emissions);
                Ok(emissions)
            }
            TurnOutcome::Stopped(reason, text, mut emissions) => {
                self.stop_work(&mut mind, &mut emissions, reason, text).await?;
                self.settle(&mut mind, &mut emissions).await?;
                self.finish(&mind, emissions)
            }
        }
    }

    /// Shows the model the thread up to the entry `until`, and turns the reply into payloads. The
    /// entries that an earlier attempt sent are sent again unchanged.
    pub(super) async fn generate(
        &self,
        turn: u64,
        until: u64,
        earlier: &[Entry],
    ) -> Result<TurnOutcome, Fault> {
        let system = self.system_prompt(earlier);
        let mut it = match self.prepare(system, turn, until, earlier).await? {
            Ok(it) => it,
            Err(spoke) => return Ok(spoke),
        };
        self.record_prompt(system, earlier).await?;
        if let Some(handed) = self.metadata.handed.clone() {
            let set = MetadataSet { metadata: Note(handed), changed: None, shared: None };
            self.out.metadata.send(set).await?;
        }
        for it in std::mem::take(&mut it.changed) {
            self.out.feed.send(Note(it)).await?;
        }
        self.record_begin(turn, until, &it).await?;
        let ongoing = OngoingGeneration::new(self, turn, it.is_last, earlier);
        let mut spoken = ongoing.speak(it.prompt, system, &it.reserved).await?;
        spoken.charge = self.settlement(&it.reserved, &spoken);
        spoken.is_last = it.is_last;
        Ok(TurnOutcome::Turned(Box::new(spoken)))
    }

    /// The mark of the turn's prompt: that of the thread, or the recorded one if the log has the
    /// turn's beginning.
    pub(super) fn mark(&self, earlier: &[Entry]) -> String {
        self.begun_as(earlier).map_or_else(|| self.mark.0.clone(), |it| it.mark)
    }

    /// The system prompt of the turn.
    pub(super) fn system_prompt(&self, earlier: &[Entry]) -> &SystemPrompt {
        self.state.0.system_prompt(&self.capabilities, self.is_structured(earlier))
    }

    /// The recorded beginning of the turn, in a replay or if the pump stopped during the turn.
    /// Otherwise None.
    pub(super) fn begun_as(&self, earlier: &[Entry]) -> Option<CognitionIn> {
        let recorded = self.record.0.iter().flatten();
        earlier.iter().chain(recorded).find_map(|it| it.decode_if::<CognitionIn>())
    }

    /// Records the system prompt and the tools that the model is offered, each only if it is new.
    async fn record_prompt(&self, system: &SystemPrompt, earlier: &[Entry]) -> Result<(), Fault> {
        let mut tools = CognitionTools::from(&**system.tools.all());
        tools.format = system.format.as_ref().map(|it| (&it.format).into());
        let (has_text, has_tools) = match earlier {
            [] => (self.mind.system.as_deref() == Some(&system.text), *self.mind.tools == tools),
            sent => (
                !sent.iter().any(Entry::is::<CognitionSystem>),
                !sent.iter().any(Entry::is::<CognitionTools>),
            ),
        };
        if !has_text {
            let text = system.text.clone();
            self.out.system.send(Note(CognitionSystem { text })).await?;
        }
        if !has_tools {
            self.out.tools.send(Note(tools)).await?;
        }
        Ok(())
    }

    pub(super) async fn prompt(
        &self,
        system: &SystemPrompt,
        turn: u64,
        until: u64,
        (form, feeds): (Form<'_>, &PromptFeeds),
    ) -> Result<Prompt, Fault> {
        let agent = self.agent();
        let mut view = self.view.all().await?;
        view.retain(|it| it.seq() <= until);
        self.shown.note(&view, &self.mind.answered_by(until));
        let view = ordered(&agent.name, view, &self.mind.waiting(until));
        let prompt = render(form, &agent.name, &agent.root(), &system.text, &view, feeds);
        let mut prompt = self.of_turn(turn, prompt);
        prompt.tools.clone_from(system.tools.all());
        prompt.format = system.format.as_ref().map(|it| it.format.clone());
        prompt.max_tokens = agent.settings.max_tokens;
        prompt.temperature = agent.settings.temperature;
        Ok(prompt)
    }

    /// Records the beginning of a turn, with the data from which the prompt can be rebuilt.
    async fn record_begin(&self, turn: u64, until: u64, it: &Prepared) -> Result<(), Fault> {
        let (agent, prompt) = (self.agent(), &it.prompt);
        let begun = CognitionIn {
            turn,
            model: agent.model.describe(),
            until,
            rendering: RENDERING,
            mark: it.mark.clone(),
            rules: RULES,
            asker: self.mind.work.as_ref().map(|it| it.asker.name.clone()),
            is_last: it.is_last.then_some(true),
            waiting: Some(self.mind.waiting(until)).filter(|it| !it.is_empty()),
            digest: prompt.digest().to_string(),
            bytes: prompt_bytes(prompt),
            tokens_estimated: Some(agent.model.prompt_tokens(prompt)),
            dispatch: agent.settings.dispatch,
            action_limits: Limited::of(&agent.settings.action_limits),
            max_tokens: prompt.max_tokens,
            temperature: agent.settings.temperature,
            result_bytes_max: Some(it.result_bytes).filter(|it| *it != RESULT_BYTES),
            attachments: it.attachments.clone(),
            skipped: it.skipped.clone(),
        };
        self.out.begun.send(Note(begun)).await
    }

    /// Records the turn's charge and outcome, and returns the emissions of the handling that follow
    /// the turn.
    pub(super) async fn end_turn(
        &self,
        mut mind: Mind,
        turn: u64,
        until: u64,
        mut it: Generation,
    ) -> Result<Emissions, Fault> {
        let is_last = it.is_last || self.is_last_by_turns();
        let over = self.cognition_out(turn, &it);
        // The charge and the outcome keep their places in the thread, and are in the log even if
        // this handling fails from here on. They aren't awaited, so they usually reach the log in
        // one commit with the handling's emissions.
        drop(it.charge.take().map(|it| self.out.charge.send(it.into())));
        drop(self.out.over.send(To("action", over.clone())));
        mind.record_silent_turn(turn, until, is_last);
        mind.end_turn(&over);
        match it.ending.too_long {
            Some(refusal) => self.after_refusal(mind, until, refusal).await,
            None => self.after_turn(mind, it).await,
        }
    }

    /// The record of a turn's end.
    pub(super) fn cognition_out(&self, turn: u64, it: &Generation) -> CognitionOut {
        let some = |of: fn(Usage) -> u64| it.reply.usage.map(of).filter(|it| *it > 0);
        CognitionOut {
            turn,
            stop: escape::recorded(&it.ending.stop).into_owned(),
            is_partial: it.ending.is_cut(),
            truncated: it.ending.truncated,
            error: it.ending.error.clone(),
            refused: it.ending.is_refused.then_some(true),
            waits_ms: self.rate_limit_wait(it),
            completion_percentage: it.percent(self.agent().settings.max_tokens),
            tokens_in: it.reply.usage.map(|it| it.input),
            tokens_out: it.reply.usage.map(|it| it.output),
            tokens_cached: some(|it| it.cached),
            tokens_cache_written: some(|it| it.cache_written),
            tokens_reasoning: some(|it| it.reasoning),
            answered_by: it.reply.answered_by.clone(),
            is_idle: it.is_idle(),
            calls: Some(it.reply.natives.clone()).filter(|it| !it.is_empty()),
            went_out: it.deeds.delivers_cut.then_some(true),
            wrote_root: it.deeds.wants_turn.then_some(true),
            awaits: it.deeds.awaits.clone(),
            text: it.reply.text.clone(),
        }
    }

    /// Whether the thread is below another thread.
    fn is_below_another(&self) -> bool {
        let thread = self.message.thread();
        thread.tree() != *thread
    }

    /// The time before the agent asks its provider again, in milliseconds, as [`wait_ms`] computes
    /// it.
    pub(super) fn rate_limit_wait(&self, it: &Generation) -> Option<u64> {
        wait_ms(it.ending.limited, self.agent().settings.rate_limit_wait_max)
    }

    /// Ends the handling of a finished turn. An answer that waits for nothing is delivered now. The
    /// agent's next handling, which also sees newer messages, delivers or withdraws other answers
    /// and decides whether another turn follows.
    pub(super) async fn after_turn(
        &self,
        mut mind: Mind,
        it: Generation,
    ) -> Result<Emissions, Fault> {
        let mut emissions = Emissions::default();
        let is_interrupted = it.ending.stop == Interrupt::WORD;
        let is_filtered = it.ending.stop == Stop::Filtered.as_str();
        if is_filtered && it.deeds.answer.is_none() {
            let text = format!("[{FILTERED} Say it in other words.]");
            emissions.add(Note(Correction { turn: mind.turns, text }));
        } else if it.is_idle() {
            emissions.add(Note(Correction {
                turn: mind.turns,
                text: match fence(&it.reply.outside) {
                    Some(mark) => fenced(mark),
                    None => it
                        .empty()
                        .unwrap_or_else(|| self.correction(&it.reply.outside, &it.reply.text)),
                },
            }));
        }
        if let Some(answer) = it.deeds.answer.as_ref().filter(|it| !it.waits) {
            self.answer(&mut mind, &it, answer, &mut emissions).await?;
        }
        if let Some(waits_ms) = self.rate_limit_wait(&it) {
            emissions.add(To("timer", rate_limit_timer(waits_ms)));
            if self.is_below_another() {
                emissions.add(NoteAbove(rate_limited(waits_ms)));
            }
        }
        let gist = it.deeds.gist.text();
        if mind.work.is_some() && self.is_below_another() && !gist.is_empty() {
            let text = gist[..gist.floor_char_boundary(GIST_BYTES_MAX)].to_owned();
            emissions.add(NoteAbove(AgentProgress { turn: mind.turns, text }));
        }
        // The next handling will see the results that the turn's actions have by then.
        if mind.work.is_some() && !is_interrupted {
            emissions.add(self.own_root(&mind)?);
        }
        let is_held = it.deeds.answer.is_some_and(|it| it.waits);
        self.park_messages(&mind, is_held, &mut emissions);
        Ok(emissions)
    }

    /// Delivers an answer that waits for nothing, or holds it back because references in it lead to
    /// nothing.
    async fn answer(
        &self,
        mind: &mut Mind,
        it: &Generation,
        answer: &FinalAnswer,
        emissions: &mut Emissions,
    ) -> Result<(), Fault> {
        let turn = mind.turns;
        let filled = answer.finale.is_none().then(|| {
            let pending = PendingResponse::now(turn, &answer.text, answer.metadata.clone());
            self.filled(&pending, mind, &|_| None)
        });
        let is_last = it.is_last || self.is_last_by_turns() || mind.was_last_turn();
        if let Some(it) = &filled {
            if self.holds_back(mind, is_last, &it.lost) {
                let written = answer.text.trim().to_owned();
                emissions.add(Note(self.held_back(turn, written, it)));
                mind.hold_back(turn, it.text.clone());
                return Ok(());
            }
            if !it.lost.is_empty() {
                emissions.add(Note(delivered_as_written(turn, &it.lost)));
            }
        }
        let asked = self.entries(&mind.answered()).await?;
        if let Some(left) = self.feed_inputs.todos.left_after(&it.deeds.todos, &it.deeds.closed) {
            emissions.add(Answer::partial(asked.clone(), left));
        }
        match (&answer.finale, filled) {
            (Some(element), _) => emissions.add(Answer::new(asked, element.clone())),
            (None, filled) => {
                let text = whole(mind, filled.map(|it| it.text).unwrap_or_default());
                let (was_held, at) = (false, None);
                let response = Response { is_final: true, turn, was_held, at, text };
                emissions.add(Answer::new(asked, response));
            }
        }
        mind.close_response(true, false);
        Ok(())
    }
}

impl TurnContext {
    /// The correction for a reply that reached no receiver. It speaks of what this agent writes:
    /// plain text or elements, calls of the provider's protocol or elements.
    fn correction(&self, outside: &str, reply: &str) -> String {
        let (outside, reply) = (outside.trim(), reply.trim());
        let (quoted, why) = match outside {
            "" => (reply, "."),
            _ => (outside, ": it stands outside of all elements."),
        };
        let what = match quoted.char_indices().nth(QUOTED) {
            _ if quoted.is_empty() => "Your reply was empty.".to_owned(),
            None => format!("\"{quoted}\" reached nobody{why}"),
            Some((at, _)) => format!("\"{}…\" reached nobody{why}", &quoted[..at]),
        };
        let settings = &self.agent().settings;
        let answer = match settings.text_is_response() {
            true => "Answer in plain text",
            false => "Answer within <response>…</response>",
        };
        let call = match settings.dialect {
            Dialect::Native => "call a tool",
            Dialect::ToolUse => "begin a <tool_use>",
            Dialect::Tags => "begin an <action>",
        };
        format!("[{what} {answer}, or {call}.]")
    }

    /// The text of a reply as its response, if the settings allow this. None if the provider's
    /// filter stopped the reply, or if the text is a code fence with one of the tags in [`FENCED`].
    pub(super) fn words_as_response(
        &self,
        it: &Generation,
        (from, to): (usize, usize),
    ) -> Option<String> {
        let is_response =
            self.agent().settings.text_is_response() && it.ending.stop != Stop::Filtered.as_str();
        let words = it.reply.text.get(from..to).filter(|_| is_response)?;
        let is_fenced = fence(words).is_some() && FENCED.iter().any(|tag| words.contains(tag));
        (!is_fenced).then(|| words.to_owned())
    }
}

/// Tags in a code fence that show that the model meant to write elements.
const FENCED: [&str; 6] =
    ["<action", "<metadata", "<response", "<thought", "<tool_call", "<tool_use"];

/// Returns the first line of a text that is one code fence as a whole. None for any other text.
fn fence(text: &str) -> Option<&str> {
    let text = text.trim();
    let mark = text.chars().next().filter(|it| matches!(it, '`' | '~'))?;
    let (open, inside) = text.split_once('\n')?;
    let bare = open.trim_start_matches(mark);
    let count = open.len() - bare.len();
    let closes = |line: &str| {
        let rest = line.trim().trim_start_matches(mark);
        rest.is_empty() && line.trim().len() >= count
    };
    let is_fence = count >= 3 && !(mark == '`' && bare.contains(mark));
    let first_close = inside.lines().position(closes);
    let is_whole = first_close.is_none_or(|at| at + 1 == inside.lines().count());
    (is_fence && is_whole).then(|| open.trim_end())
}

/// The correction for a reply that is nothing but one code fence.
fn fenced(open: &str) -> String {
    format!(
        "[Your whole reply stands in a code fence ({open}), and what stands in code does nothing. \
         Write it again without the fence.]"
    )
}

impl Generation {
    /// The correction of a reply that was cut before it said anything. None for any other reply.
    fn empty(&self) -> Option<String> {
        let is_empty = self.is_inactive() && self.reply.outside.trim().is_empty();
        self.cut_short().filter(|_| is_empty)?.nothing()
    }

    /// Whether the reply had no effect, so that the model gets a correction. Such a reply is empty,
    /// or has text outside of elements and nothing else but thoughts.
    fn is_idle(&self) -> bool {
        // A thought that took the whole reply leads nowhere.
        let is_only_thought =
            self.reply.outside.trim().is_empty() && self.deeds.gist.thought.is_some();
        let is_said = !is_only_thought || self.ending.truncated;
        self.is_inactive() && self.ending.error.is_none() && self.deeds.answer.is_none() && is_said
    }

    /// Whether the reply didn't try to do anything.
    fn is_inactive(&self) -> bool {
        self.deeds.attempted == Attempted::Nothing
    }

    /// The part of a failed reply that had arrived: its tokens, reported or estimated, in percent
    /// of `max_tokens`, at most 99. None if the reply didn't fail or has no limit.
    fn percent(&self, max_tokens: Option<u32>) -> Option<u32> {
        let most = u64::from(max_tokens.filter(|it| *it > 0)?);
        self.ending.error.as_ref()?;
        let guessed = self.reply.text.len() as u64 / TOKEN_BYTES;
        let tokens = self.reply.usage.map_or(guessed, |it| it.output);
        u32::try_from((tokens.saturating_mul(100) / most).min(99)).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_of_tokens_that_cannot_be_is_a_reply_that_had_almost_arrived() {
        let usage = Some(Usage::new(0, u64::MAX));
        let mut failed = Generation::cut("the model failed");
        failed.reply.usage = usage;
        assert_eq!(failed.percent(Some(u32::MAX)), Some(99));
    }
}
