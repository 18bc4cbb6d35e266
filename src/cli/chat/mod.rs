//! `chat`: a conversation with an agent.

mod attach;
mod command;
mod input;
mod terminal;
mod page;
mod talk;

use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};

use crate::audit::{self, Paint};
use crate::cli::base::connect::Credentials;
use crate::cli::base::folder::Folder;
use crate::cli::base::organism::{Organism, complained};
use crate::cli::base::program_paths::KeptPaths;
use crate::cli::base::screen::{Ending, Failure, Screen};
use crate::cli::serve;
use crate::client::Address;
use crate::door::Options;
use crate::engine::{Builder, Plan, Pump};
use crate::id::ThreadId;
use crate::limits::XmlLimits;
use input::Lines;
pub(crate) use talk::Talk;

/// Talks with an agent: each line is a message to the agent, whose thoughts, actions and answers
/// are shown as they come.
///
/// Without --connect, the organism in the current folder is started for the conversation, on its
/// log.
/// Ctrl-C interrupts the agent: it writes no more, its actions are cancelled, and the conversation
/// goes on. At the prompt, Ctrl-C twice in a row or Ctrl-D ends the conversation.
/// Without a terminal, each line of the input is a message, answers are written in whole lines, and
/// the end of the input ends the conversation.
/// On a terminal, a line that begins with a slash is a command. /help lists all commands, such as
/// /again and /edit, which ask once more in a fork.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  pumphouse chat                                 the only agent of organism.yaml
  pumphouse chat oracle --connect 127.0.0.1:8765 one that a running pump has
  pumphouse chat oracle --thread sess-k3v9x2ma   goes on with a conversation
  echo 'What is 6*7?' | pumphouse chat oracle
  echo 'What is it?' | pumphouse chat oracle --attach cat.png
  echo 'What is 6*7?' | pumphouse chat oracle --json | jq -r 'select(.final).text'

Exits with 1 where the pump refused something; 2 where the organism here has no such agent, or no
pump can be reached.")]
pub(crate) struct Chat {
    /// The agent; by default, the organism's only agent. Required with --connect.
    #[arg(value_name = "AGENT")]
    agent: Option<String>,
    /// The thread to resume; without it, a new session is opened.
    #[arg(long, value_name = "THREAD")]
    thread: Option<String>,
    /// The address of a running pump: HOST:PORT, tls:HOST:PORT or unix:PATH.
    #[arg(long, value_name = "ADDR")]
    connect: Option<Address>,
    /// A file for the first message: an image, a PDF or a text. The option may be given more than
    /// once.
    #[arg(long, value_name = "FILE")]
    attach: Vec<PathBuf>,
    #[command(flatten)]
    credentials: Credentials,
}

/// What is known of an organism that was started for the conversation.
#[derive(Default)]
struct LocalOrganism {
    /// The folder of the organism's log.
    data: Option<PathBuf>,
    /// The agent's model.
    model: Option<String>,
    /// The media types of attachments that the model takes.
    attachments: Option<Vec<String>>,
}

impl Chat {
    pub(crate) async fn run(
        self,
        builder: Builder,
        data: Option<&Path>,
        to: &mut Screen<'_>,
    ) -> Result<Ending, Failure> {
        if let Some(address) = &self.connect {
            let text = "say whom to talk with: pumphouse chat AGENT --connect ADDR";
            let Some(agent) = &self.agent else { return Err(Failure::Untried(text.to_owned())) };
            return self.talk(agent, address, LocalOrganism::default(), to).await;
        }
        let folder = Folder::make("chat")?;
        let organism = Organism::read_live(None, builder, data)?;
        let kept = KeptPaths::of(&organism);
        let data = organism.data;
        let (builder, _) = serve::log(organism.builder, &data, organism.durability)?;
        // An attachment may be larger than what a door takes by default.
        let builder = builder.door_bytes_at_least(XmlLimits::INSIDE.message_bytes_max);
        let (builder, address) = door(builder, &folder).await?;
        let plan = builder.build().map_err(|it| complained(&it, organism.places.as_ref()))?;
        kept.check(&plan, organism.places.as_ref())?;
        let agent = self.agent(&plan)?;
        let described = plan.capabilities().listener(&agent);
        let model = described.and_then(|it| it.model.clone());
        let attachments = described.map(|it| it.attachments.clone());
        let pump = plan.start();
        pump.ready().await?;
        let here = LocalOrganism { data: Some(data), model, attachments };
        let ended = self.talk(&agent, &address, here, to).await;
        stop(&pump).await?;
        folder.remove()?;
        ended
    }

    /// Returns the name of the agent to talk with: the given one, or the organism's only one.
    fn agent(&self, plan: &Plan) -> Result<String, Failure> {
        let agents = plan.listeners().iter().filter(|it| it.kind == "agent");
        let agents: Vec<&str> = agents.map(|it| it.name.as_str()).collect();
        let untried = |text: String| Err(Failure::Untried(text));
        match (&self.agent, &agents[..]) {
            (_, []) => untried(
                "the organism here has no agent; a listener of organism.yaml with `use: agent` \
                 is one, and --connect ADDR names a pump that has one"
                    .to_owned(),
            ),
            (Some(name), _) if agents.contains(&&**name) => Ok(name.clone()),
            (None, [one]) => Ok((*one).to_owned()),
            (Some(name), all) => {
                untried(format!("there is no agent {name}; there is {}", all.join(", ")))
            }
            (None, all) => untried(format!("say which: {}", all.join(", "))),
        }
    }

    async fn talk(
        &self,
        agent: &str,
        address: &Address,
        LocalOrganism { data, model, attachments }: LocalOrganism,
        to: &mut Screen<'_>,
    ) -> Result<Ending, Failure> {
        let is_terminal = io::stdin().is_terminal() && io::stdout().is_terminal() && !to.json;
        let lines = Lines::open(is_terminal.then(|| format!("{agent}> ")))?;
        let client = self.credentials.connect(address).await?;
        if is_terminal {
            let thread = self.thread.as_deref().unwrap_or("a new thread");
            let model = model.map(|it| format!(", which asks {it}")).unwrap_or_default();
            let text = format!("{agent}{model}, in {thread}; /help tells what else there is");
            let text = audit::line(&text);
            to.line(&to.style.paint(Paint::Faint, &text))?;
        }
        let mut talk = Talk::new(client, agent, to);
        if let Some(data) = data {
            talk = talk.with_log(&data);
        }
        if is_terminal {
            talk = talk.with_commands();
        }
        if let Some(thread) = &self.thread {
            talk.resume(&ThreadId::new(thread)).await?;
        }
        talk = talk.taking(attachments);
        for file in &self.attach {
            talk.attach(file).await?.map_err(Failure::Untried)?;
        }
        talk.run(lines).await
    }
}

async fn stop(pump: &Pump) -> Result<(), Failure> {
    Ok(pump.shutdown().await?)
}

/// Adds a door for this conversation alone: a socket in a folder that only its owner can enter.
#[cfg(unix)]
async fn door(builder: Builder, folder: &Folder) -> Result<(Builder, Address), Failure> {
    let path = folder.path().join("chat.sock");
    let door = crate::door::Unix::at(&path, Options::default()).await;
    let door = door.map_err(|it| Failure::Untried(it.to_string()))?;
    Ok((builder.with(door), Address::Unix(path)))
}

/// Adds a door for this conversation: a free port that only this machine reaches.
#[cfg(not(unix))]
async fn door(builder: Builder, _: &Folder) -> Result<(Builder, Address), Failure> {
    let door = crate::door::Tcp::bind("127.0.0.1:0", Options::default()).await;
    let door = door.map_err(|it| Failure::Untried(it.to_string()))?;
    let address = Address::Tcp(door.local_addr().to_string());
    Ok((builder.with(door), address))
}
