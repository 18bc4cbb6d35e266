//! The port: the tasks, the time and the random numbers that the engine gets from a runtime. There
//! are two ports: tokio's in this file, and the simulator's in `src/sim`.

use std::thread;
use std::time::Duration;

use tokio::runtime::RuntimeFlavor;

use crate::clock;

/// The engine's only source of tasks, time and random numbers.
pub trait Port: Clone + Send + Sync + 'static {
    /// Runs a task beside the others.
    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static);
    /// Runs a task on a thread that the task may block.
    fn spawn_blocking(&self, task: impl Future<Output = ()> + Send + 'static);
    /// Waits until [`now_us`](Port::now_us) has reached this time.
    fn sleep_until(&self, at_us: u64) -> impl Future<Output = ()> + Send + 'static;
    /// Returns the microseconds since the epoch by a monotonic clock.
    fn now_us(&self) -> u64;
    /// Returns the microseconds since the epoch by the wall clock, which an operator may set.
    fn wall_us(&self) -> u64;
    /// Returns 64 random bits that can't be predicted.
    fn random(&self) -> u64;
    /// Lets another thread run the task that the caller just woke. Otherwise that task would wait
    /// for the caller, which may never yield.
    fn pass_on(&self) {}
    /// Keeps tasks and timers running even if one task keeps its thread for long. Stops doing so
    /// once `is_over` returns true.
    fn look_after(&self, _is_over: impl Fn() -> bool + Send + 'static) {}
}

/// How long timers and sockets may wait behind a handler that never yields.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The tokio runtime that the pump is started in.
#[derive(Clone, Debug)]
pub struct Tokio(tokio::runtime::Handle);

impl Tokio {
    /// Returns the tokio runtime that the caller runs in.
    ///
    /// # Panics
    /// If the caller runs outside a tokio runtime.
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
        // Tokio reserves the newest woken task for the thread that woke it. Waking one more task
        // moves the reserved task to a queue from which other threads take tasks.
        self.0.spawn(async {});
    }

    fn look_after(&self, is_over: impl Fn() -> bool + Send + 'static) {
        // One thread of the runtime waits for timers and sockets, and then runs a task that they
        // woke. If that task never yields, another thread has to wait for timers and sockets.
        // Spawning an empty task wakes another thread.
        if self.0.runtime_flavor() == RuntimeFlavor::CurrentThread {
            return;
        }
        let handle = self.0.clone();
        let look = move || {
            let mut looked = handle.spawn(async {});
            while !is_over() {
                thread::park_timeout(LOOK_EVERY);
                // While the last empty task hasn't run, no further one is needed.
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
