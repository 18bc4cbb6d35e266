//! The result of a generation: what a reply said and did, and how it ended.

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
    pub(super) text: String,
    pub(super) stop: String,
    pub(super) error: Option<String>,
    /// Whether the provider refused the request, so that a retry would be refused, too.
    pub(super) is_refused: bool,
    /// The provider's refusal of the prompt as too long. None for any other outcome.
    pub(super) too_long: Option<Refusal>,
    /// The time for which the provider accepts no further request. None if the provider named none,
    /// or one below a second.
    pub(super) limited: Option<Duration>,
    pub(super) truncated: bool,
    /// The most tokens that the reply may have, if that is known.
    pub(super) tokens_max: Option<u32>,
    pub(super) usage: Option<Usage>,
    /// The model that answered. None if the agent's model isn't a router, which asks one of several
    /// models.
    pub(super) answered_by: Option<String>,
    /// The price of the model that answered. None if it isn't known.
    pub(super) answered_for: Option<Price>,
    /// The places of native calls in the text: the byte offsets of the beginning and the end of
    /// each.
    pub(super) natives: Vec<u64>,
    /// Whether the model never got the prompt.
    pub(super) is_unasked: bool,
    /// Whether the reply came to its end, so that the provider's count covers all of it.
    pub(super) is_counted: bool,
    /// Whether the model failed, so that the agent counts as not healthy.
    pub(super) model_is_down: bool,
    /// The number of bytes of text that came from the model.
    pub(super) received: usize,
    /// The number of bytes of reasoning that the model showed.
    pub(super) reasoned: usize,
    /// The charge that replaces the turn's reservation with the amounts that the turn used.
    pub(super) charge: Option<Charge>,
    /// Whether the turn is the agent's last one.
    pub(super) is_last: bool,
    pub(super) answer: Option<FinalAnswer>,
    /// The number of calls and payloads, including the refused ones. Accepted checklists and final
    /// payloads don't count.
    pub(super) calls: usize,
    /// The number of `sync` calls that began.
    pub(super) syncs: usize,
    /// The number of responses that are held back until the results of calls have come.
    pub(super) waiting: usize,
    /// Whether the reply tried to do something: a call, a response, a payload, metadata or the
    /// agent's own root, even if it was refused.
    pub(super) did: bool,
    /// As `did`, but without final responses, metadata and broken elements.
    pub(super) acted: bool,
    /// Whether the reply had a thought.
    pub(super) thought: bool,
    /// Whether a response of a reply that was cut is delivered as far as it goes.
    pub(super) went_out: bool,
    /// Whether the agent asked for another turn, by writing a payload of its own name.
    pub(super) wrote_root: bool,
    /// The text outside of all elements.
    pub(super) outside: String,
    /// The handle of the model's finished reply. The reply counts as under way until this handle is
    /// dropped, at the end of the turn.
    pub(super) reply: Option<Mutex<Box<dyn ModelReply>>>,
    /// The checklists that the reply wrote.
    pub(super) todos: Vec<TodoUntil>,
    /// The checklists that the reply closed, by their ids.
    pub(super) closed: Vec<u64>,
    /// What the reply waits for by `<await>`: names, or nothing for all that is under way.
    pub(super) awaits: Option<String>,
    /// The last thought of the reply, or the ids of its calls: what the reply came to, in short.
    pub(super) gist: Gist,
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
        Generation { error, stop, truncated: true, did: true, ..Generation::default() }
    }

    /// Counts an action that begins.
    pub(super) fn begins(&mut self, action: &Action) {
        self.calls += 1;
        self.syncs += usize::from(action.mode == Mode::Sync);
        self.gist.calls.push(format!("{} ({})", action.name, action.id));
    }

    /// How the reply was cut. None for a reply that is whole.
    pub(super) fn cut_short(&self) -> Option<CutReply> {
        let tokens = self.usage.map(|it| it.output).filter(|it| *it > 0);
        let tokens = tokens.or(self.tokens_max.map(u64::from));
        self.is_cut().then(|| CutReply::new(self.error.is_none(), tokens))
    }

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
