//! Counts the unanswered pushes of a door's connections, and decides how many more each connection
//! may have.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::limits::Limits;

/// The most pushes that a connection takes before other connections have their turn. That many take
/// some tenths of a millisecond.
const IN_TURN: usize = 32;
/// The number of pushes that a door takes in one round. In a round, each connection with unanswered
/// pushes has one turn. Up to four such connections take `IN_TURN` pushes each. More than 64 take
/// one push each. So a connection with a single push never waits long.
const IN_ROUND: usize = 128;

/// The numbers of unanswered pushes, and of their bytes, of all connections of a door.
#[derive(Debug, Default)]
pub(super) struct Share {
    pushes: AtomicUsize,
    bytes: AtomicUsize,
    /// How many connections have unanswered pushes.
    busy: AtomicUsize,
}

/// The numbers of one connection's unanswered pushes and bytes. Dropping this value subtracts them
/// from the door's.
#[derive(Debug)]
pub(super) struct Part {
    share: Arc<Share>,
    pushes: usize,
    bytes: usize,
}

impl Part {
    pub(super) fn of(share: &Arc<Share>) -> Part {
        Part { share: share.clone(), pushes: 0, bytes: 0 }
    }

    /// Adds a push of this length.
    pub(super) fn add(&mut self, bytes: usize) {
        if self.pushes == 0 {
            self.share.busy.fetch_add(1, Ordering::Relaxed);
        }
        self.pushes += 1;
        self.bytes += bytes;
        self.share.pushes.fetch_add(1, Ordering::Relaxed);
        self.share.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Subtracts a push of this length.
    pub(super) fn remove(&mut self, bytes: usize) {
        self.pushes -= 1;
        self.bytes -= bytes;
        self.share.pushes.fetch_sub(1, Ordering::Relaxed);
        self.share.bytes.fetch_sub(bytes, Ordering::Relaxed);
        if self.pushes == 0 {
            self.share.busy.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Whether the connection has exactly one unanswered push.
    pub(super) fn has_one(&self) -> bool {
        self.pushes == 1
    }

    /// Subtracts all pushes of the connection.
    pub(super) fn clear(&mut self) {
        if self.pushes > 0 {
            self.share.busy.fetch_sub(1, Ordering::Relaxed);
        }
        self.share.pushes.fetch_sub(self.pushes, Ordering::Relaxed);
        self.share.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
        (self.pushes, self.bytes) = (0, 0);
    }

    /// How many pushes the connection may take before others have their turn. The more connections
    /// have unanswered pushes, the fewer pushes each may take.
    pub(super) fn turn(&self) -> usize {
        let busy = self.share.busy.load(Ordering::Relaxed);
        (IN_ROUND / busy.max(1)).clamp(1, IN_TURN)
    }

    /// Whether the connection may take one more push.
    ///
    /// A connection has bounds of its own. It also can't have more pushes than the door still has
    /// room for. So a single connection gets half of the door's room, each of `n` connections
    /// gets about 1/(n+1) of it, and a new connection always finds some room.
    ///
    /// A connection without an unanswered push may always take one. It might otherwise wait
    /// forever, since only an answer to one of its pushes makes a connection look for room again.
    pub(super) fn has_room(&self, limits: &Limits) -> bool {
        let pushes = self.share.pushes.load(Ordering::Relaxed);
        let bytes = self.share.bytes.load(Ordering::Relaxed);
        let left = limits.door_pushes_in_flight_max.saturating_sub(pushes);
        let bytes_left = limits.door_push_bytes_in_flight_max.saturating_sub(bytes);
        self.pushes == 0
            || self.pushes < limits.pushes_in_flight_max.min(left)
                && self.bytes < limits.push_bytes_in_flight_max.min(bytes_left)
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        self.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many pushes each connection has once none may take more.
    fn filled(connections: usize, limits: &Limits) -> Vec<usize> {
        let share = Arc::new(Share::default());
        let mut parts: Vec<Part> = (0..connections).map(|_| Part::of(&share)).collect();
        while parts.iter().any(|it| it.has_room(limits)) {
            parts.iter_mut().filter(|it| it.has_room(limits)).for_each(|it| it.add(10));
        }
        let pushes = parts.iter().map(|it| it.pushes).collect();
        drop(parts);
        assert_eq!(share.pushes.load(Ordering::Relaxed), 0);
        assert_eq!(share.bytes.load(Ordering::Relaxed), 0);
        pushes
    }

    #[test]
    fn connections_share_a_door_and_leave_room_for_one_more() {
        let check = |connections: usize, max: usize, expected: &[usize]| {
            let limits = Limits { door_pushes_in_flight_max: max, ..Limits::default() };
            assert_eq!(filled(connections, &limits), expected, "{connections} of {max}");
        };
        check(1, 100, &[50]);
        check(3, 100, &[25, 25, 25]);
        check(9, 100, &[10; 9]);
        check(5, 2, &[1; 5]);
    }

    #[test]
    fn the_more_connections_have_something_the_less_each_takes_in_turn() {
        let share = Arc::new(Share::default());
        let mut parts: Vec<Part> = (0..300).map(|_| Part::of(&share)).collect();
        let mut turns = Vec::new();
        for (busy, part) in (1..).zip(&mut parts) {
            assert!(!part.has_one());
            part.add(10);
            assert!(part.has_one());
            part.add(10);
            assert!(!part.has_one());
            if [1, 4, 8, 64, 300].contains(&busy) {
                turns.push(part.turn());
            }
        }
        assert_eq!(turns, [32, 32, 16, 2, 1]);
        parts[2..].iter_mut().for_each(Part::clear);
        parts[1].remove(10);
        parts[1].remove(10);
        parts.truncate(2);
        assert_eq!(share.busy.load(Ordering::Relaxed), 1);
        assert_eq!(parts[0].turn(), 32);
    }

    #[test]
    fn a_connection_has_bounds_of_its_own() {
        let own = Limits { pushes_in_flight_max: 7, ..Limits::default() };
        assert_eq!(filled(2, &own), [7, 7]);
        let bytes = Limits { push_bytes_in_flight_max: 35, ..Limits::default() };
        assert_eq!(filled(2, &bytes), [4, 4]);
        let shared = Limits { door_push_bytes_in_flight_max: 100, ..Limits::default() };
        assert_eq!(filled(1, &shared), [5]);
    }
}
