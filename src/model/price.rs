//! What a model's tokens cost.

use crate::model::Usage;

/// What a model's tokens cost, in whatever money the operator counts in.
///
/// ```
/// use pumphouse::model::{Price, Usage};
///
/// // 0.15 for a million tokens of prompts, 0.60 for a million tokens of replies.
/// let price = Price::new(0.15, 0.60);
/// assert_eq!(price.cost(1_000, 100), 210);
///
/// // Of 1,000 tokens of a prompt the provider had kept 800, and those are cheaper.
/// let mut usage = Usage::new(1_000, 100);
/// usage.cached = 800;
/// assert_eq!(price.with_cached(0.015).cost_of(&usage), 102);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Price {
    /// Of a million tokens of prompts, in millionths.
    pub input_micros: u64,
    /// Of a million tokens of replies, in millionths.
    pub output_micros: u64,
    /// Of a million tokens of prompts that the provider had kept, in millionths; that of other
    /// tokens of prompts where it is none.
    pub cached_micros: Option<u64>,
    /// Of a million tokens of prompts that the provider kept for later, in millionths; that of
    /// other tokens of prompts where it is none.
    pub cache_write_micros: Option<u64>,
}

impl Price {
    /// So much for a million tokens of prompts, and for a million tokens of replies. Less than a
    /// millionth is rounded, and less than nothing is nothing.
    #[must_use]
    pub fn new(input: f64, output: f64) -> Price {
        Price {
            input_micros: micros(input),
            output_micros: micros(output),
            cached_micros: None,
            cache_write_micros: None,
        }
    }

    /// So much for a million tokens of prompts that the provider had kept from an earlier one.
    #[must_use]
    pub fn with_cached(self, cached: f64) -> Price {
        Price { cached_micros: Some(micros(cached)), ..self }
    }

    /// So much for a million tokens of prompts that the provider keeps for later ones.
    #[must_use]
    pub fn with_cache_write(self, written: f64) -> Price {
        Price { cache_write_micros: Some(micros(written)), ..self }
    }

    /// The higher of two prices, field by field. Where one price has none for tokens of a cache,
    /// its
    /// price of the prompt counts for them.
    #[must_use]
    pub fn max(self, other: Price) -> Price {
        let input = |one: Option<u64>, two: Option<u64>| match (one, two) {
            (None, None) => None,
            _ => Some(one.unwrap_or(self.input_micros).max(two.unwrap_or(other.input_micros))),
        };
        Price {
            input_micros: self.input_micros.max(other.input_micros),
            output_micros: self.output_micros.max(other.output_micros),
            cached_micros: input(self.cached_micros, other.cached_micros),
            cache_write_micros: input(self.cache_write_micros, other.cache_write_micros),
        }
    }

    /// What so many tokens cost together, in millionths, where none of the prompt was kept; a part
    /// of one counts as a whole one.
    #[must_use]
    pub fn cost(self, input: u64, output: u64) -> u64 {
        self.cost_of(&Usage::new(input, output))
    }

    /// What a turn cost, in millionths: tokens that the provider had kept, or keeps for later, have
    /// prices of their own. A part of a millionth counts as a whole one.
    #[must_use]
    pub fn cost_of(self, usage: &Usage) -> u64 {
        let cached = usage.cached.min(usage.input);
        let written = usage.cache_written.min(usage.input - cached);
        let of = |tokens: u64, micros: u64| u128::from(tokens) * u128::from(micros);
        let whole = of(usage.input - cached - written, self.input_micros)
            + of(cached, self.cached_micros.unwrap_or(self.input_micros))
            + of(written, self.cache_write_micros.unwrap_or(self.input_micros))
            + of(usage.output, self.output_micros);
        u64::try_from(whole.div_ceil(1_000_000)).unwrap_or(u64::MAX)
    }

    /// What so many tokens cost at the most, in millionths, whatever the provider keeps of the
    /// prompt.
    #[must_use]
    pub fn cost_max(self, input: u64, output: u64) -> u64 {
        let of_prompt = [self.cached_micros, self.cache_write_micros].into_iter().flatten();
        let input_micros = of_prompt.fold(self.input_micros, u64::max);
        let flat = Price { input_micros, cached_micros: None, cache_write_micros: None, ..self };
        flat.cost(input, output)
    }

    /// How many tokens of a reply can be had for so much, behind a prompt, whatever the provider
    /// keeps of that.
    #[must_use]
    pub fn reply_for(self, micros: u64, input: u64) -> u64 {
        let left = micros.saturating_sub(self.cost_max(input, 0));
        let tokens = u128::from(left) * 1_000_000 / u128::from(self.output_micros.max(1));
        u64::try_from(tokens).unwrap_or(u64::MAX)
    }
}

/// Millionths. A cast stops at the bounds of what it casts to.
fn micros(amount: f64) -> u64 {
    (amount * 1e6).round() as u64
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
    fn the_higher_of_two_prices_is_the_higher_for_kept_tokens_too() {
        let (plain, kept) = (Price::new(10.0, 1.0), Price::new(1.0, 1.0).with_cached(0.1));
        let used = usage(1_000, 1_000, 0);
        assert_eq!(plain.max(kept).cost_of(&used), plain.cost_of(&used));
        assert_eq!(kept.max(plain).cost_of(&used), plain.cost_of(&used));
        assert_eq!(kept.max(kept), kept);
    }

    /// A turn with so many tokens of the prompt, of which some were kept and others are now.
    fn usage(input: u64, cached: u64, cache_written: u64) -> Usage {
        Usage { cached, cache_written, ..Usage::new(input, 0) }
    }

    #[test]
    fn kept_tokens_have_prices_of_their_own() {
        let price = Price::new(3.0, 15.0).with_cached(0.3).with_cache_write(3.75);
        for (used, micros) in [
            (usage(1_000, 0, 0), 3_000),
            (usage(1_000, 1_000, 0), 300),
            (usage(1_000, 0, 1_000), 3_750),
            (usage(1_000, 600, 300), 180 + 1_125 + 300),
            (usage(10, 99, 99), 3),
        ] {
            assert_eq!(price.cost_of(&used), micros, "{used:?}");
            assert!(price.cost_of(&used) <= price.cost_max(used.input, 0));
        }
        let plain = Price::new(3.0, 15.0);
        assert_eq!(plain.cost_of(&usage(1_000, 600, 300)), 3_000, "without those prices");
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
