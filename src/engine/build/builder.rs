//! Collects plugins and builds a plan from them, or reports every complaint at once.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use crate::engine::build::complaints::{
    Complaint, Complaints, absent, catalog, identities, names, of_each,
};
use crate::engine::build::door::Door;
use crate::engine::build::factory::Factory;
use crate::engine::build::own_answers::own_answers;
use crate::engine::build::plan::Plan;
use crate::engine::build::values::Values;
use crate::engine::common::shared::Life;
use crate::engine::tree::route::{Registered, Routes};
use crate::limits::Limits;
use crate::listener::{Capabilities, Described, Listener, Need, Spec};
use crate::log::{Log, MemoryLog};
use crate::name::Name;
use crate::schema::Schema;
use crate::secret::{Secret, Secrets};
use crate::wire::Catalog;

/// An argument of `.with`: a listener, a factory, a log, a door, a function that takes a builder,
/// or several of these.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no plugin",
    note = "give a Listener, a log, a door, a tuple or Vec of plugins, or a `fn(&mut Builder)`"
)]
pub trait Plugin {
    /// Adds the plugin to a builder.
    fn install(self, builder: &mut Builder);
}

/// Collects plugins. [`build`](Builder::build) checks them together, so a plugin may come before
/// another one that it needs.
#[derive(Default)]
pub struct Builder {
    specs: Vec<Spec>,
    logs: Vec<Arc<dyn Log>>,
    doors: Vec<Box<dyn Door>>,
    factories: Vec<Factory>,
    /// Payloads that the pump knows even if no listener uses them.
    declared: Vec<Schema>,
    /// Values for factories.
    values: Values,
    /// Complaints of plugins.
    complaints: Vec<String>,
    limits: Limits,
    workers: Option<usize>,
    name: Option<String>,
    heartbeat: Option<Duration>,
    /// Secrets beside those of listeners, each with what it is called.
    secrets: Vec<(String, Secret)>,
}

/// The largest number of workers of a pump. The gate of a listener has one bit for each worker.
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

    /// Raises the doors' `message_bytes_max` to this many bytes, unless it is larger already.
    pub fn door_bytes_at_least(mut self, bytes: usize) -> Builder {
        let most = &mut self.limits.door.message_bytes_max;
        *most = bytes.max(*most);
        self
    }

    /// Names the organism. An organism with a name records its own life in the thread `organism`:
    /// `boot` at each start, the listeners that joined and left since the last start, and
    /// `shutdown-signal`.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Builder {
        self.name = Some(name.into());
        self
    }

    /// Returns whether the organism has a name by now.
    pub fn has_name(&self) -> bool {
        self.name.is_some()
    }

    /// Makes the organism record a heartbeat at this interval, if it has a name.
    #[must_use]
    pub fn heartbeat(mut self, every: Duration) -> Builder {
        self.heartbeat = Some(every);
        self
    }

    /// Uses this many workers. The default is the number of processors, but at most 64.
    #[must_use]
    pub fn workers(mut self, workers: usize) -> Builder {
        self.workers = Some(workers);
        self
    }

    /// Hides these secrets in all that listeners emit, beside those of listeners. Each comes with
    /// what has it, such as `the model large`.
    pub fn secrets(&mut self, all: Vec<(String, Secret)>) {
        self.secrets.extend(all);
    }

    /// Adds a listener.
    pub fn listener<S>(&mut self, listener: Listener<S>) {
        self.specs.push(listener.spec);
    }

    /// Keeps entries in this log. The default is a log in memory.
    pub fn log(&mut self, log: Arc<dyn Log>) {
        self.logs.push(log);
    }

    /// Opens this door when the pump starts.
    pub fn door(&mut self, door: impl Door + 'static) {
        self.doors.push(Box::new(door));
    }

    /// Declares a payload, even if no listener takes or sends it.
    pub fn declare(&mut self, schema: Schema) {
        self.declared.push(schema);
    }

    /// Lets a manifest name this factory. If two factories have the same name, the first one is
    /// used.
    pub fn factory(&mut self, factory: Factory) {
        if self.factories.iter().all(|it| it.name() != factory.name()) {
            self.factories.push(factory);
        }
    }

    /// Returns the factories that a manifest may name.
    #[must_use]
    pub fn factories(&self) -> &[Factory] {
        &self.factories
    }

    /// Keeps a value for factories, in place of the one of the same type. [`Factory::with`] has an
    /// example.
    pub fn put<T: Any + Send + Sync>(&mut self, value: T) {
        self.values.put(value);
    }

    /// Returns the values for factories.
    #[must_use]
    pub fn values(&self) -> &Values {
        &self.values
    }

    /// Makes [`build`](Builder::build) fail with this complaint and all others.
    pub fn complain(&mut self, why: impl Into<String>) {
        self.complaints.push(why.into());
    }

    /// Returns the names of the listeners that the builder has so far.
    pub fn listeners(&self) -> impl Iterator<Item = &str> {
        self.specs.iter().map(|it| it.name.as_str())
    }

    /// Returns the payloads that the listeners in the builder take or may emit, without reserved
    /// ones. Reserved payloads are the pump's own.
    pub fn payloads(&self) -> impl Iterator<Item = &Name> {
        self.specs.iter().flat_map(Spec::payloads)
    }

    /// Returns complaints about the listeners in the builder and some others, whichever further
    /// ones there are.
    pub fn complaints_with<'a>(
        &'a self,
        others: impl Iterator<Item = &'a Listener>,
    ) -> Vec<Complaint> {
        let specs: Vec<&Spec> = self.specs.iter().chain(others.map(|it| &it.spec)).collect();
        let mut complaints = catalog(&specs, &self.declared).1;
        complaints.extend(of_each(&specs));
        complaints
    }

    /// Returns the capabilities of the listeners in the builder and of some others. They may lack
    /// listeners that come later.
    pub fn capabilities_with<'a>(
        &'a self,
        others: impl Iterator<Item = &'a Listener>,
    ) -> Capabilities {
        let specs: Vec<&Spec> = self.specs.iter().chain(others.map(|it| &it.spec)).collect();
        let mut catalog = Catalog::default();
        for need in specs.iter().flat_map(|it| &it.needs) {
            if let Need::Accept(it) | Need::Emit(it) = need {
                catalog.add(it.clone());
            }
        }
        Capabilities::new(specs.into_iter().map(Described::of).collect(), catalog)
    }

    /// Checks all that was given to the builder, and makes a plan. Nothing runs yet.
    ///
    /// # Errors
    /// All complaints at once.
    pub fn build(mut self) -> Result<Plan, Complaints> {
        let specs: Vec<&Spec> = self.specs.iter().collect();
        let kinds: Vec<&str> = self.factories.iter().map(Factory::name).collect();
        let (catalog, mut complaints) = catalog(&specs, &self.declared);
        complaints.extend(names(&specs));
        complaints.extend(self.doors.iter().flat_map(|it| identities(&**it, &specs)));
        complaints.extend(of_each(&specs));
        complaints.extend(absent(&specs, &kinds));
        complaints.extend(self.complaints.iter().map(|it| (None, it.clone())));
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
        let mut warnings: Vec<String> = self.specs.iter().flat_map(own_answers).collect();
        warnings.extend(self.ordinary_secrets());
        for warning in &warnings {
            tracing::warn!("{warning}");
        }
        let there = || std::thread::available_parallelism().map_or(1, usize::from);
        let default_us = u64::try_from(self.limits.handler_time_max.as_micros());
        let default_us = default_us.unwrap_or(u64::MAX);
        let secrets = self.hide_secrets();
        let described = self.specs.iter().map(Described::of).collect();
        let capabilities = Capabilities::new(described, catalog);
        let registered = self.specs.into_iter().map(|spec| {
            let own = spec.timeout.map(|it| u64::try_from(it.as_micros()).unwrap_or(u64::MAX));
            Registered::new(spec, own.unwrap_or(default_us))
        });
        Ok(Plan {
            routes: Routes::new(registered.collect(), capabilities).hiding(secrets),
            log: self.logs.into_iter().next().unwrap_or_else(|| Arc::new(MemoryLog::new())),
            life: self.name.map(|it| Life { name: it.into(), heartbeat: self.heartbeat }),
            doors: self.doors,
            limits: self.limits,
            workers: self.workers.unwrap_or_else(there).min(WORKERS_MAX),
            warnings,
        })
    }

    /// All secrets, each with what has it.
    fn all_secrets(&self) -> Vec<(String, Secret)> {
        let of_listeners = self.specs.iter().flat_map(|it| {
            it.secrets.iter().map(|secret| (format!("the listener {}", it.name), secret.clone()))
        });
        self.secrets.iter().cloned().chain(of_listeners).collect()
    }

    /// A warning for each secret that is an ordinary word.
    fn ordinary_secrets(&self) -> Vec<String> {
        let mut all = self.all_secrets();
        all.retain(|(_, it)| it.is_ordinary());
        let mut told: Vec<Secret> = Vec::new();
        all.retain(|(_, it)| {
            !told.contains(it) && {
                told.push(it.clone());
                true
            }
        });
        let warning = |of: &str| {
            format!(
                "the secret of {of} is an ordinary word or a date, and is hidden in all texts: \
                 take a random one of 16 bytes or more; docs/security.md says what counts as secret"
            )
        };
        all.iter().map(|(of, _)| warning(of)).collect()
    }

    /// Hides all secrets in the descriptions of listeners, and returns them.
    fn hide_secrets(&mut self) -> Secrets {
        let secrets = Secrets::new(self.all_secrets().into_iter().map(|(_, it)| it));
        for text in self.specs.iter_mut().flat_map(|it| [&mut it.text, &mut it.model]).flatten() {
            *text = secrets.hide_in(std::mem::take(text));
        }
        secrets
    }
}
