//! The budget of a tree: the limits of its threads, and the amounts that they have spent. A tree
//! has one ledger, so its budget bounds all of its threads together. Turns are an exception: they
//! are bounded for each listener in each thread. Only `read` and `charged` read the log.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::engine::tree::reserved_amounts::ReservedAmounts;
use crate::id::ThreadId;
use crate::limits::{Allowance, Limits, UNLIMITED};
use crate::listener::Entry;
use crate::log;
use crate::log::{Log, ThreadRecord};
use crate::name::CORE_NAME;
use crate::wire::budget::{BudgetKey, BudgetRaised, BudgetWarning, Charge, RaiseBudget};
use crate::wire::{Code, Fault, Payload};

/// The advice for a raise that has neither `by` nor `to`, that has both, or whose `to` can't be
/// read.
const ONE_OF: &str = "Say either by=\"50000\", how much more, or to=\"200000\", the new limit.";

/// The percentages of a limit at which the pump warns.
const WARNED_AT: [u8; 3] = [95, 90, 75];

/// The ledger of a tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    limits: [u64; BudgetKey::ALL.len()],
    used: [u64; BudgetKey::ALL.len()],
    /// For each budget: the highest percentage that a warning has reported.
    warned: [u8; BudgetKey::ALL.len()],
    /// Maps a thread and a listener to the number of turns that the listener took in the thread,
    /// and to the highest percentage that a warning has reported.
    turns: FxHashMap<(ThreadId, Arc<str>), (u64, u8)>,
    /// When the session was opened; 0 while it has no entry.
    opened_us: u64,
    /// Warnings that aren't recorded yet.
    unsaid: Vec<BudgetWarning>,
}

/// A budget that has no room for the amount that was asked for. All amounts are in the unit of
/// `key`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Short {
    pub(crate) key: BudgetKey,
    pub(crate) asked: u64,
    pub(crate) used: u64,
    pub(crate) limit: u64,
    /// The part of `used` that other running handlers have reserved. Their settlements may give
    /// some of this part back.
    pub(crate) reserved: u64,
}

impl Short {
    /// Returns whether the budget is used up until an operator raises it. Depth and children never
    /// count as used up, since threads that end give them back.
    pub(crate) fn is_spent(self) -> bool {
        let comes_back = matches!(self.key, BudgetKey::Depth | BudgetKey::Children);
        !comes_back && self.left() == 0
    }

    /// Returns how much is left if the reserved part doesn't count as spent.
    fn left(self) -> u64 {
        self.limit.saturating_sub(self.used.saturating_sub(self.reserved))
    }

    pub(crate) fn fault(self) -> Fault {
        let Short { key, asked, used, limit, .. } = self;
        let text = format!("{key}: {asked} asked for, {used} used, the limit is {limit}");
        Fault::over_budget(text, key, self.left())
    }
}

impl Ledger {
    /// Creates a ledger in which nothing is spent yet.
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

    /// Creates the ledger of a tree that the log has: from the number of the tree's messages, and
    /// from the tree's entries about budgets in their order.
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

    /// Applies an entry about the budget.
    fn take(&mut self, entry: &Entry) {
        if entry.is_refused() {
            return;
        }
        let read = if entry.is::<Charge>() {
            entry.decode().map(|it: Charge| self.book(entry.thread(), entry.sender(), &it))
        } else if entry.is::<BudgetRaised>() {
            entry.decode().map(|raised: BudgetRaised| {
                let limit = raised.limit.parse().map_or(0, |it: Allowance| it.0);
                let limit = limit.max(self.limits[raised.key as usize]);
                self.set(raised.key, limit);
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

    fn said(&mut self, warning: &BudgetWarning) {
        let warned = match (&warning.thread, &warning.listener) {
            (Some(thread), Some(listener)) => {
                let of = (ThreadId::new(thread), Arc::from(listener.as_str()));
                &mut self.turns.entry(of).or_default().1
            }
            _ => &mut self.warned[warning.key as usize],
        };
        *warned = warning.percent.max(*warned);
    }

    /// The limit of a budget.
    pub fn limit(&self, key: BudgetKey) -> u64 {
        self.limits[key as usize]
    }

    /// Returns the used amount of messages, tokens or money. `used` doesn't count the other
    /// budgets.
    pub fn used(&self, key: BudgetKey) -> u64 {
        self.used[key as usize]
    }

    /// Returns the turns of each listener in each thread, sorted by thread and listener.
    pub fn turns(&self) -> Vec<(&ThreadId, &str, u64)> {
        let turns = self.turns.iter();
        let mut turns: Vec<_> = turns.map(|((id, name), (used, _))| (id, &**name, *used)).collect();
        turns.sort_unstable();
        turns
    }

    /// Returns the seconds since the session was opened.
    pub(crate) fn seconds(&self, now_us: u64) -> u64 {
        match self.opened_us {
            0 => 0,
            opened_us => now_us.saturating_sub(opened_us) / 1_000_000,
        }
    }

    /// Checks that a budget has room for `asked` more if `used` of it is spent already.
    pub(crate) fn fits(&self, key: BudgetKey, asked: u64, used: u64) -> Result<(), Short> {
        let limit = self.limit(key);
        if used.checked_add(asked).is_some_and(|it| it <= limit) {
            return Ok(());
        }
        Err(Short { key, asked, used, limit, reserved: 0 })
    }

    /// Checks that the tree has time left, and that its budget has room for one more message.
    pub(crate) fn fits_message(&self, now_us: u64) -> Result<(), Short> {
        self.in_time(now_us)?;
        self.fits(BudgetKey::Messages, 1, self.used(BudgetKey::Messages))
    }

    /// Checks that the tree has time left.
    pub(crate) fn in_time(&self, now_us: u64) -> Result<(), Short> {
        let (used, limit) = (self.seconds(now_us), self.limit(BudgetKey::Seconds));
        if used < limit {
            return Ok(());
        }
        Err(Short { key: BudgetKey::Seconds, asked: 1, used, limit, reserved: 0 })
    }

    /// Counts an entry of the tree. The entry is a message if a listener gets it and the pump
    /// didn't send it. The time of the tree begins with its first entry.
    pub(crate) fn count(&mut self, is_message: bool, now_us: u64) {
        if self.opened_us == 0 {
            self.opened_us = now_us;
        }
        if is_message {
            self.used[BudgetKey::Messages as usize] += 1;
            self.look_at(BudgetKey::Messages, self.used(BudgetKey::Messages));
        }
    }

    /// Notes a warning if the usage of a budget has reached a higher percentage of `WARNED_AT` than
    /// before.
    pub(crate) fn look_at(&mut self, key: BudgetKey, used: u64) {
        let limit = self.limit(key);
        let warned = &mut self.warned[key as usize];
        if let Some(percent) = level(used, limit).filter(|it| it > warned) {
            *warned = percent;
            let (thread, listener) = (None, None);
            self.unsaid.push(BudgetWarning { key, percent, used, limit, thread, listener });
        }
    }

    /// Checks the tree's time, and notes a warning if the time nears its limit.
    pub(crate) fn look_at_clock(&mut self, now_us: u64) -> Result<(), Short> {
        if self.limit(BudgetKey::Seconds) < UNLIMITED {
            self.look_at(BudgetKey::Seconds, self.seconds(now_us));
        }
        self.in_time(now_us)
    }

    /// Books a charge. A reservation is booked whole or not at all; a settlement is always booked.
    pub(crate) fn charge(
        &mut self,
        thread: &ThreadId,
        listener: &Arc<str>,
        charge: &Charge,
    ) -> Result<(), Short> {
        self.fits_charge(thread, listener, charge, ReservedAmounts::default())?;
        self.book(thread, listener, charge);
        Ok(())
    }

    /// Checks that a charge fits if the amounts in `without` don't count as used. A settlement
    /// always fits.
    pub(crate) fn fits_charge(
        &self,
        thread: &ThreadId,
        listener: &Arc<str>,
        charge: &Charge,
        without: ReservedAmounts,
    ) -> Result<(), Short> {
        if charge.settled {
            return Ok(());
        }
        let turns = self.turns.get(&(thread.clone(), listener.clone()));
        let asked = |it: i64| u64::try_from(it).unwrap_or(0);
        let used = |key| self.used(key).saturating_sub(without.of(key));
        for (key, asked, used) in [
            (BudgetKey::Turns, asked(charge.turns), turns.map_or(0, |(used, _)| *used)),
            (BudgetKey::Tokens, asked(charge.tokens), used(BudgetKey::Tokens)),
            (BudgetKey::CostMicros, asked(charge.cost_micros), used(BudgetKey::CostMicros)),
        ] {
            if asked > 0 {
                self.fits(key, asked, used)?;
            }
        }
        Ok(())
    }

    fn book(&mut self, thread: &ThreadId, listener: &Arc<str>, charge: &Charge) {
        for (key, more) in
            [(BudgetKey::Tokens, charge.tokens), (BudgetKey::CostMicros, charge.cost_micros)]
        {
            if more != 0 {
                let used = self.used(key).saturating_add_signed(more);
                self.used[key as usize] = used;
                // The reservation of a model's turn causes no warning: it isn't spent yet, and is
                // settled soon.
                if charge.settled || charge.tokens_out.is_none() {
                    self.look_at(key, used);
                }
            }
        }
        if charge.turns == 0 {
            return;
        }
        let limit = self.limit(BudgetKey::Turns);
        let (used, warned) = self.turns.entry((thread.clone(), listener.clone())).or_default();
        *used = used.saturating_add_signed(charge.turns);
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

    /// Raises a limit. Returns the new limit, or a fault if the request is wrong.
    pub(crate) fn raise(&mut self, raise: &RaiseBudget) -> Result<Allowance, Fault> {
        let (key, limit) = (raise.key, self.limit(raise.key));
        let raised = match (raise.by, &raise.to) {
            (Some(by), None) => limit.saturating_add(by),
            (None, Some(to)) => match to.parse::<Allowance>() {
                Ok(it) => it.0,
                Err(error) => return Err(unraised("/@to", format!("to={to:?}: {error}"), ONE_OF)),
            },
            (Some(_), Some(_)) => return Err(unraised("", "it has both by and to", ONE_OF)),
            (None, None) => return Err(unraised("", "it has neither by nor to", ONE_OF)),
        };
        if raised < limit {
            let (to, limit) = (Allowance(raised), Allowance(limit));
            let text = format!("{key} can't be lowered to {to}: the limit is {limit}");
            let advice = match limit {
                Allowance(UNLIMITED) => "Leave it as it is: there is no more.".to_owned(),
                _ => format!("Say more than {limit} in to, or how much more in by."),
            };
            return Err(unraised("/@to", text, &advice));
        }
        self.set(key, raised);
        Ok(Allowance(raised))
    }

    /// Sets a limit. Warnings about the old limit no longer count.
    fn set(&mut self, key: BudgetKey, limit: u64) {
        self.limits[key as usize] = limit;
        self.unsaid.retain(|it| it.key != key);
        self.warned[key as usize] = level(self.used(key), limit).unwrap_or(0);
        if key == BudgetKey::Turns {
            let again = |(used, warned): &mut (u64, u8)| {
                *warned = level(*used, limit).unwrap_or(0);
            };
            self.turns.values_mut().for_each(again);
        }
    }

    /// Takes the warnings that aren't recorded yet.
    pub(crate) fn take_unsaid(&mut self) -> Vec<BudgetWarning> {
        std::mem::take(&mut self.unsaid)
    }
}

/// Reads the ledger of a tree from the log, as far as a running tree needs it. Messages are counted
/// only if their number is bounded.
pub(crate) async fn read(
    log: &dyn Log,
    threads: &[ThreadRecord],
    limits: &Limits,
) -> Result<Ledger, log::Error> {
    let messages = match (threads.first(), limits.tree_messages_max) {
        (None, _) | (_, UNLIMITED) => 0,
        (Some(root), _) => log.count(&root.id, CORE_NAME).await?,
    };
    charged(log, threads, limits, messages).await
}

/// Returns the ledger of a tree that has had `messages` messages. If nothing was charged in the
/// tree, nothing is read from the log.
pub async fn charged(
    log: &dyn Log,
    threads: &[ThreadRecord],
    limits: &Limits,
    messages: u64,
) -> Result<Ledger, log::Error> {
    let Some(root) = threads.first() else { return Ok(Ledger::new(limits)) };
    let entries = match threads.iter().any(|it| it.is_charged) {
        true => log.charges(&root.id).await?,
        false => Vec::new(),
    };
    let opened_us = root.first.as_ref().map_or(0, |it| it.at_us);
    Ok(Ledger::kept(limits, opened_us, messages, entries.iter().map(|it| Entry::kept(it))))
}

/// Returns the highest percentage of `WARNED_AT` that this usage has reached. Returns None if the
/// usage has reached none of them, if the budget is unlimited, or if its limit is 0.
fn level(used: u64, limit: u64) -> Option<u8> {
    if limit == UNLIMITED || limit == 0 {
        return None;
    }
    let reached = |it: &u8| u128::from(used) * 100 >= u128::from(limit) * u128::from(*it);
    WARNED_AT.into_iter().find(reached)
}

/// Returns the fault for a request to raise a budget. `place` is the path of the wrong attribute,
/// or empty. `text` says what is wrong, and `advice` what to send instead.
fn unraised(place: &str, text: impl Into<String>, advice: &str) -> Fault {
    let path = Some(format!("/{}{place}", RaiseBudget::NAME.local()));
    Fault { path, advice: Some(advice.to_owned()), ..Fault::new(Code::Invalid, text) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::id::EntryId;
    use crate::log::{Draft, Flags};
    use crate::wire::Payload;

    fn limits() -> Limits {
        Limits {
            thread_turns_max: 7,
            tree_tokens_max: 100,
            tree_cost_micros_max: 1_000,
            ..Limits::default()
        }
    }

    /// Returns an entry about the budget, as the log would have it.
    fn entry<P: Payload>(seq: u64, thread: &str, from: &str, payload: &P) -> Entry {
        let element = payload.encode().unwrap();
        let id = EntryId::new(&ThreadId::new(thread), seq);
        let draft = Draft::new(id, 1, from.into(), P::NAME, element.canonical());
        Entry::fresh(&Draft { flags: Flags::CHARGES, ..draft }, element)
    }

    /// A change of a ledger.
    #[derive(Clone, Debug)]
    enum Deed {
        Charge(u8, u8, Charge),
        Raise(BudgetKey, u64),
    }

    fn deeds() -> impl Strategy<Value = Vec<Deed>> {
        let charge = (0_u8..3, 0_u8..3, 0_i64..5, 0_i64..60, 0_i64..500, any::<bool>());
        let charge = charge.prop_map(|(thread, from, turns, tokens, cost_micros, settled)| {
            let sign = if settled { -1 } else { 1 };
            let tokens = sign * tokens;
            let turns = sign * turns;
            let charge = Charge { turns, tokens, cost_micros, settled, ..Charge::default() };
            Deed::Charge(thread, from, charge)
        });
        let key = prop::sample::select(vec![BudgetKey::Turns, BudgetKey::Tokens]);
        let raise = (key, 0_u64..50).prop_map(|(key, by)| Deed::Raise(key, by));
        prop::collection::vec(prop_oneof![9 => charge, 1 => raise], 0..60)
    }

    proptest! {
        #[test]
        fn no_reservation_exceeds_and_a_ledger_is_what_its_entries_say(deeds in deeds()) {
            let mut ledger = Ledger::new(&limits());
            let mut log = Vec::new();
            for (seq, deed) in (1..).zip(deeds) {
                let before = ledger.clone();
                match deed {
                    Deed::Charge(thread, from, charge) => {
                        let (thread, from) = (format!("t{thread}"), Arc::from(format!("l{from}")));
                        let booked = ledger.charge(&ThreadId::new(&thread), &from, &charge);
                        match booked {
                            Ok(()) => log.push(entry(seq, &thread, &from, &charge)),
                            Err(short) => {
                                prop_assert!(short.asked + short.used > short.limit);
                                prop_assert_eq!(&ledger, &before, "nothing of it is spent");
                            }
                        }
                        if !charge.settled && booked.is_ok() && charge.tokens > 0 {
                            let spent = ledger.used(BudgetKey::Tokens);
                            prop_assert!(spent <= ledger.limit(BudgetKey::Tokens));
                        }
                        if !charge.settled && booked.is_ok() && charge.turns > 0 {
                            let spent = ledger.turns().iter().map(|(_, _, it)| *it).max();
                            prop_assert!(spent <= Some(ledger.limit(BudgetKey::Turns)));
                        }
                    }
                    Deed::Raise(key, by) => {
                        let limit = ledger.raise(&RaiseBudget { key, by: Some(by), to: None });
                        let limit = limit.unwrap().to_string();
                        let raised = BudgetRaised { key, limit, by: "o".into() };
                        log.push(entry(seq, "t0", "thread", &raised));
                    }
                }
                for warning in ledger.take_unsaid() {
                    log.push(entry(seq, "t0", "core", &warning));
                }
            }
            prop_assert_eq!(Ledger::kept(&limits(), 0, 0, log), ledger);
        }
    }

    #[test]
    fn a_warning_is_said_once_for_each_of_three_levels_of_each_limit() {
        let mut ledger = Ledger::new(&Limits { tree_tokens_max: 100, ..Limits::default() });
        let (thread, from) = (ThreadId::new("t"), Arc::from("l"));
        let spend = |tokens: i64, ledger: &mut Ledger| -> Vec<u8> {
            let charge = Charge { tokens, ..Charge::default() };
            ledger.charge(&thread, &from, &charge).unwrap();
            ledger.take_unsaid().iter().map(|it| it.percent).collect()
        };
        assert_eq!(spend(74, &mut ledger), [0_u8; 0]);
        assert_eq!(spend(1, &mut ledger), [75]);
        assert_eq!(spend(20, &mut ledger), [95], "the highest speaks for those below");
        assert_eq!(spend(5, &mut ledger), [0_u8; 0]);
        let later = Charge { tokens: 1, tokens_out: Some(1), ..Charge::default() };
        let mut roomy = Ledger::new(&Limits { tree_tokens_max: 1, ..Limits::default() });
        roomy.charge(&thread, &from, &later).unwrap();
        assert!(roomy.take_unsaid().is_empty(), "what is settled later isn't spent yet");
        let settled = Charge { settled: true, tokens: 0, turns: 0, ..later };
        roomy.charge(&thread, &from, &Charge { tokens: -1, ..settled.clone() }).unwrap();
        assert!(roomy.take_unsaid().is_empty());
        roomy.charge(&thread, &from, &Charge { tokens: 1, ..settled }).unwrap();
        assert_eq!(roomy.take_unsaid()[0].percent, 95);
        let raise = RaiseBudget { key: BudgetKey::Tokens, by: Some(100), to: None };
        assert_eq!(ledger.raise(&raise), Ok(Allowance(200)));
        assert_eq!(spend(50, &mut ledger), [75], "of the new limit");
        ledger.charge(&thread, &from, &Charge { tokens: 45, ..Charge::default() }).unwrap();
        ledger.raise(&raise).unwrap();
        assert!(ledger.take_unsaid().is_empty(), "of a limit that is no more");
    }

    #[test]
    fn an_allowance_is_a_number_or_the_word() {
        for (text, allowance) in
            [("0", Allowance(0)), ("unlimited", Allowance(UNLIMITED)), ("7", Allowance(7))]
        {
            assert_eq!((text.parse(), allowance.to_string().as_str()), (Ok(allowance), text));
        }
        assert!("-1".parse::<Allowance>().is_err() && "none".parse::<Allowance>().is_err());
    }

    #[test]
    fn time_is_spent_from_the_first_entry_on() {
        let mut ledger = Ledger::new(&Limits { tree_seconds_max: 10, ..Limits::default() });
        assert_eq!(ledger.look_at_clock(5_000_000), Ok(()));
        ledger.count(true, 5_000_000);
        assert_eq!(ledger.look_at_clock(13_600_000), Ok(()));
        assert_eq!(ledger.take_unsaid().len(), 1);
        let (key, asked, used, limit) = (BudgetKey::Seconds, 1, 10, 10);
        let short = Short { key, asked, used, limit, reserved: 0 };
        assert_eq!(ledger.look_at_clock(15_000_000), Err(short));
        assert!(short.is_spent());
    }
}
