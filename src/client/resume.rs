//! A client that survives lost connections: it connects again, repeats unanswered pushes with their
//! ids, and continues to follow threads at its positions.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use crate::client::{Address, Client, Error, Incoming, Push, Shown, follow};
use crate::clock;
use crate::id::ThreadId;
use crate::wire::Code;

/// How many pushes may be unanswered. A further push waits.
const UNANSWERED_MAX: usize = 1_024;
/// How long the client waits before it connects again: the first time, and at most.
const PAUSE_US: (u64, u64) = (5_000, 1_000_000);
/// How long it tries to connect.
const PATIENCE: Duration = Duration::from_secs(30);

/// A client that survives lost connections.
///
/// Every push has an id, so that a repeated push is recorded once. Answers go to the connection
/// that sent the push, and are lost with it. A program that needs them follows the thread, where
/// nothing is missed and nothing comes twice.
///
/// ```no_run
/// use pumphouse::client::{Incoming, Push, Resuming};
/// use pumphouse::listeners::echo::Echo;
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let mut client = Resuming::new("pump.example:8765".parse()?).token("s3cret");
/// let number = client.push(&Push::of(&Echo { text: "hello".into() })?).await?;
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
    /// Pushes without an answer, by number, in their order.
    unanswered: VecDeque<(u64, Push)>,
    /// Requests of this connection without an answer, in order.
    asked: VecDeque<Asked>,
    follows: BTreeMap<ThreadId, Position>,
    waiting: VecDeque<Incoming>,
    pushed: u64,
    /// How often it connected.
    connections: u64,
}

#[derive(Clone, Copy, Debug)]
enum Asked {
    Push(u64),
    Following(u64),
}

/// The position of a followed thread.
#[derive(Clone, Copy, Debug)]
struct Position {
    /// The number of the request to follow it.
    number: u64,
    after: u64,
    live: Option<bool>,
    /// Whether the pump has said that it follows.
    begun: bool,
}

impl Resuming {
    /// A client of the pump at an address. It connects when it first has something to do.
    #[must_use]
    pub fn new(address: Address) -> Resuming {
        Resuming {
            address,
            token: None,
            patience: PATIENCE,
            client: None,
            unanswered: VecDeque::new(),
            asked: VecDeque::new(),
            follows: BTreeMap::new(),
            waiting: VecDeque::new(),
            pushed: 0,
            connections: 0,
        }
    }

    /// Says who is sending, at the beginning of each connection.
    #[must_use]
    pub fn token(self, token: &str) -> Resuming {
        Resuming { token: Some(token.to_owned()), ..self }
    }

    /// Tries to connect for so long before it gives up; 30 seconds unless said.
    #[must_use]
    pub fn patience(self, patience: Duration) -> Resuming {
        Resuming { patience, ..self }
    }

    /// Pushes, under an id of its own where it has none; the number under which its answer will
    /// come. It waits while 1,024 have no answer.
    ///
    /// # Errors
    /// Where the pump can't be reached.
    pub async fn push(&mut self, push: &Push) -> Result<u64, Error> {
        while self.unanswered.len() >= UNANSWERED_MAX {
            let incoming = self.fetch().await?;
            self.waiting.push_back(incoming);
        }
        let number = self.pushed;
        self.pushed += 1;
        let push = push.clone();
        let push = if push.id().is_some() { push } else { push.with_fresh_id() };
        if let Some(client) = &mut self.client {
            client.push(&push);
            self.asked.push_back(Asked::Push(number));
        }
        self.unanswered.push_back((number, push));
        Ok(number)
    }

    /// Follows a thread from the entry after a number on; the number under which the answer will
    /// come. After a refusal it is followed no more.
    ///
    /// # Errors
    /// Where the thread's name holds what XML can't.
    pub fn follow(&mut self, thread: &ThreadId, after: u64) -> Result<u64, Error> {
        self.begin(thread, after, None)
    }

    /// The same, which sees live payloads as well.
    ///
    /// # Errors
    /// Where the thread's name holds what XML can't.
    pub fn follow_live(&mut self, thread: &ThreadId, after: u64) -> Result<u64, Error> {
        self.begin(thread, after, Some(true))
    }

    fn begin(&mut self, thread: &ThreadId, after: u64, live: Option<bool>) -> Result<u64, Error> {
        let asked = follow::asked(thread, after, live)?;
        let number = self.pushed;
        self.pushed += 1;
        self.follows.insert(thread.clone(), Position { number, after, live, begun: false });
        if let Some(client) = &mut self.client {
            client.push(&asked);
            self.asked.push_back(Asked::Following(number));
        }
        Ok(number)
    }

    /// The number of the last entry that came of a thread it follows.
    #[must_use]
    pub fn after(&self, thread: &ThreadId) -> Option<u64> {
        self.follows.get(thread).map(|it| it.after)
    }

    /// How many pushes have no answer yet.
    #[must_use]
    pub fn unanswered(&self) -> usize {
        self.unanswered.len()
    }

    /// How often it has connected.
    #[must_use]
    pub fn connections(&self) -> u64 {
        self.connections
    }

    /// The next that comes: answers by the numbers of their pushes, each once, and messages.
    ///
    /// # Errors
    /// Where the pump can't be reached, or doesn't know the token.
    pub async fn recv(&mut self) -> Result<Incoming, Error> {
        match self.waiting.pop_front() {
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
                    if let Some(incoming) = self.take(incoming) {
                        return Ok(incoming);
                    }
                }
                Ok(None) | Err(Error::Io(_) | Error::Closed | Error::Xml(_)) => self.client = None,
                Err(error) => return Err(error),
            }
        }
    }

    /// Connects, and repeats requests without an answer.
    async fn connect(&mut self) -> Result<&mut Client, Error> {
        let patience = u64::try_from(self.patience.as_micros()).unwrap_or(u64::MAX);
        let (first, longest) = PAUSE_US;
        let (until, mut pause) = (clock::now_us().saturating_add(patience), first);
        let mut client = loop {
            let error = match self.try_connect().await {
                Ok(client) => break client,
                Err(error @ (Error::Io(_) | Error::Closed | Error::Xml(_))) => error,
                Err(error) => return Err(error),
            };
            if clock::now_us().saturating_add(pause) >= until {
                return Err(error);
            }
            // Clients that lost their connections at the same time don't come back at the same
            // time.
            wait(pause / 2 + clock::random() % (pause / 2)).await;
            pause = (2 * pause).min(longest);
        };
        self.connections += 1;
        self.asked.clear();
        for (thread, follow) in &self.follows {
            client.push(&follow::asked(thread, follow.after, follow.live)?);
            self.asked.push_back(Asked::Following(follow.number));
        }
        for (number, push) in &self.unanswered {
            client.push(push);
            self.asked.push_back(Asked::Push(*number));
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

    /// The message to return, if any: none that was returned before, and none about a request that
    /// is tried again.
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
            // The pump is stopping. It will come back, or another in its place.
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
                let Some(Asked::Following(push)) = self.asked.pop_front() else { return None };
                let at = self.follows.values_mut().find(|it| it.number == push)?;
                // The caller needn't know that following continues after a lost connection.
                let begun = std::mem::replace(&mut at.begun, true);
                (!begun).then_some(Incoming::Following { push, following })
            }
            Incoming::Message(message) => {
                let thread = message.thread.as_ref();
                let Some(at) = thread.and_then(|it| self.follows.get_mut(it)) else {
                    return Some(Incoming::Message(message));
                };
                match (message.shown, &message.entry) {
                    // It comes once, by following.
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

    /// Handles a refusal: a push has its answer then, and a thread is followed no more.
    fn refused(&mut self) -> Option<u64> {
        if let Some(Asked::Following(number)) = self.asked.front().copied() {
            self.asked.pop_front();
            self.follows.retain(|_, it| it.number != number);
            return Some(number);
        }
        self.answered()
    }

    /// Removes the push that an answer is for.
    fn answered(&mut self) -> Option<u64> {
        let Some(Asked::Push(number)) = self.asked.pop_front() else { return None };
        let at = self.unanswered.iter().position(|(it, _)| *it == number);
        at.and_then(|at| self.unanswered.remove(at));
        Some(number)
    }
}

#[expect(clippy::disallowed_methods, reason = "a client runs beside no engine, and has no port")]
async fn wait(us: u64) {
    tokio::time::sleep(Duration::from_micros(us)).await;
}
