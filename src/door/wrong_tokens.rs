//! Counts wrong tokens by machine. A machine that sends several wrong tokens has to wait, longer
//! each time.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// From this many wrong tokens on, a machine has to wait. Fewer wrong tokens cause no wait, since
/// people mistype.
const DELAYED_FROM: u32 = 5;
/// The first wait and the longest one. The wait doubles with each further wrong token.
const WAIT_US: (u64, u64) = (1_000_000, 60_000_000);
/// How long a machine is remembered after its last wrong token.
const KEPT_US: u64 = 600_000_000;
/// How many machines are remembered. If one more sends a wrong token, the machine whose last wrong
/// token is the oldest is forgotten.
const MACHINES_MAX: usize = 4_096;

/// The machines that have sent wrong tokens.
#[derive(Debug, Default)]
pub(super) struct Guesses(Mutex<HashMap<IpAddr, Guess>>);

#[derive(Clone, Copy, Debug)]
struct Guess {
    wrong: u32,
    /// The time of the last wrong token.
    at_us: u64,
}

impl Guesses {
    /// How long a machine still has to wait before its next token is checked. `None` if the next
    /// token is checked at once.
    pub(super) fn wait(&self, from: IpAddr, now_us: u64) -> Option<Duration> {
        let guess = *self.all().get(&machine(from))?;
        let over = guess.wrong.checked_sub(DELAYED_FROM)?;
        let (first, longest) = WAIT_US;
        let wait = if over < 32 { (first << over).min(longest) } else { longest };
        let left = (guess.at_us + wait).checked_sub(now_us).filter(|it| *it > 0)?;
        Some(Duration::from_micros(left))
    }

    /// Notes a wrong token.
    pub(super) fn note_wrong(&self, from: IpAddr, now_us: u64) {
        let mut all = self.all();
        let machine = machine(from);
        if all.len() >= MACHINES_MAX && !all.contains_key(&machine) {
            all.retain(|_, it| it.at_us + KEPT_US > now_us);
            let oldest = all.iter().min_by_key(|(_, it)| it.at_us).map(|(it, _)| *it);
            if let Some(oldest) = oldest.filter(|_| all.len() >= MACHINES_MAX) {
                all.remove(&oldest);
            }
        }
        let guess = all.entry(machine).or_insert(Guess { wrong: 0, at_us: now_us });
        if guess.at_us + KEPT_US <= now_us {
            guess.wrong = 0;
        }
        *guess = Guess { wrong: guess.wrong.saturating_add(1), at_us: now_us };
    }

    /// Forgets a machine that has sent a correct token.
    pub(super) fn forget(&self, from: IpAddr) {
        self.all().remove(&machine(from));
    }

    fn all(&self) -> MutexGuard<'_, HashMap<IpAddr, Guess>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the machine of an address: the IPv4 address itself, or the first 64 bits of an IPv6
/// address.
pub(super) fn machine(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(it) => IpAddr::V4(it),
        IpAddr::V6(it) => IpAddr::V6(Ipv6Addr::from_bits(it.to_bits() >> 64 << 64)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000;

    fn at(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn whoever_guesses_waits_longer_each_time() {
        let guesses = Guesses::default();
        let mut waits = Vec::new();
        for _ in 0..12 {
            guesses.note_wrong(at("10.0.0.1"), 0);
            waits.push(guesses.wait(at("10.0.0.1"), 0).map_or(0, |it| it.as_secs()));
        }
        assert_eq!(waits, [0, 0, 0, 0, 1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(guesses.wait(at("::ffff:10.0.0.1"), 59 * SECOND).unwrap().as_secs(), 1);
        assert_eq!(guesses.wait(at("10.0.0.1"), 60 * SECOND), None);
        assert_eq!(guesses.wait(at("10.0.0.2"), 0), None);
        guesses.forget(at("10.0.0.1"));
        assert_eq!(guesses.wait(at("10.0.0.1"), 0), None);
    }

    #[test]
    fn a_network_is_one_and_what_is_long_ago_is_forgotten() {
        let guesses = Guesses::default();
        for attempt in 0..DELAYED_FROM {
            guesses.note_wrong(at(&format!("2001:db8::{attempt}")), 0);
        }
        assert!(guesses.wait(at("2001:db8::9"), 0).is_some());
        assert_eq!(guesses.wait(at("2001:db8:0:1::9"), 0), None);
        guesses.note_wrong(at("2001:db8::1"), KEPT_US);
        assert_eq!(guesses.wait(at("2001:db8::9"), KEPT_US), None);
    }

    #[test]
    fn the_table_has_an_end() {
        let guesses = Guesses::default();
        for machine in 0..2 * MACHINES_MAX as u32 {
            guesses.note_wrong(IpAddr::V4(machine.into()), u64::from(machine));
        }
        assert_eq!(guesses.all().len(), MACHINES_MAX);
        assert!(guesses.all().contains_key(&IpAddr::V4((2 * MACHINES_MAX as u32 - 1).into())));
    }
}
