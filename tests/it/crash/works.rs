//! An agent's process that is killed at each entry of its scenes. In the scenes, answers are held,
//! waited for, withdrawn and interrupted, and a workflow of fifty steps runs. Each asker gets the
//! same last message, and each effect of the workflow's steps happens once.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufReader, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use pumphouse::clock;
use pumphouse::listeners::action::words::ActionResult;
use pumphouse::listeners::agent::words::{Response, Stopped};
use pumphouse::listeners::workflow::words::{WorkflowFailed, WorkflowResult};
use pumphouse::log::{Entry as Logged, Log as _, SqliteLog};
use pumphouse::prelude::*;

use super::check::wait;
use super::effects::Process;
use super::load::accepted;
use crate::agent::one_asker::{scenes, tool};
use crate::examples::example;

/// At how many of a scene's entries its process is killed, unless `just crash-works` has it killed
/// at each.
const KILLS: usize = 2;
/// How many are killed side by side.
const AT_ONCE: usize = 4;
/// How long a scene may take.
const TIME_US_MAX: u64 = 60_000_000;
/// How often its log is looked at.
const LOOK: Duration = Duration::from_millis(1);

/// What an agent says, turn by turn, and who asks it what.
struct Scene {
    turns: Vec<String>,
    pushes: Vec<Push>,
    /// How many last words there are.
    words: usize,
    /// Whether what the tool did is compared, too.
    has_effects: bool,
}

/// A message, said once there is an entry of a name.
struct Push {
    who: &'static str,
    to: &'static str,
    payload: String,
    after: &'static str,
}

fn asks(who: &'static str, text: &str) -> Push {
    let payload =
        format!("<oracle xmlns=\"https://xml-pipeline.org/ns/oracle/v1\">{text}</oracle>");
    Push { who, to: "oracle", payload, after: "" }
}

fn scene(turns: Vec<String>, pushes: Vec<Push>, words: usize) -> Scene {
    Scene { turns, pushes, words, has_effects: false }
}

fn agent_scenes() -> Vec<Scene> {
    let of = |turns| scene(turns, vec![asks("ann", "Go.")], 1);
    let mut all: Vec<Scene> = scenes().into_iter().map(of).collect();
    let interrupt = "<interrupt xmlns=\"https://xml-pipeline.org/ns/agent/v1\"/>".to_owned();
    let answers = |it: &str| format!("<response>{it}</response>");
    all.push(scene(
        vec![tool("a", "async", 40), answers("For ann: $a"), answers("For bob.")],
        vec![asks("ann", "Go."), asks("bob", "And I?")],
        2,
    ));
    all.push(scene(
        vec![tool("slow", "async", 60_000) + &answers("$slow"), answers("For bob.")],
        vec![
            asks("ann", "Go."),
            Push { payload: interrupt, after: "cognition_out", ..asks("ann", "") },
            Push { after: "agent-stopped", ..asks("bob", "And I?") },
        ],
        2,
    ));
    all.push(scene(
        vec![tool("slow", "async", 60_000) + &answers("$slow"), answers("Both.")],
        vec![asks("ann", "Go."), Push { after: "cognition_out", ..asks("ann", "Don't wait.") }],
        1,
    ));
    all
}

/// Runs of the workflow of fifty steps: one that comes to its end, and one whose last step fails.
fn workflow_scenes() -> Vec<Scene> {
    let order = |n: u64| {
        let ns = "https://xml-pipeline.org/ns/workflow/order/v1";
        let payload = format!("<order xmlns=\"{ns}\">{{\"n\": {n}}}</order>");
        let push = Push { to: "order", payload, ..asks("ann", "") };
        Scene { has_effects: true, ..scene(vec![String::new()], vec![push], 1) }
    };
    vec![order(2), order(5)]
}

#[test]
fn an_agent_killed_at_any_entry_answers_the_same() {
    check(&agent_scenes());
}

#[test]
fn a_workflow_of_fifty_steps_killed_at_any_entry_ends_the_same() {
    check(&workflow_scenes());
}

/// Plays each scene as it is, and then with a kill at each of its entries or at some.
fn check(all: &[Scene]) {
    #[expect(clippy::disallowed_methods, reason = "the justfile's recipe has it killed at each")]
    let is_long = std::env::var("PUMPHOUSE_CRASH_WORKS").is_ok();
    let clean: Vec<(Vec<String>, usize)> = all.iter().map(|it| run(it, None)).collect();
    let kills = clean.iter().enumerate().flat_map(|(scene, (_, entries))| {
        let step = if is_long { 1 } else { entries.div_ceil(KILLS) };
        (1..=*entries).step_by(step).map(move |at| (scene, at))
    });
    let kills: Vec<(usize, usize)> = kills.collect();
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some((scene, at)) = kills.get(next.fetch_add(1, Ordering::Relaxed)) {
            let (words, _) = run(&all[*scene], Some(*at));
            assert_eq!(words, clean[*scene].0, "killed at entry {at} of scene {scene}");
        }
    };
    std::thread::scope(|scope| (0..AT_ONCE).for_each(|_| drop(scope.spawn(work))));
    let (scenes, kills) = (all.len(), kills.len());
    println!("{scenes} scenes, {kills} kills, 0 last words or effects that differ");
}

/// The last words of a scene with the effects that are compared, and how many entries there are;
/// killed, where that is said, as soon as there are so many, and started again.
fn run(scene: &Scene, kill: Option<usize>) -> (Vec<String>, usize) {
    let folder = tempfile::tempdir().unwrap();
    let turns = folder.path().join("turns");
    std::fs::write(&turns, scene.turns.join("\n---\n")).unwrap();
    let path = folder.path().join("pumphouse.db");
    if let Some(at) = kill {
        let mut pump = Speaking::to(&path, &turns);
        pump.plays(scene, |all| all.len() >= at);
        pump.process.kill();
    }
    let mut pump = Speaking::to(&path, &turns);
    let all = pump.plays(scene, |_| false);
    pump.process.kill();
    assert!(wait(pump.log.verify(None)).is_sound());
    let mut words = last_words(&all);
    if scene.has_effects {
        let mut effects = effects(&folder.path().join("effects"));
        check_undone(&all, &effects);
        // Steps that run side by side may end in another order.
        effects.sort_unstable();
        words.extend(effects);
    }
    (words, all.len())
}

/// What the tool did, in this order. What was done with one key was done for one call, which counts
/// once.
fn effects(path: &Path) -> Vec<String> {
    let all = std::fs::read_to_string(path).unwrap();
    let (mut keys, mut done) = (BTreeSet::new(), Vec::new());
    for line in all.lines().filter_map(|it| it.strip_prefix("did ")) {
        let (key, what) = line.split_once(' ').unwrap();
        if keys.insert(key) {
            done.push(what.to_owned());
        }
    }
    done
}

/// What a run undid, it undid in the reverse order of the results, as its answer says.
fn check_undone(all: &[Entry], effects: &[String]) {
    let Some(failed) = all.iter().find_map(Entry::decode_if::<WorkflowFailed>) else { return };
    let results = all.iter().filter(|it| it.to() == Some("order"));
    let results = results.filter_map(Entry::decode_if::<ActionResult>).map(|it| it.id);
    let mut done: Vec<String> = results.filter(|it| failed.undone.contains(it)).collect();
    done.reverse();
    assert_eq!(failed.undone, done);
    let undone: Vec<&str> = effects.iter().filter_map(|it| it.strip_prefix("undo ")).collect();
    assert_eq!(undone, done);
}

/// A process, and who speaks to it.
struct Speaking {
    process: Process,
    address: String,
    log: SqliteLog,
    clients: BTreeMap<&'static str, TcpStream>,
}

impl Speaking {
    fn to(path: &Path, turns: &Path) -> Speaking {
        let mut process = Process::spawn(Command::new(example("works")).args([path, turns]));
        let (address, _) = process.ready().expect("it starts");
        let log = SqliteLog::open_read_only(path).unwrap();
        Speaking { process, address, log, clients: BTreeMap::new() }
    }

    /// Says all again, each under its own id, as soon as it may; until the log has enough, or all
    /// last words.
    fn plays(&mut self, scene: &Scene, is_enough: impl Fn(&[Entry]) -> bool) -> Vec<Entry> {
        let until_us = clock::now_us() + TIME_US_MAX;
        let (mut all, mut thread, mut said) = (Vec::new(), None, 0);
        loop {
            let position = all.last().map_or(0, |it: &Arc<Logged>| it.position);
            let mut new = wait(self.log.tail(position, usize::MAX));
            new.retain(|it| it.id.thread.as_str() != "organism");
            all.extend(new);
            let entries: Vec<Entry> = all.iter().map(|it| (&**it).into()).collect();
            if last_words(&entries).len() >= scene.words || is_enough(&entries) {
                return entries;
            }
            if let Some(push) = scene.pushes.get(said)
                && (push.after.is_empty()
                    || entries.iter().any(|it| it.name().local() == push.after))
            {
                let at = self.says(said, push, thread.as_deref());
                thread.get_or_insert(at);
                said += 1;
            }
            assert!(clock::now_us() < until_us, "it isn't over: {entries:#?}");
            std::thread::park_timeout(LOOK);
        }
    }

    /// Says something in a thread, and tells where it was taken.
    fn says(&mut self, number: usize, push: &Push, thread: Option<&str>) -> String {
        let client = self.clients.entry(push.who).or_insert_with(|| {
            let mut client = TcpStream::connect(&self.address).unwrap();
            let core = "https://xml-pipeline.org/ns/core/v1";
            writeln!(client, "<authenticate xmlns=\"{core}\" token=\"{}\"/>", push.who).unwrap();
            client
        });
        let thread = thread.map(|it| format!("<thread>{it}</thread>")).unwrap_or_default();
        let message = format!(
            "<message xmlns=\"https://xml-pipeline.org/ns/envelope/v1\"><meta>{thread}\
             <to>{}</to><id>push{number}</id></meta>{}</message>\n",
            push.to, push.payload
        );
        client.write_all(message.as_bytes()).unwrap();
        accepted(&mut BufReader::new(&*client)).expect("it is acknowledged").thread
    }
}

/// Who was told what in the end, in order.
fn last_words(all: &[Entry]) -> Vec<String> {
    let word = |it: &Entry| {
        let to = it.to().filter(|it| ["ann", "bob"].contains(it))?;
        let text = match (it.decode_if::<Response>(), it.decode_if::<Stopped>()) {
            (Some(it), _) => it.is_final.then_some(it.text)?,
            (_, Some(it)) => it.reason,
            _ if it.is::<WorkflowResult>() => {
                it.decode_if::<WorkflowResult>()?.outputs.0.to_string()
            }
            _ => {
                let WorkflowFailed { reason, mut undone, not_undone, .. } = it.decode_if()?;
                undone.sort_unstable();
                format!("{reason}; undone {undone:?}, not {not_undone:?}")
            }
        };
        Some(format!("{to}: {text}"))
    };
    all.iter().filter_map(word).collect()
}
