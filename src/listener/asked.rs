//! [`Asked`], an argument for handlers of replies. It leads from a reply back to the message that
//! the listener was handling when it sent the request.

use std::ops::Deref;
use std::sync::Arc;

use crate::listener::{Context, Entry, FromContext, Need, Run};
use crate::wire::{Code, Fault};

/// For a reply: the message that this listener was handling when it sent the request. With this
/// argument, a listener that first asks another listener finds the message that it has to answer.
///
/// ```
/// # extern crate pumphouse_core as pumphouse;
/// use pumphouse::prelude::*;
///
/// /// Multiplies two numbers.
/// #[derive(Payload)]
/// #[payload(ns = "https://example.org/ns/times/v1")]
/// struct Times {
///     a: u32,
///     b: u32,
/// }
///
/// /// A number that was computed.
/// #[derive(Payload)]
/// #[payload(ns = "https://example.org/ns/times/v1")]
/// struct Product(u32);
///
/// async fn times(Times { a, b }: Times) -> Product {
///     Product(a * b)
/// }
///
/// /// Wants a number doubled.
/// #[derive(Payload)]
/// #[payload(ns = "https://example.org/ns/doubler/v1")]
/// struct Double {
///     number: u32,
/// }
///
/// async fn double(Double { number }: Double) -> To<Times> {
///     To("times", Times { a: 2, b: number })
/// }
///
/// async fn doubled(asked: Asked, it: Product) -> Reply<Product> {
///     Reply(asked.0, it)
/// }
///
/// let doubler = Listener::new("doubler").on(double).on_reply(doubled);
/// let times = Listener::new("times").on(times);
/// assert!(pumphouse::builder().with((doubler, times)).build().is_ok());
/// ```
///
/// `Asked` gives the right message even if several senders wait for answers, and after a restart.
/// It goes back only one request: if a reply's handler sends a further request, the `Asked` of the
/// second reply is the first reply.
///
/// Some further messages have an `Asked`, too:
///
/// - a fault or a `<done/>` with which the pump answers a request,
/// - a fault for a request that was refused, and
/// - a `thread-spawned` or a `thread-result` of a thread that the listener opened.
///
/// The `Asked` of a `thread-result` is the message whose handling opened the thread, directly or
/// with a request to the listener `thread`. If the listener was handling several messages with a
/// [`Queue`](crate::listener::Queue), the `Asked` is the first of them.
///
/// A message that answers nothing has no `Asked`. Therefore `build()` fails if the handler of an
/// [`on`](crate::Listener::on) takes an `Asked`. A function that handles both replies and other
/// messages may take an `Option<Asked>`. With either argument, the handler begins once the asked
/// message has been read from the log.
#[derive(Clone, Debug)]
pub struct Asked(
    /// The message's entry.
    pub Entry,
);

#[diagnostic::do_not_recommend]
impl<S> FromContext<S> for Asked {
    fn needs() -> Vec<Need> {
        vec![Need::Asked, Need::Reply]
    }

    fn from_context(context: &Context<S>) -> Result<Asked, Fault> {
        Option::<Asked>::from_context(context)?.ok_or_else(|| {
            let message = context.message();
            let text = format!("{} answers nothing that {} sent", message.id(), context.listener());
            Fault::new(Code::Context, text)
        })
    }
}

#[diagnostic::do_not_recommend]
impl<S> FromContext<S> for Option<Asked> {
    fn needs() -> Vec<Need> {
        vec![Need::Asked]
    }

    fn from_context(context: &Context<S>) -> Result<Option<Asked>, Fault> {
        let read = context.call.asked.get().ok_or_else(|| {
            let text =
                format!("{} takes an Asked that its needs() don't tell of", context.listener());
            Fault::new(Code::Context, text)
        });
        Ok(read?.clone().map(Asked))
    }
}

impl Deref for Asked {
    type Target = Entry;

    fn deref(&self) -> &Entry {
        &self.0
    }
}

/// Wraps a handler, so that its arguments are taken only once the asked message has been read from
/// the log.
pub(super) fn once_read(run: Run) -> Run {
    Arc::new(move |call| {
        let run = run.clone();
        Box::pin(async move {
            let asked = call.host.asked(&call).await?;
            // The cell is empty, since a call runs once.
            let _ = call.asked.set(asked);
            run(call).await
        })
    })
}
