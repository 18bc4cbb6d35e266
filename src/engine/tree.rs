//! A tree of threads as a pure state machine: an event in, a batch for the log and effects out.
//!
//! It knows no clock, no task and no disk: the time is given, and an effect happens only after
//! the log has the batch of its step.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::engine::gate::Gate;
use crate::engine::inlet::{Inlet, News};
use crate::engine::route::{Receiver, Routes};
use crate::engine::thread::Thread;
use crate::id::ThreadId;
use crate::limits::Limits;
use crate::listener::{Entry, Target};
use crate::log::{Batch, Flags, Open};
use crate::wire::core::said;
use crate::wire::{Checked, Code, Fault};

/// The name that the pump speaks under.
pub(crate) const CORE_NAME: &str = "core";

/// What a step may ask of the organism: who is there, what the bounds are, what time it is.
pub(crate) struct World<'a> {
    pub(crate) routes: &'a Routes,
    pub(crate) gates: &'a [Gate],
    pub(crate) limits: &'a Limits,
    pub(crate) core: &'a Arc<str>,
    pub(crate) worker: usize,
    pub(crate) now_us: u64,
}

/// A push, checked and routed, on its way into a thread.
pub(crate) struct Push {
    pub(crate) identity: Arc<str>,
    pub(crate) operator: bool,
    pub(crate) checked: Checked,
    pub(crate) receivers: Vec<Receiver>,
    pub(crate) to: Option<Arc<str>>,
    pub(crate) flags: Flags,
    pub(crate) client_id: Option<Arc<str>>,
    pub(crate) meta: Option<Bytes>,
    pub(crate) inlet: Arc<dyn Inlet>,
    pub(crate) number: u64,
    /// Who else hears whether it was accepted: the claim on its client id.
    pub(crate) claim: Option<Arc<dyn Inlet>>,
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
}

/// An emission that was looked at, or why it can't go out.
pub(crate) struct Ready {
    pub(crate) target: Target,
    pub(crate) what: Result<Checked, Fault>,
}

impl Ready {
    /// Whether an earlier attempt came to the same at this place, of what it came to in order:
    /// then that is taken, and nothing is sent again.
    pub(crate) fn repeats(&self, message: &Entry, sent: &mut VecDeque<Entry>) -> bool {
        let said = match &self.what {
            Ok(checked) => {
                // What the pump told of a refusal stands behind what was refused.
                while sent.front().is_some_and(|it| it.from() == CORE_NAME) {
                    sent.pop_front();
                }
                Some(checked.clone())
            }
            Err(fault) => said(fault),
        };
        let (Some(said), Some(first)) = (said, sent.pop_front()) else { return false };
        let to = match &self.target {
            Target::Listener(name) => first.to() == Some(name),
            Target::Oneself => first.to() == Some(first.from()),
            it => first.reply_to() == it.answered(message),
        };
        to && said.name() == first.name() && said.element().canonical() == *first.body()
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
}

/// What a step comes to: one batch, then its effects in order.
#[derive(Default)]
pub(crate) struct Step {
    pub(crate) batch: Batch,
    pub(crate) effects: Vec<Effect>,
    /// Listeners that have no room for one more handler, and the threads that wait for it.
    pub(crate) starving: Vec<(usize, ThreadId)>,
}

impl Step {
    /// Nothing yet, with room for what so many events mostly come to.
    pub(crate) fn with_room(events: usize) -> Step {
        let mut step = Step::default();
        step.batch.entries.reserve(events);
        step.batch.marks.reserve(events);
        step.effects.reserve(events);
        step
    }
}

/// What happens once the batch is in the log.
pub(crate) enum Effect {
    /// Tells whoever pushed.
    Tell(Arc<dyn Inlet>, u64, News),
    /// Runs a handler.
    Start(Box<Start>),
    /// Tells a handler that what it sent is kept.
    Kept(oneshot::Sender<Result<(), Fault>>),
}

/// A handler to run.
pub(crate) struct Start {
    pub(crate) entry: Entry,
    pub(crate) receiver: Receiver,
    pub(crate) attempt: u32,
    pub(crate) queue: Vec<Entry>,
    pub(crate) cancel: Option<CancellationToken>,
}

/// A session and all threads below it.
pub(crate) struct Tree {
    threads: rustc_hash::FxHashMap<ThreadId, Thread>,
}

impl Tree {
    pub(crate) fn new(thread: Thread) -> Tree {
        Tree { threads: [(thread.id.clone(), thread)].into_iter().collect() }
    }

    pub(crate) fn thread(&mut self, id: &ThreadId) -> Option<&mut Thread> {
        self.threads.get_mut(id)
    }

    /// Whether the log has all that matters of it.
    pub(crate) fn is_quiet(&self) -> bool {
        self.threads.values().all(Thread::is_quiet)
    }

    /// Tells every handler at work to stop.
    pub(crate) fn cancel(&self) {
        let running = self.threads.values().flat_map(|it| it.running.values());
        running.filter_map(|it| it.cancel.as_ref()).for_each(CancellationToken::cancel);
    }

    /// Lets go of every push that waits for something: nothing more will happen.
    pub(crate) fn abandon(&mut self, fault: &Fault, effects: &mut Vec<Effect>) {
        self.threads.values_mut().for_each(|it| it.abandon(fault, effects));
    }

    /// Takes one event.
    pub(crate) fn step(&mut self, event: Event, world: &World<'_>, out: &mut Step) {
        match event {
            Event::Push(thread, push) => {
                if let Some(thread) = self.threads.get_mut(&thread) {
                    thread.push(push, world, out);
                }
            }
            Event::Sent(key, ready, done) => {
                let kept = self.threads.get_mut(&key.thread);
                let kept = kept.is_some_and(|it| it.sent(&key, ready, world, out));
                if kept {
                    out.effects.push(Effect::Kept(done));
                } else {
                    let text = "the message this was sent for is over";
                    drop(done.send(Err(Fault::new(Code::Late, text))));
                }
            }
            Event::Return(key, ready) => {
                if let Some(thread) = self.threads.get_mut(&key.thread) {
                    thread.returned(&key, ready, world, out);
                }
            }
            Event::Overtime(key) => {
                if let Some(thread) = self.threads.get_mut(&key.thread) {
                    thread.overtime(&key, world, out);
                }
            }
            Event::Recover(thread, open) => {
                if let Some(thread) = self.threads.get_mut(&thread) {
                    thread.recover(open, world, out);
                }
            }
            Event::Room(thread, listener) => {
                if let Some(thread) = self.threads.get_mut(&thread) {
                    thread.room(listener, world, out);
                }
            }
        }
    }
}
