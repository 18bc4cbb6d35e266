//! What an agent has in hand: its settings, the thread, and what it may send.

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
use super::late::Budgets;
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
pub(super) struct Mindful {
    pub(super) agent: Agent,
    told: OnceLock<Told>,
}

/// What an agent's model is told before all else, and what follows from it.
#[derive(Debug)]
pub(super) struct Told {
    pub(super) text: String,
    /// The names that mean something in its replies.
    pub(super) markup: Markup,
    /// What it is offered in its provider's own protocol.
    pub(super) tools: Tools,
}

impl Mindful {
    pub(super) fn new(agent: Agent) -> Mindful {
        Mindful { agent, told: OnceLock::new() }
    }

    /// What the model is told before all else, and what follows from it.
    pub(super) fn told(&self, all: &Capabilities) -> &Told {
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
            Told { text, markup, tools }
        })
    }
}

/// What is in hand, and what an agent goes by.
pub(super) struct Turning {
    pub(super) mindful: Arc<Mindful>,
    pub(super) message: Message,
    pub(super) queue: Queue,
    pub(super) view: View,
    pub(super) history: History,
    pub(super) mind: Arc<Mind>,
    pub(super) actions: Fold<Actions>,
    pub(super) known: Known,
    pub(super) capabilities: Capabilities,
    pub(super) attempt: Attempt,
    /// What comes for it while its model writes.
    pub(super) arrivals: Arrivals,
    /// What came of it then, where a replay has it again.
    pub(super) record: Record,
    pub(super) out: Out,
    /// What it sent for this message before a stop.
    pub(super) sent: Outbox<Element>,
}

/// What is known beside the history, for the end of a prompt.
pub(super) struct Known {
    pub(super) metadata: Fold<Metadatas>,
    pub(super) todos: Fold<Todos>,
    pub(super) budgets: Fold<Budgets>,
    pub(super) feeds: Fold<Shown>,
}

/// What an agent sends while it writes.
pub(super) struct Out {
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

type State_ = Arc<Mindful>;

impl FromContext<State_> for Turning {
    fn needs() -> Vec<Need> {
        [
            <Queue as FromContext<State_>>::needs(),
            <Arrivals as FromContext<State_>>::needs(),
            <View as FromContext<State_>>::needs(),
            <History as FromContext<State_>>::needs(),
            <Fold<Minds> as FromContext<State_>>::needs(),
            <Fold<Actions> as FromContext<State_>>::needs(),
            <Known as FromContext<State_>>::needs(),
            <Out as FromContext<State_>>::needs(),
        ]
        .concat()
    }

    fn from_context(it: &Context<State_>) -> Result<Turning, Fault> {
        let State(mindful) = State::<State_>::from_context(it)?;
        let minds = Fold::<Minds>::from_context(it)?;
        Ok(Turning {
            mind: minds.of(&mindful.agent.name),
            mindful,
            message: Message::from_context(it)?,
            queue: Queue::from_context(it)?,
            view: View::from_context(it)?,
            history: History::from_context(it)?,
            actions: Fold::from_context(it)?,
            known: Known::from_context(it)?,
            capabilities: Capabilities::from_context(it)?,
            attempt: Attempt::from_context(it)?,
            arrivals: Arrivals::from_context(it)?,
            record: Record::from_context(it)?,
            out: Out::from_context(it)?,
            sent: Outbox::from_context(it)?,
        })
    }
}

impl FromContext<State_> for Known {
    fn needs() -> Vec<Need> {
        [
            <Fold<Metadatas> as FromContext<State_>>::needs(),
            <Fold<Todos> as FromContext<State_>>::needs(),
            <Fold<Budgets> as FromContext<State_>>::needs(),
            <Fold<Shown> as FromContext<State_>>::needs(),
        ]
        .concat()
    }

    fn from_context(it: &Context<State_>) -> Result<Known, Fault> {
        Ok(Known {
            metadata: Fold::from_context(it)?,
            todos: Fold::from_context(it)?,
            budgets: Fold::from_context(it)?,
            feeds: Fold::from_context(it)?,
        })
    }
}

impl FromContext<State_> for Out {
    fn needs() -> Vec<Need> {
        [
            <Outbox<Charge> as FromContext<State_>>::needs(),
            <Outbox<Note<CognitionSystem>> as FromContext<State_>>::needs(),
            <Outbox<Note<CognitionTools>> as FromContext<State_>>::needs(),
            <Outbox<Note<CognitionIn>> as FromContext<State_>>::needs(),
            <Outbox<Note<ContextFeed>> as FromContext<State_>>::needs(),
            <Outbox<Note<Thought>> as FromContext<State_>>::needs(),
            <Outbox<Note<Metadata>> as FromContext<State_>>::needs(),
            <Outbox<Note<Notice>> as FromContext<State_>>::needs(),
            <Outbox<Note<Repair>> as FromContext<State_>>::needs(),
            <Outbox<Note<CognitionReasoning>> as FromContext<State_>>::needs(),
            <Outbox<To<Action>> as FromContext<State_>>::needs(),
            <Outbox<Answer<Response>> as FromContext<State_>>::needs(),
            <Outbox<Note<ResponseWaits>> as FromContext<State_>>::needs(),
            <Outbox<To<CognitionOut>> as FromContext<State_>>::needs(),
            <Outbox<Delta> as FromContext<State_>>::needs(),
        ]
        .concat()
    }

    fn from_context(it: &Context<State_>) -> Result<Out, Fault> {
        Ok(Out {
            charge: Outbox::from_context(it)?,
            system: Outbox::from_context(it)?,
            tools: Outbox::from_context(it)?,
            begun: Outbox::from_context(it)?,
            feed: Outbox::from_context(it)?,
            thought: Outbox::from_context(it)?,
            metadata: Outbox::from_context(it)?,
            notice: Outbox::from_context(it)?,
            repair: Outbox::from_context(it)?,
            reasoning: Outbox::from_context(it)?,
            act: Outbox::from_context(it)?,
            partial: Outbox::from_context(it)?,
            waits: Outbox::from_context(it)?,
            say: Outbox::from_context(it)?,
            over: Outbox::from_context(it)?,
            delta: Outbox::from_context(it)?,
        })
    }
}
