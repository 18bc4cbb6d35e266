//! Reports the entries of the log and the times that fire triggers of the whole organism to the
//! listener `trigger`.
//!
//! A [`TriggerSource`] follows the log, as a sink does, and reads a clock. For each entry or time
//! that fires a trigger, the source pushes a `trigger-due` as the pump itself (`core`). The push's
//! client id consists of the trigger's name and the entry or time. So the log has each
//! `trigger-due` once, even if the pump is killed between the push and the source's own record of
//! the push. Only the message in the log begins a run.

mod entries;
mod last_run;
mod times;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use self::entries::EntryTarget;
use self::times::Timetable;
use crate::engine::{Builder, Door, Plugin, Pump, Stage};
use crate::follower::{self, Follower, KeptPosition};
use crate::id::{EntryId, ThreadId};
use crate::listener;
use crate::listener::{Boxed, Capabilities};
use crate::log;
use crate::log::{Log, Pages, last_position};
use crate::wire::{Code, Fault};
use pumphouse_listeners::trigger::words::TriggerDue;
use pumphouse_listeners::trigger::{self, EventRule, Triggers, WrongTrigger};

/// The thread of the organism itself. No message can be pushed into it.
const ORGANISM: &str = "organism";
/// The name of the file beside the log in which a source keeps its position.
const FILE: &str = "triggers";

/// Reports entries and times to the listener `trigger`.
///
/// ```
/// # extern crate pumphouse_organism as pumphouse;
/// use std::time::Duration;
///
/// use pumphouse::listeners::echo::Echo;
/// use pumphouse::listeners::trigger::Triggers;
/// use pumphouse::listeners::workflow::Workflow;
/// use pumphouse::listeners::{self, core, echo};
/// use pumphouse::trigger_source::TriggerSource;
/// use serde_json::json;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let workflow = Workflow::from_json(json!({
///     "name": "urgent",
///     "trigger": {"payload": "echo", "conditions": "payload.text == 'fire'"},
///     "steps": [{"name": "note", "target": "echo", "parameters": {"text": "${trigger.from}"}}],
/// }))?;
/// let mut triggers = Triggers::default();
/// triggers.add(&workflow)?;
/// let all = (listeners::standard(), workflow.listener(), triggers.clone().listener());
/// let builder = pumphouse::builder().with(all).with(TriggerSource::new(&triggers));
/// let pump = builder.build()?.start();
/// let fire = pump.tell(Echo { text: "fire".to_owned() }).await?;
/// # let _ = fire;
/// # pump.shutdown().await?;
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, Default)]
pub struct TriggerSource {
    triggers: Triggers,
    log: Option<PathBuf>,
    /// The position in the log after which the source begins, if no file has a position.
    after: Arc<OnceLock<u64>>,
}

/// The reason why a source can't keep its progress in files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoTriggerSource(String);

impl fmt::Display for NoTriggerSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NoTriggerSource {}

impl TriggerSource {
    /// Creates a source for some triggers. The source begins with the first entry of the log,
    /// unless [`begin_at_end_of`](TriggerSource::begin_at_end_of) is called. It doesn't push
    /// messages again that the log already has.
    #[must_use]
    pub fn new(triggers: &Triggers) -> TriggerSource {
        TriggerSource { triggers: triggers.clone(), ..TriggerSource::default() }
    }

    /// Makes the source begin after the last entry of a log, unless a file has the source's
    /// position. Also reads from the log which triggers are switched off. Call this before the pump
    /// starts.
    ///
    /// # Errors
    /// If the log can't be read.
    pub async fn begin_at_end_of(&self, log: &dyn Log) -> Result<(), log::Error> {
        let last = last_position(log).await?;
        self.after.get_or_init(|| last);
        self.warn_of_absent_threads(log).await?;
        let organism = ThreadId::new(ORGANISM);
        self.triggers.read_switches(&[]);
        if log.thread(&organism).await?.is_some() {
            let mut pages = Pages::of(log, &organism);
            while let Some(page) = pages.next().await? {
                let page: Vec<_> = page.iter().map(|it| listener::Entry::kept(it)).collect();
                self.triggers.read_switches(&page);
            }
        }
        Ok(())
    }

    /// Makes the source keep its progress in files beside this log. At the next start, the source
    /// continues from there, so it also sees the entries and times that came meanwhile.
    ///
    /// # Errors
    /// If one of the files exists and can't be read.
    pub fn keep_position_beside(self, log: &Path) -> Result<TriggerSource, NoTriggerSource> {
        let advice = "remove it, and entries that were recorded meanwhile fire no trigger";
        let file = follower::file_beside(log, FILE);
        follower::check(&file, advice).map_err(NoTriggerSource)?;
        times::check(&times_file(log)).map_err(NoTriggerSource)?;
        Ok(TriggerSource { log: Some(log.to_owned()), ..self })
    }

    /// Checks the triggers against the payloads of the organism.
    ///
    /// # Errors
    /// The first trigger that is wrong: it watches a payload that no listener takes or sends, or
    /// its condition doesn't fit the payload.
    pub fn check(&self, all: &Capabilities) -> Result<(), WrongTrigger> {
        self.triggers.events().try_for_each(|it| it.check(all))
    }

    /// Returns all triggers for which [`check`](TriggerSource::check) fails.
    #[must_use]
    pub fn wrong_triggers(&self, all: &Capabilities) -> Vec<WrongTrigger> {
        self.triggers.events().filter_map(|it| it.check(all).err()).collect()
    }

    /// Warns of each schedule whose thread the log doesn't have.
    async fn warn_of_absent_threads(&self, log: &dyn Log) -> Result<(), log::Error> {
        for rule in self.triggers.events() {
            let Some(thread) = rule.thread() else { continue };
            if log.thread(thread).await?.is_none() {
                let rule = rule.name();
                tracing::warn!(
                    rule, %thread,
                    "the log doesn't have the thread of a schedule; while it doesn't, each run has \
                     a session of its own"
                );
            }
        }
        Ok(())
    }

    async fn serve(self, pump: Pump) -> Result<(), Fault> {
        let broken = |it: &dyn fmt::Display| Fault::new(Code::Broken, it.to_string());
        let (watching, timed): (Vec<_>, Vec<_>) = {
            let is_there = |it: &EventRule| it.watches_entries() || it.times().is_some();
            let rules = self.triggers.events().filter(|it| is_there(it)).cloned();
            rules.partition(EventRule::watches_entries)
        };
        let file = self.log.as_deref().map(|it| follower::file_beside(it, FILE));
        let entries = async {
            if watching.is_empty() {
                return Ok(());
            }
            let log = pump.log().clone();
            let first = self.after.get().copied().unwrap_or_default();
            let position = KeptPosition::read_or(&*log, file, first).await;
            let position = position.map_err(|it| broken(&it))?;
            let target = EntryTarget::new(pump.clone(), watching);
            let stop_us = u64::try_from(pump.limits().linger_time_max.as_micros());
            let stop_us = stop_us.unwrap_or(u64::MAX);
            let stopping = stopping(&pump);
            Follower::new(log, target, position, Arc::default()).run(stopping, stop_us).await;
            Ok(())
        };
        let times = async {
            if timed.is_empty() {
                return Ok(());
            }
            let file = self.log.as_deref().map(times_file);
            let log = pump.log().identity().uuid.to_string();
            let mut timetable = Timetable::read(timed, log, file).map_err(|it| broken(&it))?;
            let stopping = stopping(&pump);
            tokio::select! {
                () = timetable.run(&pump) => {}
                () = stopping => {}
            }
            Ok(())
        };
        tokio::try_join!(entries, times).map(drop)
    }
}

/// Returns the file with the times that a source has reported.
fn times_file(log: &Path) -> PathBuf {
    follower::file_beside(log, "trigger-times")
}

/// Waits until the pump takes no more pushes.
fn stopping(pump: &Pump) -> impl Future<Output = ()> + Send + 'static {
    let mut stage = pump.stage();
    async move {
        // An error means that the pump was dropped, which ends the wait as well.
        drop(stage.wait_for(|it| *it != Stage::Running).await);
    }
}

/// Returns whether a fault says that the pump accepts no push at all now.
fn is_of_pump(fault: &Fault) -> bool {
    matches!(fault.code, Code::Stopping | Code::LogFull | Code::LogFailed | Code::Broken)
}

/// Pushes a `trigger-due`, into a thread or a new session. If the thread takes no message, the
/// message goes into a new session.
async fn push(
    pump: &Pump,
    thread: Option<&ThreadId>,
    due: &TriggerDue,
    id: &str,
) -> Result<EntryId, Fault> {
    let pump = pump.to(trigger::NAME);
    let Some(thread) = thread else { return pump.tell_as_core(due, id).await };
    match pump.in_thread(thread).tell_as_core(due, id).await {
        Err(fault) if !is_of_pump(&fault) && fault.code != Code::ClientId => {
            tracing::debug!(%thread, %fault, "a trigger's run has a session of its own");
            pump.tell_as_core(due, id).await
        }
        told => told,
    }
}

/// The chain of triggers that led to an entry. The run of each trigger fired the next one.
#[derive(Default)]
struct Chain {
    /// The number of triggers in the chain.
    depth: u32,
    /// The `trigger-due` of the first trigger in the chain.
    first: Option<EntryId>,
    /// The newest `trigger-due` in the chain that is for the trigger that the entry fires.
    within: Option<EntryId>,
}

impl Chain {
    /// Follows the causes of an entry that fires a rule.
    async fn read(pump: &Pump, rule: &EventRule, entry: &log::Entry) -> Result<Chain, log::Error> {
        let (mut chain, mut next) = (Chain::default(), entry.cause.clone());
        for _ in 0..CHAIN_ENTRIES_MAX {
            let Some(id) = next else { break };
            let Some(entry) = pump.log().entry(&id).await? else { break };
            let Some(due) = listener::Entry::kept(&entry).decode_if::<TriggerDue>() else {
                next = entry.cause.clone();
                continue;
            };
            chain.depth += 1;
            chain.first = Some(id.clone());
            if due.rule == rule.name() {
                chain.within.get_or_insert(id);
            }
            // A `trigger-due` has no cause. Its field `of` names the entry that fired the trigger.
            next = due.of.and_then(|it| it.parse().ok());
        }
        Ok(chain)
    }
}

/// The largest number of entries that are read to follow a chain of triggers.
const CHAIN_ENTRIES_MAX: usize = 10_000;

impl Plugin for TriggerSource {
    fn install(self, builder: &mut Builder) {
        builder.door(self);
    }
}

impl Door for TriggerSource {
    fn serve(self: Box<Self>, pump: Pump) -> Boxed<'static, ()> {
        Box::pin(TriggerSource::serve(*self, pump))
    }
}
