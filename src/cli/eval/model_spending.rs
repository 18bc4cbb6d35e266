//! The model usage of runs, as kept results have it.

use serde::{Deserialize, Serialize};

/// The model usage of one run or of several runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ModelSpending {
    /// Tokens of prompts and replies.
    pub(super) tokens: i64,
    /// The cost, in millionths of the currency's unit. None if some of the tokens have no price.
    pub(super) cost_micros: Option<i64>,
}

impl Default for ModelSpending {
    fn default() -> ModelSpending {
        ModelSpending { tokens: 0, cost_micros: Some(0) }
    }
}

impl ModelSpending {
    /// Returns the sum of two usages.
    pub(super) fn plus(self, it: ModelSpending) -> ModelSpending {
        let cost = self.cost_micros.zip(it.cost_micros);
        ModelSpending {
            tokens: self.tokens.saturating_add(it.tokens),
            cost_micros: cost.map(|(one, other)| one.saturating_add(other)),
        }
    }
}
