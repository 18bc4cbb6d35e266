//! Handlers: async functions of up to eight contexts and one payload. Separate traits check the
//! function, its arguments and its return type, so that the compiler's error names the one argument
//! or return type that is wrong.

use crate::listener::{Context, Emit, FromContext, IntoEmit, Need};
use crate::wire::Fault;

/// A function that can be a handler: its future is `Send`, and its result can be emitted.
#[diagnostic::on_unimplemented(
    message = "this is not a handler: an async function of up to eight contexts and one payload",
    label = "not a handler",
    note = "`async fn name(context.., payload) -> what it emits`, and the payload last"
)]
pub trait Handler<A>: Send + Sync + 'static
where
    Self: Function<A, Output: IntoEmit, Future: Send + 'static>,
{
}

impl<A, F: Send + Sync + 'static> Handler<A> for F where
    F: Function<A, Output: IntoEmit, Future: Send + 'static>
{
}

/// A function with arguments `A` and any result.
#[diagnostic::on_unimplemented(
    message = "this is not a handler: an async function of up to eight contexts and one payload",
    label = "not a handler",
    note = "`async fn name(context.., payload) -> what it emits`, and the payload last"
)]
pub trait Function<A> {
    /// The output of the function's future.
    type Output;
    /// The function's future.
    type Future: Future<Output = Self::Output>;
    /// Calls the function.
    fn invoke(&self, arguments: A) -> Self::Future;
}

/// The arguments of a handler: contexts, and last a payload.
#[diagnostic::on_unimplemented(
    message = "these are not a handler's arguments: `{Self}`",
    note = "a handler takes up to eight contexts, then one payload; `State<T>` is of the \
            listener's state, `{S}`"
)]
pub trait Arguments<S>: Sized {
    /// The type of the last argument: a payload, or an `Element`.
    type Last: 'static;
    /// The [needs](Need) of the contexts.
    fn needs() -> Vec<Need>;
    /// Makes the arguments: takes each context from the message, and adds the payload `last`.
    ///
    /// # Errors
    /// The fault of a context that can't be taken.
    fn take(context: &Context<S>, last: Self::Last) -> Result<Self, Fault>;
}

macro_rules! arity {
    ($([$($C:ident)*])*) => { $(
        #[allow(non_snake_case, reason = "a context's variable has its type's name")]
        const _: () = {
            impl<F, Fut: Future, P, $($C),*> Function<($($C,)* P,)> for F
            where
                F: Fn($($C,)* P) -> Fut,
            {
                type Output = Fut::Output;
                type Future = Fut;

                fn invoke(&self, ($($C,)* last,): ($($C,)* P,)) -> Fut {
                    self($($C,)* last)
                }
            }

            impl<S, P: 'static, $($C: FromContext<S>),*> Arguments<S> for ($($C,)* P,) {
                type Last = P;

                fn needs() -> Vec<Need> {
                    [Vec::new(), $($C::needs()),*].concat()
                }

                fn take(_context: &Context<S>, last: P) -> Result<Self, Fault> {
                    Ok(($($C::from_context(_context)?,)* last,))
                }
            }

            #[diagnostic::do_not_recommend]
            impl<P: IntoEmit, $($C: IntoEmit),*> IntoEmit for ($($C,)* P,) {
                fn into_emit(self) -> Emit {
                    let ($($C,)* last,) = self;
                    let mut all = Emit::new();
                    $(all.extend($C.into_emit());)*
                    all.extend(last.into_emit());
                    all
                }

                fn emits() -> Vec<Need> {
                    [$($C::emits(),)* P::emits()].concat()
                }
            }
        };
    )* };
}

arity!([] [A] [A B] [A B C] [A B C D] [A B C D E] [A B C D E G] [A B C D E G H] [A B C D E G H I]);
