//! What a handler may return; the type alone says what that may emit.

use std::borrow::Cow;

use crate::id::EntryId;
use crate::listener::{Entry, Need};
use crate::name::Name;
use crate::wire::{Code, Fault, Payload};
use crate::xml::Element;

/// What a handler may return, and what an [`Outbox`](crate::listener::Outbox) takes.
///
/// `()` emits nothing; a payload, an [`Element`] or a [`Fault`] goes to the sender; [`To`] names
/// a listener; [`Again`] is for oneself; `Option`, `Result`, `Vec` and tuples hold those.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be emitted",
    note = "return (), a payload, To(name, it), Again(it), or an Option, Result, Vec or tuple of \
            these; errors are payloads too: derive `Payload` for them"
)]
pub trait IntoEmit {
    /// What is emitted.
    fn into_emit(self) -> Emit;
    /// What may be emitted, as the type says.
    fn emits() -> Vec<Need>;
}

/// What a handler came to: any number of emissions, in order.
pub type Emit = Vec<Emission>;

/// One payload on its way out of a handler, or what became of the attempt to write it.
pub struct Emission {
    pub(crate) target: Target,
    pub(crate) what: Result<What, Fault>,
}

/// A payload, and whether a type wrote it, which can't have written another.
pub(crate) struct What {
    pub(crate) element: Element,
    pub(crate) typed: Option<Name>,
}

/// Who an emission is for.
#[derive(Clone, Debug)]
pub enum Target {
    /// The sender of an earlier message.
    Entry(Box<Entry>),
    /// A listener, by name.
    Listener(String),
    /// Oneself, in the same thread.
    Oneself,
    /// The sender of the message at hand.
    Sender,
}

/// To one listener by name: `To("calculator", Add { … })`.
pub struct To<E, N = &'static str>(
    /// The listener's name: a `&'static str`, or a `String` from run time.
    pub N,
    /// What it is sent.
    pub E,
);

/// To oneself, in the same thread: the next message of a chain.
pub struct Again<E>(
    /// What it is sent.
    pub E,
);

impl Emission {
    fn new(what: Result<What, Fault>) -> Emission {
        Emission { target: Target::Sender, what }
    }
}

#[diagnostic::do_not_recommend]
impl<P: Payload> IntoEmit for P {
    fn into_emit(self) -> Emit {
        let what = self.encode().map(|element| What { element, typed: Some(P::NAME) });
        vec![Emission::new(what.map_err(|it| invalid(&P::NAME, &it)))]
    }

    fn emits() -> Vec<Need> {
        vec![Need::Emit(Cow::Borrowed(P::schema()))]
    }
}

fn invalid(name: &Name, fault: &Fault) -> Fault {
    Fault::new(Code::InvalidReturn, format!("what was emitted as {name} is not valid: {fault}"))
}

#[diagnostic::do_not_recommend]
impl IntoEmit for Element {
    fn into_emit(self) -> Emit {
        vec![Emission::new(Ok(What { element: self, typed: None }))]
    }

    fn emits() -> Vec<Need> {
        Vec::new()
    }
}

#[diagnostic::do_not_recommend]
impl IntoEmit for Fault {
    fn into_emit(self) -> Emit {
        vec![Emission::new(Err(self))]
    }

    fn emits() -> Vec<Need> {
        Vec::new()
    }
}

#[diagnostic::do_not_recommend]
impl IntoEmit for () {
    fn into_emit(self) -> Emit {
        Vec::new()
    }

    fn emits() -> Vec<Need> {
        Vec::new()
    }
}

#[diagnostic::do_not_recommend]
impl<T: IntoEmit> IntoEmit for Option<T> {
    fn into_emit(self) -> Emit {
        self.map_or_else(Vec::new, T::into_emit)
    }

    fn emits() -> Vec<Need> {
        T::emits()
    }
}

#[diagnostic::do_not_recommend]
impl<T: IntoEmit> IntoEmit for Vec<T> {
    fn into_emit(self) -> Emit {
        self.into_iter().flat_map(T::into_emit).collect()
    }

    fn emits() -> Vec<Need> {
        T::emits()
    }
}

#[diagnostic::do_not_recommend]
impl<T: IntoEmit, E: IntoEmit> IntoEmit for Result<T, E> {
    fn into_emit(self) -> Emit {
        self.map_or_else(E::into_emit, T::into_emit)
    }

    fn emits() -> Vec<Need> {
        [T::emits(), E::emits()].concat()
    }
}

#[diagnostic::do_not_recommend]
impl<E: IntoEmit, N: Into<String>> IntoEmit for To<E, N> {
    fn into_emit(self) -> Emit {
        aim(self.1.into_emit(), &Target::Listener(self.0.into()))
    }

    fn emits() -> Vec<Need> {
        E::emits()
    }
}

#[diagnostic::do_not_recommend]
impl<E: IntoEmit> IntoEmit for Again<E> {
    fn into_emit(self) -> Emit {
        aim(self.0.into_emit(), &Target::Oneself)
    }

    fn emits() -> Vec<Need> {
        E::emits()
    }
}

/// Gives what is emitted a target. A fault goes to the sender, whatever holds it.
pub(crate) fn aim(mut emit: Emit, target: &Target) -> Emit {
    for emission in emit.iter_mut().filter(|it| it.what.is_ok()) {
        emission.target = target.clone();
    }
    emit
}

impl std::fmt::Debug for Emission {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let what = self.what.as_ref().map(|it| &it.element);
        f.debug_struct("Emission").field("target", &self.target).field("what", &what).finish()
    }
}

/// The entry that an emission answers, where it answers one.
impl Target {
    pub(crate) fn answered<'a>(&'a self, message: &'a Entry) -> Option<&'a EntryId> {
        match self {
            Target::Entry(it) => Some(it.id()),
            Target::Sender => Some(message.id()),
            Target::Listener(_) | Target::Oneself => None,
        }
    }
}
