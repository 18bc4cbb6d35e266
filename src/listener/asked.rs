//! What a reply comes of: the message whose handling sent the request that it answers.

use std::ops::Deref;
use std::sync::Arc;

use crate::listener::{Context, Entry, FromContext, Need, Run};
use crate::wire::{Code, Fault};

/// The message whose handling sent the request that the reply at hand answers: for a listener that
/// asks others before it answers, the question.
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
/// It is the right one however many have asked, and after a restart too. It is one step: where
/// handling a reply sent a further request, the answer to that was asked by the reply.
///
/// It is there also for a fault or a `<done/>` that the pump answers a request with, for what came
/// of a thread that the listener opened, and for a call that was refused. Of a `thread-result`, it
/// is the message whose handling opened the thread, or had `thread` open it. A listener that took a
/// [`Queue`](crate::listener::Queue) handled the first message of it.
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

/// A handler whose arguments are taken once what the message comes of has been read.
pub(super) fn once_read(run: Run) -> Run {
    Arc::new(move |call| {
        let run = run.clone();
        Box::pin(async move {
            let asked = call.host.asked(&call).await?;
            // Nobody else has read it: a call is run once.
            let _ = call.asked.set(asked);
            run(call).await
        })
    })
}
