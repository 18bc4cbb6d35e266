//! The result of a generation, in three parts: what the model wrote, what the reply began, and how
//! it ended.

use std::sync::Mutex;
use std::time::Duration;

use pumphouse::model::{Price, Reply as ModelReply, Usage};
use pumphouse::prelude::*;
use pumphouse::wire::budget::Charge;
use serde_json::{Map, Value};

use super::super::action::words::{Action, Mode};
use super::super::todo::words::TodoUntil;
use super::cut_reply::CutReply;
use super::provider_limits::Refusal;
use super::words::CognitionOut;

/// The result of a generation.
#[derive(Default)]
pub(super) struct Generation {
    pub(super) reply: WrittenReply,
    pub(super) deeds: Deeds,
    pub(super) ending: Ending,
    /// The charge that replaces the turn's reservation with the amounts that the turn used.
    pub(super) charge: Option<Charge>,
    /// Whether the turn is the agent's last one.
    pub(super) is_last: bool,
}

/// What the model wrote.
#[derive(Default)]
pub(super) struct WrittenReply {
    pub(super) text: String,
    /// The text outside of all elements.
    pub(super) outside: String,
    /// The places of native calls in the text: the byte offsets of the beginning and the end of
    /// each.
    pub(super) natives: Vec<u64>,
    /// The number of bytes of text that came from the model.
    pub(super) received: usize,
    /// The number of bytes of reasoning that the model showed.
    pub(super) reasoned: usize,
    pub(super) usage: Option<Usage>,
    /// The most tokens that the reply may have, if that is known.
    pub(super) tokens_max: Option<u32>,
    /// The model that answered. None if the agent's model isn't a router, which asks one of several
    /// models.
    pub(super) answered_by: Option<String>,
    /// The price of the model that answered. None if it isn't known.
    pub(super) answered_for: Option<Price>,
    /// The handle of the model's finished reply. The reply counts as under way until this handle is
    /// dropped, at the end of the turn.
    pub(super) handle: Option<Mutex<Box<dyn ModelReply>>>,
}

/// What the reply began.
#[derive(Default)]
pub(super) struct Deeds {
    pub(super) attempted: Attempted,
    /// The number of calls and payloads, including the refused ones. Accepted checklists and final
    /// payloads don't count.
    pub(super) calls: usize,
    /// The number of `sync` calls that began.
    pub(super) sync_calls: usize,
    /// The number of responses that are held back until the results of calls have come.
    pub(super) waiting_responses: usize,
    pub(super) answer: Option<FinalAnswer>,
    /// Whether a response of a reply that was cut is delivered as far as it goes.
    pub(super) delivers_cut: bool,
    /// Whether the agent asked for another turn, by writing a payload of its own name.
    pub(super) wants_turn: bool,
    /// What the reply waits for by `<await>`: names, or nothing for all that is under way.
    pub(super) awaits: Option<String>,
    /// The checklists that the reply wrote.
    pub(super) todos: Vec<TodoUntil>,
    /// The checklists that the reply closed, by their ids.
    pub(super) closed: Vec<u64>,
    /// The last thought of the reply, or the ids of its calls: what the reply came to, in short.
    pub(super) gist: Gist,
}

/// The most that a reply tried to do, even if it was refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Attempted {
    /// The reply has only text and thoughts.
    #[default]
    Nothing,
    /// Metadata, a final response, or an element that couldn't be read.
    Aside,
    /// A call, a partial response, a payload, or a further turn.
    Deed,
}

/// How the reply ended.
#[derive(Default)]
pub(super) struct Ending {
    /// The reason of the end, as a word.
    pub(super) stop: String,
    pub(super) error: Option<String>,
    /// Whether the reply has as many tokens as it may have, or broke off.
    pub(super) truncated: bool,
    /// Whether the reply came to its end, so that the provider's count covers all of it.
    pub(super) is_counted: bool,
    /// Whether the model never got the prompt.
    pub(super) is_unasked: bool,
    /// Whether the provider refused the request, so that a retry would be refused, too.
    pub(super) is_refused: bool,
    /// The provider's refusal of the prompt as too long. None for any other outcome.
    pub(super) too_long: Option<Refusal>,
    /// The time for which the provider accepts no further request. None if the provider named none,
    /// or one below a second.
    pub(super) limited: Option<Duration>,
    /// Whether the model failed, so that the agent counts as not healthy.
    pub(super) model_is_down: bool,
}

/// What a reply came to, in short.
#[derive(Default)]
pub(super) struct Gist {
    pub(super) thought: Option<String>,
    calls: Vec<String>,
}

impl Gist {
    /// The last thought, or else the calls. Empty if the reply has neither.
    pub(super) fn text(&self) -> String {
        match (&self.thought, &self.calls[..]) {
            (Some(thought), _) => thought.clone(),
            (None, []) => String::new(),
            (None, calls) => format!("it called {}", calls.join(", ")),
        }
    }
}

impl Generation {
    /// The generation of a reply that was cut off. `why` is its error.
    pub(super) fn cut(why: &str) -> Generation {
        let (error, stop) = (Some(why.to_owned()), CognitionOut::STOPPED.to_owned());
        let ending = Ending { error, stop, truncated: true, ..Ending::default() };
        let deeds = Deeds { attempted: Attempted::Aside, ..Deeds::default() };
        Generation { ending, deeds, ..Generation::default() }
    }

    /// How the reply was cut. None for a reply that is whole.
    pub(super) fn cut_short(&self) -> Option<CutReply> {
        let tokens = self.reply.usage.map(|it| it.output).filter(|it| *it > 0);
        let tokens = tokens.or(self.reply.tokens_max.map(u64::from));
        self.ending.is_cut().then(|| CutReply::new(self.ending.error.is_none(), tokens))
    }
}

impl Deeds {
    /// Notes that the reply tried to do something.
    pub(super) fn attempt(&mut self, it: Attempted) {
        self.attempted = self.attempted.max(it);
    }

    /// Counts an action that begins.
    pub(super) fn begins(&mut self, action: &Action) {
        self.calls += 1;
        self.sync_calls += usize::from(action.mode == Mode::Sync);
        self.gist.calls.push(format!("{} ({})", action.name, action.id));
    }

    /// Whether the reply is only text: it has no call, no payload and no response. Thoughts and
    /// metadata don't matter.
    pub(super) fn is_only_text(&self) -> bool {
        self.attempted < Attempted::Deed && self.calls == 0 && self.answer.is_none()
    }
}

impl Ending {
    /// Whether the reply is incomplete.
    pub(super) fn is_cut(&self) -> bool {
        self.error.is_some() || self.truncated
    }
}

/// The text of a final response, or the payload that ends the work.
pub(super) struct FinalAnswer {
    pub(super) text: String,
    /// The metadata fields to which the text refers, with their values at the text's place in the
    /// reply.
    pub(super) metadata: Map<String, Value>,
    pub(super) finale: Option<Element>,
    /// Whether the answer is held back until the results of calls have come.
    pub(super) waits: bool,
}
