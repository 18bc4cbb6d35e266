//! What the listener `trigger` sends.

use pumphouse::listener::{Answer, IntoEmit, Outcome, ThreadControl};
use pumphouse::prelude::*;
use pumphouse::wire::core::ThreadCancelled;
use serde_json::{Map, Value, json};

use super::super::workflow;
use super::super::workflow::definition::Seconds;
use super::NAME;
use super::event::EventRule;
use super::rule::Rule;
use super::words::{HeldLongEnough, TriggerRefused, Triggered, TriggersDecided};

/// The emissions of the listener. They are sent in the order of these fields.
#[derive(Default, IntoEmit)]
pub(super) struct Emissions {
    pub(super) decided: Vec<Note<TriggersDecided>>,
    timers: Vec<Later<HeldLongEnough>>,
    cancelled: Vec<ThreadControl<ThreadCancelled>>,
    runs: Vec<To<Element, String>>,
    answers: Vec<Answer<Result<Triggered, TriggerRefused>>>,
}

impl Emissions {
    /// Begins a run of a trigger on metadata.
    pub(super) fn begin(&mut self, rule: &Rule, input: &Map<String, Value>) -> Result<(), Fault> {
        self.runs.push(To(rule.name.clone(), workflow::start(&rule.root, input)?));
        Ok(())
    }

    /// Begins a run of another trigger. `of` and `from` are the entry that fired it, and who sent
    /// that.
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
        self.runs.push(To(rule.name().to_owned(), workflow::start(&rule.root, &input)?));
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

    /// Waits for a time after a message.
    pub(super) fn wait(&mut self, message: &Entry, time: Seconds, held: HeldLongEnough) {
        let micros = u64::try_from(time.duration().as_micros()).unwrap_or(u64::MAX);
        self.timers.push(Later::at(message.at_us().saturating_add(micros), held).unawaited());
    }

    /// Tells who pushed an event what it has begun.
    pub(super) fn answer(&mut self, message: &Entry, triggered: Triggered) {
        self.answers.push(Answer::new(vec![message.clone()], Ok(triggered)));
    }

    /// Tells who pushed an event what is wrong with it.
    pub(super) fn refuse(&mut self, message: &Entry, refused: TriggerRefused) {
        let answer = Answer::new(vec![message.clone()], Err(refused));
        self.answers.push(answer.outcome(Outcome::Failed));
    }
}
