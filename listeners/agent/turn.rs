//! A turn: what waits is consumed, the thread is shown to the model, and what it writes becomes
//! payloads while it is written.

use std::borrow::Cow;

use pumphouse::limits::XmlLimits;
use pumphouse::listener::{Charge, Cost, Emit, IntoEmit, Need};
use pumphouse::model::Prompt;
use pumphouse::prelude::*;
use pumphouse::wire::core::ContextCleared;
use pumphouse::xml::Writer;

use super::super::action::words::CancelAction;
use super::super::action::{call, variables};
use super::super::feed::words::{ContextFeed, DeclareFeeds, RefreshFeeds};
use super::super::feed::{self, Feed, Shown};
use super::super::todo::words::TodoUntil;
use super::super::view::ClearContext;
use super::Agent;
use super::hand::{Told, Turning};
use super::late;
use super::render::{RENDERING, render};
use super::settings::{FinalWithActions, OnFull};
use super::speak::{Speaking, Spoken};
use super::words::{
    CognitionIn, CognitionOut, CognitionSystem, CognitionTools, ContextFull, Correction, Interrupt,
    Limited, Response, Stopped,
};

/// What a turn spends of the tree's budget.
const TURN: Cost = Cost { turns: 1, tokens: 0, micros: 0 };
/// Says of the agent's own root that there is something to do that no turn has seen.
const UNSEEN: &str = "unseen";
/// How many turns in a row may do nothing.
const IDLE_MAX: u32 = 2;
/// How many turns in a row may fail for the model's sake.
const FAILURES_MAX: u32 = 3;
/// How many bytes a token has, about: where only a bound is wanted.
const TOKEN_BYTES: u64 = 4;
/// What a model is told that wrote nothing but text.
const CORRECTION: &str = "[Nothing came of that: text outside of all elements reaches nobody. \
    Answer within <response>…</response>, or begin an <action>.]";

/// The agent's own root, with text in it.
pub(super) fn root(
    name: &Name,
    attributes: &[(&str, String)],
    text: &str,
) -> Result<Element, Fault> {
    let mut writer = Writer::new(XmlLimits::INSIDE);
    writer.start(name.namespace(), name.local());
    for (name, value) in attributes {
        writer.attribute(name, value);
    }
    writer.text(text);
    writer.end();
    Ok(writer.finish()?)
}

/// What a turn ends with: an answer, a stop, another turn after a correction or for another
/// reason, or a clear that comes before it.
#[derive(Default)]
pub(super) struct Came {
    answer: Option<Final<Response>>,
    finale: Option<Final<Element>>,
    stopped: Option<Final<Stopped>>,
    correction: Option<Note<Correction>>,
    again: Option<Again<Element>>,
    full: Option<Note<ContextFull>>,
    clear: Option<To<ClearContext>>,
    cancel: Option<To<CancelAction>>,
    declare: Option<Note<To<DeclareFeeds>>>,
    refresh: Option<To<RefreshFeeds>>,
}

impl IntoEmit for Came {
    fn into_emit(self) -> Emit {
        let Came { answer, finale, stopped, correction, again, .. } = self;
        let Came { full, clear, cancel, declare, refresh, .. } = self;
        let ends = (answer, finale, stopped, correction, again).into_emit();
        let asks = (full, clear, declare, refresh).into_emit();
        cancel.into_emit().into_iter().chain(ends).chain(asks).collect()
    }

    fn emits() -> Vec<Need> {
        [
            Option::<Final<Response>>::emits(),
            Option::<Final<Stopped>>::emits(),
            Option::<Note<Correction>>::emits(),
            Option::<Note<ContextFull>>::emits(),
            Option::<To<ClearContext>>::emits(),
            Option::<To<CancelAction>>::emits(),
            Option::<Note<To<DeclareFeeds>>>::emits(),
            Option::<To<RefreshFeeds>>::emits(),
        ]
        .concat()
    }
}

/// What is to be done about what is in hand.
enum Next {
    /// Nothing: it stands in the thread, and a later turn shows it.
    Wait,
    /// A final response waited for its actions, and they succeeded.
    Deliver(String),
    /// A turn.
    Turn,
}

pub(super) async fn turn(it: Turning, _: Element) -> Result<Came, Fault> {
    it.comes_to().await
}

pub(super) async fn interrupted(it: Turning, _: Interrupt) -> Result<Came, Fault> {
    it.comes_to().await
}

impl Turning {
    pub(super) fn agent(&self) -> &Agent {
        &self.mindful.agent
    }

    async fn comes_to(&self) -> Result<Came, Fault> {
        if let Some(begun) = self.begun().await? {
            return self.takes_up(begun).await;
        }
        if let Some(at) = self.interrupted_at() {
            let was_asked = self.hand().any(|it| it.seq() < at && self.is_asked(it));
            if self.mind.is_at_work || was_asked {
                return self.gives_up(self.mind.turns, self.mind.is_acting());
            }
            return Ok(Came { again: self.asked_since(at)?, ..Came::default() });
        }
        match self.next() {
            Next::Wait => Ok(Came::default()),
            Next::Deliver(text) => {
                let response = self.response(&text, true, true);
                self.leaves(&[], &[]).await?;
                Ok(Came { answer: Some(Final(response)), ..Came::default() })
            }
            Next::Turn => self.turn().await,
        }
    }

    /// The last of the messages in hand that has it stop what it does, if one does.
    pub(super) fn interrupted_at(&self) -> Option<u64> {
        self.hand().filter(|it| it.is::<Interrupt>()).map(Entry::seq).last()
    }

    /// The message to itself for what it was asked after an interruption.
    fn asked_since(&self, at: u64) -> Result<Option<Again<Element>>, Fault> {
        let is_new = self.hand().any(|it| it.seq() > at && self.is_asked(it));
        let unseen = [(UNSEEN, "true".to_owned())];
        let again = is_new.then(|| root(&self.agent().root(), &unseen, ""));
        Ok(again.transpose()?.map(Again))
    }

    /// Stops what it does, for somebody said so: what it began is taken back.
    fn gives_up(&self, turns: u64, is_acting: bool) -> Result<Came, Fault> {
        let agent = Some(self.agent().name.clone());
        let reason = Some("its agent was interrupted".to_owned());
        let cancel = CancelAction { id: None, turn: None, agent, reason };
        let again = self.interrupted_at().map(|at| self.asked_since(at)).transpose()?.flatten();
        let came = self.stop(turns, Interrupt::WORD, "It was interrupted.");
        Ok(Came { cancel: is_acting.then_some(To("action", cancel)), again, ..came })
    }

    /// The messages in hand, in order.
    fn hand(&self) -> impl Iterator<Item = &Entry> {
        std::iter::once(&self.message.0).chain(&self.queue.0)
    }

    fn next(&self) -> Next {
        let is_new = self.mind.is_asked() || self.hand().any(|it| self.is_asked(it));
        if self.mind.is_blocked() {
            return Next::Wait;
        }
        // What it heard while its feeds were had is still to be answered.
        if is_new || self.mind.has_feeds {
            return Next::Turn;
        }
        if !self.mind.is_at_work {
            return Next::Wait;
        }
        let Some(held) = &self.mind.held else { return self.unless_idle() };
        match self.mind.unfinished().next() {
            Some(_) => Next::Wait,
            None if self.mind.has_failed() => Next::Turn,
            None => Next::Deliver(held.clone()),
        }
    }

    /// Whether a message gives it something to do that it hasn't seen.
    fn is_asked(&self, it: &Entry) -> bool {
        let is_unseen = || it.element().is_ok_and(|it| it.attribute(UNSEEN) == Some("true"));
        *it.name() == self.agent().root() && (it.from() != self.agent().name || is_unseen())
    }

    /// A turn, unless the last one did nothing and something is under way: then that will wake it.
    fn unless_idle(&self) -> Next {
        let own = |it: &Entry| it.from() == self.agent().name;
        match self.mind.idle > 0 && self.mind.awaits() && self.hand().all(own) {
            true => Next::Wait,
            false => Next::Turn,
        }
    }

    pub(super) fn response(&self, text: &str, is_final: bool, was_held: bool) -> Response {
        let graph = self.actions.graph();
        let agent = &self.agent().name;
        let value = |name: &str| {
            let value = graph.value(agent, name)?;
            Some(Cow::Owned(call::json(&self.capabilities, &value)))
        };
        let text = variables::resolve(text, value).text;
        Response { is_final, turn: self.mind.turns.max(1), was_held, text }
    }

    fn stop(&self, turns: u64, reason: &str, text: impl Into<String>) -> Came {
        let stopped = Stopped { turns, reason: reason.to_owned(), text: text.into() };
        Came { stopped: Some(Final(stopped)), ..Came::default() }
    }

    async fn turn(&self) -> Result<Came, Fault> {
        let (mind, agent) = (&self.mind, self.agent());
        let turn = mind.turns + 1;
        if turn > agent.settings.max_turns {
            let text = format!("It had its {} turns.", agent.settings.max_turns);
            return Ok(self.stop(mind.turns, "turns", text));
        }
        if mind.failures >= FAILURES_MAX {
            let text = format!("The model failed {FAILURES_MAX} times in a row.");
            return Ok(self.stop(mind.turns, "model", text));
        }
        if mind.idle >= IDLE_MAX {
            let text = format!("{IDLE_MAX} turns in a row did nothing.");
            return Ok(self.stop(mind.turns, "idle", text));
        }
        if let Some(came) = self.lacks_feeds(turn) {
            return Ok(came);
        }
        let last = self.queue.0.last().map_or(self.message.seq(), Entry::seq);
        self.speaks(turn, last.max(self.mind.said), &[]).await
    }

    /// Shows the model the thread up to an entry, and does what it says; what an earlier attempt
    /// sent is sent as it was.
    pub(super) async fn speaks(
        &self,
        turn: u64,
        until: u64,
        earlier: &[Entry],
    ) -> Result<Came, Fault> {
        let told = self.mindful.told(&self.capabilities);
        let (feeds, changed) = match earlier {
            [] => self.feeds(turn),
            sent => (self.known.feeds.of(&self.agent().name), recorded(sent)),
        };
        let prompt = self.prompt(told, turn, until, &feeds).await?;
        if let Some(came) = self.is_full(&prompt, turn) {
            return Ok(came);
        }
        if let Err(fault) = self.out.charge.send(Charge::reserve(TURN)).await {
            return Ok(self.stop(turn - 1, "budget", fault.message));
        }
        self.tells(told, earlier).await?;
        for it in changed {
            self.out.feed.send(Note(it)).await?;
        }
        self.begins(turn, until, &prompt).await?;
        let spoken = Speaking::new(self, turn, earlier).speak(prompt, told).await?;
        self.ends(turn, until, spoken).await
    }

    /// Records what the model is told before all else, and offered, where that is new.
    async fn tells(&self, told: &Told, earlier: &[Entry]) -> Result<(), Fault> {
        let tools = CognitionTools::from(&**told.tools.all());
        let (has_text, has_tools) = match earlier {
            [] => (self.mind.system.as_deref() == Some(&told.text), self.mind.tools == tools),
            sent => (
                !sent.iter().any(Entry::is::<CognitionSystem>),
                !sent.iter().any(Entry::is::<CognitionTools>),
            ),
        };
        if !has_text {
            let text = told.text.clone();
            self.out.system.send(Note(CognitionSystem { text })).await?;
        }
        if !has_tools {
            self.out.tools.send(Note(tools)).await?;
        }
        Ok(())
    }

    /// What has to come before the turn where there are feeds: they are had anew.
    fn lacks_feeds(&self, turn: u64) -> Option<Came> {
        let Agent { name, settings, .. } = self.agent();
        let declared = settings.context_feeds.declared();
        let registry = self.known.feeds.registry();
        let is_new = registry.declared(name) != declared;
        let has_none = !is_new && registry.of(name).is_empty();
        if has_none || self.mind.has_feeds {
            return None;
        }
        // What was asked before a fork is answered elsewhere.
        if self.mind.asked.as_ref().is_some_and(|it| it.thread == *self.message.thread()) {
            return Some(Came::default());
        }
        let declare =
            is_new.then(|| Note(To(feed::NAME, DeclareFeeds { feed: declared.to_vec() })));
        let refresh = Some(To(feed::NAME, RefreshFeeds { turn }));
        Some(Came { declare, refresh, ..Came::default() })
    }

    /// What the prompt shows beside the history, and what of that is new.
    fn feeds(&self, turn: u64) -> (Vec<Feed>, Vec<ContextFeed>) {
        let Agent { name, settings, .. } = self.agent();
        let known = &self.known;
        let all = [
            late::metadata(&settings.metadata, &known.metadata.of(name), self.mind.turns),
            late::todos(&known.todos),
            late::budget(name, &known.budgets, turn, settings.max_turns),
        ];
        let mut shown = Shown::clone(&known.feeds);
        let mut changed = Vec::new();
        for mut it in all {
            if !settings.context_feeds.has(&it.id) {
                it.text.clear();
            }
            let before = shown.get(name, &it.id).map_or("", |it| &it.text);
            if it.text != before {
                changed.push(it.clone().recorded(late::SOURCE));
                shown.hold(name, it);
            }
        }
        (shown.of(name), changed)
    }

    async fn prompt(
        &self,
        told: &Told,
        turn: u64,
        until: u64,
        feeds: &[Feed],
    ) -> Result<Prompt, Fault> {
        let agent = self.agent();
        let mut view = self.view.all().await?;
        view.retain(|it| it.seq() <= until);
        let mut prompt = render(&agent.name, &agent.root(), &told.text, &view, feeds);
        prompt.turn = turn;
        prompt.tools.clone_from(told.tools.all());
        prompt.max_tokens = agent.settings.max_tokens;
        prompt.temperature = agent.settings.temperature;
        Ok(prompt)
    }

    /// What comes of a prompt that doesn't fit the model's window.
    fn is_full(&self, prompt: &Prompt, turn: u64) -> Option<Came> {
        let agent = self.agent();
        let window = u64::from(agent.model.window()?);
        let reply = u64::from(agent.settings.max_tokens.unwrap_or(0));
        let tokens = bytes(prompt) / TOKEN_BYTES;
        if tokens + reply <= window {
            return None;
        }
        let keep = self.keeps().filter(|_| agent.settings.on_context_full == OnFull::Clear);
        let Some(keep) = keep else {
            let text = format!("The prompt has about {tokens} tokens, and the model {window}.");
            let full = ContextFull { tokens, window, keep: None };
            let came = self.stop(turn - 1, "context-full", text);
            return Some(Came { full: Some(Note(full)), ..came });
        };
        let full = ContextFull { tokens, window, keep: Some(keep) };
        let clear = Some(To("view", ClearContext { keep }));
        Some(Came { full: Some(Note(full)), clear, ..Came::default() })
    }

    /// How many messages a clear for the sake of the window leaves in view: as many as the
    /// settings say, and half as many where that many were too many. None where one was.
    fn keeps(&self) -> Option<u64> {
        // A replay takes the word of the log: 0.1.0 stopped after the first clear.
        let then = self.record.0.iter().flatten().find_map(Entry::decode_if::<ContextFull>);
        if let Some(then) = then {
            return then.keep;
        }
        let keep = self.agent().settings.context_keep.max(1);
        let cleared = self.hand().filter_map(Entry::decode_if::<ContextCleared>).last();
        match cleared.map(|it| it.kept_messages) {
            Some(1) => None,
            Some(kept) => Some((kept / 2).min(keep)),
            None => Some(keep),
        }
    }

    /// Records what the model is shown.
    async fn begins(&self, turn: u64, until: u64, prompt: &Prompt) -> Result<(), Fault> {
        let agent = self.agent();
        let begun = CognitionIn {
            turn,
            model: agent.model.describe(),
            until,
            rendering: RENDERING,
            digest: prompt.digest().to_string(),
            bytes: bytes(prompt),
            dispatch: agent.settings.dispatch,
            action_limits: Limited::of(&agent.settings.action_limits),
            max_tokens: agent.settings.max_tokens,
            temperature: agent.settings.temperature,
        };
        self.out.begun.send(Note(begun)).await
    }

    /// Records what the model said, and says how it goes on.
    pub(super) async fn ends(&self, turn: u64, until: u64, it: Spoken) -> Result<Came, Fault> {
        let settings = &self.agent().settings;
        let percent = it.percent(settings.max_tokens);
        let held = self.holds(&it).then_some(it.answer.as_ref()).flatten();
        let over = CognitionOut {
            turn,
            stop: it.stop.clone(),
            is_partial: it.is_cut(),
            truncated: it.truncated,
            error: it.error.clone(),
            completion_percentage: percent,
            tokens_in: it.usage.map(|it| it.input),
            tokens_out: it.usage.map(|it| it.output),
            is_idle: it.is_idle(),
            held_from: held.map(|it| it.from as u64),
            held_to: held.map(|it| it.to as u64),
            text: it.text.clone(),
        };
        self.out.over.send(To("action", over)).await?;
        self.goes_on(turn, until, it).await
    }

    /// Whether a final response waits for the actions of its turn.
    fn holds(&self, it: &Spoken) -> bool {
        let policy = self.agent().settings.final_with_actions;
        it.answer.is_some() && it.actions > 0 && policy == FinalWithActions::Hold
    }

    /// What follows on a turn that is over.
    pub(super) async fn goes_on(&self, turn: u64, until: u64, it: Spoken) -> Result<Came, Fault> {
        let (is_held, is_idle) = (self.holds(&it), it.is_idle());
        let policy = self.agent().settings.final_with_actions;
        let again = |unseen: Option<&str>| {
            let mut attributes = vec![("turn", (turn + 1).to_string())];
            attributes.extend(unseen.map(|it| (UNSEEN, it.to_owned())));
            root(&self.agent().root(), &attributes, "")
        };
        // Something new came while a stop was on: it is for another turn.
        let is_unseen = self.hand().any(|it| it.seq() > until && self.is_asked(it));
        let more = is_unseen.then(|| again(Some("true"))).transpose()?.map(Again);
        if let Some(finale) = it.finale {
            self.leaves(&it.todos, &it.closed).await?;
            return Ok(Came { finale: Some(Final(finale)), again: more, ..Came::default() });
        }
        let is_whole = it.actions == 0 || policy == FinalWithActions::Trust;
        let is_interrupted = it.stop == Interrupt::WORD || self.interrupted_at().is_some();
        if is_interrupted && !(it.answer.is_some() && is_whole) {
            return self.gives_up(turn, it.began > 0 || self.mind.is_acting());
        }
        match it.answer {
            // What came of the actions meanwhile stands before the end of the turn: looked at from
            // there, nothing is held.
            Some(_) if is_held => {
                let again = again(is_unseen.then_some("true"))?;
                return Ok(Came { again: Some(Again(again)), ..Came::default() });
            }
            Some(answer) if is_whole => {
                let response = Response { turn, ..self.response(&answer.text, true, false) };
                self.leaves(&it.todos, &it.closed).await?;
                return Ok(Came { answer: Some(Final(response)), again: more, ..Came::default() });
            }
            _ => {}
        }
        let correction = (is_idle && !self.mind.awaits())
            .then(|| Note(Correction { turn, text: CORRECTION.to_owned() }));
        Ok(Came { correction, again: Some(Again(again(None)?)), ..Came::default() })
    }
}

impl Turning {
    /// Says with a final response what is left to do, if anything is, after the checklists that
    /// its turn wrote and closed.
    async fn leaves(&self, written: &[TodoUntil], closed: &[u64]) -> Result<(), Fault> {
        match self.known.todos.left_after(written, closed) {
            Some(left) => self.out.left.send(Partial(left)).await,
            None => Ok(()),
        }
    }
}

/// The feeds that an earlier attempt recorded.
fn recorded(sent: &[Entry]) -> Vec<ContextFeed> {
    sent.iter().filter_map(|it| it.decode().ok()).collect()
}

impl Spoken {
    /// Whether nothing came of it but text.
    fn is_idle(&self) -> bool {
        !self.did && self.error.is_none() && self.answer.is_none() && self.finale.is_none()
    }

    /// How much of a reply came that was cut, as far as that can be known: of what it might have
    /// had.
    fn percent(&self, max_tokens: Option<u32>) -> Option<u32> {
        let most = u64::from(max_tokens.filter(|it| *it > 0)?);
        self.error.as_ref()?;
        let guessed = self.text.len() as u64 / TOKEN_BYTES;
        let tokens = self.usage.map_or(guessed, |it| it.output);
        u32::try_from((tokens * 100 / most).min(99)).ok()
    }
}

fn bytes(prompt: &Prompt) -> u64 {
    let messages: usize = prompt.messages.iter().map(|it| it.text.len()).sum();
    (prompt.system.len() + messages) as u64
}
