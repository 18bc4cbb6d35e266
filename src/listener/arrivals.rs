//! Arrivals: messages that come for a listener in a thread while one of its handlers runs there. A
//! handler takes [`Arrivals`] to notice them.

use std::collections::HashMap;
use std::future::{pending, poll_fn};
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;

use tokio_util::sync::CancellationToken;

use crate::listener::{Context, Entry, FromContext, Need};
use crate::name::Name;
use crate::wire::{Fault, Payload};

/// Tells a handler which payloads have come for its listener in its thread since the handler began.
/// With this argument, a long handler can notice that its work isn't wanted any more.
///
/// ```
/// # extern crate pumphouse_core as pumphouse;
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
/// An arrived message is in the log. A serial listener handles it once this handler has ended. A
/// listener that isn't serial may be handling it already, in another handler. `build()` fails if an
/// inline handler takes `Arrivals`, since such a handler should end before a message could arrive.
/// In a replay no message arrives.
#[derive(Clone, Debug)]
pub struct Arrivals(Option<ArrivalSignal>);

/// The signal by which the engine reports arrivals.
pub(crate) type ArrivalSignal = Arc<ArrivalTokens>;

/// The arrivals for one handler.
#[derive(Debug, Default)]
pub(crate) struct ArrivalTokens {
    /// A token for each payload name that has arrived or that the handler has asked for. The token
    /// is cancelled once such a payload has arrived.
    tokens: Mutex<HashMap<Name, CancellationToken>>,
    kept: Mutex<KeptArrivals>,
}

/// The arrived messages that the handler wants to see.
#[derive(Debug, Default)]
struct KeptArrivals {
    /// Cancelled once a message was kept that the handler hasn't taken yet.
    news: CancellationToken,
    /// The names of their payloads.
    names: Vec<Name>,
    /// The messages that the handler hasn't taken yet.
    messages: Vec<Entry>,
}

impl ArrivalTokens {
    /// Reports an arrival.
    pub(crate) fn hear(&self, message: &Entry) {
        self.token(message.name()).cancel();
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.names.contains(message.name()) {
            kept.messages.push(message.clone());
            kept.news.cancel();
        }
    }

    /// A token that is cancelled once a payload of this name arrives.
    fn token(&self, name: &Name) -> CancellationToken {
        let mut all = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        all.entry(name.clone()).or_default().clone()
    }
}

impl Arrivals {
    /// Whether a `P` has arrived.
    #[must_use]
    pub fn has<P: Payload>(&self) -> bool {
        self.0.as_ref().is_some_and(|it| it.token(&P::NAME).is_cancelled())
    }

    /// Waits until a `P` has arrived.
    pub async fn of<P: Payload>(&self) {
        match &self.0 {
            Some(tokens) => tokens.token(&P::NAME).cancelled().await,
            None => pending().await,
        }
    }

    /// From now on, keeps each `P` that arrives for [`kept`](Arrivals::kept).
    pub fn keep<P: Payload>(&self) {
        if let Some(it) = &self.0 {
            it.kept.lock().unwrap_or_else(PoisonError::into_inner).names.push(P::NAME);
        }
    }

    /// Returns the messages that have arrived since the last call, of the payloads that
    /// [`keep`](Arrivals::keep) named. The handlings of these messages still follow.
    #[must_use]
    pub fn kept(&self) -> Vec<Entry> {
        let Some(it) = &self.0 else { return Vec::new() };
        let mut kept = it.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.news = CancellationToken::new();
        std::mem::take(&mut kept.messages)
    }

    /// Waits until [`kept`](Arrivals::kept) has a message.
    pub async fn more(&self) {
        match &self.0 {
            Some(it) => {
                let news = it.kept.lock().unwrap_or_else(PoisonError::into_inner).news.clone();
                news.cancelled().await;
            }
            None => pending().await,
        }
    }

    /// Awaits a future, and returns its output. If a `P` arrives first, `unless` drops the future
    /// and returns None.
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
