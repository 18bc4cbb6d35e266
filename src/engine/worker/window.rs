//! How much of a worker's work may be on its way to the log at once: as much as the log keeps up
//! with, so that whoever comes doesn't wait behind what those before piled up. Time is given.

/// Steps that may be on their way however long they take: where each commit costs much, many
/// share it.
const STEPS_MIN: usize = 128;

/// Steps of a batch that others go ahead of, at the least: they wait until it is written.
const STEPS_IN_HURRY: usize = 8;

/// About what one step takes the log.
const STEP_US: u64 = 20;

/// A batch may take so many commits: the one that is being made, its own, and as long again for
/// what is in them.
const COMMITS: u64 = 4;

/// Steps on their way to the log.
#[derive(Debug)]
pub(crate) struct Pace {
    /// How long a batch should take.
    target_us: u64,
    /// How many steps there can be at the most.
    steps_max: usize,
    /// How many there may be now.
    room: usize,
    under_way: usize,
    /// What a commit takes beside the steps in it, of late.
    shared_us: u64,
    /// The last batch that was on its way when the room was made smaller: those before it say
    /// nothing of the new room.
    judged: u64,
}

impl Pace {
    pub(crate) fn new(target_us: u64, steps_max: usize) -> Pace {
        Pace { target_us, steps_max, room: steps_max, under_way: 0, shared_us: 0, judged: 0 }
    }

    /// How many steps the next batch may have; none where it would hardly be worth it.
    pub(crate) fn room(&self) -> usize {
        let left = self.room.saturating_sub(self.under_way);
        if left * 4 < self.room { 0 } else { left }
    }

    /// A batch is on its way.
    pub(crate) fn sent(&mut self, steps: usize) {
        self.under_way += steps;
    }

    /// A commit took so long beside the steps in it: where that is much, as on a slow disk, many
    /// are to share it, and a batch may take some of them.
    pub(crate) fn shared(&mut self, shared_us: u64) {
        self.shared_us = (self.shared_us * 7 + shared_us) / 8;
    }

    /// How many steps a batch may have that others go ahead of: what they take is about what the
    /// commit takes beside them, and so long they wait anyway.
    pub(crate) fn short(&self) -> usize {
        usize::try_from(self.shared_us / STEP_US).unwrap_or(usize::MAX).max(STEPS_IN_HURRY)
    }

    /// The log has a batch, after so long; `last` is the number of the last one that was sent.
    pub(crate) fn landed(&mut self, number: u64, steps: usize, took_us: u64, last: u64) {
        let target_us = self.target_us.max(self.shared_us * COMMITS);
        let was_full = self.room() == 0;
        self.under_way -= steps;
        if took_us <= target_us {
            let more = if was_full { self.room / 8 + 1 } else { 0 };
            self.room = (self.room + more).min(self.steps_max);
        } else if number > self.judged {
            self.judged = last;
            self.room = (self.room / 4 * 3).max(STEPS_MIN.min(self.steps_max));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A log that takes so long for a commit and for each step; how many steps are on their way
    /// when it has come to rest.
    fn rest(commit_us: u64, step_us: u64) -> usize {
        let mut pace = Pace::new(2_000, 4_096);
        for number in 1..=1_000 {
            let steps = pace.room();
            pace.sent(steps);
            let took_us = commit_us + step_us * u64::try_from(steps).unwrap();
            pace.landed(number, steps, took_us, number);
        }
        pace.room()
    }

    #[test]
    fn as_much_is_on_its_way_as_the_log_takes_in_time() {
        let check = |commit_us: u64, step_us: u64, expected: std::ops::RangeInclusive<usize>| {
            let steps = rest(commit_us, step_us);
            assert!(expected.contains(&steps), "{commit_us} and {step_us}: {steps}");
        };
        // It keeps up with all there can be.
        check(100, 0, 4_096..=4_096);
        // (2,000 - 500) / 5.
        check(500, 5, 200..=340);
        // It never keeps up.
        check(10_000, 5, STEPS_MIN..=STEPS_MIN);
    }

    #[test]
    fn what_a_slow_disk_takes_is_shared_by_more() {
        let mut pace = Pace::new(2_000, 4_096);
        assert_eq!(pace.short(), STEPS_IN_HURRY);
        for number in 1..=1_000 {
            let steps = pace.room();
            pace.sent(steps);
            pace.shared(10_000);
            let took_us = 20_000 + 10 * u64::try_from(steps).unwrap();
            pace.landed(number, steps, took_us, number);
        }
        // (4 * 10,000 - 20,000) / 10.
        assert!((1_400..=2_300).contains(&pace.room()), "{}", pace.room());
        assert!((450..=500).contains(&pace.short()), "{}", pace.short());
    }

    #[test]
    fn what_was_on_its_way_already_makes_no_room_smaller_twice() {
        let mut pace = Pace::new(2_000, 4_096);
        (0..4).for_each(|_| pace.sent(1_024));
        assert_eq!(pace.room(), 0);
        (1..=4).for_each(|number| pace.landed(number, 1_024, 8_000, 4));
        assert_eq!(pace.room(), 3_072);
        pace.sent(3_000);
        assert_eq!(pace.room(), 0);
        pace.landed(5, 3_000, 8_000, 5);
        assert_eq!(pace.room(), 2_304);
    }
}
