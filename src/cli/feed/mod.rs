//! `feed fetch`: asks the source of an agent's feed now, in a running pump.

pub(crate) mod list;

use std::path::Path;

use crate::audit;
use crate::cli::base::connect::Caller;
use crate::cli::base::data;
use crate::cli::base::screen::{Ending, Failure, Screen};
use crate::client::Push;
use crate::id::ThreadId;
use crate::listener::Entry;
use crate::listeners::feed::words::{ContextFeedFetched, FetchContextFeed};
use crate::log::{Log as _, SqliteLog};
use list::{agents_with, newest_thread};

/// Works with one feed of an agent.
#[derive(Debug, clap::Args)]
pub(crate) struct FeedVerb {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    Fetch(Fetch),
}

/// Has a running pump ask a feed's source now, and prints the answer.
///
/// The agent's thread records the content, so the agent's next prompt shows it. The source is asked
/// even if the feed is fresh or not enabled. A service may answer from its cache. Only an operator
/// may ask.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  pumphouse feed fetch fleet-alerts               in the newest thread that has this feed
  pumphouse feed fetch fleet-alerts --agent octopus
  pumphouse feed fetch holdings --thread sess-k3v9x2ma --connect unix:/run/pump.sock

Exits with 1 where there is no such feed, or its source doesn't answer.")]
struct Fetch {
    /// The feed.
    #[arg(value_name = "ID")]
    id: String,
    /// The agent; needed where several agents of the thread have a feed of this name.
    #[arg(long, value_name = "AGENT")]
    agent: Option<String>,
    /// The thread; without it, the newest one in which an agent has the feed.
    #[arg(long, value_name = "THREAD")]
    thread: Option<String>,
    #[command(flatten)]
    caller: Caller,
}

impl FeedVerb {
    pub(crate) async fn run(self, data: &Path, to: &mut Screen<'_>) -> Result<Ending, Failure> {
        let Verb::Fetch(fetch) = self.verb;
        fetch.run(data, to).await
    }
}

impl Fetch {
    async fn run(self, data: &Path, to: &mut Screen<'_>) -> Result<Ending, Failure> {
        let (thread, agent) = match (&self.thread, &self.agent) {
            (Some(thread), Some(agent)) => (ThreadId::new(thread), agent.clone()),
            _ => {
                let log = data::open(data)?;
                let found = self.found(&log).await;
                log.close().await?;
                found?
            }
        };
        let fetch = FetchContextFeed { id: self.id, agent: Some(agent) };
        let push = Push::of(&fetch).map_err(|it| Failure::Untried(it.to_string()))?;
        let told = |it: ContextFeedFetched| {
            let head = format!("{} {} in {thread}", it.id, it.status.as_str());
            format!("{}\n{}", audit::line(&head), audit::quoted(&it.text).trim_end())
        };
        self.caller.ask(&push.in_thread(&thread), told, to).await
    }

    /// Finds the thread and the agent that have the feed.
    async fn found(&self, log: &SqliteLog) -> Result<(ThreadId, String), Failure> {
        let id = audit::line(&self.id);
        let named = self.thread.as_deref().map(ThreadId::new);
        let having = |entries: &[Entry]| agents_with(entries, &self.id);
        let has = |entries: &[Entry]| {
            let agents = having(entries);
            !agents.is_empty() && self.agent.as_ref().is_none_or(|it| agents.contains(it))
        };
        let Some((thread, entries)) = newest_thread(log, named.as_ref(), has).await? else {
            let who = self.agent.as_deref().map_or("no agent".into(), audit::line);
            let place = named.map_or("any thread".to_owned(), |it| it.to_string());
            let has = if self.agent.is_some() { "has no" } else { "has a" };
            let text = format!("{who} {has} feed {id} in {place}; `pumphouse feeds` shows which");
            return Err(Failure::Wrong(text));
        };
        let agents = having(&entries);
        match (&self.agent, &*agents) {
            (Some(agent), _) => Ok((thread, agent.clone())),
            (None, [one]) => Ok((thread, one.clone())),
            (None, several) => {
                let all = several.join(", ");
                let text =
                    format!("several agents of {thread} have a feed {id}: {all}; say --agent");
                Err(Failure::Untried(text))
            }
        }
    }
}
