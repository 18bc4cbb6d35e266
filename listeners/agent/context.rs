//! The context of an agent's handlers: the agent's settings, the thread, and the outboxes.

use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use pumphouse::listener::{
    Answer, Charge, Context, FromContext, IntoEmit, Need, NoteAbove, OrganismThread, Record,
    ThreadMark, TreeHistory,
};
use pumphouse::model::Prompt;
use pumphouse::prelude::*;
use tokio::sync::{Mutex, MutexGuard};

use super::super::action::Actions;
use super::super::action::words::Action;
use super::super::feed::words::ContextFeed;
use super::super::feed::{Refreshes, Shown};
use super::super::metadata::words::{Metadata, MetadataChanged};
use super::super::metadata::{KnownFields, Metadatas};
use super::super::todo::list::Todos;
use super::Agent;
use super::answer_format::AnswerFormat;
use super::builtin_feeds::Budgets;
use super::mind::{Mind, Minds};
use super::system_prompt::SystemPrompt;
use super::words::{
    CognitionIn, CognitionOut, CognitionReasoning, CognitionSystem, CognitionTools, Delta,
    ModelFailed, Notice, ReasoningSigned, Repair, Response, ResponseWaits, Thought,
};

/// The state of a running agent: its settings, its model, and its system prompts. Each system
/// prompt is built when it is first needed.
#[derive(Debug)]
pub(super) struct AgentState {
    pub(super) agent: Agent,
    current: OnceLock<SystemPrompt>,
    /// The system prompt for a model that has to follow an answer format.
    structured: OnceLock<SystemPrompt>,
    format: OnceLock<Option<Arc<AnswerFormat>>>,
    /// Whether the model failed when it was last asked.
    is_down: AtomicBool,
    /// Held while a change of `is_down` is recorded, so that the log has the changes in order.
    telling: Mutex<()>,
}

impl AgentState {
    pub(super) fn new(agent: Agent) -> AgentState {
        let (current, structured) = (OnceLock::new(), OnceLock::new());
        let (format, is_down) = (OnceLock::new(), AtomicBool::new(false));
        AgentState { agent, current, structured, format, is_down, telling: Mutex::default() }
    }

    /// Returns the system prompt, with its tools and with the configuration for reading replies.
    pub(super) fn system_prompt(&self, all: &Capabilities, is_structured: bool) -> &SystemPrompt {
        let new = |format| SystemPrompt::new(&self.agent, all, format);
        match self.format(all).filter(|_| is_structured) {
            None => self.current.get_or_init(|| new(None)),
            format => self.structured.get_or_init(|| new(format.cloned())),
        }
    }
}

impl AgentState {
    /// Stores whether the model failed when it was last asked. If this has changed, a guard is
    /// returned. The caller records the change while it holds the guard.
    pub(super) async fn notes_model(&self, is_down: bool) -> Option<MutexGuard<'_, ()>> {
        if self.is_down.load(Ordering::Relaxed) == is_down {
            return None;
        }
        let telling = self.telling.lock().await;
        let has_changed = self.is_down.swap(is_down, Ordering::Relaxed) != is_down;
        has_changed.then_some(telling)
    }

    /// The format of the agent's answers. None if [`AnswerFormat::of`] finds none.
    pub(super) fn format(&self, all: &Capabilities) -> Option<&Arc<AnswerFormat>> {
        let of = || AnswerFormat::of(&self.agent, all).map(Arc::new);
        self.format.get_or_init(of).as_ref()
    }
}

/// The contexts of an agent's handlers: their inputs and their outboxes.
#[derive(FromContext)]
pub(super) struct TurnContext {
    pub(super) state: State<Arc<AgentState>>,
    pub(super) message: Message,
    pub(super) thread: Thread,
    pub(super) queue: Queue,
    pub(super) view: View,
    pub(super) history: History,
    pub(super) tree: TreeHistory,
    pub(super) mind: OwnMind,
    pub(super) actions: Fold<Actions>,
    pub(super) metadata: OwnMetadata,
    pub(super) feed_inputs: FeedInputs,
    pub(super) capabilities: Capabilities,
    pub(super) attempt: Attempt,
    pub(super) mark: ThreadMark,
    /// The messages that arrive for the agent while its model writes.
    pub(super) arrivals: Arrivals,
    pub(super) shown: ShownRequests,
    /// In a replay, the entries that the original handling sent.
    pub(super) record: Record,
    pub(super) out: Outboxes,
    pub(super) organism: OrganismThread,
    pub(super) clock: Clock,
    /// The entries that an earlier attempt at this message sent.
    pub(super) sent: Outbox<Element>,
}

impl TurnContext {
    /// Adds the name of the agent, the id of the thread and the number of the turn to a prompt.
    pub(super) fn of_turn(&self, turn: u64, prompt: Prompt) -> Prompt {
        asked_by(&self.state.0.agent.name, &self.thread.0, turn, prompt)
    }
}

/// Adds the name of the agent, the id of the thread and the number of the turn to a prompt.
pub(super) fn asked_by(agent: &str, thread: &ThreadId, turn: u64, mut prompt: Prompt) -> Prompt {
    prompt.turn = turn;
    prompt.agent = Some(agent.into());
    prompt.conversation = Some(thread.as_str().into());
    prompt
}

/// The messages that the responses of the turn at hand answer, as the turn's prompt showed them.
/// They aren't read from the log again. Empty until the prompt is made.
#[derive(Default)]
pub(super) struct ShownRequests(OnceLock<Vec<Entry>>);

impl ShownRequests {
    /// Takes the messages with these numbers from a prompt's view.
    pub(super) fn note(&self, view: &[Entry], asked: &[u64]) {
        let asked = |it: &&Entry| asked.contains(&it.seq());
        self.0.get_or_init(|| view.iter().filter(asked).cloned().collect());
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.0.get().into_iter().flatten()
    }
}

impl FromContext<Arc<AgentState>> for ShownRequests {
    fn from_context(_: &Context<Arc<AgentState>>) -> Result<ShownRequests, Fault> {
        Ok(ShownRequests::default())
    }
}

/// The [`Mind`] of the agent itself.
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

/// The metadata of the agent itself.
pub(super) struct OwnMetadata {
    pub(super) known: KnownFields,
    /// The metadata that the agent got from its caller and hasn't recorded yet.
    pub(super) handed: Option<Metadata>,
}

impl FromContext<Arc<AgentState>> for OwnMetadata {
    fn needs() -> Vec<Need> {
        <Fold<Metadatas> as FromContext<Arc<AgentState>>>::needs()
    }

    fn from_context(context: &Context<Arc<AgentState>>) -> Result<OwnMetadata, Fault> {
        let State(state) = State::<Arc<AgentState>>::from_context(context)?;
        let all: Fold<Metadatas> = Fold::from_context(context)?;
        Ok(OwnMetadata { known: all.of(&state.agent.name), handed: None })
    }
}

/// The folds from which the feeds of a prompt are made.
#[derive(FromContext)]
pub(super) struct FeedInputs {
    pub(super) todos: Fold<Todos>,
    pub(super) budgets: Fold<Budgets>,
    pub(super) feeds: Fold<Shown>,
    pub(super) refreshes: Fold<Refreshes>,
}

/// The metadata that an agent sets, and the messages about them to the listener `trigger` and to
/// the agent's caller. All of these are in one batch, so a crash can't separate them.
#[derive(IntoEmit)]
pub(super) struct MetadataSet {
    pub(super) metadata: Note<Metadata>,
    pub(super) changed: Option<To<MetadataChanged>>,
    pub(super) shared: Option<NoteAbove<Metadata>>,
}

/// The outboxes for the payloads that an agent sends before its handler returns.
#[derive(FromContext)]
pub(super) struct Outboxes {
    pub(super) charge: Outbox<Charge>,
    pub(super) system: Outbox<Note<CognitionSystem>>,
    pub(super) tools: Outbox<Note<CognitionTools>>,
    pub(super) begun: Outbox<Note<CognitionIn>>,
    pub(super) feed: Outbox<Note<ContextFeed>>,
    pub(super) thought: Outbox<Note<Thought>>,
    pub(super) metadata: Outbox<MetadataSet>,
    pub(super) notice: Outbox<Note<Notice>>,
    pub(super) repair: Outbox<Note<Repair>>,
    pub(super) reasoning: Outbox<Note<CognitionReasoning>>,
    pub(super) signed: Outbox<Note<ReasoningSigned>>,
    pub(super) failed: Outbox<Note<ModelFailed>>,
    pub(super) act: Outbox<To<Action>>,
    pub(super) partial: Outbox<Answer<Response>>,
    pub(super) waits: Outbox<Note<ResponseWaits>>,
    pub(super) say: Outbox<To<Element, String>>,
    pub(super) over: Outbox<To<CognitionOut>>,
    pub(super) delta: Outbox<Delta>,
}

impl TurnContext {
    /// Whether the model has to follow an answer format. For a turn that has begun, this is read
    /// from the log. For any other turn, a model has to follow the format if it can.
    pub(super) fn is_structured(&self, earlier: &[Entry]) -> bool {
        let mut recorded = earlier.iter().chain(self.record.0.iter().flatten());
        match recorded.find_map(|it| it.decode_if::<CognitionTools>()) {
            Some(it) => it.format.is_some(),
            None if self.record.0.is_some() || self.begun_as(earlier).is_some() => {
                self.mind.tools.format.is_some()
            }
            None => self.agent().model.is_structured(),
        }
    }
}
