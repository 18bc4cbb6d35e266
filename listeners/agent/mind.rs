//! What a thread's history says of its agents: how far they came, what they wait for.

use std::collections::BTreeMap;

use pumphouse::prelude::*;
use pumphouse::wire::core::{ThreadResult, ThreadSpawned};

use super::super::action::words::{Action, ActionResult, Mode, Status};
use super::super::feed::words::RefreshFeeds;
use super::root;
use super::words::{
    CognitionIn, CognitionOut, CognitionSystem, CognitionTools, ContextFull, Interrupt, Response,
    Stopped,
};

/// The agents of a thread. A fold.
#[derive(Clone, Debug, Default)]
pub struct Minds(BTreeMap<String, Mind>);

/// What a thread's history says of one agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Mind {
    /// How many turns it began.
    pub turns: u64,
    /// The rules that the newest of them goes by.
    pub rules: Option<u32>,
    /// Whether it came to its end.
    pub is_over: bool,
    /// Whether it is at work on something, and has not answered it yet.
    pub is_at_work: bool,
    /// The newest text that its model was told before all else.
    pub system: Option<String>,
    /// What its model was last offered as tools in its provider's own protocol.
    pub tools: CognitionTools,
    /// How many turns in a row did nothing.
    pub idle: u32,
    /// How many turns in a row the model failed.
    pub failures: u32,
    /// How many threads it opened that haven't ended.
    pub children: u32,
    /// What it asked to have its feeds had anew, for its next turn.
    pub asked: Option<EntryId>,
    /// Whether that was answered.
    pub has_feeds: bool,
    /// The last entry of its own.
    pub said: u64,
    /// The final response that waits for the actions of its turn.
    pub held: Option<String>,
    /// The newest entry that gives it something to do, once it had a turn, and
    pub asked_last: u64,
    /// how far it was shown the thread, or stopped for good.
    pub seen: u64,
    actions: BTreeMap<u64, Acting>,
}

/// An action that an agent began.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Acting {
    id: String,
    turn: u64,
    mode: Mode,
    /// What came of it: whether that was what was wanted.
    ended: Option<bool>,
}

impl Apply for Minds {
    fn apply(&mut self, entry: &Entry) {
        if entry.is_refused() {
            return;
        }
        if entry.is::<ActionResult>() {
            return self.ended(entry);
        }
        if let (true, Some(to)) = (entry.from() == "core", entry.to()) {
            if entry.is::<ThreadSpawned>() {
                self.mind(to).children += 1;
            } else if entry.is::<ThreadResult>() {
                let mind = self.mind(to);
                mind.children = mind.children.saturating_sub(1);
            }
        }
        if let (Some(to), Some(of)) = (entry.to(), entry.reply_to())
            && let Some(mind) = self.0.get_mut(to).filter(|it| it.asked.as_ref() == Some(of))
        {
            mind.has_feeds = true;
        }
        if entry.is::<RefreshFeeds>() && !entry.is_from_identity() {
            let mind = self.mind(entry.from());
            (mind.asked, mind.has_feeds) = (Some(entry.id().clone()), false);
            mind.is_at_work = true;
        }
        let local = entry.name().local();
        if let Some(mind) = self.0.get_mut(local).filter(|_| entry.from() != local)
            && *entry.name() == root(local)
        {
            mind.asked_last = entry.seq();
        }
        if let Some(mind) = self.0.get_mut(entry.from()) {
            mind.said = entry.seq();
        }
        let own = entry.to() == Some(entry.from());
        if entry.is::<CognitionIn>() && own {
            self.began(entry);
        } else if entry.is::<CognitionSystem>() && own {
            if let Ok(CognitionSystem { text }) = entry.decode() {
                self.mind(entry.from()).system = Some(text);
            }
        } else if entry.is::<CognitionTools>() && own {
            if let Ok(tools) = entry.decode() {
                self.mind(entry.from()).tools = tools;
            }
        } else if entry.is::<CognitionOut>() {
            self.over(entry);
        } else if entry.is::<Action>() {
            self.acts(entry);
        } else if entry.is::<ContextFull>() && own {
            self.mind(entry.from()).is_at_work = true;
        } else if entry.is::<Stopped>() {
            self.stopped(entry);
        } else if entry.is::<Response>() && !entry.is_from_identity() {
            let is_final = entry.decode_if::<Response>().is_some_and(|it| it.is_final);
            if is_final {
                self.mind(entry.from()).answered();
            }
        }
    }
}

impl Minds {
    /// What is known of an agent.
    #[must_use]
    pub fn of(&self, agent: &str) -> Mind {
        self.0.get(agent).cloned().unwrap_or_default()
    }

    fn mind(&mut self, agent: &str) -> &mut Mind {
        self.0.entry(agent.to_owned()).or_default()
    }

    fn began(&mut self, entry: &Entry) {
        let Some(it) = entry.decode_if::<CognitionIn>() else { return };
        let mind = self.mind(entry.from());
        mind.turns = mind.turns.max(it.turn);
        mind.rules = it.rules;
        mind.seen = it.until;
        (mind.is_over, mind.is_at_work) = (false, true);
        mind.held = None;
        (mind.asked, mind.has_feeds) = (None, false);
        mind.actions.retain(|_, it| it.ended.is_none());
    }

    fn over(&mut self, entry: &Entry) {
        let Some(it) = entry.decode_if::<CognitionOut>() else { return };
        let mind = self.mind(entry.from());
        mind.is_over = true;
        let held = it.held_from.zip(it.held_to);
        let place = |at: u64| usize::try_from(at).ok();
        mind.held =
            held.and_then(|(from, to)| it.text.get(place(from)?..place(to)?).map(str::to_owned));
        mind.idle = if it.is_idle { mind.idle + 1 } else { 0 };
        mind.failures = if it.error.is_some() { mind.failures + 1 } else { 0 };
    }

    fn stopped(&mut self, entry: &Entry) {
        let mind = self.mind(entry.from());
        mind.answered();
        mind.seen = entry.seq();
        // What it took back it doesn't wait for.
        if entry.decode_if::<Stopped>().is_some_and(|it| it.reason == Interrupt::WORD) {
            mind.actions.clear();
        }
    }

    fn acts(&mut self, entry: &Entry) {
        let Some(it) = entry.decode_if::<Action>() else { return };
        let acting = Acting { id: it.id, turn: it.turn.unwrap_or(0), mode: it.mode, ended: None };
        self.mind(entry.from()).actions.insert(entry.seq(), acting);
    }

    fn ended(&mut self, entry: &Entry) {
        let (Some(agent), Ok(it)) = (entry.to(), entry.decode::<ActionResult>()) else { return };
        if let Some(acting) = self.mind(agent).actions.get_mut(&it.of) {
            acting.ended = Some(it.status == Status::Ok);
        }
    }
}

impl Mind {
    fn answered(&mut self) {
        (self.is_at_work, self.held) = (false, None);
        (self.asked, self.has_feeds) = (None, false);
        (self.idle, self.failures) = (0, 0);
    }

    /// The actions that nothing came of yet and that somebody waits for, by their ids.
    pub fn unfinished(&self) -> impl Iterator<Item = &str> {
        let open = self.actions.values().filter(|it| it.ended.is_none());
        open.filter(|it| it.mode != Mode::FireAndForget).map(|it| &*it.id)
    }

    /// Whether there is something to do that no turn has seen.
    #[must_use]
    pub fn is_asked(&self) -> bool {
        self.asked_last > self.seen
    }

    /// Whether anything that it began isn't done.
    #[must_use]
    pub fn is_acting(&self) -> bool {
        self.actions.values().any(|it| it.ended.is_none())
    }

    /// Whether something is under way that will wake it.
    #[must_use]
    pub fn awaits(&self) -> bool {
        self.children > 0 || self.unfinished().next().is_some()
    }

    /// Whether the next turn has to wait for an action.
    #[must_use]
    pub fn is_blocked(&self) -> bool {
        self.actions.values().any(|it| it.mode == Mode::Sync && it.ended.is_none())
    }

    /// Whether an action of the newest turn that somebody waits for failed.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        let newest = self.actions.values().filter(|it| it.turn == self.turns);
        newest.filter(|it| it.mode != Mode::FireAndForget).any(|it| it.ended == Some(false))
    }
}
