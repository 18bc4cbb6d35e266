//! What a turn reserves of its tree's budget before its model is asked, and what it settles once
//! it is over. Where the budget has no room for a whole turn, it may have some for a last one.

use pumphouse::model::estimate::{TOKEN_BYTES, tokens_of_bytes};
use pumphouse::model::{self, Kind, Prompt, Usage};
use pumphouse::prelude::*;
use pumphouse::wire::budget::{self, BudgetKey};
use pumphouse::wire::fault::Left;

use super::super::feed::Shown;
use super::super::feed::words::ContextFeed;
use super::context::TurnContext;
use super::escape;
use super::generation::Generation;
use super::outcome::{Emissions, TurnOutcome};
use super::provider::{is_refused, limited};
use super::render::Form;
use super::system::SystemPrompt;
use super::words::{CognitionIn, Interrupt, Stopped};

/// How few bytes of a result a prompt shows at the least.
const RESULT_BYTES_MIN: u64 = 512;
/// How many tokens a reply may have where neither its agent nor its model says.
const REPLY_TOKENS: u64 = 4_096;
/// How many tokens the reply of a last turn has room for at the least.
const REPLY_TOKENS_MIN: u64 = 256;

/// A turn whose reservation is made.
pub(super) struct Prepared {
    pub(super) prompt: Prompt,
    /// What is new of what the prompt shows beside the history.
    pub(super) changed: Vec<ContextFeed>,
    /// Whether the agent has no further turn.
    pub(super) is_last: bool,
    /// How many bytes of a result it shows.
    pub(super) result_bytes: u64,
    /// The media types of attachments that it shows.
    pub(super) attachments: Vec<String>,
    pub(super) reserved: budget::Charge,
}

/// The reservations among the entries of a handling, in their order.
fn reservations(sent: &[Entry]) -> impl Iterator<Item = (&Entry, budget::Charge)> {
    let charges = sent.iter().filter_map(|it| Some((it, it.decode_if::<budget::Charge>()?)));
    charges.filter(|(_, it)| !it.settled)
}

/// The settlements among them.
fn settlements(sent: &[Entry]) -> impl Iterator<Item = budget::Charge> {
    sent.iter().filter_map(Entry::decode_if::<budget::Charge>).filter(|it| it.settled)
}

/// The reservation that an earlier attempt made.
fn held(sent: &[Entry]) -> Option<budget::Charge> {
    reservations(sent).find(|(entry, _)| !entry.is_refused()).map(|(_, it)| it)
}

impl TurnContext {
    /// Makes the prompt of a turn and reserves what it may cost, waiting for others where there is
    /// room but for them. What an earlier attempt reserved is kept.
    pub(super) async fn prepare(
        &self,
        told: &SystemPrompt,
        turn: u64,
        until: u64,
        earlier: &[Entry],
    ) -> Result<Result<Prepared, TurnOutcome>, Fault> {
        let begun = self.begun_as(earlier);
        let was_last = begun.as_ref().filter(|it| it.is_last == Some(true));
        let is_short = was_last.is_some() && !self.is_last_by_turns();
        let mut most = self.result_bytes(begun.as_ref());
        let mut it = self.build_prompt(told, turn, until, earlier, (is_short, most)).await?;
        // Where no more can be hidden, results are cut shorter.
        while begun.is_none()
            && most > RESULT_BYTES_MIN
            && self.over_window(&it.prompt).is_some()
            && self.keeps(&it.prompt).is_none()
        {
            most = (most / 4).max(RESULT_BYTES_MIN);
            it = self.build_prompt(told, turn, until, earlier, (is_short, most)).await?;
        }
        // What is left bounds the reply of a last turn.
        let mut bound = was_last.and_then(|it| it.max_tokens);
        it.prompt.max_tokens = bound.or(it.prompt.max_tokens);
        if let Some(spoke) = self.overflow(&it.prompt).await {
            return Ok(Err(spoke));
        }
        if let Some(record) = &self.record.0 {
            return self.replay_reservation(it, record, begun.is_some()).await;
        }
        if self.attempt.0 > 1
            && let Some(reserved) = held(&self.sent.sent().await?)
        {
            // The pump finds it in the log, and books nothing.
            self.out.charge.send(reserved.clone().into()).await?;
            return Ok(Ok(Prepared { reserved, ..it }));
        }
        loop {
            it.reserved = self.reservation(&it.prompt);
            let charge = self.out.charge.send(it.reserved.clone().into());
            let fault = match self.arrivals.unless::<Interrupt, _>(charge).await {
                Some(Ok(())) => return Ok(Ok(it)),
                Some(Err(fault)) => fault,
                None => return Ok(Err(TurnOutcome::Interrupted)),
            };
            let last = self.build_prompt(told, turn, until, earlier, (true, most)).await?;
            let room = self.room(&last.prompt, fault.left());
            let room = room.filter(|it| bound.is_none_or(|before| *it < before));
            if room.is_none() {
                return Ok(Err(TurnOutcome::Stopped(
                    Stopped::BUDGET,
                    fault.message,
                    Emissions::default(),
                )));
            }
            (it, bound) = (last, room);
            it.prompt.max_tokens = bound;
        }
    }

    /// Repeats a recorded charge in a replay: the log has its amount and its outcome.
    async fn replay_reservation(
        &self,
        mut it: Prepared,
        record: &[Entry],
        has_begun: bool,
    ) -> Result<Result<Prepared, TurnOutcome>, Fault> {
        let mut refused = None;
        for (_, reserved) in reservations(record) {
            refused = self.out.charge.send(reserved.clone().into()).await.err();
            it.reserved = reserved;
        }
        Ok(match refused {
            Some(it) => {
                Err(TurnOutcome::Stopped(Stopped::BUDGET, it.message, Emissions::default()))
            }
            None if has_begun => Ok(it),
            // It was interrupted while it waited.
            None => Err(TurnOutcome::Interrupted),
        })
    }

    /// The prompt of a turn, and what it shows beside the history.
    async fn build_prompt(
        &self,
        told: &SystemPrompt,
        turn: u64,
        until: u64,
        earlier: &[Entry],
        (is_short, result_bytes): (bool, u64),
    ) -> Result<Prepared, Fault> {
        let (feeds, changed) = match earlier {
            [] => self.feeds(turn, is_short),
            sent => {
                let mut shown = Shown::clone(&self.feed_inputs.feeds);
                sent.iter().for_each(|it| shown.apply(it));
                let recorded = sent.iter().filter_map(|it| it.decode().ok()).collect();
                (shown.of(&self.agent().name), recorded)
            }
        };
        let attachments = self.attachments(earlier);
        let form = Form::new(self.form(earlier).0);
        let form = Form { result_bytes, attachments: &attachments, ..form };
        let form = form.offering(told.tools.all());
        let mut prompt = self.prompt(told, turn, until, (form, &feeds)).await?;
        let (is_last, reserved) = (is_short || self.is_last_by_turns(), budget::Charge::default());
        prompt.without_calls = is_last;
        Ok(Prepared { prompt, changed, is_last, result_bytes, attachments, reserved })
    }

    /// The media types of attachments that a turn's prompt shows: as its model takes them, or as
    /// the log has it of a turn that began.
    fn attachments(&self, earlier: &[Entry]) -> Vec<String> {
        match self.begun_as(earlier) {
            Some(begun) => begun.attachments,
            None => self.agent().model.attachments(),
        }
    }

    /// How many bytes of a result a prompt shows: as the settings say, but a quarter of the window
    /// at the most.
    fn result_bytes(&self, begun: Option<&CognitionIn>) -> u64 {
        if let Some(begun) = begun {
            return Form::of(begun, &[]).result_bytes;
        }
        let most = self.agent().settings.result_bytes_max;
        let window = self.agent().model.window().map(|it| u64::from(it) * TOKEN_BYTES / 4);
        window.map_or(most, |it| it.min(most))
    }

    /// Whether the agent's settings give it no turn after the next one.
    pub(super) fn is_last_by_turns(&self) -> bool {
        self.mind.is_last_turn(&self.rules())
    }

    /// How many tokens the reply to a prompt of so many may have.
    fn reply_tokens(&self, prompt: &Prompt, of_prompt: u64) -> u64 {
        let model = &self.agent().model;
        let said = prompt.max_tokens.or(self.agent().settings.max_tokens).or(model.max_tokens());
        let most = said.map_or(REPLY_TOKENS, u64::from);
        let window = model.window().map(u64::from);
        window.map_or(most, |it| most.min(it.saturating_sub(of_prompt)))
    }

    /// What a turn reserves: the turn, its prompt, and the longest reply.
    fn reservation(&self, prompt: &Prompt) -> budget::Charge {
        let of_prompt = self.agent().model.prompt_tokens(prompt);
        let of_reply = self.reply_tokens(prompt, of_prompt);
        let price = self.agent().model.price();
        let micros = price.map_or(0, |it| it.cost_max(of_prompt, of_reply));
        let model = self.agent().model.describe();
        let charge = budget::Charge::of_request(model, (of_prompt, of_reply), micros);
        budget::Charge { turns: 1, ..charge }
    }

    /// How many tokens the reply of a last turn may have with what is left, where those are enough.
    fn room(&self, prompt: &Prompt, left: Option<Left>) -> Option<u32> {
        let of_prompt = self.agent().model.prompt_tokens(prompt);
        let Left { key, amount, .. } = left?;
        let room = match key {
            BudgetKey::Tokens => amount.saturating_sub(of_prompt),
            BudgetKey::CostMicros => self.agent().model.price()?.reply_for(amount, of_prompt),
            _ => return None,
        };
        let most = self.reply_tokens(prompt, of_prompt);
        let room = room.min(most);
        u32::try_from(room).ok().filter(|_| room >= REPLY_TOKENS_MIN.min(most) && room > 0)
    }

    /// What a turn that is over settles of what it had reserved.
    pub(super) fn settlement(
        &self,
        reserved: &budget::Charge,
        it: &Generation,
    ) -> Option<budget::Charge> {
        if let Some(record) = &self.record.0 {
            // What a handling before left open is settled first.
            return settlements(record).nth(usize::from(self.mind.reserved.is_some()));
        }
        let written = (it.text.len() + it.reasoned) as u64;
        let (usage, is_estimate) = match it.usage {
            Some(usage) => (usage, false),
            None if it.is_unasked => (Usage::default(), false),
            None => (Usage::new(reserved.tokens_in.unwrap_or(0), tokens_of_bytes(written)), true),
        };
        // Of several models the one that answered is paid.
        let price = match it.answered_by {
            Some(_) => it.answered_for,
            None => self.agent().model.price(),
        };
        let cost = price.map(|it| it.cost_of(&usage)).or(usage.cost_micros);
        let settled = reserved.settlement((usage.input, usage.output), cost, is_estimate);
        let settled = settled.with_cache(usage.cached, usage.cache_written);
        Some(budget::Charge { model: it.answered_by.clone().or(settled.model), ..settled })
    }

    /// What a turn that a stop cut settles, unless it had done so: what it had written counts.
    pub(super) fn cut_settlement(&self, sent: &[Entry], it: &Generation) -> Option<budget::Charge> {
        let reserved = held(sent).filter(|_| settlements(sent).next().is_none())?;
        self.settlement(&reserved, it)
    }

    /// Settles what an earlier handling left open: it was interrupted before its turn began, or it
    /// failed in the middle of one, and nobody knows what that took.
    pub(super) async fn settle_open(&self) -> Result<(), Fault> {
        let Some(reserved) = &self.mind.reserved else { return Ok(()) };
        if self.attempt.0 > 1 && held(&self.sent.sent().await?).is_some() {
            // It may be the one of an attempt before this.
            return Ok(());
        }
        let charge = match &self.record.0 {
            Some(record) => settlements(record).next(),
            None if self.mind.is_turning() => {
                let taken = (reserved.tokens_in.unwrap_or(0), reserved.tokens_out.unwrap_or(0));
                let price = self.agent().model.price();
                let cost = price.map(|it| it.cost_max(taken.0, taken.1));
                Some(reserved.settlement(taken, cost, true))
            }
            None => {
                let nothing = reserved.settlement((0, 0), None, false);
                Some(budget::Charge { turns: -reserved.turns, ..nothing })
            }
        };
        match charge {
            Some(it) => self.out.charge.send(it.into()).await,
            None => Ok(()),
        }
    }
}

impl Generation {
    /// Notes that no reply began. Where the model never got to the prompt, nothing was spent.
    pub(super) fn fails(&mut self, error: &model::Error) {
        use Kind::{OffRecord, PromptTooLong, RateLimited, Refused, Spent, Unreachable};
        let unasked = [OffRecord, PromptTooLong, RateLimited, Refused, Spent, Unreachable];
        self.is_unasked = unasked.contains(&error.kind);
        self.breaks_off(error);
    }

    /// Notes why there is no reply, or no more of it.
    pub(super) fn breaks_off(&mut self, error: &model::Error) {
        self.is_refused = is_refused(error);
        self.limited = limited(error);
        self.error = Some(escape::recorded(&error.to_string()).into_owned());
    }
}
