//! The verbs that steer a thread in a running pump, with the options and the line that they share.

pub(crate) mod cancel;
pub(crate) mod pause;
pub(crate) mod resume;
pub(crate) mod retry;
pub(crate) mod fork;

use crate::audit;
use crate::cli::base::connect::Caller;

/// A thread to cancel, pause or resume, and the reason.
#[derive(Debug, clap::Args)]
pub(crate) struct Steering {
    /// The thread.
    #[arg(value_name = "THREAD")]
    pub(crate) thread: String,
    /// The reason, for readers of the log.
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
    #[command(flatten)]
    pub(crate) caller: Caller,
}

/// Returns the line that reports a change of a thread: the thread, its new state, the identity that
/// changed it, and the reason if there is one.
pub(crate) fn told(thread: &str, what: &str, by: &str, reason: Option<String>) -> String {
    let reason = reason.map(|it| format!(": {it}")).unwrap_or_default();
    audit::line(&format!("{thread} is {what} by {by}{reason}")).into_owned()
}
