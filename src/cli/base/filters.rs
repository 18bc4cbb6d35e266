//! The options that say which messages are wanted.

use crate::audit::{Called, Filter, StateWord, When, Words};
use crate::clock;

/// Which messages are wanted. Without options, all messages are. Several options of one kind widen
/// the choice; options of different kinds narrow it.
#[derive(Debug, Default, clap::Args)]
#[command(next_help_heading = "Filters (each may be repeated)")]
pub(crate) struct Filters {
    /// From this listener, or to it.
    #[arg(long, value_name = "NAME")]
    listener: Vec<String>,
    /// From this identity, or to it.
    #[arg(long, value_name = "NAME")]
    identity: Vec<String>,
    /// Payloads of this name: LOCAL, or {NAMESPACE}LOCAL.
    #[arg(long, value_name = "PAYLOAD")]
    payload: Vec<Called>,
    /// Messages whose payload or <meta> holds this text. Upper and lower case matter.
    #[arg(long, value_name = "TEXT")]
    text: Vec<String>,
    /// Threads in this state: open, paused, closed, cancelled, over-budget, failed.
    #[arg(long, value_name = "STATE")]
    state: Vec<StateWord>,
    /// Failures only, such as faults, an `Err` of a handler, or agents that stopped without an
    /// interrupt.
    #[arg(long)]
    failed: bool,
    /// From this time on: 10m (ago), 2h, 3d, or 2026-11-22, 2026-11-22T10:00 in UTC.
    #[arg(long, value_name = "TIME")]
    since: Option<When>,
    /// Before this time, in the same forms as --since.
    #[arg(long, value_name = "TIME")]
    until: Option<When>,
}

impl Filters {
    /// Whether all matching entries are shown by default: with `--failed`, or with `--since`.
    pub(crate) fn want_all(&self) -> bool {
        self.failed || self.since.is_some()
    }

    /// Makes the filter. A time such as `2h` stands for the moment that long before now.
    pub(crate) fn filter(&self) -> Filter {
        let now_us = clock::wall_us();
        let at = |it: &Option<When>| it.map(|it| it.at_us(now_us));
        let mut filter = Filter::default();
        filter.listeners.clone_from(&self.listener);
        filter.identities.clone_from(&self.identity);
        filter.payloads.clone_from(&self.payload);
        filter.texts = self.text.iter().map(|it| Words::new(it)).collect();
        filter.states = self.state.iter().map(|it| it.0).collect();
        filter.failed = self.failed;
        (filter.since_us, filter.before_us) = (at(&self.since), at(&self.until));
        filter
    }
}
