//! What an agent has in hand: its settings, the thread, and what it may send.

use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use pumphouse::listener::{Answer, Charge, Context, FromContext, Need, Record};
use pumphouse::prelude::*;
use pumphouse::reply::Markup;

use super::super::action::Actions;
use super::super::action::words::Action;
use super::super::feed::Shown;
use super::super::feed::definition;
use super::super::feed::words::ContextFeed;
use super::super::metadata::words::Metadata;
use super::super::metadata::{Metadatas, show};
use super::super::todo::list::Todos;
use super::Agent;
use super::builtin_feeds::Budgets;
use super::mind::{Mind, Minds};
use super::settings::Dialect;
use super::tools::{Tools, offered};
use super::words::{
    CognitionIn, CognitionOut, CognitionReasoning, CognitionSystem, CognitionTools, Delta, Notice,
    Repair, Response, ResponseWaits, Thought, is_offered,
};

/// How a model writes that writes its calls as elements.
const TAGS: &str = include_str!("protocol.txt");
/// How one writes that makes its calls in its provider's own protocol.
const NATIVE: &str = include_str!("native.txt");

/// An agent at work: its settings, its model, and what it says of its peers once it knows them.
#[derive(Debug)]
pub(super) struct AgentState {
    pub(super) agent: Agent,
    told: OnceLock<SystemPrompt>,
}

/// What an agent's model is told before all else, and what follows from it.
#[derive(Debug)]
pub(super) struct SystemPrompt {
    pub(super) text: String,
    /// The names that mean something in its replies.
    pub(super) markup: Markup,
    /// What it is offered in its provider's own protocol.
    pub(super) tools: Tools,
}

impl AgentState {
    pub(super) fn new(agent: Agent) -> AgentState {
        AgentState { agent, told: OnceLock::new() }
    }

    /// What the model is told before all else, and what follows from it.
    pub(super) fn told(&self, all: &Capabilities) -> &SystemPrompt {
        self.told.get_or_init(|| {
            let Agent { name, settings, .. } = &self.agent;
            // What stands for any payload in an example is one that it may send.
            let seen = all.seen_by(name);
            let mut text = settings.prompt.clone();
            let mut markup = Markup::default().root(name);
            let named = seen.listener(name).and_then(|it| it.peers.clone()).unwrap_or_default();
            let peers = seen.listeners().iter().filter(|it| named.contains(&it.name));
            let peers: Vec<_> = peers.collect();
            let heading = format!("You are the agent {name}.\n\n");
            text = if text.is_empty() { heading } else { format!("{text}\n\n") };
            let is_native = settings.dialect == Dialect::Native;
            let has = |part: &str| settings.context_feeds.has(part);
            if has(definition::PROTOCOL) {
                text += if is_native { NATIVE } else { TAGS };
            }
            let fields = show::declared(&settings.metadata);
            if has(definition::METADATA) && !fields.is_empty() {
                text += &format!("\n# Metadata\n\n{fields}\n");
            }
            let are_told = has(definition::PEERS) && !is_native;
            if are_told && !peers.is_empty() {
                text += "\n# Whom you may call\n";
            }
            for local in &settings.final_payloads {
                markup = markup.peer(local);
                let schemas = seen.named(local).iter().filter_map(|it| seen.schema(it));
                for schema in schemas.filter(|_| are_told) {
                    text += &format!("\n{}\nThis ends your work.\n", seen.prompt(schema));
                }
            }
            let tools = if is_native { offered(&seen, &peers) } else { Tools::default() };
            for it in peers {
                if are_told {
                    let about = it.text.as_deref().unwrap_or_default();
                    text += &format!("\n## {}\n{about}\n", it.name);
                }
                let schemas = it.takes.iter().filter_map(|name| seen.schema(name));
                for schema in schemas.filter(|it| is_offered(it)) {
                    if are_told {
                        text += &format!("\n{}\n", seen.prompt(schema));
                    }
                    markup = markup.peer(schema.name.local());
                }
            }
            SystemPrompt { text, markup, tools }
        })
    }
}

/// What a turn reads and what it sends with.
#[derive(FromContext)]
pub(super) struct TurnContext {
    pub(super) state: State<Arc<AgentState>>,
    pub(super) message: Message,
    pub(super) queue: Queue,
    pub(super) view: View,
    pub(super) history: History,
    pub(super) mind: OwnMind,
    pub(super) actions: Fold<Actions>,
    pub(super) feed_inputs: FeedInputs,
    pub(super) capabilities: Capabilities,
    pub(super) attempt: Attempt,
    /// Messages that come for the agent while its model writes.
    pub(super) arrivals: Arrivals,
    /// In a replay, the entries that this handling led to.
    pub(super) record: Record,
    pub(super) out: Outboxes,
    /// The entries that an earlier attempt at this message sent.
    pub(super) sent: Outbox<Element>,
}

/// What the thread says of the agent itself.
pub(super) struct OwnMind(pub(super) Arc<Mind>);

impl Deref for OwnMind {
    type Target = Mind;

    fn deref(&self) -> &Mind {
        &self.0
    }
}

impl FromContext<Arc<AgentState>> for OwnMind {
    fn needs() -> Vec<Need> {
        <Fold<Minds> as FromContext<Arc<AgentState>>>::needs()
    }

    fn from_context(context: &Context<Arc<AgentState>>) -> Result<OwnMind, Fault> {
        let State(state) = State::<Arc<AgentState>>::from_context(context)?;
        let minds: Fold<Minds> = Fold::from_context(context)?;
        Ok(OwnMind(minds.of(&state.agent.name)))
    }
}

/// What the built-in feeds at a prompt's end are made of.
#[derive(FromContext)]
pub(super) struct FeedInputs {
    pub(super) metadata: Fold<Metadatas>,
    pub(super) todos: Fold<Todos>,
    pub(super) budgets: Fold<Budgets>,
    pub(super) feeds: Fold<Shown>,
}

/// What an agent sends while its model writes.
#[derive(FromContext)]
pub(super) struct Outboxes {
    pub(super) charge: Outbox<Charge>,
    pub(super) system: Outbox<Note<CognitionSystem>>,
    pub(super) tools: Outbox<Note<CognitionTools>>,
    pub(super) begun: Outbox<Note<CognitionIn>>,
    pub(super) feed: Outbox<Note<ContextFeed>>,
    pub(super) thought: Outbox<Note<Thought>>,
    pub(super) metadata: Outbox<Note<Metadata>>,
    pub(super) notice: Outbox<Note<Notice>>,
    pub(super) repair: Outbox<Note<Repair>>,
    pub(super) reasoning: Outbox<Note<CognitionReasoning>>,
    pub(super) act: Outbox<To<Action>>,
    pub(super) partial: Outbox<Answer<Response>>,
    pub(super) waits: Outbox<Note<ResponseWaits>>,
    pub(super) say: Outbox<To<Element, String>>,
    pub(super) over: Outbox<To<CognitionOut>>,
    pub(super) delta: Outbox<Delta>,
}
