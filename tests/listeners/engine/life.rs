//! The organism's own thread: its starts and stops, and what listeners record there.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use pumphouse::engine::Identity;
use pumphouse::listener::{Organism, OrganismThread};
use pumphouse::listeners::thread::{CancelThread, PauseThread, ThreadPaused, thread};
use pumphouse::log::{Log, State};
use pumphouse::prelude::*;
use pumphouse::sim::Sim;
use pumphouse::wire::core::{Boot, Heartbeat, ThreadCancelled};

use super::crash::{again_with, crash_with};
use super::{Answer, Question, story};

async fn answer(Question { n }: Question) -> Answer {
    Answer { n }
}

async fn lives(log: &Arc<dyn Log>, lines: usize) -> Vec<String> {
    let thread = ThreadId::new("organism");
    loop {
        if log.thread(&thread).await.unwrap().is_some() {
            let story = story(log, &thread).await;
            if story.len() >= lines {
                return story;
            }
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

#[test]
fn an_organism_with_a_name_says_when_it_begins_who_came_and_who_left() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pumphouse.db");
    let named = |it: Builder| it.name("sums");
    let both = (Listener::new("a").on(answer), Listener::new("b").on(async |_: Answer| ()));
    let first = crash_with(&file, named, both, async |pump| {
        pump.tell(Question { n: 1 }).await.unwrap();
        lives(pump.log(), 3).await
    });
    assert_eq!(first, ["core > *: boot", "core > *: listener-joined", "core > *: listener-joined"]);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let second = runtime.block_on(async {
        let pump = again_with(&file, named, Listener::new("a").on(answer)).await;
        let story = lives(pump.log(), 5).await;
        let entries = pump.log().read(&ThreadId::new("organism"), 0, 9, 9).await.unwrap();
        let text = |at: usize| String::from_utf8_lossy(&entries[at].body).into_owned();
        assert!(text(0).contains("<organism-name>sums</organism-name>"), "{}", text(0));
        assert!(text(4).contains("<name>b</name>"), "{}", text(4));
        pump.shutdown().await.unwrap();
        story
    });
    assert_eq!(second[3..], ["core > *: boot", "core > *: listener-left"]);
}

#[tokio::test]
async fn a_listener_may_take_what_the_pump_says_of_itself() {
    let (told, mut hears) = tokio::sync::mpsc::unbounded_channel();
    let beat = told.clone();
    let on_boot = move |it: Boot| {
        drop(told.send(it.organism_name));
        std::future::ready(())
    };
    let on_beat = move |it: Heartbeat| {
        drop(beat.send(it.sequence.to_string()));
        std::future::ready(())
    };
    let watch = Listener::new("watch").on(on_boot).on(on_beat);
    let plan = pumphouse::builder().with(watch).name("sums").heartbeat(Duration::from_millis(5));
    let pump = plan.build().unwrap().start();
    for expected in ["sums", "1", "2"] {
        assert_eq!(hears.recv().await.unwrap(), expected);
    }
    pump.shutdown().await.unwrap();
}

#[tokio::test]
async fn nobody_else_speaks_in_the_organisms_thread() {
    let plan = pumphouse::builder().with(Listener::new("a").on(answer)).name("sums");
    let pump = plan.build().unwrap().start();
    lives(pump.log(), 2).await;
    let there = pump.in_thread(&ThreadId::new("organism"));
    let refused = there.tell(Question { n: 1 }).await.unwrap_err();
    assert!(refused.unknown_thread.is_some(), "{refused}");
    let entries = pump.log().read(&ThreadId::new("organism"), 0, 9, 9).await.unwrap();
    let names: Vec<&str> = entries.iter().map(|it| it.name.local()).collect();
    assert_eq!(names, ["boot", "listener-joined"]);
    pump.shutdown().await.unwrap();
}

#[tokio::test]
async fn nobody_ends_or_holds_the_organisms_thread() {
    let pump = pumphouse::builder().with(thread()).name("sums").build().unwrap().start();
    lives(pump.log(), 2).await;
    let organism = ThreadId::new("organism");
    let operator = Identity { name: "ops".into(), operator: true };
    let there = pump.speaking_as(operator).in_thread(&organism);
    let named = Some(organism.to_string());
    for name in [None, named] {
        let cancel = CancelThread { thread: name.clone(), reason: None };
        let cancelled = there.ask::<ThreadCancelled>(cancel).await.map(drop);
        let pause = PauseThread { thread: name, reason: None };
        let paused = there.ask::<ThreadPaused>(pause).await.map(drop);
        for (refused, word) in [(cancelled, "cancelled"), (paused, "paused")] {
            let Err(AskError::Failed(huh)) = refused else { panic!("{refused:?}") };
            let text = format!("organism is the pump's own thread, and can't become {word}");
            assert_eq!((&*huh.code, huh.message), ("P0010", text));
        }
    }
    assert_eq!(pump.log().thread(&organism).await.unwrap().unwrap().state, State::Open);
    let log = pump.log().clone();
    pump.shutdown().await.unwrap();
    let last = story(&log, &organism).await.pop();
    assert_eq!(last.as_deref(), Some("core > *: shutdown-signal"));
}

/// What a listener goes by is written where it differs from what was written last, also by a pump
/// without a name.
#[test]
fn what_a_listener_announces_is_written_once_each_time_it_changes() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pumphouse.db");
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let mut stories = Vec::new();
    for n in [1, 1, 2] {
        let said = Listener::new("a").on(answer).announce(&Answer { n });
        let pump = runtime.block_on(again_with(&file, |it| it, said));
        stories.push(runtime.block_on(async {
            let story = lives(pump.log(), if n == 1 { 1 } else { 2 }).await;
            pump.shutdown().await.unwrap();
            story.len()
        }));
    }
    assert_eq!(stories, [1, 1, 2]);
}

#[test]
fn what_a_listener_does_at_the_end_is_waited_for_up_to_five_seconds() {
    let ended = Arc::new(AtomicU32::new(0));
    let counts = ended.clone();
    let ends = move || {
        counts.fetch_add(1, Ordering::Relaxed);
        std::future::ready(())
    };
    let a = Listener::new("a").on(answer).at_stop(ends);
    let never = Listener::new("b").on(async |_: Answer| ()).at_stop(std::future::pending);
    let sim = Sim::new(1);
    let pump = pumphouse::builder().with((a, never)).build().unwrap().start_on(&sim);
    sim.run(pump.tell(Question { n: 1 })).unwrap().unwrap();
    assert_eq!(ended.load(Ordering::Relaxed), 0);
    let before_us = sim.now_us();
    sim.run(pump.shutdown()).unwrap().unwrap();
    assert_eq!(ended.load(Ordering::Relaxed), 1);
    assert_eq!((sim.now_us() - before_us) / 1_000_000, 5);
}

/// Records an answer in the organism's own thread, and tells how many of it stand there.
async fn keep(organism: OrganismThread, Question { n }: Question) -> Result<Answer, Fault> {
    organism.record(&Answer { n }).await?;
    Ok(Answer { n })
}

/// Tells the sum of the answers in the organism's own thread.
async fn count(organism: OrganismThread, _: Count) -> Result<Answer, Fault> {
    let mut sum = 0;
    let mut read = 0;
    loop {
        let page = organism.read(read, 2).await?;
        let Some(last) = page.last() else { return Ok(Answer { n: sum }) };
        read = last.seq();
        sum += page.iter().filter_map(Entry::decode_if::<Answer>).map(|it| it.n).sum::<u64>();
    }
}

/// Wants the sum.
#[derive(Debug, Payload)]
#[payload(ns = "urn:test")]
struct Count;

fn keeper() -> Listener {
    Listener::new("keeper").on(keep).on(count).grant::<Organism>().idempotent()
}

#[tokio::test]
async fn what_a_listener_records_for_the_organism_is_in_the_log_when_it_answers() {
    let pump = pumphouse::builder().with(keeper()).build().unwrap().start();
    for n in [1, 2, 3] {
        pump.ask::<Answer>(Question { n }).await.unwrap();
        let story = story(pump.log(), &ThreadId::new("organism")).await;
        assert_eq!(story.len() as u64, n, "{story:?}");
    }
    let sum = pump.ask::<Answer>(Count).await.unwrap();
    assert_eq!(sum.n, 6);
    pump.shutdown().await.unwrap();
}

#[test]
fn without_the_grant_nobody_records_anything_for_the_organism() {
    let keeper = Listener::new("keeper").on(keep);
    let complaints = pumphouse::builder().with(keeper).build().err().unwrap().to_string();
    assert!(complaints.contains("has no grant organism"), "{complaints}");
}
