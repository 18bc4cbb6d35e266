//! The tokens of a turn.

/// Tokens of a turn, as the provider counts them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Usage {
    /// Tokens of the prompt.
    pub input: u64,
    /// Tokens of the reply, reasoning included.
    pub output: u64,
    /// Tokens of the prompt that came from the provider's cache.
    pub cached: u64,
    /// Tokens of the prompt that the provider wrote to its cache.
    pub cache_written: u64,
    /// Tokens of the reply that were reasoning.
    pub reasoning: u64,
    /// The turn's cost in millionths of the provider's currency, if the provider says it.
    pub cost_micros: Option<u64>,
}

impl Usage {
    /// A usage of these tokens of the prompt and of the reply, and nothing else.
    #[must_use]
    pub fn new(input: u64, output: u64) -> Usage {
        Usage { input, output, ..Usage::default() }
    }

    /// The usage after newer counts. Each count covers the whole reply so far, so a newer count of
    /// 0 takes nothing back.
    pub(crate) fn recounted(self, newer: Usage) -> Usage {
        let count = |counted, newer| if newer > 0 { newer } else { counted };
        Usage {
            input: count(self.input, newer.input),
            output: count(self.output, newer.output),
            cached: count(self.cached, newer.cached),
            cache_written: count(self.cache_written, newer.cache_written),
            reasoning: count(self.reasoning, newer.reasoning),
            cost_micros: newer.cost_micros.filter(|it| *it > 0).or(self.cost_micros),
        }
    }
}
