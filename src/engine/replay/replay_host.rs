//! The `Host` of replayed handlers: it serves their arguments from the log and writes nothing.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::engine::worker::history::{asked, cause, history};
use crate::engine::worker::tree_history;
use crate::id::ThreadId;
use crate::limits::Limits;
use crate::listener;
use crate::listener::{Boxed, Capabilities, Emit, Entry, HandlerCall, OtherThreads};
use crate::log::Log;
use crate::name::Name;
use crate::wire::Fault;
use crate::xml::Element;

/// A `Host` that reads from the log, and keeps the emissions in memory.
pub(super) struct ReplayHost {
    pub(super) log: Arc<dyn Log>,
    pub(super) capabilities: Capabilities,
    pub(super) limits: Limits,
    pub(super) recorded: Vec<Entry>,
    /// Maps a charge's index among the emissions to the fault with which it was refused when it was
    /// recorded.
    pub(super) refusals: HashMap<usize, Fault>,
    pub(super) sent: Mutex<Vec<Emit>>,
}

impl ReplayHost {
    /// Returns the emissions so far.
    pub(super) fn sent(&self) -> MutexGuard<'_, Vec<Emit>> {
        self.sent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl listener::Host for ReplayHost {
    fn commit(&self, _: &Arc<HandlerCall>, emit: Emit) -> Boxed<'static, ()> {
        let mut sent = self.sent();
        let first: usize = sent.iter().map(Vec::len).sum();
        let refused = (first..first + emit.len()).find_map(|at| self.refusals.get(&at)).cloned();
        sent.push(emit);
        Box::pin(async move { refused.map_or(Ok(()), Err) })
    }

    fn live(&self, _: &HandlerCall, _: Element) {}

    fn read<'a>(
        &'a self,
        call: &'a HandlerCall,
        after: u64,
        limit: usize,
    ) -> Boxed<'a, Vec<Entry>> {
        Box::pin(history(&*self.log, call, after, limit))
    }

    fn tree<'a>(&'a self, call: &'a HandlerCall) -> Boxed<'a, Vec<ThreadId>> {
        Box::pin(tree_history::tree(&*self.log, call))
    }

    fn others<'a>(
        &'a self,
        call: &'a HandlerCall,
        after: Option<&'a ThreadId>,
    ) -> Boxed<'a, OtherThreads> {
        Box::pin(tree_history::others(&*self.log, call, after))
    }

    fn read_thread<'a>(
        &'a self,
        call: &'a HandlerCall,
        thread: &'a ThreadId,
        after: u64,
        limit: usize,
    ) -> Boxed<'a, Vec<Entry>> {
        Box::pin(tree_history::read(&*self.log, call, thread, after, limit))
    }

    fn record_in_organism(&self, _: &HandlerCall, _: Name, _: Element) -> Boxed<'static, ()> {
        Box::pin(async { Ok(()) })
    }

    fn read_organism<'a>(
        &'a self,
        call: &'a HandlerCall,
        after: u64,
        limit: usize,
    ) -> Boxed<'a, Vec<Entry>> {
        Box::pin(tree_history::organism(&*self.log, call, after, limit))
    }

    fn cause<'a>(&'a self, call: &'a HandlerCall) -> Boxed<'a, Option<Entry>> {
        Box::pin(cause(&*self.log, call))
    }

    fn asked<'a>(&'a self, call: &'a HandlerCall) -> Boxed<'a, Option<Entry>> {
        Box::pin(asked(&*self.log, call))
    }

    fn sent<'a>(&'a self, _: &'a HandlerCall) -> Boxed<'a, Vec<Entry>> {
        let count = self.sent().iter().map(Vec::len).sum();
        Box::pin(async move { Ok(self.recorded.iter().take(count).cloned().collect()) })
    }

    fn record(&self) -> Option<Vec<Entry>> {
        Some(self.recorded.clone())
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn limits(&self) -> &Limits {
        &self.limits
    }
}
