//! Takes a handler's outcome: checks its emissions against their schemas, and turns a failure or a
//! panic into a fault.

use std::any::Any;

use crate::engine::tree::event::Ready;
use crate::engine::tree::route::Routes;
use crate::engine::worker::hide_secrets::hide_in;
use crate::limits::XmlLimits;
use crate::listener;
use crate::listener::{Emit, Target, key_meta};
use crate::wire::{Checked, Code, Fault};

/// How a handler ended. It returned, it failed before it ran because an argument couldn't be
/// provided, or it panicked.
pub(crate) type Ended = Result<Result<Emit, Fault>, Box<dyn Any + Send>>;

/// Returns the checked emissions of a handler that ended. The caller counts the outcome.
pub(crate) fn outcome_of(
    routes: &Routes,
    inside: XmlLimits,
    listener: usize,
    ended: Ended,
) -> Vec<Ready> {
    let fault = |fault| vec![Ready::fault(fault)];
    match ended {
        Ok(Ok(emit)) => check(routes, inside, emit),
        Ok(Err(it)) => fault(it),
        Err(panic) => {
            let text = panic_text(&*panic);
            let name = &routes.listeners[listener].name;
            tracing::error!(listener = %name, panic = text, "a handler panicked");
            fault(Fault::new(Code::Panic, format!("{name} panicked")))
        }
    }
}

/// Returns what a panic said.
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(ToString::to_string);
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "no text".to_owned())
}

/// Hides the organism's secrets in each payload, and checks the payload against its schema, unless
/// it was written by its own Rust type.
pub(crate) fn check(routes: &Routes, inside: XmlLimits, emit: Emit) -> Vec<Ready> {
    let look = |emission: listener::Emission| {
        let emission = hide_in(&routes.secrets, emission);
        let is_for_sender = matches!(emission.target, Target::Child { for_sender: true, .. });
        let name =
            emission.payload.as_ref().ok().filter(|_| is_for_sender).map(|it| it.element.name());
        let payload = emission.payload.and_then(|payload| match payload.typed {
            Some(name) => Ok(Checked::typed(name, payload.element)),
            // A payload that a listener passes on for the sender of its message may lack a
            // namespace, as a payload at a door may.
            None if is_for_sender => routes.check(payload.element, inside),
            None => routes.catalog.check(payload.element).map_err(|fault| {
                let text = format!("what was emitted is not valid: {fault}");
                Fault::new(Code::InvalidReturn, text)
            }),
        });
        let meta = emission.marks.key.as_deref().map(key_meta);
        let is_unknown = payload.as_ref().is_err_and(|it| it.code == Code::Undeliverable);
        let sought = name.filter(|_| is_unknown);
        Ready { target: emission.target, payload, flags: emission.marks.flags, meta, sought }
    };
    emit.into_iter().map(look).collect()
}
