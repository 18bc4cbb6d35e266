//! The price of a model's tokens.

use crate::model::usage::Usage;

/// The price of a model's tokens, in whatever currency the operator uses.
///
/// ```
/// # extern crate pumphouse_model as pumphouse;
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
    /// Price of a million tokens of prompts, in millionths of the currency's unit.
    pub input_micros: u64,
    /// Price of a million tokens of replies, in millionths of the currency's unit.
    pub output_micros: u64,
    /// Price of a million prompt tokens that come from the provider's cache, in millionths of the
    /// currency's unit. None if such tokens cost as much as other prompt tokens.
    pub cached_micros: Option<u64>,
    /// Price of a million prompt tokens that the provider writes to its cache, in millionths of the
    /// currency's unit. None if such tokens cost as much as other prompt tokens.
    pub cache_write_micros: Option<u64>,
}

impl Price {
    /// A price for a million tokens of prompts, and a price for a million tokens of replies. Both
    /// are rounded to millionths. A negative price becomes 0.
    #[must_use]
    pub fn new(input: f64, output: f64) -> Price {
        Price {
            input_micros: micros(input),
            output_micros: micros(output),
            cached_micros: None,
            cache_write_micros: None,
        }
    }

    /// Sets the price of a million prompt tokens that come from the provider's cache.
    #[must_use]
    pub fn with_cached(self, cached: f64) -> Price {
        Price { cached_micros: Some(micros(cached)), ..self }
    }

    /// Sets the price of a million prompt tokens that the provider writes to its cache.
    #[must_use]
    pub fn with_cache_write(self, written: f64) -> Price {
        Price { cache_write_micros: Some(micros(written)), ..self }
    }

    /// The higher of two prices, field by field. If only one of the two has a price for tokens of
    /// the cache, that price is compared with the other's price of prompt tokens.
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

    /// The cost of these tokens, in millionths, without any use of the provider's cache. Rounded up
    /// to a whole millionth.
    #[must_use]
    pub fn cost(self, input: u64, output: u64) -> u64 {
        self.cost_of(&Usage::new(input, output))
    }

    /// The cost of a turn, in millionths, with the prices of tokens read from the provider's cache
    /// and written to it. Rounded up to a whole millionth.
    #[must_use]
    pub fn cost_of(self, usage: &Usage) -> u64 {
        let cached = usage.cached.min(usage.input);
        let written = usage.cache_written.min(usage.input - cached);
        let of = |tokens: u64, micros: u64| u128::from(tokens) * u128::from(micros);
        let whole = [
            of(usage.input - cached - written, self.input_micros),
            of(cached, self.cached_micros.unwrap_or(self.input_micros)),
            of(written, self.cache_write_micros.unwrap_or(self.input_micros)),
            of(usage.output, self.output_micros),
        ];
        let whole = whole.into_iter().fold(0, u128::saturating_add);
        u64::try_from(whole.div_ceil(1_000_000)).unwrap_or(u64::MAX)
    }

    /// The most that these tokens can cost, in millionths, however the provider uses its cache.
    #[must_use]
    pub fn cost_max(self, input: u64, output: u64) -> u64 {
        let of_prompt = [self.cached_micros, self.cache_write_micros].into_iter().flatten();
        let input_micros = of_prompt.fold(self.input_micros, u64::max);
        let flat = Price { input_micros, cached_micros: None, cache_write_micros: None, ..self };
        flat.cost(input, output)
    }

    /// The most reply tokens that an amount in millionths pays for, after a prompt of `input`
    /// tokens, however the provider uses its cache.
    #[must_use]
    pub fn reply_for(self, micros: u64, input: u64) -> u64 {
        let left = micros.saturating_sub(self.cost_max(input, 0));
        let tokens = u128::from(left) * 1_000_000 / u128::from(self.output_micros.max(1));
        u64::try_from(tokens).unwrap_or(u64::MAX)
    }
}

/// An amount in millionths. The cast saturates: negative amounts and NaN become 0.
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

    /// The usage of a prompt of `input` tokens. Of these, `cached` tokens came from the cache, and
    /// `cache_written` tokens were written to it.
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
    fn a_cost_that_is_too_large_to_add_up_is_the_most() {
        let price = Price::new(f64::MAX, f64::MAX);
        assert_eq!(price.cost(u64::MAX, u64::MAX), u64::MAX);
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
