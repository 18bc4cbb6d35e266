//! The tools that an agent would offer its model, for commands that describe an organism.

use std::sync::Arc;

use pumphouse::listener::Capabilities;
use pumphouse::model::Model;

use super::system_prompt::peers;
pub use super::tools::LeftOut;
use super::tools::offered;

/// The tools of an agent whose model makes calls in its provider's own protocol. It is an extension
/// of the agent's listener.
pub struct OfferedTools {
    agent: String,
    model: Arc<dyn Model>,
}

impl OfferedTools {
    pub(super) fn new(agent: String, model: Arc<dyn Model>) -> OfferedTools {
        OfferedTools { agent, model }
    }

    /// Returns the calls that the model's provider can't take.
    #[must_use]
    pub fn left_out(&self, all: &Capabilities) -> Vec<LeftOut> {
        let seen = all.seen_by(&self.agent);
        offered(&seen, &peers(&self.agent, &seen)).leave_out(&*self.model)
    }
}
