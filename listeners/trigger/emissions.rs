//! The emissions of the listener `trigger`.

use pumphouse::listener::{Answer, Emit, IntoEmit, Need, Outcome, ThreadControl};
use pumphouse::prelude::*;
use pumphouse::wire::core::ThreadCancelled;
use serde_json::{Map, Value, json};

use super::super::workflow;
use super::super::workflow::definition::Seconds;
use super::NAME;
use super::event::EventRule;
use super::rule::{self, Rule};
use super::words::{HeldLongEnough, TriggerRefused, Triggered, TriggersDecided};

/// The emissions of the listener. They are sent in the order of these fields.
#[derive(Default, IntoEmit)]
pub(super) struct Emissions {
    pub(super) decided: Vec<Note<TriggersDecided>>,
    timers: Vec<Later<HeldLongEnough>>,
    cancelled: Vec<ThreadControl<ThreadCancelled>>,
    runs: Vec<Begun>,
    answers: Vec<Answer<Result<Triggered, TriggerRefused>>>,
}

/// A run that begins.
struct Begun {
    /// The agent whose metadata fired the trigger. None if the trigger isn't on metadata.
    agent: Option<String>,
    run: To<Element, String>,
}

impl IntoEmit for Begun {
    fn into_emit(self) -> Emit {
        self.run.into_emit()
    }

    fn emits() -> Vec<Need> {
        To::<Element, String>::emits()
    }
}

impl Emissions {
    /// Begins a run of a trigger on metadata.
    pub(super) fn begin(
        &mut self,
        agent: &str,
        rule: &Rule,
        turn: Option<u64>,
        metadata: &Value,
    ) -> Result<(), Fault> {
        let input = rule::input(rule, agent, turn, metadata);
        let run = To(rule.name.clone(), workflow::start(&rule.root, &input)?);
        self.runs.push(Begun { agent: Some(agent.to_owned()), run });
        Ok(())
    }

    /// Withdraws the runs of a trigger that these emissions begin, since its condition no longer
    /// holds.
    pub(super) fn take_back(&mut self, agent: &str, rule: &str) {
        self.runs.retain(|it| it.agent.as_deref() != Some(agent) || it.run.0 != rule);
        let own = self.decided.iter_mut().filter(|it| it.0.agent.as_deref() == Some(agent));
        for it in own.flat_map(|it| &mut it.0.decision).filter(|it| it.fires && it.rule == rule) {
            (it.fires, it.why) = (false, Some("it ceased to hold before the run began".to_owned()));
        }
    }

    /// Begins a run of a trigger on an entry, an event or a time. `of` is the entry that fired the
    /// trigger, and `from` is the sender of this entry.
    pub(super) fn begin_event(
        &mut self,
        rule: &EventRule,
        of: Option<&str>,
        from: Option<&str>,
        value: &Value,
    ) -> Result<(), Fault> {
        let kind = rule.kind;
        let mut input = Map::new();
        input.insert("type".to_owned(), json!(kind.as_str()));
        input.insert("rule".to_owned(), json!(rule.name()));
        for (key, value) in [("of", of), ("from", from)] {
            input.extend(value.map(|it| (key.to_owned(), json!(it))));
        }
        input.insert(kind.subject().to_owned(), value.clone());
        let run = To(rule.name().to_owned(), workflow::start(&rule.root, &input)?);
        self.runs.push(Begun { agent: None, run });
        Ok(())
    }

    /// Cancels runs of a trigger whose condition has ceased to hold.
    pub(super) fn cancel(&mut self, rule: &str, threads: impl Iterator<Item = ThreadId>) {
        self.cancelled.extend(threads.map(|thread| {
            let reason = Some(format!("the condition of the trigger {rule} holds no longer"));
            let why = ThreadCancelled { thread: thread.to_string(), by: NAME.to_owned(), reason };
            ThreadControl::cancel(thread, why)
        }));
    }

    /// Sends `held` to the listener itself once `time` has passed since the message.
    pub(super) fn wait(&mut self, message: &Entry, time: Seconds, held: HeldLongEnough) {
        let micros = u64::try_from(time.duration().as_micros()).unwrap_or(u64::MAX);
        self.timers.push(Later::at(message.at_us().saturating_add(micros), held).unawaited());
    }

    /// Answers a pushed event with the decisions on it.
    pub(super) fn answer(&mut self, message: &Entry, triggered: Triggered) {
        self.answers.push(Answer::new(vec![message.clone()], Ok(triggered)));
    }

    /// Answers a pushed event with the reason why it is refused.
    pub(super) fn refuse(&mut self, message: &Entry, refused: TriggerRefused) {
        let answer = Answer::new(vec![message.clone()], Err(refused));
        self.answers.push(answer.outcome(Outcome::Failed));
    }
}
