//! Replays a log: pure and recorded listeners handle the messages in the log again, and their
//! emissions are compared with those in the log. A replay writes nothing.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::panic::AssertUnwindSafe;
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, Mutex, OnceLock};

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::{Either, select};

use crate::engine::build::plan::Plan;
use crate::engine::replay::record::{Output, Record};
use crate::engine::replay::replay_host::ReplayHost;
use crate::engine::runtime_port::Port;
use crate::engine::tree::event::Ready;
use crate::engine::tree::lineage::Lineage;
use crate::engine::tree::route::{Receiver, Registered, Routes};
use crate::engine::worker::outcome::{check, outcome_of};
use crate::id::{EntryId, ThreadId};
use crate::listener::{Awake, Entry, HandlerCall, Target};
use crate::log;
use crate::log::{Flags, Log, Pages};
use crate::name::{CORE_NAME, Name};
use crate::wire::budget::Charge;
use crate::wire::core::{Huh, said};
use crate::wire::{Code, Fault, Payload};

/// The result of replaying a thread and its descendants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Replayed {
    /// Maps a listener to the number of messages that it handled again and whose emissions were
    /// compared.
    pub compared: BTreeMap<Arc<str>, u64>,
    /// Maps a listener that is neither pure nor recorded to the number of messages that it handled.
    /// The emissions of such a listener are taken from the log.
    pub taken: BTreeMap<Arc<str>, u64>,
    /// Messages of pure and recorded listeners that couldn't be compared with the log.
    pub skipped: Vec<Skipped>,
    /// The first difference from the log. The replay ends at this difference.
    pub difference: Option<Difference>,
}

/// A message that was skipped.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Skipped {
    /// The message.
    pub message: EntryId,
    /// The listener that handled the message.
    pub listener: Arc<str>,
    /// Why the message was skipped.
    pub why: &'static str,
}

/// An emission that differs between the log and the replay.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Difference {
    /// The message that the listener handled.
    pub message: EntryId,
    /// The listener that handled the message.
    pub listener: Arc<str>,
    /// The entry in the log that differs. None if the log has fewer emissions.
    pub entry: Option<EntryId>,
    /// The emission in the log. None if the log has fewer emissions.
    pub recorded: Option<Emitted>,
    /// The emission of the replay. None if the replay has fewer emissions.
    pub now: Option<Emitted>,
}

/// The receiver and the payload of an emission.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Emitted {
    /// The receiver, if it is known.
    pub to: Option<Arc<str>>,
    /// The payload's name.
    pub name: Name,
    /// The payload's canonical bytes.
    pub body: Bytes,
}

impl Plan {
    /// Runs pure and recorded listeners of this plan again on the messages of a thread and its
    /// descendants, including the entries that a fork shares. Compares their emissions with the
    /// log, byte by byte, up to the first difference.
    ///
    /// # Errors
    /// If the log can't be read, or has no such thread.
    pub async fn replay(
        &self,
        log: &Arc<dyn Log>,
        thread: &ThreadId,
        port: &impl Port,
    ) -> Result<Replayed, log::Error> {
        let tree = log.tree(thread).await?;
        let root = tree.first().ok_or_else(|| log::Error::UnknownThread(thread.clone()))?;
        let mut record = Record::default();
        let lineage = Lineage::read(&**log, root.fork.as_ref()).await?;
        for shared in lineage.threads().chain([thread]) {
            record.note(log.marks(shared).await?);
            record.charges.extend(log.charges(&shared.tree()).await?);
        }
        let mut replay = Replay { plan: self, log, port, record, done: Replayed::default() };
        for member in &tree {
            for shared in lineage.threads().filter(|_| member.id == *thread).chain([&member.id]) {
                replay.record.read(&**log, shared).await?;
            }
            replay.thread(&member.id).await?;
            replay.record.outputs.clear();
            if replay.done.difference.is_some() {
                break;
            }
        }
        Ok(replay.done)
    }
}

/// The reason for skipping a message whose thread ended while the message was being handled. The
/// log doesn't have the input that the listener got from outside.
const ENDED: &str = "its thread came to its end meanwhile";

/// A message that is handled again, with its receiver, the messages that are handled together with
/// it, and the number of the last entry that the listener saw.
struct Handling {
    message: Entry,
    receiver: Receiver,
    queue: Vec<Entry>,
    as_of: u64,
    /// The position of the log after which the message was consumed.
    consumed: u64,
}

struct Replay<'a, P> {
    plan: &'a Plan,
    log: &'a Arc<dyn Log>,
    port: &'a P,
    record: Record,
    done: Replayed,
}

impl<P: Port> Replay<'_, P> {
    /// Replays a thread, and computes its folds meanwhile.
    async fn thread(&mut self, id: &ThreadId) -> Result<(), log::Error> {
        let routes = &self.plan.routes;
        let mut folds: Vec<Option<Vec<Awake>>> = Vec::new();
        for listener in &routes.listeners {
            let wanted = listener.folds.iter().filter(|_| is_run(listener));
            folds.push(Some(wanted.map(|(_, fold)| (fold.empty)()).collect()));
        }
        let log = self.log.clone();
        let (mut pages, mut waiting) = (Pages::of(&*log, id), Vec::new());
        while let Some(page) = pages.next().await? {
            for kept in &page {
                let entry = Entry::kept(kept);
                for (at, states) in folds.iter_mut().enumerate() {
                    take_in(states, &routes.listeners[at], &entry);
                }
                waiting.extend(self.entry(kept, &entry).await?);
                for waiting in waiting.extract_if(.., |it| it.as_of <= entry.seq()) {
                    self.handle(waiting, &folds).await;
                    if self.done.difference.is_some() {
                        return Ok(());
                    }
                }
            }
        }
        Ok(())
    }

    /// Finds the listeners that are to handle a message again. Messages that can't be replayed are
    /// skipped.
    async fn entry(
        &mut self,
        kept: &log::Entry,
        entry: &Entry,
    ) -> Result<Vec<Handling>, log::Error> {
        let routes = &self.plan.routes;
        let chosen = self.record.chosen.get(entry.id()).cloned().unwrap_or_default();
        let had: Vec<Arc<str>> = kept.to.clone().map_or(chosen, |to| vec![to]);
        let mut all = Vec::new();
        for name in had.into_iter().filter(|_| kept.receivers > 0) {
            // A waiting delivery was sent again as a new entry when its wait ended. Its listener
            // handled that entry.
            let consumed = self.record.consumed.get(&(entry.id().clone(), name.clone())).copied();
            if consumed.is_some_and(|(attempt, _)| attempt == 0) {
                continue;
            }
            let receiver = routes.find(&name).and_then(|it| routes.handler_of(it, entry));
            let run = receiver.filter(|it| is_run(&routes.listeners[it.listener]));
            let (Some(receiver), Some((attempt, consumed))) = (run, consumed) else {
                match (run, consumed) {
                    (Some(_), None) => self.skip(entry, name, "it is under way"),
                    (None, Some(_)) => *self.done.taken.entry(name).or_default() += 1,
                    _ => {}
                }
                continue;
            };
            let listener = &routes.listeners[receiver.listener];
            let start = self.record.attempts.get(&(entry.id().clone(), name.clone()));
            let as_of = start.and_then(|it| it.as_of);
            let (message, queue) = (entry.clone(), Vec::new());
            let reach = as_of.unwrap_or(0);
            let mut handling = Handling { message, receiver, queue, as_of: reach, consumed };
            if listener.takes_queue {
                let Some(as_of) = as_of else {
                    self.skip(entry, name, "the log doesn't tell what it took from its queue");
                    continue;
                };
                if attempt > 1 && !listener.traits.up_to_date {
                    self.skip(entry, name, "a stop cut it off");
                    continue;
                }
                let Some(rest) = self.record.hand(entry, &name, as_of) else { continue };
                for seq in rest {
                    let read = self.log.entry(&EntryId::new(entry.thread(), seq)).await?;
                    handling.queue.extend(read.map(|entry| Entry::kept(&entry)));
                }
            }
            all.push(handling);
        }
        Ok(all)
    }

    fn skip(&mut self, message: &Entry, listener: Arc<str>, why: &'static str) {
        self.done.skipped.push(Skipped { message: message.id().clone(), listener, why });
    }

    async fn handle(&mut self, handling: Handling, folds: &[Option<Vec<Awake>>]) {
        let listener = handling.receiver.listener;
        let name = self.plan.routes.listeners[listener].name.clone();
        let Some(folds) = &folds[listener] else {
            return self.skip(&handling.message, name, "a fold of its listener panics");
        };
        match self.compare(&handling, folds).await {
            None if self.done.difference.is_some() => {}
            None => *self.done.compared.entry(name).or_default() += 1,
            Some(why) => self.skip(&handling.message, name, why),
        }
    }

    /// Runs a handler and compares its emissions with the log. Returns the reason if they can't be
    /// compared.
    async fn compare(&mut self, handling: &Handling, folds: &[Awake]) -> Option<&'static str> {
        let Handling { message, receiver, .. } = handling;
        let outputs = self.record.outputs.get(message.id()).map_or(&[][..], Vec::as_slice);
        let before =
            RecordedOutcome::of(message, &self.plan.routes.listeners[receiver.listener], outputs);
        for (_, code) in &before.faults {
            match code.as_str() {
                "P0014" => return Some("its time was up"),
                "P0016" => return Some("a stop cut it off"),
                "P0030" | "P0041" => return Some("it was given up"),
                _ => {}
            }
        }
        let Some(refusals) = self.refusals(&before) else {
            return Some("its budget was another then");
        };
        let ended = self
            .record
            .ends
            .get(message.thread())
            .filter(|(it, _)| it.seq() > message.seq() && it.cause() != Some(message.id()));
        // The log has the end of a handling in the same commit as the handling's last emissions.
        let is_over = outputs.iter().any(|it| it.entry.position > handling.consumed);
        let is_cut = !is_over && ended.is_some_and(|(_, at)| *at > handling.consumed);
        if is_cut && self.plan.routes.listeners[receiver.listener].traits.recorded {
            return Some(ENDED);
        }
        let mut now = self.run(handling, folds, &before, refusals).await;
        now.retain(|it| !matches!(it.target, Target::Park(_) | Target::Withdraw(_)));
        if now
            .iter()
            .any(|it| matches!(it.target, Target::Raise | Target::Retry | Target::Threads(..)))
        {
            return Some("it steers threads");
        }
        let name = &self.plan.routes.listeners[receiver.listener].name;
        let difference = before.difference(message, name, &now);
        if ended.is_some() && difference.as_ref().is_some_and(|it| it.recorded.is_none()) {
            return Some(ENDED);
        }
        self.done.difference = difference;
        None
    }

    /// Maps a refused charge's index among the emissions to the charge's fault. Returns None if one
    /// of the refused charges would fit now.
    fn refusals(&self, before: &RecordedOutcome<'_>) -> Option<HashMap<usize, Fault>> {
        let refused = before.recorded().enumerate().filter(|(_, output)| {
            output.entry.name == Charge::NAME && output.entry.flags.contains(Flags::REFUSED)
        });
        let limits = &self.plan.limits;
        refused.map(|(at, it)| Some((at, self.record.refused(&it.entry, limits)?))).collect()
    }

    /// Runs a handler. Returns its emissions in the order in which the engine would append them.
    async fn run(
        &self,
        handling: &Handling,
        folds: &[Awake],
        before: &RecordedOutcome<'_>,
        refusals: HashMap<usize, Fault>,
    ) -> Vec<Ready> {
        let Handling { message, receiver, queue, as_of, .. } = handling;
        let (routes, limits) = (&self.plan.routes, &self.plan.limits);
        let listener = &routes.listeners[receiver.listener];
        let host = Arc::new(ReplayHost {
            log: self.log.clone(),
            capabilities: routes.capabilities.clone(),
            limits: limits.clone(),
            recorded: before.recorded().map(|it| Entry::kept(&it.entry)).collect(),
            refusals,
            sent: Mutex::default(),
        });
        let call = Arc::new(HandlerCall {
            message: message.clone(),
            listener: listener.name.clone(),
            index: receiver.listener,
            attempt: 1,
            queue: queue.clone(),
            as_of: message.seq().max(*as_of),
            grants: listener.grants.clone(),
            peers: listener.peers.clone(),
            cancel: None,
            arrivals: None,
            stop_charge: None,
            is_kept: true,
            folds: folds.to_vec(),
            asked: OnceLock::new(),
            key: self.log.identity().key,
            sent: AtomicU32::new(0),
            host: host.clone(),
        });
        let handler = listener.handlers[receiver.handler].run.clone();
        let handler = AssertUnwindSafe(async move { handler(call).await }).catch_unwind();
        let until_us = self.port.now_us().saturating_add(listener.timeout_us);
        let ended = match select(Box::pin(handler), Box::pin(self.port.sleep_until(until_us))).await
        {
            Either::Left((ended, _)) => ended,
            Either::Right(_) => Ok(Err(Fault::new(Code::TimeOut, "its time was up"))),
        };
        let mut now = Vec::new();
        let sent = std::mem::take(&mut *host.sent());
        let sent = sent.into_iter().map(|it| check(routes, limits.inside, it));
        for step in sent.chain([outcome_of(routes, limits.inside, receiver.listener, ended)]) {
            let is_beyond = |ready: &Ready| {
                is_beyond(&ready.target, receiver.listener, routes, ready) || before.began(ready)
            };
            let (later, first): (Vec<Ready>, Vec<Ready>) = step.into_iter().partition(is_beyond);
            now.extend(first.into_iter().chain(later));
        }
        now.truncate(limits.emissions_max);
        now
    }
}

/// Brings the folds of a listener past an entry. If one of them panics, none is left.
fn take_in(folds: &mut Option<Vec<Awake>>, listener: &Registered, entry: &Entry) {
    let Some(states) = folds else { return };
    let applied = std::panic::catch_unwind(AssertUnwindSafe(|| {
        let each = states.iter_mut().zip(&listener.folds);
        each.for_each(|(state, (_, fold))| (fold.apply)(state, entry));
    }));
    if applied.is_err() {
        *folds = None;
    }
}

/// Returns whether a replay runs a listener: it is pure or recorded.
fn is_run(listener: &Registered) -> bool {
    listener.traits.pure || listener.traits.recorded
}

/// Returns whether the engine carries out an emission after the others of its step, since the
/// emission opens a thread.
fn is_beyond(target: &Target, listener: usize, routes: &Routes, ready: &Ready) -> bool {
    match (target, &ready.payload) {
        (Target::Child { .. }, Ok(_)) => true,
        (Target::Listener(to), Ok(checked)) => {
            let from = &routes.listeners[listener];
            let found = routes.address(Some(from), to, checked.name()).ok();
            found.is_some_and(|target| {
                target.listener != listener && routes.listeners[target.listener].traits.own_thread
            })
        }
        _ => false,
    }
}

/// The recorded outcome of a message.
struct RecordedOutcome<'a> {
    /// The emissions of the listener.
    entries: Vec<&'a Output>,
    /// The faults about the message, each with its number.
    faults: Vec<(&'a Output, String)>,
}

impl<'a> RecordedOutcome<'a> {
    fn of(message: &Entry, listener: &Registered, outputs: &'a [Output]) -> RecordedOutcome<'a> {
        let own = |it: &&Output| it.begins || *it.entry.from == *listener.name;
        let fault = |output: &'a Output| {
            let is_it = *output.entry.from == *CORE_NAME
                && output.entry.reply_to.as_ref() == Some(message.id())
                && output.entry.name == Huh::NAME;
            let huh = is_it.then(|| Entry::kept(&output.entry).decode_if::<Huh>()).flatten()?;
            Some((output, huh.code))
        };
        let entries = outputs.iter().filter(own).collect();
        RecordedOutcome { entries, faults: outputs.iter().filter_map(fault).collect() }
    }

    /// Returns whether the recorded emission with this payload opened a thread. A replay can't know
    /// whether the receiver was busy, which also opens a thread.
    fn began(&self, ready: &Ready) -> bool {
        let (Target::Listener(_), Ok(checked)) = (&ready.target, &ready.payload) else {
            return false;
        };
        let is_same = |then: &Output| {
            then.entry.name == *checked.name() && then.entry.body == checked.element().canonical()
        };
        self.entries.iter().any(|then| then.begins && is_same(then))
    }

    /// Returns the recorded emissions in the message's own thread.
    fn recorded(&self) -> impl Iterator<Item = &'a Output> {
        self.entries.iter().copied().filter(|it| !it.begins)
    }

    /// Returns the first difference between the recorded emissions and `now`, the emissions of the
    /// replay.
    fn difference(
        &self,
        message: &Entry,
        listener: &Arc<str>,
        now: &[Ready],
    ) -> Option<Difference> {
        let different = |then: Option<&Output>, now: Option<Emitted>| Difference {
            message: message.id().clone(),
            listener: listener.clone(),
            entry: then.map(|it| it.entry.id.clone()),
            recorded: then.map(|it| Emitted::of(&it.entry)),
            now,
        };
        let mut entries = self.entries.iter().copied().peekable();
        let mut faults = self.faults.iter();
        for ready in now {
            let (checked, then) = match &ready.payload {
                // If the log has no more emissions, the recorded handler failed. In that case the
                // handler's fault is compared.
                Ok(checked) => {
                    let then = entries.next();
                    let fault = if then.is_none() { faults.next() } else { None };
                    // The budget had no room for the thread that the sender wanted, so the sender
                    // got a fault.
                    if fault.is_some_and(|it| is_unopened(&it.1, &ready.target)) {
                        continue;
                    }
                    (checked.clone(), then.or(fault.map(|(it, _)| *it)))
                }
                // The pump itself is never sent a fault.
                Err(_) if message.is_from_core() => continue,
                Err(fault) => (said(fault)?, faults.next().map(|(it, _)| *it)),
            };
            let now = Emitted {
                to: addressee(&ready.target, message, listener),
                name: checked.name().clone(),
                body: checked.element().canonical(),
            };
            // Only some senders are told why no listener takes a payload, so such faults may
            // differ.
            let is_explained = |it: &Output| ready.sought.is_some() && it.entry.name == Huh::NAME;
            if then.is_none_or(|it| !now.is(&it.entry) && !is_explained(it)) {
                return Some(different(then, Some(now)));
            }
            for _ in 1..answers(&ready.target) {
                entries.next_if(|it| now.is(&it.entry));
            }
        }
        if let Some(less) = entries.next() {
            return Some(different(Some(less), None));
        }
        // Faults with other numbers are the pump's reports about emissions, and aren't compared.
        let own = ["P0007", "P0015", "P0017", "P0026", "P0027"];
        let was_refused = self.entries.iter().any(|it| it.entry.flags.contains(Flags::REFUSED));
        let less = faults.find(|(_, code)| own.contains(&code.as_str()) && !was_refused);
        less.map(|(it, _)| different(Some(it), None))
    }
}

/// Returns whether a fault says that the budget has no room for the thread that an emission opens.
fn is_unopened(code: &str, target: &Target) -> bool {
    matches!(target, Target::Child { for_sender: true, .. }) && code == Code::OverBudget.to_string()
}

/// Returns how many entries an emission becomes. An answer becomes one entry for each identity that
/// asked, and one entry for each message that a listener sent.
fn answers(target: &Target) -> usize {
    let Target::Askers(asked, _) = target else { return 1 };
    let (people, others): (Vec<&Entry>, Vec<&Entry>) =
        asked.iter().partition(|it| it.is_from_identity());
    let people: BTreeSet<&str> = people.into_iter().map(Entry::from).collect();
    people.len() + others.len()
}

/// Returns the receiver of an emission, if the target of the emission determines it.
fn addressee(target: &Target, message: &Entry, listener: &Arc<str>) -> Option<Arc<str>> {
    match target {
        Target::Sender => Some(message.sender().clone()),
        Target::Entry(it) => Some(it.sender().clone()),
        Target::Listener(to) => Some(to.as_str().into()),
        Target::Oneself | Target::Later { .. } => Some(listener.clone()),
        _ => None,
    }
}

impl Emitted {
    fn of(entry: &log::Entry) -> Emitted {
        Emitted { to: entry.to.clone(), name: entry.name.clone(), body: entry.body.clone() }
    }

    /// Returns whether an entry has the same payload, and the same receiver if the receiver is
    /// known. A refused entry may have no receiver.
    fn is(&self, entry: &log::Entry) -> bool {
        let was_refused = entry.to.is_none() && entry.flags.contains(Flags::REFUSED);
        self.name == entry.name
            && self.body == entry.body
            && (self.to.is_none() || self.to == entry.to || was_refused)
    }
}
