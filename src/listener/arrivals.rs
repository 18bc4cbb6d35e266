//! What comes for a listener while it is at work.

use std::collections::HashMap;
use std::future::{pending, poll_fn};
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;

use tokio_util::sync::CancellationToken;

use crate::listener::{Context, FromContext, Need};
use crate::name::Name;
use crate::wire::{Fault, Payload};

/// What has come for this listener in this thread since its handler began, and waits behind the
/// message in hand: for one that takes its time, and can be told that what it does isn't wanted
/// any more.
///
/// ```
/// use pumphouse::prelude::*;
/// # use std::future::pending;
///
/// /// Draws something.
/// #[derive(Payload)]
/// #[payload(ns = "https://example.org/ns/painter/v1")]
/// struct Draw {}
///
/// /// That's enough.
/// #[derive(Payload)]
/// #[payload(ns = "https://example.org/ns/painter/v1")]
/// struct Enough {}
///
/// /// How it came out.
/// #[derive(Payload)]
/// #[payload(ns = "https://example.org/ns/painter/v1")]
/// struct Drawing { finished: bool }
///
/// async fn draw(arrivals: Arrivals, _: Draw) -> Drawing {
///     let strokes = pending::<()>();
///     Drawing { finished: arrivals.unless::<Enough, _>(strokes).await.is_some() }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let painter = Listener::new("painter").on(draw).on(|_: Enough| async {}).serial();
/// let pump = pumphouse::builder().with(painter).build()?.start();
/// # let first = pump.tell(Enough {}).await?;
/// # let pump_ = pump.clone();
/// # let pump = pump.in_thread(&first.thread);
/// let drawing = pump.ask::<Drawing>(Draw {});
/// let enough = async {
///     # tokio::time::sleep(std::time::Duration::from_millis(50)).await;
///     pump.tell(Enough {}).await
/// };
/// let (drawing, _) = tokio::join!(drawing, enough);
/// assert!(!drawing?.finished);
/// # let pump = pump_;
/// # pump.shutdown().await?;
/// # Ok(()) }
/// ```
///
/// What has come is in the log, and is handled once the message in hand is done with, by whatever
/// handler takes it. A listener that isn't serial may be at work on it already. An inline handler
/// hears of nothing: it is over before anything could come. In a replay nothing comes.
#[derive(Clone, Debug)]
pub struct Arrivals(Option<ArrivalSignal>);

/// Where the engine says what came.
pub(crate) type ArrivalSignal = Arc<Heard>;

/// The names of what came, and of what is waited for.
#[derive(Debug, Default)]
pub(crate) struct Heard(Mutex<HashMap<Name, CancellationToken>>);

impl Heard {
    /// Something of this name came.
    pub(crate) fn hear(&self, name: &Name) {
        self.token(name).cancel();
    }

    /// What is cancelled once something of this name came.
    fn token(&self, name: &Name) -> CancellationToken {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.entry(name.clone()).or_default().clone()
    }
}

impl Arrivals {
    /// Whether such a payload waits.
    #[must_use]
    pub fn has<P: Payload>(&self) -> bool {
        self.0.as_ref().is_some_and(|it| it.token(&P::NAME).is_cancelled())
    }

    /// Waits until such a payload waits.
    pub async fn of<P: Payload>(&self) {
        match &self.0 {
            Some(heard) => heard.token(&P::NAME).cancelled().await,
            None => pending().await,
        }
    }

    /// What a future comes to, or nothing where such a payload comes first: then the future is
    /// dropped.
    pub async fn unless<P: Payload, T>(&self, future: impl Future<Output = T>) -> Option<T> {
        let (mut came, mut future) = (pin!(self.of::<P>()), pin!(future));
        poll_fn(|context| {
            if came.as_mut().poll(context).is_ready() {
                return Poll::Ready(None);
            }
            future.as_mut().poll(context).map(Some)
        })
        .await
    }
}

#[diagnostic::do_not_recommend]
impl<S> FromContext<S> for Arrivals {
    fn needs() -> Vec<Need> {
        vec![Need::Arrivals]
    }

    fn from_context(context: &Context<S>) -> Result<Arrivals, Fault> {
        Ok(Arrivals(context.call.arrivals.clone()))
    }
}
