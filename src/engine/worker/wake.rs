//! Loads trees and folds from the log if they aren't in memory. Mail and handlers wait meanwhile.

use std::collections::VecDeque;

use crate::engine::common::inbox::{Cached, Mail};
use crate::engine::read_fault::{owner, unread_of};
use crate::engine::runtime_port::Port;
use crate::engine::tree::budget_ledger::Ledger;
use crate::engine::tree::event::{Event, FoldPanic, Key, ORGANISM, Push, Ready, Start};
use crate::engine::tree::folds::FoldVersion;
use crate::engine::tree::step::Tree;
use crate::engine::tree::thread::{Later, Thread};
use crate::engine::worker::driver::Worker;
use crate::engine::worker::load::{
    FoldError, Loaded, LoadedTree, UnreadableTree, apply, find, read_folds,
};
use crate::engine::worker::tree_slot::TreeSlot;
use crate::id::{EntryId, ThreadId};
use crate::limits::Limits;
use crate::listener::{Awake, FoldId, FoldOf};
use crate::log;
use crate::wire::Fault;

impl<P: Port> Worker<P> {
    /// Starts to load a tree, and keeps this mail until the tree is in memory.
    pub(crate) fn wake(&mut self, tree: ThreadId, mail: Mail) {
        self.trees.insert(tree.clone(), TreeSlot::Waking(vec![mail]));
        let log = self.shared.log.clone();
        let waits = self.waits.of(&tree);
        let limits = self.limits_of(&tree);
        self.waking.push(Box::pin(async move {
            let found = match find(&*log, &tree, waits, &limits).await {
                Ok(found) => Ok(found),
                Err(error) => Err(UnreadableTree { error, owner: owner(&*log, &tree).await }),
            };
            Loaded::Tree(tree, found)
        }));
    }

    pub(crate) fn woken(&mut self, woken: Loaded) {
        match woken {
            Loaded::Tree(id, found) => self.woken_tree(&id, found),
            Loaded::Folds { thread, listener, folds } => self.woken_folds(&thread, listener, folds),
        }
    }

    fn woken_tree(&mut self, id: &ThreadId, found: Result<LoadedTree, UnreadableTree>) {
        match found {
            Ok(found) if found.threads.is_empty() => self.open(id),
            Ok(found) => {
                let mut tree = Tree::kept(found.threads, found.ledger);
                if let Some(session) = tree.thread(id) {
                    session.lineage = found.lineage;
                }
                for (key, entry) in found.waits {
                    let routes = &self.shared.routes;
                    let receiver = routes.route(key.listener, entry.name());
                    let thread = tree.thread(&key.thread);
                    if let (Some(receiver), Some(thread)) = (receiver, thread) {
                        let later = Later::kept(entry, receiver);
                        thread.later.insert((key.seq, key.listener), later);
                        tree.note_wakeable(&key, &self.shared.routes);
                    }
                }
                self.keep(id, tree);
            }
            Err(UnreadableTree { error, owner }) => {
                tracing::error!(thread = %id, "a thread can't be read");
                self.refuse_all(id, |thread, push| {
                    let of = (thread, owner.as_deref());
                    unread_of(&error, of, &push.by.identity, push.by.operator)
                });
            }
        }
    }

    /// Opens a tree that the log doesn't have: a session under a new random id, or the organism's
    /// own thread. Pushes to any other id are refused, since their thread is unknown.
    fn open(&mut self, id: &ThreadId) {
        let Some(TreeSlot::Waking(waiting)) = self.trees.get_mut(id) else { return };
        if waiting.iter().any(|it| matches!(it, Mail::Note(..))) {
            let new = log::NewThread { id: id.clone(), parent: None, fork: None };
            let owner = self.shared.core.clone();
            let ledger = Ledger::new(&self.limits_of(id));
            return self.keep(id, Tree::new(Thread::new(new, owner, 0), ledger));
        }
        let first = waiting.iter().position(|it| matches!(it, Mail::Push { drawn: true, .. }));
        let Some(Mail::Push { thread, push, .. }) = first.map(|at| waiting.remove(at)) else {
            return self.refuse_all(id, |thread, _| Fault::unknown_thread(thread.as_str()));
        };
        let new = log::NewThread { id: id.clone(), parent: None, fork: push.fork() };
        let last_seq = new.fork.as_ref().map_or(0, |it| it.seq);
        let lineage = push.source.as_ref().map(|it| it.lineage.clone()).unwrap_or_default();
        let owner = push.by.identity.clone();
        waiting.insert(0, Mail::Push { thread, drawn: false, push });
        let ledger = Ledger::new(&self.shared.limits);
        let first = Thread { lineage, kept: false, ..Thread::new(new, owner, last_seq) };
        self.keep(id, Tree::new(first, ledger));
    }

    /// Returns the limits of a tree. The organism's own thread has the default limits, which bound
    /// no messages, turns, tokens, seconds or money.
    fn limits_of(&self, tree: &ThreadId) -> Limits {
        match tree.as_str() {
            ORGANISM => Limits::default(),
            _ => self.shared.limits.clone(),
        }
    }

    fn refuse_all(&mut self, id: &ThreadId, why: impl Fn(&ThreadId, &Push) -> Fault) {
        let Some(TreeSlot::Waking(waiting)) = self.trees.remove(id) else { return };
        for mail in waiting {
            match mail {
                Mail::Push { drawn: true, push, .. } => self.redraw(push),
                Mail::Push { thread, push, .. } => self.shared.refuse(&push, why(&thread, &push)),
                _ => {}
            }
        }
    }

    /// Draws another id for a new session, since a tree already has the first id.
    pub(crate) fn redraw(&mut self, push: Box<Push>) {
        let thread = self.shared.draw();
        self.shared.workers.post(&thread.clone(), Mail::Push { thread, drawn: true, push });
    }

    /// Returns whether the folds that a handler takes are in memory, or can be computed from
    /// entries in memory.
    pub(crate) fn has_folds(&mut self, start: &Start) -> bool {
        let (id, listener) = (start.entry.thread(), start.receiver.listener);
        let Some(TreeSlot::Awake(slot)) = self.trees.get_mut(id.tree_str()) else { return false };
        let Some(thread) = slot.tree.thread(id) else { return false };
        let ids = self.shared.routes.listeners[listener].folds.iter().map(|(id, _)| id);
        thread.folds.waiting(listener).is_none() && thread.can_fold(listener, ids, start.as_of)
    }

    /// Returns the folds that a handler takes, as of the entry with the number `Start::as_of`.
    /// Returns None if the folds have to be loaded first; the handler then waits for them. Also
    /// returns None if a fold panicked; the listener is stopped in the thread then.
    pub(crate) fn fold(&mut self, start: Box<Start>) -> Option<(Box<Start>, Vec<Awake>)> {
        let (id, upto) = (start.entry.thread().clone(), start.as_of);
        let (listener, shared) = (start.receiver.listener, self.shared.clone());
        let folds = &shared.routes.listeners[listener].folds;
        let Some(TreeSlot::Awake(slot)) = self.trees.get_mut(id.tree_str()) else { return None };
        let thread = slot.tree.thread(&id)?;
        thread.folds.note_started(listener, upto);
        if let Some(waiting) = thread.folds.waiting(listener) {
            waiting.push_back(start);
            return None;
        }
        if !thread.can_fold(listener, folds.iter().map(|(id, _)| id), upto) {
            let best = |fold: &(FoldId, FoldOf)| {
                let best = thread.folds.best(listener, (fold.0).0, upto).cloned();
                best.unwrap_or_else(|| FoldVersion::empty(fold))
            };
            let from = folds.iter().map(best).collect();
            thread.folds.begin_waking(listener, VecDeque::from([start]));
            self.waking.push(Box::pin(async move {
                let upto = EntryId::new(&id, upto);
                let folds = read_folds(shared, listener, upto, from).await;
                Loaded::Folds { thread: id, listener, folds }
            }));
            return None;
        }
        thread.pin_folds(folds, upto, &shared.routes);
        let taken = folds.iter().map(|fold| thread.folds.take(listener, fold, upto));
        let mut versions: Vec<FoldVersion> = taken.collect();
        let seen = versions.iter().map(|it| it.seq).min().unwrap_or(upto);
        let next = thread.recent.iter().filter(|it| it.seq() > seen && it.seq() <= upto);
        for entry in next {
            if let Err(panic) = apply(&shared, listener, entry, &mut versions) {
                self.stop_listener(&start, panic);
                return None;
            }
        }
        debug_assert!(versions.iter().all(|it| it.seq == upto), "a fold misses entries");
        let states = versions.iter().map(|it| it.state.clone()).collect();
        versions.into_iter().for_each(|it| thread.folds.put(listener, it));
        thread.note_seen(shared.limits.entries_at_hand_max);
        Some((start, states))
    }

    /// Notes that a handler won't start, so that no folds are kept for it.
    pub(crate) fn note_unwanted(&mut self, start: &Start) {
        let id = start.entry.thread();
        if let Some(TreeSlot::Awake(slot)) = self.trees.get_mut(id.tree_str())
            && let Some(thread) = slot.tree.thread(id)
            && self.shared.routes.handler(start.receiver).takes_folds
        {
            thread.folds.note_started(start.receiver.listener, start.as_of);
        }
    }

    /// Returns the folds of a thread that this worker has in memory.
    pub(crate) fn cached(&mut self, id: &ThreadId) -> Cached {
        let Some(TreeSlot::Awake(slot)) = self.trees.get_mut(id.tree_str()) else {
            return Vec::new();
        };
        slot.tree.thread(id).map(|it| it.folds.newest().to_vec()).unwrap_or_default()
    }

    fn woken_folds(
        &mut self,
        id: &ThreadId,
        listener: usize,
        folds: Result<Vec<FoldVersion>, FoldError>,
    ) {
        let Some(TreeSlot::Awake(slot)) = self.trees.get_mut(id.tree_str()) else { return };
        let Some(thread) = slot.tree.thread(id) else { return };
        let Some(waiting) = thread.folds.end_waking(listener) else { return };
        match folds {
            Ok(versions) => {
                versions.into_iter().for_each(|it| thread.folds.put(listener, it));
                for start in waiting {
                    if !self.is_wanted(&start) {
                        self.leave(listener);
                    } else if let Some((start, folds)) = self.fold(start) {
                        self.launch(*start, folds, true);
                    }
                }
            }
            Err(FoldError::Unread(fault)) => {
                for start in waiting {
                    self.fail(&start, fault.clone());
                }
            }
            Err(FoldError::Panicked(panic)) => {
                for start in waiting {
                    self.stop_listener(&start, panic.clone());
                }
            }
        }
    }

    /// Takes back the start of a handler whose fold panicked: frees its place, and stops its
    /// listener in the thread.
    fn stop_listener(&mut self, start: &Start, panic: FoldPanic) {
        let (id, listener) = (start.entry.id(), start.receiver.listener);
        let key = Key { thread: id.thread.clone(), seq: id.seq, listener };
        self.give(&id.thread.clone(), Event::Unfolded(key, panic));
        self.leave(listener);
    }

    /// Ends a handler that can't begin: frees its place, and tells the sender of its message.
    fn fail(&mut self, start: &Start, fault: Fault) {
        let (id, listener) = (start.entry.id(), start.receiver.listener);
        let key = Key { thread: id.thread.clone(), seq: id.seq, listener };
        let ready = Ready::fault(fault);
        self.give(&id.thread.clone(), Event::Return(key, vec![ready]));
        self.leave(listener);
    }
}
