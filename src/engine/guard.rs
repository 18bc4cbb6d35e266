//! Tells messages that go round in a circle from those that get somewhere. Pure, and of the same
//! size however long its thread is.

use std::sync::Arc;

use bytes::Bytes;

use crate::limits::Limits;
use crate::wire::{Code, Fault};

/// How many senders are watched for repeating themselves; the one longest silent makes room.
const WATCHED: usize = 4;

/// What is known of the messages of a thread since something came from outside.
#[derive(Default)]
pub(crate) struct Guard {
    /// How often something came from outside, or a time did.
    calls: u32,
    is_warned: bool,
    last: [Option<Last>; WATCHED],
}

/// What a sender sent last.
struct Last {
    from: Arc<str>,
    body: Bytes,
    seq: u64,
    times: u32,
}

/// How long the chain of messages is that one stands at the end of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Chain {
    calls: u32,
    hops: u32,
}

/// A message on its way from one listener to another, or to itself.
pub(crate) struct Hop<'a> {
    pub(crate) from: &'a Arc<str>,
    pub(crate) to: &'a str,
    pub(crate) chain: Chain,
    /// The place of the message that it comes of.
    pub(crate) cause: u64,
}

/// A bound that was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bound {
    pub(crate) name: &'static str,
    pub(crate) value: u32,
}

impl Bound {
    fn repeats(limits: &Limits) -> Bound {
        Bound { name: "repeats_max", value: limits.repeats_max }
    }

    fn chain(limits: &Limits) -> Bound {
        Bound { name: "chain_max", value: limits.chain_max }
    }

    /// Why what comes beyond it is refused.
    pub(crate) fn fault(self, from: &str) -> Fault {
        let Bound { name, value } = self;
        let text = match name {
            "repeats_max" => format!("{from} says the same again and again: {name} is {value}"),
            _ => format!("{from} goes on in a circle of messages: {name} is {value}"),
        };
        Fault::new(Code::Loop, text)
    }
}

impl Guard {
    /// Something came from outside, or a time did: what comes of it is new.
    pub(crate) fn called(&mut self) -> Chain {
        self.calls = self.calls.wrapping_add(1);
        self.is_warned = false;
        self.last = Default::default();
        self.here()
    }

    /// A chain that begins now.
    pub(crate) fn here(&self) -> Chain {
        Chain { calls: self.calls, hops: 0 }
    }

    fn hops(&self, chain: Chain) -> u32 {
        if chain.calls == self.calls { chain.hops } else { 0 }
    }

    /// The chain with one more message.
    pub(crate) fn longer(&self, from: &str, to: &str, chain: Chain) -> Chain {
        let hops = self.hops(chain).saturating_add(u32::from(from != to));
        Chain { calls: self.calls, hops }
    }

    /// The bound that a message would go beyond. Its bytes are asked for only where they matter.
    pub(crate) fn refuses(
        &self,
        hop: &Hop<'_>,
        body: impl FnOnce() -> Bytes,
        limits: &Limits,
    ) -> Option<Bound> {
        if hop.from.as_ref() != hop.to && self.hops(hop.chain) >= limits.chain_max {
            return Some(Bound::chain(limits));
        }
        let last = self.last.iter().flatten().find(|it| it.from == *hop.from)?;
        let often = last.times >= limits.repeats_max && hop.cause >= last.seq;
        (often && last.body == body()).then(|| Bound::repeats(limits))
    }

    /// Notes a message; the bound that it reaches, where nobody was warned yet.
    pub(crate) fn note(
        &mut self,
        hop: &Hop<'_>,
        seq: u64,
        body: &Bytes,
        limits: &Limits,
    ) -> Option<Bound> {
        let times = self.repeated(hop, seq, body);
        let hops = self.longer(hop.from, hop.to, hop.chain).hops;
        let reached = if times >= limits.repeats_max && times > 1 {
            Bound::repeats(limits)
        } else if hops >= limits.chain_max && hop.from.as_ref() != hop.to {
            Bound::chain(limits)
        } else {
            return None;
        };
        (!std::mem::replace(&mut self.is_warned, true)).then_some(reached)
    }

    /// How often its sender has said this in a row: what one message made it say twice counts
    /// once.
    fn repeated(&mut self, hop: &Hop<'_>, seq: u64, body: &Bytes) -> u32 {
        let known = self.last.iter_mut().flatten().find(|it| it.from == *hop.from);
        if let Some(last) = known {
            if last.body != *body {
                (last.body, last.seq, last.times) = (body.clone(), seq, 1);
            } else if hop.cause >= last.seq {
                (last.seq, last.times) = (seq, last.times + 1);
            }
            return last.times;
        }
        let oldest = self.last.iter_mut().min_by_key(|it| it.as_ref().map_or(0, |it| it.seq));
        if let Some(oldest) = oldest {
            *oldest = Some(Last { from: hop.from.clone(), body: body.clone(), seq, times: 1 });
        }
        1
    }
}
