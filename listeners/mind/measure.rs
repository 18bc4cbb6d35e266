//! What an agent's turns have shown about the tokens of its model: how many tokens the provider
//! counts for an estimated one, and how many the model takes.

use super::super::words::agent::ContextFull;

/// Prompts of fewer tokens measure the provider's own words around the prompt more than its text.
const ESTIMATED_MIN: u64 = 500;
/// The most tokens that are counted for an estimated one: a quarter of the bytes is estimated, and
/// hardly any text has more than two tokens for each byte.
const RATIO_MAX: u64 = 8;

/// What turns have shown about the tokens of a model.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Measure {
    /// The description of the model that was measured.
    model: String,
    /// The estimated tokens of the newest prompt.
    estimated: u64,
    /// The counted and the estimated tokens of the same prompt.
    ratio: Option<(u64, u64)>,
    /// The most tokens that the provider may accept.
    window: Option<u64>,
}

impl Measure {
    /// Records the prompt of a turn that begins. What is known of another model doesn't count.
    pub(super) fn begin(&mut self, model: &str, estimated: Option<u64>) {
        if self.model != model {
            *self = Measure { model: model.to_owned(), ..Measure::default() };
        }
        self.estimated = estimated.unwrap_or(0);
    }

    /// Records the provider's count of the newest prompt.
    pub(super) fn count(&mut self, tokens: u64) {
        if self.estimated >= ESTIMATED_MIN && tokens > 0 {
            self.ratio = Some((tokens, self.estimated));
        }
        // What was accepted fits.
        self.window = self.window.filter(|window| tokens <= *window);
    }

    /// Records that the provider refused the newest prompt as too long.
    pub(super) fn refuse(&mut self, it: &ContextFull) {
        if self.estimated > 0 {
            self.ratio = Some((it.tokens, self.estimated));
        }
        let accepted = it.tokens.saturating_sub(1).min(it.window);
        self.window = Some(self.window.map_or(accepted, |before| before.min(accepted)));
    }

    /// The tokens of a text that a model estimates at so many. Never fewer than that, because some
    /// providers count only the part of a prompt that isn't in their cache.
    pub(super) fn tokens(&self, model: &str, estimated: u64) -> u64 {
        let Some((counted, of)) = self.ratio.filter(|_| self.model == model) else {
            return estimated;
        };
        let counted = counted.clamp(of, of.saturating_mul(RATIO_MAX));
        let tokens = u128::from(estimated) * u128::from(counted);
        u64::try_from(tokens.div_ceil(u128::from(of))).unwrap_or(u64::MAX)
    }

    /// The most tokens that a model takes: those that it declares, or fewer if its provider refused
    /// a shorter prompt. None if neither is known.
    pub(super) fn window(&self, model: &str, declared: Option<u64>) -> Option<u64> {
        let learned = self.window.filter(|_| self.model == model);
        declared.into_iter().chain(learned).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(estimated: u64) -> Measure {
        let mut it = Measure::default();
        it.begin("m", Some(estimated));
        it
    }

    fn full(tokens: u64, window: u64) -> ContextFull {
        ContextFull { tokens, window, keep: None, is_refused: Some(true) }
    }

    #[test]
    fn an_estimate_becomes_what_the_provider_counts() {
        let mut it = measured(600);
        assert_eq!((it.tokens("m", 600), it.window("m", None)), (600, None));
        it.count(800);
        assert_eq!((it.tokens("m", 600), it.tokens("m", 901)), (800, 1_202));
        assert_eq!(it.tokens("other", 600), 600);
        // A count without the cached part of the prompt makes no estimate smaller.
        it.count(7);
        assert_eq!(it.tokens("m", 600), 600);
        it.count(1_000_000);
        assert_eq!(it.tokens("m", 600), 4_800);
        it.begin("other", Some(600));
        assert_eq!(it.tokens("other", 600), 600);
    }

    #[test]
    fn a_short_prompt_measures_nothing() {
        let mut it = measured(20);
        it.count(60);
        assert_eq!(it.tokens("m", 1_000), 1_000);
    }

    #[test]
    fn a_refusal_shows_the_window_and_a_longer_prompt_that_is_accepted_another() {
        let mut it = measured(100);
        it.refuse(&full(150, 128));
        assert_eq!((it.window("m", None), it.window("m", Some(100))), (Some(128), Some(100)));
        assert_eq!(it.tokens("m", 100), 150);
        it.refuse(&full(120, 128));
        assert_eq!(
            (it.window("m", Some(200)), it.window("other", Some(200))),
            (Some(119), Some(200))
        );
        it.count(119);
        assert_eq!(it.window("m", None), Some(119));
        it.count(130);
        assert_eq!(it.window("m", None), None);
    }
}
