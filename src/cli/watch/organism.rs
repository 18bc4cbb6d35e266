//! The agents and the open runs of workflows of an organism, kept up to date with the log.

use std::collections::{BTreeMap, BTreeSet};

use crate::cli::watch::agent_row::{AgentRow, RunAtWork, ThreadAgents};
use crate::cli::workflow::runs::{Cause, Run};
use crate::id::{EntryId, ThreadId};
use crate::listener::{Apply as _, Entry};
use crate::log::{self, Error, Log, Pages, ThreadPages};

/// How many threads are kept. Once there are more, each further thread displaces the one with the
/// oldest last entry. A displaced thread is read again when it gets an entry. [`Organism::read`]
/// may read more threads than this.
const THREADS_MAX: usize = 1_024;

/// Which agents are wanted.
pub(super) struct Wanted {
    /// Only agents in this thread and in all threads below it.
    pub(super) root: Option<ThreadId>,
    /// Only agents of these names. If there are no names, all agents are wanted.
    pub(super) agents: Vec<String>,
}

/// The agents and the open runs of an organism.
pub(super) struct Organism {
    wanted: Wanted,
    threads: BTreeMap<ThreadId, WatchedThread>,
    /// The runs that aren't over, each under the message that began it.
    runs: BTreeMap<EntryId, OpenRun>,
    /// The thread `Wanted::root`, and the threads below it that were seen.
    below: BTreeSet<ThreadId>,
    /// Threads that were seen and aren't below `Wanted::root`.
    beside: BTreeSet<ThreadId>,
    /// How many threads were read. This count gives each newly read thread its place.
    read: u64,
}

struct WatchedThread {
    agents: ThreadAgents,
    /// The rows as they were last shown.
    rows: Vec<AgentRow>,
    /// The thread's place in the order of all threads.
    place: u64,
    /// When something happened last, in microseconds since the epoch.
    at_us: u64,
}

struct OpenRun {
    run: Run,
    /// The thread and the name of the agent that began the run. None if no agent began it.
    owner: Option<(ThreadId, String)>,
}

impl OpenRun {
    /// Returns the thread of the agent that began the run.
    fn owning_thread(&self) -> Option<ThreadId> {
        self.owner.as_ref().map(|(thread, _)| thread.clone())
    }
}

impl Organism {
    /// Reads wanted threads up to a position of the log:
    ///
    /// - threads with an entry since `since_us`;
    /// - threads with an entry that a receiver hasn't consumed;
    /// - threads of agents that began an open run.
    pub(super) async fn read(
        log: &dyn Log,
        wanted: Wanted,
        since_us: u64,
        upto: u64,
    ) -> Result<Organism, Error> {
        let below = wanted.root.iter().cloned().collect();
        let (threads, runs) = (BTreeMap::new(), BTreeMap::new());
        let mut organism =
            Organism { wanted, threads, runs, below, beside: BTreeSet::new(), read: 0 };
        let open = log.open_entries().await?.into_iter().map(|it| it.entry.id.thread.clone());
        let open: BTreeSet<ThreadId> = open.collect();
        let mut pages = ThreadPages::of(log);
        while let Some(page) = pages.next().await? {
            for thread in page {
                let is_recent = thread.last_us.is_some_and(|it| it >= since_us);
                if (is_recent || open.contains(&thread.id))
                    && organism.is_below(log, &thread.id).await?
                {
                    organism.load(log, &thread.id, upto).await?;
                }
            }
        }
        let owners: BTreeSet<ThreadId> =
            organism.runs.values().filter_map(OpenRun::owning_thread).collect();
        for owner in owners {
            if !organism.threads.contains_key(&owner) && organism.is_below(log, &owner).await? {
                organism.load(log, &owner, upto).await?;
            }
        }
        let all: Vec<ThreadId> = organism.threads.keys().cloned().collect();
        for thread in all {
            organism.refresh(&thread);
        }
        Ok(organism)
    }

    /// Returns all wanted rows in the order of their threads, each with the time of the last entry
    /// of its thread.
    pub(super) fn rows(&self) -> impl Iterator<Item = (&AgentRow, u64)> {
        let mut threads: Vec<&WatchedThread> = self.threads.values().collect();
        threads.sort_by_key(|it| it.place);
        threads.into_iter().flat_map(|it| it.rows.iter().map(|row| (row, it.at_us)))
    }

    /// Takes the next entry of the log. Returns the rows that have changed.
    pub(super) async fn take(
        &mut self,
        log: &dyn Log,
        entry: &log::Entry,
    ) -> Result<Vec<AgentRow>, Error> {
        let thread = &entry.id.thread;
        if !self.is_below(log, thread).await? {
            return Ok(Vec::new());
        }
        if self.threads.contains_key(thread) {
            let owners = self.apply(log, &Entry::kept(entry)).await?;
            let mut changed = self.refresh(thread);
            for owner in owners.iter().filter(|it| *it != thread) {
                changed.extend(self.refresh(owner));
            }
            return Ok(changed);
        }
        self.load(log, thread, entry.position).await?;
        let mut changed = self.refresh(thread);
        let of_thread = self.runs.values().filter(|it| it.run.asked.thread() == thread);
        let owners: BTreeSet<ThreadId> = of_thread.filter_map(OpenRun::owning_thread).collect();
        for owner in owners.iter().filter(|it| *it != thread) {
            changed.extend(self.refresh(owner));
        }
        self.forget();
        Ok(changed)
    }

    /// Whether a thread is `Wanted::root` or below it. Without a root, every thread is wanted. The
    /// answer is remembered in `below` or `beside`.
    async fn is_below(&mut self, log: &dyn Log, thread: &ThreadId) -> Result<bool, Error> {
        if self.wanted.root.is_none() || self.below.contains(thread) {
            return Ok(true);
        }
        if self.beside.contains(thread) {
            return Ok(false);
        }
        let mut above = vec![thread.clone()];
        while let Some(record) = log.thread(&above[above.len() - 1]).await? {
            let Some(parent) = record.parent else { break };
            if self.below.contains(&parent) {
                self.below.extend(above);
                return Ok(true);
            }
            above.push(parent);
        }
        if self.beside.len() >= THREADS_MAX {
            self.beside.clear();
        }
        self.beside.insert(thread.clone());
        Ok(false)
    }

    /// Reads a thread up to a position of the log.
    async fn load(&mut self, log: &dyn Log, thread: &ThreadId, upto: u64) -> Result<(), Error> {
        self.read += 1;
        let (agents, rows) = (ThreadAgents::default(), Vec::new());
        let watched = WatchedThread { agents, rows, place: self.read, at_us: 0 };
        self.threads.insert(thread.clone(), watched);
        let mut pages = Pages::of(log, thread);
        while let Some(page) = pages.next().await? {
            for entry in page.iter().filter(|it| it.position <= upto) {
                let entry = Entry::kept(entry);
                if entry.thread() == thread {
                    self.apply(log, &entry).await?;
                } else if let Some(watched) = self.threads.get_mut(thread) {
                    // A fork begins with its source's agents, but in the state `Open`.
                    watched.agents.apply(&entry);
                    watched.agents.set_state(log::State::Open);
                }
            }
        }
        Ok(())
    }

    /// Applies an entry to its thread and to the runs there. Returns the threads of the agents that
    /// began these runs.
    async fn apply(&mut self, log: &dyn Log, entry: &Entry) -> Result<BTreeSet<ThreadId>, Error> {
        if let Some(watched) = self.threads.get_mut(entry.thread()) {
            watched.agents.apply(entry);
            watched.at_us = entry.at_us();
        }
        let first = EntryId::new(entry.thread(), 0);
        let of_thread = self.runs.range_mut(first..);
        let of_thread = of_thread.take_while(|(id, _)| id.thread == *entry.thread());
        let mut owners = BTreeSet::new();
        for (_, open) in of_thread {
            open.run.apply(entry);
            owners.extend(open.owning_thread());
        }
        self.runs.retain(|_, it| it.run.ended_us().is_none());
        if let Some(run) = Run::of(entry) {
            let cause = Cause::of(log, entry).await?;
            let sender = cause.as_ref().and_then(Cause::sender);
            let owner = sender.map(|(thread, agent)| (thread.clone(), agent.to_owned()));
            let open = OpenRun { run, owner };
            owners.extend(open.owning_thread());
            self.runs.insert(entry.id().clone(), open);
        }
        Ok(owners)
    }

    /// Computes the rows of a thread anew. Returns those that have changed.
    fn refresh(&mut self, thread: &ThreadId) -> Vec<AgentRow> {
        let Some(watched) = self.threads.get(thread) else { return Vec::new() };
        let runs = |agent: &str| {
            let is_own = |it: &&OpenRun| {
                it.owner.as_ref().is_some_and(|(of, name)| of == thread && name == agent)
            };
            let own = self.runs.values().filter(is_own);
            own.map(|it| RunAtWork::from(&it.run)).collect()
        };
        let mut rows = watched.agents.rows(thread, runs);
        let agents = &self.wanted.agents;
        rows.retain(|it| agents.is_empty() || agents.contains(&it.agent));
        let Some(watched) = self.threads.get_mut(thread) else { return Vec::new() };
        let changed = rows.iter().filter(|it| !watched.rows.contains(it)).cloned().collect();
        watched.rows = rows;
        changed
    }

    /// If there are too many threads, drops the one with the oldest last entry.
    fn forget(&mut self) {
        if self.threads.len() <= THREADS_MAX {
            return;
        }
        let oldest = self.threads.iter().min_by_key(|(_, it)| it.at_us);
        if let Some(thread) = oldest.map(|(thread, _)| thread.clone()) {
            self.threads.remove(&thread);
            self.runs.retain(|id, _| id.thread != thread);
        }
    }
}
