//! The deadlines of a session. They decide when the session refuses a client, ends the connection,
//! or frees memory.

use std::collections::VecDeque;
use std::time::Duration;

use crate::door::egress::Egress;
use crate::door::session::{Answer, Input, Session};
use crate::wire::{Code, Fault};

/// How many slots an idle connection's window may keep allocated.
const IDLE_SLOTS: usize = 16;
/// How long an idle connection keeps large buffers.
const REST_AFTER: Duration = Duration::from_secs(1);
/// Why a large message that comes slowly is refused.
const SLOW_AND_LARGE: &str = "the rest of a large message came at less than 64 KiB a second, and \
                              other large messages wait for their turn";

impl Session {
    /// Checks the deadlines and how many bytes wait. If the client is too late or too many bytes
    /// wait, the session ends. In that case, returns the fault, which the caller counts.
    pub(crate) fn tick(&mut self, now_us: u64) -> Option<Fault> {
        self.now_us = now_us;
        self.rest(now_us);
        if !self.wants_bytes() || self.splitter.is_between() {
            self.begun_us = None;
        } else if self.begun_us.is_none() {
            self.begun_us = Some(now_us);
        }
        if self.egress.is_empty() {
            self.stuck_us = None;
        } else if self.stuck_us.is_none() {
            self.stuck_us = Some(now_us);
        }
        self.share_room();
        if self.ends_us.is_some() {
            return None;
        }
        if self.room.unread.is_cut() {
            return Some(self.give_way());
        }
        let limits = &self.shared.limits;
        let waiting = self.egress.len() + self.held_bytes;
        if waiting > limits.outbound_bytes_max {
            let max = limits.outbound_bytes_max;
            let text = format!("{waiting} bytes wait for you; outbound_bytes_max is {max}");
            return Some(self.cut(Fault::new(Code::SlowReader, text), now_us));
        }
        if self.stuck_us.is_some_and(|it| after(it, limits.write_time_max) <= now_us) {
            let max = limits.write_time_max;
            let text = format!("you have read nothing for write_time_max, {max:?}");
            return Some(self.cut(Fault::new(Code::SlowReader, text), now_us));
        }
        let frame_time_max = limits.frame_time_max;
        let is_late = self.begun_us.is_some_and(|it| after(it, frame_time_max) <= now_us);
        if is_late || self.stalls() {
            let text = match is_late {
                true => format!(
                    "the rest of a message didn't come in frame_time_max, {frame_time_max:?}"
                ),
                false => SLOW_AND_LARGE.to_owned(),
            };
            let place = self.splitter.finish().err().map(|it| it.place).unwrap_or_default();
            return Some(self.end(Fault::new(Code::HalfMessage, text).at(place)));
        }
        if self.input == Input::Open && self.who.is_none() && self.is_late(now_us) {
            let text = format!("no <authenticate> came in frame_time_max, {frame_time_max:?}");
            return Some(self.end(Fault::new(Code::Authentication, text)));
        }
        None
    }

    fn is_late(&self, now_us: u64) -> bool {
        after(self.opened_us, self.shared.limits.frame_time_max) <= now_us
    }

    /// Takes no further message. Sends the fault as the last answer, after the answers to earlier
    /// pushes.
    pub(super) fn end(&mut self, fault: Fault) -> Fault {
        self.input = Input::Done;
        self.begun_us = None;
        let number = self.number(0);
        self.answer(number, Answer::Refused(Box::new(fault.clone())));
        fault
    }

    /// Drops all answers and whole messages that wait. The client still gets the rest of a
    /// half-written message, and then the fault.
    pub(super) fn cut(&mut self, fault: Fault, now_us: u64) -> Fault {
        self.input = Input::Done;
        self.forget();
        self.egress.cut();
        self.say(&fault);
        self.end_by(now_us);
        fault
    }

    /// The next time at which the deadlines must be checked, or `None` if there is no deadline.
    pub(crate) fn deadline_us(&self) -> Option<u64> {
        let limits = &self.shared.limits;
        if self.ends_us.is_some() {
            return self.ends_us;
        }
        let unknown = self.who.is_none() && self.input == Input::Open;
        let waits = [
            self.begun_us.map(|it| after(it, limits.frame_time_max)),
            self.stuck_us.map(|it| after(it, limits.write_time_max)),
            unknown.then(|| after(self.opened_us, limits.frame_time_max)),
            self.busy_us.map(|it| after(it, REST_AFTER)),
            self.room.deadline_us(),
        ];
        waits.into_iter().flatten().min()
    }

    /// Whether the connection must end now, even if bytes still wait.
    pub(crate) fn is_overdue(&self, now_us: u64) -> bool {
        self.ends_us.is_some_and(|it| it <= now_us)
    }

    /// Frees memory that an idle connection doesn't need.
    fn rest(&mut self, now_us: u64) {
        let at_rest = self.egress.is_empty() && self.window.is_empty();
        let large = self.egress.is_large() || self.window.capacity() > IDLE_SLOTS;
        match self.busy_us {
            Some(since) if at_rest && large && after(since, REST_AFTER) <= now_us => {
                self.egress = Egress::default();
                self.window = VecDeque::new();
                self.busy_us = None;
            }
            Some(_) if self.moved => self.busy_us = Some(now_us),
            None if large => self.busy_us = Some(now_us),
            _ => {}
        }
        if std::mem::take(&mut self.moved) {
            self.moved_us = now_us;
        }
    }

    pub(super) fn end_by(&mut self, now_us: u64) {
        self.ends_us = Some(after(now_us, self.shared.limits.linger_time_max));
    }
}

pub(super) fn after(from_us: u64, wait: Duration) -> u64 {
    from_us.saturating_add(u64::try_from(wait.as_micros()).unwrap_or(u64::MAX))
}
