//! Plays one run: sends the agent the message of a case, and checks the answer.

use std::sync::Arc;

use crate::cli::base::screen::Failure;
use crate::cli::base::transcript;
use crate::id::ThreadId;
use crate::listeners::agent;
use crate::listeners::agent::transcript::{Event, EventKind, transcript as events_of};

use super::ask::{AskOutcome, Asker, Ended};
use super::expect::{self, Answer};
use super::file::{Case, Expected, Suite};
use super::judge::{self, Verdict, judge};
use super::model_spending::ModelSpending;

/// The outcome of one run.
#[derive(Clone, Debug, Default)]
pub(super) struct Run {
    /// The number of the case in the file, from 0.
    pub(super) case: usize,
    /// The number of the run among the runs of its case, from 1.
    pub(super) number: u32,
    /// The run's thread. None if the message was refused.
    pub(super) thread: Option<ThreadId>,
    /// The agent's answer, if there is one.
    pub(super) answer: Option<String>,
    /// Why the run failed, one text for each reason. Empty if the run passed.
    pub(super) wrong: Vec<String>,
    /// The model usage of the agent and of the listeners that it called.
    pub(super) used: ModelSpending,
    /// The judge's model usage.
    pub(super) judged: ModelSpending,
    /// The time from the message to the answer.
    pub(super) milliseconds: u64,
    /// The agent's model, as the agent's first turn names it.
    pub(super) model: Option<String>,
}

impl Run {
    /// Whether everything was as expected.
    pub(super) fn has_passed(&self) -> bool {
        self.wrong.is_empty()
    }
}

/// Plays the cases of a suite.
pub(super) struct Player {
    pub(super) suite: Suite,
    asker: Asker,
}

impl Player {
    /// Makes a player for a suite.
    pub(super) fn new(suite: Suite, asker: Asker) -> Arc<Player> {
        Arc::new(Player { suite, asker })
    }

    /// Plays a case once. Returns None if the evaluation was stopped before the end.
    pub(super) async fn play(&self, case: usize, number: u32) -> Result<Option<Run>, Failure> {
        let Some(said) = self.suite.sheet.cases.get(case) else { return Ok(None) };
        let mut run = Run { case, number, ..Run::default() };
        let asked = match agent::ask(&self.suite.sheet.agent, &said.message) {
            Ok(element) => self.asker.ask(&self.asker.pump, element).await,
            Err(fault) => {
                run.wrong.push(format!("the message can't be sent: {fault}"));
                return Ok(Some(run));
            }
        };
        run.milliseconds = asked.milliseconds;
        run.thread = asked.id.as_ref().map(|it| it.thread.clone());
        if asked.ended == Ended::Stopped {
            return Ok(None);
        }
        let is_whole = self.look_at(said, &asked, &mut run).await?;
        Ok(is_whole.then_some(run))
    }

    /// Returns the events in the thread of a run.
    pub(super) async fn events(&self, run: &Run) -> Result<Vec<Event>, Failure> {
        let Some(thread) = &run.thread else { return Ok(Vec::new()) };
        Ok(events_of(&transcript::read(&**self.asker.pump.log(), thread, u64::MAX).await?))
    }

    /// Records in the run what isn't as expected, and the model usage. Returns false if the
    /// evaluation was stopped meanwhile.
    async fn look_at(
        &self,
        case: &Case,
        asked: &AskOutcome,
        run: &mut Run,
    ) -> Result<bool, Failure> {
        run.wrong.extend(asked.refused.clone());
        let Some(thread) = run.thread.clone() else { return Ok(true) };
        let pump = &self.asker.pump;
        run.used = judge::used(pump, &thread).await?;
        let events = self.events(run).await?;
        let agent = self.suite.sheet.agent.as_str();
        run.model = events.iter().find_map(|it| match &it.what {
            EventKind::StepStart { model, .. } if it.agent == agent => Some(model.clone()),
            _ => None,
        });
        let text = match (asked.replies.last(), asked.ended) {
            (_, Ended::Late) => Err(self.asker.too_late()),
            (Some(reply), _) => expect::text(reply),
            (None, _) => Err("nobody answered".to_owned()),
        };
        let text = match text {
            Ok(text) => text,
            Err(why) => {
                run.wrong.push(why);
                return Ok(true);
            }
        };
        let (replies, organism) = (&asked.replies[..], pump.capabilities());
        let answer = Answer { replies, text: &text, events: &events, agent, organism };
        for expected in &case.expect {
            run.wrong.extend(expect::complaint(expected, &answer));
            if let Expected::Judged(criterion) = expected {
                let judged = judge(&self.asker, criterion, &case.message, &text).await?;
                let Some((verdict, used)) = judged else { return Ok(false) };
                run.judged = run.judged.plus(used);
                run.wrong.extend(objection(criterion, verdict));
            }
        }
        run.answer = Some(text);
        Ok(true)
    }
}

/// Says why a run fails because of a verdict. Returns None if the verdict is a pass.
fn objection(criterion: &str, verdict: Verdict) -> Option<String> {
    match verdict {
        Verdict::Pass => None,
        Verdict::Fail(words) => {
            Some(format!("the judge finds that {criterion:?} isn't met: {}", expect::cut(&words)))
        }
        Verdict::None(why) => {
            Some(format!("the judge didn't decide on {criterion:?}: {}", expect::cut(&why)))
        }
    }
}
