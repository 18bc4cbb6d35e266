//! Payloads about budgets and loops: charges, warnings, spent budgets and raises.

use std::fmt;

use crate::wire::Payload;

/// What a budget is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Payload)]
// Exhaustive: code that keeps budgets has to handle every key.
pub enum BudgetKey {
    /// Messages that listeners were given, but for the pump's own.
    Messages,
    /// Turns of one listener in one thread.
    Turns,
    /// Threads above one another below the session.
    Depth,
    /// Threads below the session that live at once.
    Children,
    /// Tokens of models.
    Tokens,
    /// Seconds since the session was opened.
    Seconds,
    /// Millionths of whatever money the operator counts in.
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

    /// The key's name in payloads, such as `cost-micros`.
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

/// Lets a tree of threads spend more: an operator's word. What had run out of it goes on, and the
/// answer is `budget-raised`.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/core/v1")]
pub struct RaiseBudget {
    /// Of what.
    #[payload(attribute)]
    pub key: BudgetKey,
    /// How much more; this or `to`.
    #[payload(attribute)]
    pub by: Option<u64>,
    /// The new limit, or `unlimited`; instead of `by`.
    #[payload(attribute, no_example, pattern = "[0-9]+|unlimited", example = "200")]
    pub to: Option<String>,
}

/// A tree of threads may spend more from here on.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/core/v1", reserved)]
pub struct BudgetRaised {
    /// Of what.
    #[payload(attribute)]
    pub key: BudgetKey,
    /// The limit from here on, or `unlimited`.
    #[payload(attribute, pattern = "[0-9]+|unlimited", example = "200")]
    pub limit: String,
    /// Who wanted it.
    #[payload(attribute, example = "ada")]
    pub by: String,
}

/// Most of a budget is spent. It is said once at 75, at 90 and at 95 percent of a limit.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/core/v1", reserved, bookkeeping)]
pub struct BudgetWarning {
    /// Of what.
    #[payload(attribute)]
    pub key: BudgetKey,
    /// How much of a hundred is spent at least.
    #[payload(attribute, example = "75")]
    pub percent: u8,
    /// How much is spent.
    #[payload(attribute, example = "150")]
    pub used: u64,
    /// How much there is.
    #[payload(attribute, example = "200")]
    pub limit: u64,
    /// The thread whose turns they are.
    #[payload(attribute, example = "sess-k3v9x2ma.research")]
    pub thread: Option<String>,
    /// The listener whose turns they are.
    #[payload(attribute, example = "researcher")]
    pub listener: Option<String>,
}

/// A budget is spent: nothing more runs here until an operator raises it.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/core/v1", reserved, bookkeeping)]
pub struct OverBudget {
    /// Of what.
    #[payload(attribute)]
    pub key: BudgetKey,
    /// How much is spent.
    #[payload(attribute, example = "200")]
    pub used: u64,
    /// How much there is.
    #[payload(attribute, example = "200")]
    pub limit: u64,
}

/// What a listener reserved or settled, in a tree of threads.
///
/// A reservation stands before the work, a settlement after it: `turns`, `tokens` and `cost_micros`
/// add up to what is spent. What concerns a model says so beside them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/core/v1", reserved, bookkeeping)]
pub struct Charge {
    /// Turns of the listener in the thread; fewer than none gives some back.
    #[payload(attribute)]
    pub turns: i64,
    /// Tokens.
    #[payload(attribute)]
    pub tokens: i64,
    /// Millionths of money.
    #[payload(attribute)]
    pub cost_micros: i64,
    /// Whether it says what was spent, whatever the limits are.
    #[payload(attribute)]
    pub settled: bool,
    /// The model that is asked, where one is.
    #[payload(attribute, example = "small at http://127.0.0.1:8080/v1")]
    pub model: Option<String>,
    /// Tokens of the prompt: those of a settlement were used, those of a reservation are expected.
    #[payload(attribute)]
    pub tokens_in: Option<u64>,
    /// Tokens of the reply; of a reservation, the most that it may have.
    #[payload(attribute)]
    pub tokens_out: Option<u64>,
    /// Of the tokens of a settled prompt, those that the provider had kept from an earlier one.
    #[payload(attribute)]
    pub tokens_cached: Option<u64>,
    /// Of the tokens of a settled prompt, those that the provider keeps for later ones.
    #[payload(attribute)]
    pub tokens_cache_written: Option<u64>,
    /// What a settled turn cost in millionths of money; none where its price isn't known.
    #[payload(attribute)]
    pub spent_micros: Option<u64>,
    /// Whether the tokens of a settlement are an estimate: the provider didn't say.
    #[payload(attribute)]
    pub estimated: Option<bool>,
}

impl Charge {
    /// The reservation for a request to a model: the prompt's tokens, the most tokens that the
    /// reply may have, and what those cost.
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

    /// The settlement of this reservation, from the tokens of the prompt and of the reply, and from
    /// their cost. It accounts for the difference to the reservation; reserved turns stay spent.
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

    /// This settlement with two counts of prompt tokens: those that the provider read from its
    /// cache, and those that it wrote to its cache. A count of zero is left out.
    #[must_use]
    pub fn with_cache(self, cached: u64, written: u64) -> Charge {
        let some = |tokens: u64| Some(tokens).filter(|it| *it > 0);
        Charge { tokens_cached: some(cached), tokens_cache_written: some(written), ..self }
    }
}

fn whole(amount: u64) -> i64 {
    i64::try_from(amount).unwrap_or(i64::MAX)
}

/// Messages go round in a circle: what comes next of them is refused.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/core/v1", reserved, bookkeeping)]
pub struct LoopWarning {
    /// The listener that goes on.
    #[payload(attribute, example = "researcher")]
    pub listener: String,
    /// The bound that was reached.
    #[payload(attribute, example = "repeats_max")]
    pub limit: String,
    /// Its value.
    #[payload(attribute, example = "3")]
    pub value: u64,
}
