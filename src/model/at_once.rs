//! A model that is asked only so often at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::{Boxed, Model, Piece, Price, Prompt, Reply};

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
    /// Whether the traces say that somebody waits.
    is_told: AtomicBool,
}

impl AtOnce {
    /// The model with at most so many replies at once; its name is for the traces.
    #[must_use]
    pub fn new(name: impl Into<String>, model: Arc<dyn Model>, most: usize) -> AtOnce {
        let most = most.clamp(1, Semaphore::MAX_PERMITS);
        let places = Arc::new(Semaphore::new(most));
        AtOnce { name: name.into(), model, places, most, is_told: AtomicBool::new(false) }
    }

    fn tell(&self) {
        if !self.is_told.swap(true, Ordering::Relaxed) {
            let (model, most) = (&*self.name, self.most);
            tracing::info!(model, "a turn waits for a model; its limit at_once is {most}");
        }
    }
}

impl Model for AtOnce {
    fn turn(&self, prompt: Prompt) -> Boxed<'_, Box<dyn Reply>> {
        Box::pin(async move {
            if self.places.available_permits() == 0 {
                self.tell();
            }
            // An error says that the semaphore is closed, which nobody does.
            let place = self.places.clone().acquire_owned().await.ok();
            let reply = self.model.turn(prompt).await?;
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

    fn is_repeatable(&self) -> bool {
        self.model.is_repeatable()
    }

    fn describe(&self) -> String {
        self.model.describe()
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

    #[tokio::test]
    async fn who_asks_beyond_the_limit_waits_for_the_end_of_a_reply() {
        let model = Scripted::replies(["a", "b", "c"]);
        let model = AtOnce::new("m", Arc::new(model), 2);
        let ask = || model.turn(Prompt::new("Go."));
        let (one, _two) = (ask().await.unwrap(), ask().await.unwrap());
        let mut third = ask();
        assert!((&mut third).now_or_never().is_none());
        drop(one);
        assert!(third.await.is_ok());
    }

    #[tokio::test]
    async fn who_gives_up_waiting_takes_no_place() {
        let model = AtOnce::new("m", Arc::new(Scripted::replies(["a", "b"])), 1);
        let one = model.turn(Prompt::new("Go.")).await.unwrap();
        drop(model.turn(Prompt::new("Go.")).now_or_never());
        drop(one);
        assert!(model.turn(Prompt::new("Go.")).await.is_ok());
    }
}
