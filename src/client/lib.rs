//! The client of a pump. It connects to a door, pushes payloads, and gets the answers and the
//! messages that follow.
//!
//! ```no_run
//! # extern crate pumphouse_client as pumphouse;
//! use pumphouse::client::{Client, Incoming, Push};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut client = Client::connect("127.0.0.1:8765").await?;
//! let echo = "<echo xmlns='https://xml-pipeline.org/ns/echo/v1'><text>hi</text></echo>";
//! client.push(&Push::text(echo)?);
//! client.finish().await?;
//! while let Some(incoming) = client.recv().await? {
//!     if let Incoming::Message(message) = incoming {
//!         println!("{}: {:?}", message.from, message.payload);
//!     }
//! }
//! # Ok(()) }
//! ```

extern crate self as pumphouse;

// The modules name each other, and those of the crates below, by their paths in `pumphouse`.
#[doc(hidden)]
pub use crate as client;
use pumphouse_core::wire;
use pumphouse_ground::{address, clock, id, name, xml};
use pumphouse_tls as tls_trust;

mod connect;
mod error;
mod follow;
mod limits;
mod kept;
mod message;
mod push;
mod resume;
mod tls;

use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, ToSocketAddrs};

use crate::id::EntryId;
#[doc(hidden)]
pub use crate::id::ThreadId;
use crate::wire::Payload;
use crate::wire::core::{Accepted, Authenticate, Huh};
use crate::xml::{Framing, Profile, Splitter};
use connect::Stream;
use kept::Kept;
use limits::{FOUND_MAX, LIMITS, READ_BYTES};
use pumphouse_ground::limits::XmlLimits;

pub use crate::address::{Address, NoAddress};
pub use error::Error;
pub use follow::Follow;
pub use limits::KEPT_BYTES_MAX;
pub use message::{Incoming, Message, Shown};
pub use push::Push;
pub use resume::Resuming;

/// A connection to a pump.
///
/// Pushes are pipelined: [`push`](Client::push) only queues a push. The client sends queued pushes
/// when it next waits for the pump. To send them at once, call [`flush`](Client::flush). A client
/// reads while it writes, so that the client and the pump can't block each other.
pub struct Client {
    stream: Box<dyn Stream>,
    framing: Framing,
    splitter: Splitter,
    limits: XmlLimits,
    buffer: Box<[u8]>,
    out: Vec<u8>,
    written: usize,
    /// Messages that came while the client waited for something else. [`recv`](Client::recv)
    /// returns them later.
    waiting: Kept,
    /// The size of the newest message, in bytes.
    fetched: usize,
    /// How many bytes were read since the last time that no whole message was left, without the
    /// messages that were taken meanwhile.
    untaken: usize,
    pushed: u64,
    answered: u64,
    /// The identity under which the pump knows this client.
    identity: Option<String>,
    /// The entries of answers that [`ask`](Client::ask) found by following a thread. If the pump
    /// also sends such an answer directly, the client drops the direct copy.
    found: VecDeque<EntryId>,
    is_over: bool,
}

impl Client {
    /// Connects over TCP. On the wire, messages are elements one after another.
    ///
    /// # Errors
    /// If no connection can be made.
    pub async fn connect(address: impl ToSocketAddrs) -> Result<Client, Error> {
        Client::connect_framed(address, Framing::Element).await
    }

    /// Connects over TCP, with this framing of messages.
    ///
    /// # Errors
    /// If no connection can be made.
    pub async fn connect_framed(
        address: impl ToSocketAddrs,
        framing: Framing,
    ) -> Result<Client, Error> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Client::over(Box::new(stream), framing))
    }

    /// Connects to a door of any kind. On the wire, messages are elements one after another.
    ///
    /// # Errors
    /// If no connection can be made.
    pub async fn connect_to(address: &Address) -> Result<Client, Error> {
        Ok(Client::over(connect::connect(address).await?, Framing::Element))
    }

    /// Sets limits for the pump's messages, for example if the pump isn't trusted. A message beyond
    /// the limits is an error. By default, a message may hold what [`XmlLimits::INSIDE`] lets
    /// listeners emit. Set the limits before anything is received.
    #[must_use]
    pub fn with_limits(self, limits: XmlLimits) -> Client {
        Client { splitter: Splitter::new(limits), limits, ..self }
    }

    fn over(stream: Box<dyn Stream>, framing: Framing) -> Client {
        Client {
            stream,
            framing,
            splitter: Splitter::new(LIMITS),
            limits: LIMITS,
            buffer: vec![0; READ_BYTES].into(),
            out: Vec::new(),
            written: 0,
            waiting: Kept::default(),
            fetched: 0,
            untaken: 0,
            pushed: 0,
            answered: 0,
            identity: None,
            found: VecDeque::new(),
            is_over: false,
        }
    }

    /// Authenticates by a token, and waits until the pump has accepted the token. Returns the
    /// identity that the token proves. Call this before any push.
    ///
    /// # Errors
    /// If the pump doesn't know the token, or if the connection breaks.
    pub async fn authenticate(&mut self, token: &str) -> Result<String, Error> {
        let element = Authenticate { token: token.into() }.encode()?;
        xml::frame(self.framing, &element.canonical(), &mut self.out);
        match self.recv().await? {
            Some(Incoming::Authenticated(it)) => Ok(it.identity),
            Some(Incoming::Refused { huh, .. }) => Err(Error::Refused(Box::new(huh))),
            Some(other) => Err(Error::Unexpected(format!("{other:?}"))),
            None => Err(Error::Closed),
        }
    }

    /// Queues a push. Returns the push's number. The pump's acceptance or refusal of the push has
    /// the same number.
    pub fn push(&mut self, push: &Push) -> u64 {
        let mut text = String::new();
        push.write(&mut text);
        self.push_raw(text.as_bytes())
    }

    /// Queues the bytes of one element as they are. Returns the push's number.
    pub fn push_raw(&mut self, element: &[u8]) -> u64 {
        xml::frame(self.framing, element, &mut self.out);
        self.pushed += 1;
        self.pushed - 1
    }

    /// Pushes, and waits until the push is in the log. Other messages that come meanwhile are kept
    /// for [`recv`](Client::recv).
    ///
    /// # Errors
    /// If the push was refused, or if the connection broke. In the second case it is unknown
    /// whether the push was accepted. A push with an [id](Push::with_id) may safely be sent again
    /// with the same id.
    pub async fn tell(&mut self, push: &Push) -> Result<Accepted, Error> {
        let number = self.push(push);
        loop {
            match self.fetch().await?.ok_or(Error::Closed)? {
                Incoming::Accepted { push, accepted } if push == number => return Ok(accepted),
                other => self.keep(other, number)?,
            }
        }
    }

    /// Pushes, and waits for the first message to this client that the push causes. If the push has
    /// an [id](Push::with_id), the client looks for the message in the thread. So this also works
    /// for a push that was sent before.
    ///
    /// # Errors
    /// As [`tell`](Client::tell). Also if the connection ended before such a message came.
    pub async fn ask(&mut self, push: &Push) -> Result<Message, Error> {
        let accepted = self.tell(push).await?;
        if push.id().is_some() {
            return self.find(&accepted).await;
        }
        let is_it = |it: &Message| it.is_caused_by(&accepted);
        let found = self.waiting.take(|it| match it {
            Incoming::Message(message) => is_it(message),
            _ => false,
        });
        if let Some(Incoming::Message(message)) = found {
            return Ok(message);
        }
        loop {
            match self.fetch().await?.ok_or(Error::Closed)? {
                Incoming::Message(message) if is_it(&message) => return Ok(message),
                other => self.hold(other)?,
            }
        }
    }

    /// Follows the thread of an accepted push to find the first answer. If the same push was sent
    /// before, its answer may be in the thread already. The pump doesn't send such an answer again.
    async fn find(&mut self, accepted: &Accepted) -> Result<Message, Error> {
        let identity = self.identity.clone();
        let mut follow = self.follow(&ThreadId::new(&accepted.thread), accepted.seq).await?;
        loop {
            let message = follow.next().await?.ok_or(Error::Closed)?;
            if message.to == identity && message.comes_of(accepted) {
                follow.end().await?;
                let message = Message { shown: Shown::Sent, ..message };
                self.found.extend(message.entry.clone());
                if self.found.len() > FOUND_MAX {
                    self.found.pop_front();
                }
                let is_it = |other: &Incoming| match other {
                    Incoming::Message(other) => other.is_sent() && other.entry == message.entry,
                    _ => false,
                };
                while self.waiting.take(is_it).is_some() {}
                return Ok(message);
            }
        }
    }

    /// Follows a thread, beginning with the entry after number `after`. Waits until the pump has
    /// agreed.
    ///
    /// # Errors
    /// If there is no such thread, or if it belongs to another identity.
    pub async fn follow(&mut self, thread: &ThreadId, after: u64) -> Result<Follow<'_>, Error> {
        let number = self.push(&follow::request(thread, after, None)?);
        self.begin(number, thread).await
    }

    /// Follows a thread as [`follow`](Client::follow) does, and also gets its live payloads, which
    /// aren't in the log.
    ///
    /// # Errors
    /// If there is no such thread, or if it belongs to another identity.
    pub async fn follow_live(
        &mut self,
        thread: &ThreadId,
        after: u64,
    ) -> Result<Follow<'_>, Error> {
        let number = self.push(&follow::request(thread, after, Some(true))?);
        self.begin(number, thread).await
    }

    async fn begin(&mut self, number: u64, thread: &ThreadId) -> Result<Follow<'_>, Error> {
        loop {
            match self.fetch().await?.ok_or(Error::Closed)? {
                Incoming::Following { push, following } if push == number => {
                    return Ok(Follow::new(self, thread.clone(), &following));
                }
                other => self.keep(other, number)?,
            }
        }
    }

    /// Keeps a message that came while the client waited for the answer to request `number`.
    /// Returns an error instead if the message refuses that request, or if it says why the
    /// connection ends.
    fn keep(&mut self, incoming: Incoming, number: u64) -> Result<(), Error> {
        match incoming {
            Incoming::Refused { push: Some(push), huh } if push == number => {
                Err(Error::Refused(Box::new(huh)))
            }
            Incoming::UnknownThread { push, error } if push == number => {
                Err(Error::UnknownThread(error))
            }
            Incoming::Refused { push: None, huh } => Err(Error::Refused(Box::new(huh))),
            other => self.hold(other),
        }
    }

    /// Keeps the newest message for [`recv`](Client::recv). If there is no room for it, ends the
    /// connection.
    fn hold(&mut self, incoming: Incoming) -> Result<(), Error> {
        self.waiting.push(self.fetched, incoming).inspect_err(|_| self.end())
    }

    /// Ends the connection, and drops the bytes that came and weren't taken.
    fn end(&mut self) {
        self.stream = Box::new(tokio::io::empty());
        self.splitter = Splitter::new(self.limits);
        self.out = Vec::new();
        (self.written, self.untaken, self.is_over) = (0, 0, true);
    }

    /// Waits for the next message. Returns `None` once the pump has closed the connection.
    ///
    /// # Errors
    /// If the connection breaks, or if a message comes that pumps don't send.
    pub async fn recv(&mut self) -> Result<Option<Incoming>, Error> {
        match self.waiting.pop() {
            Some(it) => Ok(Some(it)),
            None => self.fetch().await,
        }
    }

    /// Sends everything that is queued.
    ///
    /// # Errors
    /// If the connection can't be read, or if more than [`KEPT_BYTES_MAX`] bytes come meanwhile. A
    /// failed write isn't an error here: the pump may have sent the reason, and
    /// [`recv`](Client::recv) returns it.
    pub async fn flush(&mut self) -> Result<(), Error> {
        while self.written < self.out.len() {
            poll_fn(|context| self.poll(context)).await?;
            if self.untaken > KEPT_BYTES_MAX {
                self.end();
                return Err(Error::Full);
            }
        }
        Ok(())
    }

    /// Sends everything that is queued, and closes the client's side of the connection. The pump
    /// ends the connection once all that the pushes caused is done.
    ///
    /// # Errors
    /// If the connection breaks, or as [`flush`](Client::flush).
    pub async fn finish(&mut self) -> Result<(), Error> {
        self.flush().await?;
        poll_fn(|context| Pin::new(&mut self.stream).poll_shutdown(context)).await?;
        Ok(())
    }

    /// How many pushes and other requests the pump has neither accepted nor refused yet.
    #[must_use]
    pub fn unanswered(&self) -> u64 {
        self.pushed - self.answered
    }

    async fn fetch(&mut self) -> Result<Option<Incoming>, Error> {
        loop {
            while let Some(frame) = self.splitter.next()? {
                self.fetched = frame.bytes.len();
                self.untaken = self.untaken.saturating_sub(self.fetched);
                let element = xml::read(frame.bytes, Profile::Wire, &self.limits)?;
                let message = Message::open(&element)?;
                if !self.take_known(&message) {
                    return self.number(message).map(Some);
                }
            }
            self.untaken = 0;
            if self.is_over {
                return self.splitter.finish().map(|()| None).map_err(Error::from);
            }
            poll_fn(|context| self.poll(context)).await?;
        }
    }

    /// Whether [`find`](Client::find) has returned this answer already. If so, the client forgets
    /// the answer.
    fn take_known(&mut self, message: &Message) -> bool {
        let is_it = |it: &EntryId| message.is_sent() && message.entry.as_ref() == Some(it);
        let at = self.found.iter().position(is_it);
        at.and_then(|at| self.found.remove(at)).is_some()
    }

    /// Sorts a message by its kind. A direct answer gets the number of its request, because direct
    /// answers come in the order of the requests.
    fn number(&mut self, message: Message) -> Result<Incoming, Error> {
        if message.entry.is_none() && message.is_sent() {
            self.identity = message.to.clone().or(self.identity.take());
        }
        let incoming = message.sort(self.answered)?;
        match &incoming {
            Incoming::Refused { push: Some(_), .. } if self.unanswered() == 0 => {
                let Incoming::Refused { huh, .. } = incoming else { unreachable!("just seen") };
                return Ok(Incoming::Refused { push: None, huh });
            }
            Incoming::Accepted { .. }
            | Incoming::Following { .. }
            | Incoming::Unfollowed { .. }
            | Incoming::UnknownThread { .. }
            | Incoming::Refused { push: Some(_), .. } => self.answered += 1,
            _ => {}
        }
        Ok(incoming)
    }

    /// Writes as much as possible, and reads what has come.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut busy = false;
        while self.written < self.out.len() {
            let stream = Pin::new(&mut self.stream);
            match stream.poll_write(context, &self.out[self.written..]) {
                Poll::Ready(Ok(bytes)) => self.written += bytes,
                // The pump may have closed the connection and sent the reason, which must still be
                // read.
                Poll::Ready(Err(_)) if !self.is_over => self.written = self.out.len(),
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => break,
            }
            busy = true;
        }
        if self.written == self.out.len() {
            self.out.clear();
            self.written = 0;
        }
        if !self.is_over {
            let mut buffer = ReadBuf::new(&mut self.buffer);
            match Pin::new(&mut self.stream).poll_read(context, &mut buffer) {
                Poll::Ready(Ok(())) => {
                    let bytes = buffer.filled();
                    self.is_over = bytes.is_empty();
                    self.untaken = self.untaken.saturating_add(bytes.len());
                    self.splitter.feed(bytes);
                    busy = true;
                }
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => {}
            }
        }
        if busy { Poll::Ready(Ok(())) } else { Poll::Pending }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unanswered = self.unanswered();
        f.debug_struct("Client").field("unanswered", &unanswered).finish_non_exhaustive()
    }
}

/// Whether a refusal ends the connection instead of answering a push.
fn is_of_the_connection(huh: &Huh) -> bool {
    use crate::wire::Code;
    let codes = [Code::HalfMessage, Code::SlowReader, Code::Connections];
    codes.iter().any(|it| it.to_string() == huh.code)
}

#[cfg(test)]
mod tests;
