//! The pump: routes, threads as pure state machines, workers that own them, and the handle.
//! Knows no sockets, no YAML, no models, and not what the core's payloads mean.

mod answer;
mod budget;
mod builder;
mod deliver;
mod factory;
mod family;
mod follow;
mod fork;
mod gate;
mod guard;
mod inlet;
mod later;
pub(crate) mod ledger;
mod life;
mod metrics;
mod pace;
mod plugin;
mod port;
mod pump;
mod recover;
mod replay;
mod route;
mod run;
mod shared;
mod state;
mod thread;
mod tree;
mod turns;
mod wake;
mod worker;

pub use crate::listener::CONSOLE;
pub use builder::{Builder, Complaints, Door, Plan};
pub use factory::{Factory, Makes, Unmade};
pub use follow::{Follow, Followed, Showing};
pub use inlet::{Inlet, News};
pub use metrics::{Handled, Metrics};
pub use plugin::Plugin;
pub use port::{Port, Tokio};
pub use pump::{AskError, Identity, Pump};
pub use replay::{Difference, Replayed, Said, Skipped};
pub use shared::Stage;
pub use state::{FoldState, Spending, ThreadState, TreeState, Waiting};
pub(crate) use tree::CORE_NAME;
