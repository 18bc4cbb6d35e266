//! Charges of turns. A turn reserves its cost in the tree's budget before the model is asked, and
//! settles the reservation at its end. A budget without room for a whole turn may have room for a
//! shorter last one.

use pumphouse::model::estimate::{TOKEN_BYTES, tokens_of_bytes};
use pumphouse::model::{self, Kind, Prompt, Usage};
use pumphouse::prelude::*;
use pumphouse::wire::budget::{self, BudgetKey};
use pumphouse::wire::fault::BudgetLeft;

use super::super::feed::Shown;
use super::super::feed::words::ContextFeed;
use super::context::TurnContext;
use super::escape;
use super::generation::{Ending, Generation, WrittenReply};
use super::outcome::{Emissions, TurnOutcome};
use super::provider_limits::{is_down, is_refused, limited};
use super::render::Form;
use super::system_prompt::SystemPrompt;
use super::words::{CognitionIn, CognitionOut, Interrupt, SkippedFeed, Stopped};

/// Results are cut until the prompt fits the window, but not below this number of bytes.
const RESULT_BYTES_MIN: u64 = 512;
/// The maximum number of tokens of a reply if neither the agent nor the model sets a limit.
const REPLY_TOKENS: u64 = 4_096;
/// A shortened last turn needs room in the budget for at least this number of tokens of its reply.
/// If the reply's own limit is lower, room for that limit is enough.
const REPLY_TOKENS_MIN: u64 = 256;

/// A turn with its prompt and its reservation.
pub(super) struct Prepared {
    pub(super) prompt: Prompt,
    /// The mark of the prompt's lines. None before form 6.
    pub(super) mark: String,
    /// The built-in feeds of the prompt whose content differs from what the thread last recorded.
    pub(super) changed: Vec<ContextFeed>,
    /// The feeds that the prompt leaves out.
    pub(super) skipped: Vec<SkippedFeed>,
    /// Whether the turn is the agent's last one.
    pub(super) is_last: bool,
    /// The maximum number of bytes of a result that the prompt shows.
    pub(super) result_bytes: u64,
    /// The media types of attachments that the prompt shows.
    pub(super) attachments: Vec<String>,
    pub(super) reserved: budget::Charge,
}

/// Returns the reservations among the entries that a handling sent, in their order.
fn reservations(sent: &[Entry]) -> impl Iterator<Item = (&Entry, budget::Charge)> {
    let charges = sent.iter().filter_map(|it| Some((it, it.decode_if::<budget::Charge>()?)));
    charges.filter(|(_, it)| !it.settled)
}

/// Returns the settlements among the entries that a handling sent, in their order.
fn settlements(sent: &[Entry]) -> impl Iterator<Item = budget::Charge> {
    sent.iter().filter_map(Entry::decode_if::<budget::Charge>).filter(|it| it.settled)
}

/// Returns the first accepted reservation among the entries that an earlier attempt sent. None if
/// no reservation was accepted.
fn held(sent: &[Entry]) -> Option<budget::Charge> {
    reservations(sent).find(|(entry, _)| !entry.is_refused()).map(|(_, it)| it)
}

impl TurnContext {
    /// Makes the prompt of a turn, and reserves the tokens and the money that the turn may cost. If
    /// the reservations of other turns leave no room, this turn waits for their settlement. If the
    /// budget itself has no room, the turn becomes a shorter last one, or the agent stops. The
    /// reservation of an earlier attempt is kept.
    pub(super) async fn prepare(
        &self,
        system: &SystemPrompt,
        turn: u64,
        until: u64,
        earlier: &[Entry],
    ) -> Result<Result<Prepared, TurnOutcome>, Fault> {
        let begun = self.begun_as(earlier);
        let was_last = begun.as_ref().filter(|it| it.is_last == Some(true));
        let is_short = was_last.is_some() && !self.is_last_by_turns();
        let mut most = self.result_bytes(begun.as_ref());
        let mut it = self.build_prompt(system, turn, until, earlier, (is_short, most)).await?;
        // If the prompt exceeds the model's window and no more messages can be hidden, results are
        // cut shorter.
        while begun.is_none()
            && most > RESULT_BYTES_MIN
            && self.over_window(&it.prompt).is_some()
            && self.keeps(&it.prompt).is_none()
        {
            most = (most / 4).max(RESULT_BYTES_MIN);
            it = self.build_prompt(system, turn, until, earlier, (is_short, most)).await?;
        }
        // A last turn that has begun keeps the limit of its reply. For other turns, the loop below
        // sets `bound` when the budget refuses a reservation.
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
            // The pump finds this reservation in the log, and reserves nothing more.
            self.out.charge.send(reserved.clone().into()).await?;
            return Ok(Ok(Prepared { reserved, ..it }));
        }
        loop {
            it.reserved = self.reservation(&it.prompt);
            let charge = self.out.charge.send(it.reserved.clone().into());
            let fault = match self.arrivals.unless::<Interrupt, _>(charge).await {
                Some(Ok(())) => {
                    self.if_stopped(&it.reserved, &Generation::unasked());
                    return Ok(Ok(it));
                }
                Some(Err(fault)) => fault,
                None => return Ok(Err(TurnOutcome::Interrupted)),
            };
            let last = self.build_prompt(system, turn, until, earlier, (true, most)).await?;
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

    /// Repeats the recorded reservations in a replay. The log has their amounts and their outcome.
    async fn replay_reservation(
        &self,
        mut it: Prepared,
        record: &[Entry],
        has_begun: bool,
    ) -> Result<Result<Prepared, TurnOutcome>, Fault> {
        let mut refused = None;
        // A summary reserves behind the turn, after the provider refused the turn's prompt.
        let over = record.iter().find(|it| it.is::<CognitionOut>()).map_or(u64::MAX, Entry::seq);
        for (_, reserved) in reservations(record).filter(|(it, _)| it.seq() < over) {
            refused = self.out.charge.send(reserved.clone().into()).await.err();
            it.reserved = reserved;
        }
        Ok(match refused {
            Some(it) => {
                Err(TurnOutcome::Stopped(Stopped::BUDGET, it.message, Emissions::default()))
            }
            None if has_begun => Ok(it),
            // The turn was interrupted while it waited for the budget.
            None => Err(TurnOutcome::Interrupted),
        })
    }

    /// Builds the prompt of a turn with its feeds. The reservation stays empty.
    pub(super) async fn build_prompt(
        &self,
        system: &SystemPrompt,
        turn: u64,
        until: u64,
        earlier: &[Entry],
        (is_short, result_bytes): (bool, u64),
    ) -> Result<Prepared, Fault> {
        let (feeds, changed) = match earlier {
            [] => self.feeds(is_short),
            sent => {
                let mut shown = Shown::clone(&self.feed_inputs.feeds);
                sent.iter().for_each(|it| shown.apply(it));
                let recorded = sent.iter().filter_map(|it| it.decode().ok()).collect();
                (shown.of(&self.agent().name), recorded)
            }
        };
        let attachments = self.attachments(earlier);
        let mark = self.mark(earlier);
        let form = Form { result_bytes, attachments: &attachments, ..Form::new(&mark) };
        let form = form.offering(system.tools.all());
        let mut prompt = self.prompt(system, turn, until, (form, &feeds)).await?;
        let (is_last, reserved) = (is_short || self.is_last_by_turns(), budget::Charge::default());
        prompt.without_calls = is_last;
        let skipped = feeds.skipped();
        Ok(Prepared {
            prompt,
            mark,
            changed,
            skipped,
            is_last,
            result_bytes,
            attachments,
            reserved,
        })
    }

    /// The media types of attachments that a turn's prompt shows: for a turn that has begun, those
    /// in the log; otherwise those that the model takes.
    fn attachments(&self, earlier: &[Entry]) -> Vec<String> {
        match self.begun_as(earlier) {
            Some(begun) => begun.attachments,
            None => self.agent().model.attachments(),
        }
    }

    /// The maximum number of bytes of a result that a prompt shows. For a turn that has begun, this
    /// is the number in the log. Otherwise it is that of the settings, but at most a quarter of the
    /// window.
    pub(super) fn result_bytes(&self, begun: Option<&CognitionIn>) -> u64 {
        if let Some(begun) = begun {
            return Form::of(begun, &[]).result_bytes;
        }
        let most = self.agent().settings.result_bytes_max;
        let window = self.window().map(|it| it * TOKEN_BYTES / 4);
        window.map_or(most, |it| it.min(most))
    }

    /// Whether a turn that begins now is the last that the agent's settings allow.
    pub(super) fn is_last_by_turns(&self) -> bool {
        self.mind.is_last_turn(&self.rules())
    }

    /// The maximum number of tokens of the reply to a prompt that has `of_prompt` tokens.
    fn reply_tokens(&self, prompt: &Prompt, of_prompt: u64) -> u64 {
        let model = &self.agent().model;
        let said = prompt.max_tokens.or(self.agent().settings.max_tokens).or(model.max_tokens());
        let most = said.map_or(REPLY_TOKENS, u64::from);
        self.window().map_or(most, |it| most.min(it.saturating_sub(of_prompt)))
    }

    /// The reservation for a turn: one turn, the prompt, and the longest reply.
    fn reservation(&self, prompt: &Prompt) -> budget::Charge {
        let of_prompt = self.prompt_tokens(prompt);
        let of_reply = self.reply_tokens(prompt, of_prompt);
        let price = self.agent().model.price();
        let micros = price.map_or(0, |it| it.cost_max(of_prompt, of_reply));
        let model = self.agent().model.describe();
        let charge = budget::Charge::of_request(model, (of_prompt, of_reply), micros);
        budget::Charge { turns: 1, ..charge }
    }

    /// The number of tokens that the rest of the budget leaves for the reply of a last turn. None
    /// if this number is too small (see [`REPLY_TOKENS_MIN`]), if the budget that refused the
    /// reservation counts neither tokens nor money, or if the model's price is unknown.
    fn room(&self, prompt: &Prompt, left: Option<BudgetLeft>) -> Option<u32> {
        let of_prompt = self.prompt_tokens(prompt);
        let BudgetLeft { key, amount, .. } = left?;
        let room = match key {
            BudgetKey::Tokens => amount.saturating_sub(of_prompt),
            BudgetKey::CostMicros => self.agent().model.price()?.reply_for(amount, of_prompt),
            _ => return None,
        };
        let most = self.reply_tokens(prompt, of_prompt);
        let room = room.min(most);
        u32::try_from(room).ok().filter(|_| room >= REPLY_TOKENS_MIN.min(most) && room > 0)
    }

    /// Returns the settlement of a turn's reservation at the end of the turn. None if the record of
    /// a replay has no settlement.
    pub(super) fn settlement(
        &self,
        reserved: &budget::Charge,
        it: &Generation,
    ) -> Option<budget::Charge> {
        if let Some(record) = &self.record.0 {
            // If an earlier handling left a reservation open, the record's first settlement is for
            // that one.
            return settlements(record).nth(usize::from(self.mind.reserved.is_some()));
        }
        let written = (it.reply.text.len().max(it.reply.received) + it.reply.reasoned) as u64;
        let (usage, is_estimate) = match it.reply.usage {
            // No prompt has 0 tokens, so the provider didn't count it.
            Some(mut usage) if usage.input == 0 && !it.ending.is_unasked => {
                usage.input = reserved.tokens_in.unwrap_or(0);
                (usage, true)
            }
            Some(usage) => (usage, !it.ending.is_counted && !it.ending.is_unasked),
            None if it.ending.is_unasked => (Usage::default(), false),
            None => (Usage::new(reserved.tokens_in.unwrap_or(0), tokens_of_bytes(written)), true),
        };
        // A router is charged at the price of the model that answered.
        let price = match it.reply.answered_by {
            Some(_) => it.reply.answered_for,
            None => self.agent().model.price(),
        };
        let cost = price.map(|it| it.cost_of(&usage)).or(usage.cost_micros);
        let settled = reserved.settlement((usage.input, usage.output), cost, is_estimate);
        // A turn that only waits for a rate limit counts as none.
        let waits = it.ending.error.is_some() && self.rate_limit_wait(it).is_some();
        let turns = if waits { -reserved.turns } else { 0 };
        let settled = budget::Charge { turns, ..settled };
        let settled = settled.with_cache(usage.cached, usage.cache_written);
        Some(budget::Charge { model: it.reply.answered_by.clone().or(settled.model), ..settled })
    }

    /// Says what the turn's settlement is if the pump stops the turn now.
    pub(super) fn if_stopped(&self, reserved: &budget::Charge, it: &Generation) {
        if self.record.0.is_none()
            && let Some(settled) = self.settlement(reserved, it)
        {
            self.out.charge.if_stopped(settled.into());
        }
    }

    /// The settlement of a turn that a stop of the pump cut off. The settlement charges the
    /// prompt's reserved tokens, and estimates the tokens of the text that the model had written.
    /// None if the turn has no accepted reservation, or has settled already.
    pub(super) fn cut_settlement(&self, sent: &[Entry], it: &Generation) -> Option<budget::Charge> {
        let reserved = held(sent).filter(|_| settlements(sent).next().is_none())?;
        self.settlement(&reserved, it)
    }

    /// Settles the reservation that an earlier handling left open. If the handling was interrupted
    /// before its turn began, nothing was spent. If it failed during the turn, the actual cost is
    /// unknown, and the whole reservation is charged as an estimate.
    pub(super) async fn settle_open(&self) -> Result<(), Fault> {
        let Some(reserved) = &self.mind.reserved else { return Ok(()) };
        if self.attempt.0 > 1 && held(&self.sent.sent().await?).is_some() {
            // The open reservation may be that of an earlier attempt at this message. The turn
            // keeps it.
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
    /// A generation whose model hasn't got the prompt.
    fn unasked() -> Generation {
        let ending = Ending { is_unasked: true, ..Ending::default() };
        Generation { ending, ..Generation::default() }
    }
}

impl WrittenReply {
    /// Counts the tokens of a reply that broke off after so many bytes of text. Some providers
    /// count the prompt at the beginning of a reply, and the reply itself only at its end.
    pub(super) fn count_cut(&mut self, bytes: usize) {
        let written = tokens_of_bytes((bytes + self.reasoned) as u64);
        if let Some(usage) = &mut self.usage {
            usage.output = usage.output.max(written);
        }
    }
}

impl Ending {
    /// Records that no reply began. If the model never got the prompt, nothing was spent.
    pub(super) fn fails(&mut self, error: &model::Error) {
        use Kind::{OffRecord, PromptTooLong, RateLimited, Refused, Spent, Unreachable};
        let unasked = [OffRecord, PromptTooLong, RateLimited, Refused, Spent, Unreachable];
        self.is_unasked = unasked.contains(&error.kind);
        self.breaks_off(error);
        self.note_refusal(error);
    }

    /// Records why there is no reply, or why it ended early.
    pub(super) fn breaks_off(&mut self, error: &model::Error) {
        self.model_is_down = is_down(error.kind);
        self.is_refused = is_refused(error);
        self.limited = limited(error);
        self.error = Some(escape::recorded(&error.to_string()).into_owned());
    }
}
