//! The listener `action` on virtual time. The agent here follows a script, and its text goes
//! through the parser of replies as a model's text does.

mod crash;
mod execution;
mod references;
mod rules;
mod stopped;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use pumphouse::listeners::action::words::{Action, ActionResult};
use pumphouse::listeners::action::{InternalActions, Settings, action, read};
use pumphouse::listeners::agent::Agent;
use pumphouse::listeners::agent::words::{CognitionIn, CognitionOut, Dispatch, Limited, Stopped};
use pumphouse::log::{Flags, Log};
use pumphouse::model::{Prompt, Scripted};
use pumphouse::prelude::*;
use pumphouse::reply::{Config, Parser, What};
use pumphouse::sim::{Disk, Sim};
use pumphouse::wire::SignedDuration;

/// Work that takes its time.
#[derive(Clone, Debug, PartialEq, Payload)]
#[payload(ns = "urn:test")]
struct Work {
    /// What is done.
    what: String,
    /// How long that takes.
    ms: Option<u64>,
    /// How many attempts fail.
    fails: Option<u64>,
    /// Something about it, as a number.
    number: Option<i64>,
    /// What it is part of.
    item_id: Option<String>,
}

/// What was done.
#[derive(Clone, Debug, PartialEq, Payload)]
#[payload(ns = "urn:test")]
struct Worked(String);

/// What several things come to.
#[derive(Clone, Debug, PartialEq, Payload)]
#[payload(ns = "urn:test")]
struct Page {
    title: String,
    links: Vec<String>,
    size: i64,
}

/// It doesn't work.
#[derive(Clone, Debug, PartialEq, Payload)]
#[payload(ns = "urn:test")]
struct Broke;

/// Wants a page.
#[derive(Clone, Debug, PartialEq, Payload)]
#[payload(ns = "urn:test")]
struct Fetch {
    url: String,
}

/// Is kept without a word.
#[derive(Clone, Debug, PartialEq, Payload)]
#[payload(ns = "urn:test")]
struct Keep {
    value: String,
}

/// Ends badly.
#[derive(Clone, Debug, PartialEq, Payload)]
#[payload(ns = "urn:test")]
struct Fall;

/// Is for those who may.
#[derive(Clone, Debug, PartialEq, Payload)]
#[payload(ns = "urn:test")]
struct Secret;

/// Is for an agent's own surroundings.
#[derive(Clone, Debug, PartialEq, Payload)]
#[payload(ns = "urn:test", rename = "add_note")]
struct AddNote {
    text: String,
}

/// Is to be done once only, and takes a second.
#[derive(Clone, Debug, PartialEq, Payload)]
#[payload(ns = "urn:test")]
struct Press;

/// Is asked of another agent.
#[derive(Clone, Debug, PartialEq, Payload)]
#[payload(ns = "urn:test")]
struct Sub {
    question: String,
}

/// Has an agent stop.
#[derive(Clone, Debug, PartialEq, Payload)]
#[payload(ns = "urn:test")]
struct Halt {
    reason: String,
    /// Whether it says so as an error.
    error: Option<bool>,
}

/// Has an agent stop in a thread of its own.
#[derive(Clone, Debug, PartialEq, Payload)]
#[payload(ns = "urn:test")]
struct HaltBelow {
    reason: String,
}

/// Has the agent follow its script.
#[derive(Clone, Debug, PartialEq, Payload)]
#[payload(ns = "urn:test")]
struct Go {}

/// What happens while an agent writes.
#[derive(Clone, Debug)]
enum Line {
    /// A turn begins so.
    Turn(u64, Dispatch),
    /// The model writes this.
    Says(&'static str),
    /// So many milliseconds pass.
    Pause(u64),
    /// The turn is over.
    Over(u64),
}
use Line::{Over, Pause, Says, Turn};

/// What was done with which key, and when, in milliseconds.
type Effects = Arc<Mutex<Vec<(String, String, u64)>>>;

#[derive(Clone)]
struct World {
    sim: Sim,
    script: Arc<Vec<Line>>,
    effects: Effects,
}

impl World {
    fn new(seed: u64, script: Vec<Line>) -> World {
        let (sim, effects) = (Sim::new(seed), Effects::default());
        World { sim, script: Arc::new(script), effects }
    }

    /// Milliseconds since the beginning.
    fn ms(&self) -> u64 {
        (self.sim.now_us() - Sim::BEGINS_US) / 1_000
    }

    fn listeners(&self) -> Vec<Listener> {
        let internal = InternalActions {
            blocked_actions: vec!["forget_note".to_owned()],
            ..InternalActions::default()
        };
        let settings = Settings {
            internal: ["notes".to_owned()].into(),
            agents: [("ada".to_owned(), internal)].into(),
        };
        let peers = [
            "action", "tool", "web", "cache", "trap", "sub", "press", "thread", "halt", "below",
            "idler", "starter",
        ];
        let with = |name: &str| Listener::with_state(name, self.clone());
        let mut all = pumphouse::listeners::core();
        all.extend([
            action(settings),
            pumphouse::listeners::feed::feed(),
            with("ada").on(go).on_reply(heard).idempotent().peers(peers).stateless(),
            with("tool").on(work).idempotent().stateless(),
            with("web").on(fetch).on(fetch_more).idempotent().stateless(),
            with("cache").on(keep).kind("relic").idempotent().stateless(),
            Listener::new("trap").on(fall),
            Listener::new("vault").on(async |_: Secret| Broke),
            Listener::new("notes").on(async |AddNote { text }: AddNote| Worked(text)),
            Listener::new("sub").on(sub).own_thread().idempotent(),
            with("press").on(press).stateless(),
            Listener::new("halt").on(halt).idempotent(),
            Listener::new("below").on(halt_below).own_thread().idempotent(),
            Agent::new("idler", Arc::new(Scripted::new(|_: &Prompt, _| "Hm."))).listener(),
            Agent::new("starter", Arc::new(starting())).listener(),
        ]);
        all
    }

    fn start(&self, disk: &Disk) -> Pump {
        let plan = pumphouse::builder().with(self.listeners()).with(disk.log()).workers(2).build();
        plan.unwrap().start_on(&self.sim)
    }
}

async fn go(
    State(world): State<World>,
    begins: Outbox<Note<CognitionIn>>,
    acts: Outbox<To<Action>>,
    ends: Outbox<To<CognitionOut>>,
    _: Go,
) -> Result<(), Fault> {
    let mut now = None;
    let mut parser = Parser::new(Config::default());
    for line in &*world.script {
        match line {
            Turn(turn, dispatch) => {
                now = Some(*turn);
                parser = Parser::new(Config::default());
                begins.send(Note(begin(*turn, *dispatch))).await?;
            }
            Says(text) => {
                let mut found = Vec::new();
                parser.feed(text, &mut |event| {
                    if let What::Closed(it) = event.what {
                        found.push(read::action(&it, now, None).unwrap());
                    }
                });
                for it in found {
                    acts.send(To("action", it)).await?;
                }
            }
            Pause(ms) => world.sim.sleep(Duration::from_millis(*ms)).await,
            Over(turn) => ends.send(To("action", end(*turn))).await?,
        }
    }
    Ok(())
}

async fn heard(_: ActionResult) {}

fn begin(turn: u64, dispatch: Dispatch) -> CognitionIn {
    CognitionIn {
        turn,
        model: "script".into(),
        until: 1,
        rendering: 1,
        mark: String::new(),
        rules: 1,
        asker: None,
        is_last: None,
        waiting: None,
        digest: String::new(),
        tokens_estimated: None,
        bytes: 0,
        dispatch,
        action_limits: Some(Limited {
            batch: Some(3),
            batch_delay: Some(SignedDuration::from_millis(200)),
            ..Limited::default()
        }),
        max_tokens: None,
        temperature: None,
        result_bytes_max: None,
        attachments: Vec::new(),
        skipped: Vec::new(),
    }
}

fn end(turn: u64) -> CognitionOut {
    CognitionOut {
        is_idle: false,
        turn,
        stop: "end".into(),
        is_partial: false,
        truncated: false,
        error: None,
        refused: None,
        waits_ms: None,
        completion_percentage: None,
        tokens_in: None,
        tokens_out: None,
        tokens_cached: None,
        tokens_cache_written: None,
        tokens_reasoning: None,
        answered_by: None,
        calls: None,
        awaits: None,
        went_out: None,
        wrote_root: None,
        text: String::new(),
    }
}

async fn work(State(world): State<World>, message: Message, it: Work) -> Result<Worked, Broke> {
    let key = message.key().unwrap_or_default();
    let before = {
        let mut effects = world.effects.lock().unwrap();
        let before = effects.iter().filter(|(other, ..)| *other == key).count() as u64;
        effects.push((key, it.what.clone(), world.ms()));
        before
    };
    world.sim.sleep(Duration::from_millis(it.ms.unwrap_or(0))).await;
    let number = it.number.map(|it| format!(" {it}")).unwrap_or_default();
    if before < it.fails.unwrap_or(0) { Err(Broke) } else { Ok(Worked(it.what + &number)) }
}

async fn fetch(Fetch { url }: Fetch) -> Page {
    Page { title: format!("<b>$url {url}</b>"), links: vec!["a".into(), "b".into()], size: 7 }
}

async fn fetch_more(_: Down) -> Broke {
    Broke
}

/// Goes down.
#[derive(Clone, Debug, PartialEq, Payload)]
#[payload(ns = "urn:test")]
struct Down {
    n: u64,
}

async fn keep(State(world): State<World>, message: Message, Keep { value }: Keep) {
    let key = message.key().unwrap_or_default();
    world.effects.lock().unwrap().push((key, value, world.ms()));
}

async fn press(State(world): State<World>, _: Press) {
    world.sim.sleep(Duration::from_secs(1)).await;
}

/// What an agent says that stops.
fn stopped(reason: &str) -> Stopped {
    let ns = "https://xml-pipeline.org/ns/agent/v1";
    let text = format!(
        "<agent-stopped xmlns=\"{ns}\" turns=\"1\" until=\"1\" \
         reason=\"{reason}\">No.</agent-stopped>"
    );
    Stopped::read(Element::from_canonical(text.into()).unwrap().view()).unwrap()
}

async fn halt(Halt { reason, error }: Halt) -> Result<Stopped, Stopped> {
    let stopped = stopped(&reason);
    if error == Some(true) { Err(stopped) } else { Ok(stopped) }
}

async fn halt_below(HaltBelow { reason }: HaltBelow) -> Stopped {
    stopped(&reason)
}

/// A model that says nothing of use in its first thread, and answers in every later one.
fn starting() -> Scripted {
    let turns = std::sync::atomic::AtomicU64::new(0);
    Scripted::new(move |_: &Prompt, _| {
        match turns.fetch_add(1, std::sync::atomic::Ordering::Relaxed) {
            0 | 1 => "Hm.",
            _ => "<response>Now.</response>",
        }
    })
}

async fn fall(_: Fall) {
    panic!("as it should");
}

async fn sub(Sub { question }: Sub) -> Worked {
    Worked(format!("answer to {question}"))
}

/// What a thread's log has of actions, a line each: `fetch ok "done"`.
async fn results(log: &dyn Log, thread: &ThreadId) -> Vec<String> {
    let entries = log.read(thread, 0, u64::MAX, 10_000).await.unwrap();
    let results = entries.iter().filter(|it| it.name == <ActionResult as Payload>::NAME);
    let line = |it: &Arc<pumphouse::log::Entry>| {
        assert!(!it.flags.contains(Flags::REFUSED));
        let element = Element::from_canonical(it.body.clone()).unwrap();
        let it = ActionResult::read(element.view()).unwrap();
        let status = format!("{:?}", it.status).to_lowercase();
        let value = it.value().map(|it| format!(" {it}"));
        let error = it.error.map(|it| format!(" {it}"));
        let rest = error.or(value).unwrap_or_default();
        let warnings = it.warning.iter().map(|it| format!(" ({it})")).collect::<String>();
        format!("{} {status}{rest}{warnings}", it.id)
    };
    results.map(line).collect()
}

/// How often each action was tried, by the order of its definition.
async fn attempts(log: &dyn Log, thread: &ThreadId) -> Vec<u32> {
    let entries = log.read(thread, 0, u64::MAX, 10_000).await.unwrap();
    let results = entries.iter().filter(|it| it.name == <ActionResult as Payload>::NAME);
    let read = |it: &Arc<pumphouse::log::Entry>| {
        let element = Element::from_canonical(it.body.clone()).unwrap();
        ActionResult::read(element.view()).unwrap()
    };
    let mut all: Vec<_> = results.map(read).map(|it| (it.of, it.attempts)).collect();
    all.sort_unstable();
    all.into_iter().map(|it| it.1).collect()
}

/// The lines of a thread's log: who, to whom, what.
async fn story(log: &dyn Log, thread: &ThreadId) -> Vec<String> {
    let entries = log.read(thread, 0, u64::MAX, 10_000).await.unwrap();
    let to = |it: &Arc<pumphouse::log::Entry>| it.to.as_deref().unwrap_or("*").to_owned();
    entries.iter().map(|it| format!("{} > {}: {}", it.from, to(it), it.name.local())).collect()
}

/// What came of a script: results, and what was done when.
struct Came {
    results: Vec<String>,
    /// How often each action was tried, by the order of its definition.
    attempts: Vec<u32>,
    effects: Vec<(String, String, u64)>,
    story: Vec<String>,
}

impl Came {
    /// When something was done, in milliseconds.
    #[track_caller]
    fn at(&self, what: &str) -> u64 {
        self.effects.iter().find(|(_, it, _)| it == what).unwrap().2
    }
}

/// Lets an agent follow a script until nothing is left to do.
fn play(script: Vec<Line>) -> Came {
    let world = World::new(1, script);
    let disk = Disk::new(&world.sim);
    let pump = world.start(&disk);
    let first = world.sim.run(pump.tell(Go {})).unwrap().unwrap();
    world.sim.rest().unwrap();
    let log = disk.kept();
    let results = world.sim.run(results(log, &first.thread)).unwrap();
    let story = world.sim.run(story(log, &first.thread)).unwrap();
    let attempts = world.sim.run(attempts(log, &first.thread)).unwrap();
    let effects = world.effects.lock().unwrap().clone();
    Came { results, attempts, effects, story }
}
