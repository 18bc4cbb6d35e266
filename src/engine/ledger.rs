//! What a tree of threads may spend, and what it has spent: one ledger for all of it, so that a
//! thread's budget bounds those below it. Pure.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::engine::tree::CORE_NAME;
use crate::id::ThreadId;
use crate::limits::{Limits, UNLIMITED};
use crate::listener::Entry;
use crate::log::{self, Log, ThreadRecord};
use crate::wire::budget::{Amount, BudgetKey, BudgetRaised, BudgetWarning, Charge, RaiseBudget};
use crate::wire::{Code, Fault};

/// The percentages of a limit at which something is said.
const WARNED_AT: [u8; 3] = [95, 90, 75];

/// The ledger of a tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ledger {
    limits: [u64; BudgetKey::ALL.len()],
    used: [u64; BudgetKey::ALL.len()],
    /// The highest percentage that was said of each.
    warned: [u8; BudgetKey::ALL.len()],
    /// By thread and listener: turns, and the highest percentage that was said of them.
    turns: FxHashMap<(ThreadId, Arc<str>), (u64, u8)>,
    /// When the session was opened; 0 while it has no entry.
    opened_us: u64,
    /// Warnings that are to be said.
    unsaid: Vec<BudgetWarning>,
}

/// There isn't as much as was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Short {
    pub(crate) key: BudgetKey,
    pub(crate) asked: u64,
    pub(crate) used: u64,
    pub(crate) limit: u64,
}

impl Short {
    /// Whether there is nothing left at all of what is never given back.
    pub(crate) fn is_spent(self) -> bool {
        let comes_back = matches!(self.key, BudgetKey::Depth | BudgetKey::Children);
        !comes_back && self.used >= self.limit
    }

    pub(crate) fn fault(self) -> Fault {
        let Short { key, asked, used, limit } = self;
        let text = format!("{key}: {asked} asked for, {used} used, the limit is {limit}");
        Fault::new(Code::OverBudget, text)
    }
}

impl Ledger {
    /// Nothing is spent yet.
    pub(crate) fn new(limits: &Limits) -> Ledger {
        let limit = |key| match key {
            BudgetKey::Messages => limits.tree_messages_max,
            BudgetKey::Turns => limits.thread_turns_max,
            BudgetKey::Depth => u64::try_from(limits.thread_depth_max).unwrap_or(UNLIMITED),
            BudgetKey::Children => limits.tree_children_max,
            BudgetKey::Tokens => limits.tree_tokens_max,
            BudgetKey::Seconds => limits.tree_seconds_max,
            BudgetKey::CostMicros => limits.tree_cost_micros_max,
        };
        Ledger { limits: BudgetKey::ALL.map(limit), ..Ledger::default() }
    }

    /// The ledger of a tree as the log has it: how many messages its listeners were given, and
    /// every entry that has to do with its budget, in their order.
    pub(crate) fn kept(
        limits: &Limits,
        opened_us: u64,
        messages: u64,
        entries: impl IntoIterator<Item = Entry>,
    ) -> Ledger {
        let mut ledger = Ledger { opened_us, ..Ledger::new(limits) };
        ledger.used[BudgetKey::Messages as usize] = messages;
        entries.into_iter().for_each(|it| ledger.take(&it));
        ledger
    }

    /// Takes in an entry that has to do with the budget.
    fn take(&mut self, entry: &Entry) {
        if entry.is_refused() {
            return;
        }
        let read = if entry.is::<Charge>() {
            entry.decode().map(|it: Charge| self.book(entry.thread(), entry.sender(), &it))
        } else if entry.is::<BudgetRaised>() {
            entry.decode().map(|it: BudgetRaised| {
                let limit = it.limit.parse().map_or(0, |it: Amount| it.0);
                let limit = limit.max(self.limits[it.key as usize]);
                self.set(it.key, limit);
            })
        } else if entry.is::<BudgetWarning>() {
            entry.decode().map(|it: BudgetWarning| self.said(&it))
        } else {
            Ok(())
        };
        if let Err(fault) = read {
            tracing::error!(entry = %entry.id(), %fault, "an entry of a budget can't be read");
        }
        self.unsaid.clear();
    }

    fn said(&mut self, it: &BudgetWarning) {
        let warned = match (&it.thread, &it.listener) {
            (Some(thread), Some(listener)) => {
                let of = (ThreadId::new(thread), Arc::from(listener.as_str()));
                &mut self.turns.entry(of).or_default().1
            }
            _ => &mut self.warned[it.key as usize],
        };
        *warned = it.percent.max(*warned);
    }

    pub(crate) fn limit(&self, key: BudgetKey) -> u64 {
        self.limits[key as usize]
    }

    /// How much is spent of what is counted here: messages, tokens and money.
    pub(crate) fn used(&self, key: BudgetKey) -> u64 {
        self.used[key as usize]
    }

    /// The turns of each listener in each thread, in their order.
    pub(crate) fn turns(&self) -> Vec<(&ThreadId, &str, u64)> {
        let turns = self.turns.iter();
        let mut turns: Vec<_> = turns.map(|((id, name), (used, _))| (id, &**name, *used)).collect();
        turns.sort_unstable();
        turns
    }

    /// How long ago the session was opened.
    pub(crate) fn seconds(&self, now_us: u64) -> u64 {
        match self.opened_us {
            0 => 0,
            opened_us => now_us.saturating_sub(opened_us) / 1_000_000,
        }
    }

    /// Whether so much more of something fits.
    pub(crate) fn fits(&self, key: BudgetKey, asked: u64, used: u64) -> Result<(), Short> {
        let limit = self.limit(key);
        if used.checked_add(asked).is_some_and(|it| it <= limit) {
            return Ok(());
        }
        Err(Short { key, asked, used, limit })
    }

    /// Whether a listener may be given one more message.
    pub(crate) fn fits_message(&self, now_us: u64) -> Result<(), Short> {
        self.in_time(now_us)?;
        self.fits(BudgetKey::Messages, 1, self.used(BudgetKey::Messages))
    }

    /// Whether there is time left.
    pub(crate) fn in_time(&self, now_us: u64) -> Result<(), Short> {
        let (used, limit) = (self.seconds(now_us), self.limit(BudgetKey::Seconds));
        if used < limit {
            return Ok(());
        }
        Err(Short { key: BudgetKey::Seconds, asked: 1, used, limit })
    }

    /// An entry comes; a message if a listener is given it that the pump didn't send.
    pub(crate) fn count(&mut self, is_message: bool, now_us: u64) {
        if self.opened_us == 0 {
            self.opened_us = now_us;
        }
        if is_message {
            self.used[BudgetKey::Messages as usize] += 1;
            self.look_at(BudgetKey::Messages, self.used(BudgetKey::Messages));
        }
    }

    /// Warns of what nears its limit.
    pub(crate) fn look_at(&mut self, key: BudgetKey, used: u64) {
        let limit = self.limit(key);
        let warned = &mut self.warned[key as usize];
        if let Some(percent) = level(used, limit).filter(|it| it > warned) {
            *warned = percent;
            let (thread, listener) = (None, None);
            self.unsaid.push(BudgetWarning { key, percent, used, limit, thread, listener });
        }
    }

    /// Looks at the clock.
    pub(crate) fn look_at_clock(&mut self, now_us: u64) -> Result<(), Short> {
        if self.limit(BudgetKey::Seconds) < UNLIMITED {
            self.look_at(BudgetKey::Seconds, self.seconds(now_us));
        }
        self.in_time(now_us)
    }

    /// Reserves all of a charge or nothing; what is settled is booked whatever there is.
    pub(crate) fn charge(
        &mut self,
        thread: &ThreadId,
        listener: &Arc<str>,
        it: &Charge,
    ) -> Result<(), Short> {
        if !it.settled {
            let turns = self.turns.get(&(thread.clone(), listener.clone()));
            let asked = |it: i64| u64::try_from(it).unwrap_or(0);
            for (key, asked, used) in [
                (BudgetKey::Turns, asked(it.turns), turns.map_or(0, |(used, _)| *used)),
                (BudgetKey::Tokens, asked(it.tokens), self.used(BudgetKey::Tokens)),
                (BudgetKey::CostMicros, asked(it.cost_micros), self.used(BudgetKey::CostMicros)),
            ] {
                if asked > 0 {
                    self.fits(key, asked, used)?;
                }
            }
        }
        self.book(thread, listener, it);
        Ok(())
    }

    fn book(&mut self, thread: &ThreadId, listener: &Arc<str>, it: &Charge) {
        for (key, more) in [(BudgetKey::Tokens, it.tokens), (BudgetKey::CostMicros, it.cost_micros)]
        {
            if more != 0 {
                let used = self.used(key).saturating_add_signed(more);
                self.used[key as usize] = used;
                self.look_at(key, used);
            }
        }
        if it.turns == 0 {
            return;
        }
        let limit = self.limit(BudgetKey::Turns);
        let (used, warned) = self.turns.entry((thread.clone(), listener.clone())).or_default();
        *used = used.saturating_add_signed(it.turns);
        if let Some(percent) = level(*used, limit).filter(|it| it > warned) {
            *warned = percent;
            self.unsaid.push(BudgetWarning {
                key: BudgetKey::Turns,
                percent,
                used: *used,
                limit,
                thread: Some(thread.to_string()),
                listener: Some(listener.to_string()),
            });
        }
    }

    /// Allows more: what it comes to, or that nothing was said of how much.
    pub(crate) fn raise(&mut self, it: &RaiseBudget) -> Result<Amount, Fault> {
        let invalid = |text: &str| Fault::new(Code::Invalid, format!("raise-budget: {text}"));
        let limit = self.limit(it.key);
        let raised = match (it.by, &it.to) {
            (Some(by), None) => limit.saturating_add(by),
            (None, Some(to)) => to.parse::<Amount>().map_err(|it| invalid(&it.to_string()))?.0,
            _ => return Err(invalid("say either by or to")),
        };
        if raised < limit {
            let text = format!("{} is {} already", it.key, Amount(limit));
            return Err(invalid(&text));
        }
        self.set(it.key, raised);
        Ok(Amount(raised))
    }

    /// Sets a limit; what was said of the one before doesn't count any more.
    fn set(&mut self, key: BudgetKey, limit: u64) {
        self.limits[key as usize] = limit;
        self.warned[key as usize] = level(self.used(key), limit).unwrap_or(0);
        if key == BudgetKey::Turns {
            for (used, warned) in self.turns.values_mut() {
                *warned = level(*used, limit).unwrap_or(0);
            }
        }
    }

    /// What is to be said now.
    pub(crate) fn unsaid(&mut self) -> Vec<BudgetWarning> {
        std::mem::take(&mut self.unsaid)
    }
}

/// The ledger of a tree as the log has it. What is not bounded is not counted, and where nothing
/// was charged nothing is read.
pub(crate) async fn read(
    log: &dyn Log,
    threads: &[ThreadRecord],
    limits: &Limits,
) -> Result<Ledger, log::Error> {
    let Some(root) = threads.first() else { return Ok(Ledger::new(limits)) };
    let entries = match threads.iter().any(|it| it.is_charged) {
        true => log.charges(&root.id).await?,
        false => Vec::new(),
    };
    let messages = match limits.tree_messages_max {
        UNLIMITED => 0,
        _ => log.count(&root.id, CORE_NAME).await?,
    };
    let opened_us = root.first.as_ref().map_or(0, |it| it.at_us);
    Ok(Ledger::kept(limits, opened_us, messages, entries.iter().map(|it| Entry::kept(it))))
}

/// The highest percentage to warn at that so much has come to.
fn level(used: u64, limit: u64) -> Option<u8> {
    if limit == UNLIMITED || limit == 0 {
        return None;
    }
    let reached = |it: &u8| u128::from(used) * 100 >= u128::from(limit) * u128::from(*it);
    WARNED_AT.into_iter().find(reached)
}
