//! The port: tasks, time and chance. Everything the engine needs of a runtime; a simulator is
//! another.

use std::thread;
use std::time::Duration;

use tokio::runtime::RuntimeFlavor;

use crate::clock;

/// The one source of time, chance and tasks.
pub trait Port: Clone + Send + Sync + 'static {
    /// Runs a task beside the others.
    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static);
    /// Runs a task where it may block.
    fn spawn_blocking(&self, task: impl Future<Output = ()> + Send + 'static);
    /// Waits until [`now_us`](Port::now_us) says so much.
    fn sleep_until(&self, at_us: u64) -> impl Future<Output = ()> + Send + 'static;
    /// Microseconds since the epoch, by the time that passes: it never goes back.
    fn now_us(&self) -> u64;
    /// Microseconds since the epoch by the wall clock, which may be set.
    fn wall_us(&self) -> u64;
    /// 64 bits that nobody can guess.
    fn random(&self) -> u64;
    /// Has what the caller just woke run elsewhere, where it would otherwise run after the caller:
    /// that one may never yield.
    fn pass_on(&self) {}
    /// Has tasks and timers looked after however long one of them keeps its thread, until it is
    /// over.
    fn look_after(&self, _is_over: impl Fn() -> bool + Send + 'static) {}
}

/// How long timers and sockets may wait behind a handler that woke and never yields.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The tokio runtime that the pump is started in.
#[derive(Clone, Debug)]
pub struct Tokio(tokio::runtime::Handle);

impl Tokio {
    /// The runtime of the caller.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    #[must_use]
    pub fn current() -> Tokio {
        Tokio(tokio::runtime::Handle::current())
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the one door to the runtime")]
impl Port for Tokio {
    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.0.spawn(task);
    }

    fn spawn_blocking(&self, task: impl Future<Output = ()> + Send + 'static) {
        let handle = self.0.clone();
        self.0.spawn_blocking(move || handle.block_on(task));
    }

    fn sleep_until(&self, at_us: u64) -> impl Future<Output = ()> + Send + 'static {
        let wait = Duration::from_micros(at_us.saturating_sub(clock::now_us()));
        async move { tokio::time::sleep(wait).await }
    }

    fn now_us(&self) -> u64 {
        clock::now_us()
    }

    fn wall_us(&self) -> u64 {
        clock::wall_us()
    }

    fn random(&self) -> u64 {
        clock::random()
    }

    fn pass_on(&self) {
        // The task woken last waits for this thread and can't be taken over by another; one more
        // takes that place.
        self.0.spawn(async {});
    }

    fn look_after(&self, is_over: impl Fn() -> bool + Send + 'static) {
        // A thread of the runtime that waits for timers and sockets runs what it was woken for
        // itself. If that never yields, another has to be woken to wait in its place.
        if self.0.runtime_flavor() == RuntimeFlavor::CurrentThread {
            return;
        }
        let handle = self.0.clone();
        let look = move || {
            let mut looked = handle.spawn(async {});
            while !is_over() {
                thread::park_timeout(LOOK_EVERY);
                // One that nobody has taken yet has told everybody already.
                if looked.is_finished() {
                    looked = handle.spawn(async {});
                }
            }
        };
        let spawned = thread::Builder::new().name("pumphouse-look".to_owned()).spawn(look);
        if let Err(error) = spawned {
            tracing::warn!(%error, "no thread looks after handlers that never yield");
        }
    }
}
