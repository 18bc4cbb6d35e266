//! The port's clock, sleep and random numbers, for code that doesn't know the port's type.

use std::pin::Pin;

use crate::engine::runtime_port::Port;

/// A future that waits until a time.
pub(crate) type Sleep = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The functions of a port, with the port's type erased.
pub(crate) struct Runtime {
    sleep_until: Box<dyn Fn(u64) -> Sleep + Send + Sync>,
    now_us: Box<dyn Fn() -> u64 + Send + Sync>,
    random: Box<dyn Fn() -> u64 + Send + Sync>,
    pass_on: Box<dyn Fn() + Send + Sync>,
}

impl Runtime {
    pub(crate) fn of(port: &impl Port) -> Runtime {
        let (sleeper, clock, chance) = (port.clone(), port.clone(), port.clone());
        let passing = port.clone();
        Runtime {
            sleep_until: Box::new(move |at_us| Box::pin(sleeper.sleep_until(at_us))),
            now_us: Box::new(move || clock.now_us()),
            random: Box::new(move || chance.random()),
            pass_on: Box::new(move || passing.pass_on()),
        }
    }

    /// Waits until [`now_us`](Runtime::now_us) has reached this time.
    pub(crate) fn sleep_until(&self, at_us: u64) -> Sleep {
        (self.sleep_until)(at_us)
    }

    /// See [`Port::now_us`].
    pub(crate) fn now_us(&self) -> u64 {
        (self.now_us)()
    }

    /// See [`Port::random`].
    pub(crate) fn random(&self) -> u64 {
        (self.random)()
    }

    /// See [`Port::pass_on`].
    pub(crate) fn pass_on(&self) {
        (self.pass_on)();
    }
}
