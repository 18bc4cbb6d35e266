//! An agent with feeds on virtual time, and the listeners that are the sources of its feeds.

use std::collections::VecDeque;
use std::time::Duration;

use pumphouse::listeners::feed::{Definition, Feeds};
use pumphouse::model::Script;
use pumphouse::sim::{Disk, Sim};
use pumphouse::wire::Json;

use super::*;

/// What is to be measured.
#[derive(Clone, Debug, PartialEq, Payload)]
#[payload(ns = "urn:test")]
pub(super) struct Measure {
    metrics: Vec<String>,
}

/// What was measured.
#[derive(Clone, Debug, PartialEq, Payload)]
#[payload(ns = "urn:test")]
pub(super) struct Metrics {
    cpu: f64,
    memory: f64,
    timestamp: String,
}

/// Wants to be said what somebody has to say, after a while.
#[derive(Clone, Debug, PartialEq, Payload)]
#[payload(ns = "urn:test")]
pub(super) struct Tell {
    about: Option<String>,
}

/// What somebody has to say.
#[derive(Clone, Debug, PartialEq, Payload)]
#[payload(ns = "urn:test")]
pub(super) struct Told(pub(super) String);

/// It doesn't work.
#[derive(Clone, Debug, PartialEq, Payload)]
#[payload(ns = "urn:test")]
pub(super) struct Broke;

/// Wants something to be kept.
#[derive(Clone, Debug, PartialEq, Payload)]
#[payload(ns = "urn:test")]
pub(super) struct Log {
    pub(super) timestamp: Option<String>,
    pub(super) message: String,
    pub(super) system_load: Option<Json>,
}

/// What a source says, one after another, and after how many seconds; the last again and again.
pub(super) type Says = Arc<Mutex<VecDeque<(u64, Result<String, Broke>)>>>;

pub(super) fn says(all: &[(u64, Result<&str, Broke>)]) -> Says {
    let each = all.iter().map(|(wait, it)| (*wait, it.clone().map(str::to_owned)));
    Arc::new(Mutex::new(each.collect()))
}

/// What was asked, and when, in seconds.
type Asked = (Option<String>, u64);

#[derive(Clone)]
pub(super) struct World {
    pub(super) sim: Sim,
    /// What `teller` says.
    pub(super) says: Says,
    /// What `teller` was asked, and when, in seconds.
    pub(super) asked: Arc<Mutex<Vec<Asked>>>,
    /// What `logger` was sent.
    pub(super) logged: Arc<Mutex<Vec<Log>>>,
    /// What the model says in each turn, after how many seconds.
    pub(super) replies: Arc<Vec<(u64, &'static str)>>,
    pub(super) seen: Seen,
}

/// What came of it all.
pub(super) struct Came {
    pub(super) world: World,
    pub(super) late: Vec<String>,
    pub(super) story: Vec<String>,
    pub(super) entries: Vec<Arc<pumphouse::log::Entry>>,
}

impl World {
    pub(super) fn new(replies: &[(u64, &'static str)]) -> World {
        World {
            sim: Sim::new(1),
            says: says(&[(0, Ok("nothing"))]),
            asked: Arc::default(),
            logged: Arc::default(),
            replies: Arc::new(replies.to_vec()),
            seen: Arc::default(),
        }
    }

    pub(super) fn saying(self, all: &[(u64, Result<&str, Broke>)]) -> World {
        World { says: says(all), ..self }
    }

    fn seconds(&self) -> u64 {
        (self.sim.now_us() - Sim::BEGINS_US) / 1_000_000
    }

    pub(super) fn agent(&self, feeds: &[Definition]) -> Agent {
        self.agent_named("ada", feeds)
    }

    pub(super) fn agent_named(&self, name: &str, feeds: &[Definition]) -> Agent {
        let (it, sim) = (self.clone(), self.sim.clone());
        let model = Scripted::new(move |prompt: &Prompt, turn| {
            it.seen.lock().unwrap().push(prompt.clone());
            let (after, text) = it.replies[usize::try_from(turn).unwrap() - 1];
            Script::text(text).after(Duration::from_secs(after))
        });
        let model = model.sleeping(move |time| sim.sleep(time));
        let peers = ["calculate", "logger", "teller"];
        let agent = Agent::new(name, Arc::new(model)).prompt("You are exact.").peers(peers);
        agent.feeds(Feeds::new(feeds.to_vec()).unwrap())
    }

    pub(super) fn listeners(&self) -> Vec<Listener> {
        let measure = async |_: Measure| {
            let timestamp = "2024-06-15T12:34:56Z".to_owned();
            Metrics { cpu: 45.2, memory: 62.8, timestamp }
        };
        let sub = async |_: Think| Told("from below".to_owned());
        let with = |name: &str| Listener::with_state(name, self.clone());
        let mut all = core();
        all.extend([
            tool::calculate::calculate(),
            Listener::new("monitor").on(measure),
            with("teller").on(tell).idempotent().timeout(Duration::from_secs(86_400)).stateless(),
            with("logger").on(log).stateless(),
            Listener::new("sub").on(sub).own_thread(),
        ]);
        all
    }

    /// Asks an agent these, one after another, and waits until nothing is left to do.
    pub(super) fn ask(&self, agent: Agent, questions: &[&str]) -> Came {
        self.play(agent, agent_support(), questions)
    }

    pub(super) fn play(&self, agent: Agent, mind: Vec<Listener>, questions: &[&str]) -> Came {
        let disk = Disk::new(&self.sim);
        let asks: Vec<Element> = questions.iter().map(|it| agent.ask(it).unwrap()).collect();
        let all = (self.listeners(), mind, agent.listener());
        let plan = pumphouse::builder().with(all).with(disk.log()).workers(1).build();
        let pump = plan.unwrap().start_on(&self.sim);
        let mut thread: Option<ThreadId> = None;
        for ask in asks {
            let first = match &thread {
                Some(thread) => self.sim.run(pump.in_thread(thread).ask_element(ask)),
                None => self.sim.run(pump.ask_element(ask)),
            };
            thread = Some(first.unwrap().unwrap().thread().clone());
            self.sim.rest().unwrap();
        }
        let log = disk.kept();
        let entries =
            self.sim.run(log.read(&thread.unwrap(), 0, u64::MAX, 10_000)).unwrap().unwrap();
        let line = |it: &Arc<pumphouse::log::Entry>| {
            let refused = if it.flags.contains(Flags::REFUSED) { " refused" } else { "" };
            format!(
                "{} > {}: {}{refused}",
                it.from,
                it.to.as_deref().unwrap_or("*"),
                it.name.local()
            )
        };
        let story = entries.iter().map(line).collect();
        let late = self.seen.lock().unwrap().iter().map(late).collect();
        Came { world: self.clone(), late, story, entries }
    }
}

impl Came {
    /// The last response, as XML.
    pub(super) fn said(&self) -> String {
        let said = self.entries.iter().rev().find(|it| it.name.local() == "response").unwrap();
        String::from_utf8(said.body.to_vec()).unwrap()
    }

    /// When `teller` was asked, in seconds.
    pub(super) fn asked(&self) -> Vec<u64> {
        self.world.asked.lock().unwrap().iter().map(|(_, at)| *at).collect()
    }

    /// What was recorded of a feed, as XML.
    pub(super) fn recorded(&self, id: &str) -> Vec<String> {
        let feeds = self.entries.iter().filter(|it| it.name.local() == "context_feed");
        let text = feeds.map(|it| String::from_utf8(it.body.to_vec()).unwrap());
        text.filter(|it| it.contains(&format!("id=\"{id}\""))).collect()
    }

    /// The results of actions, as XML.
    pub(super) fn results(&self) -> Vec<String> {
        let results = self.entries.iter().filter(|it| it.name.local() == "action-result");
        results.map(|it| String::from_utf8(it.body.to_vec()).unwrap()).collect()
    }
}

/// What a feed looks like in a prompt.
pub(super) fn block(id: &str, text: &str) -> String {
    format!("<context_feed id=\"{id}\">\n{text}\n</context_feed>")
}

/// Wants a thought.
#[derive(Clone, Debug, PartialEq, Payload)]
#[payload(ns = "urn:test")]
struct Think {}

async fn tell(State(world): State<World>, Tell { about }: Tell) -> Result<Told, Broke> {
    let (wait, said) = {
        world.asked.lock().unwrap().push((about, world.seconds()));
        let mut says = world.says.lock().unwrap();
        if says.len() > 1 { says.pop_front().unwrap() } else { says[0].clone() }
    };
    world.sim.sleep(Duration::from_secs(wait)).await;
    said.map(Told)
}

async fn log(State(world): State<World>, it: Log) {
    world.logged.lock().unwrap().push(it);
}
