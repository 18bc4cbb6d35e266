//! Presets: words that stand for the properties of the usual kinds of listeners. Each of them only
//! calls other words of the builder, so further words may follow.

use crate::listener::{Effects, Listener};

impl<S: Clone + Send + Sync + 'static> Listener<S> {
    /// Makes the listener a reaction: its answers follow at once, and from the arguments alone.
    /// Stands for [`pure`](Listener::pure) and [`inline`](Listener::inline). The log gets the
    /// message and the answer with one wait for the disk.
    ///
    /// ```
    /// # extern crate pumphouse_core as pumphouse;
    /// use pumphouse::prelude::*;
    ///
    /// # /// A number.
    /// # #[derive(Payload)]
    /// # #[payload(ns = "urn:double")]
    /// # struct Number { value: i32 }
    /// let double = async |Number { value }: Number| Number { value: value * 2 };
    /// let double = Listener::new("double").on(double).reaction();
    /// assert!(pumphouse::builder().with(double).build().is_ok());
    /// ```
    #[must_use]
    pub fn reaction(self) -> Listener<S> {
        self.pure().inline()
    }

    /// Makes the listener a bookkeeper: it keeps account of a thread, mostly in a
    /// [fold](crate::listener::Apply), and decides by it in microseconds. Stands for
    /// [`serial`](Listener::serial), [`inline`](Listener::inline) and
    /// [`idempotent`](Listener::idempotent). A bookkeeper may read clocks and ask the log; one that
    /// doesn't is `.serial().reaction()`.
    #[must_use]
    pub fn bookkeeper(self) -> Listener<S> {
        self.serial().inline().idempotent()
    }

    /// Makes the listener a worker: it works on a message for a while, asks others, and goes on
    /// after a crash where it was. Stands for [`serial`](Listener::serial),
    /// [`shared`](Listener::shared), [`idempotent`](Listener::idempotent) and
    /// [`recorded`](Listener::recorded): it records what it hears, and several workers of one kind
    /// may take the same orders. Add [`own_thread`](Listener::own_thread) if each call is to have a
    /// thread of its own.
    #[must_use]
    pub fn worker(self) -> Listener<S> {
        self.serial().shared().idempotent().recorded()
    }

    /// Makes the listener a reader: its calls only read data of this machine, so they may be
    /// repeated. Stands for [`effects`](Listener::effects) with [`Effects::Reads`] and
    /// [`idempotent`](Listener::idempotent).
    #[must_use]
    pub fn reader(self) -> Listener<S> {
        self.effects(Effects::Reads).idempotent()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::listener::Traits;

    /// The properties of a listener, as a text.
    fn shown(it: &Listener) -> String {
        format!("{:?} {:?}", it.spec.traits, it.spec.effects)
    }

    #[test]
    fn a_preset_is_the_words_that_it_stands_for() {
        let new = || Listener::new("a");
        let pairs = [
            (new().reaction(), new().inline().pure()),
            (new().bookkeeper(), new().idempotent().inline().serial()),
            (new().worker(), new().recorded().idempotent().shared().serial()),
            (new().reader(), new().idempotent().effects(Effects::Reads)),
        ];
        for (preset, words) in &pairs {
            assert_eq!(shown(preset), shown(words));
            assert_ne!(shown(preset), format!("{:?} None", Traits::default()));
        }
    }
}
