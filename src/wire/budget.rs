//! The payloads about budgets and loops: charges, warnings, reports of spent budgets, and raises of
//! budgets.

use std::fmt;

use crate::wire::Payload;

/// What a budget limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Payload)]
// Exhaustive: code that keeps budgets has to handle every key.
pub enum BudgetKey {
    /// Messages that listeners get, without those that the pump itself sends.
    Messages,
    /// Turns of one listener in one thread.
    Turns,
    /// Levels of threads below the session.
    Depth,
    /// Threads below the session that are open at once.
    Children,
    /// Tokens of models.
    Tokens,
    /// Seconds since the session was opened.
    Seconds,
    /// Money, in millionths of the operator's currency.
    CostMicros,
}

impl BudgetKey {
    /// Every key.
    pub const ALL: [BudgetKey; 7] = [
        BudgetKey::Messages,
        BudgetKey::Turns,
        BudgetKey::Depth,
        BudgetKey::Children,
        BudgetKey::Tokens,
        BudgetKey::Seconds,
        BudgetKey::CostMicros,
    ];

    /// Returns the key's name in payloads, such as `cost-micros`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            BudgetKey::Messages => "messages",
            BudgetKey::Turns => "turns",
            BudgetKey::Depth => "depth",
            BudgetKey::Children => "children",
            BudgetKey::Tokens => "tokens",
            BudgetKey::Seconds => "seconds",
            BudgetKey::CostMicros => "cost-micros",
        }
    }
}

impl fmt::Display for BudgetKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Raises a budget of a tree of threads. Only operators may do so. Threads that waited because a
/// budget was spent go on. The answer is `budget-raised`.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/core/v1")]
pub struct RaiseBudget {
    /// The budget.
    #[payload(attribute)]
    pub key: BudgetKey,
    /// How much to add. Give either `by` or `to`.
    #[payload(attribute)]
    pub by: Option<u64>,
    /// The new limit, or `unlimited`. Give either `by` or `to`.
    #[payload(attribute, no_example, pattern = "[0-9]+|unlimited", example = "200")]
    pub to: Option<String>,
}

/// A budget of a tree of threads was raised.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/core/v1", reserved)]
pub struct BudgetRaised {
    /// The budget.
    #[payload(attribute)]
    pub key: BudgetKey,
    /// The new limit, or `unlimited`.
    #[payload(attribute, pattern = "[0-9]+|unlimited", example = "200")]
    pub limit: String,
    /// The operator that raised it.
    #[payload(attribute, example = "ada")]
    pub by: String,
}

/// A budget is spent to 75, 90 or 95 percent. The pump reports each percentage at most once per
/// limit.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/core/v1", reserved, bookkeeping)]
pub struct BudgetWarning {
    /// The budget.
    #[payload(attribute)]
    pub key: BudgetKey,
    /// The percentage that was reached: 75, 90 or 95.
    #[payload(attribute, example = "75")]
    pub percent: u8,
    /// The amount spent.
    #[payload(attribute, example = "150")]
    pub used: u64,
    /// The limit.
    #[payload(attribute, example = "200")]
    pub limit: u64,
    /// For `turns`: the thread.
    #[payload(attribute, example = "sess-k3v9x2ma.research")]
    pub thread: Option<String>,
    /// For `turns`: the listener.
    #[payload(attribute, example = "researcher")]
    pub listener: Option<String>,
}

/// A budget is spent. The thread waits until an operator raises the budget.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/core/v1", reserved, bookkeeping)]
pub struct OverBudget {
    /// The budget.
    #[payload(attribute)]
    pub key: BudgetKey,
    /// The amount spent.
    #[payload(attribute, example = "200")]
    pub used: u64,
    /// The limit.
    #[payload(attribute, example = "200")]
    pub limit: u64,
}

/// A listener's reservation or settlement in the budgets of a tree of threads.
///
/// A listener reserves before its work, and settles after it. Over all charges, `turns`, `tokens`
/// and `cost_micros` add up to what is spent. The fields from `model` on describe a request to a
/// model.
#[derive(Clone, Debug, Default, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/core/v1", reserved, bookkeeping)]
pub struct Charge {
    /// Turns of the listener in the thread. A negative number gives turns back.
    #[payload(attribute)]
    pub turns: i64,
    /// Tokens of models. A negative number gives tokens back.
    #[payload(attribute)]
    pub tokens: i64,
    /// Money, in millionths of the operator's currency. A negative number gives money back.
    #[payload(attribute)]
    pub cost_micros: i64,
    /// Whether the charge is a settlement. No limit refuses a settlement.
    #[payload(attribute)]
    pub settled: bool,
    /// The model that is asked, if any.
    #[payload(attribute, example = "small at http://127.0.0.1:8080/v1")]
    pub model: Option<String>,
    /// Tokens of the prompt: the expected number in a reservation, the used number in a settlement.
    #[payload(attribute)]
    pub tokens_in: Option<u64>,
    /// Tokens of the reply: the maximum in a reservation, the used number in a settlement.
    #[payload(attribute)]
    pub tokens_out: Option<u64>,
    /// Tokens of a settled prompt that the provider read from its cache.
    #[payload(attribute)]
    pub tokens_cached: Option<u64>,
    /// Tokens of a settled prompt that the provider wrote to its cache.
    #[payload(attribute)]
    pub tokens_cache_written: Option<u64>,
    /// The cost of a settled turn, in millionths of the operator's currency. Absent if the price
    /// isn't known.
    #[payload(attribute)]
    pub spent_micros: Option<u64>,
    /// Whether a settlement's tokens are an estimate, because the provider didn't report them.
    #[payload(attribute)]
    pub estimated: Option<bool>,
    /// Whether the pump booked a settlement for a handler that it stopped.
    #[payload(attribute)]
    pub stopped: Option<bool>,
}

impl Charge {
    /// Returns the reservation for a request to a model: the prompt's tokens, the most tokens that
    /// the reply may have, and the cost of these tokens.
    #[must_use]
    pub fn of_request(model: String, (prompt, reply): (u64, u64), cost_micros: u64) -> Charge {
        Charge {
            tokens: whole(prompt.saturating_add(reply)),
            cost_micros: whole(cost_micros),
            model: Some(model),
            tokens_in: Some(prompt),
            tokens_out: Some(reply),
            ..Charge::default()
        }
    }

    /// Returns the settlement of this reservation, from the tokens of the prompt and of the reply,
    /// and from their cost. The `tokens` and `cost_micros` of the settlement are the differences
    /// from the reservation. Reserved turns stay spent.
    #[must_use]
    pub fn settlement(
        &self,
        (prompt, reply): (u64, u64),
        cost_micros: Option<u64>,
        is_estimate: bool,
    ) -> Charge {
        Charge {
            turns: 0,
            tokens: whole(prompt.saturating_add(reply)).saturating_sub(self.tokens),
            cost_micros: whole(cost_micros.unwrap_or(0)).saturating_sub(self.cost_micros),
            settled: true,
            model: self.model.clone(),
            tokens_in: Some(prompt),
            tokens_out: Some(reply),
            spent_micros: cost_micros,
            estimated: is_estimate.then_some(true),
            ..Charge::default()
        }
    }

    /// Returns this settlement with two counts of prompt tokens: those that the provider read from
    /// its cache, and those that it wrote to its cache. A count of zero is left out.
    #[must_use]
    pub fn with_cache(self, cached: u64, written: u64) -> Charge {
        let some = |tokens: u64| Some(tokens).filter(|it| *it > 0);
        Charge { tokens_cached: some(cached), tokens_cache_written: some(written), ..self }
    }
}

fn whole(amount: u64) -> i64 {
    i64::try_from(amount).unwrap_or(i64::MAX)
}

/// Messages go round in a circle. The pump refuses the next message of the circle.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/core/v1", reserved, bookkeeping)]
pub struct LoopWarning {
    /// The listener that sent the last message.
    #[payload(attribute, example = "researcher")]
    pub listener: String,
    /// The limit that was reached: `repeats_max`, `chain_max` or `again_max`.
    #[payload(attribute, example = "repeats_max")]
    pub limit: String,
    /// The limit's value.
    #[payload(attribute, example = "3")]
    pub value: u64,
}
