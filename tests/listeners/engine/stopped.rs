//! A fold that panics stops its listener in that thread. Nothing is lost, and the listener goes on
//! once it is tried again and its fold doesn't panic.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

use pumphouse::engine::Tokio;
use pumphouse::listeners::thread::CancelThread;
use pumphouse::log::Flags;
use pumphouse::prelude::*;
use pumphouse::wire::core::{ListenerStopped, ListenersRetried, RetryListeners};

use super::crash::again;
use super::{Answer, Down, Question, story};

/// The sum of all questions. It stumbles over a thirteen.
#[derive(Clone, Debug, Default)]
struct Fragile(u64);

impl Apply for Fragile {
    fn apply(&mut self, entry: &Entry) {
        let n = entry.decode_if().map_or(0, |Question { n }| n);
        assert!(n != 13, "thirteen");
        self.0 += n;
    }
}

/// The same as a later program has it.
#[derive(Clone, Debug, Default)]
struct Mended(u64);

impl Apply for Mended {
    fn apply(&mut self, entry: &Entry) {
        self.0 += entry.decode_if().map_or(0, |Question { n }| n);
    }
}

/// Stumbles as long as its switch says so, as a fold does that lacks memory.
#[derive(Clone, Debug, Default)]
struct Switched(u64);

static BROKEN: AtomicBool = AtomicBool::new(true);

impl Apply for Switched {
    fn apply(&mut self, entry: &Entry) {
        assert!(!BROKEN.load(SeqCst), "no memory");
        self.0 += entry.decode_if().map_or(0, |Question { n }| n);
    }
}

fn adder<T: Apply>(sum: fn(&T) -> u64) -> Listener {
    let add = move |Fold(it): Fold<T>, _: Question| async move { Answer { n: sum(&it) } };
    Listener::new("adder").on(add).fold::<T>()
}

fn cast(adder: Listener) -> Vec<Listener> {
    let mut all = crate::usual();
    all.extend([adder, Listener::new("other").on(async |Down { n }: Down| Answer { n })]);
    all
}

fn started(adder: Listener) -> Pump {
    pumphouse::builder().with(cast(adder)).workers(2).build().unwrap().start()
}

/// The record of a stop.
fn decoded(entry: &pumphouse::log::Entry) -> ListenerStopped {
    let element = Element::from_canonical(entry.body.clone()).unwrap();
    ListenerStopped::decode(&element).unwrap()
}

/// Waits until the thread has this number of entries.
async fn grown(pump: &Pump, thread: &ThreadId, count: u64) {
    let mut follow = pump.follow(thread, 0);
    let all = async {
        for _ in 0..count {
            follow.next().await.unwrap();
        }
    };
    tokio::time::timeout(Duration::from_secs(5), all).await.unwrap();
}

#[tokio::test]
async fn a_panic_stops_one_listener_in_one_thread() {
    for adder in [
        adder::<Fragile>(|it| it.0),
        adder::<Fragile>(|it| it.0).inline().pure(),
        adder::<Fragile>(|it| it.0).serial().up_to_date(),
    ] {
        let pump = started(adder);
        let first = pump.tell(Question { n: 13 }).await.unwrap();
        grown(&pump, &first.thread, 2).await;
        let here = pump.in_thread(&first.thread);
        here.tell(Question { n: 1 }).await.unwrap();
        // Other listeners of the thread go on, and so does the listener in other threads.
        assert_eq!(here.ask::<Answer>(Down { n: 7 }).await.unwrap().n, 7);
        assert_eq!(pump.ask::<Answer>(Question { n: 2 }).await.unwrap().n, 2);
        let told = story(pump.log(), &first.thread).await;
        let expected = [
            "console > adder: question",
            "core > *: listener-stopped",
            "console > adder: question",
            "console > other: down",
            "other > console: answer",
        ];
        assert_eq!(told, expected, "it is told once, and no message fails");
        let entries = pump.log().read(&first.thread, 0, u64::MAX, 9).await.unwrap();
        assert!(entries[1].flags.contains(Flags::ERROR), "a row of --failed");
        let stopped = ListenerStopped {
            listener: "adder".into(),
            entry: first.to_string(),
            reason: "thirteen".into(),
        };
        assert_eq!(decoded(&entries[1]), stopped);
        pump.shutdown().await.unwrap();
    }
}

#[tokio::test]
async fn a_retry_takes_up_what_waited() {
    let pump = started(adder::<Switched>(|it| it.0).serial());
    let first = pump.tell(Question { n: 1 }).await.unwrap();
    grown(&pump, &first.thread, 2).await;
    let here = pump.in_thread(&first.thread);
    let waits = here.clone();
    let answer = tokio::spawn(async move { waits.ask::<Answer>(Question { n: 2 }).await });
    grown(&pump, &first.thread, 3).await;
    let retry = || here.ask::<ListenersRetried>(RetryListeners { thread: None, reason: None });
    // It is tried again, and stopped again.
    assert_eq!(retry().await.unwrap().listener, ["adder"]);
    grown(&pump, &first.thread, 6).await;
    BROKEN.store(false, SeqCst);
    let retried = retry().await.unwrap();
    assert_eq!((retried.listener, retried.by), (vec!["adder".to_owned()], "console".to_owned()));
    assert_eq!(answer.await.unwrap().unwrap().n, 3);
    assert_eq!(retry().await.unwrap().listener, [""; 0], "none is stopped any more");
    let nobodys = RetryListeners { thread: Some("sess-nobodys".into()), reason: None };
    assert!(here.ask::<ListenersRetried>(nobodys).await.is_err());
    pump.shutdown().await.unwrap();
}

#[test]
fn another_program_goes_on_by_itself() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pumphouse.db");
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let pump = again(&file, cast(adder::<Fragile>(|it| it.0))).await;
        let first = pump.tell(Question { n: 13 }).await.unwrap();
        grown(&pump, &first.thread, 2).await;
        pump.in_thread(&first.thread).tell(Question { n: 1 }).await.unwrap();
        pump.shutdown().await.unwrap();
        // The same program stops again.
        let pump = again(&file, cast(adder::<Fragile>(|it| it.0))).await;
        grown(&pump, &first.thread, 4).await;
        let plan = pumphouse::builder().with(cast(adder::<Fragile>(|it| it.0))).build().unwrap();
        let state = plan.state(&**pump.log(), &first.thread, None).await.unwrap().unwrap();
        let waits = |it: &pumphouse::engine::Waiting| (it.entry.seq, it.attempts, it.is_stopped);
        let waits: Vec<_> = state.threads[0].waiting.iter().map(waits).collect();
        assert_eq!(waits[0], (1, 0, true), "{waits:?}");
        let shown = pump.folds(&first.thread).await.unwrap();
        let adder_fold = shown.iter().find(|it| &*it.listener == "adder").unwrap();
        assert!(adder_fold.shown.as_ref().is_err_and(|it| it.contains("thirteen")));
        pump.shutdown().await.unwrap();
        // The next one, which isn't idempotent either, handles both: no handler had begun.
        let pump = again(&file, cast(adder::<Mended>(|it| it.0))).await;
        grown(&pump, &first.thread, 6).await;
        let told = story(pump.log(), &first.thread).await;
        assert_eq!(told[4..], ["adder > console: answer", "adder > console: answer"]);
        assert!(pump.log().open_entries().await.unwrap().is_empty());
        pump.shutdown().await.unwrap();
    });
}

#[tokio::test]
async fn a_thread_with_a_stopped_listener_can_be_cancelled() {
    let pump = started(adder::<Fragile>(|it| it.0));
    let first = pump.tell(Question { n: 13 }).await.unwrap();
    grown(&pump, &first.thread, 2).await;
    let here = pump.in_thread(&first.thread);
    here.tell(CancelThread { thread: None, reason: None }).await.unwrap();
    let mut follow = pump.follow(&first.thread, 3);
    tokio::time::timeout(Duration::from_secs(5), follow.next()).await.unwrap().unwrap();
    crate::settled(&pump).await;
    pump.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_replay_skips_a_listener_whose_fold_panics() {
    let pump = started(adder::<Mended>(|it| it.0).pure());
    let first = pump.tell(Question { n: 5 }).await.unwrap();
    pump.in_thread(&first.thread).ask::<Answer>(Question { n: 13 }).await.unwrap();
    let plan = pumphouse::builder().with(cast(adder::<Fragile>(|it| it.0).pure())).build().unwrap();
    let replayed = plan.replay(pump.log(), &first.thread, &Tokio::current()).await.unwrap();
    assert_eq!(replayed.difference, None);
    let why: Vec<_> = replayed.skipped.iter().map(|it| it.why).collect();
    assert_eq!(why, ["a fold of its listener panics"]);
    pump.shutdown().await.unwrap();
}
