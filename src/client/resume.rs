//! A client that outlives its connections: it connects again, repeats what has no answer under the
//! ids it had, and follows on from where it was.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use crate::client::{Address, Client, Error, Incoming, Push, Shown, follow};
use crate::clock;
use crate::id::ThreadId;
use crate::wire::Code;

/// Pushes without an answer: beyond them a push waits.
const UNANSWERED_MAX: usize = 1_024;
/// How long it waits before it connects again: at first, and at the most.
const PAUSE_US: (u64, u64) = (5_000, 1_000_000);
/// For how long it tries to connect.
const PATIENCE: Duration = Duration::from_secs(30);

/// A client that outlives its connections.
///
/// Every push has an id, so that one which is repeated is recorded once. What comes of pushes
/// goes to the connection that sent them, and is lost with it: whoever needs it follows the
/// thread, of which nothing is missed and nothing comes twice.
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
    /// What this connection was asked and hasn't answered, in order.
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

/// Where a follower is.
#[derive(Clone, Copy, Debug)]
struct Position {
    /// The number that it was asked for under.
    number: u64,
    after: u64,
    live: Option<bool>,
    /// Whether the pump has said that it follows.
    begun: bool,
}

impl Resuming {
    /// A client of whoever listens there. It connects when it first has something to do.
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

    /// Connects, and says again what has no answer.
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
            // Those who lost their connections together don't come back together.
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

    /// What is told of what came: nothing of what was told before, and nothing of what is to be
    /// tried again.
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
            // The pump is going: another will come, or the same again.
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
                // That it goes on after a lost connection is nobody's concern.
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

    /// What was refused: a push has its answer, and a thread is followed no more.
    fn refused(&mut self) -> Option<u64> {
        if let Some(Asked::Following(number)) = self.asked.front().copied() {
            self.asked.pop_front();
            self.follows.retain(|_, it| it.number != number);
            return Some(number);
        }
        self.answered()
    }

    /// The push that an answer is for, which has one now.
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
