//! Gathers the parts of a reply from its events.

use std::collections::{BTreeMap, VecDeque};
use std::mem::take;

use serde_json::Value;

use super::growing_object::{GrowingObject, is_object};
use crate::model::error::{Error, Kind};
use crate::model::piece::{Call, Piece, Signed, Stop};
use crate::model::usage::Usage;
use crate::model::wire_name::Wire;
use crate::schema::json;

/// The most calls in a reply. A turn runs all calls of its reply, and no model writes hundreds. The
/// limit keeps calls without any text within about half a megabyte.
pub(super) const CALLS_MAX: usize = 4_096;
/// Bytes that each call counts beside its texts, for the memory that it takes even without any.
const CALL_BYTES: usize = 128;
/// The most bytes of memory that the parts of a reply may ask for beyond their own texts. By
/// default, the texts of a reply may have as many.
const RESERVED_BYTES_MAX: usize = 4 << 20;

/// The parts of a reply, from the events so far.
#[derive(Debug, Default)]
pub struct Gathered {
    /// The pieces that are ready to be given out.
    pub pieces: VecDeque<Piece>,
    /// The calls of the reply in the order in which they began.
    calls: Vec<PartialCall>,
    /// How many calls were given out. They are the first ones of `calls`.
    given: usize,
    /// Maps each place to the last call that began there, by its index in `calls`.
    last_at: BTreeMap<u64, usize>,
    /// Indexes of calls whose arguments became whole objects since [`Gathered::end_whole_calls`].
    whole: Vec<usize>,
    /// How many calls for the agent have begun.
    own_calls: usize,
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
    /// Bytes of memory that were reserved so far. They are among `bytes`.
    reserved: usize,
    /// Why the reply is refused, if it goes beyond a limit.
    refusal: Option<String>,
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
    /// Whether the arguments are a whole JSON object.
    object: GrowingObject,
}

impl PartialCall {
    /// Whether the call can be given out before the reply's end: no part of it follows, and its
    /// arguments are a JSON object. They may be empty if the model went on after the call. The
    /// arguments of a provider's own calls aren't checked.
    fn is_whole(&self) -> bool {
        let is_empty = self.is_followed && self.object.is_blank();
        self.is_ended && (self.is_servers || is_empty || self.object.is_whole())
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
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// Bytes of the reply so far.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The stop reason in the provider's own word.
    pub fn word(&self) -> Option<&str> {
        self.word.as_deref()
    }

    /// Checks that the reply isn't longer than `bytes_max`.
    pub fn within(&self, bytes_max: usize) -> Result<(), Error> {
        match self.bytes > bytes_max {
            true => {
                let text = format!("the reply is over a limit: reply_bytes_max is {bytes_max}");
                Err(Error::new(Kind::TooLarge, text))
            }
            false => Ok(()),
        }
    }

    /// Counts bytes that are kept and that no piece or call has yet.
    pub(super) fn count_bytes(&mut self, bytes: usize) {
        self.bytes += bytes;
    }

    /// Counts bytes of memory that a part of the reply asks for, before they are taken. None if
    /// there may be no more of them. The reply is refused then.
    pub(super) fn reserve(&mut self, bytes: usize) -> Option<()> {
        self.reserved = self.reserved.saturating_add(bytes);
        if self.reserved > RESERVED_BYTES_MAX {
            self.refuse(format!("its arguments take more than {RESERVED_BYTES_MAX} bytes"));
            return None;
        }
        self.bytes += bytes;
        Some(())
    }

    /// Refuses the reply, for the first reason that is given.
    pub(super) fn refuse(&mut self, why: String) {
        self.refusal.get_or_insert(why);
    }

    /// Why the reply is refused, if it is.
    pub(crate) fn refusal(&self) -> Option<&str> {
        self.refusal.as_deref()
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

    /// Begins a call at a place. A call beyond `CALLS_MAX` isn't kept, and the reply is refused.
    pub(crate) fn begin(&mut self, place: u64, call: &Call, is_servers: bool) {
        if self.calls.len() >= CALLS_MAX {
            return self.refuse(format!("a reply has at most {CALLS_MAX} calls"));
        }
        let mut half = None;
        let arguments = json::joined(&mut half, &call.arguments, self.is_marked).into_owned();
        let word = |text: &str| if self.is_marked { json::whole(text) } else { text.to_owned() };
        let call = Call::new(word(&call.id), word(&call.name), arguments);
        self.bytes += size(&call);
        // All calls before the last one are followed already.
        if let Some(before) = self.calls.last_mut() {
            before.is_followed = true;
        }
        let (is_ended, is_followed, object) = (false, false, GrowingObject::default());
        self.own_calls += usize::from(!is_servers);
        self.last_at.insert(place, self.calls.len());
        let begun = PartialCall { place, call, is_servers, is_ended, is_followed, half, object };
        self.calls.push(begun);
        self.arguments_grew(self.calls.len() - 1);
        self.give();
    }

    /// Ends the last call that began at a place. If the call is whole, it is given out once all
    /// calls before it have been given out.
    pub(super) fn end_call(&mut self, place: u64) {
        if let Some(begun) = self.last_at.get(&place).and_then(|at| self.calls.get_mut(*at)) {
            begun.is_ended = true;
            self.give();
        }
    }

    /// Ends a call that came in a single event. It is whole, even without arguments.
    pub(super) fn end_single_call(&mut self, place: u64) {
        if let Some(begun) = self.last_at.get(&place).and_then(|at| self.calls.get_mut(*at)) {
            begun.is_followed = true;
        }
        self.end_call(place);
    }

    /// Ends all calls whose arguments are whole JSON objects. Wires without an event for the end of
    /// a call use this method when another call begins or the reply stops. A call without arguments
    /// doesn't end, since its arguments may still come.
    pub(super) fn end_whole_calls(&mut self) {
        for at in take(&mut self.whole) {
            // The arguments may have gone on behind the object's end.
            let begun = self.calls.get_mut(at).filter(|it| it.object.is_whole());
            begun.into_iter().for_each(|it| it.is_ended = true);
        }
        self.give();
    }

    /// Reads what was added to a call's arguments.
    fn arguments_grew(&mut self, at: usize) {
        let Some(begun) = self.calls.get_mut(at) else { return };
        let was_whole = begun.object.is_whole();
        begun.object.read(&begun.call.arguments);
        if begun.object.is_whole() && !was_whole {
            self.whole.push(at);
        }
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
        self.last_at.get(&place).and_then(|at| self.calls.get(*at)).map(|it| &it.call)
    }

    /// Whether the last call that began at a place has a whole JSON object as its arguments, and
    /// wasn't given out.
    pub(super) fn has_whole_arguments(&self, place: u64) -> bool {
        let at = self.open_at(place);
        at.and_then(|it| self.calls.get(it)).is_some_and(|it| it.object.is_whole())
    }

    /// The index of the last call that began at a place, unless it was given out.
    fn open_at(&self, place: u64) -> Option<usize> {
        self.last_at.get(&place).copied().filter(|at| *at >= self.given)
    }

    /// Changes the last call that began at a place, unless it was given out. `change` finds the id
    /// and the name empty, so that a long id isn't copied with each part of the arguments. An id or
    /// a name that `change` leaves empty stays as it was.
    pub(crate) fn change(&mut self, place: u64, change: impl FnOnce(&mut Call)) {
        let Some(at) = self.open_at(place) else { return };
        let Some(begun) = self.calls.get_mut(at) else { return };
        let before = size(&begun.call);
        let length = begun.call.arguments.len();
        let named = (take(&mut begun.call.id), take(&mut begun.call.name));
        change(&mut begun.call);
        for (now, before) in [(&mut begun.call.id, named.0), (&mut begun.call.name, named.1)] {
            if now.is_empty() {
                *now = before;
            } else if self.is_marked {
                *now = json::whole(now);
            }
        }
        if self.is_marked || begun.half.is_some() {
            let more = begun.call.arguments.split_off(length.min(begun.call.arguments.len()));
            begun.call.arguments += &json::joined(&mut begun.half, &more, self.is_marked);
        }
        self.bytes += size(&begun.call).saturating_sub(before);
        self.arguments_grew(at);
    }

    /// Replaces the arguments of the last call that began at a place, unless it was given out.
    pub(super) fn replace_arguments(&mut self, place: u64, arguments: String) {
        let Some(at) = self.open_at(place) else { return };
        if let Some(begun) = self.calls.get_mut(at) {
            self.bytes += arguments.len().saturating_sub(begun.call.arguments.len());
            (begun.call.arguments, begun.half) = (arguments, None);
            begun.object = GrowingObject::default();
            self.arguments_grew(at);
        }
    }

    /// Adds data that the wire wants back, placed after the text and the calls so far.
    pub(super) fn sign(&mut self, wire: Wire, json: &Value) {
        let calls = self.calls() as u64;
        let place = if calls > 0 { calls + 1 } else { u64::from(self.has_text) };
        self.sign_at(wire, place, json);
    }

    /// Adds data as [`Gathered::sign`] does, if some of its bytes were counted when they came.
    pub(super) fn sign_counted(&mut self, wire: Wire, json: &Value, counted: usize) {
        self.sign(wire, json);
        self.bytes = self.bytes.saturating_sub(counted);
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
        self.own_calls
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
    pub fn finish(&mut self) {
        self.say_halves();
        self.finish_calls(self.stop == Some(Stop::MaxTokens));
        self.pieces.extend(self.usage.take().map(Piece::Usage));
        self.pieces.push_back(Piece::Stop(self.stop.clone().unwrap_or(Stop::End)));
    }
}

/// The arguments of a call that was cut before its first argument. They are no JSON, so that nobody
/// takes the call for one without arguments.
const CUT: &str = "{";

/// The bytes that a call counts.
fn size(call: &Call) -> usize {
    CALL_BYTES + call.id.len() + call.name.len() + call.arguments.len()
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

    #[test]
    fn a_call_without_any_text_counts_too() {
        let mut all = Gathered::default();
        (0..10).for_each(|place| all.begin(place, &Call::default(), false));
        assert_eq!(all.bytes(), 10 * CALL_BYTES);
        all.change(3, |it| it.arguments.push_str("{}"));
        assert_eq!(all.bytes(), 10 * CALL_BYTES + 2);
    }

    #[test]
    fn a_reply_with_too_many_calls_is_refused_and_keeps_no_more_of_them() {
        let mut all = Gathered::default();
        (0..CALLS_MAX as u64).for_each(|place| all.begin(place, &Call::default(), false));
        assert_eq!(all.refusal(), None);
        let bytes = all.bytes();
        all.begin(0, &Call::new("more", "add", "{}"), false);
        assert_eq!(all.refusal(), Some("a reply has at most 4096 calls"));
        assert_eq!((all.calls_size().0, all.bytes()), (CALLS_MAX, bytes));
    }

    #[test]
    fn a_call_keeps_its_id_and_its_name_until_others_come() {
        let mut all = begun(&[(1, "{")]);
        all.change(1, |it| it.arguments.push('}'));
        assert_eq!(all.at(1), Some(&Call::new("1", "add", "{}")));
        assert!(all.has_whole_arguments(1));
        all.change(1, |it| it.name.push_str("sum"));
        assert_eq!(all.at(1), Some(&Call::new("1", "sum", "{}")));
        all.change(1, |it| it.arguments.push('}'));
        assert!(!all.has_whole_arguments(1));
        all.end_whole_calls();
        assert_eq!(given(&mut all), [""; 0], "its arguments went on behind their end");
    }
}
