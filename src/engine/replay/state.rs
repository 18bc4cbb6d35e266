//! Computes the state of a tree of threads at any position of the log: folds, budget and unconsumed
//! entries. The functions read only the log, except `Pump::folds`, which also asks a running pump.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use tokio::sync::oneshot;

use crate::engine::build::plan::Plan;
use crate::engine::common::inbox::Mail;
use crate::engine::handle::pump::Pump;
use crate::engine::read_fault::unread;
use crate::engine::tree::budget_ledger::Ledger;
use crate::engine::tree::event::FoldPanic;
use crate::engine::tree::folds::FoldVersion;
use crate::engine::tree::route::{Registered, Routes};
use crate::engine::worker::load::{FoldError, read_folds};
use crate::id::{EntryId, ThreadId};
use crate::listener::{Awake, Entry};
use crate::log;
use crate::log::{Log, Mark, Noted, Pages, State, ThreadRecord};
use crate::name::{CORE_NAME, Name};
use crate::wire::Fault;
use crate::wire::budget::BudgetKey;

/// The state of a thread and its descendants at one position of the log.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TreeState {
    /// The position of the last entry that the state includes.
    pub position: u64,
    /// The thread and its descendants, in the order in which they were opened.
    pub threads: Vec<ThreadState>,
    /// The amounts that the whole tree had spent, including the threads above this one.
    pub budget: Vec<Spending>,
}

/// The state of a thread at one position of the log.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ThreadState {
    /// The thread's id.
    pub thread: ThreadId,
    /// The parent thread, if this is a child.
    pub parent: Option<ThreadId>,
    /// If the thread is a fork: the last entry that it shares.
    pub fork: Option<EntryId>,
    /// The number of the thread's last entry.
    pub seq: u64,
    /// The time of that entry, in microseconds since the epoch.
    pub at_us: u64,
    /// Whether the thread was open, paused, over budget or ended.
    pub state: State,
    /// All folds of all listeners.
    pub folds: Vec<FoldState>,
    /// Entries that weren't consumed: they were being handled, were parked, or waited for a
    /// handler, a time or another entry.
    pub waiting: Vec<Waiting>,
}

/// One fold of one listener.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FoldState {
    /// The listener that registered the fold.
    pub listener: Arc<str>,
    /// The name of the fold's type.
    pub fold: &'static str,
    /// The fold's state as `Debug` shows it, or the reason why there is none.
    pub shown: Result<String, String>,
    /// BLAKE3 over the text in `shown`.
    pub digest: [u8; 32],
}

/// An entry that a listener hadn't consumed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Waiting {
    /// The entry.
    pub entry: EntryId,
    /// The name of the entry's payload.
    pub name: Name,
    /// The listener that hadn't consumed the entry.
    pub listener: Arc<str>,
    /// The time that the entry waits for, in microseconds since the epoch. [`u64::MAX`] if it waits
    /// for another entry. A parked entry has [`u64::MAX`] or one of the two numbers below it. None
    /// if the entry doesn't wait.
    pub until_us: Option<u64>,
    /// How often the listener started on the entry. Starts of pure listeners aren't recorded.
    pub attempts: u32,
    /// The number of the last entry that the handler at work sees, if its start has it. Otherwise
    /// that is the entry itself.
    pub as_of: Option<u64>,
    /// Whether the listener is stopped in the thread, since a fold of it panicked.
    pub is_stopped: bool,
}

/// The spent amount and the limit of one budget.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Spending {
    /// The budget.
    pub key: BudgetKey,
    /// How much was spent.
    pub used: u64,
    /// The limit. [`u64::MAX`] means that there is none.
    pub limit: u64,
    /// The thread and the listener that spent the turns. None for every budget but turns.
    pub of: Option<(ThreadId, Arc<str>)>,
}

impl Spending {
    /// The spending of one budget.
    #[must_use]
    pub fn new(
        key: BudgetKey,
        used: u64,
        limit: u64,
        of: Option<(ThreadId, Arc<str>)>,
    ) -> Spending {
        Spending { key, used, limit, of }
    }
}

impl FoldState {
    fn new(listener: &Arc<str>, fold: &'static str, shown: Result<String, String>) -> FoldState {
        let (Ok(text) | Err(text)) = &shown;
        let digest = blake3::hash(text.as_bytes()).into();
        FoldState { listener: listener.clone(), fold, shown, digest }
    }
}

impl Plan {
    /// Returns the state of a thread and its descendants after an entry, or at the end of the log:
    /// the folds of this plan's listeners, the budget and the unconsumed entries.
    ///
    /// The state belongs to one position of the whole log. The log records consumption by commit.
    /// So an entry counts as consumed if its consumption was recorded up to the end of the commit
    /// that holds the given entry. Returns None if the thread has no such entry.
    ///
    /// # Errors
    /// If the log can't be read, or has no such thread.
    pub async fn state(
        &self,
        log: &dyn Log,
        thread: &ThreadId,
        upto: Option<u64>,
    ) -> Result<Option<TreeState>, log::Error> {
        let unknown = || log::Error::UnknownThread(thread.clone());
        let record = log.thread(thread).await?.ok_or_else(unknown)?;
        let cut = match upto {
            None => u64::MAX,
            Some(seq) => match log.entry(&EntryId::new(thread, seq)).await? {
                Some(it) if seq > 0 => it.position,
                _ => return Ok(None),
            },
        };
        let mut session = record;
        while let Some(parent) = &session.parent {
            session = log.thread(parent).await?.ok_or_else(unknown)?;
        }
        let tree = log.tree(&session.id).await?;
        let marks = log.marks(&session.id).await?;
        let mut opened: Vec<ThreadReading> = Vec::new();
        for member in tree {
            // A thread belongs to the result if it is the given thread, or if its parent belongs to
            // the result.
            let above = member.parent.as_ref().and_then(|id| opened.iter().find(|it| it.is(id)));
            let is_meant = member.id == *thread || above.is_some_and(|it| it.is_meant);
            opened.extend(read_thread(log, &self.routes, member, is_meant, cut, &marks).await?);
        }
        let position = opened.iter().map(|it| it.position).max().unwrap_or(0);
        let budget = self.spending(log, &opened, cut).await?;
        let meant = opened.into_iter().filter(|it| it.is_meant);
        let threads: Vec<ThreadState> = meant.map(|it| it.state).collect();
        Ok((!threads.is_empty()).then_some(TreeState { position, threads, budget }))
    }

    /// Returns the amounts that a tree had spent at the cut, a position of the log.
    async fn spending(
        &self,
        log: &dyn Log,
        opened: &[ThreadReading],
        cut: u64,
    ) -> Result<Vec<Spending>, log::Error> {
        let Some(session) = opened.first() else { return Ok(Vec::new()) };
        let charges = log.charges(&session.state.thread).await?;
        let charges = charges.iter().filter(|it| it.position <= cut).map(|it| Entry::kept(it));
        let messages = opened.iter().map(|it| it.messages).sum();
        let ledger = Ledger::kept(&self.limits, session.opened_us, messages, charges);
        let now_us = opened.iter().map(|it| it.state.at_us).max().unwrap_or(0);
        let live = opened.iter().skip(1).filter(|it| it.state.state.is_live()).count() as u64;
        let mut depths: BTreeMap<&ThreadId, u64> = BTreeMap::new();
        for seen in opened {
            let above = seen.state.parent.as_ref().and_then(|it| depths.get(it)).copied();
            depths.insert(&seen.state.thread, above.map_or(0, |it| it + 1));
        }
        let mut all = Vec::new();
        for key in BudgetKey::ALL {
            let used = match key {
                BudgetKey::Turns => continue,
                BudgetKey::Depth => depths.values().max().copied().unwrap_or(0),
                BudgetKey::Children => live,
                BudgetKey::Seconds => ledger.seconds(now_us),
                key => ledger.used(key),
            };
            all.push(Spending { key, used, limit: ledger.limit(key), of: None });
        }
        let limit = ledger.limit(BudgetKey::Turns);
        let turns = ledger.turns().into_iter().map(|(thread, listener, used)| Spending {
            key: BudgetKey::Turns,
            used,
            limit,
            of: Some((thread.clone(), listener.into())),
        });
        all.extend(turns);
        Ok(all)
    }
}

/// The part of a thread up to the cut, a position of the log.
struct ThreadReading {
    state: ThreadState,
    is_meant: bool,
    position: u64,
    opened_us: u64,
    messages: u64,
}

impl ThreadReading {
    fn is(&self, id: &ThreadId) -> bool {
        self.state.thread == *id
    }
}

/// Reads a thread up to the cut. Returns None if the thread didn't exist at the cut.
async fn read_thread(
    log: &dyn Log,
    routes: &Routes,
    record: ThreadRecord,
    is_meant: bool,
    cut: u64,
    marks: &[Noted],
) -> Result<Option<ThreadReading>, log::Error> {
    let (mut folds, mut waiting) = (Folding::of(routes, is_meant), BTreeMap::new());
    let mut seen = ThreadReading {
        state: ThreadState {
            thread: record.id.clone(),
            parent: record.parent.clone(),
            fork: record.fork.clone(),
            seq: 0,
            at_us: 0,
            state: State::Open,
            folds: Vec::new(),
            waiting: Vec::new(),
        },
        is_meant,
        position: 0,
        opened_us: 0,
        messages: 0,
    };
    let mut pages = Pages::of(log, &record.id).after(seen.state.seq);
    while let Some(page) = pages.next().await? {
        let is_last = page.iter().any(|it| it.position > cut);
        for entry in page.iter().filter(|it| it.position <= cut) {
            (seen.state.seq, seen.state.at_us) = (entry.id.seq, entry.at_us);
            seen.position = entry.position;
            folds.take(&Entry::kept(entry));
            // Shared entries are consumed in the thread that they belong to.
            if entry.id.thread == record.id {
                seen.state.state = entry.flags.state().unwrap_or(seen.state.state);
                seen.opened_us = if seen.opened_us == 0 { entry.at_us } else { seen.opened_us };
                seen.messages += u64::from(entry.receivers > 0 && *entry.from != *CORE_NAME);
                if entry.receivers > 0 {
                    waiting.insert(entry.id.seq, entry.clone());
                }
            }
        }
        if is_last {
            break;
        }
    }
    if seen.opened_us == 0 && record.fork.is_none() || seen.state.seq == 0 {
        return Ok(None);
    }
    seen.state.folds = folds.finish();
    let of = |it: &&Noted| it.after < cut && it.mark.entry().thread == record.id;
    let marks: Vec<&Mark> = marks.iter().filter(of).map(|it| &it.mark).collect();
    if is_meant && !waiting.is_empty() {
        seen.state.waiting = left(&waiting, &marks);
    }
    Ok(Some(seen))
}

/// Returns the entries that some listener hasn't consumed, once for each such listener.
fn left(entries: &BTreeMap<u64, Arc<log::Entry>>, marks: &[&Mark]) -> Vec<Waiting> {
    let mut all: BTreeMap<(u64, Arc<str>), (bool, Waiting)> = BTreeMap::new();
    let waiting = |entry: &log::Entry, listener: &Arc<str>| Waiting {
        entry: entry.id.clone(),
        name: entry.name.clone(),
        listener: listener.clone(),
        until_us: None,
        attempts: 0,
        as_of: None,
        is_stopped: false,
    };
    for (seq, entry) in entries {
        if let Some(to) = &entry.to {
            all.insert((*seq, to.clone()), (false, waiting(entry, to)));
        }
    }
    for mark in marks {
        let (listener, seq) = (mark.listener(), mark.entry().seq);
        let Some(entry) = entries.get(&seq) else { continue };
        let key = (seq, listener.clone());
        let (is_over, counted) =
            all.entry(key).or_insert_with(|| (false, waiting(entry, listener)));
        match mark {
            Mark::Started { attempt, as_of, .. } => {
                counted.attempts = counted.attempts.max(*attempt);
                (counted.as_of, counted.is_stopped) = (*as_of, false);
            }
            Mark::Stopped { .. } => {
                counted.attempts = counted.attempts.saturating_sub(1);
                (counted.as_of, counted.is_stopped) = (None, true);
            }
            Mark::Waits { until_us, .. } => counted.until_us = Some(*until_us),
            Mark::Consumed { .. } => *is_over = true,
        }
    }
    all.into_values().filter(|(is_over, _)| !is_over).map(|(_, it)| it).collect()
}

/// The folds of all listeners while a thread is being read.
struct Folding<'a>(Vec<(&'a Registered, usize, Result<Awake, String>)>);

impl<'a> Folding<'a> {
    fn of(routes: &'a Routes, is_wanted: bool) -> Folding<'a> {
        let wanted = routes.listeners.iter().filter(|_| is_wanted);
        let each = wanted.flat_map(|it| (0..it.folds.len()).map(move |at| (it, at)));
        Folding(each.map(|(it, at)| (it, at, Ok((it.folds[at].1.empty)()))).collect())
    }

    fn take(&mut self, entry: &Entry) {
        for (folding, at, state) in &mut self.0 {
            let Ok(awake) = state else { continue };
            let apply = folding.folds[*at].1.apply;
            if catch_unwind(AssertUnwindSafe(|| apply(awake, entry))).is_err() {
                *state = Err(format!("it panicked at {}", entry.id()));
            }
        }
    }

    fn finish(self) -> Vec<FoldState> {
        let show = |(listener, at, state): (&Registered, usize, Result<Awake, String>)| {
            let (id, fold) = &listener.folds[at];
            FoldState::new(&listener.name, id.1, state.map(|it| (fold.show)(&it)))
        };
        self.0.into_iter().map(show).collect()
    }
}

/// Says that a fold of a listener panicked, so that the listener's folds have no state.
fn panicked(panic: &FoldPanic) -> String {
    format!("a fold panicked at {}: {}", panic.entry, panic.text)
}

impl Pump {
    /// Returns the folds of all listeners in a thread, as of the thread's last entry. Folds that
    /// the pump has in memory are brought up to that entry. Other folds are computed from the log.
    ///
    /// [`Plan::state`] computes the same folds from the log alone.
    ///
    /// # Errors
    /// If there is no such thread, or the log can't be read.
    pub async fn folds(&self, thread: &ThreadId) -> Result<Vec<FoldState>, Fault> {
        let shared = self.shared();
        let (asked, cached) = oneshot::channel();
        shared.workers.post(thread, Mail::Folds(thread.clone(), asked));
        // A stopped pump has no folds in memory.
        let cached = cached.await.unwrap_or_default();
        let unreadable = |it: log::Error| unread(&it);
        let record = shared.log.thread(thread).await.map_err(unreadable)?;
        let record = record.ok_or_else(|| Fault::unknown_thread(thread.as_str()))?;
        let upto = EntryId::new(thread, record.last_seq);
        let mut all = Vec::new();
        for (at, listener) in shared.routes.listeners.iter().enumerate() {
            if listener.folds.is_empty() {
                continue;
            }
            let from = listener.folds.iter().map(|fold| {
                let (id, _) = fold.0;
                // Folds in memory may be ahead of the log.
                let is_kept = |it: &&FoldVersion| it.id == id && it.seq <= record.last_seq;
                let kept = cached.iter().find(is_kept).cloned();
                kept.unwrap_or_else(|| FoldVersion::empty(fold))
            });
            let read = read_folds(shared.clone(), at, upto.clone(), from.collect()).await;
            let (versions, panic) = match read {
                Ok(versions) => (versions, None),
                Err(FoldError::Panicked(panic)) => (Vec::new(), Some(panic)),
                Err(FoldError::Unread(fault)) => return Err(fault),
            };
            for (at, (id, fold)) in listener.folds.iter().enumerate() {
                let shown = versions.get(at).map(|it| (fold.show)(&it.state));
                let why = || panic.as_ref().map_or_else(String::new, panicked);
                all.push(FoldState::new(&listener.name, id.1, shown.ok_or_else(why)));
            }
        }
        Ok(all)
    }
}
