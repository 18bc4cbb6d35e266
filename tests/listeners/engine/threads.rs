//! Child threads: how they are opened, how they end, and which listeners are told.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use pumphouse::listeners::thread::wait::{AwaitThreads, Mode, ThreadsAwaited};
use pumphouse::listeners::thread::{CancelThread, InitialPayload, PauseThread, ResumeThread};
use pumphouse::listeners::thread::{SpawnThread, ThreadPaused, ThreadResumed, thread};
use pumphouse::log::{Log, MemoryLog, State as ThreadState};
use pumphouse::prelude::*;
use pumphouse::sim::Sim;
use pumphouse::wire::SignedDuration;
use pumphouse::wire::core::{
    SystemThreadError, ThreadCancelled, ThreadResult, ThreadSpawned, ThreadStatus,
};
use pumphouse_audit::why;
use tokio::sync::{mpsc, oneshot};

use super::crash::{again, crash};
use super::{Answer, Down, Question, beside, only_thread, pass, start, start_in, story};

/// What every story here needs: someone who answers, and `thread`.
fn answerer() -> Listener {
    Listener::new("a").on(async |Question { n }: Question| Answer { n: n + 1 })
}

fn spawn(label: &str, first: &impl Payload) -> SpawnThread {
    let payload = first.encode().unwrap();
    let initial_payload = InitialPayload { payload };
    SpawnThread { metadata: None, suggested_sub_id: Some(label.into()), initial_payload }
}

/// Waits until the thread's story has this many lines.
async fn grown(pump: &Pump, thread: &ThreadId, lines: usize) -> Vec<String> {
    let mut follow = pump.follow(thread, 0);
    for _ in 0..lines {
        follow.next().await.unwrap();
    }
    story(pump.log(), thread).await
}

async fn state(log: &Arc<dyn Log>, thread: &ThreadId) -> ThreadState {
    log.thread(thread).await.unwrap().unwrap().state
}

#[tokio::test]
async fn a_child_ends_with_the_answer_to_its_first_message() {
    let pump = start((answerer(), thread()));
    let it: ThreadSpawned = pump.ask(spawn("work", &Question { n: 1 })).await.unwrap();
    let (parent, child) = (ThreadId::new(&it.parent_id), ThreadId::new(&it.assigned_id));
    assert_eq!(it.assigned_id, format!("{parent}.work"));
    let told = ["console > thread: spawn-thread", "core > console: thread-spawned"];
    let told = [&told[..], &["core > console: thread-result"]].concat();
    assert_eq!(grown(&pump, &parent, 3).await, told);
    assert_eq!(story(pump.log(), &child).await, ["console > a: question", "a > console: answer"]);
    assert_eq!(state(pump.log(), &child).await, ThreadState::Closed);
    let result = pump.log().read(&parent, 2, 3, 1).await.unwrap().remove(0);
    assert_eq!(result.cause.as_ref().unwrap().to_string(), format!("{child}/2"));
    assert_eq!(result.reply_to.as_ref().unwrap().to_string(), format!("{child}/1"));
    assert_eq!(pump.metrics().accepted, 1, "the child's first message is no push");
    let late = pump.in_thread(&child).tell(Question { n: 1 }).await.unwrap_err();
    assert_eq!(late.to_string(), format!("P0040: {child} is closed"));
}

#[tokio::test]
async fn children_of_one_label_are_numbered_also_after_a_restart() {
    let log: Arc<dyn Log> = Arc::new(MemoryLog::new());
    let mut parent: Option<ThreadId> = None;
    let mut ids = Vec::new();
    for _ in 0..2 {
        let kept = log.clone();
        let with = move |it: &mut Builder| it.log(kept);
        let pump = start((answerer(), thread(), with));
        for _ in 0..2 {
            let here = parent.as_ref().map_or(pump.clone(), |it| pump.in_thread(it));
            let it: ThreadSpawned = here.ask(spawn("same", &Question { n: 1 })).await.unwrap();
            parent = Some(ThreadId::new(&it.parent_id));
            ids.push(it.assigned_id.split_once('.').unwrap().1.to_owned());
        }
        // A memory log that is closed takes no more: the second pump stands beside the first.
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(ids, ["same", "same-1", "same-2", "same-3"]);
}

#[tokio::test]
async fn a_listener_opens_threads_and_hears_what_comes_of_them() {
    let open = async |_: Down| vec![Spawn::new(Question { n: 1 }), Spawn::new(Question { n: 2 })];
    let (told, mut hears) = mpsc::unbounded_channel();
    let hear = move |it: ThreadResult| {
        let told = told.clone();
        async move { drop(told.send((it.status, it.payload.map(|it| it.text().into_owned())))) }
    };
    let opener = Listener::new("o").on(open).on_reply(hear).grant::<Threads>();
    let pump = start((answerer(), opener));
    let first = pump.tell(Down { n: 0 }).await.unwrap();
    for _ in 0..2 {
        assert_eq!(hears.recv().await.unwrap().0, ThreadStatus::Completed);
    }
    let story = grown(&pump, &first.thread, 5).await;
    assert_eq!(story[1..3], ["core > o: thread-spawned", "core > o: thread-spawned"]);
    assert_eq!(story[3..], ["core > o: thread-result", "core > o: thread-result"]);
}

#[tokio::test]
async fn a_call_of_a_listener_with_own_threads_runs_in_one() {
    let callee = Listener::new("callee").own_thread();
    let callee = callee.on(async |Question { n }: Question| Answer { n: n * 2 });
    let tell = async |out: Outbox<Answer>, history: History, it: ThreadResult| {
        let answer = Answer::decode(&it.payload.unwrap())?;
        out.reply_to(&history.read(0, 1).await?[0], answer).await
    };
    let caller = Listener::new("caller").on(async |Down { n }: Down| To("callee", Question { n }));
    let pump = start((callee, caller.on_reply(tell)));
    let n = pump.ask::<Answer>(Down { n: 21 }).await.unwrap();
    assert_eq!(n, Answer { n: 42 });
    let threads = pump.log().threads(None, 10).await.unwrap();
    assert_eq!(threads.len(), 2);
    let child = story(pump.log(), &threads[1].id).await;
    assert_eq!(child, ["caller > callee: question", "callee > caller: answer"]);
}

#[tokio::test]
async fn a_child_with_nothing_left_to_do_ends_empty() {
    let pump = start((Listener::new("mute").on(async |_: Question| ()), thread()));
    let it: ThreadSpawned = pump.ask(spawn("x", &Question { n: 1 })).await.unwrap();
    grown(&pump, &ThreadId::new(&it.parent_id), 3).await;
    let result = pump.log().read(&ThreadId::new(&it.parent_id), 2, 3, 1).await.unwrap();
    let text = String::from_utf8_lossy(&result[0].body).into_owned();
    assert!(text.contains(r#"status="empty""#), "{text}");
}

#[tokio::test]
async fn a_child_whose_handler_fails_has_failed() {
    let stumble = async |_: Question| -> () { std::panic::panic_any("over its own feet") };
    let pump = start((Listener::new("clumsy").on(stumble), thread()));
    let it: ThreadSpawned = pump.ask(spawn("x", &Question { n: 1 })).await.unwrap();
    let parent = ThreadId::new(&it.parent_id);
    grown(&pump, &parent, 3).await;
    let result = pump.log().read(&parent, 2, 3, 1).await.unwrap().remove(0);
    let text = String::from_utf8_lossy(&result.body).into_owned();
    assert!(text.contains(r#"status="failed""#) && text.contains("P0015"), "{text}");
    assert_eq!(state(pump.log(), &ThreadId::new(&it.assigned_id)).await, ThreadState::Failed);
}

#[tokio::test]
async fn what_nobody_takes_opens_no_thread() {
    let pump = start(thread());
    let refused = pump.ask::<ThreadSpawned>(spawn("x", &Question { n: 1 })).await.unwrap_err();
    assert!(matches!(&refused, AskError::Failed(huh) if huh.code == "P0011"), "{refused}");
    let forged = Done {}.encode().unwrap();
    let initial_payload = InitialPayload { payload: forged };
    let forged = SpawnThread { metadata: None, suggested_sub_id: None, initial_payload };
    let refused = pump.ask::<ThreadSpawned>(forged).await.unwrap_err();
    assert!(matches!(&refused, AskError::Failed(huh) if huh.code == "P0010"), "{refused}");
    assert_eq!(pump.log().threads(None, 10).await.unwrap().len(), 2, "the two sessions");
}

#[tokio::test]
async fn threads_are_no_deeper_than_they_may_be() {
    let deeper = async |Down { n }: Down| Spawn::new(Down { n: n + 1 });
    let deep = Listener::new("deep").on(deeper).grant::<Threads>();
    let pump = start(deep);
    pump.tell(Down { n: 0 }).await.unwrap();
    let threads = async || pump.log().threads(None, 20).await.unwrap();
    crate::eventually(async || threads().await.len() >= 11).await;
    let threads = threads().await;
    let last = &threads[10].id;
    let story = grown(&pump, last, 3).await;
    let refused = ["deep > *: down refused", "core > deep: huh"];
    assert_eq!(story[1..3], refused);
}

#[tokio::test]
async fn a_cancel_stops_what_runs_answers_what_waits_and_lets_nothing_run_after() {
    let (told, mut hears) = mpsc::unbounded_channel();
    let slow = move |cancel: Cancel, Question { n }: Question| {
        let told = told.clone();
        async move {
            drop(told.send(format!("begins {n}")));
            cancel.cancelled().await;
            drop(told.send(format!("stops {n}")));
        }
    };
    let slow = Listener::new("slow").serial().on(slow);
    let pump = start((slow, thread()));
    let first = pump.tell(Question { n: 1 }).await.unwrap();
    assert_eq!(hears.recv().await.unwrap(), "begins 1");
    let here = pump.in_thread(&first.thread);
    let (one, other) = (here.clone(), here.clone());
    let waits = tokio::spawn(async move { one.ask::<Answer>(Question { n: 2 }).await });
    crate::eventually(async || story(pump.log(), &first.thread).await.len() >= 2).await;
    let why = CancelThread { thread: None, reason: Some("enough".into()) };
    let over: ThreadCancelled = other.ask(why).await.unwrap();
    let (by, reason) = (over.by.as_str(), over.reason.as_deref());
    assert_eq!((by, reason), ("console", Some("enough")));
    assert!(matches!(waits.await.unwrap(), Err(AskError::Failed(huh)) if huh.code == "P0041"));
    assert_eq!(hears.recv().await.unwrap(), "stops 1");
    assert!(hears.try_recv().is_err(), "the second never began");
    assert_eq!(state(pump.log(), &first.thread).await, ThreadState::Cancelled);
    assert!(pump.log().open_entries().await.unwrap().is_empty(), "nothing would run after a stop");
    let late = here.tell(Question { n: 3 }).await.unwrap_err();
    assert_eq!(late.to_string(), format!("P0040: {} is cancelled", first.thread));
}

#[tokio::test]
async fn a_cancel_reaches_all_below_and_the_thread_above_hears_of_it() {
    let (held, mut holds) = mpsc::unbounded_channel::<oneshot::Sender<()>>();
    let hold = move |Down { n }: Down| {
        let held = held.clone();
        async move {
            if n > 0 {
                return Some(Spawn::new(Down { n: n - 1 }).label("below"));
            }
            let (go, gone) = oneshot::channel();
            drop(held.send(go));
            drop(gone.await);
            None
        }
    };
    let deep = Listener::new("deep").on(hold).grant::<Threads>();
    let pump = start((deep, thread()));
    let it: ThreadSpawned = pump.ask(spawn("top", &Down { n: 2 })).await.unwrap();
    let bottom = holds.recv().await.unwrap();
    let parent = ThreadId::new(&it.parent_id);
    let cancel = CancelThread { thread: Some(it.assigned_id.clone()), reason: None };
    let over: ThreadCancelled = pump.in_thread(&parent).ask(cancel).await.unwrap();
    assert_eq!(over.thread, it.assigned_id);
    for record in pump.log().tree(&ThreadId::new(&it.assigned_id)).await.unwrap() {
        assert_eq!(record.state, ThreadState::Cancelled, "{}", record.id);
    }
    assert!(bottom.is_closed() || bottom.send(()).is_err(), "the handler was dropped");
    let results = story(pump.log(), &parent).await;
    assert_eq!(results.last().unwrap(), "core > console: thread-result");
    let elsewhere = CancelThread { thread: Some("sess-00000000".into()), reason: None };
    let refused = pump.in_thread(&parent).ask::<ThreadCancelled>(elsewhere).await.unwrap_err();
    assert!(refused.other::<SystemThreadError>().is_some(), "{refused}");
}

#[test]
fn a_thread_that_pauses_keeps_what_comes_until_it_goes_on() {
    let sim = Sim::new(1);
    let pump = start_in(&sim, (answerer(), thread()));
    let first = sim.run(pump.tell(Question { n: 1 })).unwrap().unwrap();
    let here = pump.in_thread(&first.thread);
    let pause = PauseThread { thread: None, reason: None };
    let _: ThreadPaused = sim.run(here.ask(pause)).unwrap().unwrap();
    let asking = here.clone();
    let came = beside(&sim, async move { asking.ask::<Answer>(Question { n: 7 }).await });
    pass(&sim);
    assert!(came.lock().unwrap().is_none(), "it is paused");
    let resume = ResumeThread { thread: None, reason: None };
    let _: ThreadResumed = sim.run(here.ask(resume)).unwrap().unwrap();
    pass(&sim);
    assert_eq!(came.lock().unwrap().take().unwrap().unwrap(), Answer { n: 8 });
}

#[tokio::test]
async fn what_ends_takes_along_what_is_below_it() {
    let (held, mut holds) = mpsc::unbounded_channel::<oneshot::Sender<()>>();
    let hold = move |Question { .. }: Question| {
        let held = held.clone();
        async move {
            let (go, gone) = oneshot::channel();
            drop(held.send(go));
            drop(gone.await);
        }
    };
    let holder = Listener::new("holder").on(hold);
    let open = async |Down { n }: Down| (Spawn::new(Question { n }), Answer { n });
    let opener = Listener::new("opener").on(open).grant::<Threads>();
    let pump = start((holder, opener, thread()));
    let it: ThreadSpawned = pump.ask(spawn("top", &Down { n: 2 })).await.unwrap();
    grown(&pump, &ThreadId::new(&it.parent_id), 3).await;
    let tree = pump.log().tree(&ThreadId::new(&it.assigned_id)).await.unwrap();
    let states: Vec<_> = tree.iter().map(|it| it.state).collect();
    assert_eq!(states, [ThreadState::Closed], "the answer stands before the child");
    assert!(holds.try_recv().is_err());
}

#[tokio::test]
async fn what_is_for_later_comes_when_its_time_comes_and_not_before() {
    let later =
        async |clock: Clock, Down { n }: Down| Later::at(clock.now_us() + n, Question { n });
    let (told, mut hears) = mpsc::unbounded_channel();
    let due = move |clock: Clock, message: Message, Question { n }: Question| {
        let told = told.clone();
        let cause = message.cause().cloned();
        async move { drop(told.send((n, clock.now_us(), cause))) }
    };
    let pump = start(Listener::new("l").on(later).on(due).grant::<Timers>());
    let thread = pump.tell(Down { n: 50_000 }).await.unwrap().thread;
    pump.in_thread(&thread).tell(Down { n: 1_000 }).await.unwrap();
    let (n, at, _) = hears.recv().await.unwrap();
    assert_eq!(n, 1_000);
    let (n, later_at, cause) = hears.recv().await.unwrap();
    assert_eq!(n, 50_000);
    let seq = cause.unwrap().seq;
    let waited = pump.log().read(&thread, seq - 1, seq, 1).await.unwrap().remove(0);
    assert_eq!((&*waited.from, waited.name.local()), ("l", "question"));
    let sent = pump.log().read(&thread, 0, 1, 1).await.unwrap()[0].at_us;
    assert!(later_at >= sent + 50_000 && at < later_at);
}

#[test]
fn what_is_for_later_survives_a_stop_and_comes_once() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pumphouse.db");
    let (told, mut hears) = mpsc::unbounded_channel();
    let listener = || {
        let later =
            async |clock: Clock, Down { n }: Down| Later::at(clock.now_us() + n, Question { n });
        let told = told.clone();
        let due = move |Question { n }: Question| {
            let told = told.clone();
            async move {
                let _ = told.send(n);
            }
        };
        Listener::new("l").on(later).on(due).grant::<Timers>()
    };
    crash(&file, listener(), async |pump| {
        pump.tell(Down { n: 300_000 }).await.unwrap();
        grown(&pump, &only_thread(&pump).await, 2).await;
        assert_eq!(pump.log().open_entries().await.unwrap().len(), 1, "what waits is open");
    });
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let pump = again(&file, listener()).await;
        assert_eq!(hears.recv().await.unwrap(), 300_000);
        pump.shutdown().await.unwrap();
        let pump = again(&file, listener()).await;
        assert!(pump.log().open_entries().await.unwrap().is_empty(), "nothing waits any more");
        pump.shutdown().await.unwrap();
        assert!(hears.try_recv().is_err(), "once");
    });
}

#[tokio::test]
async fn what_is_for_later_wakes_a_tree_that_was_let_go() {
    let later =
        async |clock: Clock, Down { n }: Down| Later::at(clock.now_us() + n, Question { n });
    let (told, mut hears) = mpsc::unbounded_channel();
    let due = move |Question { n }: Question| {
        let told = told.clone();
        async move {
            let _ = told.send(n);
        }
    };
    let limits = Limits { trees_awake_max: 1, ..Limits::default() };
    let listener = Listener::new("l").on(later).on(due).grant::<Timers>();
    let plan = pumphouse::builder().with(listener).limits(limits).workers(1).build();
    let pump = plan.unwrap().start();
    for n in [600_000, 500_000, 400_000] {
        pump.tell(Down { n }).await.unwrap();
    }
    for n in [400_000, 500_000, 600_000] {
        assert_eq!(hears.recv().await.unwrap(), n);
    }
}

#[test]
fn a_wait_is_over_when_enough_threads_have_ended() {
    let sim = Sim::new(1);
    let (held, mut holds) = mpsc::unbounded_channel::<oneshot::Sender<()>>();
    let hold = move |Question { n }: Question| {
        let held = held.clone();
        async move {
            let (go, gone) = oneshot::channel();
            drop(held.send(go));
            drop(gone.await);
            Answer { n }
        }
    };
    let pump = start_in(&sim, (Listener::new("holder").on(hold), thread()));
    let it: ThreadSpawned = sim.run(pump.ask(spawn("x", &Question { n: 0 }))).unwrap().unwrap();
    let here = pump.in_thread(&ThreadId::new(&it.parent_id));
    for n in 1..3 {
        let _: ThreadSpawned = sim.run(here.ask(spawn("x", &Question { n }))).unwrap().unwrap();
    }
    let wait = |mode, timeout| AwaitThreads { mode, count: Some(2), timeout, thread: vec![] };
    let late = wait(None, Some(SignedDuration::from_millis(20)));
    let late: ThreadsAwaited = sim.run(here.ask(late)).unwrap().unwrap();
    assert!(!late.complete && late.thread.len() == 3 && late.thread[0].status.is_none());
    let waits = |mode| {
        let here = here.clone();
        beside(&sim, async move { here.ask::<ThreadsAwaited>(wait(mode, None)).await.unwrap() })
    };
    let (any, two, all) = (waits(Some(Mode::Any)), waits(Some(Mode::First)), waits(None));
    let ended = |it: ThreadsAwaited| it.thread.iter().filter(|it| it.status.is_some()).count();
    pass(&sim);
    for (enough, wait) in [(1, any), (2, two), (3, all)] {
        assert!(wait.lock().unwrap().is_none(), "{enough} threads haven't ended");
        holds.try_recv().unwrap().send(()).unwrap();
        pass(&sim);
        let it = wait.lock().unwrap().take().unwrap();
        assert!(it.complete);
        assert_eq!(ended(it), enough);
    }
    let unknown = AwaitThreads { mode: None, count: None, timeout: None, thread: vec!["x".into()] };
    let refused = sim.run(here.ask::<ThreadsAwaited>(unknown)).unwrap().unwrap_err();
    assert!(refused.other::<SystemThreadError>().is_some(), "{refused}");
}

#[test]
fn a_thread_that_is_named_twice_counts_once() {
    let sim = Sim::new(1);
    let hold = async |Question { n }: Question| match n {
        0 => Answer { n },
        _ => std::future::pending().await,
    };
    let pump = start_in(&sim, (Listener::new("holder").on(hold), thread()));
    let ended: ThreadSpawned = sim.run(pump.ask(spawn("x", &Question { n: 0 }))).unwrap().unwrap();
    let here = pump.in_thread(&ThreadId::new(&ended.parent_id));
    let open: ThreadSpawned = sim.run(here.ask(spawn("x", &Question { n: 1 }))).unwrap().unwrap();
    pass(&sim);
    let [ended, open] = [ended, open].map(|it| it.assigned_id);
    let wait = AwaitThreads {
        mode: Some(Mode::First),
        count: Some(2),
        timeout: Some(SignedDuration::from_millis(20)),
        thread: vec![ended.clone(), ended.clone(), open.clone()],
    };
    let it: ThreadsAwaited = sim.run(here.ask(wait)).unwrap().unwrap();
    assert!(!it.complete, "{it:?}");
    assert_eq!(it.thread.into_iter().map(|it| it.id).collect::<Vec<_>>(), [ended, open]);
}

#[tokio::test]
async fn why_of_an_answer_to_who_waited_names_every_thread_that_had_ended() {
    let pump = start((answerer(), thread()));
    let it: ThreadSpawned = pump.ask(spawn("x", &Question { n: 0 })).await.unwrap();
    let here = pump.in_thread(&ThreadId::new(&it.parent_id));
    for n in 1..3 {
        let _: ThreadSpawned = here.ask(spawn("x", &Question { n })).await.unwrap();
    }
    let all = AwaitThreads { mode: None, count: None, timeout: None, thread: vec![] };
    let _: ThreadsAwaited = here.ask(all).await.unwrap();
    let entries = pump.log().read(&ThreadId::new(&it.parent_id), 0, u64::MAX, 100).await.unwrap();
    let awaited = entries.iter().find(|it| it.name == ThreadsAwaited::NAME).unwrap();
    let steps = why(&**pump.log(), &awaited.id).await.unwrap().unwrap();
    let on_way = steps.iter().map(|it| &it.entry.id.thread);
    let beside = steps.iter().flat_map(|it| &it.joined).map(|it| &it.thread);
    let named: BTreeSet<_> = on_way.chain(beside).map(ToString::to_string).collect();
    let children = ["", ".x", ".x-1", ".x-2"].map(|below| format!("{}{below}", it.parent_id));
    assert_eq!(named, BTreeSet::from(children));
}

#[tokio::test]
async fn what_is_partial_below_another_thread_is_recorded_there_only() {
    let down = async |Down { n }: Down| match n {
        0 => (None, None, Some(Final(Answer { n: 0 }))),
        n => (Some(Partial(Answer { n })), Some(Again(Down { n: n - 1 })), None),
    };
    let pump = start((Listener::new("chain").on(down), thread()));
    let it: ThreadSpawned = pump.ask(spawn("work", &Down { n: 1 })).await.unwrap();
    let parent = grown(&pump, &ThreadId::new(&it.parent_id), 3).await;
    assert_eq!(parent[2], "core > console: thread-result");
    let child = story(pump.log(), &ThreadId::new(&it.assigned_id)).await;
    let told = [
        "console > chain: down",
        "chain > *: answer",
        "chain > chain: down",
        "chain > console: answer",
    ];
    assert_eq!(child, told);
}

#[tokio::test]
async fn a_thread_that_only_opens_another_ends_with_what_came_of_that() {
    let wall = async |Question { n }: Question| {
        assert!(n > 0, "none");
        Answer { n }
    };
    let open = || start((thread(), Listener::new("wall").on(wall)));
    for (n, status, holds) in [(4, "completed", "<n>4</n>"), (0, "failed", "P0015")] {
        let pump = open();
        let inner = spawn("c", &Question { n });
        let outer = spawn("a", &spawn("b", &inner));
        let it: ThreadSpawned = pump.ask(outer).await.unwrap();
        let top = ThreadId::new(&it.parent_id);
        crate::settled(&pump).await;
        let all = pump.log().tree(&top).await.unwrap();
        let depth = |it: &ThreadId| it.as_str().matches('.').count();
        assert_eq!(all.iter().map(|it| depth(&it.id)).collect::<Vec<_>>(), [0, 1, 2, 3]);
        for it in &all[..3] {
            let below = it.id.child(["a", "b", "c"][depth(&it.id)], 0);
            let entries = pump.log().read(&it.id, 0, u64::MAX, 10).await.unwrap();
            let result = entries.iter().find(|it| it.name == ThreadResult::NAME).unwrap();
            let text = String::from_utf8_lossy(&result.body);
            assert!(text.contains(&format!("status=\"{status}\" thread=\"{below}\"")), "{text}");
            assert!(text.contains(holds), "{text}");
        }
        pump.shutdown().await.unwrap();
    }
}
