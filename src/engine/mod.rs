//! The pump: routes, trees of threads as state machines, workers that own the trees, and the handle
//! for programs. The engine knows no sockets and no YAML, and it calls no model.
//!
//! Each module uses only the modules that stand above its `mod` line.

mod runtime_port;
mod read_fault;
mod tree;
mod common;
mod worker;
mod handle;
mod build;
mod replay;
#[cfg(test)]
mod cases;

pub use crate::listener::CONSOLE;
pub use build::builder::{Builder, Plugin};
pub use build::complaints::Complaints;
pub use build::door::Door;
pub use build::factory::{Factory, Makes, Unmade};
pub use build::plan::Plan;
pub use build::values::Values;
pub use common::counts::{Handled, Metrics};
#[doc(hidden)]
pub use common::live_queue::LiveQueue;
pub use common::live_queue::Showing;
pub use common::shared::Stage;
#[doc(hidden)]
pub use common::unread_bytes::{ConnectionBytes, LOOK_EVERY_US, UnreadBytes};
pub use handle::follow::{Follow, Followed};
pub use handle::pump::{AskError, Identity, Pump};
#[doc(hidden)]
pub use handle::push_lane::PushLane;
pub use replay::rerun::{Difference, Emitted, Replayed, Skipped};
pub use replay::state::{FoldState, Spending, ThreadState, TreeState, Waiting};
pub use runtime_port::{Port, Tokio};
#[doc(hidden)]
pub use tree::budget_ledger as ledger;
#[doc(hidden)]
pub use tree::event::{ORGANISM, Pusher};
pub use tree::observer::{PushEvent, PushObserver};
