//! One run: a case in a thread of its own, up to its answer, its time's end or a stop.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{Notify, watch};

use crate::clock;
use crate::cli::screen::Failure;
use crate::cli::transcript;
use crate::engine::{Identity, Port as _, Pump, PushEvent, PushObserver, Tokio};
use crate::id::{EntryId, ThreadId};
use crate::listener::{CONSOLE, Entry};
use crate::listeners::agent;
use crate::listeners::agent::transcript::{EventKind, transcript as events_of};
use crate::listeners::thread::CancelThread;

use super::expect::{self, Answer};
use super::file::{Case, Expected, Suite};
use super::judge::{self, Verdict, judge};
use super::result::Used;

/// How long the end of an agent's work is waited for when its answer is there: what a turn took is
/// settled then.
const SETTLE_US: u64 = 5_000_000;

/// What came of one run.
#[derive(Clone, Debug)]
pub(super) struct Run {
    /// The number of the case in the file, from 0.
    pub(super) case: usize,
    /// Which run of the case it is, from 1.
    pub(super) number: u32,
    /// Its thread; none where the message was refused.
    pub(super) thread: Option<ThreadId>,
    /// What the agent answered, if it did.
    pub(super) answer: Option<String>,
    /// What isn't as expected.
    pub(super) wrong: Vec<String>,
    /// What the agent and those that it called took of models.
    pub(super) used: Used,
    /// What the judge took.
    pub(super) judged: Used,
    /// From the message to the answer.
    pub(super) milliseconds: u64,
    /// What the agent's model says that it is.
    pub(super) model: Option<String>,
}

impl Run {
    /// Whether all was as expected.
    pub(super) fn has_passed(&self) -> bool {
        self.wrong.is_empty()
    }
}

/// Plays the cases of a suite.
pub(super) struct Player {
    pub(super) pump: Pump,
    pub(super) suite: Suite,
    seconds: u64,
    stop: watch::Receiver<bool>,
}

impl Player {
    /// One whose runs take at most so many seconds, and end when `stop` says so.
    pub(super) fn new(
        pump: &Pump,
        suite: Suite,
        seconds: u64,
        stop: watch::Receiver<bool>,
    ) -> Arc<Player> {
        Arc::new(Player { pump: pump.clone(), suite, seconds, stop })
    }

    /// Plays a case once; none where it was stopped before its end.
    pub(super) async fn play(&self, case: usize, number: u32) -> Result<Option<Run>, Failure> {
        let Some(said) = self.suite.sheet.cases.get(case) else { return Ok(None) };
        let begun_us = clock::now_us();
        let heard = Arc::new(Heard::default());
        let mut run = Run {
            case,
            number,
            thread: None,
            answer: None,
            wrong: Vec::new(),
            used: Used::default(),
            judged: Used::default(),
            milliseconds: 0,
            model: None,
        };
        match agent::ask(&self.suite.sheet.agent, &said.message) {
            Ok(element) => self.pump.send_observed(element, heard.clone()).await,
            Err(fault) => {
                run.wrong.push(format!("the message can't be sent: {fault}"));
                return Ok(Some(run));
            }
        }
        let ended = self.wait(&heard, begun_us).await;
        let news = heard.news();
        let answered_us = news.answered_us.unwrap_or_else(clock::now_us);
        run.milliseconds = answered_us.saturating_sub(begun_us) / 1_000;
        run.thread = news.id.as_ref().map(|it| it.thread.clone());
        if let (Some(thread), false) = (&run.thread, ended == Ended::Settled) {
            self.cancel(thread, ended).await;
        }
        if ended == Ended::Stopped {
            return Ok(None);
        }
        self.look_at(said, &news, ended, &mut run).await?;
        Ok(Some(run))
    }

    /// Waits for the end of all that a message caused, or for the time's end, or a stop.
    async fn wait(&self, heard: &Heard, begun_us: u64) -> Ended {
        let late_us = begun_us.saturating_add(self.seconds.saturating_mul(1_000_000));
        let mut stop = self.stop.clone();
        loop {
            let news = heard.news();
            if news.is_over {
                return Ended::Settled;
            }
            let until_us = match news.answered_us {
                Some(at_us) => at_us.saturating_add(SETTLE_US),
                None => late_us,
            };
            tokio::select! {
                biased;
                () = heard.more.notified() => {}
                _ = stop.wait_for(|it| *it) => return Ended::Stopped,
                () = Tokio::current().sleep_until(until_us) => return match news.answered_us {
                    Some(_) => Ended::Answered,
                    None => Ended::Late,
                },
            }
        }
    }

    /// Ends a thread, so that nothing goes on in it.
    async fn cancel(&self, thread: &ThreadId, ended: Ended) {
        let reason = match ended {
            Ended::Late => format!("the limit --seconds is {}", self.seconds),
            Ended::Answered => "the answer is there".to_owned(),
            Ended::Stopped | Ended::Settled => "the evaluation was stopped".to_owned(),
        };
        let operator = Identity { name: CONSOLE.into(), operator: true };
        let pump = self.pump.speaking_as(operator).in_thread(thread);
        let cancel = CancelThread { thread: None, reason: Some(reason) };
        if let Err(fault) = pump.tell(cancel).await {
            tracing::debug!(%thread, %fault, "can't be cancelled");
        }
    }

    /// Finds what isn't as expected, and what the run took.
    async fn look_at(
        &self,
        case: &Case,
        news: &News,
        ended: Ended,
        run: &mut Run,
    ) -> Result<(), Failure> {
        if let Some(fault) = &news.refused {
            run.wrong.push(format!("the message was refused: {fault}"));
        }
        let Some(thread) = run.thread.clone() else { return Ok(()) };
        run.used = judge::used(&self.pump, &thread).await?;
        let events = events_of(&transcript::read(&**self.pump.log(), &thread, u64::MAX).await?);
        let agent = self.suite.sheet.agent.as_str();
        run.model = events.iter().find_map(|it| match &it.what {
            EventKind::StepStart { model, .. } if it.agent == agent => Some(model.clone()),
            _ => None,
        });
        let text = match (news.replies.last().map(expect::text), ended) {
            (_, Ended::Late) => {
                let seconds = self.seconds;
                Err(format!("no answer within {seconds} s; the limit --seconds is {seconds}"))
            }
            (Some(text), _) => text,
            (None, _) => Err("nobody answered".to_owned()),
        };
        let text = match text {
            Ok(text) => text,
            Err(why) => {
                run.wrong.push(why);
                return Ok(());
            }
        };
        let organism = self.pump.capabilities();
        let answer = Answer { replies: &news.replies, text: &text, events: &events, agent, organism };
        for expected in &case.expect {
            run.wrong.extend(expect::complaint(expected, &answer));
            if let Expected::Judged(criterion) = expected {
                let (verdict, used) = judge(&self.pump, criterion, &case.message, &text).await?;
                run.judged = run.judged.plus(used);
                run.wrong.extend(objection(criterion, verdict));
            }
        }
        run.answer = Some(text);
        Ok(())
    }
}

/// What a verdict has against an answer.
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

/// How a run came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    /// All that the message caused is done.
    Settled,
    /// The answer is there, and something else goes on.
    Answered,
    /// The time is up.
    Late,
    /// It was told to stop.
    Stopped,
}

/// What was heard of a message so far.
#[derive(Clone, Debug, Default)]
struct News {
    id: Option<EntryId>,
    refused: Option<String>,
    replies: Vec<Entry>,
    /// When the last word of an agent came.
    answered_us: Option<u64>,
    is_over: bool,
}

/// Hears what becomes of a message.
#[derive(Default)]
struct Heard {
    news: Mutex<News>,
    more: Notify,
}

impl Heard {
    fn news(&self) -> News {
        self.news.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl PushObserver for Heard {
    fn hear(&self, _: u64, event: PushEvent) {
        let mut news = self.news.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            PushEvent::Accepted { id, .. } => news.id = Some(id),
            PushEvent::Refused(fault) => {
                news.refused = Some(fault.to_string());
                news.is_over = true;
            }
            PushEvent::Lost(fault) => news.refused = Some(fault.to_string()),
            PushEvent::Reply(entry) => {
                if is_last_word(&entry) {
                    news.answered_us = Some(clock::now_us());
                }
                news.replies.push(entry);
            }
            PushEvent::Settled => news.is_over = true,
        }
        drop(news);
        self.more.notify_one();
    }
}

/// Whether nothing else is to come of the agent.
fn is_last_word(reply: &Entry) -> bool {
    reply.decode::<agent::words::Response>().map_or(true, |it| it.is_final)
}
