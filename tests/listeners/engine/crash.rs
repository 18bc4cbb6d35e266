//! How a start recovers from a crash. A crash here means that the runtime is dropped, and with it
//! every task, at once.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pumphouse::listener::NoteAbove;
use pumphouse::log::{Durability, SqliteLog};
use pumphouse::prelude::*;
use pumphouse::wire::core::ThreadNote;
use tokio::sync::mpsc;

use super::{Answer, Down, Question, story};

type Runs = Arc<Mutex<Vec<(u64, u32)>>>;

/// Runs a pump until `until` is over, then pulls the plug.
pub(super) fn crash<T: Send + 'static>(
    file: &Path,
    plugin: impl Plugin,
    until: impl AsyncFnOnce(Pump) -> T,
) -> T {
    crash_with(file, |it| it, plugin, until)
}

/// The same with a builder that says more.
pub(super) fn crash_with<T: Send + 'static>(
    file: &Path,
    builder: impl FnOnce(Builder) -> Builder,
    plugin: impl Plugin,
    until: impl AsyncFnOnce(Pump) -> T,
) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let log = SqliteLog::open(file, Durability::Normal).unwrap();
    let it = runtime.block_on(async {
        let builder = builder(pumphouse::builder().with(plugin).with(log).workers(2));
        until(builder.build().unwrap().start()).await
    });
    runtime.shutdown_background();
    it
}

/// Opens the log again, once the tasks that held it are gone.
pub(super) async fn again(file: &Path, plugin: impl Plugin) -> Pump {
    again_with(file, |it| it, plugin).await
}

/// The same with a builder that says more.
pub(super) async fn again_with(
    file: &Path,
    builder: impl FnOnce(Builder) -> Builder,
    plugin: impl Plugin,
) -> Pump {
    let log = loop {
        match SqliteLog::open(file, Durability::Normal) {
            Ok(log) => break log,
            Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
        }
    };
    let builder = builder(pumphouse::builder().with(plugin).with(log).workers(2));
    let pump = builder.build().unwrap().start();
    pump.ready().await.unwrap();
    pump
}

/// Notes the run, sends an answer, and hangs the first time.
async fn work(
    State(runs): State<Runs>,
    Attempt(attempt): Attempt,
    out: Outbox<Answer>,
    Question { n }: Question,
) -> Option<Down> {
    runs.lock().unwrap().push((n, attempt));
    out.send(Answer { n }).await.ok()?;
    if attempt == 1 {
        std::future::pending::<()>().await;
    }
    assert_eq!(out.sent().await.ok()?.len(), 1);
    Some(Down { n })
}

fn crashed(idempotent: bool) -> (Runs, Vec<String>) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pumphouse.db");
    let runs = Runs::default();
    let listener = || {
        let it = Listener::with_state("a", runs.clone()).on(work).serial();
        if idempotent { it.idempotent() } else { it }
    };
    let thread = crash(&file, listener(), async |pump| {
        let first = pump.tell(Question { n: 1 }).await.unwrap();
        pump.in_thread(&first.thread).tell(Question { n: 2 }).await.unwrap();
        let mut follow = pump.follow(&first.thread, 0);
        for _ in 0..3 {
            follow.next().await.unwrap();
        }
        first.thread
    });
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let told = runtime.block_on(async {
        let pump = again(&file, listener()).await;
        let mut follow = pump.follow(&thread, 0);
        for _ in 0..5 {
            tokio::time::timeout(Duration::from_secs(5), follow.next()).await.unwrap().unwrap();
        }
        let mut told = story(pump.log(), &thread).await;
        // The second question and the first answer may come in either order.
        told[1..3].sort();
        told
    });
    (runs, told)
}

#[test]
fn what_may_run_again_does_and_repeats_nothing() {
    let (runs, told) = crashed(true);
    assert_eq!(*runs.lock().unwrap(), [(1, 1), (1, 2), (2, 1)]);
    let expected = [
        "console > a: question",
        "a > console: answer",
        "console > a: question",
        "a > console: down",
        "a > console: answer",
    ];
    assert_eq!(told, expected);
}

#[test]
fn what_must_not_run_twice_is_reported_and_the_rest_runs() {
    let (runs, told) = crashed(false);
    assert_eq!(*runs.lock().unwrap(), [(1, 1), (2, 1)]);
    let expected = [
        "console > a: question",
        "a > console: answer",
        "console > a: question",
        "core > console: huh",
        "a > console: answer",
    ];
    assert_eq!(told, expected);
}

#[test]
fn a_listener_that_is_gone_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pumphouse.db");
    let hang = async |_: Question| std::future::pending::<()>().await;
    let thread = crash(&file, Listener::new("a").on(hang), async |pump| {
        pump.tell(Question { n: 1 }).await.unwrap().thread
    });
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let told = runtime.block_on(async {
        let pump = again(&file, Listener::new("b").on(async |_: Down| {})).await;
        let mut follow = pump.follow(&thread, 0);
        for _ in 0..2 {
            tokio::time::timeout(Duration::from_secs(5), follow.next()).await.unwrap().unwrap();
        }
        story(pump.log(), &thread).await
    });
    assert_eq!(told, ["console > a: question", "core > console: huh"]);
}

#[test]
fn whom_a_shared_message_was_for_stays_so() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pumphouse.db");
    let hang = async |_: Question| std::future::pending::<()>().await;
    let both = || (Listener::new("a").on(hang).shared(), Listener::new("b").on(hang).shared());
    let thread =
        crash(&file, both(), async |pump| pump.tell(Question { n: 1 }).await.unwrap().thread);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let told = runtime.block_on(async {
        let answer = async |Question { n }: Question| Answer { n };
        let a = Listener::new("a").on(answer).shared();
        let pump = again(&file, (a, Listener::new("c").on(answer).shared())).await;
        let mut follow = pump.follow(&thread, 0);
        for _ in 0..3 {
            tokio::time::timeout(Duration::from_secs(5), follow.next()).await.unwrap().unwrap();
        }
        story(pump.log(), &thread).await
    });
    let told = told.iter().map(String::as_str).collect::<Vec<_>>();
    assert_eq!(told, ["console > *: question", "core > console: huh", "core > console: huh"]);
}

/// Where a listener takes notes, it handles those of child threads.
#[test]
fn who_takes_notes_handles_a_note_from_below_that_a_crash_left() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pumphouse.db");
    let (told, mut hears) = mpsc::unbounded_channel();
    let all = || {
        let told = told.clone();
        let note = move |Attempt(attempt): Attempt, note: ThreadNote| {
            let told = told.clone();
            async move {
                let _ = told.send((attempt, note.thread));
                if attempt == 1 {
                    std::future::pending::<()>().await;
                }
            }
        };
        let below = async |Question { n }: Question| (NoteAbove(Down { n }), Answer { n });
        let asks = async |Down { n }: Down| Request::new(To("below", Question { n }));
        (
            Listener::new("notes").on(note).idempotent(),
            Listener::new("below").on(below).own_thread(),
            Listener::new("boss").on(asks).on_any_reply(async |_: Element| ()),
        )
    };
    let first = crash(&file, all(), async |pump| {
        pump.tell(Down { n: 1 }).await.unwrap();
        hears.recv().await.unwrap()
    });
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let second = runtime.block_on(async {
        let _pump = again(&file, all()).await;
        tokio::time::timeout(Duration::from_secs(20), hears.recv()).await.unwrap().unwrap()
    });
    assert_eq!((first.0, second.0), (1, 2));
    assert_eq!(first.1, second.1);
}
