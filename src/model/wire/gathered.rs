//! A reply as far as its events have told it.

use std::collections::VecDeque;

use serde_json::Value;

use crate::model::{Call, Error, Kind, Piece, Signed, Stop, Usage, Wire};

/// A reply as far as it is known.
#[derive(Debug, Default)]
pub(crate) struct Gathered {
    /// What there is to give out.
    pub(crate) pieces: VecDeque<Piece>,
    /// Calls that may not be whole yet, each with the place that the provider gives it.
    calls: Vec<Begun>,
    pub(super) usage: Option<Usage>,
    stop: Option<Stop>,
    /// Why the reply is over, in the provider's own word.
    word: Option<String>,
    /// Whether the wire's end mark came.
    is_over: bool,
    /// Whether there was text.
    has_text: bool,
    /// Bytes of the reply so far.
    bytes: usize,
}

/// A call that may not be whole yet.
#[derive(Debug)]
struct Begun {
    place: u64,
    call: Call,
    /// Whether the provider runs it itself.
    is_servers: bool,
}

impl Gathered {
    /// Whether it was said why the reply is over. Its usage may still come.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.is_some()
    }

    /// Whether the wire's end mark came: nothing follows.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over
    }

    /// How long the reply is by now.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Why the reply is over, in the provider's own word.
    pub(crate) fn word(&self) -> Option<&str> {
        self.word.as_deref()
    }

    /// Refuses a reply that is longer than it may be.
    pub(crate) fn within(&self, bytes_max: usize) -> Result<(), Error> {
        match self.bytes > bytes_max {
            true => {
                let text = format!("the reply is over a limit: reply_bytes_max is {bytes_max}");
                Err(Error::new(Kind::TooLarge, text))
            }
            false => Ok(()),
        }
    }

    /// Adds a text of a kind.
    pub(super) fn say(&mut self, text: &str, make: fn(String) -> Piece) {
        self.bytes += text.len();
        if !text.is_empty() {
            self.has_text |= matches!(make(String::new()), Piece::Text(_));
            self.pieces.push_back(make(text.to_owned()));
        }
    }

    /// Begins a call at a place.
    pub(super) fn begin(&mut self, place: u64, call: Call, is_servers: bool) {
        self.bytes += size(&call);
        self.calls.push(Begun { place, call, is_servers });
    }

    /// The last call that began at a place.
    pub(super) fn at(&self, place: u64) -> Option<&Call> {
        self.calls.iter().rfind(|it| it.place == place).map(|it| &it.call)
    }

    /// Changes the last call that began at a place.
    pub(super) fn change(&mut self, place: u64, change: impl FnOnce(&mut Call)) {
        let Some(begun) = self.calls.iter_mut().rfind(|it| it.place == place) else { return };
        let before = size(&begun.call);
        change(&mut begun.call);
        self.bytes += size(&begun.call).saturating_sub(before);
    }

    /// Adds something that the wire wants back, behind what there is so far.
    pub(super) fn sign(&mut self, wire: Wire, json: &Value) {
        let calls = self.calls() as u64;
        let place = if calls > 0 { calls + 1 } else { u64::from(self.has_text) };
        self.sign_at(wire, place, json);
    }

    /// The same at a place.
    pub(super) fn sign_at(&mut self, wire: Wire, place: u64, json: &Value) {
        let json = json.to_string();
        self.bytes += json.len();
        self.pieces.push_back(Piece::Signed(Signed::new(wire, place, json)));
    }

    /// How many calls have begun that are for the agent to make.
    pub(super) fn calls(&self) -> usize {
        self.calls.iter().filter(|it| !it.is_servers).count()
    }

    /// The reply is over for this reason.
    pub(super) fn stop(&mut self, word: &str, stop: Stop) {
        self.word = Some(word.to_owned());
        self.stop = Some(stop);
    }

    /// The wire's end mark came.
    pub(super) fn end(&mut self) {
        self.is_over = true;
    }

    /// Nothing more comes: calls are whole, and the last pieces are there.
    pub(crate) fn finish(&mut self) {
        let mut calls = std::mem::take(&mut self.calls);
        calls.sort_by_key(|it| it.place);
        self.pieces.extend(calls.into_iter().map(|it| match it.is_servers {
            true => Piece::ServerCall(it.call),
            false => Piece::Call(it.call),
        }));
        self.pieces.extend(self.usage.take().map(Piece::Usage));
        self.pieces.push_back(Piece::Stop(self.stop.clone().unwrap_or(Stop::End)));
    }
}

fn size(call: &Call) -> usize {
    call.id.len() + call.name.len() + call.arguments.len()
}
