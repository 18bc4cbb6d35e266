//! The listener `alerts`: keeps the alerts that operators and listed senders raise.
//!
//! ```yaml
//! listeners:
//!   - {use: alerts, settings: {raised_by: [monitor]}}
//!   - {use: organism_state}
//! ```
//!
//! Each alert is recorded in the thread `organism`, so the alert outlives the pump.
//! [`organism_state`](super::organism_state) lists the open alerts.

use std::collections::BTreeMap;
use std::sync::Arc;

use pumphouse::listener::{DoorAccess, Effects, Organism, OrganismFold, OrganismThread};
use pumphouse::log::Flags;
use pumphouse::prelude::*;
use serde::Deserialize;

use pumphouse::listeners::caller::caller;

/// The listener's default name.
const NAME: &str = "alerts";
/// The maximum number of alerts that are open at a time.
const ALERTS_MAX: usize = 100;
/// The maximum number of bytes of an alert's id. The same limit holds for the alert's text.
const ALERT_BYTES_MAX: usize = 1_024;

/// Raises an alert, or changes the text of an open one. The answer is `alert-raised`.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/alerts/v1")]
pub struct RaiseAlert {
    /// The alert's id.
    #[payload(attribute, example = "disk")]
    pub id: String,
    /// What is wrong.
    #[payload(text, example = "The disk of db1 is full.")]
    pub text: String,
}

/// Clears an alert. The answer is `alert-cleared`.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/alerts/v1")]
pub struct ClearAlert {
    /// The alert's id.
    #[payload(attribute, example = "disk")]
    pub id: String,
}

/// An alert was raised. This payload is recorded in the thread `organism`, too.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/alerts/v1", reserved)]
pub struct AlertRaised {
    /// The alert's id.
    #[payload(attribute, example = "disk")]
    pub id: String,
    /// Who raised it.
    #[payload(attribute, example = "monitor")]
    pub by: String,
    /// What is wrong.
    #[payload(text, value, example = "The disk of db1 is full.")]
    pub text: String,
}

/// An alert was cleared. This payload is recorded in the thread `organism`, too.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/alerts/v1", reserved)]
pub struct AlertCleared {
    /// The alert's id.
    #[payload(attribute, value, example = "disk")]
    pub id: String,
    /// Who cleared it.
    #[payload(attribute, note, example = "monitor")]
    pub by: String,
}

/// An alert can't be raised or cleared.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/alerts/v1")]
pub struct AlertRefused {
    /// Why, and how to correct it.
    #[payload(value, example = "no alert dsik is open; disk is")]
    pub text: String,
}

/// The `settings` of `use: alerts` in a manifest.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Settings {
    /// The senders that may raise and clear alerts, besides operators.
    #[serde(default)]
    pub raised_by: Vec<String>,
}

/// Makes the listener `alerts`.
#[must_use]
pub fn alerts(settings: Settings) -> Listener {
    let state = Desk { raised_by: settings.raised_by, open: OrganismFold::default() };
    Listener::with_state(NAME, Arc::new(state))
        .on(raise)
        .on(clear)
        .grant::<Organism>()
        .grant::<EmitCore>()
        .describe("Keeps alerts about the organism.")
        .effects(Effects::Writes)
        // The settings say who may raise alerts.
        .door(DoorAccess::Everybody)
        .serial()
        .idempotent()
        .stateless()
}

/// The state of the listener.
struct Desk {
    /// The senders that may raise and clear alerts, besides operators.
    raised_by: Vec<String>,
    open: OrganismFold<OpenAlerts>,
}

/// A fold of the thread `organism`: the open alerts, by their ids.
#[derive(Clone, Debug, Default)]
pub(super) struct OpenAlerts(pub(super) BTreeMap<String, OpenAlert>);

/// An open alert.
#[derive(Clone, Debug)]
pub(super) struct OpenAlert {
    /// The time since which the alert is open, in microseconds since 1970.
    pub(super) at_us: u64,
    pub(super) by: String,
    pub(super) text: String,
}

impl Apply for OpenAlerts {
    fn apply(&mut self, entry: &Entry) {
        if let Some(AlertRaised { id, by, text }) = entry.decode_if() {
            let at_us = self.0.get(&id).map_or_else(|| entry.at_us(), |it| it.at_us);
            self.0.insert(id, OpenAlert { at_us, by, text });
        } else if let Some(AlertCleared { id, .. }) = entry.decode_if() {
            self.0.remove(&id);
        }
    }
}

/// Joins the words of a text with single spaces. The result is one line.
pub(super) fn line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

impl Desk {
    /// Returns the caller's name, or a refusal if the caller may not raise and clear alerts.
    async fn caller(
        &self,
        message: &Message,
        history: &History,
    ) -> Result<Result<String, AlertRefused>, Fault> {
        let by = caller(message, history).await?;
        let may = message.flags().contains(Flags::FROM_OPERATOR) || self.raised_by.contains(&by);
        let text = || {
            format!(
                "{by} may raise and clear no alerts; operators and the senders in the setting \
                 `raised_by` may"
            )
        };
        Ok(if may { Ok(by) } else { Err(AlertRefused { text: text() }) })
    }
}

async fn raise(
    State(desk): State<Arc<Desk>>,
    message: Message,
    history: History,
    organism: OrganismThread,
    RaiseAlert { id, text }: RaiseAlert,
) -> Result<Result<AlertRaised, AlertRefused>, Fault> {
    let by = match desk.caller(&message, &history).await? {
        Ok(it) => it,
        Err(no) => return Ok(Err(no)),
    };
    let refused = |text: String| Ok(Err(AlertRefused { text }));
    if id.trim().is_empty() || line(&id) != id {
        return refused("an alert has an id of one line".to_owned());
    }
    if text.trim().is_empty() {
        return refused(format!("the alert {id} says nothing"));
    }
    if id.len().max(text.len()) > ALERT_BYTES_MAX {
        return refused(format!(
            "an alert's id and text have at most {ALERT_BYTES_MAX} bytes each"
        ));
    }
    let is_full = |known: &OpenAlerts| known.0.len() >= ALERTS_MAX && !known.0.contains_key(&id);
    if desk.open.with(&organism, is_full).await? {
        return refused(format!("{ALERTS_MAX} alerts are open; clear one first"));
    }
    let raised = AlertRaised { id, by, text };
    organism.record(&raised).await?;
    Ok(Ok(raised))
}

async fn clear(
    State(desk): State<Arc<Desk>>,
    message: Message,
    history: History,
    organism: OrganismThread,
    ClearAlert { id }: ClearAlert,
) -> Result<Result<AlertCleared, AlertRefused>, Fault> {
    let by = match desk.caller(&message, &history).await? {
        Ok(it) => it,
        Err(no) => return Ok(Err(no)),
    };
    let open = |known: &OpenAlerts| known.0.keys().cloned().collect::<Vec<String>>();
    let open = desk.open.with(&organism, open).await?;
    if !open.contains(&id) {
        let there = match &*open {
            [] => "none is".to_owned(),
            [one] => format!("{one} is"),
            all => format!("{} are", all.join(", ")),
        };
        let text = format!("no alert {id} is open; {there}");
        return Ok(Err(AlertRefused { text }));
    }
    let cleared = AlertCleared { id, by };
    organism.record(&cleared).await?;
    Ok(Ok(cleared))
}
