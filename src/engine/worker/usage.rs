//! How many steps each tree took lately, and whether a tree took few compared with the other trees.
//! The caller gives the time.

/// After this time, a tree's steps count an eighth less. After about 0.2 s, the steps count half.
/// This is long enough to tell busy trees from a tree with a message now and then.
const EIGHTH_US: u64 = 1 << 15;

/// After this many times `EIGHTH_US`, a tree's usage is 0.
const EIGHTHS: u64 = 128;

/// A tree is light if its usage is below the typical usage divided by this. With a smaller divisor,
/// a tree that happened to have one turn less would be light.
const LIGHT_PART: u64 = 3;

/// The amount that one step adds to a usage. The number is large, so that a fading usage keeps
/// fractions of a step.
const STEP: u64 = 1 << 8;

/// The number of turns over which the typical usage is averaged.
const TURNS: u64 = 1 << 8;

/// How many steps a tree took lately. The older a step is, the less it counts.
#[derive(Debug, Default)]
pub(crate) struct Usage {
    steps: u64,
    at_us: u64,
}

impl Usage {
    pub(crate) fn add(&mut self, steps: usize, now_us: u64) {
        let eighths = self.eighths(now_us);
        self.steps = self.faded(eighths).saturating_add(steps as u64 * STEP);
        self.at_us += eighths * EIGHTH_US;
    }

    /// Returns how many times `EIGHTH_US` has passed since the steps last faded.
    fn eighths(&self, now_us: u64) -> u64 {
        now_us.saturating_sub(self.at_us) / EIGHTH_US
    }

    /// Returns the steps after they were reduced by an eighth `eighths` times.
    fn faded(&self, eighths: u64) -> u64 {
        if eighths >= EIGHTHS {
            return 0;
        }
        (0..eighths).fold(self.steps, |steps, _| steps - steps / 8)
    }
}

/// The average usage of the trees that had a turn lately.
#[derive(Debug, Default)]
pub(crate) struct TypicalUsage {
    /// A sum of the usages of the last turns, from which older turns fade.
    steps: u64,
    turns: u64,
}

impl TypicalUsage {
    /// Adds the usage of a tree that had a turn.
    pub(crate) fn add(&mut self, usage: &Usage) {
        if self.turns == TURNS {
            self.steps -= self.steps / TURNS;
        } else {
            self.turns += 1;
        }
        self.steps = self.steps.saturating_add(usage.steps);
    }

    /// Returns whether a usage is low compared with the typical usage.
    pub(crate) fn is_light(&self, usage: &Usage, now_us: u64) -> bool {
        let steps = usage.faded(usage.eighths(now_us));
        steps.saturating_mul(LIGHT_PART) < self.steps / self.turns.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns which trees are light after five seconds, if each tree takes a step at its own
    /// interval.
    fn light(every_us: &[u64]) -> Vec<bool> {
        let mut typical = TypicalUsage::default();
        let mut all: Vec<Usage> = every_us.iter().map(|_| Usage::default()).collect();
        let second_us: u64 = 1_000_000;
        for now_us in (second_us..6 * second_us).step_by(100) {
            for (usage, every) in all.iter_mut().zip(every_us) {
                if now_us.is_multiple_of(*every) {
                    usage.add(1, now_us);
                    typical.add(usage);
                }
            }
        }
        all.iter().map(|it| typical.is_light(it, 6 * second_us)).collect()
    }

    #[test]
    fn one_with_a_step_now_and_then_is_light_beside_a_crowd() {
        let check = |every_us: &[u64], expected: &[bool]| assert_eq!(light(every_us), expected);
        check(&[1_000, 1_000, 50_000], &[false, false, true]);
        check(&[100, 100, 10_000], &[false, false, true]);
        // No tree is light among similar ones, or alone.
        check(&[1_000, 1_000, 1_000], &[false; 3]);
        check(&[1_000, 1_100, 1_900], &[false; 3]);
        check(&[50_000, 50_000], &[false; 2]);
        check(&[1_000], &[false]);
        // One busy tree is enough.
        check(&[500, 20_000], &[false, true]);
    }

    #[test]
    fn what_was_taken_long_ago_counts_for_nothing() {
        let (mut typical, mut busy, other) =
            (TypicalUsage::default(), Usage::default(), Usage::default());
        for now_us in 0..10_000 {
            busy.add(1, now_us);
            typical.add(&busy);
        }
        assert!(!typical.is_light(&busy, 10_000));
        assert!(typical.is_light(&other, 10_000));
        assert!(typical.is_light(&busy, 100 * EIGHTH_US));
    }
}
