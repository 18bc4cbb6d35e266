//! What a model's tokens cost.

/// What a model's tokens cost, in whatever money the operator counts in.
///
/// ```
/// use pumphouse::model::Price;
///
/// // 0.15 for a million tokens of prompts, 0.60 for a million tokens of replies.
/// let price = Price::new(0.15, 0.60);
/// assert_eq!(price.cost(1_000, 100), 210);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Price {
    /// Of a million tokens of prompts, in millionths.
    pub input_micros: u64,
    /// Of a million tokens of replies, in millionths.
    pub output_micros: u64,
}

impl Price {
    /// So much for a million tokens of prompts, and for a million tokens of replies. Less than a
    /// millionth is rounded, and less than nothing is nothing.
    #[must_use]
    pub fn new(input: f64, output: f64) -> Price {
        // A cast stops at the bounds of what it casts to.
        let micros = |it: f64| (it * 1e6).round() as u64;
        Price { input_micros: micros(input), output_micros: micros(output) }
    }

    /// What so many tokens cost together, in millionths; a part of one counts as a whole one.
    #[must_use]
    pub fn cost(self, input: u64, output: u64) -> u64 {
        let of = |tokens: u64, micros: u64| u128::from(tokens) * u128::from(micros);
        let whole = of(input, self.input_micros) + of(output, self.output_micros);
        u64::try_from(whole.div_ceil(1_000_000)).unwrap_or(u64::MAX)
    }

    /// How many tokens of a reply can be had for so much, behind a prompt.
    #[must_use]
    pub fn reply_for(self, micros: u64, input: u64) -> u64 {
        let left = micros.saturating_sub(self.cost(input, 0));
        let tokens = u128::from(left) * 1_000_000 / u128::from(self.output_micros.max(1));
        u64::try_from(tokens).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_cost_what_a_million_of_them_costs_in_parts() {
        let price = Price::new(0.15, 0.60);
        for (input, output, micros) in
            [(0, 0, 0), (1, 0, 1), (100, 0, 15), (0, 5, 3), (1_000_000, 1_000_000, 750_000)]
        {
            assert_eq!(price.cost(input, output), micros, "{input} {output}");
        }
        assert_eq!(Price::new(-1.0, f64::NAN).cost(1_000, 1_000), 0);
        assert_eq!(Price::new(1e30, 0.0).cost(u64::MAX, 0), u64::MAX);
    }

    #[test]
    fn a_reply_that_can_be_had_costs_no_more_than_there_is() {
        let price = Price::new(0.15, 0.60);
        for (micros, input) in [(0, 0), (210, 1_000), (211, 1_000), (10, 1_000), (7, 3)] {
            let output = price.reply_for(micros, input);
            assert!(output == 0 || price.cost(input, output) <= micros, "{micros} {input}");
        }
        assert_eq!(Price::new(0.0, 0.0).reply_for(1, 1), 1_000_000, "what costs nothing is had");
    }
}
