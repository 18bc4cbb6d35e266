//! A client that survives lost connections. It connects again, repeats unanswered pushes with their
//! ids, and follows its threads again, each after the last entry that came.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::time::Duration;

use crate::client::kept::Kept;
use crate::client::limits::{PATIENCE, PAUSE_US, UNANSWERED_MAX};
use crate::client::{Address, Client, Error, Incoming, Push, Shown, follow};
use crate::clock;
use crate::id::ThreadId;
use crate::wire::Code;

/// A client that survives lost connections.
///
/// Every push has an id, so that a repeated push is recorded once. The pump sends the messages that
/// a push causes only over the connection that sent the push. These messages are lost if that
/// connection breaks. A program that needs all messages follows the thread. Then it misses none of
/// the thread's entries, and gets none twice.
///
/// ```no_run
/// # extern crate pumphouse_client as pumphouse;
/// use pumphouse::client::{Incoming, Push, Resuming};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let mut client = Resuming::new("pump.example:8765".parse()?).token("s3cret");
/// let echo = "<echo xmlns='https://xml-pipeline.org/ns/echo/v1'><text>hi</text></echo>";
/// let number = client.push(&Push::text(echo)?).await?;
/// loop {
///     match client.recv().await? {
///         Incoming::Accepted { push, .. } if push == number => break,
///         other => println!("{other:?}"),
///     }
/// }
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Resuming {
    address: Address,
    token: Option<String>,
    patience: Duration,
    client: Option<Client>,
    /// The pushes that the pump has neither accepted nor refused yet, with their numbers, in their
    /// order.
    unanswered: VecDeque<(u64, Push)>,
    /// The requests of the current connection that have no direct answer yet, in order.
    pending: VecDeque<PendingRequest>,
    follows: BTreeMap<ThreadId, Position>,
    waiting: Kept,
    pushed: u64,
    /// How many times the client has connected.
    connections: u64,
    /// When the client connected last, in microseconds.
    connected_us: u64,
    /// How long the client waits before the next attempt to connect if the current connection ends
    /// soon. None once the pump has sent something over this connection.
    pause_us: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
enum PendingRequest {
    Push(u64),
    Following(u64),
}

/// A followed thread, with the number of the last entry that came.
#[derive(Clone, Copy, Debug)]
struct Position {
    /// The number of the request to follow the thread.
    number: u64,
    after: u64,
    live: Option<bool>,
    /// Whether the pump has ever agreed to the request.
    begun: bool,
}

impl Resuming {
    /// Makes a client of the pump at an address. The client connects only when it first has to wait
    /// for the pump, mostly in the first [`recv`](Resuming::recv).
    #[must_use]
    pub fn new(address: Address) -> Resuming {
        Resuming {
            address,
            token: None,
            patience: PATIENCE,
            client: None,
            unanswered: VecDeque::new(),
            pending: VecDeque::new(),
            follows: BTreeMap::new(),
            waiting: Kept::default(),
            pushed: 0,
            connections: 0,
            connected_us: 0,
            pause_us: None,
        }
    }

    /// Sets a token, by which the client authenticates on each connection.
    #[must_use]
    pub fn token(self, token: &str) -> Resuming {
        Resuming { token: Some(token.to_owned()), ..self }
    }

    /// Sets how long the client tries to connect and to authenticate before it gives up. The
    /// default is 30 seconds.
    #[must_use]
    pub fn patience(self, patience: Duration) -> Resuming {
        Resuming { patience, ..self }
    }

    /// Queues a push, and returns the number that its acceptance or refusal will have. A push
    /// without an id gets a new one. If 1,024 pushes are neither accepted nor refused yet, waits
    /// until one of them is.
    ///
    /// # Errors
    /// If the pump can't be reached, or if too many messages came meanwhile. Then nothing is
    /// queued, and [`recv`](Resuming::recv) returns the messages that came.
    pub async fn push(&mut self, push: &Push) -> Result<u64, Error> {
        while self.unanswered.len() >= UNANSWERED_MAX {
            // What was fetched is kept in any case, since a followed thread goes on after it.
            if self.waiting.is_full() {
                return Err(Error::Full);
            }
            let incoming = self.fetch().await?;
            let bytes = self.client.as_ref().map_or(0, |it| it.fetched);
            self.waiting.push_last(bytes, incoming);
        }
        let number = self.pushed;
        self.pushed += 1;
        let push = push.clone();
        let push = if push.id().is_some() { push } else { push.with_fresh_id() };
        if let Some(client) = &mut self.client {
            client.push(&push);
            self.pending.push_back(PendingRequest::Push(number));
        }
        self.unanswered.push_back((number, push));
        Ok(number)
    }

    /// Follows a thread, beginning with the entry after number `after`. Returns the number that the
    /// pump's direct answer will have. If the pump refuses, the thread is no longer followed.
    ///
    /// # Errors
    /// If the thread's id has characters that XML doesn't allow.
    pub fn follow(&mut self, thread: &ThreadId, after: u64) -> Result<u64, Error> {
        self.begin(thread, after, None)
    }

    /// Follows a thread as [`follow`](Resuming::follow) does, and also gets its live payloads,
    /// which aren't in the log.
    ///
    /// # Errors
    /// If the thread's id has characters that XML doesn't allow.
    pub fn follow_live(&mut self, thread: &ThreadId, after: u64) -> Result<u64, Error> {
        self.begin(thread, after, Some(true))
    }

    fn begin(&mut self, thread: &ThreadId, after: u64, live: Option<bool>) -> Result<u64, Error> {
        let request = follow::request(thread, after, live)?;
        let number = self.pushed;
        self.pushed += 1;
        self.follows.insert(thread.clone(), Position { number, after, live, begun: false });
        if let Some(client) = &mut self.client {
            client.push(&request);
            self.pending.push_back(PendingRequest::Following(number));
        }
        Ok(number)
    }

    /// The number of the last entry that came from a followed thread. `None` if the thread isn't
    /// followed.
    #[must_use]
    pub fn after(&self, thread: &ThreadId) -> Option<u64> {
        self.follows.get(thread).map(|it| it.after)
    }

    /// How many pushes the pump has neither accepted nor refused yet.
    #[must_use]
    pub fn unanswered(&self) -> usize {
        self.unanswered.len()
    }

    /// How many times the client has connected.
    #[must_use]
    pub fn connections(&self) -> u64 {
        self.connections
    }

    /// Waits for the next direct answer or message. Each push and each request to follow gets one
    /// direct answer, with its number. If the connection breaks, the client connects again.
    ///
    /// # Errors
    /// If the pump can't be reached, or doesn't know the token.
    pub async fn recv(&mut self) -> Result<Incoming, Error> {
        match self.waiting.pop() {
            Some(it) => Ok(it),
            None => self.fetch().await,
        }
    }

    async fn fetch(&mut self) -> Result<Incoming, Error> {
        loop {
            let client = match &mut self.client {
                Some(client) => client,
                None => self.connect().await?,
            };
            match client.recv().await {
                Ok(Some(incoming)) => {
                    let incoming = self.take(incoming);
                    // Without a client, the message was a refusal of the connection.
                    if self.client.is_some() {
                        self.pause_us = None;
                    }
                    if let Some(incoming) = incoming {
                        return Ok(incoming);
                    }
                }
                Ok(None) | Err(Error::Io(_) | Error::Closed | Error::Xml(_)) => self.client = None,
                Err(error) => return Err(error),
            }
        }
    }

    /// Connects, follows all threads again, and repeats the pushes that have no direct answer.
    async fn connect(&mut self) -> Result<&mut Client, Error> {
        let patience = u64::try_from(self.patience.as_micros()).unwrap_or(u64::MAX);
        let (first, longest) = PAUSE_US;
        let mut pause = first;
        // A door that is full accepts a connection and ends it at once.
        let has_ended_soon = clock::now_us() < self.connected_us.saturating_add(longest);
        if let Some(last) = self.pause_us.filter(|_| has_ended_soon) {
            wait_about(last).await;
            pause = (2 * last).min(longest);
        }
        let until = clock::now_us().saturating_add(patience);
        let mut client = loop {
            let error = match in_time(until, self.try_connect()).await {
                Ok(client) => break client,
                Err(error @ (Error::Io(_) | Error::Closed | Error::Xml(_))) => error,
                Err(error) => return Err(error),
            };
            if clock::now_us().saturating_add(pause) >= until {
                return Err(error);
            }
            wait_about(pause).await;
            pause = (2 * pause).min(longest);
        };
        self.connections += 1;
        (self.connected_us, self.pause_us) = (clock::now_us(), Some(pause));
        self.pending.clear();
        for (thread, follow) in &self.follows {
            client.push(&follow::request(thread, follow.after, follow.live)?);
            self.pending.push_back(PendingRequest::Following(follow.number));
        }
        for (number, push) in &self.unanswered {
            client.push(push);
            self.pending.push_back(PendingRequest::Push(*number));
        }
        Ok(self.client.insert(client))
    }

    async fn try_connect(&self) -> Result<Client, Error> {
        let mut client = Client::connect_to(&self.address).await?;
        if let Some(token) = &self.token {
            client.authenticate(token).await?;
        }
        Ok(client)
    }

    /// Decides whether to return a message to the caller. Returns None for:
    ///
    /// - an entry that was returned before;
    /// - an entry of a followed thread that was sent to this client, because the entry also comes
    ///   by following;
    /// - a refusal after which the client connects again;
    /// - the pump's agreement to follow a thread again after a lost connection.
    fn take(&mut self, incoming: Incoming) -> Option<Incoming> {
        match incoming {
            Incoming::Accepted { accepted, .. } => {
                let push = self.answered()?;
                Some(Incoming::Accepted { push, accepted })
            }
            Incoming::UnknownThread { error, .. } => {
                let push = self.refused()?;
                Some(Incoming::UnknownThread { push, error })
            }
            // The pump is stopping. The client connects again, since this pump or a successor is
            // expected back.
            Incoming::Refused { huh, .. } if huh.code == Code::Stopping.to_string() => {
                self.client = None;
                None
            }
            Incoming::Refused { push: None, .. } => {
                self.client = None;
                None
            }
            Incoming::Refused { push: Some(_), huh } => {
                let push = self.refused();
                Some(Incoming::Refused { push, huh })
            }
            Incoming::Following { following, .. } => {
                let Some(PendingRequest::Following(push)) = self.pending.pop_front() else {
                    return None;
                };
                let at = self.follows.values_mut().find(|it| it.number == push)?;
                // The caller gets only the first agreement, not the agreements after lost
                // connections.
                let begun = std::mem::replace(&mut at.begun, true);
                (!begun).then_some(Incoming::Following { push, following })
            }
            Incoming::Message(message) => {
                let thread = message.thread.as_ref();
                let Some(at) = thread.and_then(|it| self.follows.get_mut(it)) else {
                    return Some(Incoming::Message(message));
                };
                match (message.shown, &message.entry) {
                    // This entry also comes by following, and is returned only then.
                    (Shown::Sent, Some(_)) => return None,
                    (Shown::Followed, Some(entry)) if entry.seq <= at.after => return None,
                    (Shown::Followed, Some(entry)) => at.after = entry.seq,
                    _ => {}
                }
                Some(Incoming::Message(message))
            }
            other => Some(other),
        }
    }

    /// Removes the oldest pending request, which was refused, and returns its number. If the
    /// request was to follow a thread, the client no longer follows the thread.
    fn refused(&mut self) -> Option<u64> {
        if let Some(PendingRequest::Following(number)) = self.pending.front().copied() {
            self.pending.pop_front();
            self.follows.retain(|_, it| it.number != number);
            return Some(number);
        }
        self.answered()
    }

    /// Removes the oldest pending push, which was accepted or refused, and returns its number.
    fn answered(&mut self) -> Option<u64> {
        let Some(PendingRequest::Push(number)) = self.pending.pop_front() else { return None };
        let at = self.unanswered.iter().position(|(it, _)| *it == number);
        at.and_then(|at| self.unanswered.remove(at));
        Some(number)
    }
}

/// Does something that has to be over at a time, in microseconds.
#[expect(clippy::disallowed_methods, reason = "a client runs beside no engine, and has no port")]
async fn in_time<T>(
    until_us: u64,
    what: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    let left = Duration::from_micros(until_us.saturating_sub(clock::now_us()));
    let late = |_| {
        let text = "the pump accepts the connection too slowly, or doesn't answer";
        Error::Io(io::Error::new(io::ErrorKind::TimedOut, text))
    };
    tokio::time::timeout(left, what).await.map_err(late)?
}

/// Waits for at least half of the pause, and at most the whole one. The time is partly random, so
/// that clients that lost their connections at the same time don't all come back at the same time.
#[expect(clippy::disallowed_methods, reason = "a client runs beside no engine, and has no port")]
async fn wait_about(pause_us: u64) {
    let us = pause_us / 2 + clock::random() % (pause_us / 2);
    tokio::time::sleep(Duration::from_micros(us)).await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::core::Authenticated;

    /// A client of a pump that accepts connections, and says nothing.
    async fn of_silence() -> (tokio::net::TcpListener, Resuming) {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = Address::Tcp(listener.local_addr().unwrap().to_string());
        let client = Resuming::new(address).token("a token that is long");
        (listener, client.patience(Duration::from_millis(200)))
    }

    #[tokio::test]
    async fn a_pump_that_answers_no_token_is_given_up_in_the_time_of_patience() {
        let (_listener, mut client) = of_silence().await;
        let told = client.recv().await.unwrap_err();
        assert!(matches!(&told, Error::Io(it) if it.kind() == io::ErrorKind::TimedOut), "{told}");
    }

    #[tokio::test]
    async fn a_push_that_finds_no_room_for_messages_loses_none_of_them() {
        let (_listener, mut client) = of_silence().await;
        let push = Push::text("<a xmlns='urn:x'/>").unwrap();
        for _ in 0..UNANSWERED_MAX {
            client.push(&push).await.unwrap();
        }
        let identity = "ada".to_owned();
        let last = Incoming::Authenticated(Authenticated { identity });
        client.waiting.push_last(crate::client::KEPT_BYTES_MAX, last.clone());
        assert!(matches!(client.push(&push).await, Err(Error::Full)));
        assert_eq!(client.unanswered(), UNANSWERED_MAX);
        assert_eq!(client.recv().await.unwrap(), last);
    }
}
