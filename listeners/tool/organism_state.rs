//! The listener `organism_state`: reports the health of the organism, mostly as the source of a
//! feed.
//!
//! ```yaml
//! listeners:
//!   - {use: organism_state}
//!   - {use: alerts, settings: {raised_by: [monitor]}}
//!   - use: agent
//!     name: octopus
//!     model: local
//!     context_feeds:
//!       - {id: fleet, source: {type: tool, name: organism_state}}
//! ```
//!
//! ```text
//! Fleet nominal. 7 agents healthy. No alerts.
//! ```
//!
//! The state is a fold of the thread `organism`. In this thread, each agent records when its model
//! begins to fail and when the model works again. The listener `alerts` records alerts there.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use pumphouse::clock;
use pumphouse::listener::{Organism, OrganismFold, OrganismThread};
use pumphouse::prelude::*;
use pumphouse::wire::core::Boot;

use super::alerts::{OpenAlert, OpenAlerts, line};
use pumphouse::listeners::feed_contents::pump_sources::whole_seconds;
use pumphouse::listeners::words::agent::{ModelDown, ModelUp};

/// The listener's default name.
const NAME: &str = "organism_state";

/// Asks how the organism is. The answer is `organism-state`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/organism_state/v1")]
pub struct GetOrganismState {}

/// How the organism is.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/organism_state/v1")]
pub struct OrganismState {
    /// The number of agents.
    #[payload(attribute, example = "7")]
    pub agents: u64,
    /// The number of agents whose models aren't known to fail.
    #[payload(attribute, example = "7")]
    pub healthy: u64,
    /// The number of open alerts; each agent that isn't healthy counts as one, too.
    #[payload(attribute)]
    pub alerts: u64,
    /// The same in words, with a line for each alert.
    #[payload(text, value, example = "Fleet nominal. 7 agents healthy. No alerts.")]
    pub text: String,
}

/// Makes the listener `organism_state`.
#[must_use]
pub fn organism_state() -> Listener {
    let state = Status { since_us: clock::now_us(), known: OrganismFold::default() };
    Listener::with_state(NAME, Arc::new(state))
        .on(get)
        .grant::<Organism>()
        .describe("Tells how the organism is.")
        .reader()
        .stateless()
}

/// The state of the listener.
struct Status {
    /// The time when the listener was made, in microseconds since 1970. A failure that was recorded
    /// earlier says nothing about a model now.
    since_us: u64,
    known: OrganismFold<Health>,
}

/// A fold of the thread `organism`: the models that fail, and the open alerts.
#[derive(Clone, Debug, Default)]
struct Health {
    /// For each agent whose model fails, the time and the error of the recorded failure.
    down: BTreeMap<String, (u64, String)>,
    alerts: OpenAlerts,
}

impl Apply for Health {
    fn apply(&mut self, entry: &Entry) {
        self.alerts.apply(entry);
        if entry.is::<Boot>() {
            self.down.clear();
        } else if let Some(ModelDown { agent, text, .. }) = entry.decode_if() {
            self.down.insert(agent, (entry.at_us(), text));
        } else if let Some(ModelUp { agent, .. }) = entry.decode_if() {
            self.down.remove(&agent);
        }
    }
}

impl Health {
    /// Returns the state of an organism with these agents.
    fn state(&self, agents: &[&str], since_us: u64) -> OrganismState {
        let down = agents.iter().filter_map(|agent| Some((agent, self.down.get(*agent)?)));
        let down: Vec<_> = down.filter(|(_, (at_us, _))| *at_us >= since_us).collect();
        let (healthy, alerts) = (agents.len() - down.len(), down.len() + self.alerts.0.len());
        let mut text = match down.len() {
            0 => format!("{} healthy.", counted(healthy, "agent")),
            _ => format!("{healthy} of {} healthy.", counted(agents.len(), "agent")),
        };
        if alerts == 0 {
            text = format!("Fleet nominal. {text} No alerts.");
        } else {
            _ = write!(text, " {}:", counted(alerts, "alert"));
        }
        for (agent, (at_us, why)) in down {
            let since = whole_seconds(*at_us);
            _ = write!(text, "\n- {agent}, since {since}: its model fails: {}", line(why));
        }
        for (id, OpenAlert { at_us, by, text: what }) in &self.alerts.0 {
            let since = whole_seconds(*at_us);
            _ = write!(text, "\n- {id}, since {since}, by {by}: {}", line(what));
        }
        let count = |it| u64::try_from(it).unwrap_or(u64::MAX);
        let (agents, healthy, alerts) = (count(agents.len()), count(healthy), count(alerts));
        OrganismState { agents, healthy, alerts, text }
    }
}

/// Returns the number of things in words, such as `1 agent`.
fn counted(number: usize, thing: &str) -> String {
    let end = if number == 1 { "" } else { "s" };
    format!("{number} {thing}{end}")
}

async fn get(
    State(status): State<Arc<Status>>,
    organism: OrganismThread,
    all: Capabilities,
    _: GetOrganismState,
) -> Result<OrganismState, Fault> {
    let agents = all.listeners().iter().filter(|it| it.kind == "agent");
    let agents: Vec<&str> = agents.map(|it| &*it.name).collect();
    status.known.with(&organism, |it| it.state(&agents, status.since_us)).await
}
