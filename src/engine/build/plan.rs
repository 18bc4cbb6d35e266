//! A pump that passed all checks, and its start.

use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use dashmap::{DashMap, DashSet};
use futures_util::FutureExt;

use crate::engine::build::door::Door;
use crate::engine::build::restart::give_back_unfinished;
use crate::engine::common::counts::Counts;
use crate::engine::common::followers::Followers;
use crate::engine::common::gate::Gate;
use crate::engine::common::runtime::Runtime;
use crate::engine::common::shared::{Clients, Life, PumpState, Shared, Workers};
use crate::engine::common::unread_bytes::UnreadBytes;
use crate::engine::common::{lifecycle, refusal_report};
use crate::engine::handle::pump::Pump;
use crate::engine::runtime_port::{Port, Tokio};
use crate::engine::tree::route::Routes;
use crate::engine::worker::driver::{Worker, set_by};
use crate::limits::Limits;
use crate::listener::{Capabilities, Described};
use crate::log::Log;
use crate::name::CORE_NAME;
use crate::schema::Schema;

/// A pump that passed all checks and can start on any port.
pub struct Plan {
    pub(super) life: Option<Life>,
    pub(crate) routes: Routes,
    pub(super) log: Arc<dyn Log>,
    pub(super) doors: Vec<Box<dyn Door>>,
    pub(crate) limits: Limits,
    pub(super) workers: usize,
    pub(super) warnings: Vec<String>,
}

impl fmt::Debug for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.listeners()).finish()
    }
}

impl Plan {
    /// Returns a description of every listener: its payloads and its grants.
    #[must_use]
    pub fn listeners(&self) -> &[Described] {
        self.capabilities().listeners()
    }

    /// Returns the warnings about the listeners. `build()` also traces each of them.
    #[must_use]
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Returns every schema of the organism, in the order of their names.
    #[must_use]
    pub fn schemas(&self) -> Vec<&Schema> {
        self.capabilities().schemas()
    }

    /// Returns the organism's capabilities.
    #[must_use]
    pub fn capabilities(&self) -> &Capabilities {
        &self.routes.capabilities
    }

    /// Returns the log.
    #[must_use]
    pub fn log(&self) -> &dyn Log {
        &*self.log
    }

    /// Returns the limits.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Starts the pump on the tokio runtime of the caller.
    ///
    /// # Panics
    /// If the caller runs outside a tokio runtime.
    #[must_use]
    pub fn start(self) -> Pump {
        self.start_on(&Tokio::current())
    }

    /// Starts the pump on a port.
    #[must_use]
    pub fn start_on(self, port: &impl Port) -> Pump {
        let (agents, others) = (self.limits.agents_at_once, self.limits.handlers_max);
        let places = |is_agent: bool| if is_agent { agents } else { others };
        let gates = self.routes.listeners.iter().map(|it| Gate::new(places(it.traits.agent)));
        let clients = Clients {
            followers: Followers::new(self.limits.live_lag_max),
            client_ids: DashMap::new(),
            followed: DashSet::new(),
            unread: Arc::new(UnreadBytes::new(&self.limits)),
            has_tokens: self.doors.iter().any(|door| door.has_tokens()),
        };
        let shared = Arc::new(Shared {
            workers: Workers::new(self.workers, gates.collect(), set_by(port)),
            clients,
            counts: Counts::new(port.now_us(), self.routes.listeners.len()),
            refusals: Arc::default(),
            state: PumpState::default(),
            runtime: Runtime::of(port),
            log: self.log,
            core: CORE_NAME.into(),
            life: self.life,
            routes: self.routes,
            limits: self.limits,
        });
        for number in 0..self.workers {
            let worker = Worker::new(port.clone(), number, shared.clone());
            let shared = shared.clone();
            port.spawn(async move {
                if AssertUnwindSafe(worker.run()).catch_unwind().await.is_err() {
                    tracing::error!(number, "a worker failed: nothing more is accepted");
                    shared.state.broken.store(true, Ordering::Relaxed);
                    shared.refuse_all(number).await;
                }
            });
        }
        let (weak, spawning) = (Arc::downgrade(&shared), port.clone());
        shared.refusals.begins(move || refusal_report::begin(&weak, &spawning));
        let over = shared.state.over.clone();
        port.look_after(move || over.load(Ordering::Relaxed));
        port.spawn(give_back_unfinished(shared.clone()));
        if let Some(every) = shared.life.as_ref().and_then(|it| it.heartbeat) {
            port.spawn(lifecycle::beat(shared.clone(), port.clone(), every));
        }
        let pump = Pump::new(shared.clone());
        for door in self.doors {
            let door = door.serve(pump.clone());
            let serving = shared.state.doors.subscribe();
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
