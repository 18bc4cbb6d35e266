//! Opens forks: sessions that continue from an entry of another thread. A fork shares the entries
//! up to that entry, and doesn't copy them.

use std::sync::Arc;

use crate::engine::handle::pump::{Destination, Identity, Pump};
use crate::engine::read_fault::{owner, unread, unread_of};
use crate::engine::tree::lineage::{Lineage, Source};
use crate::id::{EntryId, ThreadId};
use crate::log;
use crate::log::ThreadRecord;
use crate::wire::{Code, Fault};

impl Pump {
    /// Returns a handle of the same pump, for messages into forks. Each message opens a session
    /// that continues from this entry, as if the entry were the newest of its thread and nothing
    /// waited or ran there.
    ///
    /// Entries up to this one are shared, not copied, and the thread itself stays as it is. Forking
    /// needs the same permission as sending into the thread.
    ///
    /// ```
    /// # extern crate pumphouse_core as pumphouse;
    /// # use pumphouse::prelude::*;
    /// # /// Comes back as it is.
    /// # #[derive(Payload)]
    /// # #[payload(ns = "https://example.org/ns/echo/v1")]
    /// # struct Echo {
    /// #     text: String,
    /// # }
    /// #
    /// # async fn echo(it: Echo) -> Echo {
    /// #     it
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let pump = pumphouse::builder().with(Listener::new("echo").on(echo)).build()?.start();
    /// let first = pump.tell(Echo { text: "one".into() }).await?;
    /// let other = pump.fork_at(&first).tell(Echo { text: "another".into() }).await?;
    /// assert_eq!((other.thread == first.thread, other.seq), (false, 2));
    /// assert_eq!(pump.log().read(&other.thread, 0, 1, 1).await?[0].id, first);
    /// # pump.shutdown().await?;
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn fork_at(&self, entry: &EntryId) -> Pump {
        let mut pump = self.clone();
        pump.destination = Destination::Fork(entry.clone());
        pump
    }

    /// Returns a thread's record, if an identity may know the thread: it owns the thread, or it is
    /// an operator.
    pub(crate) async fn permitted(
        &self,
        who: &Identity,
        thread: &ThreadId,
    ) -> Result<ThreadRecord, Fault> {
        match self.known(thread).await {
            Ok(Some((record, owner))) if who.operator || owner.as_ref() == Some(&who.name) => {
                Ok(record)
            }
            Ok(_) => Err(Fault::unknown_thread(thread.as_str())),
            Err(error) => {
                let owner = owner(&**self.log(), &thread.tree()).await;
                Err(unread_of(&error, (thread, owner.as_deref()), &who.name, who.operator))
            }
        }
    }

    /// Returns the record of a thread and the thread's owner, if the log has the thread.
    async fn known(
        &self,
        thread: &ThreadId,
    ) -> Result<Option<(ThreadRecord, Option<Arc<str>>)>, log::Error> {
        let log = self.log();
        let Some(record) = log.thread(thread).await? else { return Ok(None) };
        let mut root = record.clone();
        // A child thread has the owner of its session.
        while let Some(parent) = &root.parent {
            let Some(above) = log.thread(parent).await? else { return Ok(None) };
            root = above;
        }
        let opening = log.opening(&root).await?;
        Ok(Some((record, opening.map(|it| it.from.clone()))))
    }

    /// Returns the entry that a fork continues from, if the identity may fork there.
    pub(crate) async fn source(&self, who: &Identity, at: &EntryId) -> Result<Source, Fault> {
        let record = self.permitted(who, &at.thread).await?;
        if at.seq == 0 || at.seq > record.last_seq {
            let last = EntryId::new(&at.thread, record.last_seq);
            let text = format!("there is no entry {at} to fork at: its thread ends with {last}");
            let advice = format!("Name an entry that the thread has, such as {last}.");
            let fault = Fault::new(Code::Envelope, text);
            return Err(Fault { advice: Some(advice), ..fault });
        }
        let unreadable = |it: log::Error| unread(&it);
        let last = self.log().read(&at.thread, at.seq - 1, at.seq, 1).await.map_err(unreadable)?;
        if last.is_empty() {
            let text = format!("the entry {at} is missing");
            return Err(Fault::new(Code::Unreadable, text));
        }
        let lineage = Lineage::read(&**self.log(), Some(at)).await.map_err(unreadable)?;
        Ok(Source { at: at.clone(), lineage })
    }

    /// Returns whether the push that became this entry had the same destination. The result
    /// distinguishes a repeated push from another push with the same client id.
    pub(crate) async fn is_there(
        &self,
        destination: &Destination,
        entry: &log::Entry,
    ) -> Result<bool, log::Error> {
        let record = self.log().thread(&entry.id.thread).await?;
        // The push that opened a fork named the fork's source, not the fork.
        let opened = record.and_then(|it| it.fork).filter(|it| it.seq + 1 == entry.id.seq);
        Ok(match destination {
            Destination::Session => true,
            Destination::Thread(thread) => opened.is_none() && *thread == entry.id.thread,
            Destination::Fork(at) => opened.as_ref() == Some(at),
        })
    }
}
