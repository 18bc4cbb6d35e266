//! Prompts that don't fit the model's window: by an estimate before the model is asked, or by the
//! refusal of its provider. Old messages are hidden, and the agent has its turn again.

use pumphouse::model;
use pumphouse::model::{Model, Prompt};
use pumphouse::prelude::*;

use super::super::view::ClearContext;
use super::context::TurnContext;
use super::generation::Ending;
use super::mind::Mind;
use super::outcome::{Emissions, TurnOutcome};
use super::provider_limits::Refusal;
use super::settings::{Keep, OnFull};
use super::words::{CognitionOut, ContextFull};

impl Ending {
    /// Records that the provider refused the prompt as too long, if that is the error. Then nothing
    /// was spent, and the turn doesn't count.
    pub(super) fn note_refusal(&mut self, error: &model::Error) {
        self.too_long = Refusal::of(error);
        if self.too_long.is_some() {
            self.stop = CognitionOut::FULL.to_owned();
            (self.is_unasked, self.is_refused, self.model_is_down) = (true, false, false);
        }
    }
}

impl TurnContext {
    /// Estimates the tokens of a prompt. The provider's counts of the agent's earlier prompts in
    /// this thread correct the model's estimate.
    pub(super) fn prompt_tokens(&self, prompt: &Prompt) -> u64 {
        let model = &self.agent().model;
        self.mind.tokens(&model.describe(), model.prompt_tokens(prompt))
    }

    /// The most tokens that the model takes, as it declares them or as its refusals have shown.
    /// None if neither is known.
    pub(super) fn window(&self) -> Option<u64> {
        let model = &self.agent().model;
        self.mind.window(&model.describe(), model.window().map(u64::from))
    }

    /// Returns the tokens of a prompt that exceeds the model's window, and the window in tokens.
    /// The agent's own `max_tokens`, if it is set, has to fit in addition to the prompt. None if
    /// both fit, or if the window isn't known.
    pub(super) fn over_window(&self, prompt: &Prompt) -> Option<(u64, u64)> {
        if let Some(record) = &self.record.0 {
            // A replay takes the numbers from the log, since another version or tokenizer gives
            // other estimates.
            let mut then = record.iter().filter_map(Entry::decode_if::<ContextFull>);
            let then = then.find(|it| it.is_refused.is_none());
            return then.map(|it| (it.tokens, it.window));
        }
        let window = self.window()?;
        let reply = u64::from(self.agent().settings.max_tokens.unwrap_or(0));
        let tokens = self.prompt_tokens(prompt);
        (tokens + reply > window).then_some((tokens, window))
    }

    /// Returns the outcome for a prompt that doesn't fit the model's window. This is a clear, or a
    /// stop if nothing more can be hidden or the settings demand a stop. None for a prompt that
    /// fits.
    pub(super) async fn overflow(&self, prompt: &Prompt) -> Option<TurnOutcome> {
        let (tokens, window) = self.over_window(prompt)?;
        let full = ContextFull { tokens, window, keep: self.cleared(prompt), is_refused: None };
        let mut emissions = Emissions::default();
        Some(match self.clear(prompt, &full, &mut emissions).await {
            true => TurnOutcome::Full(emissions),
            false => TurnOutcome::Stopped(CognitionOut::FULL, too_long(&full), emissions),
        })
    }

    /// Ends the handling of a turn whose prompt the provider refused as too long: messages are
    /// hidden, and the next turn asks again. If nothing more can be hidden, or the settings demand
    /// it, the agent stops.
    pub(super) async fn after_refusal(
        &self,
        mut mind: Mind,
        until: u64,
        refusal: Refusal,
    ) -> Result<Emissions, Fault> {
        let system = self.system_prompt(&[]);
        let parts = (false, self.result_bytes(None));
        let prompt = self.build_prompt(system, mind.turns, until, &[], parts).await?.prompt;
        let full = self.full(&prompt, refusal);
        let mut emissions = Emissions::default();
        if !self.clear(&prompt, &full, &mut emissions).await {
            let text = too_long(&full);
            self.stop_work(&mut mind, &mut emissions, CognitionOut::FULL, text).await?;
            self.settle(&mut mind, &mut emissions).await?;
            return self.finish(&mind, emissions);
        }
        self.park(&mind, &mut emissions);
        Ok(emissions)
    }

    /// The record of a refusal. A replay takes it from the log.
    fn full(&self, prompt: &Prompt, Refusal { tokens, window }: Refusal) -> ContextFull {
        let mut recorded = self.record.0.iter().flatten();
        let recorded = recorded.find_map(Entry::decode_if::<ContextFull>);
        if let Some(then) = recorded.filter(|it| it.is_refused.is_some()) {
            return then;
        }
        let estimated = self.prompt_tokens(prompt);
        let tokens = tokens.unwrap_or(estimated.max(window.map_or(1, |it| it + 1)));
        // A declared window that the refused prompt would fit is too large.
        let declared = || self.window().unwrap_or(u64::MAX).min(tokens.saturating_sub(1));
        let window = window.unwrap_or_else(declared);
        ContextFull { tokens, window, keep: self.cleared(prompt), is_refused: Some(true) }
    }

    /// Records that a prompt doesn't fit, and asks for a clear. Returns whether there will be one.
    async fn clear(&self, prompt: &Prompt, full: &ContextFull, emissions: &mut Emissions) -> bool {
        emissions.add(Note(full.clone()));
        let Some(keep) = full.keep else { return false };
        if self.agent().settings.on_context_full == OnFull::Summarise
            && let Some(summary) = self.write_summary(prompt, keep).await
        {
            emissions.add(Note(summary));
        }
        emissions.add(To("view", ClearContext { keep }));
        true
    }

    /// The number of messages that stay in view if the prompt is cleared. None if it isn't.
    fn cleared(&self, prompt: &Prompt) -> Option<u64> {
        let stops = self.agent().settings.on_context_full == OnFull::Stop;
        self.keeps(prompt).filter(|_| !stops)
    }

    /// Returns the number of messages that stay in view when the prompt is cleared to fit the
    /// window. The setting `context_keep` gives this number. If there was a clear since the last
    /// prompt that fitted, the number is at most half of what that clear kept. None if that clear
    /// kept one message.
    pub(super) fn keeps(&self, prompt: &Prompt) -> Option<u64> {
        let keep = self.kept(self.agent().settings.context_keep, prompt);
        match self.mind.cleared {
            Some(1) => None,
            Some(kept) => Some((kept / 2).min(keep)),
            None => Some(keep),
        }
    }

    /// The number of messages that stay in view. For [`Keep::Tokens`], the first message and the
    /// newest messages that fit into the number of tokens are counted.
    fn kept(&self, keep: Keep, prompt: &Prompt) -> u64 {
        let model: &dyn Model = &*self.agent().model;
        let name = model.describe();
        match keep {
            Keep::Messages(count) => count.max(1),
            Keep::Tokens(most) => {
                let (mut count, mut sum) = (1, 0);
                for it in prompt.messages.iter().rev() {
                    sum += self.mind.tokens(&name, model.message_tokens(it));
                    if sum > most {
                        break;
                    }
                    count += 1;
                }
                count
            }
        }
    }
}

/// The reason of an agent that stops because its prompt doesn't fit.
fn too_long(ContextFull { tokens, window, .. }: &ContextFull) -> String {
    format!("The prompt has about {tokens} tokens, and the model {window}.")
}
