//! What may happen to a tree of threads: pushes, and what handlers emit and return.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::engine::tree::lineage::Source;
use crate::engine::tree::observer::PushObserver;
use crate::engine::tree::route::{Addressed, Receiver};
use crate::id::{EntryId, ThreadId};
use crate::listener::{ArrivalSignal, Entry, Target};
use crate::log::{Flags, Open};
use crate::name::Name;
use crate::wire::budget::Charge;
use crate::wire::core::{Huh, said};
use crate::wire::{Checked, Fault};

/// The name that the pump speaks under.
pub(crate) const CORE_NAME: &str = "core";

/// Who pushes, and who hears what becomes of it: known before anything of a push is looked at.
pub(crate) struct Pusher {
    pub(crate) identity: Arc<str>,
    pub(crate) operator: bool,
    /// Whether it is told why exactly nobody takes something.
    pub(crate) tells_why: bool,
    /// Who hears what becomes of the push, and under which number.
    pub(crate) inlet: Arc<dyn PushObserver>,
    pub(crate) number: u64,
    /// Whether the push is its only one without an answer, where that is known.
    pub(crate) is_alone: Option<bool>,
}

/// A client's own id of a push, which is no other push's.
pub(crate) struct ClientId {
    pub(crate) id: Arc<str>,
    /// Who else hears whether the push was accepted: it lets go of the id.
    pub(crate) claim: Arc<dyn PushObserver>,
}

/// A push on its way into a thread.
pub(crate) struct Push {
    pub(crate) by: Pusher,
    pub(crate) message: Addressed,
    pub(crate) meta: Option<Bytes>,
    pub(crate) client_id: Option<ClientId>,
    /// What its session goes on from, where it opens a fork.
    pub(crate) source: Option<Source>,
}

/// Which handler of which message.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Key {
    pub(crate) thread: ThreadId,
    pub(crate) seq: u64,
    pub(crate) listener: usize,
}

/// An entry that a stop left behind, and what was sent while it was being handled.
pub(crate) struct Left {
    pub(crate) open: Open,
    pub(crate) sent: Vec<Entry>,
    /// What came into its thread after it, where its listener may wait for some of that.
    pub(crate) since: Vec<Entry>,
    /// The push that it came of, where its listener may answer that.
    pub(crate) asked: Option<Entry>,
    /// What its listener said last before it came to it, where that is asked for.
    pub(crate) said: u64,
}

/// An emission that was looked at, or why it can't go out.
pub(crate) struct Ready {
    pub(crate) target: Target,
    pub(crate) what: Result<Checked, Fault>,
    pub(crate) flags: Flags,
    /// What its `<meta>` is to hold.
    pub(crate) meta: Option<Bytes>,
    /// What nobody takes, where that is why it can't go out: some are told more of it.
    pub(crate) sought: Option<Name>,
}

impl Ready {
    /// Something that went wrong, for the sender of the message at hand.
    pub(crate) fn fault(fault: Fault) -> Ready {
        let (target, flags) = (Target::Sender, Flags::NONE);
        Ready { target, what: Err(fault), flags, meta: None, sought: None }
    }

    /// Whether an earlier attempt came to the same at this place, of what it came to in order:
    /// then that is taken, and nothing is sent again.
    pub(crate) fn repeats(&self, message: &Entry, sent: &mut VecDeque<Entry>) -> bool {
        let said = match &self.what {
            Ok(checked) => {
                // What the pump told of a refusal stands behind what was refused. A charge that
                // was refused spent nothing, and is looked at anew.
                let unspent = |it: &Entry| it.is_refused() && it.is::<Charge>();
                let aside = |it: &Entry| it.from() == CORE_NAME || unspent(it);
                while sent.front().is_some_and(aside) {
                    sent.pop_front();
                }
                Some(checked.clone())
            }
            Err(fault) => said(fault),
        };
        let (Some(said), Some(first)) = (said, sent.pop_front()) else { return false };
        let to = match &self.target {
            Target::Listener(name) => first.to() == Some(name),
            Target::Oneself | Target::Note(None) => first.to() == Some(first.from()),
            Target::Note(Some(name)) => first.to() == Some(name),
            // Who that is, the log knows.
            Target::Opener | Target::Along | Target::Above | Target::Askers(..) => true,
            it => first.reply_to() == it.answered(message),
        };
        let explained = || self.sought.is_some() && first.decode_if::<Huh>().is_some();
        let is_it = said.name() == first.name() && said.element().canonical() == *first.body();
        to && (is_it || explained())
    }
}

/// What may happen to a tree.
pub(crate) enum Event {
    /// Somebody outside sends something into a thread.
    Push(ThreadId, Box<Push>),
    /// A handler sends something before it returns.
    Sent(Key, Vec<Ready>, oneshot::Sender<Result<(), Fault>>),
    /// A handler came to its end.
    Return(Key, Vec<Ready>),
    /// A handler's time is up.
    Overtime(Key),
    /// A thread was left with these when the pump stopped.
    Recover(ThreadId, Vec<Left>),
    /// A listener that a thread waits for has room for one more handler.
    Room(ThreadId, usize),
    /// The time of a delivery has come.
    Due(Key),
    /// The pump itself says something in a thread of its own.
    Note(ThreadId, Vec<Checked>),
}

impl Event {
    /// The thread it is for.
    pub(super) fn thread(&self) -> &ThreadId {
        match self {
            Event::Push(it, _)
            | Event::Recover(it, _)
            | Event::Room(it, _)
            | Event::Note(it, _) => it,
            Event::Sent(key, ..)
            | Event::Return(key, _)
            | Event::Overtime(key)
            | Event::Due(key) => &key.thread,
        }
    }
}

/// A handler to run.
pub(crate) struct Start {
    pub(crate) entry: Entry,
    pub(crate) receiver: Receiver,
    pub(crate) attempt: u32,
    pub(crate) queue: Vec<Entry>,
    /// Up to which entry history and folds are.
    pub(crate) as_of: u64,
    pub(crate) cancel: Option<CancellationToken>,
    /// Where it hears of what comes meanwhile.
    pub(crate) arrivals: Option<ArrivalSignal>,
}

/// The thread of the organism's own life.
pub(crate) const ORGANISM: &str = "organism";

impl Push {
    /// One that nobody gave an id, into a thread that is no fork.
    pub(crate) fn new(by: Pusher, message: Addressed) -> Push {
        Push { by, message, meta: None, client_id: None, source: None }
    }

    /// What its client calls it.
    pub(crate) fn client_id(&self) -> Option<&str> {
        self.client_id.as_ref().map(|own| &*own.id)
    }

    /// The entry that its session is forked at, if it opens a fork.
    pub(crate) fn fork(&self) -> Option<EntryId> {
        self.source.as_ref().map(|it| it.at.clone())
    }
}
