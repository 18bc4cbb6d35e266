//! Reports to the listener `trigger` what triggers of the whole organism wait for: entries of the
//! log, and times.
//!
//! A [`TriggerSource`] follows the log, as a sink does, and asks a clock. For each entry or time
//! that fires a trigger it pushes a `trigger-due`, as the pump itself (`core`). The push has an id
//! that is made of the trigger and the entry or time, so it is in the log once, also where the pump
//! was killed between the push and the source's own record of it. What begins a run is the message
//! in the log, and nothing else.

mod entries;
mod times;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use self::entries::EntryTarget;
use self::times::Timetable;
use crate::audit;
use crate::engine::{Builder, Door, Plugin, Pump, Stage};
use crate::follower::{self, Follower, KeptPosition};
use crate::id::{EntryId, ThreadId};
use crate::listener;
use crate::listener::{Boxed, Capabilities};
use crate::listeners::trigger::words::TriggerDue;
use crate::listeners::trigger::{self, EventRule, Triggers, WrongTrigger};
use crate::log;
use crate::log::{Log, Pages};
use crate::wire::{Code, Fault};

/// The thread of the organism itself. No message can be pushed into it.
const ORGANISM: &str = "organism";
/// The name in the files that a source keeps beside the log.
const FILE: &str = "triggers";

/// Reports entries and times to the listener `trigger`.
///
/// ```
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
    /// The position after which the source begins, if no file has one.
    after: Arc<OnceLock<u64>>,
}

/// Why a source can't keep what it has reported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoTriggerSource(String);

impl fmt::Display for NoTriggerSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NoTriggerSource {}

impl TriggerSource {
    /// A source for some triggers. It begins with the first entry of the log, unless
    /// [`begin_at_end_of`](TriggerSource::begin_at_end_of) says otherwise. What the log has of it
    /// already isn't pushed again.
    #[must_use]
    pub fn new(triggers: &Triggers) -> TriggerSource {
        TriggerSource { triggers: triggers.clone(), ..TriggerSource::default() }
    }

    /// Makes the source begin behind the last entry of a log, unless a file says how far it has
    /// come, and reads which triggers are switched off. Call this before the pump starts.
    ///
    /// # Errors
    /// If the log can't be read.
    pub async fn begin_at_end_of(&self, log: &dyn Log) -> Result<(), log::Error> {
        let last = audit::last_position(log).await?;
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

    /// Makes the source keep what it has reported in files beside this log. It goes on there at the
    /// next start, with what happened meanwhile.
    ///
    /// # Errors
    /// A file is there and can't be read.
    pub fn keep_position_beside(self, log: &Path) -> Result<TriggerSource, NoTriggerSource> {
        let advice = "remove it, and entries that were recorded meanwhile fire no trigger";
        let file = follower::file_beside(log, FILE);
        follower::check(&file, advice).map_err(NoTriggerSource)?;
        times::check(&times_file(log)).map_err(NoTriggerSource)?;
        Ok(TriggerSource { log: Some(log.to_owned()), ..self })
    }

    /// Compares the triggers with the payloads of the organism.
    ///
    /// # Errors
    /// The first trigger that watches a payload that no listener takes or sends, or whose condition
    /// doesn't fit the payload.
    pub fn check(&self, all: &Capabilities) -> Result<(), WrongTrigger> {
        self.triggers.events().try_for_each(|it| it.check(all))
    }

    /// All triggers for which [`check`](TriggerSource::check) fails.
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

/// The file with the times that a source has reported.
fn times_file(log: &Path) -> PathBuf {
    follower::file_beside(log, "trigger-times")
}

/// Waits until the pump takes no more pushes.
fn stopping(pump: &Pump) -> impl Future<Output = ()> + Send + 'static {
    let mut stage = pump.stage();
    async move {
        // An error says that the pump was dropped, which ends the wait as well.
        drop(stage.wait_for(|it| *it != Stage::Running).await);
    }
}

/// Whether a fault says that the pump accepts no push at all now.
fn is_of_pump(fault: &Fault) -> bool {
    matches!(fault.code, Code::Stopping | Code::LogFull | Code::LogFailed | Code::Broken)
}

/// Pushes a `trigger-due`, into a thread or a new session. Where the thread takes no message, the
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
        Err(fault) if !is_of_pump(&fault) => {
            tracing::debug!(%thread, %fault, "a trigger's run has a session of its own");
            pump.tell_as_core(due, id).await
        }
        told => told,
    }
}

/// The triggers that have begun one another up to an entry.
#[derive(Default)]
struct Chain {
    /// How many there are.
    depth: u32,
    /// The message of the first one.
    first: Option<EntryId>,
    /// The newest message of the trigger that the entry fires.
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
            // A message of the source has no cause: its value names the entry that it is about.
            next = due.of.and_then(|it| it.parse().ok());
        }
        Ok(chain)
    }
}

/// How many entries are read at most, to find out which triggers have begun one another.
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
