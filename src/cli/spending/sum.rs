//! Sums up model usage by agent and by model, from the charges in a log. This module does no I/O.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use crate::id::{EntryId, ThreadId};
use crate::listener::Entry;
use crate::wire::budget::Charge;

/// The key of a usage: a listener, and a model that the listener used.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct UsageKey {
    pub(crate) listener: Arc<str>,
    /// The model, as the listener names it. None if the charge names no model.
    pub(crate) model: Option<String>,
}

/// The usage of a model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ModelUsage {
    /// The number of turns, or of the units that the listener counts as turns.
    pub(crate) turns: i64,
    /// Tokens of prompts.
    pub(crate) input: u64,
    /// Prompt tokens that came from a provider's cache. They are part of `input`.
    pub(crate) cached: u64,
    /// Tokens of replies.
    pub(crate) output: u64,
    /// Tokens whose charges don't say whether they are of prompts or of replies.
    pub(crate) other: i64,
    /// Prompt and reply tokens that are only estimated. They are part of `input` and `output`.
    pub(crate) estimated: u64,
    /// Tokens that are reserved, and neither used nor given back yet.
    pub(crate) reserved: i64,
    /// The known part of the cost, in millionths.
    pub(crate) cost_micros: i64,
    /// The number of turns that have no price.
    pub(crate) unpriced: u64,
}

impl ModelUsage {
    /// Returns the number of all charged tokens, including reserved ones.
    pub(crate) fn tokens(&self) -> i64 {
        let told = i64::try_from(self.input.saturating_add(self.output)).unwrap_or(i64::MAX);
        told.saturating_add(self.other).saturating_add(self.reserved)
    }

    /// Returns the cost in millionths, or None if some turn has no price.
    pub(crate) fn cost(&self) -> Option<i64> {
        (self.unpriced == 0).then_some(self.cost_micros)
    }

    /// Returns the sum of two usages.
    pub(crate) fn plus(self, it: ModelUsage) -> ModelUsage {
        ModelUsage {
            turns: self.turns + it.turns,
            input: self.input.saturating_add(it.input),
            cached: self.cached.saturating_add(it.cached),
            output: self.output.saturating_add(it.output),
            other: self.other.saturating_add(it.other),
            estimated: self.estimated.saturating_add(it.estimated),
            reserved: self.reserved.saturating_add(it.reserved),
            cost_micros: self.cost_micros.saturating_add(it.cost_micros),
            unpriced: self.unpriced + it.unpriced,
        }
    }
}

/// The sum of the model usage of some threads, within a range of times.
#[derive(Debug)]
pub(crate) struct UsageSum {
    /// The range of times that count, in microseconds since the epoch. Turns count at the time of
    /// their reservation. Tokens and cost count at the time of their settlement. Without a
    /// settlement, they count at the time of their reservation.
    within: Range<u64>,
    /// Maps a key and a day, in days since the epoch, to the usage.
    used: BTreeMap<(UsageKey, u64), ModelUsage>,
    /// Maps the handling of a message to its reservations that aren't settled, each with its time
    /// in microseconds since the epoch.
    open: BTreeMap<Handling, Vec<(u64, Charge)>>,
}

/// A thread, a listener, and the message that it handles.
type Handling = (ThreadId, Arc<str>, Option<EntryId>);

impl UsageSum {
    /// Makes an empty sum, which counts only the usage within this range of microseconds since the
    /// epoch.
    pub(crate) fn within(within: Range<u64>) -> UsageSum {
        UsageSum { within, used: BTreeMap::new(), open: BTreeMap::new() }
    }

    /// Adds an entry, if it is a charge. The entries of a tree must come in order.
    pub(crate) fn take(&mut self, entry: &Entry) {
        let Some(it) = entry.decode_if::<Charge>().filter(|_| !entry.is_refused()) else { return };
        let listener = entry.sender().clone();
        if !it.settled {
            let key = UsageKey { listener: listener.clone(), model: it.model.clone() };
            self.add(key, entry.at_us(), ModelUsage { turns: it.turns, ..ModelUsage::default() });
            let of = (entry.thread().clone(), listener, entry.cause().cloned());
            return self.open.entry(of).or_default().push((entry.at_us(), it));
        }
        let closed = self.close(entry, &listener);
        let sum = |of: fn(&Charge) -> i64| closed.iter().map(|(_, it)| of(it)).sum::<i64>();
        let (reserved, micros) = (sum(|it| it.tokens), sum(|it| it.cost_micros));
        // The turns of a router count as turns of the model that answered.
        for (at_us, other) in closed.iter().filter(|(_, other)| other.model != it.model) {
            let key = |model: &Option<String>| UsageKey {
                listener: listener.clone(),
                model: model.clone(),
            };
            let turns = |turns| ModelUsage { turns, ..ModelUsage::default() };
            self.add(key(&other.model), *at_us, turns(-other.turns));
            self.add(key(&it.model), *at_us, turns(other.turns));
        }
        let told = it.tokens_in.zip(it.tokens_out);
        let (input, output) = told.unwrap_or_default();
        let both = input.saturating_add(output);
        let used = ModelUsage {
            turns: it.turns,
            input,
            cached: it.tokens_cached.unwrap_or(0),
            output,
            other: if told.is_some() { 0 } else { reserved.saturating_add(it.tokens) },
            estimated: if it.estimated == Some(true) { both } else { 0 },
            reserved: 0,
            cost_micros: micros.saturating_add(it.cost_micros),
            unpriced: u64::from(told.is_some() && both > 0 && it.spent_micros.is_none()),
        };
        self.add(UsageKey { listener, model: it.model }, entry.at_us(), used);
    }

    /// Removes the reservations that an entry settles, and returns them with their times. These are
    /// the reservations for the entry's cause. If the cause has no reservations, the first message
    /// of the same listener and thread that has reservations takes the place of the cause.
    fn close(&mut self, entry: &Entry, listener: &Arc<str>) -> Vec<(u64, Charge)> {
        let of = |cause| (entry.thread().clone(), listener.clone(), cause);
        let own = of(entry.cause().cloned());
        let own = if self.open.contains_key(&own) { Some(own) } else { None };
        let (first, last) = (of(None), (entry.thread().clone(), listener.clone()));
        let any = || {
            let mut all = self.open.range(first..).map(|(key, _)| key);
            let is_theirs = |it: &&Handling| (&it.0, &it.1) == (&last.0, &last.1);
            all.next().filter(is_theirs).cloned()
        };
        own.or_else(any).and_then(|it| self.open.remove(&it)).unwrap_or_default()
    }

    fn add(&mut self, key: UsageKey, at_us: u64, more: ModelUsage) {
        if self.within.contains(&at_us) {
            let used = self.used.entry((key, at_us / DAY_US)).or_default();
            *used = used.plus(more);
        }
    }

    /// Returns the usage by listener and model.
    pub(crate) fn all(self) -> BTreeMap<UsageKey, ModelUsage> {
        by(&self.by_day(), |(key, _)| key.clone())
    }

    /// Returns the usage by listener and model on each day in UTC. Days are counted from the epoch.
    pub(crate) fn by_day(mut self) -> BTreeMap<(UsageKey, u64), ModelUsage> {
        for ((_, listener, _), charges) in std::mem::take(&mut self.open) {
            for (at_us, it) in charges {
                let key = UsageKey { listener: listener.clone(), model: it.model };
                let held = ModelUsage { cost_micros: it.cost_micros, ..ModelUsage::default() };
                let held = match it.tokens_out {
                    Some(_) => ModelUsage { reserved: it.tokens, ..held },
                    // An open charge without a reply's tokens reserves nothing. It counts as spent.
                    None => ModelUsage { other: it.tokens, ..held },
                };
                self.add(key, at_us, held);
            }
        }
        self.used.retain(|_, it| *it != ModelUsage::default());
        self.used
    }
}

/// The number of microseconds in a day.
pub(crate) const DAY_US: u64 = 24 * 60 * 60 * 1_000_000;

/// Sums up usage by new keys. The function `key` makes a new key from each old key.
pub(crate) fn by<U, K: Ord>(
    all: &BTreeMap<U, ModelUsage>,
    key: impl Fn(&U) -> K,
) -> BTreeMap<K, ModelUsage> {
    let mut sums: BTreeMap<K, ModelUsage> = BTreeMap::new();
    for (of, it) in all {
        let sum = sums.entry(key(of)).or_default();
        *sum = sum.plus(*it);
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::{Draft, Flags};
    use crate::wire::Payload as _;

    /// Makes an entry with a listener's charge. The entry's time is ten times `seq`, and `cause` is
    /// the number of the entry's cause.
    fn entry(seq: u64, from: &str, cause: u64, it: &Charge) -> Entry {
        let element = it.encode().unwrap();
        let thread = ThreadId::new("t");
        let draft = Draft::new(
            EntryId::new(&thread, seq),
            seq * 10,
            from.into(),
            Charge::NAME,
            element.canonical(),
        );
        let cause = Some(EntryId::new(&thread, cause));
        Entry::fresh(&Draft { flags: Flags::CHARGES, cause, ..draft }, element)
    }

    fn reserve(tokens: i64, micros: i64) -> Charge {
        let model = Some("m".to_owned());
        let tokens_out = Some(1);
        let cost_micros = micros;
        Charge { turns: 1, tokens, cost_micros, model, tokens_out, ..Charge::default() }
    }

    fn settle(reserved: &Charge, (input, output): (u64, u64), cost: Option<u64>) -> Charge {
        let tokens = i64::try_from(input + output).unwrap() - reserved.tokens;
        let micros = i64::try_from(cost.unwrap_or(0)).unwrap() - reserved.cost_micros;
        Charge {
            tokens,
            cost_micros: micros,
            settled: true,
            model: reserved.model.clone(),
            tokens_in: Some(input),
            tokens_out: Some(output),
            spent_micros: cost,
            ..Charge::default()
        }
    }

    /// Makes charges of two agents. All charges are settled, except the second agent's last charge.
    fn charges() -> Vec<Entry> {
        let (priced, plain) = (reserve(500, 50), reserve(300, 0));
        vec![
            entry(1, "ada", 1, &priced),
            entry(2, "bob", 1, &plain),
            entry(3, "ada", 1, &settle(&priced, (100, 20), Some(7))),
            entry(4, "bob", 1, &settle(&plain, (10, 2), None)),
            entry(5, "bob", 4, &plain),
        ]
    }

    fn used(within: Range<u64>) -> BTreeMap<UsageKey, ModelUsage> {
        let mut usages = UsageSum::within(within);
        charges().iter().for_each(|it| usages.take(it));
        usages.all()
    }

    #[test]
    fn what_is_used_adds_up_to_what_is_charged() {
        let all = used(0..u64::MAX);
        let total = by(&all, |_| ())[&()];
        let sum = |of: fn(&Charge) -> i64| -> i64 {
            charges().iter().map(|it| of(&it.decode().unwrap())).sum()
        };
        assert_eq!(total.tokens(), sum(|it| it.tokens));
        assert_eq!((total.cost_micros, total.cost()), (sum(|it| it.cost_micros), None));
        let of = by(&all, |it| it.listener.to_string());
        let (ada, bob) = (of["ada"], of["bob"]);
        assert_eq!((ada.turns, ada.input, ada.output, ada.cost()), (1, 100, 20, Some(7)));
        assert_eq!((bob.turns, bob.input, bob.output, bob.reserved), (2, 10, 2, 300));
    }

    #[test]
    fn a_stretch_of_time_has_what_was_settled_then() {
        let total = |within| by(&used(within), |_| ()).remove(&()).unwrap_or_default();
        assert_eq!((total(0..30).tokens(), total(0..30).turns), (0, 2));
        assert_eq!(total(30..40).tokens(), 120);
        assert_eq!(total(40..u64::MAX).tokens(), 312);
    }

    #[test]
    fn a_turn_of_a_router_is_one_of_the_model_that_answered() {
        let one = reserve(500, 50);
        let answered = Some("small".to_owned());
        let settled = Charge { model: answered.clone(), ..settle(&one, (100, 20), Some(7)) };
        let mut usages = UsageSum::within(0..u64::MAX);
        usages.take(&entry(1, "ada", 1, &one));
        usages.take(&entry(2, "ada", 1, &settled));
        let all = by(&usages.all(), |it| it.model.clone());
        assert_eq!(all.len(), 1);
        assert_eq!((all[&answered].turns, all[&answered].input), (1, 100));
    }

    #[test]
    fn days_are_told_apart() {
        let (one, other) = (reserve(500, 50), reserve(300, 0));
        let at = |seq: u64, it: &Charge| entry(seq, "ada", 1, it);
        let mut usages = UsageSum::within(0..u64::MAX);
        let second = DAY_US / 10;
        let kept = settle(&one, (100, 20), Some(7)).with_cache(80, 0);
        for it in [at(1, &one), at(2, &kept), at(second, &other)] {
            usages.take(&it);
        }
        let days = by(&usages.by_day(), |(_, day)| *day);
        let told: Vec<_> =
            days.iter().map(|(day, it)| (*day, it.turns, it.cached, it.reserved)).collect();
        assert_eq!(told, [(0, 1, 80, 0), (1, 1, 0, 300)]);
    }

    #[test]
    fn what_says_no_model_counts_as_it_is_charged() {
        let it = Charge { tokens: 40, ..Charge::default() };
        let less = Charge { tokens: -10, settled: true, ..Charge::default() };
        let mut usages = UsageSum::within(0..u64::MAX);
        let all = [entry(1, "tool", 1, &it), entry(2, "tool", 1, &less), entry(3, "tool", 9, &it)];
        all.iter().for_each(|it| usages.take(it));
        let all = usages.all();
        let only: Vec<(&UsageKey, &ModelUsage)> = all.iter().collect();
        assert_eq!((only[0].0.model.as_deref(), only[0].1.other, only.len()), (None, 70, 1));
        assert_eq!(only[0].1.cost(), Some(0));
    }
}
