//! Gathers the parts of a reply from its events.

use std::collections::VecDeque;
use std::mem::take;

use serde::de::IgnoredAny;
use serde_json::Value;

use crate::model::{Call, Error, Kind, Piece, Signed, Stop, Usage, Wire};
use crate::schema::json;

/// The parts of a reply, from the events so far.
#[derive(Debug, Default)]
pub(crate) struct Gathered {
    /// The pieces that are ready to be given out.
    pub(crate) pieces: VecDeque<Piece>,
    /// The calls of the reply in the order in which they began.
    calls: Vec<PartialCall>,
    /// How many calls were given out. They are the first ones of `calls`.
    given: usize,
    pub(crate) usage: Option<Usage>,
    stop: Option<Stop>,
    /// The stop reason in the provider's own word.
    word: Option<String>,
    /// Whether the wire's end mark came.
    is_over: bool,
    /// Whether there was text.
    has_text: bool,
    /// Whether there was reasoning, and whether there was a refusal.
    has_other_text: (bool, bool),
    /// Bytes of the reply so far.
    bytes: usize,
    /// Whether the current event has marks for halves of surrogate pairs.
    is_marked: bool,
    /// The half of a pair at the end of the text, of the reasoning and of the refusal.
    halves: [Option<u16>; 3],
}

/// A call that may not be whole yet.
#[derive(Debug)]
struct PartialCall {
    /// The call's place among the calls of the reply.
    place: u64,
    call: Call,
    /// Whether the provider runs the call itself.
    is_servers: bool,
    /// Whether no further part of the call follows.
    is_ended: bool,
    /// Whether the model went on after the call, so that the call wasn't cut.
    is_followed: bool,
    /// The half of a surrogate pair at the end of the arguments.
    half: Option<u16>,
}

impl PartialCall {
    /// Whether the call can be given out before the reply's end: no part of it follows, and its
    /// arguments are a JSON object. They may be empty if the model went on after the call. The
    /// arguments of a provider's own calls aren't checked.
    fn is_whole(&self) -> bool {
        let is_empty = self.is_followed && self.has_no_arguments();
        self.is_ended && (self.is_servers || is_empty || is_object(&self.call.arguments))
    }

    fn has_no_arguments(&self) -> bool {
        self.call.arguments.trim().is_empty()
    }

    fn piece(&mut self) -> Piece {
        // The id stays, because later events of the reply are compared with it.
        self.call.arguments.extend(json::rest(&mut self.half));
        let arguments = take(&mut self.call.arguments);
        let call = Call::new(&*self.call.id, &*self.call.name, arguments);
        if self.is_servers { Piece::ServerCall(call) } else { Piece::Call(call) }
    }
}

impl Gathered {
    /// Whether a stop reason came. The usage may still follow.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.is_some()
    }

    /// Whether the wire's end mark came: nothing follows.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over
    }

    /// Bytes of the reply so far.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The stop reason in the provider's own word.
    pub(crate) fn word(&self) -> Option<&str> {
        self.word.as_deref()
    }

    /// Checks that the reply isn't longer than `bytes_max`.
    pub(crate) fn within(&self, bytes_max: usize) -> Result<(), Error> {
        match self.bytes > bytes_max {
            true => {
                let text = format!("the reply is over a limit: reply_bytes_max is {bytes_max}");
                Err(Error::new(Kind::TooLarge, text))
            }
            false => Ok(()),
        }
    }

    /// Whether the texts of the current event have marks for halves of surrogate pairs.
    pub(super) fn set_marked(&mut self, is_marked: bool) {
        self.is_marked = is_marked;
    }

    /// Whether the texts of the current event have marks for halves of surrogate pairs.
    pub(super) fn is_marked(&self) -> bool {
        self.is_marked
    }

    /// Joins the next text of a place with the half of a surrogate pair at the end of the text
    /// before.
    pub(super) fn joined(&self, half: &mut Option<u16>, text: &str) -> String {
        json::joined(half, text, self.is_marked).into_owned()
    }

    /// Takes counts of tokens. Counts that are 0 take nothing back.
    pub(crate) fn used(&mut self, newer: Usage) {
        self.usage = Some(self.usage.unwrap_or_default().recounted(newer));
    }

    /// Whether there was text.
    pub(super) fn has_text(&self) -> bool {
        self.has_text
    }

    /// Whether there was reasoning, and whether there was a refusal.
    pub(super) fn has_other_text(&self) -> (bool, bool) {
        self.has_other_text
    }

    /// Adds a piece of text, reasoning or a refusal.
    pub(crate) fn say(&mut self, text: &str, make: fn(String) -> Piece) {
        let empty = make(String::new());
        let half = match empty {
            Piece::Text(_) => &mut self.halves[0],
            Piece::Reasoning(_) => &mut self.halves[1],
            _ => &mut self.halves[2],
        };
        let text = json::joined(half, text, self.is_marked).into_owned();
        self.bytes += text.len();
        if !text.is_empty() {
            match empty {
                Piece::Text(_) => self.has_text = true,
                Piece::Reasoning(_) => self.has_other_text.0 = true,
                _ => self.has_other_text.1 = true,
            }
            self.pieces.push_back(make(text));
        }
    }

    /// Says the halves of surrogate pairs that stayed alone.
    fn say_halves(&mut self) {
        let makes: [fn(String) -> Piece; 3] = [Piece::Text, Piece::Reasoning, Piece::Refusal];
        for (half, make) in self.halves.iter_mut().zip(makes) {
            self.pieces.extend(json::rest(half).map(|it| make(it.into())));
        }
    }

    /// Begins a call at a place.
    pub(crate) fn begin(&mut self, place: u64, call: &Call, is_servers: bool) {
        let mut half = None;
        let arguments = json::joined(&mut half, &call.arguments, self.is_marked).into_owned();
        let word = |text: &str| if self.is_marked { json::whole(text) } else { text.to_owned() };
        let call = Call::new(word(&call.id), word(&call.name), arguments);
        self.bytes += size(&call);
        self.calls.iter_mut().skip(self.given).for_each(|it| it.is_followed = true);
        let (is_ended, is_followed) = (false, false);
        self.calls.push(PartialCall { place, call, is_servers, is_ended, is_followed, half });
        self.give();
    }

    /// Ends the last call that began at a place. If the call is whole, it is given out once all
    /// calls before it have been given out.
    pub(super) fn end_call(&mut self, place: u64) {
        if let Some(begun) = self.calls.iter_mut().rfind(|it| it.place == place) {
            begun.is_ended = true;
            self.give();
        }
    }

    /// Ends a call that came in a single event. It is whole, even without arguments.
    pub(super) fn end_single_call(&mut self, place: u64) {
        if let Some(begun) = self.calls.iter_mut().rfind(|it| it.place == place) {
            begun.is_followed = true;
        }
        self.end_call(place);
    }

    /// Ends all calls whose arguments are whole JSON objects. Wires without an event for the end of
    /// a call use this method when another call begins or the reply stops. A call without arguments
    /// doesn't end, since its arguments may still come.
    pub(super) fn end_whole_calls(&mut self) {
        for begun in self.calls.iter_mut().skip(self.given) {
            begun.is_ended |= is_object(&begun.call.arguments);
        }
        self.give();
    }

    /// Gives out the calls that are whole, in the order in which they began. A call that isn't
    /// whole holds up the calls after it, so that the calls keep their order.
    fn give(&mut self) {
        while let Some(begun) = self.calls.get_mut(self.given).filter(|it| it.is_whole()) {
            self.pieces.push_back(begun.piece());
            self.given += 1;
        }
    }

    /// The last call that began at a place.
    pub(crate) fn at(&self, place: u64) -> Option<&Call> {
        self.calls.iter().rfind(|it| it.place == place).map(|it| &it.call)
    }

    /// Changes the last call that began at a place, unless it was given out.
    pub(crate) fn change(&mut self, place: u64, change: impl FnOnce(&mut Call)) {
        let open = self.calls.iter_mut().skip(self.given);
        let Some(begun) = open.rev().find(|it| it.place == place) else { return };
        let before = size(&begun.call);
        let length = begun.call.arguments.len();
        let named = (begun.call.id.clone(), begun.call.name.clone());
        change(&mut begun.call);
        if self.is_marked {
            for (now, before) in [(&mut begun.call.id, named.0), (&mut begun.call.name, named.1)] {
                if *now != before {
                    *now = json::whole(now);
                }
            }
        }
        if self.is_marked || begun.half.is_some() {
            let more = begun.call.arguments.split_off(length.min(begun.call.arguments.len()));
            begun.call.arguments += &json::joined(&mut begun.half, &more, self.is_marked);
        }
        self.bytes += size(&begun.call).saturating_sub(before);
    }

    /// Replaces the arguments of the last call that began at a place, unless it was given out.
    pub(super) fn replace_arguments(&mut self, place: u64, arguments: String) {
        let open = self.calls.iter_mut().skip(self.given);
        if let Some(begun) = open.rev().find(|it| it.place == place) {
            (begun.call.arguments, begun.half) = (arguments, None);
        }
    }

    /// Adds data that the wire wants back, placed after the text and the calls so far.
    pub(super) fn sign(&mut self, wire: Wire, json: &Value) {
        let calls = self.calls() as u64;
        let place = if calls > 0 { calls + 1 } else { u64::from(self.has_text) };
        self.sign_at(wire, place, json);
    }

    /// Adds data that the wire wants back, at a place.
    pub(super) fn sign_at(&mut self, wire: Wire, place: u64, json: &Value) {
        let mut json = json.to_string();
        if self.is_marked {
            json = json::whole(&json);
        }
        self.bytes += json.len();
        self.pieces.push_back(Piece::Signed(Signed::new(wire, place, json)));
    }

    /// How many calls for the agent have begun.
    pub(crate) fn calls(&self) -> usize {
        self.calls.iter().filter(|it| !it.is_servers).count()
    }

    /// Sets the stop reason, with the provider's own word.
    pub(crate) fn stop(&mut self, word: &str, stop: Stop) {
        let written = |it: &str| if self.is_marked { json::whole(it) } else { it.to_owned() };
        let (word, stop) = match stop {
            Stop::Other(other) => (written(word), Stop::Other(written(&other))),
            stop => (written(word), stop),
        };
        (self.word, self.stop) = (Some(word), Some(stop));
    }

    /// Sets the stop reason, without a word of the provider.
    pub(crate) fn stop_unsaid(&mut self, stop: Stop) {
        self.stop = Some(stop);
    }

    /// The number of calls that have begun, and their bytes so far.
    pub(crate) fn calls_size(&self) -> (usize, usize) {
        (self.calls.len(), self.calls.iter().map(|it| size(&it.call)).sum())
    }

    /// Notes that the wire's end mark came.
    pub(crate) fn end(&mut self) {
        self.is_over = true;
    }

    /// Ends a reply that broke off. Gives out the calls that had begun, and the usage so far. A
    /// call that hadn't ended shows where the reply broke off: its arguments are no JSON.
    pub(crate) fn break_off(&mut self) {
        self.pieces.clear();
        for begun in self.calls.iter_mut().skip(self.given).filter(|it| !it.is_servers) {
            if !begun.is_ended && is_object(&begun.call.arguments) {
                CUT.clone_into(&mut begun.call.arguments);
            }
        }
        self.finish_calls(true);
        self.pieces.extend(self.usage.take().map(Piece::Usage));
    }

    /// Gives out the remaining calls, in the order of their places.
    fn finish_calls(&mut self, is_cut: bool) {
        let mut calls = self.calls.split_off(self.given);
        calls.sort_by_key(|it| it.place);
        for begun in &mut calls {
            let may_be_cut = is_cut && !begun.is_followed && !begun.is_servers;
            if may_be_cut && begun.has_no_arguments() {
                CUT.clone_into(&mut begun.call.arguments);
            }
        }
        self.pieces.extend(calls.iter_mut().map(PartialCall::piece));
        self.given = self.calls.len();
    }

    /// Ends the reply. Gives out the remaining calls as they are, in the order of their places,
    /// then the usage and the stop.
    pub(crate) fn finish(&mut self) {
        self.say_halves();
        self.finish_calls(self.stop == Some(Stop::MaxTokens));
        self.pieces.extend(self.usage.take().map(Piece::Usage));
        self.pieces.push_back(Piece::Stop(self.stop.clone().unwrap_or(Stop::End)));
    }
}

/// The arguments of a call that was cut before its first argument. They are no JSON, so that nobody
/// takes the call for one without arguments.
const CUT: &str = "{";

/// Whether a text is a whole JSON object.
pub(super) fn is_object(text: &str) -> bool {
    let text = text.trim();
    let ends = text.starts_with('{') && text.ends_with('}');
    ends && serde_json::from_str::<IgnoredAny>(text).is_ok()
}

fn size(call: &Call) -> usize {
    call.id.len() + call.name.len() + call.arguments.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begun(calls: &[(u64, &str)]) -> Gathered {
        let mut all = Gathered::default();
        for (place, arguments) in calls {
            all.begin(*place, &Call::new(place.to_string(), "add", *arguments), false);
        }
        all
    }

    fn given(all: &mut Gathered) -> Vec<String> {
        let calls = all.pieces.drain(..).filter_map(|it| match it {
            Piece::Call(it) | Piece::ServerCall(it) => Some(it.id),
            _ => None,
        });
        calls.collect()
    }

    #[test]
    fn a_call_is_given_out_once_when_it_ends() {
        let mut all = begun(&[(1, "{\"a\":"), (2, "{}")]);
        all.change(1, |it| it.arguments.push_str("1}"));
        assert_eq!(given(&mut all), [""; 0]);
        all.end_call(1);
        assert_eq!(given(&mut all), ["1"]);
        all.end_call(1);
        all.finish();
        assert_eq!(given(&mut all), ["2"]);
    }

    #[test]
    fn a_call_that_is_not_whole_waits_for_the_end_and_keeps_those_behind_it() {
        let mut all = begun(&[(1, "{\"a\":"), (2, "{}")]);
        all.end_call(1);
        all.end_call(2);
        assert_eq!(given(&mut all), [""; 0]);
        all.finish();
        assert_eq!(given(&mut all), ["1", "2"]);
    }

    #[test]
    fn a_call_without_arguments_is_whole_once_the_model_goes_on() {
        let mut all = begun(&[(1, "")]);
        all.end_whole_calls();
        assert_eq!(given(&mut all), [""; 0], "its arguments may come");
        all.end_call(1);
        assert_eq!(given(&mut all), [""; 0], "it may have been cut");
        all.begin(2, &Call::default(), false);
        assert_eq!(given(&mut all), ["1"]);
        let mut all = begun(&[(1, "")]);
        all.end_single_call(1);
        assert_eq!(given(&mut all), ["1"]);
    }

    #[test]
    fn a_call_that_was_cut_before_its_arguments_is_not_one_without_any() {
        let check = |stop: Stop, expected: &str| {
            let mut all = begun(&[(1, "")]);
            all.end_call(1);
            all.stop_unsaid(stop);
            all.finish();
            let Some(Piece::Call(call)) = all.pieces.pop_front() else { unreachable!() };
            assert_eq!(call.arguments, expected);
        };
        check(Stop::Calls, "");
        check(Stop::MaxTokens, CUT);
    }

    #[test]
    fn what_follows_a_call_that_was_given_out_changes_nothing() {
        let mut all = begun(&[(1, "{}")]);
        all.end_whole_calls();
        assert_eq!(given(&mut all), ["1"]);
        all.change(1, |it| it.arguments.push_str("{}"));
        all.finish();
        assert_eq!((given(&mut all), all.calls()), (Vec::new(), 1));
    }
}
