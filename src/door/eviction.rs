//! Decides which silent connections are closed when there is no place for a new connection.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// How many connections are closed at a time: one in 32 of the open ones, but at least 1 and at
/// most 32. Several are closed, since each search examines all connections.
const AT_ONCE: usize = 32;

/// How long a new connection may take for its first message before it can be closed, in
/// microseconds. This holds even if many other connections wait for a place.
const BEGINS_US: u64 = 500_000;

/// The silence of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Silence {
    /// Something is under way, so the connection isn't silent.
    Busy,
    /// The connection hasn't sent a complete message yet.
    NeverSpoke { since_us: u64 },
    /// The connection has sent messages, and nothing has been under way since this time.
    Rests { since_us: u64 },
}

/// Returns the numbers of the connections to close. `seen` has the number, the machine and the
/// silence of each open connection.
///
/// First come connections that were opened at least half a second ago and haven't sent a complete
/// message, then those that have been silent for at least `silent_min`. Within each kind,
/// connections of the machine with the most connections come first, and among these, connections
/// that have been silent longest.
pub(super) fn longest(
    seen: Vec<(u64, Arc<str>, Silence)>,
    silent_min: Duration,
    now_us: u64,
) -> Vec<u64> {
    let mut by_machine: HashMap<Arc<str>, usize> = HashMap::new();
    for (_, machine, _) in &seen {
        *by_machine.entry(machine.clone()).or_default() += 1;
    }
    let silent_us = u64::try_from(silent_min.as_micros()).unwrap_or(u64::MAX);
    let count = AT_ONCE.min(seen.len() / AT_ONCE).max(1);
    let silent = seen.into_iter().filter_map(|(number, machine, silence)| {
        let (spoke, since_us) = match silence {
            Silence::NeverSpoke { since_us } if since_us.saturating_add(BEGINS_US) <= now_us => {
                (false, since_us)
            }
            Silence::Rests { since_us } if since_us.saturating_add(silent_us) <= now_us => {
                (true, since_us)
            }
            Silence::Busy | Silence::NeverSpoke { .. } | Silence::Rests { .. } => return None,
        };
        let many = by_machine.get(&machine).copied().unwrap_or(0);
        Some((spoke, std::cmp::Reverse(many), since_us, number))
    });
    let mut silent: Vec<_> = silent.collect();
    silent.sort_unstable();
    silent.into_iter().take(count).map(|(.., number)| number).collect()
}

#[cfg(test)]
mod tests {
    use super::Silence::{Busy, NeverSpoke, Rests};
    use super::*;

    #[test]
    fn the_longest_silence_of_the_largest_crowd_leaves_first() {
        let check = |seen: &[(&str, Silence)], expected: &[u64]| {
            let seen =
                (0..).zip(seen).map(|(number, (machine, it))| (number, (*machine).into(), *it));
            let left = longest(seen.collect(), Duration::from_micros(100), 1_000_000);
            assert_eq!(left, expected);
        };
        let (old, new) = (NeverSpoke { since_us: 10 }, NeverSpoke { since_us: 20 });
        check(&[], &[]);
        check(&[("a", Busy)], &[]);
        check(&[("a", new), ("a", old)], &[1]);
        check(&[("a", Rests { since_us: 5 }), ("a", new)], &[1]);
        check(&[("a", Rests { since_us: 5 }), ("a", Busy)], &[0]);
        check(&[("a", Rests { since_us: 999_950 }), ("a", Busy)], &[]);
        check(&[("a", NeverSpoke { since_us: 600_000 }), ("a", Busy)], &[]);
        check(&[("a", old), ("b", new), ("b", new)], &[1]);
        check(&[("a", Rests { since_us: 5 }), ("b", Rests { since_us: 6 }), ("b", Busy)], &[1]);
    }
}
