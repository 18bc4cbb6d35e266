//! [`CallingAgent`], an argument by which a handler learns for which agent it works.

use std::collections::BTreeMap;

use pumphouse::listener::{Context, FromContext, Need, TreeHistory};
use pumphouse::prelude::*;
use pumphouse::xml::writable;

use super::facts::is_agent;
use super::find::{calling, nearest};
use super::words::AgentContext;

/// The environment variables in each [`AgentContext`] that handlers of a listener get. They are an
/// [extension](pumphouse::listener::Described::extension) of the listener. Without this extension,
/// a context has no variables.
///
/// ```
/// # extern crate pumphouse_listeners as pumphouse;
/// use pumphouse::listeners::agent_context::{CallingAgent, Variables};
/// use pumphouse::prelude::*;
///
/// async fn deploy(agent: CallingAgent, _: Done) -> Result<(), Fault> {
///     let context = agent.context().await?.unwrap_or_default();
///     assert_eq!(context.environment["REGION"], "eu");
///     Ok(())
/// }
/// # let _ =
/// Listener::new("deploy").on(deploy).extension(Variables::from([("REGION", "eu")]))
/// # ;
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Variables(BTreeMap<String, String>);

impl<N: Into<String>, V: Into<String>, const LEN: usize> From<[(N, V); LEN]> for Variables {
    fn from(all: [(N, V); LEN]) -> Variables {
        all.into_iter().collect()
    }
}

impl<N: Into<String>, V: Into<String>> FromIterator<(N, V)> for Variables {
    fn from_iter<T: IntoIterator<Item = (N, V)>>(all: T) -> Variables {
        Variables(all.into_iter().map(|(name, it)| (name.into(), it.into())).collect())
    }
}

/// The agent for which a handler works: the nearest agent that caused the handled message. The
/// agent may have sent the message, or called the listener by an action. A workflow that runs for
/// the agent may have called the listener, too.
///
/// The agent is searched for in the message's tree of threads, as of the moment when the message
/// was logged.
pub struct CallingAgent {
    message: Message,
    tree: TreeHistory,
    capabilities: Capabilities,
    listener: String,
}

#[diagnostic::do_not_recommend]
impl<S> FromContext<S> for CallingAgent {
    // The log of the message's own tree is enough. Reading other trees would need the grant
    // `read:identity`.
    fn needs() -> Vec<Need> {
        vec![Need::Log]
    }

    fn from_context(context: &Context<S>) -> Result<CallingAgent, Fault> {
        Ok(CallingAgent {
            message: Message::from_context(context)?,
            tree: TreeHistory::from_context(context)?,
            capabilities: Capabilities::from_context(context)?,
            listener: context.listener().to_owned(),
        })
    }
}

impl CallingAgent {
    /// The agent's context, as it was when the message was logged. None if no agent caused the
    /// message.
    ///
    /// # Errors
    /// If the log can't be read.
    pub async fn context(&self) -> Result<Option<AgentContext>, Fault> {
        let context = calling(&self.message, &self.tree, &self.capabilities).await?;
        Ok(context.map(|it| self.with_variables(it)))
    }

    /// The context of the agent with this name. It is read from the nearest thread of the tree that
    /// has a turn or metadata of the agent. The message's own thread is tried first. The others are
    /// tried from the newest to the oldest. None if there is no such agent or no such thread.
    ///
    /// # Errors
    /// If the log can't be read.
    pub async fn context_of(&self, agent: &str) -> Result<Option<AgentContext>, Fault> {
        let Some(agent) = self.capabilities.listener(agent).filter(|it| is_agent(it)) else {
            return Ok(None);
        };
        let Some(found) = nearest(&agent.name, &self.message, &self.tree).await? else {
            return Ok(None);
        };
        let context = found.context(&self.tree, agent, &self.capabilities).await?;
        Ok(Some(self.with_variables(context)))
    }

    fn with_variables(&self, context: AgentContext) -> AgentContext {
        let own = self.capabilities.listener(&self.listener);
        let variables = own.and_then(|it| it.extension::<Variables>());
        let variables = variables.into_iter().flat_map(|it| &it.0);
        let environment = variables.map(|(name, it)| (name.clone(), writable(it))).collect();
        AgentContext { environment, ..context }
    }
}
