//! The steps between turns. Waiting responses are delivered or withdrawn, work ends, and messages
//! without an answer stay in the queue.

use std::borrow::Cow;
use std::collections::BTreeSet;

use pumphouse::limits::XmlLimits;
use pumphouse::listener::{Answer, Outcome, Park};
use pumphouse::prelude::*;
use pumphouse::schema::nearest;
use pumphouse::xml::{Profile, read};
use serde_json::{Map, Value};

use super::super::action::call;
use super::super::action::filling;
use super::super::action::graph::{Meaning, Value as Found};
use super::super::action::unresolved::Unresolved;
use super::super::action::variables::{self, Lookup};
use super::super::action::words::CancelAction;
use super::super::metadata::METADATA;
use super::super::timer::{ClearTimer, TimerDue};
use super::answer_format::open_name;
use super::context::TurnContext;
use super::escape;
use super::metadata_references::with_metadata;
use super::mind::{HeldBack, Mind, Next, PendingResponse, Stop, StopReason};
use super::outcome::{Emissions, root};
use super::provider_limits::FILTERED;
use super::words::{Interrupt, Notice, Response, Stopped};

impl TurnContext {
    /// Delivers and withdraws waiting responses, and ends work, until a turn is next or nothing is
    /// left to do.
    pub(super) async fn settle(
        &self,
        mind: &mut Mind,
        emissions: &mut Emissions,
    ) -> Result<(), Fault> {
        loop {
            match mind.next(&self.rules()) {
                Next::Wait | Next::Turn => return Ok(()),
                Next::Interrupt => {
                    self.stop_work(
                        mind,
                        emissions,
                        Interrupt::WORD,
                        "It was interrupted.".to_owned(),
                    )
                    .await?;
                }
                Next::NoWork => {
                    for it in self.entries(&mind.interrupts).await? {
                        emissions.add(Reply(it, Done {}));
                    }
                    mind.clear_interrupts();
                }
                Next::Deliver => self.deliver_next(mind, emissions).await?,
                Next::Withdraw(why) => {
                    let held = mind.held().map(|it| it.text.clone()).unwrap_or_default();
                    emissions.add(Note(undelivered(mind.turns, held, &why)));
                    mind.withdraw_held();
                }
                Next::Stop(why) => {
                    let (reason, text) = self.reason(why, mind);
                    self.stop_work(mind, emissions, reason, text).await?;
                }
            }
        }
    }

    /// Completes the emissions of a handling. If a turn is next, the agent sends itself a message.
    /// The messages without an answer stay in the queue.
    pub(super) fn finish(&self, mind: &Mind, mut emissions: Emissions) -> Result<Emissions, Fault> {
        if mind.next(&self.rules()) == Next::Turn {
            emissions.add(self.own_root(mind)?);
        }
        self.park(mind, &mut emissions);
        Ok(emissions)
    }

    /// The message by which the agent begins its next turn: its own root, which it sends to itself.
    pub(super) fn own_root(&self, mind: &Mind) -> Result<Again<Element>, Fault> {
        let turn = [("turn", (mind.turns + 1).to_string())];
        root(&self.agent().root(), &turn, "").map(Again)
    }

    /// Keeps the messages that aren't answered yet in the queue.
    pub(super) fn park(&self, mind: &Mind, emissions: &mut Emissions) {
        self.park_messages(mind, mind.held().is_some(), emissions);
    }

    /// Keeps the messages that aren't answered yet in the queue. `is_held` says whether a final
    /// response waits. While the agent has work, the pump also has to tell the agent when nothing
    /// is under way any more. The work's own timers count as under way.
    pub(super) fn park_messages(&self, mind: &Mind, is_held: bool, emissions: &mut Emissions) {
        let (work, others) = mind.unanswered();
        let park = Park::default().work(work).others(others);
        // Delivering the waiting final response takes no model request, so a spent budget doesn't
        // prevent it.
        let park = if is_held { park.settles() } else { park };
        let timers = mind.own_timers();
        let is_own = move |it: &Entry| {
            !timers.is_empty()
                && it.decode_if::<TimerDue>().is_some_and(|it| timers.contains(&it.timer))
        };
        emissions.add(match mind.work {
            Some(_) => park.quiet().besides(is_own),
            None => park,
        });
    }

    /// The messages of this handling, in order: the message itself, and those in the queue.
    pub(super) fn messages(&self) -> impl Iterator<Item = &Entry> {
        std::iter::once(&self.message.0).chain(&self.queue.0)
    }

    /// The entry number of the last interrupt among the messages of this handling. None if there is
    /// none.
    pub(super) fn interrupted_at(&self) -> Option<u64> {
        self.messages().filter(|it| it.is::<Interrupt>()).map(Entry::seq).last()
    }

    /// The entries of the thread with these numbers. The messages of this handling, and those that
    /// the turn's prompt showed, aren't read from the log again.
    pub(super) async fn entries(&self, all: &[u64]) -> Result<Vec<Entry>, Fault> {
        let mut found = Vec::new();
        for seq in all {
            match self.messages().chain(self.shown.iter()).find(|it| it.seq() == *seq) {
                Some(it) => found.push(it.clone()),
                None => found.extend(self.history.read(seq - 1, 1).await?),
            }
        }
        Ok(found)
    }

    /// Delivers the first waiting response. A final payload that can't be read is withdrawn
    /// instead, and the agent gets a notice.
    async fn deliver_next(&self, mind: &mut Mind, emissions: &mut Emissions) -> Result<(), Fault> {
        let Some(waiting) = mind.pending.front().cloned() else { return Ok(()) };
        let asked = self.entries(&mind.answered()).await?;
        if let Some(local) = &waiting.payload {
            match self.finale(local, &waiting.text) {
                Ok(element) => emissions.add(Answer::new(asked, element)),
                Err(why) => {
                    let text = format!("<{local}> was not sent: {why}");
                    emissions.add(Note(undelivered(waiting.turn, waiting.text, &text)));
                    mind.withdraw_held();
                    return Ok(());
                }
            }
        } else {
            let mut filled = self.filled(&waiting, mind, &|_| None);
            if waiting.is_final {
                filled.text = whole(mind, filled.text);
            }
            let (is_final, turn, text) = (waiting.is_final, waiting.turn, filled.text.clone());
            let response = Response { is_final, turn, was_held: true, at: None, text };
            match is_final {
                true if self.holds_back(mind, waiting.is_last, &filled.lost) => {
                    emissions.add(Note(self.held_back(turn, waiting.text, &filled)));
                    mind.hold_back(turn, response.text);
                    return Ok(());
                }
                true => {
                    if !filled.lost.is_empty() {
                        emissions.add(Note(delivered_as_written(turn, &filled.lost)));
                    }
                    if let Some(left) = self.feed_inputs.todos.left_after(&[], &[]) {
                        emissions.add(Answer::partial(asked.clone(), left));
                    }
                    emissions.add(Answer::new(asked, response));
                }
                false => emissions.add(Answer::partial(asked, response)),
            }
        }
        mind.close_response(waiting.is_final, true);
        Ok(())
    }

    /// Reads the payload that ends the agent's work from the text that the model wrote.
    fn finale(&self, local: &str, text: &str) -> Result<Element, String> {
        if text.starts_with('{')
            && let Some(format) = self.state.0.format(&self.capabilities)
        {
            let read = format.read(&self.capabilities, &escape::written(text));
            return read.map(|(_, element)| element).map_err(|(_, why)| why);
        }
        let element = read(text, Profile::Wire, &XmlLimits::INSIDE);
        let element = element.map_err(|it| it.to_string())?;
        let name = open_name(&self.capabilities, local);
        let name = name.ok_or_else(|| "nobody knows it".to_owned())?;
        self.capabilities.understand(&element, name).map_err(|it| it.message)
    }

    /// Ends the work at hand with an `agent-stopped` in place of an answer. Waiting responses are
    /// withdrawn. A stop by an interrupt, or for lack of turns or budget, clears the timers. An
    /// interrupt also cancels the unfinished actions.
    pub(super) async fn stop_work(
        &self,
        mind: &mut Mind,
        emissions: &mut Emissions,
        reason: &str,
        text: String,
    ) -> Result<(), Fault> {
        let stop = Stop::of(reason);
        // An interrupt doesn't end work that was requested after it.
        let interrupt = mind.interrupts.last().copied().filter(|_| stop == Stop::Interrupted);
        let until = interrupt.unwrap_or_else(|| self.until());
        let taken = mind.taken_by(stop, until);
        for it in &mind.pending {
            emissions.add(Note(undelivered(mind.turns, it.text.clone(), &text)));
        }
        let held_back = mind.work.as_ref().and_then(|it| it.held_back.clone());
        if let Some(it) = held_back.filter(|_| stop != Stop::Interrupted) {
            return self.deliver_held_back(mind, emissions, it, &text).await;
        }
        for timer in &taken.timers {
            emissions.add(To("timer", ClearTimer { timer: *timer }));
        }
        let mut asked = mind.work.as_ref().map(|it| it.asked.clone()).unwrap_or_default();
        asked.extend(&taken.asks);
        if asked.is_empty() {
            asked = mind.answered();
        }
        let outcome = match stop {
            Stop::Interrupted => {
                self.cancel_actions(mind, emissions);
                asked.extend(&mind.interrupts);
                Outcome::Cancelled
            }
            _ => Outcome::Failed,
        };
        let reason = reason.to_owned();
        let it = Stopped { turns: mind.turns, reason, until, text };
        emissions.add(Answer::new(self.entries(&asked).await?, it).outcome(outcome));
        mind.stop_work(stop, until);
        Ok(())
    }

    /// Delivers a final response that was held back, since the agent said nothing else before it
    /// stopped. `why` is the reason of the stop.
    async fn deliver_held_back(
        &self,
        mind: &mut Mind,
        emissions: &mut Emissions,
        HeldBack { turn, text }: HeldBack,
        why: &str,
    ) -> Result<(), Fault> {
        let said = format!("Your response of turn {turn} was delivered as you wrote it: {why}");
        emissions.add(Note(told(mind.turns, said)));
        let asked = self.entries(&mind.answered()).await?;
        let response = Response { is_final: true, turn, was_held: true, at: None, text };
        emissions.add(Answer::new(asked, response));
        mind.close_response(true, true);
        Ok(())
    }

    /// Cancels the unfinished actions of the work at hand.
    fn cancel_actions(&self, mind: &Mind, emissions: &mut Emissions) {
        let agent = Some(self.agent().name.clone());
        let reason = Some("its agent was interrupted".to_owned());
        let cancel =
            |id, turn| CancelAction { id, turn, agent: agent.clone(), reason: reason.clone() };
        match mind.acting() {
            (all, _) if all.is_empty() => {}
            (_, true) => emissions.add(To("action", cancel(None, None))),
            (all, false) => {
                for (id, turn) in all {
                    emissions.add(To("action", cancel(Some(id), Some(turn))));
                }
            }
        }
    }

    /// Returns the reason why the agent stops, as a word and as a sentence.
    fn reason(&self, why: StopReason, mind: &Mind) -> (&'static str, String) {
        match why {
            StopReason::Turns if mind.turns_spent() < self.rules().max_turns => {
                let text = format!("The budget has no room for a turn after turn {}.", mind.turns);
                (Stopped::BUDGET, text)
            }
            StopReason::Turns => {
                let text = format!("It had its {} turns.", self.agent().settings.max_turns);
                ("turns", text)
            }
            StopReason::Model if mind.is_refused() => {
                ("model", format!("The model's provider refuses to answer: {}", mind.error))
            }
            StopReason::Model => {
                let text = format!("The model failed {} times in a row", mind.failures());
                let why = format!(": {}", mind.error);
                ("model", text + &why)
            }
            StopReason::Repeated => {
                let (turns, why) = match &mind.repeated {
                    Some(it) => (it.turns, &*it.text),
                    None => (0, ""),
                };
                ("repeated", format!("The same call failed in the same way {turns} times: {why}"))
            }
            StopReason::Idle => {
                let text = format!("{} turns in a row did nothing.", mind.idle);
                let is_told = mind.is_filtered();
                ("idle", if is_told { format!("{text} {FILTERED}") } else { text })
            }
        }
    }

    /// Whether a final response with these references to nothing is held back, so that the agent
    /// has a turn to write it again. This happens once in a work, and not in the last turn.
    pub(super) fn holds_back(&self, mind: &Mind, is_last: bool, lost: &[String]) -> bool {
        let has_been = mind.work.as_ref().is_none_or(|it| it.held_back.is_some());
        !lost.is_empty() && !is_last && !has_been
    }

    /// The notice that a final response was held back. It says why, and which names there are.
    /// `written` is the response as the agent wrote it.
    pub(super) fn held_back(&self, turn: u64, written: String, it: &FilledResponse) -> Notice {
        let FilledResponse { text, lost, names } = it;
        let fields = self.agent().settings.metadata.all();
        let fields = fields.map(|it| format!("{METADATA}.{}", it.name()));
        let mut names: Vec<String> = names.iter().cloned().chain(fields).collect();
        let more = names.len().saturating_sub(NAMES_MAX);
        names.truncate(NAMES_MAX);
        let there = match (names.len(), more) {
            (0, _) => "There are no names".to_owned(),
            (_, 0) => format!("There are {}", names.join(", ")),
            (_, more) => format!("There are {} and {more} more", names.join(", ")),
        };
        let lost = lost.join("; ");
        let end = if lost.ends_with('?') { "" } else { "." };
        let why = format!(
            "{lost}{end} {there}. Write it again; for text that is no reference write $${{word}} \
             or use code. What you write then is delivered as it stands."
        );
        Notice { held_back: Some(text.clone()), ..undelivered(turn, written, &why) }
    }

    /// The text of a response, with each reference replaced by its value. `own` has the values of
    /// the turn at hand, which the log has got since this handling began.
    pub(super) fn filled(
        &self,
        waiting: &PendingResponse,
        mind: &Mind,
        own: &dyn Fn(&str) -> Option<Lookup<'static>>,
    ) -> FilledResponse {
        let (agent, turn) = (&*self.agent().name, waiting.turn);
        if !self.agent().settings.has_references() {
            return FilledResponse::sound(waiting.text.clone());
        }
        let mut graph = Cow::Borrowed(self.actions.graph());
        // The graph doesn't know yet which feeds the prompt of this turn showed.
        if turn > self.mind.turns && waiting.text.contains('$') {
            graph.to_mut().shows(&agent.into(), turn, self.feed_inputs.feeds.contents(agent));
        }
        let value = |name: &str| {
            if let Some(own) = own(name) {
                return own;
            }
            let meaning = graph.meaning(agent, name, waiting.at, turn);
            let is_action = matches!(meaning, Meaning::Action(_));
            let value = match meaning {
                Meaning::Action(id) => graph.resolved(id),
                Meaning::Feed => graph.shown(agent, name, turn),
                Meaning::Nothing if mind.has_failed(name, turn) => Some(Found::Failed),
                Meaning::Nothing => None,
            };
            let found = value.map(|it| call::lookup(&self.capabilities, &it));
            let fields = &self.agent().settings.metadata;
            if name == METADATA && !fields.is_empty() && !is_action {
                return with_metadata(found, fields, &waiting.metadata);
            }
            found.unwrap_or(Lookup::Unknown)
        };
        let pieces = variables::in_prose(&waiting.text);
        let filled = filling::fill(&pieces, value);
        let mut lost: Vec<String> = Vec::new();
        let is_lost = |it: &&Unresolved| it.is_too_large || it.reference.starts_with("${");
        for it in filled.unresolved.iter().filter(is_lost).take(EXAMINED_MAX) {
            let why = match it.missing {
                Some(_) => Some(it.lost()),
                None if it.is_too_large => Some(it.lost()),
                None => nearest(&it.name, graph.known(agent)).map(|near| {
                    let Unresolved { reference, name, .. } = it;
                    format!("{reference}: nothing is called {name}; did you mean {near}?")
                }),
            };
            lost.extend(why.filter(|it| !lost.contains(it)));
            if lost.len() == LOST_MAX {
                break;
            }
        }
        // A value may hold characters that XML doesn't allow, and so no response.
        let text = escape::carried(&filled.text).into_owned();
        let known = graph.known(agent).filter(|_| !lost.is_empty());
        FilledResponse { text, names: known.map(str::to_owned).collect(), lost }
    }

    /// The text of a partial response that is delivered at once.
    pub(super) fn partial(
        &self,
        turn: u64,
        text: &str,
        metadata: Map<String, Value>,
        own: &dyn Fn(&str) -> Option<Lookup<'static>>,
    ) -> String {
        let pending = PendingResponse::now(turn, text, metadata);
        self.filled(&pending, &self.mind, own).text
    }
}

/// The text of a final response. A listener that asked takes the final response alone, so it gets
/// the responses before it that were cut, too, and each goes on exactly where the one before it
/// ends. An identity has read them already.
pub(super) fn whole(mind: &Mind, text: String) -> String {
    let is_listener = mind.work.as_ref().is_some_and(|it| !it.asker.is_identity);
    let before = mind.cut_texts.iter().filter(|_| is_listener);
    before.cloned().chain([text]).collect()
}

/// The notice that a response wasn't delivered, with the reason.
fn undelivered(turn: u64, response: String, why: &str) -> Notice {
    let text = format!("Your response was not delivered: {why}");
    Notice { response: Some(response), ..told(turn, text) }
}

/// The notice that a final response was delivered although references in it lead to nothing.
pub(super) fn delivered_as_written(turn: u64, lost: &[String]) -> Notice {
    let text = format!("Your response was delivered as you wrote it, with {}", lost.join("; "));
    told(turn, text)
}

/// A notice that is about no call, and withdraws no response.
fn told(turn: u64, text: String) -> Notice {
    Notice { turn, line: None, column: None, call: None, response: None, held_back: None, text }
}

/// A response whose references are filled in.
pub(super) struct FilledResponse {
    pub(super) text: String,
    /// The references with braces that lead to nothing, and why: the path of a known name that
    /// isn't there, or a name that is nearly a known one.
    pub(super) lost: Vec<String>,
    /// The names that there are. Empty if no reference leads to nothing.
    names: BTreeSet<String>,
}

impl FilledResponse {
    /// A response of which every reference leads somewhere.
    fn sound(text: String) -> FilledResponse {
        FilledResponse { text, lost: Vec::new(), names: BTreeSet::new() }
    }
}

/// The maximum number of references that the notice about a response names.
const LOST_MAX: usize = 20;
/// The maximum number of references without values that such a notice is made from.
const EXAMINED_MAX: usize = 1_000;
/// The maximum number of names that the notice about a response that was held back lists.
const NAMES_MAX: usize = 20;
