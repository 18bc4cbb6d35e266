//! Following a thread: the client gets the thread's entries as they are recorded.

use crate::client::{Client, Error, Incoming, Message, Push, Shown};
use crate::id::ThreadId;
use crate::wire::Fault;
use crate::wire::meta::{self, Following};

/// A thread that a client follows.
///
/// ```no_run
/// # extern crate pumphouse_client as pumphouse;
/// use pumphouse::ThreadId;
/// use pumphouse::client::Client;
///
/// # async fn example() -> Result<(), pumphouse::client::Error> {
/// let mut client = Client::connect("127.0.0.1:8765").await?;
/// let mut follow = client.follow(&ThreadId::new("sess-k3v9x2ma"), 0).await?;
/// while let Some(message) = follow.next().await? {
///     println!("{}: {:?}", message.from, message.payload);
/// }
/// # Ok(()) }
/// ```
///
/// Other messages that come meanwhile are kept for [`recv`](Client::recv). To stop following, call
/// [`end`](Follow::end); dropping a `Follow` isn't enough.
#[derive(Debug)]
pub struct Follow<'a> {
    client: &'a mut Client,
    thread: ThreadId,
    after: u64,
    last: u64,
}

impl<'a> Follow<'a> {
    pub(super) fn new(
        client: &'a mut Client,
        thread: ThreadId,
        following: &Following,
    ) -> Follow<'a> {
        Follow { client, thread, after: following.after, last: following.last }
    }

    /// Waits for the thread's next entry or live payload. Returns `None` once the connection has
    /// ended.
    ///
    /// # Errors
    /// If the connection breaks, or if the pump ends it with a fault.
    pub async fn next(&mut self) -> Result<Option<Message>, Error> {
        let kept = self.client.waiting.take(|it| is_of(&self.thread, it));
        let mut next = match kept {
            Some(it) => Some(it),
            None => self.client.fetch().await?,
        };
        loop {
            match next {
                None => return Ok(None),
                Some(Incoming::Message(message)) if is_shown(&self.thread, &message) => {
                    let seq = message.entry.as_ref().map(|it| it.seq);
                    self.after = seq.unwrap_or(self.after);
                    return Ok(Some(message));
                }
                Some(Incoming::Refused { push: None, huh }) => {
                    return Err(Error::Refused(Box::new(huh)));
                }
                Some(other) => self.client.hold(other)?,
            }
            next = self.client.fetch().await?;
        }
    }

    /// The number of the last entry that came. A later [`follow`](Client::follow) can begin after
    /// this number.
    #[must_use]
    pub fn after(&self) -> u64 {
        self.after
    }

    /// Whether the client has received all entries that the thread had when the following began.
    #[must_use]
    pub fn has_caught_up(&self) -> bool {
        self.after >= self.last
    }

    /// Stops following, and waits until the pump has agreed. Entries of the thread that come
    /// meanwhile are dropped.
    ///
    /// # Errors
    /// If the connection breaks, or if the pump ends it with a fault.
    pub async fn end(self) -> Result<(), Error> {
        let thread = Some(self.thread.as_str().to_owned());
        let number = self.client.push(&Push::of(&meta::Unfollow { thread })?);
        loop {
            match self.client.fetch().await?.ok_or(Error::Closed)? {
                Incoming::Unfollowed { push, .. } if push == number => return Ok(()),
                it if is_of(&self.thread, &it) => {}
                other => self.client.keep(other, number)?,
            }
        }
    }
}

fn is_of(thread: &ThreadId, incoming: &Incoming) -> bool {
    matches!(incoming, Incoming::Message(message) if is_shown(thread, message))
}

fn is_shown(thread: &ThreadId, message: &Message) -> bool {
    message.shown != Shown::Sent && message.thread.as_ref() == Some(thread)
}

/// Makes the request to follow a thread.
pub(super) fn request(thread: &ThreadId, after: u64, live: Option<bool>) -> Result<Push, Fault> {
    let (thread, after) = (thread.as_str().to_owned(), Some(after));
    Push::of(&meta::Follow { thread, after, live })
}
