//! A run in virtual time: an agent, two senders that ask it, and the listeners that it calls. One
//! seed decides everything.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pumphouse::engine::{Identity, Plan, Replayed};
use pumphouse::listeners::agent::settings::{Calls, Settings};
use pumphouse::listeners::agent::words::{CognitionIn, CognitionOut, Interrupt};
use pumphouse::listeners::agent::{Agent, ask};
use pumphouse::listeners::metadata::{Field, Fields};
use pumphouse::listeners::{agent_support, core};
use pumphouse::log::Log;
use pumphouse::model::{Prompt, Scripted};
use pumphouse::prelude::*;
use pumphouse::sim::{Disk, Sim};

use super::script::{Dice, Style};

/// How many steps a run may take until it rests.
const STEPS_MAX: u64 = 400_000;

/// Work of a tool, with its end.
#[derive(Clone, Debug, PartialEq, Payload)]
#[payload(ns = "urn:props")]
pub(super) struct Task {
    /// Which one it is: the answer.
    pub(super) mark: String,
    /// How long it takes.
    ms: u64,
    /// How it ends.
    outcome: String,
}

/// What a tool answers.
#[derive(Clone, Debug, PartialEq, Payload)]
#[payload(ns = "urn:props")]
struct Made(String);

/// What a tool answers whose work fails.
#[derive(Clone, Debug, PartialEq, Payload)]
#[payload(ns = "urn:props")]
struct Broke;

/// Is answered at once.
#[derive(Clone, Debug, PartialEq, Payload)]
#[payload(ns = "urn:props")]
pub(super) struct Hail {
    mark: String,
}

/// Is taken, and never answered.
#[derive(Clone, Debug, PartialEq, Payload)]
#[payload(ns = "urn:props")]
pub(super) struct Hush {
    mark: String,
}

/// Is answered later.
#[derive(Clone, Debug, PartialEq, Payload)]
#[payload(ns = "urn:props")]
pub(super) struct Wish {
    mark: String,
    ms: u64,
}

/// It is time to grant a wish.
#[derive(Clone, Debug, PartialEq, Payload)]
#[payload(ns = "urn:props")]
struct Due {
    asked: u64,
    mark: String,
}

/// What happens to an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Ask(&'static str),
    Interrupt(&'static str),
    Restart,
}

/// What a turn's prompt showed: the questions in it, by their numbers.
pub(super) type Seen = Arc<Mutex<BTreeMap<u64, BTreeSet<u64>>>>;

/// What came of a seed.
pub(super) struct Run {
    pub(super) style: Style,
    pub(super) entries: Vec<Entry>,
    /// All threads' entries.
    pub(super) all: Vec<Entry>,
    pub(super) seen: Seen,
    pub(super) restarts: u64,
    pub(super) restarts_in_turns: u64,
    /// What went wrong before the log was looked at.
    pub(super) wrong: Vec<String>,
    events: Vec<(u64, What)>,
    sim: Sim,
    disk: Disk,
}

impl Run {
    /// Plays a seed until all is at rest.
    pub(super) fn play(seed: u64) -> Run {
        let sim = Sim::new(seed);
        let disk = Disk::new(&sim);
        sim.allow_steps(STEPS_MAX);
        let mut run = Run {
            style: Style::new(seed),
            entries: Vec::new(),
            all: Vec::new(),
            seen: Seen::default(),
            restarts: 0,
            restarts_in_turns: 0,
            wrong: Vec::new(),
            events: events(seed),
            sim,
            disk,
        };
        if let Err(why) = run.goes() {
            run.wrong.push(why);
        }
        let kept = run.disk.kept();
        let read = run.sim.run(kept.tail(0, usize::MAX)).unwrap().unwrap();
        run.all = read.iter().map(|it| (&**it).into()).collect();
        let main = run.all.first().map(|it| it.thread().clone());
        let own = run.all.iter().filter(|it| Some(it.thread()) == main.as_ref());
        run.entries = own.cloned().collect();
        let open = run.sim.run(kept.open_entries()).unwrap().unwrap();
        for it in open {
            // A checklist waits for what may never come.
            if it.waits.is_empty() || it.waits.iter().any(|(listener, _)| &**listener == "oracle") {
                run.wrong.push(format!("{} is still open at rest", it.entry.id));
            }
        }
        run.sim.crash();
        run
    }

    fn goes(&mut self) -> Result<(), String> {
        let stuck = |it: pumphouse::sim::Stuck| format!("it doesn't rest: {it}");
        let mut pump = self.plan().start_on(&self.sim);
        let mut thread: Option<ThreadId> = None;
        for (number, (at, what)) in self.events.clone().into_iter().enumerate() {
            let at_us = Sim::BEGINS_US + at * 1_000;
            let left = Duration::from_micros(at_us.saturating_sub(self.sim.now_us()));
            self.sim.run(self.sim.sleep(left)).map_err(stuck)?;
            let speaking = |who: &str| {
                let identity = Identity { name: who.into(), operator: true };
                let it = pump.speaking_as(identity).to("oracle");
                thread.as_ref().map_or(it.clone(), |thread| it.in_thread(thread))
            };
            let told = match what {
                What::Ask(who) => {
                    let question = ask("oracle", &format!("Ask#{number}#")).unwrap();
                    self.sim.run(speaking(who).tell_element(question)).map_err(stuck)?
                }
                What::Interrupt(who) => {
                    let it = Interrupt { reason: None };
                    self.sim.run(speaking(who).tell(it)).map_err(stuck)?
                }
                What::Restart => {
                    self.restarts += 1;
                    self.sim.crash();
                    self.restarts_in_turns += u64::from(self.is_turning(thread.as_ref()));
                    pump = self.plan().start_on(&self.sim);
                    continue;
                }
            };
            let told = told.map_err(|it| format!("a message was refused: {it}"))?;
            thread.get_or_insert(told.thread);
        }
        self.sim.rest().map_err(stuck)
    }

    /// Whether a turn has begun in the log, and isn't over.
    fn is_turning(&self, thread: Option<&ThreadId>) -> bool {
        let Some(thread) = thread else { return false };
        let read = self.disk.kept().read(thread, 0, u64::MAX, usize::MAX);
        let entries = self.sim.run(read).unwrap().unwrap();
        let own = entries.iter().rev().filter(|it| &*it.from == "oracle");
        let is_edge = |name: &Name| *name == CognitionIn::NAME || *name == CognitionOut::NAME;
        own.map(|it| &it.name).find(|it| is_edge(it)).is_some_and(|it| *it == CognitionIn::NAME)
    }

    /// What replaying the thread comes to.
    pub(super) fn replayed(&self) -> Replayed {
        let (log, sim): (Arc<dyn Log>, _) = (Arc::new(self.disk.log()), self.sim.clone());
        let (plan, thread) = (self.plan(), self.entries[0].thread().clone());
        let replay = async move { plan.replay(&log, &thread, &sim).await };
        self.sim.run(replay).unwrap().unwrap()
    }

    fn plan(&self) -> Plan {
        let sim = self.sim.clone();
        let tool = Listener::with_state("tool", sim).on(make).idempotent().stateless();
        let hail = Listener::new("teller").on(async |Hail { mark }: Hail| Made(mark)).idempotent();
        let hush = Listener::new("mute").on(async |_: Hush| {}).idempotent();
        let wish = Listener::new("genie").on(wish).on(grant).idempotent().grant::<Timers>();
        let staff = (core(), agent_support(), tool, hail, hush, wish);
        let agents = (self.oracle().listener(), self.friend().listener());
        let builder = pumphouse::builder().with((staff, agents, self.disk.log())).workers(2);
        builder.build().unwrap()
    }

    fn oracle(&self) -> Agent {
        let (style, seen) = (self.style.clone(), self.seen.clone());
        let model = Scripted::new(move |prompt: &Prompt, turn| {
            let texts = prompt.messages.iter().flat_map(|it| it.text.split("Ask#").skip(1));
            let asks = texts.filter_map(|it| it.split('#').next()?.parse().ok());
            let asks: BTreeSet<u64> = asks.collect();
            if !asks.is_empty() {
                seen.lock().unwrap().entry(turn).or_default().extend(asks);
            }
            style.script(prompt, turn)
        });
        let peers =
            ["tool", "teller", "mute", "genie", "friend", "timer", "thread", "todo", "action"];
        let mut settings = Settings {
            max_turns: self.style.max_turns,
            final_with_actions: self.style.policy,
            wake: self.style.wake,
            agent_calls: Calls::SameThread,
            ..Settings::default()
        };
        let status = Field::choice("status", ["IDLE", "BUSY"]).default("IDLE");
        settings.metadata = Fields::new([status]).unwrap();
        let sim = self.sim.clone();
        let model = model.sleeping(move |time| sim.sleep(time));
        Agent::new("oracle", Arc::new(model)).settings(settings).peers(peers)
    }

    /// An agent that asks back before it answers.
    fn friend(&self) -> Agent {
        let model = Scripted::new(|prompt: &Prompt, _| {
            let last = prompt.messages.last().map_or("", |it| &it.text);
            if last.contains("Help") && !last.contains("action-result") {
                "<action type=\"agent\" id=\"q\">\
                 {\"name\": \"oracle\", \"parameters\": {\"text\": \"Which?\"}}</action>"
            } else {
                "<response>It is so.</response>"
            }
        });
        let settings = Settings { agent_calls: Calls::SameThread, ..Settings::default() };
        let sim = self.sim.clone();
        let model = model.sleeping(move |time| sim.sleep(time));
        Agent::new("friend", Arc::new(model)).settings(settings).peers(["oracle"])
    }

    /// What happened and what the log has of it.
    pub(super) fn story(&self) -> String {
        let mut lines = vec![format!("{:?}", self.style), format!("{:?}", self.events)];
        lines.extend(self.all.iter().map(|it| {
            let ms = (it.at_us() - Sim::BEGINS_US) / 1_000;
            let to = it.to().unwrap_or("*");
            let cause = it.cause().map_or(0, |it| it.seq);
            let reply = it.reply_to().map_or(String::new(), |it| format!(" re {}", it.seq));
            let body = String::from_utf8_lossy(it.body());
            let body = body.replace("xmlns=\"https://xml-pipeline.org/ns/", "xmlns=\"");
            let body = if it.name().local() == "cognition_system" { "…" } else { &body };
            let thread = if it.thread() == self.entries[0].thread() { "" } else { "    " };
            format!("{thread}{:>3} {ms:>6} {} > {to} ({cause}{reply}) {body}", it.seq(), it.from())
        }));
        lines.join("\n")
    }
}

fn events(seed: u64) -> Vec<(u64, What)> {
    let mut dice = Dice::new(seed, 2);
    let who = ["ann", "ann", "ann", "bob"];
    let at = |dice: &mut Dice| match dice.below(3) {
        0 => dice.below(500),
        1 => dice.below(2_500),
        _ => dice.below(9_000),
    };
    let mut rest = Vec::new();
    for _ in 0..1 + dice.below(4) {
        rest.push((at(&mut dice), What::Ask(dice.one(&who))));
    }
    for _ in 0..dice.one(&[0, 0, 0, 1, 2]) {
        rest.push((at(&mut dice), What::Interrupt(dice.one(&["ann", "bob"]))));
    }
    for _ in 0..dice.one(&[0, 0, 1, 2]) {
        rest.push((at(&mut dice), What::Restart));
    }
    rest.sort_by_key(|(at, _)| *at);
    let first = (0, What::Ask(dice.one(&who)));
    std::iter::once(first).chain(rest).collect()
}

async fn make(State(sim): State<Sim>, it: Task) -> Result<Made, Broke> {
    sim.sleep(Duration::from_millis(it.ms)).await;
    if it.outcome == "fails" { Err(Broke) } else { Ok(Made(it.mark)) }
}

async fn wish(message: Message, clock: Clock, it: Wish) -> Later<Due> {
    let due = Due { asked: message.seq(), mark: it.mark };
    Later::at(clock.now_us() + it.ms * 1_000, due)
}

async fn grant(history: History, out: Outbox<Made>, it: Due) -> Result<(), Fault> {
    out.reply_to(&history.read(it.asked - 1, 1).await?[0], Made(it.mark)).await
}
