//! A session's part in two things that all connections of a pump share: the number of bytes that
//! clients haven't read, and the permits for large messages on their way in.

use std::sync::Arc;
use std::task::Context;
use std::time::Duration;

use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::PollSemaphore;

use crate::door::egress::Egress;
use crate::door::session::deadlines::after;
use crate::door::session::{Input, Session};
use crate::engine::{ConnectionBytes, UnreadBytes};
use crate::wire::{Code, Fault};
use crate::xml::Splitter;

/// How many bytes of a message may arrive without a permit.
const LARGE_BYTES: usize = 64 * 1024;
/// While other messages wait for a permit, [`LARGE_BYTES`] of a message with a permit must arrive
/// within this time.
const STALL: Duration = Duration::from_secs(1);
/// The longest rest of a half-written message that `give_way` still sends, in bytes. A longer rest
/// is dropped.
const LAST_BYTES_MAX: usize = 64 * 1024;

/// A session's unread bytes, and its permit for a large message.
pub(super) struct Room {
    pub(super) unread: ConnectionBytes,
    places: PollSemaphore,
    /// Whether the session waits for a permit.
    is_queued: bool,
    place: Option<OwnedSemaphorePermit>,
    /// When the message with the permit last made progress, and how many bytes of it came since.
    fed_us: u64,
    fed_bytes: usize,
}

impl Room {
    pub(super) fn of(unread: &Arc<UnreadBytes>) -> Room {
        Room {
            unread: ConnectionBytes::new(unread),
            places: PollSemaphore::new(unread.arriving.clone()),
            is_queued: false,
            place: None,
            fed_us: 0,
            fed_bytes: 0,
        }
    }

    /// Notes that bytes came. Only [`LARGE_BYTES`] together count as progress.
    pub(super) fn fed(&mut self, bytes: usize, now_us: u64) {
        self.fed_bytes += bytes;
        if self.fed_bytes >= LARGE_BYTES {
            (self.fed_us, self.fed_bytes) = (now_us, 0);
        }
    }

    /// Takes the permit out of the room, for a message that is complete. The message keeps the
    /// permit until it is answered.
    pub(super) fn take(&mut self) -> Option<OwnedSemaphorePermit> {
        self.place.take()
    }

    /// When to check whether the message with the permit made progress.
    pub(super) fn deadline_us(&self) -> Option<u64> {
        self.place.as_ref().map(|_| after(self.fed_us, STALL))
    }
}

impl Session {
    /// Whether a large message is on its way in and has no permit yet.
    pub(super) fn lacks_place(&self) -> bool {
        self.room.place.is_none() && self.splitter.waiting_bytes() >= LARGE_BYTES
    }

    /// Waits for a permit if a large message needs one. Returns true if the message has just got
    /// the permit.
    pub(crate) fn poll_place(&mut self, context: &mut Context<'_>) -> bool {
        if !self.could_read() || !self.lacks_place() {
            return false;
        }
        self.room.is_queued = true;
        let std::task::Poll::Ready(place) = self.room.places.poll_acquire(context) else {
            return false;
        };
        (self.room.is_queued, self.room.place) = (false, place);
        (self.room.fed_us, self.room.fed_bytes) = (self.now_us, 0);
        true
    }

    /// Whether the session is to be cut, since too many bytes wait for all clients together. If
    /// not, `context` is woken once the session is to be cut.
    pub(crate) fn poll_cut(&self, context: &Context<'_>) -> bool {
        self.ends_us.is_none() && self.room.unread.poll_cut(context)
    }

    /// Notes how many bytes wait. A session that can't read now gives its permit back, so that
    /// others can have it.
    pub(super) fn share_room(&mut self) {
        let bytes = self.egress.held_bytes() + self.held_bytes + self.splitter.held_bytes();
        self.room.unread.note(bytes, self.stuck_us, self.now_us);
        let could_read = self.could_read();
        if !could_read {
            self.room.place = None;
        }
        if self.room.is_queued && !(could_read && self.lacks_place()) {
            self.room.places = PollSemaphore::new(self.room.places.clone_inner());
            self.room.is_queued = false;
        }
    }

    /// Whether a message with a permit came too slowly while others wait for the permit.
    pub(super) fn stalls(&mut self) -> bool {
        let is_due = self.room.deadline_us().is_some_and(|it| it <= self.now_us);
        if is_due && self.room.places.available_permits() > 0 {
            (self.room.fed_us, self.room.fed_bytes) = (self.now_us, 0);
            return false;
        }
        is_due
    }

    /// Cuts the session, since too many bytes wait for all clients together. Drops all messages
    /// that wait, and tells the client the reason. If more than [`LAST_BYTES_MAX`] of a
    /// half-written message are left to write, drops this rest, too, and tells no reason.
    pub(super) fn give_way(&mut self) -> Fault {
        let (bytes, max) = (self.egress.len() + self.held_bytes, self.shared.limits.owed_bytes_max);
        let text = format!(
            "{bytes} bytes wait for you, and too many wait for all clients: owed_bytes_max is {max}"
        );
        let fault = Fault::new(Code::SlowReader, text);
        self.input = Input::Done;
        self.forget();
        self.egress.cut();
        if self.egress.len() > LAST_BYTES_MAX {
            self.egress = Egress::default();
        } else {
            self.say(&fault);
        }
        self.splitter = Splitter::new(self.shared.limits.door);
        self.end_by(self.now_us);
        self.share_room();
        fault
    }
}
