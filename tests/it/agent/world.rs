//! A pump on virtual time with agents, and a simulated disk that keeps their threads.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::select;
use pumphouse::engine::{Plan, Replayed};
use pumphouse::listeners::action::{Settings, action};
use pumphouse::listeners::agent::Agent;
use pumphouse::listeners::feed::feed;
use pumphouse::listeners::{core, tool::calculate::calculate};
use pumphouse::log::{self, Log};
use pumphouse::model::Scripted;
use pumphouse::prelude::*;
use pumphouse::sim::{Disk, Sim};

/// Work that takes its time.
#[derive(Clone, Debug, PartialEq, Payload)]
#[payload(ns = "urn:test")]
pub(super) struct Work {
    /// What is done.
    what: String,
    /// How long that takes.
    ms: Option<u64>,
    /// What it is part of.
    item_id: Option<String>,
}

impl Work {
    pub(super) fn new(what: &str) -> Work {
        Work { what: what.to_owned(), ms: None, item_id: None }
    }
}

/// What was done.
#[derive(Clone, Debug, PartialEq, Payload)]
#[payload(ns = "urn:test")]
struct Worked(String);

/// Is for an agent's own surroundings.
#[derive(Clone, Debug, PartialEq, Payload)]
#[payload(ns = "urn:test", rename = "add_context_feed")]
struct AddFeed {
    id: String,
}

/// Is for them as well.
#[derive(Clone, Debug, PartialEq, Payload)]
#[payload(ns = "urn:test", rename = "update_context_feed")]
struct UpdateFeed {
    id: String,
}

/// Says that all is done.
#[derive(Clone, Debug, PartialEq, Payload)]
#[payload(ns = "urn:test")]
pub(super) struct Report {
    pub(super) summary: String,
}

/// What was done with which key, and when, in milliseconds.
pub(super) type Effects = Arc<Mutex<Vec<(String, String, u64)>>>;

#[derive(Clone)]
pub(super) struct World {
    pub(super) sim: Sim,
    pub(super) disk: Disk,
    pub(super) effects: Effects,
    pub(super) limits: Limits,
    /// Makes a further listener.
    pub(super) besides: Option<fn(&World) -> Listener>,
}

impl World {
    pub(super) fn new(seed: u64) -> World {
        let sim = Sim::new(seed);
        let (disk, effects, limits) = (Disk::new(&sim), Effects::default(), Limits::default());
        World { sim, disk, effects, limits, besides: None }
    }

    /// Milliseconds since the beginning.
    pub(super) fn ms(&self) -> u64 {
        (self.sim.now_us() - Sim::BEGINS_US) / 1_000
    }

    /// The same model on this world's time.
    pub(super) fn timed(&self, model: Scripted) -> Scripted {
        let sim = self.sim.clone();
        model.sleeping(move |time| sim.sleep(time))
    }

    pub(super) fn start(&self, agents: impl IntoIterator<Item = Agent>) -> Pump {
        self.plan(agents).start_on(&self.sim)
    }

    /// What replaying a thread with these agents comes to.
    pub(super) fn replay(&self, agent: Agent, thread: &ThreadId) -> Replayed {
        let (log, sim, thread) = (self.disk.log(), self.sim.clone(), thread.clone());
        let (log, plan): (Arc<dyn Log>, Plan) = (Arc::new(log), self.plan([agent]));
        let replay = async move { plan.replay(&log, &thread, &sim).await };
        self.sim.run(replay).unwrap().unwrap()
    }

    fn plan(&self, agents: impl IntoIterator<Item = Agent>) -> Plan {
        let settings = Settings { internal: ["feeds".to_owned()].into(), ..Settings::default() };
        let tool = Listener::with_state("tool", self.clone()).on(work).idempotent().stateless();
        let feeds = Listener::new("feeds")
            .on(async |AddFeed { id }: AddFeed| Worked(format!("added {id}")))
            .on(async |UpdateFeed { id }: UpdateFeed| Worked(format!("updated {id}")));
        let clerk = Listener::new("clerk").on(async |_: Report| {});
        let staff = (core(), action(settings), feed(), calculate(), tool, feeds, clerk);
        let agents: Vec<Listener> = agents.into_iter().map(Agent::listener).collect();
        let besides: Vec<Listener> = self.besides.iter().map(|it| it(self)).collect();
        let all = (staff, besides, agents, self.disk.log());
        let builder = pumphouse::builder().with(all).workers(2);
        builder.limits(self.limits.clone()).build().unwrap()
    }

    /// Gives an agent something to do, and lets so much time pass.
    pub(super) fn tell(&self, pump: &Pump, question: Element, time: Duration) -> ThreadId {
        let tell = pump.tell_element(question);
        let told = self.sim.run(tell).unwrap().unwrap();
        self.sim.run(self.sim.sleep(time)).unwrap();
        told.thread
    }

    /// What a thread has in the end.
    pub(super) fn entries(&self, thread: &ThreadId) -> Vec<Arc<log::Entry>> {
        let read = self.disk.kept().read(thread, 0, u64::MAX, 10_000);
        self.sim.run(read).unwrap().unwrap()
    }

    /// Its payloads of one type.
    pub(super) fn all<P: Payload>(&self, thread: &ThreadId) -> Vec<P> {
        let entries = self.entries(thread);
        let all = entries.iter().filter(|it| it.name == P::NAME);
        let read = |it: &Arc<log::Entry>| {
            P::read(Element::from_canonical(it.body.clone()).unwrap().view()).unwrap()
        };
        all.map(read).collect()
    }

    /// Who sent whom what.
    pub(super) fn story(&self, thread: &ThreadId) -> Vec<String> {
        let line = |it: &Arc<log::Entry>| {
            let to = it.to.as_deref().unwrap_or("*");
            format!("{} > {to}: {}", it.from, it.name.local())
        };
        self.entries(thread).iter().map(line).collect()
    }
}

/// What came of one question to one agent, on a world of its own.
pub(super) fn play(agent: impl FnOnce(&World) -> Agent) -> (World, ThreadId) {
    playing(World::new(1), agent)
}

/// The same where a thread has so many turns.
pub(super) fn play_within(turns: u64, agent: impl FnOnce(&World) -> Agent) -> (World, ThreadId) {
    let mut world = World::new(1);
    world.limits.thread_turns_max = turns;
    playing(world, agent)
}

fn playing(world: World, agent: impl FnOnce(&World) -> Agent) -> (World, ThreadId) {
    let agent = agent(&world);
    let question = agent.ask("What is six times seven?").unwrap();
    let pump = world.start([agent]);
    let thread = world.tell(&pump, question, Duration::ZERO);
    world.sim.rest().unwrap();
    (world, thread)
}

/// Lets a machine that was asked something stop after each of these times, in microseconds.
pub(super) fn stopping(world: &World, agent: &dyn Fn() -> Agent, stops: &[u64]) {
    let question = agent().ask("Do it.").unwrap();
    let mut pump = world.start([agent()]);
    let begins = world.sim.now_us();
    let first = async {
        let stop = world.sim.sleep(Duration::from_micros(stops[0]));
        drop(select(Box::pin(pump.tell_element(question)), stop).await);
    };
    world.sim.run(first).unwrap();
    let mut passed = world.sim.now_us() - begins;
    for stop in stops {
        let rest = Duration::from_micros(stop.saturating_sub(std::mem::take(&mut passed)));
        world.sim.run(world.sim.sleep(rest)).unwrap();
        world.sim.crash();
        drop(pump);
        pump = world.start([agent()]);
    }
    world.sim.rest().unwrap();
    drop(pump);
}

async fn work(State(world): State<World>, message: Message, it: Work) -> Worked {
    let key = message.key().unwrap_or_default();
    world.effects.lock().unwrap().push((key, it.what.clone(), world.ms()));
    world.sim.sleep(Duration::from_millis(it.ms.unwrap_or(0))).await;
    // A long text, of so many characters of two bytes.
    let long = it.what.strip_prefix("long ").and_then(|it| it.parse().ok());
    Worked(long.map_or(it.what, |count| "é".repeat(count)))
}
