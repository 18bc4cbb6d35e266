//! The events of a tree, such as pushes, emissions and returns of handlers, timers, free places,
//! and unfinished work after a restart.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::engine::tree::lineage::Source;
use crate::engine::tree::observer::PushObserver;
use crate::engine::tree::route::{Addressed, Receiver};
use crate::id::{EntryId, ThreadId};
use crate::listener::{ArrivalSignal, Entry, StopCharge, Target};
use crate::log::{Flags, Open};
use crate::name::Name;
use crate::wire::budget::Charge;
use crate::wire::core::{Huh, said};
use crate::wire::{Checked, Fault};

/// The sender of a push and the observer of the push. Both are known before the push is checked.
pub struct Pusher {
    /// The identity that pushes.
    pub identity: Arc<str>,
    /// Whether the identity is an operator.
    pub operator: bool,
    /// Whether the sender may know why no listener takes a payload.
    pub may_know_why: bool,
    /// Who hears what becomes of the push.
    pub observer: Arc<dyn PushObserver>,
    /// The push's number, for the observer.
    pub number: u64,
    /// Whether this is the only unanswered push of its connection. None if that is unknown.
    pub is_alone: Option<bool>,
}

/// The sender's own id for a push. If an identity sends several pushes with one client id, the pump
/// accepts only one of them.
pub(crate) struct ClientId {
    pub(crate) id: Arc<str>,
    /// A second observer of the push. It releases the client id once the push is accepted or
    /// refused.
    pub(crate) claim: Arc<dyn PushObserver>,
}

/// A push on its way into a thread.
pub(crate) struct Push {
    pub(crate) by: Pusher,
    pub(crate) message: Addressed,
    pub(crate) meta: Option<Bytes>,
    pub(crate) client_id: Option<ClientId>,
    /// If the push opens a fork: the entry that the fork continues from.
    pub(crate) source: Option<Source>,
}

/// Identifies the handling of a message by a listener: the message's thread and number, and the
/// listener.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Key {
    pub(crate) thread: ThreadId,
    pub(crate) seq: u64,
    pub(crate) listener: usize,
}

/// An entry that was unfinished when the pump stopped, with the data that its continuation needs.
pub(crate) struct Unfinished {
    pub(crate) open: Open,
    pub(crate) sent: Vec<Entry>,
    /// The later entries of the thread, if the entry's listener may wait for one of them.
    pub(crate) since: Vec<Entry>,
    /// The entry of the push that led to this entry, if the continuation needs that push.
    pub(crate) asked: Option<Entry>,
    /// If the listener has `takes_queue`: the number of the last emission that the listener sent
    /// before it began to handle the entry. Otherwise 0.
    pub(crate) last_emission: u64,
    /// Whether the entry waits until it is let go: see `tree/trial.rs`.
    pub(crate) is_held: bool,
}

/// A checked emission, or the fault that keeps it from being sent.
pub(crate) struct Ready {
    pub(crate) target: Target,
    pub(crate) payload: Result<Checked, Fault>,
    pub(crate) flags: Flags,
    /// The content of the entry's `<meta>`.
    pub(crate) meta: Option<Bytes>,
    /// The payload's name, if the sender of the message asked for a child with this payload, and no
    /// listener takes the payload. The name serves to tell that sender the reason.
    pub(crate) sought: Option<Name>,
}

impl Ready {
    /// Returns an emission that sends a fault to the sender of the message.
    pub(crate) fn fault(fault: Fault) -> Ready {
        let (target, flags) = (Target::Sender, Flags::NONE);
        Ready { target, payload: Err(fault), flags, meta: None, sought: None }
    }

    /// Returns whether this emission equals the next emission of an earlier attempt. If so, the
    /// caller doesn't send this emission again. `sent` holds the emissions of the earlier attempt
    /// in order. The call removes the compared emission from `sent`, and those that it skips.
    pub(crate) fn repeats(&self, message: &Entry, sent: &mut VecDeque<Entry>) -> bool {
        let emitted = match &self.payload {
            Ok(checked) => {
                // Two kinds of entries in `sent` are skipped: those of the pump itself, and refused
                // charges. A refused charge spent nothing, so the ledger checks the charge again.
                let unspent = |it: &Entry| it.is_refused() && it.is::<Charge>();
                let aside = |it: &Entry| it.is_from_core() || unspent(it);
                while sent.front().is_some_and(aside) {
                    sent.pop_front();
                }
                Some(checked.clone())
            }
            Err(fault) => said(fault),
        };
        let (Some(emitted), Some(first)) = (emitted, sent.pop_front()) else { return false };
        let to = match &self.target {
            Target::Listener(name) => first.to() == Some(name),
            Target::Oneself | Target::Note(None) => first.to() == Some(first.from()),
            Target::Note(Some(name)) => first.to() == Some(name),
            // For these targets the receiver follows from the log, so both attempts have the same
            // receiver.
            Target::Opener | Target::Along | Target::Above | Target::Askers(..) => true,
            it => first.reply_to() == it.answered(message),
        };
        let explained = || self.sought.is_some() && first.decode_if::<Huh>().is_some();
        let is_it =
            emitted.name() == first.name() && emitted.element().canonical() == *first.body();
        to && (is_it || explained())
    }
}

/// An event of a tree.
pub(crate) enum Event {
    /// A push into a thread.
    Push(ThreadId, Box<Push>),
    /// A handler sends something before it returns.
    Sent(Key, Vec<Ready>, oneshot::Sender<Result<(), Fault>>),
    /// A handler ended, with these emissions.
    Return(Key, Vec<Ready>),
    /// A handler's time is up.
    Overtime(Key),
    /// The pump has started again. These entries of the thread were unfinished when the pump
    /// stopped.
    Resume(ThreadId, Vec<Unfinished>),
    /// A message that was held after the start is handled alone.
    Trial(Key, Trial),
    /// All messages of the thread that were held after the start are handled.
    LetGo(ThreadId),
    /// A listener has a free place again. The thread has deliveries that wait for such a place.
    Room(ThreadId, usize),
    /// A handler can't begin, since a fold of its listener panicked.
    Unfolded(Key, FoldPanic),
    /// The time of a delivery has come.
    Due(Key),
    /// Payloads for the organism's own thread.
    Note(ThreadId, Words),
}

/// A step of handling a message alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trial {
    /// The message is not to be handled for a while. If the process ends meanwhile, something else
    /// ended it.
    Pause,
    /// The message is handled. This is the attempt with this number.
    Begin(u32),
    /// From now on the message isn't handled alone any more.
    Over,
}

/// Payloads of the pump itself, on their way into the organism's own thread.
#[derive(Default)]
pub(crate) struct Words {
    /// The payloads.
    pub(crate) all: Vec<Checked>,
    /// The message during whose handling a listener recorded the payloads. None for payloads that
    /// the pump records by itself.
    pub(crate) cause: Option<EntryId>,
    /// Gets a value once the log has the payloads.
    pub(crate) done: Option<oneshot::Sender<Result<(), Fault>>>,
}

impl Event {
    /// Returns the thread of the event.
    pub(super) fn thread(&self) -> &ThreadId {
        match self {
            Event::Push(it, _)
            | Event::Resume(it, _)
            | Event::LetGo(it)
            | Event::Room(it, _)
            | Event::Note(it, ..) => it,
            Event::Sent(key, ..)
            | Event::Trial(key, _)
            | Event::Return(key, _)
            | Event::Overtime(key)
            | Event::Unfolded(key, _)
            | Event::Due(key) => &key.thread,
        }
    }
}

/// A panic of a fold.
#[derive(Clone, Debug)]
pub(crate) struct FoldPanic {
    /// The entry that the fold was to take in.
    pub(crate) entry: EntryId,
    pub(crate) text: String,
}

/// A handler that a worker is to run.
pub(crate) struct Start {
    pub(crate) entry: Entry,
    pub(crate) receiver: Receiver,
    pub(crate) attempt: u32,
    pub(crate) queue: Vec<Entry>,
    /// The number of the last entry that history and folds include.
    pub(crate) as_of: u64,
    pub(crate) cancel: Option<CancellationToken>,
    /// Tells the handler of messages that come while it runs.
    pub(crate) arrivals: Option<ArrivalSignal>,
    /// The settlement that is booked if the handler is stopped.
    pub(crate) stop_charge: Option<StopCharge>,
}

/// The id of the organism's own thread, which records starts, heartbeats and stops.
pub const ORGANISM: &str = "organism";

impl Push {
    /// Creates a push without a client id, into a thread that is no fork.
    pub(crate) fn new(by: Pusher, message: Addressed) -> Push {
        Push { by, message, meta: None, client_id: None, source: None }
    }

    /// Returns the sender's own id for the push.
    pub(crate) fn client_id(&self) -> Option<&str> {
        self.client_id.as_ref().map(|own| &*own.id)
    }

    /// If the push opens a fork: returns the id of the entry that the fork continues from.
    pub(crate) fn fork(&self) -> Option<EntryId> {
        self.source.as_ref().map(|it| it.at.clone())
    }
}
