//! Clients that push. The seed decides what each client does, and everything that a client is told
//! is recorded.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use pumphouse::engine::{Identity, PushEvent, PushObserver};
use pumphouse::listeners::thread::wait::{AwaitThreads, Mode};
use pumphouse::listeners::thread::{CancelThread, PauseThread, ResumeThread};
use pumphouse::log::State as ThreadState;
use pumphouse::prelude::*;
use pumphouse::wire::{Envelope, SignedDuration};

use super::world::{Quick, Said, World, job};

/// What became of a push.
#[derive(Clone, Debug, Default)]
pub(super) struct Heard {
    pub(super) who: String,
    pub(super) life: u32,
    /// Its own id, where it gave one.
    pub(super) client_id: Option<String>,
    pub(super) accepted: Vec<EntryId>,
    pub(super) refused: Vec<String>,
    pub(super) settled: u32,
    pub(super) replies: Vec<EntryId>,
}

/// Writes down what is heard.
pub(super) struct Ear {
    world: World,
    heard: std::sync::Mutex<Vec<Heard>>,
}

impl Ear {
    pub(super) fn new(world: &World) -> Arc<Ear> {
        Arc::new(Ear { world: world.clone(), heard: std::sync::Mutex::default() })
    }

    pub(super) fn heard(&self) -> Vec<Heard> {
        self.heard.lock().unwrap().clone()
    }
}

impl PushObserver for Ear {
    fn hear(&self, push: u64, news: PushEvent) {
        let mut all = self.heard.lock().unwrap();
        let heard = &mut all[usize::try_from(push).unwrap()];
        self.world.tell(format!("{} hears of push {push}: {}", heard.who, said(&news)));
        if heard.accepted.is_empty() && matches!(news, PushEvent::Reply(_) | PushEvent::Settled) {
            let poisoned = matches!(news, PushEvent::Settled) && !heard.refused.is_empty();
            if !poisoned {
                self.world.wrong(format!("push {push} hears of more before it is accepted"));
            }
        }
        match news {
            PushEvent::Accepted { id, .. } => heard.accepted.push(id),
            PushEvent::Refused(fault) => heard.refused.push(fault.to_string()),
            PushEvent::Reply(it) => heard.replies.push(it.id().clone()),
            PushEvent::Settled => heard.settled += 1,
            _ => {}
        }
    }
}

fn said(news: &PushEvent) -> String {
    match news {
        PushEvent::Accepted { id, .. } => format!("accepted as {id}"),
        PushEvent::Refused(fault) => format!("refused, {fault}"),
        PushEvent::Reply(it) => format!("{} {} from {}", it.id(), it.name().local(), it.from()),
        PushEvent::Settled => "all is done".into(),
        _ => "something new".into(),
    }
}

/// Somebody who pushes.
pub(super) struct Client {
    pub(super) world: World,
    pub(super) pump: Pump,
    pub(super) ear: Arc<Ear>,
    pub(super) name: &'static str,
}

impl Client {
    /// Pushes so often, with pauses.
    pub(super) async fn live(self, pushes: u64) {
        self.world.ledger().busy += 1;
        for _ in 0..pushes {
            let pause = Duration::from_micros(self.world.sim.below(8_000));
            self.world.sim.sleep(pause).await;
            self.act().await;
        }
        self.world.ledger().busy -= 1;
    }

    async fn act(&self) {
        let sim = &self.world.sim;
        let fuel = u32::try_from(1 + sim.below(5)).unwrap();
        let own = self.threads();
        let some = |threads: &[ThreadId]| {
            let drawn = usize::try_from(sim.below(threads.len() as u64)).unwrap();
            threads.get(drawn).map(ToString::to_string)
        };
        let (at, thread) = (some(&own), some(&own));
        let reason = None;
        let steer = |it: u64| match it {
            0 => CancelThread { thread, reason }.encode().unwrap(),
            1 => PauseThread { thread, reason }.encode().unwrap(),
            _ => ResumeThread { thread, reason }.encode().unwrap(),
        };
        match sim.below(16) {
            0..=5 => self.push(None, job(sim.below(6), fuel, None)).await,
            6..=9 => self.push(at, job(sim.below(6), fuel, None)).await,
            it @ 10..=12 if at.is_some() => self.push(at, steer(it - 10)).await,
            13 => {
                let timeout = Some(SignedDuration::from_millis(20)).filter(|_| sim.below(2) > 0);
                let mode = Some(Mode::Any).filter(|_| sim.below(2) > 0);
                let wait = AwaitThreads { mode, count: None, timeout, thread: Vec::new() };
                self.push(at, wait.encode().unwrap()).await;
            }
            14 => self.push(Some("sess-00000000".into()), job(0, fuel, None)).await,
            _ => {
                let asked = self.pump.ask::<Said>(Quick { fuel, due: None }).await;
                let what = asked.map_or_else(|it| it.to_string(), |it| format!("{it:?}"));
                self.world.tell(format!("{} has an answer: {what}", self.name));
            }
        }
    }

    /// The threads of its own, as the log has them.
    fn threads(&self) -> Vec<ThreadId> {
        let kept = self.world.disk.kept();
        let threads = kept.threads(None, usize::MAX).now_or_never().unwrap().unwrap();
        let own = |root: &str| {
            let first = kept.read(&ThreadId::new(root), 0, 1, 1).now_or_never().unwrap();
            first.is_ok_and(|it| it.first().is_some_and(|it| &*it.from == self.name))
        };
        let ids = threads.into_iter().map(|it| it.id);
        ids.filter(|it| own(it.as_str().split('.').next().unwrap())).collect()
    }

    pub(super) async fn push(&self, thread: Option<String>, payload: Element) {
        let client_id = (self.world.sim.below(4) == 0)
            .then(|| format!("{}-{}", self.name, self.world.sim.below(4)));
        let (number, life) = {
            let mut heard = self.ear.heard.lock().unwrap();
            let life = self.world.ledger().life;
            let (who, client_id) = (self.name.to_owned(), client_id.clone());
            heard.push(Heard { who, life, client_id, ..Heard::default() });
            (heard.len() as u64 - 1, life)
        };
        let text = String::from_utf8_lossy(&payload.canonical()).into_owned();
        let at = thread.as_deref().unwrap_or("a new thread");
        let (name, id) = (self.name, client_id.as_deref().unwrap_or("-"));
        self.world.tell(format!("{name} pushes {number} ({id}) in life {life}: {text} into {at}"));
        let to = text.starts_with("<both").then(|| "right".to_owned());
        let to = to.filter(|_| self.world.sim.below(2) == 0);
        let bare = Envelope::bare(payload);
        let envelope = Envelope { thread, id: client_id, to, ..bare };
        let who = Identity { name: self.name.into(), operator: self.name == "root" };
        let inlet: Arc<dyn PushObserver> = self.ear.clone();
        self.pump.push(&who, envelope, &inlet, number).await;
    }

    /// Lets every thread go on that pauses; whether there was one.
    pub(super) async fn resume_all(&self) -> bool {
        let kept = self.world.disk.kept();
        let threads = kept.threads(None, usize::MAX).now_or_never().unwrap().unwrap();
        let mut there = false;
        for it in threads {
            let record = kept.thread(&it.id).now_or_never().unwrap().unwrap().unwrap();
            if record.state == ThreadState::Paused {
                there = true;
                let resume = ResumeThread { thread: None, reason: None };
                self.push(Some(it.id.to_string()), resume.encode().unwrap()).await;
            }
        }
        there
    }
}
