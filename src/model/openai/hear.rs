//! A reply as it comes from a server.

use std::collections::VecDeque;
use std::fmt;

use bytes::{Buf, Bytes};
use futures_util::FutureExt;
use reqwest::Response;

use crate::model::openai::chunk::Gathered;
use crate::model::openai::timer::Timers;
use crate::model::openai::{Settings, ask, refusal, without};
use crate::model::sse;
use crate::model::sse::{Decoder, Event};
use crate::model::under_way::Part;
use crate::model::veil::Veil;
use crate::model::{Boxed, Error, Kind, Piece, Reply};

/// A reply as it comes from a server. The socket is read when somebody asks for a piece, and not
/// before.
pub(super) struct Heard {
    response: Response,
    form: Form,
    /// What came and wasn't read yet.
    bytes: Bytes,
    gathered: Gathered,
    /// Pieces that can be shown, and what is hidden in them.
    shown: VecDeque<Piece>,
    veil: Veil,
    /// What it holds of the room of all replies.
    part: Part,
    timers: Timers,
    settings: Settings,
    is_over: bool,
    /// Why it is over, until that was told.
    error: Option<Error>,
}

/// What the server sends.
enum Form {
    Events(Box<Decoder>),
    /// One JSON document: a server that doesn't stream.
    Whole(Vec<u8>),
}

impl Heard {
    /// A reply of which only the head is there.
    pub(super) fn new(response: Response, timers: Timers, settings: Settings) -> Heard {
        let form = match refusal::media(response.headers()).as_str() {
            "application/json" => Form::Whole(Vec::new()),
            _ => Form::Events(Box::new(Decoder::new(settings.limits.event_bytes_max))),
        };
        Heard {
            response,
            form,
            bytes: Bytes::new(),
            gathered: Gathered::default(),
            shown: VecDeque::new(),
            veil: Veil::new(settings.secrets().cloned()),
            part: Part::default(),
            timers,
            settings,
            is_over: false,
            error: None,
        }
    }

    /// Waits until there is a piece.
    pub(super) async fn first(&mut self) -> Result<(), Error> {
        let headers = self.response.headers();
        if refusal::is_html(headers) {
            let said = refusal::page(&mut self.response, &self.settings).await;
            let text = "the server sent a page for people, not a reply; its API is mostly at a \
                        URL that ends in /v1";
            return Err(Error { said, ..Error::new(Kind::Garbled, text) });
        }
        while self.gathered.pieces.is_empty() && !self.is_over {
            self.read().await?;
        }
        Ok(())
    }

    /// Gives these out before everything else.
    pub(super) fn precede(&mut self, pieces: impl DoubleEndedIterator<Item = Piece>) {
        pieces.rev().for_each(|it| self.gathered.pieces.push_front(it));
    }

    async fn step(&mut self) -> Result<Option<Piece>, Error> {
        loop {
            if let Some(piece) = self.shown.pop_front() {
                return Ok(Some(piece));
            }
            if let Some(piece) = self.gathered.pieces.pop_front() {
                self.veil.pass(piece, &mut self.shown);
                continue;
            }
            if self.is_over {
                if let Some(piece) = self.veil.rest() {
                    return Ok(Some(piece));
                }
                self.part.end().await;
                return self.error.take().map_or(Ok(None), Err);
            }
            if let Err(error) = self.read().await {
                self.is_over = true;
                self.gathered.pieces.clear();
                self.error = Some(self.settings.secrets().fold(error, without));
            }
        }
    }

    /// Reads an event, or some bytes. Between what it waits for and what it does with that,
    /// nothing is lost where its future is dropped.
    async fn read(&mut self) -> Result<(), Error> {
        if !self.bytes.is_empty() {
            return self.take();
        }
        match self.timers.watch(self.response.chunk()).await {
            Ok(Ok(Some(bytes))) => {
                if !self.gathered.is_stopped() {
                    self.timers.heard();
                }
                self.bytes = bytes;
                Ok(())
            }
            Ok(Ok(None)) => self.end(None),
            Ok(Err(error)) => self.end(Some(&error)),
            // Only the usage was missing.
            Err(_) if self.gathered.is_stopped() => {
                self.finish();
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Takes an event out of the bytes that came.
    fn take(&mut self) -> Result<(), Error> {
        match &mut self.form {
            Form::Events(decoder) => {
                let mut rest = &self.bytes[..];
                let event = decoder.next(&mut rest);
                let taken = self.bytes.len() - rest.len();
                self.bytes.advance(taken);
                let event = event.map_err(|error| {
                    let kind = match error {
                        sse::Error::NotUtf8 => Kind::Garbled,
                        _ => Kind::TooLarge,
                    };
                    Error::new(kind, error.to_string())
                })?;
                event.map_or(Ok(()), |it| self.event(it))
            }
            Form::Whole(whole) => {
                let max = self.settings.limits.reply_bytes_max;
                whole.extend_from_slice(&std::mem::take(&mut self.bytes));
                let bytes = whole.len();
                if bytes > max {
                    let text = format!("the reply is over a limit: reply_bytes_max is {max}");
                    return Err(Error::new(Kind::TooLarge, text));
                }
                self.grow_to(bytes)
            }
        }
    }

    fn event(&mut self, event: Event) -> Result<(), Error> {
        let Some(data) = event.data else { return Ok(()) };
        match data.trim() {
            "" => Ok(()),
            "[DONE]" => {
                self.finish();
                Ok(())
            }
            data => {
                let was_stopped = self.gathered.is_stopped();
                // Before anything of it is cut.
                let data = &self.settings.hide(data);
                self.gathered.add(data, self.settings.limits.reply_bytes_max)?;
                if self.gathered.is_stopped() && !was_stopped {
                    self.timers.hurry(self.settings.limits.usage_time_max);
                }
                self.grow_to(self.gathered.bytes())
            }
        }
    }

    /// Ends the reply where it is longer than the room that all replies leave it.
    fn grow_to(&mut self, bytes: usize) -> Result<(), Error> {
        let max = self.settings.limits.replies_bytes_max;
        if self.part.grow_to(bytes, max) {
            return Ok(());
        }
        let text = format!(
            "the reply is over a limit: it has {bytes} bytes, and all replies that are under way \
             share replies_bytes_max, {max}"
        );
        Err(Error::new(Kind::TooLarge, text))
    }

    /// The connection ended; whether the reply had ended before, it must have said itself.
    fn end(&mut self, error: Option<&reqwest::Error>) -> Result<(), Error> {
        let last = match &mut self.form {
            Form::Events(decoder) => decoder.end().and_then(|it| it.data),
            Form::Whole(whole) => Some(String::from_utf8_lossy(whole).trim().to_owned()),
        };
        let is_whole = matches!(self.form, Form::Whole(_)) && error.is_none();
        if let Some(data) = last {
            // Cut in the middle it is no event; that it is cut is told below.
            match self.event(Event { data: Some(data), ..Event::default() }) {
                Err(error) if error.kind != Kind::Garbled || is_whole => return Err(error),
                _ => {}
            }
        }
        if self.gathered.is_stopped() || self.is_over {
            self.finish();
            return Ok(());
        }
        let why = error.map(|it| format!(": {}", ask::root(it))).unwrap_or_default();
        Err(Error::new(Kind::Cut, format!("the reply was cut off before its end{why}")))
    }

    fn finish(&mut self) {
        if !std::mem::replace(&mut self.is_over, true) {
            self.gathered.finish();
            // Where the end has come already, the connection can be used again.
            drop(self.response.chunk().now_or_never());
        }
    }
}

impl Reply for Heard {
    fn next(&mut self) -> Boxed<'_, Option<Piece>> {
        Box::pin(self.step())
    }
}

impl fmt::Debug for Heard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Heard").field("model", &self.settings.model).finish_non_exhaustive()
    }
}
