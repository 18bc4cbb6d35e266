//! The listener `organism_state`: tells how the organism is, mostly as the source of a feed.
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
//! The state is a fold of the thread `organism`. There the pump records which listeners joined and
//! left, each agent records that its model begins to fail or works again, and the listener `alerts`
//! records alerts.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;

use pumphouse::listener::{Effects, Organism, OrganismFold, OrganismThread};
use pumphouse::prelude::*;
use pumphouse::wire::core::{Boot, ListenerJoined, ListenerLeft};

use super::super::feed_contents::pump_sources::whole_seconds;
use super::super::words::agent::{ModelDown, ModelUp};
use super::alerts::{OpenAlert, OpenAlerts, line};

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
    /// The number of agents whose models answer, as far as is known since the pump started.
    #[payload(attribute, example = "7")]
    pub healthy: u64,
    /// The number of alerts, with one for each agent that isn't healthy.
    #[payload(attribute)]
    pub alerts: u64,
    /// The same in words, with a line for each alert.
    #[payload(text, value, example = "Fleet nominal. 7 agents healthy. No alerts.")]
    pub text: String,
}

/// Makes the listener `organism_state`.
#[must_use]
pub fn organism_state() -> Listener {
    Listener::with_state(NAME, Arc::new(OrganismFold::<Known>::default()))
        .on(get)
        .grant::<Organism>()
        .describe("Tells how the organism is.")
        .effects(Effects::Reads)
        .idempotent()
        .stateless()
}

/// What the thread `organism` says about agents and alerts. A fold.
#[derive(Clone, Debug, Default)]
struct Known {
    agents: BTreeSet<String>,
    /// Maps an agent whose model fails to the time and the error of the first failure. A start of
    /// the pump empties it.
    down: BTreeMap<String, (u64, String)>,
    alerts: OpenAlerts,
}

impl Apply for Known {
    fn apply(&mut self, entry: &Entry) {
        self.alerts.apply(entry);
        if entry.is::<Boot>() {
            self.down.clear();
        } else if let Some(it) = entry.decode_if::<ListenerJoined>() {
            if it.is_agent {
                self.agents.insert(it.name);
            }
        } else if let Some(it) = entry.decode_if::<ListenerLeft>() {
            self.agents.remove(&it.name);
        } else if let Some(ModelDown { agent, text, .. }) = entry.decode_if() {
            self.down.entry(agent).or_insert((entry.at_us(), text));
        } else if let Some(ModelUp { agent, .. }) = entry.decode_if() {
            self.down.remove(&agent);
        }
    }
}

impl Known {
    fn state(&self) -> OrganismState {
        let down = self.agents.iter().filter(|it| self.down.contains_key(*it)).count();
        let (agents, healthy) = (self.agents.len(), self.agents.len() - down);
        let alerts = down + self.alerts.0.len();
        let mut text = match down {
            0 => format!("{} healthy.", counted(agents, "agent")),
            _ => format!("{healthy} of {} healthy.", counted(agents, "agent")),
        };
        if alerts == 0 {
            text = format!("Fleet nominal. {text} No alerts.");
        } else {
            _ = write!(text, " {}:", counted(alerts, "alert"));
        }
        for (agent, (at_us, why)) in &self.down {
            if self.agents.contains(agent) {
                let since = whole_seconds(*at_us);
                _ = write!(text, "\n- {agent}, since {since}: its model fails: {}", line(why));
            }
        }
        for (id, OpenAlert { at_us, by, text: what }) in &self.alerts.0 {
            let since = whole_seconds(*at_us);
            _ = write!(text, "\n- {id}, since {since}, by {by}: {}", line(what));
        }
        let count = |it| u64::try_from(it).unwrap_or(u64::MAX);
        let (agents, healthy, alerts) = (count(agents), count(healthy), count(alerts));
        OrganismState { agents, healthy, alerts, text }
    }
}

/// A number of things, such as `1 agent`.
fn counted(number: usize, thing: &str) -> String {
    let end = if number == 1 { "" } else { "s" };
    format!("{number} {thing}{end}")
}

async fn get(
    State(state): State<Arc<OrganismFold<Known>>>,
    organism: OrganismThread,
    _: GetOrganismState,
) -> Result<OrganismState, Fault> {
    state.with(&organism, Known::state).await
}
