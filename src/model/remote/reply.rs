//! Reads a reply as it comes from a server.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::FutureExt;
use reqwest::Response;

use crate::model::error::{Error, Kind};
use crate::model::hide_secrets::Veil;
use crate::model::interface::{Boxed, Reply};
use crate::model::piece::Piece;
use crate::model::provider_events::ProviderEvent;
use crate::model::remote::timeouts::Timers;
use crate::model::remote::{Settings, ask, read_error, without};
use crate::model::reply_memory::Part;
use crate::model::wire::{Framing, Gathered, Reader, SentTools};

/// A reply as it comes from a server. The socket is read only while a piece is asked for.
pub(super) struct RemoteReply {
    response: Response,
    framing: Framing,
    /// Bytes that came and haven't been read yet.
    bytes: Bytes,
    reader: Box<dyn Reader>,
    /// Pieces that are ready, with secrets hidden by `veil`.
    shown: VecDeque<Piece>,
    veil: Veil,
    /// The reply's share of the memory of all replies.
    part: Part,
    timers: Timers,
    settings: Settings,
    /// The conversation that the reply belongs to.
    conversation: Option<Arc<str>>,
    /// The tools of the request, by which its calls get their own names back.
    tools: Arc<SentTools>,
    is_over: bool,
    /// The error that ended the reply, until it is returned.
    error: Option<Error>,
}

impl RemoteReply {
    /// A reply whose HTTP status and headers have come.
    pub(super) fn new(
        response: Response,
        timers: Timers,
        settings: Settings,
        conversation: Option<Arc<str>>,
        tools: Arc<SentTools>,
    ) -> RemoteReply {
        let framing = match read_error::media(response.headers()).as_str() {
            // The server doesn't stream.
            "application/json" if !settings.has_lines() => Framing::whole(),
            _ => settings.provider.framing(settings.limits.event_bytes_max),
        };
        RemoteReply {
            response,
            reader: settings.provider.reader(framing.is_whole()),
            framing,
            bytes: Bytes::new(),
            shown: VecDeque::new(),
            veil: Veil::new(settings.hidden.clone()),
            part: Part::default(),
            timers,
            settings,
            conversation,
            tools,
            is_over: false,
            error: None,
        }
    }

    fn gathered(&self) -> &Gathered {
        self.reader.gathered()
    }

    /// Waits until there is a piece, or until the reply is over.
    pub(super) async fn first(&mut self) -> Result<(), Error> {
        let headers = self.response.headers();
        if read_error::is_html(headers) {
            let said = read_error::page(&mut self.response, &self.settings).await;
            let text = "the server sent a page for people, not a reply; its API is mostly at a \
                        URL that ends in /v1";
            return Err(Error { said, ..Error::new(Kind::Garbled, text) });
        }
        while self.gathered().pieces.is_empty() && !self.is_over {
            self.read().await?;
        }
        Ok(())
    }

    /// Puts pieces before all others.
    pub(super) fn precede(&mut self, pieces: impl DoubleEndedIterator<Item = Piece>) {
        pieces.rev().for_each(|it| self.reader.gathered_mut().pieces.push_front(it));
    }

    async fn step(&mut self) -> Result<Option<Piece>, Error> {
        loop {
            if let Some(piece) = self.shown.pop_front() {
                return Ok(Some(piece));
            }
            if let Some(piece) = self.reader.gathered_mut().pieces.pop_front() {
                let piece = match piece {
                    Piece::Call(call) => Piece::Call(self.tools.meant(call)),
                    piece => piece,
                };
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
                self.reader.gathered_mut().break_off();
                self.error = Some(without(error, &self.settings.hidden));
            }
        }
    }

    /// Reads an event out of bytes that came, or else waits for more bytes. Dropping the future
    /// loses no bytes.
    async fn read(&mut self) -> Result<(), Error> {
        if !self.bytes.is_empty() {
            return self.take();
        }
        match self.timers.watch(self.response.chunk()).await {
            Ok(Ok(Some(bytes))) => {
                if !self.gathered().is_stopped() {
                    self.timers.heard();
                }
                self.bytes = bytes;
                Ok(())
            }
            Ok(Ok(None)) => self.end(None),
            Ok(Err(error)) => self.end(Some(&error)),
            // The reply is whole, and only its usage may be missing.
            Err(_) if self.gathered().is_stopped() => {
                self.finish();
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Takes an event out of the bytes that came, and reads it.
    fn take(&mut self) -> Result<(), Error> {
        let data = self.framing.next(&mut self.bytes)?;
        let (bytes, max) = (self.framing.whole_bytes(), self.settings.limits.reply_bytes_max);
        if bytes > max {
            let text = format!("the reply is over a limit: reply_bytes_max is {max}");
            return Err(Error::new(Kind::TooLarge, text));
        }
        if self.framing.is_whole() {
            return self.grow_to(bytes);
        }
        data.map_or(Ok(()), |it| self.event(&it))
    }

    fn event(&mut self, data: &str) -> Result<(), Error> {
        let data = data.trim();
        if data.is_empty() {
            return Ok(());
        }
        let was_stopped = self.gathered().is_stopped();
        // Secrets are hidden before any text is cut: half a secret wouldn't be found.
        let data = self.settings.hidden.hide(data).into_owned();
        for (events, model) in &self.settings.events {
            events.show(|| ProviderEvent {
                conversation: self.conversation.clone(),
                model: model.clone(),
                data: data.as_str().into(),
            });
        }
        self.reader.take(&data)?;
        self.gathered().within(self.settings.limits.reply_bytes_max)?;
        if self.gathered().is_over() {
            self.finish();
        } else if self.gathered().is_stopped() && !was_stopped {
            self.timers.hurry(self.settings.limits.usage_time_max);
        }
        self.grow_to(self.gathered().bytes())
    }

    /// Checks the reply's length against the memory that the other replies leave.
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

    /// Ends the reply at the end of the connection. If no stop reason has come, the reply was cut
    /// off.
    fn end(&mut self, error: Option<&reqwest::Error>) -> Result<(), Error> {
        let is_whole = self.framing.is_whole() && error.is_none();
        if let Some(data) = self.framing.end()? {
            // A garbled event at the end of a stream was cut in the middle. It gets the error for
            // cut-off replies below.
            match self.event(&data) {
                Err(error) if error.kind != Kind::Garbled || is_whole => return Err(error),
                _ => {}
            }
        }
        if self.gathered().is_stopped() || self.is_over {
            self.finish();
            return Ok(());
        }
        let why = error.map(|it| format!(": {}", ask::root(it))).unwrap_or_default();
        Err(Error::new(Kind::Cut, format!("the reply was cut off before its end{why}")))
    }

    fn finish(&mut self) {
        if !std::mem::replace(&mut self.is_over, true) {
            self.reader.gathered_mut().finish();
            // If the end of the body has come already, taking it frees the connection for reuse.
            drop(self.response.chunk().now_or_never());
        }
    }
}

impl Reply for RemoteReply {
    fn next(&mut self) -> Boxed<'_, Option<Piece>> {
        Box::pin(self.step())
    }
}

impl fmt::Debug for RemoteReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteReply").field("model", &self.settings.model).finish_non_exhaustive()
    }
}
