//! Builds a pump: plugins in, every complaint at once or a plan out.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use dashmap::DashMap;
use futures_util::FutureExt;
use tokio::sync::watch;

use crate::engine::follow::Followers;
use crate::engine::gate::Gate;
use crate::engine::life::{self, Life};
use crate::engine::metrics::Counts;
use crate::engine::owed::Owed;
use crate::engine::port::{Port, Tokio};
use crate::engine::recover::recover;
use crate::engine::refusals;
use crate::engine::route::{Registered, Routes};
use crate::engine::shared::{Inbox, Shared, Stage};
use crate::engine::tree::CORE_NAME;
use crate::engine::worker::{Worker, set_by};
use crate::engine::{Factory, Plugin, Pump};
use crate::limits::{Limits, XmlLimits};
use crate::listener::{
    Boxed, Capabilities, Described, EmitCore, Grant, Listener, Need, Spec, Way, may_emit,
};
use crate::log::{Log, MemoryLog};
use crate::model::{Model, Models};
use crate::name::Name;
use crate::schema::{self, Schema};
use crate::wire::budget::{BudgetRaised, BudgetWarning, Charge, LoopWarning, OverBudget};
use crate::wire::core::{
    Accepted, Authenticate, Authenticated, Boot, ClockSet, ContextCleared, ContextRestored, Done,
    DoorRefusals, Heartbeat, Huh, ListenerJoined, ListenerLeft, NothingUnderWay, ShutdownSignal,
    SystemThreadError, ThreadCancelled, ThreadResult, ThreadSpawned,
};
use crate::wire::meta::{Follow, Following, Unfollow, Unfollowed};
use crate::wire::{Catalog, Code, Payload};
use crate::xml::{self, Profile};

/// A way in.
pub trait Door: Send {
    /// Serves until the pump is [`Stage::Drained`] and everybody has been told what is due.
    fn serve(self: Box<Self>, pump: Pump) -> Boxed<'static, ()>;

    /// The identities that somebody may come in as; no listener may have such a name.
    fn identities(&self) -> Vec<Arc<str>> {
        Vec::new()
    }

    /// Whether it knows tokens. A pump where none does has no strangers among those who reach it.
    fn has_tokens(&self) -> bool {
        false
    }
}

/// Collects plugins; only [`build`](Builder::build) judges, so their order doesn't matter.
#[derive(Default)]
pub struct Builder {
    specs: Vec<Spec>,
    logs: Vec<Arc<dyn Log>>,
    doors: Vec<Box<dyn Door>>,
    factories: Vec<Factory>,
    models: Models,
    /// Names that more than one model was given.
    models_twice: Vec<String>,
    limits: Limits,
    workers: Option<usize>,
    name: Option<String>,
    heartbeat: Option<Duration>,
}

/// The most workers a pump has: each is a bit of a listener's gate.
const WORKERS_MAX: usize = 64;

impl Builder {
    /// Adds a plugin.
    #[must_use]
    pub fn with(mut self, plugin: impl Plugin) -> Builder {
        plugin.install(&mut self);
        self
    }

    /// Uses these limits.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Builder {
        self.limits = limits;
        self
    }

    /// Names the organism: then it keeps its own life in the thread `organism`: `boot` at each
    /// start, who joined and left since the last one, and `shutdown-signal`.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Builder {
        self.name = Some(name.into());
        self
    }

    /// Whether it has a name by now.
    pub(crate) fn has_name(&self) -> bool {
        self.name.is_some()
    }

    /// Has an organism with a name say so often that it lives.
    #[must_use]
    pub fn heartbeat(mut self, every: Duration) -> Builder {
        self.heartbeat = Some(every);
        self
    }

    /// Uses this many workers; as many as there are processors unless said.
    #[must_use]
    pub fn workers(mut self, workers: usize) -> Builder {
        self.workers = Some(workers);
        self
    }

    /// Adds a listener.
    pub fn listener<S>(&mut self, listener: Listener<S>) {
        self.specs.push(listener.spec);
    }

    /// Keeps entries in this log; in memory unless said.
    pub fn log(&mut self, log: Arc<dyn Log>) {
        self.logs.push(log);
    }

    /// Opens this door when the pump starts.
    pub fn door(&mut self, door: impl Door + 'static) {
        self.doors.push(Box::new(door));
    }

    /// Lets a manifest name this; of two with one name the first counts.
    pub fn factory(&mut self, factory: Factory) {
        if self.factories.iter().all(|it| it.name() != factory.name()) {
            self.factories.push(factory);
        }
    }

    /// What a manifest may name.
    #[must_use]
    pub fn factories(&self) -> &[Factory] {
        &self.factories
    }

    /// Lets listeners of a manifest name this model; the first of a name counts, and `build`
    /// complains of a second.
    pub fn model(&mut self, name: impl Into<String>, model: Arc<dyn Model>) {
        let name = name.into();
        if let Some(first) = self.models.insert(name.clone(), model) {
            self.models.insert(name.clone(), first);
            self.models_twice.push(name);
        }
    }

    /// The models that listeners of a manifest may name.
    #[must_use]
    pub fn models(&self) -> &Models {
        &self.models
    }

    /// The names of the listeners that it has so far.
    pub fn listeners(&self) -> impl Iterator<Item = &str> {
        self.specs.iter().map(|it| it.name.as_str())
    }

    /// The payloads that those take or may emit, but for those that only the pump may say.
    pub fn payloads(&self) -> impl Iterator<Item = &Name> {
        self.specs.iter().flat_map(Spec::payloads)
    }

    /// Judges. It runs nothing.
    ///
    /// # Errors
    /// Every complaint at once.
    pub fn build(self) -> Result<Plan, Complaints> {
        let (catalog, mut complaints) = catalog(&self.specs);
        complaints.extend(names(&self.specs));
        complaints.extend(self.doors.iter().flat_map(|it| identities(&**it, &self.specs)));
        complaints.extend(self.specs.iter().flat_map(unmet));
        complaints.extend(owners(&self.specs));
        complaints.extend(absent(&self.specs));
        complaints.extend(self.models_twice.iter().map(|it| {
            (None, format!("more than one model is called {it}; give each a name of its own"))
        }));
        if self.logs.len() > 1 {
            complaints.push((None, "more than one log was given; keep one".to_owned()));
        }
        if self.workers.is_some_and(|it| it == 0 || it > WORKERS_MAX) {
            complaints.push((None, format!("workers must be from 1 to {WORKERS_MAX}")));
        }
        let too_small = self.limits.too_small();
        complaints.extend(too_small.into_iter().map(|it| (None, it)));
        if self.heartbeat.is_some_and(|it| it.is_zero()) {
            complaints.push((None, "the heartbeat must be at least 1ms apart".to_owned()));
        }
        if !complaints.is_empty() {
            let (listeners, all) = complaints.into_iter().unzip();
            return Err(Complaints { all, listeners });
        }
        let there = || std::thread::available_parallelism().map_or(1, usize::from);
        let default_us = u64::try_from(self.limits.handler_time_max.as_micros());
        let default_us = default_us.unwrap_or(u64::MAX);
        let described = self.specs.iter().map(Described::of).collect();
        let capabilities = Capabilities::new(described, catalog);
        let registered = self.specs.into_iter().map(|spec| {
            let own = spec.timeout.map(|it| u64::try_from(it.as_micros()).unwrap_or(u64::MAX));
            Registered::new(spec, own.unwrap_or(default_us))
        });
        Ok(Plan {
            routes: Routes::new(registered.collect(), capabilities),
            log: self.logs.into_iter().next().unwrap_or_else(|| Arc::new(MemoryLog::new())),
            life: self.name.map(|it| Life { name: it.into(), heartbeat: self.heartbeat }),
            doors: self.doors,
            limits: self.limits,
            workers: self.workers.unwrap_or_else(there).min(WORKERS_MAX),
        })
    }
}

/// The schemas of all that is taken, emitted or the pump's own; two of one name must be equal.
fn catalog(specs: &[Spec]) -> (Catalog, Vec<Complaint>) {
    let mut catalog = Catalog::default();
    let own = [
        Accepted::schema(),
        Authenticate::schema(),
        Authenticated::schema(),
        BudgetRaised::schema(),
        BudgetWarning::schema(),
        Charge::schema(),
        ContextCleared::schema(),
        ContextRestored::schema(),
        ClockSet::schema(),
        DoorRefusals::schema(),
        Done::schema(),
        Huh::schema(),
        LoopWarning::schema(),
        OverBudget::schema(),
        SystemThreadError::schema(),
        Boot::schema(),
        Heartbeat::schema(),
        ListenerJoined::schema(),
        ListenerLeft::schema(),
        ShutdownSignal::schema(),
        ThreadCancelled::schema(),
        ThreadResult::schema(),
        ThreadSpawned::schema(),
        NothingUnderWay::schema(),
        Follow::schema(),
        Following::schema(),
        Unfollow::schema(),
        Unfollowed::schema(),
    ];
    for schema in own {
        catalog.add(Cow::Borrowed(schema));
    }
    let mut complaints = Vec::new();
    let mut first: BTreeMap<Name, &str> = BTreeMap::new();
    for spec in specs {
        let schemas = spec.needs.iter().filter_map(|it| match it {
            Need::Accept(it) | Need::Emit(it) => Some(it),
            _ => None,
        });
        for schema in schemas {
            if let Some(name) = catalog.add(schema.clone()) {
                let who = first.get(&name).map_or("the pump", |it| it);
                let how = catalog.get(&name).and_then(|it| difference(it, schema));
                let how = how.unwrap_or_default();
                let text = format!("its {name} isn't that of {who}{how}");
                let text = format!("{text}; share the type, or rename one");
                complaints.push(about(&spec.name, &text));
            } else {
                first.entry(schema.name.clone()).or_insert(&spec.name);
            }
        }
    }
    (catalog, complaints)
}

/// What either schema has to say of the other's example: the first difference that an author sees,
/// if an example shows one.
fn difference(there: &Schema, here: &Schema) -> Option<String> {
    let said = |place: &str, by: &Schema, of: &Schema| {
        let example = xml::read(schema::example(of), Profile::Wire, &XmlLimits::INSIDE).ok()?;
        let error = by.check(example.view()).err()?;
        Some(format!(": {place} {}", error.message))
    };
    said("there", there, here).or_else(|| said("here", here, there))
}

/// Names that are missing, taken or unfit.
fn names(specs: &[Spec]) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    for spec in specs {
        let name = spec.name.as_str();
        let fits = |it: char| it.is_ascii_alphanumeric() || matches!(it, '-' | '_' | '.');
        if name.is_empty() || !name.chars().all(fits) {
            let text = "a listener's name is letters, digits, '-', '_' and '.'";
            complaints.push((Some(name.to_owned()), format!("{name:?}: {text}")));
        }
        if name == CORE_NAME {
            complaints.push(about(name, "the pump itself has this name; take another"));
        }
        *seen.entry(name).or_default() += 1;
    }
    let twice = seen.into_iter().filter(|(_, times)| *times > 1);
    complaints.extend(twice.map(|(name, times)| {
        about(name, &format!("{times} listeners of this name; each needs its own"))
    }));
    complaints
}

/// Identities of a door that are a listener's name as well: nobody could tell the two apart.
fn identities(door: &dyn Door, specs: &[Spec]) -> Vec<Complaint> {
    let mut names = door.identities();
    names.retain(|name| specs.iter().any(|it| it.name == **name));
    let text = "a listener and an identity have this name; give one of them another";
    names.into_iter().map(|it| about(&it, text)).collect()
}

/// What a listener's signatures ask for and it wasn't given.
fn unmet(spec: &Spec) -> Vec<Complaint> {
    let no_doc = |schema: &Schema| schema.doc().trim().is_empty();
    let mut wrong: Vec<String> = Vec::new();
    if spec.text.as_ref().is_some_and(String::is_empty) {
        wrong.push(
            "its description is empty: say what it is for, or leave .describe(…) out".to_owned(),
        );
    }
    if spec.handlers.is_empty() {
        wrong.push("it has no handler: add .on(…)".to_owned());
    }
    if spec.timeout.is_some_and(|it| it.is_zero()) {
        wrong.push("its time limit is 0: give .timeout(…) at least 1ms".to_owned());
    }
    if spec.traits.inline && spec.traits.blocking {
        wrong.push("it can't be both inline and blocking: keep one of the two".to_owned());
    }
    wrong.extend(spec.no_replies.iter().map(|name| {
        format!(
            "it takes Asked with {name}, which it owns: take Option<Asked>, or use .on_reply(…)"
        )
    }));
    for need in &spec.needs {
        let text = match need {
            Need::Accept(it) if no_doc(it) => {
                format!("{} has no description: give its schema a doc", it.name)
            }
            Need::Accept(it) if !xml::is_name(it.name.local()) => {
                format!("no element can be called {}: give the payload another name", it.name)
            }
            Need::Emit(it) if it.reserved && !may_emit(&spec.grants, &it.name) => {
                let (name, grant) = (&it.name, EmitCore::GRANT);
                format!("it may emit {name}, but has no grant {grant}: add .grant::<EmitCore>()")
            }
            Need::Fold(it) if !spec.folds.contains_key(&it.0) => {
                format!("it takes Fold<{0}>: add .fold::<{0}>()", it.0.1)
            }
            Need::Grant(it) if !spec.grants.contains(*it) => {
                format!("it has no grant {it}: add .grant::<…>() with the type that is granted")
            }
            Need::Queue if !spec.traits.serial => {
                "it takes a Queue, but isn't serial: add .serial()".to_owned()
            }
            Need::Park if !spec.needs.iter().any(|it| matches!(it, Need::Queue)) => {
                "it parks messages, but takes no Queue: only what is in one can be parked"
                    .to_owned()
            }
            Need::Arrivals if spec.traits.inline => {
                "it takes Arrivals, but is inline: nothing comes while it is at work".to_owned()
            }
            _ => continue,
        };
        if !wrong.contains(&text) {
            wrong.push(text);
        }
    }
    wrong.into_iter().map(|it| about(&spec.name, &it)).collect()
}

/// Names with more than one owner, where not all are shared, and handlers that shadow others.
fn owners(specs: &[Spec]) -> Vec<Complaint> {
    let mut owners: BTreeMap<&Name, Vec<&Spec>> = BTreeMap::new();
    let mut complaints = Vec::new();
    for spec in specs {
        let mut ways: BTreeMap<&Way, usize> = BTreeMap::new();
        for (way, _) in &spec.handlers {
            *ways.entry(way).or_default() += 1;
            if let Way::Route(name) = way {
                owners.entry(name).or_default().push(spec);
            }
        }
        for (way, times) in ways.into_iter().filter(|(_, times)| *times > 1) {
            let what = match way {
                Way::Route(name) => format!("{name}"),
                Way::Reply(name) => format!("the reply {name}"),
                Way::AnyReply => "any reply".to_owned(),
            };
            let text = format!("{times} handlers of {what}; keep one");
            complaints.push(about(&spec.name, &text));
        }
    }
    for (name, mut owners) in owners {
        owners.dedup_by(|a, b| std::ptr::eq(*a, *b));
        if owners.len() > 1 && !owners.iter().all(|it| it.traits.shared) {
            let names: Vec<&str> = owners.iter().map(|it| it.name.as_str()).collect();
            let last = names.last().map(|it| (*it).to_owned());
            let names = names.join(" and ");
            let way = "keep one, or make each so in Rust";
            let text = format!("{name} is owned by {names}, and not all are .shared(): {way}");
            complaints.push((last, text));
        }
    }
    complaints
}

/// Listeners that others can't do without, or have among their peers, and that aren't there.
fn absent(specs: &[Spec]) -> Vec<Complaint> {
    let is_there = |name: &String| specs.iter().any(|it| it.name == *name);
    let lacks = specs.iter().flat_map(|spec| {
        let names = spec.relies_on.iter().filter(|it| !is_there(it));
        names.map(|it| about(&spec.name, &format!("it can't do without `{it}`: add that too")))
    });
    let unknown = specs.iter().flat_map(|spec| {
        let names = spec.peers.iter().flat_map(|it| it.iter()).filter(|it| !is_there(it));
        names.map(|it| {
            let there = specs.iter().map(|it| it.name.as_str()).filter(|it| *it != spec.name);
            let way = schema::nearest(it, there);
            let way = way.map_or("add it too".to_owned(), |way| format!("did you mean `{way}`?"));
            about(&spec.name, &format!("no listener is called `{it}`, one of its peers: {way}"))
        })
    });
    lacks.chain(unknown).collect()
}

/// One thing that is wrong, and the listener that it is about.
type Complaint = (Option<String>, String);

fn about(listener: &str, text: &str) -> Complaint {
    (Some(listener.to_owned()), format!("{listener}: {text}"))
}

/// All that is wrong with what was to be built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Complaints {
    all: Vec<String>,
    /// The listener that each is about.
    listeners: Vec<Option<String>>,
}

impl Complaints {
    /// Each of them.
    #[must_use]
    pub fn all(&self) -> &[String] {
        &self.all
    }

    /// Each of them, with the name of the listener that it is about, if it is about one.
    pub fn by_listener(&self) -> impl Iterator<Item = (Option<&str>, &str)> {
        let listeners = self.listeners.iter().map(Option::as_deref);
        listeners.zip(self.all.iter().map(String::as_str))
    }
}

impl fmt::Display for Complaints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.all.join("\n"))
    }
}

impl std::error::Error for Complaints {}

/// Found sound. It runs over any port.
pub struct Plan {
    life: Option<Life>,
    pub(crate) routes: Routes,
    log: Arc<dyn Log>,
    doors: Vec<Box<dyn Door>>,
    pub(crate) limits: Limits,
    workers: usize,
}

impl fmt::Debug for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.listeners()).finish()
    }
}

impl Plan {
    /// Every listener: what it takes and what it was granted.
    #[must_use]
    pub fn listeners(&self) -> &[Described] {
        self.capabilities().listeners()
    }

    /// Every schema it knows, by name.
    #[must_use]
    pub fn schemas(&self) -> Vec<&Schema> {
        self.capabilities().schemas()
    }

    /// What it will be able to do.
    #[must_use]
    pub fn capabilities(&self) -> &Capabilities {
        &self.routes.capabilities
    }

    /// The limits.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Starts it on the tokio runtime of the caller.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    #[must_use]
    pub fn start(self) -> Pump {
        self.start_on(&Tokio::current())
    }

    /// Starts it over a port.
    #[must_use]
    pub fn start_on(self, port: &impl Port) -> Pump {
        let gates = self.routes.listeners.iter().map(|_| Gate::new(self.limits.handlers_max));
        let (sleeper, clock, chance) = (port.clone(), port.clone(), port.clone());
        let passing = port.clone();
        let codes = Code::ALL.iter().map(|it| *it as usize).max().unwrap_or(0) + 1;
        let shared = Arc::new(Shared {
            gates: gates.collect(),
            counts: Counts::new(port.now_us(), self.routes.listeners.len()),
            hurry_until_us: AtomicU64::new(0),
            ahead_us: AtomicI64::new(set_by(port)),
            owed: Arc::new(Owed::new(&self.limits)),
            key: self.log.identity().key,
            log: self.log,
            core: CORE_NAME.into(),
            inboxes: (0..self.workers).map(|_| Inbox::default()).collect(),
            awake: (0..self.workers).map(|_| AtomicU64::new(0)).collect(),
            life: self.life,
            followers: Followers::new(self.limits.live_lag_max),
            client_ids: DashMap::new(),
            refusals: Arc::default(),
            refused: (0..codes).map(|_| AtomicU64::new(0)).collect(),
            stage: watch::Sender::new(Stage::Running),
            doors: watch::Sender::new(()),
            has_tokens: self.doors.iter().any(|it| it.has_tokens()),
            broken: AtomicBool::new(false),
            over: Arc::default(),
            ready: watch::Sender::new(None),
            sleep_until: Box::new(move |at_us| Box::pin(sleeper.sleep_until(at_us))),
            now_us: Box::new(move || clock.now_us()),
            random: Box::new(move || chance.random()),
            pass_on: Box::new(move || passing.pass_on()),
            routes: self.routes,
            limits: self.limits,
        });
        for number in 0..self.workers {
            let worker = Worker::new(port.clone(), number, shared.clone());
            let shared = shared.clone();
            port.spawn(async move {
                if AssertUnwindSafe(worker.run()).catch_unwind().await.is_err() {
                    tracing::error!(number, "a worker failed: nothing more is accepted");
                    shared.broken.store(true, Ordering::Relaxed);
                    shared.refuse_all(number).await;
                }
            });
        }
        let (weak, spawning) = (Arc::downgrade(&shared), port.clone());
        shared.refusals.begins(move || refusals::begin(&weak, &spawning));
        let over = shared.over.clone();
        port.look_after(move || over.load(Ordering::Relaxed));
        port.spawn(recover(shared.clone()));
        if let Some(every) = shared.life.as_ref().and_then(|it| it.heartbeat) {
            port.spawn(life::beat(shared.clone(), port.clone(), every));
        }
        let pump = Pump::new(shared.clone());
        for door in self.doors {
            let door = door.serve(pump.clone());
            let serving = shared.doors.subscribe();
            port.spawn(async move {
                if let Err(fault) = door.await {
                    tracing::error!(%fault, "a door closed");
                }
                drop(serving);
            });
        }
        pump
    }
}
