//! Detects messages that go round in a circle of listeners. The size of a guard doesn't grow with
//! its thread.

use std::sync::Arc;

use bytes::Bytes;

use crate::limits::Limits;
use crate::wire::{Code, Fault};

/// How many senders the guard watches for repetitions. A new sender takes the place of the sender
/// whose last counted message is the oldest.
const WATCHED: usize = 4;

/// How many earlier messages a chain remembers. A circle of more than [`WATCHED`] listeners
/// is noticed once its chain has as many hops as `chain_max` allows.
const REMEMBERED: usize = WATCHED - 1;

/// The guard of a thread. It remembers messages since the last push or timer.
#[derive(Default)]
pub(crate) struct Guard {
    /// How many pushes and timers the thread has had since it was loaded. A chain with another
    /// number began before the last push or timer, and its hops no longer count.
    calls: u32,
    is_warned: bool,
    last: [Option<Last>; WATCHED],
}

/// The last counted message of a sender, and how many times in a row the sender has sent the same
/// body. Equal answers count as repetition only if the questions were equal, too, since many tools
/// answer each call with the same word.
struct Last {
    from: Arc<str>,
    body: Bytes,
    /// The body of the message that this one answers.
    asked: Option<Bytes>,
    seq: u64,
    times: usize,
}

/// The chain of messages that led to a message. It counts the messages that went from one listener
/// to another, and remembers the numbers of the newest messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Chain {
    calls: u32,
    hops: usize,
    /// How many messages in a row the last sender has sent itself.
    again: usize,
    /// The numbers of the last messages of the chain, the newest first. 0 where there is no
    /// message.
    last: [u64; REMEMBERED],
}

/// A message on its way from one listener to another, to a child thread, or to the sender itself.
pub(crate) struct Hop<'a> {
    pub(crate) from: &'a Arc<str>,
    pub(crate) to: &'a str,
    pub(crate) chain: Chain,
    /// The number of the message that caused this one.
    pub(crate) cause: u64,
    /// The body of the message that this one answers.
    pub(crate) asked: Option<&'a Bytes>,
}

impl Hop<'_> {
    /// Returns whether the message with the number `seq` led to this one, as far as the chain
    /// remembers.
    fn comes_of(&self, seq: u64) -> bool {
        self.cause == seq || self.chain.last.contains(&seq)
    }
}

/// A bound that was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bound {
    pub(crate) name: &'static str,
    pub(crate) value: usize,
}

impl Bound {
    fn repeats(limits: &Limits) -> Bound {
        Bound { name: "repeats_max", value: limits.repeats_max }
    }

    fn chain(limits: &Limits) -> Bound {
        Bound { name: "chain_max", value: limits.chain_max }
    }

    fn again(limits: &Limits) -> Bound {
        Bound { name: "again_max", value: limits.again_max }
    }

    /// Returns the fault of a message beyond the bound.
    pub(crate) fn fault(self, from: &str) -> Fault {
        let Bound { name, value } = self;
        let text = match name {
            "repeats_max" => format!("{from} says the same again and again: {name} is {value}"),
            "again_max" => format!("{from} goes on with itself without an end: {name} is {value}"),
            _ => format!("{from} goes on in a circle of messages: {name} is {value}"),
        };
        Fault::new(Code::Loop, text)
    }
}

impl Guard {
    /// Notes a push or a timer. Returns the new chain, to which the messages that follow belong.
    pub(crate) fn called(&mut self) -> Chain {
        self.calls = self.calls.wrapping_add(1);
        self.is_warned = false;
        self.last = Default::default();
        self.here()
    }

    /// Returns a chain that begins now.
    pub(crate) fn here(&self) -> Chain {
        Chain { calls: self.calls, ..Chain::default() }
    }

    fn hops(&self, chain: Chain) -> usize {
        if chain.calls == self.calls { chain.hops } else { 0 }
    }

    /// Returns how many messages in a row the last sender of a chain has sent itself.
    fn again(&self, chain: Chain) -> usize {
        if chain.calls == self.calls { chain.again } else { 0 }
    }

    /// Returns the chain of this message: the chain of its cause, with the cause as the newest
    /// message. The new chain has one hop more, unless the sender writes to itself.
    pub(crate) fn longer(&self, hop: &Hop<'_>) -> Chain {
        if hop.from.as_ref() != hop.to {
            return self.grown(hop.chain, 1, hop.cause);
        }
        let again = self.again(hop.chain).saturating_add(1);
        Chain { again, ..self.grown(hop.chain, 0, hop.cause) }
    }

    /// Returns the chain of work that continues after waiting for a child's result or for an entry.
    /// `at` is the number of the entry at which the work began to wait. The continuation counts as
    /// one hop.
    pub(crate) fn resumed(&self, chain: Chain, at: u64) -> Chain {
        self.grown(chain, 1, at)
    }

    /// Returns the chain as it continues in a child thread, whose guard is `below`. The new chain
    /// keeps the count of hops and forgets the messages, since the child's entries have numbers of
    /// their own.
    pub(crate) fn below(&self, chain: Chain, below: &Guard) -> Chain {
        Chain { hops: self.hops(chain), ..below.here() }
    }

    fn grown(&self, chain: Chain, by: usize, cause: u64) -> Chain {
        let mut last = chain.last;
        last.rotate_right(1);
        last[0] = cause;
        Chain { calls: self.calls, hops: self.hops(chain).saturating_add(by), again: 0, last }
    }

    /// Returns the bound that a message would exceed, if there is one. `body` is called only if the
    /// sender may be repeating itself.
    pub(crate) fn refuses(
        &self,
        hop: &Hop<'_>,
        body: impl FnOnce() -> Bytes,
        limits: &Limits,
    ) -> Option<Bound> {
        if hop.from.as_ref() != hop.to && self.hops(hop.chain) >= limits.chain_max {
            return Some(Bound::chain(limits));
        }
        if hop.from.as_ref() == hop.to && self.again(hop.chain) >= limits.again_max {
            return Some(Bound::again(limits));
        }
        let last = self.last.iter().flatten().find(|it| it.from == *hop.from)?;
        let often = last.times >= limits.repeats_max && hop.comes_of(last.seq);
        let is_same = often && last.asked.as_ref() == hop.asked && last.body == body();
        is_same.then(|| Bound::repeats(limits))
    }

    /// Notes a message. Returns the bound that the message reaches, so that the caller can warn.
    /// After one such result, returns None until the next push or timer.
    pub(crate) fn note(
        &mut self,
        hop: &Hop<'_>,
        seq: u64,
        body: &Bytes,
        limits: &Limits,
    ) -> Option<Bound> {
        let times = self.repeated(hop, seq, body);
        let Chain { hops, again, .. } = self.longer(hop);
        let reached = if times >= limits.repeats_max && times > 1 {
            Bound::repeats(limits)
        } else if hops >= limits.chain_max && hop.from.as_ref() != hop.to {
            Bound::chain(limits)
        } else if again >= limits.again_max {
            Bound::again(limits)
        } else {
            return None;
        };
        (!std::mem::replace(&mut self.is_warned, true)).then_some(reached)
    }

    /// Counts a message. Returns how many times in a row its sender has sent this body, where each
    /// message led to the next.
    fn repeated(&mut self, hop: &Hop<'_>, seq: u64, body: &Bytes) -> usize {
        let known = self.last.iter_mut().flatten().find(|it| it.from == *hop.from);
        if let Some(last) = known {
            if last.body != *body || last.asked.as_ref() != hop.asked {
                (last.body, last.asked) = (body.clone(), hop.asked.cloned());
                (last.seq, last.times) = (seq, 1);
            } else if hop.comes_of(last.seq) {
                (last.seq, last.times) = (seq, last.times + 1);
            }
            return last.times;
        }
        let oldest = self.last.iter_mut().min_by_key(|it| it.as_ref().map_or(0, |it| it.seq));
        if let Some(oldest) = oldest {
            let (body, asked) = (body.clone(), hop.asked.cloned());
            *oldest = Some(Last { from: hop.from.clone(), body, asked, seq, times: 1 });
        }
        1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the index of the message with this number. Messages are numbered from 2, after a
    /// push.
    fn to_index(seq: u64) -> usize {
        usize::try_from(seq).unwrap() - 2
    }

    /// Plays messages, each given as sender, receiver, body and number of its cause. Returns how
    /// many warnings there were, and whether the last message was refused.
    fn played(all: &[(&str, &str, &'static str, u64)], limits: &Limits) -> (usize, bool) {
        asked(all, &[], limits)
    }

    /// Plays messages as `played` does. The messages of the senders in `answering` answer their
    /// causes.
    fn asked(
        all: &[(&str, &str, &'static str, u64)],
        answering: &[&str],
        limits: &Limits,
    ) -> (usize, bool) {
        let mut guard = Guard::default();
        let mut chains = vec![guard.called()];
        let (mut warned, mut refused) = (0, false);
        for (seq, (from, to, body, cause)) in (2..).zip(all) {
            let from: Arc<str> = (*from).into();
            let chain = chains[usize::try_from(*cause).unwrap() - 1];
            let is_push = *cause < 2 || !answering.contains(&&*from);
            let asked = (!is_push).then(|| Bytes::from_static(all[to_index(*cause)].2.as_bytes()));
            let hop = Hop { from: &from, to, chain, cause: *cause, asked: asked.as_ref() };
            let body = Bytes::from_static(body.as_bytes());
            refused = guard.refuses(&hop, || body.clone(), limits).is_some();
            warned += usize::from(!refused && guard.note(&hop, seq, &body, limits).is_some());
            chains.push(guard.longer(&hop));
        }
        (warned, refused)
    }

    #[test]
    fn the_third_time_is_warned_of_and_the_fourth_refused() {
        let round = |n: u64| [("a", "b", "x", 2 * n + 1), ("b", "a", "y", 2 * n + 2)];
        let limits = Limits::default();
        let rounds = |n: u64| (0..n).flat_map(round).collect::<Vec<_>>();
        assert_eq!(played(&rounds(2), &limits), (0, false));
        assert_eq!(played(&rounds(3), &limits), (1, false));
        let fourth = [rounds(3), vec![("a", "b", "x", 7)]].concat();
        assert_eq!(played(&fourth, &limits), (1, true));
    }

    #[test]
    fn what_one_message_makes_it_say_many_times_counts_once() {
        let many: Vec<_> = (0..9).map(|_| ("a", "b", "x", 1)).collect();
        assert_eq!(played(&many, &Limits::default()), (0, false));
        // Now the sender repeats itself once for each of the answers. All nine repetitions together
        // count as the second time.
        let answers = (0..9).map(|it| ("b", "a", "y", 2 + it));
        let again = (0..9).map(|it| ("a", "b", "x", 11 + it));
        let all: Vec<_> = many.into_iter().chain(answers).chain(again).collect();
        assert_eq!(played(&all, &Limits::default()), (0, false));
    }

    #[test]
    fn equal_answers_count_only_where_the_question_was_equal() {
        let limits = Limits::default();
        let questions = |each: [&'static str; 5]| -> Vec<_> {
            let round = |(n, it)| [("a", "b", it, 2 * n + 1), ("b", "a", "ok", 2 * n + 2)];
            (0_u64..).zip(each).flat_map(round).collect()
        };
        let others = questions(["1", "2", "3", "4", "5"]);
        assert_eq!(asked(&others, &["b"], &limits), (0, false));
        assert_eq!(asked(&others, &[], &limits), (1, true), "they are no answers");
        let equal = questions(["1"; 5]);
        assert_eq!(asked(&equal[..6], &["b"], &limits), (1, false));
        assert_eq!(asked(&equal[..7], &["b"], &limits), (1, true), "it is asked a fourth time");
        // Equal questions are no repetition if their sender sends other messages between them.
        let between = |(n, it)| {
            [("a", "b", "1", 3 * n + 1), ("b", "a", it, 3 * n + 2), ("a", "c", it, 3 * n + 3)]
        };
        let others: Vec<_> = (0_u64..).zip(["p", "q", "r", "s", "t"]).flat_map(between).collect();
        assert_eq!(asked(&others, &["b"], &limits), (0, false));
        let same: Vec<_> = (0_u64..).zip(["ok"; 5]).flat_map(between).collect();
        assert_eq!(asked(&same[..11], &["b"], &limits), (1, true), "its fourth answer");
    }

    #[test]
    fn a_chain_has_an_end_wherever_it_leads() {
        let limits = Limits { chain_max: 4, ..Limits::default() };
        let names = ["a", "b", "c", "d", "e", "f", "g"];
        let bodies = ["1", "2", "3", "4", "5", "6", "7"];
        let hops =
            |n: usize| (0..n).map(|it| (names[it], names[it + 1], bodies[it], it as u64 + 1));
        assert_eq!(played(&hops(3).collect::<Vec<_>>(), &limits), (0, false));
        assert_eq!(played(&hops(4).collect::<Vec<_>>(), &limits), (1, false));
        assert_eq!(played(&hops(5).collect::<Vec<_>>(), &limits), (1, true));
        let alone: Vec<_> = (0..6).map(|it| ("a", "a", bodies[it], it as u64 + 1)).collect();
        assert_eq!(played(&alone, &limits), (0, false), "to oneself is no circle of listeners");
    }

    #[test]
    fn what_goes_on_with_itself_has_an_end() {
        let limits = Limits { again_max: 3, ..Limits::default() };
        let bodies = ["1", "2", "3", "4", "5", "6", "7", "8", "9"];
        let path = |path: &[(&'static str, &'static str)]| -> Vec<_> {
            let each = path.iter().zip(bodies).enumerate();
            each.map(|(at, ((from, to), body))| (*from, *to, body, at as u64 + 1)).collect()
        };
        let alone = |times: usize| path(&vec![("a", "a"); times]);
        assert_eq!(played(&alone(2), &limits), (0, false));
        assert_eq!(played(&alone(3), &limits), (1, false));
        assert_eq!(played(&alone(4), &limits), (1, true));
        let with_another = [("a", "a"), ("a", "a"), ("a", "b"), ("b", "a"), ("a", "a"), ("a", "a")];
        assert_eq!(played(&path(&with_another), &limits), (0, false));
        let (mut guard, from) = (Guard::default(), Arc::from("a"));
        let mut chain = guard.called();
        for number in 0..9 {
            let hop = Hop { from: &from, to: "a", chain, cause: number, asked: None };
            assert_eq!(guard.refuses(&hop, Bytes::new, &limits), None);
            // Each second message is followed by a push or a timer.
            chain = if number % 2 == 0 { guard.longer(&hop) } else { guard.called() };
        }
    }

    #[test]
    fn what_comes_from_outside_begins_anew() {
        let mut guard = Guard::default();
        let (limits, from) = (Limits::default(), Arc::from("a"));
        let body = Bytes::from_static(b"x");
        for _ in 0..20 {
            let chain = guard.called();
            let hop = Hop { from: &from, to: "b", chain, cause: 1, asked: None };
            assert_eq!(guard.refuses(&hop, || body.clone(), &limits), None);
            assert_eq!(guard.note(&hop, 2, &body, &limits), None);
        }
    }
}
