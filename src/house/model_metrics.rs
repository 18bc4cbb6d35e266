//! Metrics of models, for the door that shows metrics.

use crate::door::Family;
use crate::model::{Asking, Load, Models};

/// Metrics of these models, for [`Metrics::source`](crate::door::Metrics::source): the load of
/// models that have limits, and how often each model of a router answered or failed.
///
/// ```
/// # extern crate pumphouse_organism as pumphouse;
/// use pumphouse::door::Metrics;
/// use pumphouse::listeners::model_metrics;
/// use pumphouse::model::Models;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let door = Metrics::bind("127.0.0.1:0").await?.source(model_metrics(Models::default()));
/// # let _ = door;
/// # Ok(()) }
/// ```
pub fn model_metrics(models: Models) -> impl Fn() -> Vec<Family> + Send + Sync + 'static {
    move || loads(&models).into_iter().chain(asking(&models)).collect()
}

/// The load of models that have limits.
fn loads(models: &Models) -> Vec<Family> {
    let loads = models.iter().filter_map(|(name, it)| Some((name, it.load()?)));
    let loads: Vec<(&str, Load)> = loads.collect();
    let each = |family: Family, count: fn(&Load) -> u64| {
        let add = |family: Family, (model, it): &(&str, Load)| {
            family.value(&[("model", model)], count(it))
        };
        loads.iter().fold(family, add)
    };
    let held_up = "Turns that waited, since the limits of their model were reached.";
    let all = [
        each(Family::gauge("model_replies", "Replies that a model has under way."), |it| {
            it.under_way
        }),
        each(Family::gauge("model_waiting", "Turns that wait for a model."), |it| it.waiting),
        each(Family::counter("model_held_up_total", held_up), |it| it.held_up),
    ];
    if loads.is_empty() { Vec::new() } else { all.into() }
}

/// How often each model of each router answered or failed.
fn asking(models: &Models) -> Vec<Family> {
    let all = models
        .iter()
        .flat_map(|(router, it)| it.asking().into_iter().map(move |asked| (router, asked)));
    let all: Vec<(&str, Asking)> = all.collect();
    let each = |family: Family, count: fn(&Asking) -> u64| {
        let add = |family: Family, (router, asked): &(&str, Asking)| {
            family.value(&[("router", router), ("model", &asked.name)], count(asked))
        };
        all.iter().fold(family, add)
    };
    let answered = "Turns of a router that this model answered.";
    let failed = "Requests of a router that failed, and replies that broke off.";
    let over = "Turns of a router that another model answered, because this one had failed.";
    let families = [
        each(Family::counter("router_answered_total", answered), |it| it.answered),
        each(Family::counter("router_failed_total", failed), |it| it.failed),
        each(Family::counter("router_failed_over_total", over), |it| it.failed_over),
    ];
    if all.is_empty() { Vec::new() } else { families.into() }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::model::{Kind, Model as _, Policy, Prompt, Router, Script, Scripted};

    #[tokio::test]
    async fn a_router_shows_what_became_of_each_model_s_turns() {
        let down = Scripted::replies([Script::text("").fails(0, Kind::Unreachable)]);
        let up = Scripted::replies(["Hello."]);
        let router = Router::new("best", Policy::Failover)
            .model("large", Arc::new(down))
            .model("small", Arc::new(up));
        drop(router.turn(Prompt::new("Go.")).await.unwrap());
        let mut models = Models::default();
        models.insert("best", Arc::new(router));
        models.insert("alone", Arc::new(Scripted::replies(["a"])));
        let value = |family: Family, counts: [u64; 2]| {
            let model = |name| [("router", "best"), ("model", name)];
            family.value(&model("large"), counts[0]).value(&model("small"), counts[1])
        };
        let answered = "Turns of a router that this model answered.";
        let failed = "Requests of a router that failed, and replies that broke off.";
        let over = "Turns of a router that another model answered, because this one had failed.";
        let expected = [
            value(Family::counter("router_answered_total", answered), [0, 1]),
            value(Family::counter("router_failed_total", failed), [1, 0]),
            value(Family::counter("router_failed_over_total", over), [1, 0]),
        ];
        assert_eq!(model_metrics(models)(), expected);
    }
}
