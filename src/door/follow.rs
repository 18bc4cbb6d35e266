//! The threads that a connection follows. The connection gets the entries of these threads as they
//! come. A thread is read only as fast as the client takes its entries.

use std::task::{Context, Poll};

use futures_util::stream::{self, BoxStream, StreamExt};

use crate::door::session::Session;
use crate::engine::{self, Followed, Identity, Pump};
use crate::id::ThreadId;
use crate::wire::meta::{Follow, Following};
use crate::wire::{Code, Fault};

/// All threads that a connection follows.
pub(super) struct Follows {
    pump: Pump,
    all: Vec<FollowedThread>,
    /// Whether the follows are ending. Each one ends once it has sent every entry that the log has.
    ending: bool,
}

/// A thread that a connection follows.
struct FollowedThread {
    /// The number of the request to follow the thread.
    number: u64,
    /// Whether the pump has allowed the client to follow the thread.
    begun: bool,
    /// Whether the client ended the follow before the pump had answered. In that case, only the
    /// answer is still sent.
    ended: bool,
    thread: ThreadId,
    /// The number of the last entry that was sent.
    after: u64,
    updates: BoxStream<'static, Result<FollowUpdate, Fault>>,
}

/// An item of a followed thread's stream.
enum FollowUpdate {
    /// Following is allowed. The number is that of the thread's last entry so far.
    Begun(u64),
    More(Box<Followed>),
}

impl Follows {
    pub(super) fn new(pump: Pump) -> Follows {
        Follows { pump, all: Vec::new(), ending: false }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Begins to follow a thread. The session is told later whether the client may follow the
    /// thread. Fails if the connection follows too many threads.
    pub(super) fn begin(
        &mut self,
        number: u64,
        follow: &Follow,
        who: &Identity,
    ) -> Result<(), Fault> {
        let thread = ThreadId::new(&follow.thread);
        self.end(Some(&thread));
        let max = self.pump.limits().follows_max;
        // A follow that the client ended before its answer stays in the list until the answer is
        // sent.
        if self.all.iter().filter(|it| !it.ended).count() >= max {
            let text = format!("follows_max is {max}, and this connection follows that many");
            return Err(Fault::new(Code::Limit, text));
        }
        let (after, live) = (follow.after.unwrap_or(0), follow.live.unwrap_or(false));
        let (pump, who, id) = (self.pump.clone(), who.clone(), thread.clone());
        let permitted = async move {
            let last = pump.may_follow(&who, &id).await?;
            pump.record_follower(&who.name, &id);
            Ok(FollowUpdate::Begun(last))
        };
        let (pump, id) = (self.pump.clone(), thread.clone());
        let entries = async move {
            entries(if live { pump.follow(&id, after) } else { pump.follow_log(&id, after) })
        };
        let updates = stream::once(permitted).chain(stream::once(entries).flatten()).boxed();
        self.all.push(FollowedThread {
            number,
            begun: false,
            ended: false,
            thread,
            after,
            updates,
        });
        Ok(())
    }

    /// Stops following a thread, or all threads.
    pub(super) fn end(&mut self, thread: Option<&ThreadId>) {
        self.all.retain_mut(|followed| {
            let stays = thread.is_some_and(|thread| followed.thread != *thread);
            followed.ended |= !stays;
            stays || !followed.begun
        });
    }

    /// Lets each follow end once it has sent every entry that the log has.
    pub(super) fn come_to_an_end(&mut self) {
        if std::mem::replace(&mut self.ending, true) {
            return;
        }
        self.all.retain(|it| it.begun);
        for followed in &mut self.all {
            followed.updates = logged(self.pump.follow_log(&followed.thread, followed.after));
        }
    }

    /// Passes entries to the session as long as the session has room. Returns true if any follow
    /// had an update or ended.
    pub(super) fn poll(&mut self, context: &mut Context<'_>, session: &mut Session) -> bool {
        // Each call begins with another thread, so that no thread always uses up the session's
        // room.
        if self.all.len() > 1 {
            self.all.rotate_left(1);
        }
        let (mut busy, pump) = (false, &self.pump);
        self.all.retain_mut(|followed| {
            while followed.may_tell(session) {
                let Poll::Ready(update) = followed.updates.poll_next_unpin(context) else { break };
                busy = true;
                match update {
                    Some(Ok(update)) => {
                        followed.tell(update, session);
                        if followed.ended {
                            return false;
                        }
                    }
                    Some(Err(fault)) => {
                        tracing::debug!(%fault, thread = %followed.thread, "a follow is refused");
                        pump.refused(&session.sender(), &fault);
                        session.stop_following(followed.number, fault);
                        return false;
                    }
                    None => return false,
                }
            }
            true
        });
        busy
    }
}

impl FollowedThread {
    /// Whether the session takes more updates of this thread. A session takes entries only after
    /// the request to follow was answered.
    fn may_tell(&self, session: &Session) -> bool {
        session.has_outbound_room() && (!self.begun || session.is_answered(self.number))
    }

    fn tell(&mut self, update: FollowUpdate, session: &mut Session) {
        match update {
            FollowUpdate::Begun(last) => {
                self.begun = true;
                let (thread, after) = (self.thread.as_str().to_owned(), self.after);
                session.follow(self.number, Following { thread, after, last });
            }
            FollowUpdate::More(followed) => {
                if let Followed::Entry(entry) = &*followed {
                    self.after = entry.seq();
                }
                session.show(&self.thread, &followed);
            }
        }
    }
}

/// Returns a stream of the thread's entries: first the recorded ones, then later ones as they come.
fn entries(follow: engine::Follow) -> BoxStream<'static, Result<FollowUpdate, Fault>> {
    let next = |mut follow: engine::Follow| async move {
        let next = follow.next().await;
        Some((next.map(|it| FollowUpdate::More(Box::new(it))), follow))
    };
    stream::unfold(follow, next).boxed()
}

/// Returns a stream of the thread's recorded entries. The stream ends as soon as the log has no
/// further entry.
fn logged(follow: engine::Follow) -> BoxStream<'static, Result<FollowUpdate, Fault>> {
    let next = |mut follow: engine::Follow| async move {
        let next = follow.logged().await.transpose()?;
        Some((next.map(|it| FollowUpdate::More(Box::new(Followed::Entry(it)))), follow))
    };
    stream::unfold(follow, next).boxed()
}
