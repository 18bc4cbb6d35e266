//! A simulated runtime for tests. The runtime has virtual time and one source of random numbers.
//! It can simulate crashes. The same seed always gives the same run.
//!
//! ```
//! # extern crate pumphouse_core as pumphouse;
//! use std::time::Duration;
//!
//! use pumphouse::prelude::*;
//! use pumphouse::sim::{Disk, Sim};
//!
//! /// Asks to be reminded.
//! #[derive(Payload)]
//! #[payload(ns = "https://example.org/ns/reminder/v1")]
//! struct Remind {
//!     hours: u64,
//! }
//!
//! /// It is time.
//! #[derive(Payload)]
//! #[payload(ns = "https://example.org/ns/reminder/v1")]
//! struct Ring {
//!     asked: u64,
//! }
//!
//! /// You wanted to be reminded.
//! #[derive(Debug, PartialEq, Payload)]
//! #[payload(ns = "https://example.org/ns/reminder/v1")]
//! struct Reminder;
//!
//! async fn remind(message: Message, clock: Clock, it: Remind) -> Later<Ring> {
//!     Later::at(clock.now_us() + it.hours * 3_600_000_000, Ring { asked: message.seq() })
//! }
//!
//! async fn ring(history: History, out: Outbox<Reminder>, it: Ring) -> Result<(), Fault> {
//!     out.reply_to(&history.read(it.asked - 1, 1).await?[0], Reminder).await
//! }
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let (sim, began) = (Sim::new(7), Sim::BEGINS_US);
//!     let disk = Disk::new(&sim);
//!     let reminder = Listener::new("reminder").on(remind).on(ring).grant::<Timers>();
//!     let pump = pumphouse::builder().with(reminder).with(disk.log()).build()?.start_on(&sim);
//!     assert_eq!(sim.run(pump.ask::<Reminder>(Remind { hours: 3 }))??, Reminder);
//!     assert!(sim.now_us() >= began + 3 * 3_600_000_000);
//!     Ok(())
//! }
//! ```

mod chance;
mod disk;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::future::pending;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use crate::engine::Port;
pub use crate::sim::chance::Chance;

pub use disk::{Disk, DiskLog};

/// A runtime in virtual time. Random numbers from the seed decide which of the ready tasks runs
/// next, and how long each step takes. When no task is ready, the time jumps to the point at which
/// the next sleep ends.
///
/// A clone is another handle of the same runtime.
#[derive(Clone)]
pub struct Sim(Arc<Machine>);

/// The state that all handles share.
struct Machine {
    state: Mutex<MachineState>,
}

struct MachineState {
    chance: Chance,
    now_us: u64,
    /// How many microseconds the wall clock is ahead of virtual time. Negative if it is behind.
    set_by_us: i64,
    /// How many steps were taken since the last [`Sim::run`] began. A step polls one task.
    steps: u64,
    steps_max: u64,
    /// The number that the last task or sleep got.
    next: u64,
    /// Maps a task's number to the task. None while the task is being polled.
    tasks: BTreeMap<u64, Option<Task>>,
    /// The numbers of the ready tasks. The set is sorted, so the order in which tasks were woken
    /// has no effect.
    ready: BTreeSet<u64>,
    /// Maps the end and the number of a sleep to the waker of the sleeping task.
    sleepers: BTreeMap<(u64, u64), Waker>,
}

type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The reason why a run didn't end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stuck {
    /// No task was ready and none slept, so the awaited future never ends.
    Idle,
    /// The run took this number of steps, and no more were allowed.
    Endless(u64),
}

impl fmt::Display for Stuck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stuck::Idle => f.write_str("nothing can go on, and nobody sleeps"),
            Stuck::Endless(steps) => {
                write!(f, "after {steps} steps it still goes on; allow more, or find the circle")
            }
        }
    }
}

impl std::error::Error for Stuck {}

impl Sim {
    /// The time when every simulation begins: 1 January 2026, in microseconds since the Unix epoch.
    pub const BEGINS_US: u64 = 1_767_225_600_000_000;

    /// How many steps one [`run`](Sim::run) may take, unless [`allow_steps`](Sim::allow_steps) sets
    /// another number.
    pub const STEPS_MAX: u64 = 1_000_000;

    /// One step of a task takes less than this, in microseconds.
    const STEP_US_MAX: u64 = 20;

    /// A new task is delayed by less than this, in microseconds.
    const LATE_US_MAX: u64 = 10_000;

    /// Creates a runtime that takes all its random choices from this seed.
    #[must_use]
    pub fn new(seed: u64) -> Sim {
        let state = MachineState {
            chance: Chance::new(seed),
            now_us: Sim::BEGINS_US,
            set_by_us: 0,
            steps: 0,
            steps_max: Sim::STEPS_MAX,
            next: 0,
            tasks: BTreeMap::new(),
            ready: BTreeSet::new(),
            sleepers: BTreeMap::new(),
        };
        Sim(Arc::new(Machine { state: Mutex::new(state) }))
    }

    /// Sets how many steps one run may take.
    pub fn allow_steps(&self, steps_max: u64) {
        self.state().steps_max = steps_max;
    }

    /// Runs all tasks until this future has ended. The other tasks then stop where they are, and
    /// continue in the next run.
    ///
    /// # Errors
    /// If the future can't end, or if the run takes too many steps.
    pub fn run<F: Future>(&self, main: F) -> Result<F::Output, Stuck> {
        let mut main = pin!(main);
        let id = self.fresh();
        self.state().ready.insert(id);
        self.state().steps = 0;
        loop {
            let next = self.advance()?;
            let waker =
                Waker::from(Arc::new(Wakes { task: next, machine: Arc::downgrade(&self.0) }));
            let mut context = Context::from_waker(&waker);
            if next != id {
                self.poll(next, &mut context);
            } else if let Poll::Ready(output) = main.as_mut().poll(&mut context) {
                return Ok(output);
            }
        }
    }

    /// Runs all tasks until none is ready and none sleeps.
    ///
    /// # Errors
    /// If the run takes too many steps.
    pub fn rest(&self) -> Result<(), Stuck> {
        match self.run(pending::<()>()) {
            Ok(()) | Err(Stuck::Idle) => Ok(()),
            Err(stuck) => Err(stuck),
        }
    }

    /// Drops every task where it is, as a power cut does. Virtual time stays as it is.
    pub fn crash(&self) {
        loop {
            let mut state = self.state();
            let tasks = std::mem::take(&mut state.tasks);
            state.ready.clear();
            let sleepers = std::mem::take(&mut state.sleepers);
            // Dropping tasks may wake tasks or drop sleeps, which lock the state.
            drop(state);
            if tasks.is_empty() && sleepers.is_empty() {
                return;
            }
            drop((tasks, sleepers));
        }
    }

    /// Returns the microseconds since the epoch, in virtual time.
    #[must_use]
    pub fn now_us(&self) -> u64 {
        self.state().now_us
    }

    /// Moves the wall clock by this many microseconds, or back if the number is negative. Virtual
    /// time doesn't change.
    pub fn set_clock(&self, by_us: i64) {
        self.state().set_by_us += by_us;
    }

    /// Sleeps in virtual time.
    pub fn sleep(&self, time: Duration) -> Sleep {
        let time_us = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let at_us = self.now_us().saturating_add(time_us);
        Sleep { sim: self.clone(), at_us, number: self.fresh() }
    }

    /// Returns a random number from 0 to `end` - 1, or 0 if `end` is 0.
    #[must_use]
    pub fn below(&self, end: u64) -> u64 {
        self.state().chance.below(end)
    }

    fn state(&self) -> MutexGuard<'_, MachineState> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fresh(&self) -> u64 {
        let mut state = self.state();
        state.next += 1;
        state.next
    }

    /// Chooses the ready task that runs next. If none is ready, the time jumps to the point at
    /// which the next sleep ends.
    fn advance(&self) -> Result<u64, Stuck> {
        let mut state = self.state();
        if state.steps >= state.steps_max {
            return Err(Stuck::Endless(state.steps));
        }
        state.steps += 1;
        let step_us = state.chance.below(Sim::STEP_US_MAX);
        state.now_us += step_us;
        while let Some((key, _)) = state.sleepers.first_key_value()
            && (state.ready.is_empty() || key.0 <= state.now_us)
        {
            let Some(((at_us, _), waker)) = state.sleepers.pop_first() else { break };
            state.now_us = state.now_us.max(at_us);
            drop(state);
            waker.wake();
            state = self.state();
        }
        let count = state.ready.len() as u64;
        let drawn = usize::try_from(state.chance.below(count)).unwrap_or(0);
        let task = state.ready.iter().nth(drawn).copied().ok_or(Stuck::Idle)?;
        state.ready.remove(&task);
        Ok(task)
    }

    fn poll(&self, id: u64, context: &mut Context<'_>) {
        let task = self.state().tasks.get_mut(&id).and_then(Option::take);
        let Some(mut task) = task else { return };
        let ended = task.as_mut().poll(context).is_ready();
        let mut state = self.state();
        if ended {
            state.tasks.remove(&id);
            // Dropping the task may wake others, which locks the state.
            drop(state);
        } else if let Some(place) = state.tasks.get_mut(&id) {
            *place = Some(task);
        }
    }
}

impl fmt::Debug for Sim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state();
        f.debug_struct("Sim")
            .field("now_us", &state.now_us)
            .field("tasks", &state.tasks.len())
            .field("steps", &state.steps)
            .finish_non_exhaustive()
    }
}

impl Port for Sim {
    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let late_us = if self.below(8) == 0 { self.below(Sim::LATE_US_MAX) } else { 0 };
        let late = self.sleep(Duration::from_micros(late_us));
        let task = async move {
            late.await;
            task.await;
        };
        let id = self.fresh();
        let mut state = self.state();
        state.tasks.insert(id, Some(Box::pin(task)));
        state.ready.insert(id);
    }

    fn spawn_blocking(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.spawn(task);
    }

    fn sleep_until(&self, at_us: u64) -> impl Future<Output = ()> + Send + 'static {
        Sleep { sim: self.clone(), at_us, number: self.fresh() }
    }

    fn now_us(&self) -> u64 {
        Sim::now_us(self)
    }

    fn wall_us(&self) -> u64 {
        let state = self.state();
        state.now_us.saturating_add_signed(state.set_by_us)
    }

    fn random(&self) -> u64 {
        self.state().chance.draw()
    }
}

/// A sleep in virtual time.
#[must_use = "it sleeps only while it is awaited"]
pub struct Sleep {
    sim: Sim,
    at_us: u64,
    number: u64,
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut state = self.sim.state();
        if state.now_us >= self.at_us {
            return Poll::Ready(());
        }
        state.sleepers.insert((self.at_us, self.number), context.waker().clone());
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        let waker = self.sim.state().sleepers.remove(&(self.at_us, self.number));
        // Dropping the waker may drop a task, which may lock the state. So the waker is dropped
        // here, after the state is unlocked.
        drop(waker);
    }
}

impl fmt::Debug for Sleep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sleep until {}", self.at_us)
    }
}

/// A waker, which makes a task ready.
struct Wakes {
    task: u64,
    machine: Weak<Machine>,
}

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        let Some(machine) = self.machine.upgrade() else { return };
        machine.state.lock().unwrap_or_else(PoisonError::into_inner).ready.insert(self.task);
    }
}

#[cfg(test)]
mod tests;
