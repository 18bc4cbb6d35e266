//! Summaries of the messages that a clear is about to hide. A model writes them, piece by piece if
//! the messages don't fit its window.

use std::sync::Arc;

use pumphouse::model::estimate::{TOKEN_BYTES, tokens_of_bytes};
use pumphouse::model::{Error, Kind, Model, Piece, Prompt, PromptMessage, Role, Usage};
use pumphouse::prelude::*;
use pumphouse::wire::budget::Charge;

use super::super::view::part;
use super::context::TurnContext;
use super::words::{CognitionOut, ContextSummary, Interrupt};

/// The system prompt of the model that writes a summary.
const SYSTEM: &str = "Another model goes on with a conversation whose older part it will not see. \
    Write down for it what that part came to: what was asked, decided, done and found, names and \
    numbers, and what is still to be done. Write plain text and nothing else, in 300 words at the \
    most.";
/// The maximum number of tokens of a summary. A summary also has at most an eighth of the model's
/// window.
const SUMMARY_TOKENS_MAX: u64 = 1_024;
/// The assumed window of a model that declares none, in tokens.
const WINDOW: u64 = 8_192;

/// The fewest bytes of a piece.
const PIECE_BYTES_MIN: usize = 512;

/// A model's text or its error, and the tokens that it used.
type SummaryOutcome = (Result<String, NoSummary>, Option<Usage>);

/// Why a model wrote no summary.
struct NoSummary {
    text: String,
    /// Whether its provider refused the piece as too long.
    is_too_long: bool,
}

impl NoSummary {
    fn new(text: impl Into<String>) -> NoSummary {
        NoSummary { text: text.into(), is_too_long: false }
    }
}

impl From<Error> for NoSummary {
    fn from(error: Error) -> NoSummary {
        let is_too_long = error.kind == Kind::PromptTooLong;
        NoSummary { is_too_long, ..NoSummary::new(error.to_string()) }
    }
}

impl From<Fault> for NoSummary {
    fn from(fault: Fault) -> NoSummary {
        NoSummary::new(fault.message)
    }
}

impl TurnContext {
    /// Summarises the older messages of a prompt, for a clear that keeps `keep` messages. After a
    /// failure, the summary has an error and no text. A replay takes the summary from the record,
    /// and repeats the charges for it. None if the replayed record has no summary.
    pub(super) async fn write_summary(&self, prompt: &Prompt, keep: u64) -> Option<ContextSummary> {
        if let Some(record) = &self.record.0 {
            // The charges of a turn whose prompt was refused come before the end of the turn.
            let over = record.iter().rposition(|it| it.is::<CognitionOut>());
            let charges = record.iter().skip(over.map_or(0, |it| it + 1));
            // The first settlement may be that of a reservation that an earlier handling left open.
            let mut open = usize::from(over.is_none() && self.mind.reserved.is_some());
            for it in charges.filter_map(Entry::decode_if::<Charge>) {
                match it.settled && open > 0 {
                    true => open -= 1,
                    false => drop(self.out.charge.send(it.into()).await),
                }
            }
            return record.iter().find_map(Entry::decode_if::<ContextSummary>);
        }
        let settings = &self.agent().settings;
        let model = settings.summary_model.as_ref().unwrap_or(&self.agent().model);
        let (error, text) = match self.summarise(model, &older(prompt, keep)).await {
            Ok(text) => (None, text),
            Err(error) => (Some(super::escape::recorded(&error).into_owned()), String::new()),
        };
        let text = super::escape::recorded(&text).into_owned();
        Some(ContextSummary { model: model.describe(), error, text })
    }

    /// Summarises a text piece by piece: each piece is read together with the summary of the pieces
    /// before.
    async fn summarise(&self, model: &Arc<dyn Model>, text: &str) -> Result<String, String> {
        let name = model.describe();
        let window = self.mind.window(&name, model.window().map(u64::from)).unwrap_or(WINDOW);
        let most = (window / 8).clamp(1, SUMMARY_TOKENS_MAX);
        // A text may have more tokens than its bytes let expect.
        let bytes = window * TOKEN_BYTES / 2 * 1_000 / self.mind.tokens(&name, 1_000);
        let mut bytes = usize::try_from(bytes).unwrap_or(usize::MAX).max(PIECE_BYTES_MIN);
        let (mut summary, mut from) = (String::new(), 0);
        // The charges of an earlier attempt at this message are in the log: the pump recognizes
        // them, and doesn't count them twice.
        let sent = self.sent.sent().await.map_err(|it| it.message)?;
        for it in sent.iter().filter_map(Entry::decode_if::<Charge>) {
            self.out.charge.send(it.into()).await.map_err(|it| it.message)?;
        }
        while from < text.len() {
            let (_, to) = part(text, from, bytes);
            let piece = match summary.is_empty() {
                true => text[from..to].to_owned(),
                false => {
                    format!("[So far, in short:]\n{summary}\n\n[And then:]\n{}", &text[from..to])
                }
            };
            let mut prompt = self.of_turn(self.mind.turns + 1, Prompt::new(SYSTEM));
            prompt.max_tokens = u32::try_from(most).ok();
            prompt.messages.push(PromptMessage::new(Role::User, piece));
            match self.charged(model, prompt, most).await {
                Ok(text) => (summary, from) = (text, to),
                Err(error) if error.is_too_long && bytes > PIECE_BYTES_MIN => {
                    bytes = (bytes / 2).max(PIECE_BYTES_MIN);
                }
                Err(error) => return Err(error.text),
            }
        }
        Ok(summary)
    }

    /// Asks the model for one summary, and charges it to the tree's budget.
    async fn charged(
        &self,
        model: &Arc<dyn Model>,
        prompt: Prompt,
        most: u64,
    ) -> Result<String, NoSummary> {
        let of_prompt = model.prompt_tokens(&prompt);
        let price = model.price();
        let of_reserved = price.map_or(0, |it| it.cost_max(of_prompt, most));
        let reserved = Charge::of_request(model.describe(), (of_prompt, most), of_reserved);
        self.out.charge.send(reserved.clone().into()).await?;
        let asked = self.arrivals.unless::<Interrupt, _>(written(model, prompt)).await;
        let interrupted = || (Err(NoSummary::new(Interrupt::ERROR)), None);
        let (text, usage) = asked.unwrap_or_else(interrupted);
        // A piece that is too long was never read.
        let is_unread = text.as_ref().is_err_and(|it| it.is_too_long);
        let usage = usage.or(is_unread.then(Usage::default));
        let guess = text.as_ref().map_or(0, |it| tokens_of_bytes(it.len() as u64));
        let is_estimate = usage.is_none();
        let usage = usage.unwrap_or_else(|| Usage::new(of_prompt, guess));
        let cost = price.map(|it| it.cost_of(&usage)).or(usage.cost_micros);
        let settled = reserved.settlement((usage.input, usage.output), cost, is_estimate);
        let settled = settled.with_cache(usage.cached, usage.cache_written);
        self.out.charge.send(settled.into()).await?;
        text
    }
}

/// Asks a model, and collects the whole text of its reply.
async fn written(model: &Arc<dyn Model>, prompt: Prompt) -> SummaryOutcome {
    let (mut text, mut usage) = (String::new(), None);
    let mut reply = match model.turn(prompt).await {
        Ok(reply) => reply,
        Err(error) => return (Err(error.into()), None),
    };
    loop {
        match reply.next().await {
            Ok(Some(Piece::Text(more))) => text += &more,
            Ok(Some(Piece::Usage(it))) => usage = Some(it),
            Ok(Some(Piece::Refusal(why))) => return (Err(NoSummary::new(why)), usage),
            Ok(Some(_)) => {}
            Ok(None) if text.trim().is_empty() => {
                return (Err(NoSummary::new("it is empty")), usage);
            }
            Ok(None) => return (Ok(text.trim().to_owned()), usage),
            Err(error) => return (Err(error.into()), usage),
        }
    }
}

/// The older messages of a prompt as a text: all but the `keep - 1` newest ones, which stay in
/// view. The newest message is always left out, unless it is the only one.
fn older(prompt: &Prompt, keep: u64) -> String {
    let newest = usize::try_from(keep.saturating_sub(1)).unwrap_or(usize::MAX).max(1);
    let count = prompt.messages.len().saturating_sub(newest).max(1);
    let said = prompt.messages.iter().take(count);
    let said = said.map(|it| {
        let calls = it.calls.iter().map(|it| format!("\n{}({})", it.name, it.arguments));
        format!("{}: {}{}", it.role.as_str(), it.text, calls.collect::<String>())
    });
    said.collect::<Vec<_>>().join("\n\n")
}
