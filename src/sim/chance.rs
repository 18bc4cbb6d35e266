//! Random numbers from a seed. The algorithm is SplitMix64 by Steele, Lea and Flood, which works
//! with every seed.

/// A sequence of random numbers that depends only on its seed.
#[derive(Clone, Debug)]
pub struct Chance(u64);

impl Chance {
    /// Creates the sequence for a seed.
    #[must_use]
    pub fn new(seed: u64) -> Chance {
        Chance(seed)
    }

    /// Returns the next number.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut state = self.0;
        state = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        state = (state ^ (state >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        state ^ (state >> 31)
    }

    /// Returns a number from 0 to `end` - 1, or 0 if `end` is 0. Small numbers are slightly more
    /// likely, which doesn't matter if `end` is far below 2⁶⁴.
    pub fn below(&mut self, end: u64) -> u64 {
        let drawn = self.draw();
        drawn.checked_rem(end).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_draws_what_the_algorithms_authors_do() {
        let mut chance = Chance::new(1_234_567);
        let drawn: Vec<u64> = std::iter::repeat_with(|| chance.draw()).take(3).collect();
        let theirs =
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        assert_eq!(drawn, theirs);
        assert_eq!(chance.below(0), 0);
    }
}
