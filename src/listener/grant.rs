//! Grants: rights without which a listener can't take some arguments or emit some payloads. They
//! are granted when a listener is registered, with [`Listener::grant`](crate::Listener::grant) or
//! in a manifest.

use crate::name::Name;

/// A right that can be granted to a listener when it is registered.
#[diagnostic::on_unimplemented(
    message = "`{Self}` needs no grant",
    label = "nothing to grant",
    note = "what can be granted is a right, such as `EmitCore`, or an argument that asks for it"
)]
pub trait Grant {
    /// The right's name in a manifest.
    const GRANT: &'static str;
}

/// The right to emit reserved payloads. These are the pump's own, such as `huh` and `accepted`.
#[derive(Debug)]
pub enum EmitCore {}

impl Grant for EmitCore {
    const GRANT: &'static str = "emit:core";
}

/// The name of the Rust type for `Listener::grant`, for a right of this crate.
pub(crate) fn grant_type(name: &str) -> Option<&'static str> {
    let all = [
        (EmitCore::GRANT, "EmitCore"),
        (Threads::GRANT, "Threads"),
        (Charges::GRANT, "Charges"),
        (Timers::GRANT, "Timers"),
        (Organism::GRANT, "Organism"),
        (ReadIdentity::GRANT, "ReadIdentity"),
    ];
    all.into_iter().find(|(grant, _)| *grant == name).map(|(_, of)| of)
}

/// The name of the right to emit one reserved payload.
pub(crate) fn emit_of(name: &Name) -> String {
    format!("emit:{name}")
}

/// Whether these grants allow emitting a reserved payload.
pub(crate) fn may_emit<'a>(grants: impl IntoIterator<Item = &'a String>, name: &Name) -> bool {
    let own = emit_of(name);
    grants.into_iter().any(|it| *it == own || it == EmitCore::GRANT)
}

/// The right to open threads below the message's own thread with [`Spawn`](crate::listener::Spawn),
/// to cancel, pause and resume threads with [`ThreadControl`](crate::listener::ThreadControl), to
/// try stopped listeners again with [`Retry`](crate::listener::Retry), and to raise budgets with
/// [`Raise`](crate::listener::Raise). A listener with this right also runs in
/// threads that are paused or over budget.
#[derive(Debug)]
pub enum Threads {}

impl Grant for Threads {
    const GRANT: &'static str = "threads";
}

/// The right to charge the budget of a tree of threads, with [`Charge`](crate::listener::Charge).
#[derive(Debug)]
pub enum Charges {}

impl Grant for Charges {
    const GRANT: &'static str = "charge";
}

/// The right of a listener to send itself a message for later, with
/// [`Later`](crate::listener::Later).
#[derive(Debug)]
pub enum Timers {}

impl Grant for Timers {
    const GRANT: &'static str = "timers";
}

/// The right to record payloads in the organism's own thread and to read this thread, with
/// [`OrganismThread`](crate::listener::OrganismThread).
#[derive(Debug)]
pub enum Organism {}

impl Grant for Organism {
    const GRANT: &'static str = "organism";
}

/// The right to read all threads of the identity that opened the message's tree, with
/// [`TreeHistory`](crate::listener::TreeHistory). Without this right, a `TreeHistory` reads only
/// the threads of the message's tree.
#[derive(Debug)]
pub enum ReadIdentity {}

impl Grant for ReadIdentity {
    const GRANT: &'static str = "read:identity";
}
