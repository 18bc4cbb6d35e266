//! Listeners: how async functions become handlers of messages. A user builds a [`Listener`] from
//! functions; the engine runs it. This module starts no tasks and opens no sockets. Arguments of
//! handlers reach the engine through the trait [`Host`], which the engine implements.

mod note_above;
mod arrivals;
mod asked;
mod capabilities;
mod context;
mod emit;
mod withdraw;
mod entry;
mod extension;
mod idempotence;
mod fold;
mod grant;
mod handler;
mod namespace;
mod need;
mod request;
mod host;
mod join;
mod lifecycle;
mod setting;
mod door_access;
mod spec;
mod taken;
mod on_each;
mod run_traits;
mod presets;
mod programs;
mod organism_thread;
mod tree_emit;
mod tree_history;
mod view;
mod work;

pub(crate) use arrivals::ArrivalSignal;
pub use arrivals::Arrivals;
pub use asked::Asked;
pub use capabilities::{Capabilities, Described, Unfound};
pub use context::{
    Attempt, CONSOLE, Cancel, Clock, Context, Fold, FromContext, History, Message, Outbox, Peers,
    Queue, Random, Record, Role, Sender, State, Thread, ThreadMark,
};
pub use door_access::DoorAccess;
pub use emit::{
    Again, Emission, Emit, Final, IntoEmit, Later, Note, Partial, Spawn, Target, ThreadControl, To,
};
pub use note_above::NoteAbove;

pub(crate) use emit::EmittedPayload;
pub use entry::Entry;
#[doc(hidden)]
pub use entry::key_meta;
pub(crate) use extension::Extensions;
pub use fold::Apply;
pub(crate) use fold::{Awake, FoldId, FoldOf};
pub use grant::{Charges, EmitCore, Grant, Organism, ReadIdentity, Threads, Timers};
pub(crate) use grant::{grant_type, may_emit};
pub use handler::{Arguments, Function, Handler};
pub(crate) use host::StopCharge;
pub use host::{Boxed, HandlerCall, Host, OtherThreads};
pub(crate) use idempotence::IdempotentFor;
pub use join::{Branch, Branches, Join, NoAnswer};
pub(crate) use lifecycle::{Announcement, AtStop};
#[doc(hidden)]
pub use namespace::Move;
pub use need::{Kept, Need};
pub use on_each::{Check, Payloads};
pub use organism_thread::{OrganismFold, OrganismThread};
pub use programs::{has_programs, keep_programs_out};
pub use pumphouse_macros::{FromContext, IntoEmit};
pub use request::{Reply, Request};
pub use setting::{CommandPart, DeclaredPayload, ManifestPath, ManifestPaths};
pub(crate) use spec::{BoundHandler, HandlerKey, Run, Spec, Traits, Wakes};
pub use spec::{Effects, Listener};
pub use tree_emit::{Charge, Cost, Raise, Retry};
pub use tree_history::TreeHistory;
pub use view::{Clears, View};
pub use withdraw::Withdraw;
pub use work::{Answer, Outcome, Park};
