//! Reads a model's reply, piece by piece from the model, or from the log.

use std::pin::pin;
use std::sync::Mutex;
use std::time::Duration;

use pumphouse::model::{self, Call, Piece, Prompt, Reply as ModelReply, Stop, Usage};
use pumphouse::prelude::*;
use serde::de::IgnoredAny;

use super::escape;
use super::generation::{Ending, OngoingGeneration};
use super::provider_limits::Refusal;
use super::reply_parts::ReplyReader;
use super::system_prompt::SystemPrompt;
use super::words::{
    CognitionOut, CognitionReasoning, Interrupt, ModelDown, ModelFailed, ModelUp, ReasoningSigned,
    Response,
};

/// The settlement that counts if a turn is stopped is renewed each time that this many further
/// bytes of its reply have come.
const SETTLED_EVERY: usize = 64;

impl OngoingGeneration<'_> {
    /// Asks the model for a reply, and acts on the reply piece by piece. An interrupt ends the
    /// reply.
    pub(super) async fn generate(
        &mut self,
        prompt: Prompt,
        reader: &mut ReplyReader,
        system: &SystemPrompt,
    ) -> Result<(), Fault> {
        let (model, arrivals) = (&self.context.agent().model, &self.context.arrivals);
        self.context.if_stopped(&self.reserved, &self.spoken);
        match arrivals.unless::<Interrupt, _>(model.turn(prompt)).await {
            Some(Ok(mut reply)) => {
                self.listen(&mut *reply, reader, system).await?;
                self.spoken.reply.handle = Some(Mutex::new(reply));
            }
            Some(Err(error)) => {
                for tried in &error.tried {
                    self.tried(ModelFailed::of(self.turn, tried)).await?;
                }
                self.spoken.ending.fails(&error);
            }
            None => self.note_interrupt(),
        }
        let is_told = [Interrupt::WORD, CognitionOut::FULL].contains(&&*self.spoken.ending.stop);
        if self.spoken.ending.error.is_some() && !is_told {
            self.spoken.ending.stop = "error".to_owned();
        }
        self.spoken.ending.truncated |= self.spoken.ending.error.is_some();
        self.tell_organism().await;
        Ok(())
    }

    /// Records in the thread `organism` that the model begins to fail, or works again. A failure to
    /// record this doesn't fail the turn.
    async fn tell_organism(&self) {
        let Ending { stop, error, model_is_down, .. } = &self.spoken.ending;
        // Other errors say nothing about the model.
        if stop == Interrupt::WORD || error.is_some() && !*model_is_down {
            return;
        }
        let state = &self.context.state.0;
        let Some(_telling) = state.notes_model(*model_is_down).await else { return };
        let (agent, thread) = (state.agent.name.clone(), self.context.thread.0.to_string());
        let organism = &self.context.organism;
        let told = match error {
            Some(text) => organism.record(&ModelDown { agent, thread, text: text.clone() }).await,
            None => organism.record(&ModelUp { agent, thread }).await,
        };
        if let Err(fault) = told {
            tracing::warn!(%fault, "whether a model works can't be recorded");
        }
    }

    fn note_interrupt(&mut self) {
        self.spoken.ending.error = Some(Interrupt::ERROR.to_owned());
        self.spoken.ending.stop = Interrupt::WORD.to_owned();
    }

    /// Reads the recorded reply from the log in a replay. The model isn't asked.
    pub(super) async fn read_recorded(
        &mut self,
        record: &[Entry],
        reader: &mut ReplyReader,
    ) -> Result<(), Fault> {
        let Some(over) = record.iter().find_map(|it| it.decode_if::<CognitionOut>()) else {
            self.spoken.ending.error = Some("the log has no reply".to_owned());
            return Ok(());
        };
        let reasoning = record.iter().find_map(|it| it.decode_if::<CognitionReasoning>());
        self.reasoning = reasoning.map(|it| it.text).unwrap_or_default();
        let signed = record.iter().find_map(|it| it.decode_if::<ReasoningSigned>());
        self.signed = signed.map(ReasoningSigned::signed).unwrap_or_default();
        let CognitionOut {
            stop,
            error,
            refused,
            waits_ms,
            truncated,
            tokens_in,
            tokens_out,
            tokens_cached,
            tokens_cache_written,
            tokens_reasoning,
            answered_by,
            text,
            ..
        } = over;
        for failed in record.iter().filter_map(|it| it.decode_if::<ModelFailed>()) {
            self.tried(failed).await?;
        }
        self.spoken.reply.answered_by = answered_by;
        self.spoken.reply.usage = tokens_in.zip(tokens_out).map(|(from, to)| {
            let mut usage = Usage::new(from, to);
            usage.cached = tokens_cached.unwrap_or(0);
            usage.cache_written = tokens_cache_written.unwrap_or(0);
            usage.reasoning = tokens_reasoning.unwrap_or(0);
            usage
        });
        self.spoken.ending.is_refused = refused == Some(true);
        self.spoken.ending.limited = waits_ms.map(Duration::from_millis);
        self.spoken.ending.too_long = (stop == CognitionOut::FULL).then(Refusal::default);
        let ending = std::mem::take(&mut self.spoken.ending);
        self.spoken.ending = Ending { stop, error, truncated, ..ending };
        reader.note_cut(self.spoken.cut_short());
        // Partial responses that had to wait are delivered where they were.
        let late: Vec<u64> =
            record.iter().filter_map(|it| it.decode_if::<Response>()?.at).collect();
        let mut from = 0;
        for at in late.into_iter().map(|it| usize::try_from(it).unwrap_or(usize::MAX)) {
            let piece = text.get(from..at).unwrap_or_default();
            from += piece.len();
            for part in reader.again(piece) {
                self.act(part).await?;
            }
            self.deliver_waiting(at).await?;
        }
        for part in reader.again(&text[from..]) {
            self.act(part).await?;
        }
        Ok(())
    }

    /// Reads the pieces of a reply. A call whose arguments are no JSON object waits for the end of
    /// the reply, which shows whether the call was cut.
    async fn listen(
        &mut self,
        reply: &mut dyn ModelReply,
        reader: &mut ReplyReader,
        system: &SystemPrompt,
    ) -> Result<(), Fault> {
        let mut open = Vec::new();
        self.pieces(reply, reader, system, &mut open).await?;
        reader.note_cut(self.spoken.cut_short());
        for call in open {
            for part in reader.call(&call) {
                self.act(part).await?;
            }
        }
        if !self.spoken.ending.is_counted {
            self.spoken.reply.count_cut(reader.text.len());
        }
        Ok(())
    }

    async fn pieces(
        &mut self,
        reply: &mut dyn ModelReply,
        reader: &mut ReplyReader,
        system: &SystemPrompt,
        open: &mut Vec<Call>,
    ) -> Result<(), Fault> {
        loop {
            let piece = self.next_piece(reply, reader.text.len()).await?;
            let Some(piece) = piece else {
                self.note_interrupt();
                return Ok(());
            };
            match piece {
                Ok(Some(Piece::Text(text))) => {
                    self.receives(text.len());
                    for part in reader.feed(&text) {
                        self.act(part).await?;
                    }
                    self.deliver_waiting(reader.text.len()).await?;
                }
                Ok(Some(Piece::Reasoning(text))) => self.take_reasoning(&text),
                Ok(Some(Piece::Call(call))) => {
                    let call = system.tools.meant(call);
                    if !open.is_empty() || !is_whole(&call.arguments) {
                        open.push(call);
                        continue;
                    }
                    for part in reader.call(&call) {
                        self.act(part).await?;
                    }
                }
                Ok(Some(Piece::Signed(it))) => self.signed.push(it),
                Ok(Some(Piece::Usage(usage))) => {
                    self.spoken.reply.usage = Some(usage);
                    self.context.if_stopped(&self.reserved, &self.spoken);
                }
                Ok(Some(Piece::Stop(stop))) => {
                    self.spoken.ending.is_counted = true;
                    self.spoken.ending.truncated = stop == Stop::MaxTokens;
                    self.spoken.ending.stop = stop.as_str().to_owned();
                }
                Ok(Some(Piece::Refusal(why))) => {
                    let why = escape::recorded(&why);
                    self.spoken.ending.error = Some(format!("the model declined: {why}"));
                }
                Ok(Some(Piece::Tried(error))) => {
                    self.tried(ModelFailed::of(self.turn, &error)).await?;
                }
                Ok(Some(Piece::Answering(it))) => {
                    self.spoken.reply.answered_by = Some(it.model);
                    self.spoken.reply.answered_for = it.price;
                }
                Ok(Some(_)) => {}
                Ok(None) => return Ok(()),
                Err(error) => {
                    self.spoken.ending.breaks_off(&error);
                    if reader.text.is_empty() {
                        self.spoken.ending.note_refusal(&error);
                    }
                    return Ok(());
                }
            }
        }
    }

    /// Takes a piece of the model's reasoning: shows it, counts it and keeps it.
    fn take_reasoning(&mut self, text: &str) {
        let text = escape::recorded(text).into_owned();
        self.live("reasoning", text.clone());
        self.spoken.reply.reasoned += text.len();
        self.receives(0);
        self.reasoning += &text;
    }

    /// Waits for the next piece of the reply. Meanwhile, delivers partial responses as their values
    /// come. None means that an interrupt has come. `at` is the number of bytes of the reply so
    /// far.
    async fn next_piece(
        &mut self,
        reply: &mut dyn ModelReply,
        at: usize,
    ) -> Result<Option<Result<Option<Piece>, model::Error>>, Fault> {
        let arrivals = &self.context.arrivals;
        let mut next = pin!(arrivals.unless::<Interrupt, _>(reply.next()));
        loop {
            tokio::select! {
                biased;
                piece = &mut next => return Ok(piece),
                () = arrivals.more() => self.deliver_waiting(at).await?,
            }
        }
    }

    /// Counts bytes of the reply that came, and keeps the settlement up to date that counts if the
    /// turn is stopped.
    fn receives(&mut self, bytes: usize) {
        self.spoken.reply.received += bytes;
        let all = self.spoken.reply.received + self.spoken.reply.reasoned;
        if all >= self.settled_upto + SETTLED_EVERY {
            self.settled_upto = all;
            self.context.if_stopped(&self.reserved, &self.spoken);
        }
    }

    /// Records a failed request to the model.
    async fn tried(&self, failed: ModelFailed) -> Result<(), Fault> {
        let text = escape::recorded(&failed.text).into_owned();
        self.context.out.failed.send(Note(ModelFailed { text, ..failed })).await
    }
}

/// Whether the arguments of a call are a JSON object, or absent.
fn is_whole(arguments: &str) -> bool {
    let is_object = || {
        let is_json = serde_json::from_str::<IgnoredAny>(arguments).is_ok();
        is_json && arguments.trim_start().starts_with('{')
    };
    arguments.trim().is_empty() || is_object()
}
