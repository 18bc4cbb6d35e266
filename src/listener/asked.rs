//! The message that a listener was handling when it sent the request which this reply answers.

use std::ops::Deref;
use std::sync::Arc;

use crate::listener::{Context, Entry, FromContext, Need, Run};
use crate::wire::{Code, Fault};

/// The message that this listener was handling when it sent the request which the reply answers. A
/// listener that asks others before it answers finds its own question here.
///
/// ```
/// use pumphouse::listeners::tool::calculate::{Calculate, Calculated, calculate};
/// use pumphouse::prelude::*;
///
/// /// Wants a number doubled.
/// #[derive(Payload)]
/// #[payload(ns = "https://example.org/ns/doubler/v1")]
/// struct Double {
///     number: u32,
/// }
///
/// async fn double(Double { number }: Double) -> To<Calculate> {
///     To("calculate", Calculate { expression: format!("2 * {number}") })
/// }
///
/// async fn doubled(asked: Asked, it: Calculated) -> Reply<Calculated> {
///     Reply(asked.0, it)
/// }
///
/// let doubler = Listener::new("doubler").on(double).on_reply(doubled);
/// assert!(pumphouse::builder().with((doubler, calculate())).build().is_ok());
/// ```
///
/// It is the right message however many senders have asked, and after a restart, too. It goes back
/// one step: if the handling of a reply sent a further request, the answer to that has the reply
/// here.
///
/// It is there, too, if the pump answers the request with a fault or a `<done/>`, for results of
/// threads that the listener opened, and for a call that was refused. For a `thread-result` it is
/// the message whose handling opened the thread, or had `thread` open it. If the listener took a
/// [`Queue`](crate::listener::Queue), it is the first message of the queue.
///
/// A message that answers nothing has none. So `build()` complains of an `Asked` in an
/// [`on`](crate::Listener::on): a handler of both takes an `Option<Asked>`. The handler begins
/// once the log has been read.
#[derive(Clone, Debug)]
pub struct Asked(
    /// Its entry in the log.
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

/// A handler whose arguments are taken once the asked message has been read.
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
