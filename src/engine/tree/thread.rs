//! One thread's own state: its next number, what waits and what runs, who pushed. Pure.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Weak};

use rustc_hash::{FxHashMap, FxHashSet};
use tokio_util::sync::CancellationToken;

use crate::engine::tree::event::{Key, Push, Start};
use crate::engine::tree::lineage::Lineage;
use crate::engine::tree::loop_guard::{Chain, Guard};
use crate::engine::tree::observer::PushObserver;
use crate::engine::tree::reserved::Reserved;
use crate::engine::tree::route::Receiver;
use crate::id::{EntryId, ThreadId};
use crate::listener::{ArrivalSignal, Awake, Entry, Park};
use crate::log;
use crate::log::State;
use crate::wire::{Code, Fault};

/// How many of a thread's first entries stay at hand while it has something to do, and how many
/// bytes they have at the most: few threads come to more before their first action.
const FIRST_AT_HAND_MAX: usize = 32;

const FIRST_BYTES_MAX: usize = 64 * 1024;

/// A thread that is awake.
pub(crate) struct Thread {
    pub(crate) id: ThreadId,
    /// The identity that opened it.
    pub(crate) owner: Arc<str>,
    pub(crate) next_seq: u64,
    /// What the log chains its digests with.
    pub(crate) record: log::NewThread,
    /// What it shares with others, where it is a fork.
    pub(crate) lineage: Lineage,
    /// Whether the log has it.
    pub(crate) kept: bool,
    /// Deliveries that are not consumed yet.
    pub(crate) unconsumed: usize,
    /// How many of them are parked.
    pub(crate) parked: usize,
    pub(crate) deliveries: FxHashMap<usize, Deliveries>,
    pub(crate) running: FxHashMap<(u64, usize), Running>,
    /// Pushes that wait until the thread has consumed some.
    pub(crate) held: VecDeque<Box<Push>>,
    /// Pushes whose consequences aren't all consumed, by their number in the thread.
    pub(crate) origins: FxHashMap<u64, Origin>,
    /// Those of them that are answered together with an older one.
    pub(crate) joined: FxHashMap<u64, u64>,
    /// Who pushed what is still under way since before a stop, and who pushed last.
    pub(crate) askers: BTreeMap<u64, Arc<str>>,
    pub(crate) newest_push: u64,
    /// How far the thread was when a listener that takes its queue had last said something, and
    /// the push that this came of.
    pub(crate) said: FxHashMap<usize, (u64, u64)>,
    /// Where each identity pushed from last.
    pub(crate) inlets: Vec<(Arc<str>, Weak<dyn PushObserver>, u64)>,
    pub(crate) folds: FxHashMap<usize, Folds>,
    /// Entries that some fold hasn't taken in yet, and the first of a young thread.
    pub(crate) recent: VecDeque<Entry>,
    pub(crate) state: State,
    /// How many threads are above it.
    pub(crate) depth: usize,
    /// The live threads right below it.
    pub(crate) children: FxHashSet<ThreadId>,
    /// Who opened it, where there is a thread above it.
    pub(crate) spawner: Option<Spawner>,
    /// The push in the thread above that it is part of; 0 where nobody knows.
    pub(crate) root_above: u64,
    /// Deliveries that wait for their time.
    pub(crate) later: FxHashMap<(u64, usize), Later>,
    /// Those of them that would have started, were there anything left to spend: which, and the
    /// entry that each waited for, if that was one.
    pub(crate) overdue: Vec<(Key, Option<EntryId>)>,
    pub(crate) guard: Guard,
}

/// Who opened a child.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Spawner {
    pub(crate) name: Arc<str>,
    pub(crate) is_identity: bool,
    /// The message whose handling opened it.
    pub(crate) asked: Option<EntryId>,
    /// Who was given its first message, where that is one.
    pub(crate) to: Option<Arc<str>>,
    /// How what comes of it goes on in the thread above.
    pub(crate) chain: Chain,
}

/// A delivery that isn't to start before a time.
pub(crate) struct Later {
    pub(crate) entry: Entry,
    pub(crate) receiver: Receiver,
    /// The push that waits for it, or [`Later::FOR_NONE`].
    pub(crate) root: u64,
    /// What it came at the end of.
    pub(crate) chain: Chain,
}

impl Later {
    /// Instead of a push: none waits for the delivery, and no work counts it as under way.
    pub(crate) const FOR_NONE: u64 = u64::MAX;

    /// One that the log has from before a stop, or that slept.
    pub(crate) fn kept(entry: Entry, receiver: Receiver) -> Later {
        Later { entry, receiver, root: Later::FOR_NONE, chain: Chain::default() }
    }
}

/// What one listener has to do in a thread.
#[derive(Default)]
pub(crate) struct Deliveries {
    pub(crate) running: usize,
    pub(crate) waiting: VecDeque<Delivery>,
    /// Whether it waits for the listener to have room.
    pub(crate) starving: bool,
    pub(crate) parked: Parked,
}

/// Messages that a serial listener had in hand and isn't done with.
#[derive(Default)]
pub(crate) struct Parked {
    pub(crate) all: Vec<Delivery>,
    /// The push that the work on them is done for, where that is known.
    pub(crate) root: Option<u64>,
    /// Whether the listener wants to hear that nothing is left to do.
    pub(crate) quiet: bool,
    /// What the listener said when it parked last; none after a stop.
    pub(crate) park: Option<Park>,
    /// Whether the listener goes on where the thread is over budget.
    pub(crate) settles: bool,
    /// Whether it was told so, and has got nothing else since.
    pub(crate) is_told: bool,
}

impl Deliveries {
    /// Whether it has neither work nor messages.
    pub(crate) fn is_empty(&self) -> bool {
        self.running == 0 && self.waiting.is_empty() && self.parked.all.is_empty()
    }
}

/// A delivery that hasn't started.
pub(crate) struct Delivery {
    pub(crate) entry: Entry,
    pub(crate) handler: usize,
    pub(crate) attempt: u32,
    pub(crate) root: u64,
    pub(crate) chain: Chain,
    /// What an earlier attempt sent before its end.
    pub(crate) sent: VecDeque<Entry>,
    /// The time until which the log has it as parked, which never comes.
    pub(crate) parked: Option<u64>,
}

impl Delivery {
    /// A first attempt.
    pub(crate) fn new(receiver: Receiver, entry: Entry, root: u64) -> Delivery {
        let (chain, sent) = (Chain::default(), VecDeque::new());
        let handler = receiver.handler;
        Delivery { entry, handler, attempt: 1, root, chain, sent, parked: None }
    }
}

/// A delivery that has.
pub(crate) struct Running {
    /// The message that it is of, with what an earlier attempt sent and this one hasn't repeated
    /// yet.
    pub(crate) first: Delivery,
    /// The other messages in hand: what a serial listener took along, and what it had parked.
    pub(crate) more: Vec<Delivery>,
    pub(crate) root: u64,
    pub(crate) emitted: usize,
    /// How many of its emissions answer nobody: notes, charges, and those that nobody got.
    pub(crate) silent: usize,
    /// What it has reserved of the tree's budget and not settled.
    pub(crate) reserved: Reserved,
    /// Why nobody got the first of those that nobody got.
    pub(crate) undelivered: Option<Box<Fault>>,
    /// What tells it to stop; inline ones are over before anybody could.
    pub(crate) cancel: Option<CancellationToken>,
    /// Where it hears of what comes meanwhile.
    pub(crate) arrivals: Option<ArrivalSignal>,
}

impl Running {
    /// Of a delivery that starts now, with the other messages in hand.
    pub(crate) fn new(
        first: Delivery,
        more: Vec<Delivery>,
        root: u64,
        cancel: Option<CancellationToken>,
        arrivals: Option<ArrivalSignal>,
    ) -> Running {
        let (emitted, silent, undelivered) = (0, 0, None);
        let reserved = Reserved::kept(&first.sent);
        Running { first, more, root, emitted, silent, reserved, undelivered, cancel, arrivals }
    }
}

/// A push and its consequences.
pub(crate) struct Origin {
    pub(crate) identity: Arc<str>,
    pub(crate) inlet: Arc<dyn PushObserver>,
    pub(crate) push: u64,
    /// Deliveries that it caused and that aren't consumed.
    pub(crate) open: usize,
    pub(crate) wants_answer: bool,
    pub(crate) answered: bool,
    /// Whether its sender is told why exactly nobody takes something.
    pub(crate) tells_why: bool,
    /// Why nobody got something that came of it.
    pub(crate) undelivered: Option<Box<Fault>>,
}

/// The folds of one listener: how far they are, or who waits while the log is read for them.
pub(crate) enum Folds {
    Awake { seq: u64, states: Vec<Awake> },
    Waking(VecDeque<Box<Start>>),
}

impl Thread {
    pub(crate) fn new(record: log::NewThread, owner: Arc<str>, last_seq: u64) -> Thread {
        Thread {
            id: record.id.clone(),
            owner,
            next_seq: last_seq + 1,
            record,
            lineage: Lineage::default(),
            kept: last_seq > 0,
            unconsumed: 0,
            parked: 0,
            deliveries: FxHashMap::default(),
            running: FxHashMap::default(),
            held: VecDeque::new(),
            origins: FxHashMap::default(),
            joined: FxHashMap::default(),
            askers: BTreeMap::new(),
            newest_push: 0,
            said: FxHashMap::default(),
            inlets: Vec::new(),
            folds: FxHashMap::default(),
            recent: VecDeque::new(),
            state: State::Open,
            depth: 0,
            children: FxHashSet::default(),
            spawner: None,
            root_above: 0,
            later: FxHashMap::default(),
            overdue: Vec::new(),
            guard: Guard::default(),
        }
    }

    /// Whether nothing would be lost if it were forgotten: the log has all that matters.
    pub(crate) fn is_quiet(&self) -> bool {
        self.is_at_rest() && (self.later.is_empty() || !self.is_heard())
    }

    /// Whether it has nothing to do but wait for a time.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.unconsumed == 0
            && self.running.is_empty()
            && self.held.is_empty()
            && self.origins.is_empty()
            && self.overdue.is_empty()
            && !self.folds.values().any(|it| matches!(it, Folds::Waking(_)))
    }

    /// Whether somebody who pushed is still there to hear of what comes later.
    fn is_heard(&self) -> bool {
        self.inlets.iter().any(|(_, it, _)| it.strong_count() > 0)
    }

    /// Whether its counts are those of its deliveries and of the handlers at work.
    pub(crate) fn counts_agree(&self) -> bool {
        let in_hand: usize = self.running.values().map(|it| 1 + it.more.len()).sum();
        let waiting: usize = self.deliveries.values().map(|it| it.waiting.len()).sum();
        let parked: usize = self.deliveries.values().map(|it| it.parked.all.len()).sum();
        let running: usize = self.deliveries.values().map(|it| it.running).sum();
        self.unconsumed == in_hand + waiting + parked
            && self.parked == parked
            && running == self.running.len()
    }

    /// Which push something came of, and whose it was; the newest, where nobody knows.
    pub(crate) fn asked(&self, root: u64) -> Option<(u64, Arc<str>)> {
        let of = |seq: u64| {
            let origin = self.origins.get(&seq).map(|it| &it.identity);
            Some((seq, origin.or_else(|| self.askers.get(&seq))?.clone()))
        };
        of(root).or_else(|| of(self.newest_push))
    }

    /// Notes who pushed, for what comes of it when the push itself is settled.
    pub(crate) fn is_asked(&mut self, seq: u64, identity: Arc<str>) {
        self.askers.remove(&self.newest_push);
        self.askers.insert(seq, identity);
        self.newest_push = seq;
    }

    /// The id of an entry here.
    pub(crate) fn entry(&self, seq: u64) -> EntryId {
        EntryId::new(&self.id, seq)
    }

    /// Whether an entry is one of its own, or one that it shares.
    pub(crate) fn has(&self, id: &EntryId) -> bool {
        id.thread == self.id || self.lineage.has(id)
    }

    /// Notes where an identity pushes from.
    pub(crate) fn pushed_by(
        &mut self,
        identity: &Arc<str>,
        inlet: &Arc<dyn PushObserver>,
        push: u64,
    ) {
        self.inlets.retain(|(_, it, _)| it.strong_count() > 0);
        let inlet = Arc::downgrade(inlet);
        match self.inlets.iter_mut().find(|(it, _, _)| it == identity) {
            Some(it) => (it.1, it.2) = (inlet, push),
            None => self.inlets.push((identity.clone(), inlet, push)),
        }
    }

    /// Where an identity hears of an entry that answers `replied`.
    pub(crate) fn inlet(
        &self,
        identity: &str,
        replied: Option<u64>,
    ) -> Option<(Arc<dyn PushObserver>, u64)> {
        if let Some(it) = replied.and_then(|seq| self.origins.get(&seq)) {
            return Some((it.inlet.clone(), it.push));
        }
        let (_, inlet, push) = self.inlets.iter().find(|(it, _, _)| &**it == identity)?;
        Some((inlet.upgrade()?, *push))
    }

    /// Queues a delivery.
    pub(crate) fn wait(&mut self, receiver: Receiver, it: Delivery) {
        self.unconsumed += 1;
        self.hold(it.root);
        let lane = self.deliveries.entry(receiver.listener).or_default();
        lane.parked.is_told = false;
        lane.waiting.push_back(it);
    }

    /// Keeps an entry at hand while some fold hasn't seen it; a fold that lags too far is let go.
    /// Of a thread whose first entry is for a handler with folds, the first ones stay at hand
    /// anyway: whichever fold is wanted next begins with them.
    pub(crate) fn remember(&mut self, entry: &Entry, begins: bool, at_hand_max: usize) {
        if self.folds.is_empty() && self.recent.is_empty() && !begins {
            return;
        }
        let was_young = self.is_young(at_hand_max);
        self.recent.push_back(entry.clone());
        let is_over_full = self.recent.len() > at_hand_max;
        if is_over_full {
            let oldest = self.recent.front().map_or(0, Entry::seq);
            self.folds.retain(|_, it| !matches!(it, Folds::Awake { seq, .. } if *seq < oldest));
        }
        // One that wakes goes on with what came meanwhile.
        let wakes = || self.folds.values().any(|it| matches!(it, Folds::Waking(_)));
        if is_over_full || was_young && !self.is_young(at_hand_max) && !wakes() {
            self.trim();
        }
    }

    /// A fold has seen more: forgets what all have, but for the first entries of a young thread.
    pub(crate) fn was_seen(&mut self, at_hand_max: usize) {
        if !self.is_young(at_hand_max) {
            self.trim();
        }
    }

    /// Forgets the entries that every fold has seen.
    pub(crate) fn trim(&mut self) {
        let seen = self.folds.values().map(|it| match it {
            Folds::Awake { seq, .. } => *seq,
            Folds::Waking(_) => u64::MAX,
        });
        let seen = seen.min().unwrap_or(u64::MAX);
        while self.recent.front().is_some_and(|it| it.seq() <= seen) {
            self.recent.pop_front();
        }
    }

    /// Whether its first entries are so few that they stay at hand, whoever has seen them.
    fn is_young(&self, at_hand_max: usize) -> bool {
        let bytes = || self.recent.iter().map(|it| it.body().len()).sum::<usize>();
        self.has_all_at_hand()
            && self.recent.len() <= at_hand_max.min(FIRST_AT_HAND_MAX)
            && bytes() <= FIRST_BYTES_MAX
    }

    /// Whether every entry from the first on is at hand.
    pub(crate) fn has_all_at_hand(&self) -> bool {
        self.recent.front().is_some_and(|it| it.seq() == 1)
    }
}

/// What is said about a thread that takes nothing more.
pub(crate) fn ended(thread: &ThreadId, state: State) -> Fault {
    let text = format!("{thread} is {state}");
    if state != State::OverBudget {
        return Fault::new(Code::ThreadEnded, text);
    }
    let shows = format!("`pumphouse budget {thread}` shows which budget is spent");
    let advice = format!("{shows}: have an operator raise it, or cancel the thread.");
    Fault { advice: Some(advice), ..Fault::new(Code::OverBudget, text) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::suite::{note, session};
    use crate::xml::Element;

    /// How many of so many entries stay at hand, of so many bytes each, from this one on.
    fn at_hand(from: u64, count: u64, bytes: usize, most: usize, folds: &[u64]) -> usize {
        let mut thread = Thread::new(session("a"), "ada".into(), from - 1);
        for (listener, seq) in folds.iter().enumerate() {
            thread.folds.insert(listener, Folds::Awake { seq: *seq, states: Vec::new() });
        }
        let body = format!("<n xmlns=\"urn:n\">{}</n>", "x".repeat(bytes));
        let element = Element::from_canonical(body.clone().into()).unwrap();
        for seq in from..from + count {
            let draft = log::Draft { body: body.clone().into(), ..note(&format!("a/{seq}")) };
            thread.remember(&Entry::fresh(&draft, element.clone()), seq == 1, most);
        }
        thread.recent.len()
    }

    #[test]
    fn a_fold_that_wakes_finds_what_came_meanwhile() {
        for from in [1, 7] {
            let mut thread = Thread::new(session("a"), "ada".into(), from - 1);
            thread.folds.insert(0, Folds::Waking(VecDeque::new()));
            for seq in from..from + 50 {
                let draft = note(&format!("a/{seq}"));
                let element = Element::from_canonical(draft.body.clone()).unwrap();
                thread.remember(&Entry::fresh(&draft, element), seq == 1, 1_024);
            }
            assert_eq!(thread.recent.len(), 50);
        }
    }

    #[test]
    fn the_first_entries_stay_at_hand_while_they_are_few_and_small() {
        for (from, count, bytes, most, folds, expected) in [
            (1, 32, 9, 1_024, &[][..], 32),
            (1, 32, 9, 1_024, &[32], 32),
            (1, 33, 9, 1_024, &[], 0),
            (1, 5, 30_000, 1_024, &[], 0),
            (1, 6, 9, 5, &[], 0),
            // One that slept or is a fork has no first entries.
            (2, 3, 9, 1_024, &[], 0),
            // What a fold hasn't seen stays, unless that is too much.
            (1, 40, 9, 1_024, &[0], 40),
            (1, 40, 9, 1_024, &[0, 38], 40),
            (1, 40, 9, 1_024, &[30], 10),
            (1, 6, 9, 5, &[0], 0),
            (2, 40, 9, 1_024, &[1], 40),
            (2, 40, 9, 39, &[1], 0),
        ] {
            let case = format!("{count} from {from}, {bytes} B, {most} at the most, {folds:?}");
            assert_eq!(at_hand(from, count, bytes, most, folds), expected, "{case}");
        }
    }
}
