//! How much work each tree took lately, and whether that is little compared with the other trees.
//! The caller gives the time.

/// After so long, what a tree took counts an eighth less, so half after some fifth of a second:
/// time enough to tell a crowd from one with a message now and then.
const EIGHTH_US: u64 = 1 << 15;

/// So many eighths later, nothing is left that counts.
const EIGHTHS: u64 = 128;

/// Who took less than this part of what is usual is light. Much above, and whoever happened to have
/// a turn less would be.
const LIGHT_PART: u64 = 3;

/// A step, as it is counted: there is room below one.
const STEP: u64 = 1 << 8;

/// Turns that what is usual is made of.
const TURNS: u64 = 1 << 8;

/// How many steps a tree took of late.
#[derive(Debug, Default)]
pub(crate) struct Taken {
    steps: u64,
    at_us: u64,
}

impl Taken {
    /// It takes some more.
    pub(crate) fn add(&mut self, steps: usize, now_us: u64) {
        self.fade(now_us);
        self.steps = self.steps.saturating_add(steps as u64 * STEP);
    }

    fn fade(&mut self, now_us: u64) {
        let eighths = now_us.saturating_sub(self.at_us) / EIGHTH_US;
        if eighths < EIGHTHS {
            (0..eighths).for_each(|_| self.steps -= self.steps / 8);
        } else {
            self.steps = 0;
        }
        self.at_us += eighths * EIGHTH_US;
    }
}

/// How many steps those had taken who had a turn of late.
#[derive(Debug, Default)]
pub(crate) struct Usual {
    /// The sum of what they had taken.
    steps: u64,
    turns: u64,
}

impl Usual {
    /// One had a turn.
    pub(crate) fn add(&mut self, taken: &Taken) {
        if self.turns == TURNS {
            self.steps -= self.steps / TURNS;
        } else {
            self.turns += 1;
        }
        self.steps = self.steps.saturating_add(taken.steps);
    }

    /// Whether that is little beside what is usual.
    pub(crate) fn is_light(&self, taken: &mut Taken, now_us: u64) -> bool {
        taken.fade(now_us);
        taken.steps.saturating_mul(LIGHT_PART) < self.steps / self.turns.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Trees that take a step each so often, for five seconds; which of them are light then.
    fn light(every_us: &[u64]) -> Vec<bool> {
        let mut usual = Usual::default();
        let mut all: Vec<Taken> = every_us.iter().map(|_| Taken::default()).collect();
        let second_us: u64 = 1_000_000;
        for now_us in (second_us..6 * second_us).step_by(100) {
            for (taken, every) in all.iter_mut().zip(every_us) {
                if now_us.is_multiple_of(*every) {
                    taken.add(1, now_us);
                    usual.add(taken);
                }
            }
        }
        all.iter_mut().map(|it| usual.is_light(it, 6 * second_us)).collect()
    }

    #[test]
    fn one_with_a_step_now_and_then_is_light_beside_a_crowd() {
        let check = |every_us: &[u64], expected: &[bool]| assert_eq!(light(every_us), expected);
        check(&[1_000, 1_000, 50_000], &[false, false, true]);
        check(&[100, 100, 10_000], &[false, false, true]);
        // Nobody is, where all are alike, or alone.
        check(&[1_000, 1_000, 1_000], &[false; 3]);
        check(&[1_000, 1_100, 1_900], &[false; 3]);
        check(&[50_000, 50_000], &[false; 2]);
        check(&[1_000], &[false]);
        // A crowd of one.
        check(&[500, 20_000], &[false, true]);
    }

    #[test]
    fn what_was_taken_long_ago_counts_for_nothing() {
        let (mut usual, mut busy, mut other) =
            (Usual::default(), Taken::default(), Taken::default());
        for now_us in 0..10_000 {
            busy.add(1, now_us);
            usual.add(&busy);
        }
        assert!(!usual.is_light(&mut busy, 10_000));
        assert!(usual.is_light(&mut other, 10_000));
        assert!(usual.is_light(&mut busy, 100 * EIGHTH_US));
    }
}
