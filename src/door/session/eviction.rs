//! Says whether a session is silent, and ends it when a new connection needs its place.

use std::time::Duration;

use crate::door::eviction::Silence;
use crate::door::session::{Input, Session};
use crate::wire::{Code, Fault};

impl Session {
    /// The session's silence, for its door. A client that has sent only part of its first message
    /// has never spoken.
    pub(crate) fn silence(&self) -> Silence {
        let is_silent = self.window.is_empty()
            && self.unsettled == 0
            && self.egress.is_empty()
            && self.ends_us.is_none();
        match self.first {
            _ if !is_silent => Silence::Busy,
            0 => Silence::NeverSpoke { since_us: self.opened_us },
            _ if self.splitter.is_between() => Silence::Rests { since_us: self.moved_us },
            _ => Silence::Busy,
        }
    }

    /// Ends the session to make room for a new connection. Pushes that were taken before are still
    /// answered.
    pub(crate) fn make_room(&mut self, now_us: u64) -> Option<Fault> {
        if self.ends_us.is_some() || self.input == Input::Done {
            return None;
        }
        self.made_room = true;
        let silent = Duration::from_micros(now_us.saturating_sub(self.moved_us)).as_secs();
        let text = format!(
            "too many connections are open, and this one was silent for {silent} s: a newcomer \
             has its place"
        );
        Some(self.end(Fault::new(Code::Connections, text)))
    }
}
