//! A flow-control window: how many steps of one worker may be on their way to the log at once, in
//! the lower lane. The window grows while batches land in time and shrinks when they don't, so that
//! new work doesn't wait behind a long queue. The caller gives the time.

/// The window never shrinks below this. If each commit takes long, many steps have to share a
/// commit.
const STEPS_MIN: usize = 128;

/// While the priority lane is in use, a batch of the lower lane may always have this many steps.
const STEPS_IN_HURRY: usize = 8;

/// About how long the log takes for one step.
const STEP_US: u64 = 20;

/// A batch may take this many times the fixed cost of a commit: once for the commit under way, once
/// for the batch's own commit, and twice for the steps in both commits.
const COMMITS: u64 = 4;

/// The flow-control window of a worker.
#[derive(Debug)]
pub(crate) struct Window {
    /// The longest time that a batch should take.
    target_us: u64,
    /// The largest window.
    steps_max: usize,
    /// The present size of the window.
    room: usize,
    under_way: usize,
    /// A moving average of a commit's fixed cost: the part of its time that doesn't depend on its
    /// steps.
    shared_us: u64,
    /// The last batch that was on its way when the window shrank. Batches up to this one were sent
    /// under the old window, and don't shrink the window again.
    last_judged: u64,
}

impl Window {
    pub(crate) fn new(target_us: u64, steps_max: usize) -> Window {
        Window { target_us, steps_max, room: steps_max, under_way: 0, shared_us: 0, last_judged: 0 }
    }

    /// Returns how many steps the next batch may have, or 0 if less than a quarter of the window is
    /// left.
    pub(crate) fn room(&self) -> usize {
        let left = self.room.saturating_sub(self.under_way);
        if left * 4 < self.room { 0 } else { left }
    }

    /// Notes that a batch is on its way.
    pub(crate) fn sent(&mut self, steps: usize) {
        self.under_way += steps;
    }

    /// Notes the fixed cost of a commit. If the cost is high, as on a slow disk, a batch may take
    /// as long as several commits, so that many steps share each commit.
    pub(crate) fn note_commit(&mut self, shared_us: u64) {
        self.shared_us = (self.shared_us * 7 + shared_us) / 8;
    }

    /// Returns how many steps a batch of the lower lane may have while the priority lane is in use.
    /// These steps take about as long as a commit's fixed cost, which a priority batch waits for
    /// anyway.
    pub(crate) fn hurried_room(&self) -> usize {
        usize::try_from(self.shared_us / STEP_US).unwrap_or(usize::MAX).max(STEPS_IN_HURRY)
    }

    /// Notes that a batch landed, which took `took_us`. The window grows if it was full and the
    /// batch landed in time, and shrinks if the batch took too long. `last` is the number of the
    /// last batch that was sent.
    pub(crate) fn landed(&mut self, number: u64, steps: usize, took_us: u64, last: u64) {
        let target_us = self.target_us.max(self.shared_us * COMMITS);
        let was_full = self.room() == 0;
        self.under_way -= steps;
        if took_us <= target_us {
            let more = if was_full { self.room / 8 + 1 } else { 0 };
            self.room = (self.room + more).min(self.steps_max);
        } else if number > self.last_judged {
            self.last_judged = last;
            self.room = (self.room / 4 * 3).max(STEPS_MIN.min(self.steps_max));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the window that results if each commit of a log takes `commit_us`, and `step_us`
    /// more for each step.
    fn rest(commit_us: u64, step_us: u64) -> usize {
        let mut window = Window::new(2_000, 4_096);
        for number in 1..=1_000 {
            let steps = window.room();
            window.sent(steps);
            let took_us = commit_us + step_us * u64::try_from(steps).unwrap();
            window.landed(number, steps, took_us, number);
        }
        window.room()
    }

    #[test]
    fn as_much_is_on_its_way_as_the_log_takes_in_time() {
        let check = |commit_us: u64, step_us: u64, expected: std::ops::RangeInclusive<usize>| {
            let steps = rest(commit_us, step_us);
            assert!(expected.contains(&steps), "{commit_us} and {step_us}: {steps}");
        };
        // The log keeps up with the largest window.
        check(100, 0, 4_096..=4_096);
        // The window settles near (2,000 - 500) / 5 = 300 steps.
        check(500, 5, 200..=340);
        // The log takes too long for any window.
        check(10_000, 5, STEPS_MIN..=STEPS_MIN);
    }

    #[test]
    fn what_a_slow_disk_takes_is_shared_by_more() {
        let mut window = Window::new(2_000, 4_096);
        assert_eq!(window.hurried_room(), STEPS_IN_HURRY);
        for number in 1..=1_000 {
            let steps = window.room();
            window.sent(steps);
            window.note_commit(10_000);
            let took_us = 20_000 + 10 * u64::try_from(steps).unwrap();
            window.landed(number, steps, took_us, number);
        }
        // The window settles near (4 * 10,000 - 20,000) / 10 = 2,000 steps.
        assert!((1_400..=2_300).contains(&window.room()), "{}", window.room());
        assert!((450..=500).contains(&window.hurried_room()), "{}", window.hurried_room());
    }

    #[test]
    fn what_was_on_its_way_already_makes_no_room_smaller_twice() {
        let mut window = Window::new(2_000, 4_096);
        (0..4).for_each(|_| window.sent(1_024));
        assert_eq!(window.room(), 0);
        (1..=4).for_each(|number| window.landed(number, 1_024, 8_000, 4));
        assert_eq!(window.room(), 3_072);
        window.sent(3_000);
        assert_eq!(window.room(), 0);
        window.landed(5, 3_000, 8_000, 5);
        assert_eq!(window.room(), 2_304);
    }
}
