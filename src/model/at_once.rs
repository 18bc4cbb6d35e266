//! A model that is asked only so often at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::{Boxed, Details, Model, Piece, Price, Prompt, Reply};

/// A model that has only so many replies under way at once: who asks it then waits for the end of
/// one of them.
///
/// ```
/// use std::sync::Arc;
/// use pumphouse::model::{AtOnce, Model, Scripted};
///
/// let model = Scripted::replies(["<response>42</response>"]);
/// let model = AtOnce::new("fixed", Arc::new(model), 8);
/// assert!(model.describe().starts_with("scripted"));
/// ```
#[derive(Debug)]
pub struct AtOnce {
    name: String,
    model: Arc<dyn Model>,
    places: Arc<Semaphore>,
    most: usize,
    /// Turns that wait for a place now, and turns that ever had to.
    waiting: AtomicU64,
    held_up: AtomicU64,
}

/// How much a model that has only so many replies at once is asked.
///
/// ```
/// use std::sync::Arc;
/// use pumphouse::model::{AtOnce, Model, Scripted};
///
/// let model = AtOnce::new("fixed", Arc::new(Scripted::replies(["42"])), 8);
/// let load = model.load().unwrap();
/// assert_eq!((load.at_once, load.under_way, load.waiting, load.held_up), (8, 0, 0, 0));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Load {
    /// How many replies it has under way at the most.
    pub at_once: u64,
    /// How many it has under way.
    pub under_way: u64,
    /// How many turns wait for the end of a reply.
    pub waiting: u64,
    /// How many turns had to wait since the model was made.
    pub held_up: u64,
}

impl AtOnce {
    /// The model with at most so many replies at once; its name is for the traces.
    #[must_use]
    pub fn new(name: impl Into<String>, model: Arc<dyn Model>, most: usize) -> AtOnce {
        let most = most.clamp(1, Semaphore::MAX_PERMITS);
        let places = Arc::new(Semaphore::new(most));
        let (waiting, held_up) = (AtomicU64::new(0), AtomicU64::new(0));
        AtOnce { name: name.into(), model, places, most, waiting, held_up }
    }

    /// A place for a reply. A turn whose future is dropped is no longer counted as waiting.
    async fn place(&self) -> Option<OwnedSemaphorePermit> {
        if let Ok(place) = self.places.clone().try_acquire_owned() {
            return Some(place);
        }
        if self.held_up.fetch_add(1, Ordering::Relaxed) == 0 {
            let (model, most) = (&*self.name, self.most);
            tracing::info!(model, "a turn waits for a model; its limit at_once is {most}");
        }
        let _waiting = Waiting::on(&self.waiting);
        // An error says that the semaphore is closed, which nobody does.
        self.places.clone().acquire_owned().await.ok()
    }
}

impl Model for AtOnce {
    fn turn(&self, prompt: Prompt) -> Boxed<'_, Box<dyn Reply>> {
        Box::pin(async move {
            let place = self.place().await;
            let reply = self.model.turn(prompt).await?;
            Ok(Box::new(WithPlace { reply, _place: place }) as Box<dyn Reply>)
        })
    }

    fn turn_once(&self, prompt: Prompt) -> Boxed<'_, Box<dyn Reply>> {
        Box::pin(async move {
            let place = self.place().await;
            let reply = self.model.turn_once(prompt).await?;
            Ok(Box::new(WithPlace { reply, _place: place }) as Box<dyn Reply>)
        })
    }

    fn window(&self) -> Option<u32> {
        self.model.window()
    }

    fn tokens(&self, text: &str) -> Option<u64> {
        self.model.tokens(text)
    }

    fn max_tokens(&self) -> Option<u32> {
        self.model.max_tokens()
    }

    fn price(&self) -> Option<Price> {
        self.model.price()
    }

    fn load(&self) -> Option<Load> {
        Some(Load {
            at_once: self.most as u64,
            under_way: (self.most - self.places.available_permits()) as u64,
            waiting: self.waiting.load(Ordering::Relaxed),
            held_up: self.held_up.load(Ordering::Relaxed),
        })
    }

    fn is_repeatable(&self) -> bool {
        self.model.is_repeatable()
    }

    fn describe(&self) -> String {
        self.model.describe()
    }

    fn details(&self) -> Details {
        self.model.details()
    }
}

/// A turn that is counted as waiting until it is dropped.
struct Waiting<'a>(&'a AtomicU64);

impl Waiting<'_> {
    fn on(count: &AtomicU64) -> Waiting<'_> {
        count.fetch_add(1, Ordering::Relaxed);
        Waiting(count)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A reply that has one of the places until it is dropped.
#[derive(Debug)]
struct WithPlace {
    reply: Box<dyn Reply>,
    _place: Option<OwnedSemaphorePermit>,
}

impl Reply for WithPlace {
    fn next(&mut self) -> Boxed<'_, Option<Piece>> {
        self.reply.next()
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;
    use crate::model::Scripted;

    /// Replies under way, turns that wait, turns that had to.
    fn load(model: &AtOnce) -> (u64, u64, u64) {
        let load = model.load().unwrap();
        (load.under_way, load.waiting, load.held_up)
    }

    #[tokio::test]
    async fn who_asks_beyond_the_limit_waits_for_the_end_of_a_reply() {
        let model = Scripted::replies(["a", "b", "c"]);
        let model = AtOnce::new("m", Arc::new(model), 2);
        let ask = || model.turn(Prompt::new("Go."));
        let (one, _two) = (ask().await.unwrap(), ask().await.unwrap());
        let mut third = ask();
        assert!((&mut third).now_or_never().is_none());
        assert_eq!(load(&model), (2, 1, 1));
        drop(one);
        let third = third.await.unwrap();
        assert_eq!(load(&model), (2, 0, 1));
        drop(third);
        assert_eq!(load(&model), (1, 0, 1));
    }

    #[tokio::test]
    async fn who_gives_up_waiting_takes_no_place() {
        let model = AtOnce::new("m", Arc::new(Scripted::replies(["a", "b"])), 1);
        let one = model.turn(Prompt::new("Go.")).await.unwrap();
        drop(model.turn(Prompt::new("Go.")).now_or_never());
        assert_eq!(load(&model), (1, 0, 1));
        drop(one);
        assert!(model.turn(Prompt::new("Go.")).await.is_ok());
    }
}
