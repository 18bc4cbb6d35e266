//! Checklists: their limits, how long they last, and how open steps are reported.

use std::sync::Arc;
use std::time::Duration;

use pumphouse::engine::{Follow, Followed};
use pumphouse::listeners::thread::{InitialPayload, SpawnThread, thread};
use pumphouse::listeners::todo::list::Todos;
use pumphouse::listeners::todo::todo;
use pumphouse::listeners::todo::words::{
    Step, StepsOpen, TodoClosed, TodoComplete, TodoNudge, TodoRefused, TodoRegistered, TodoUntil,
};
use pumphouse::log::{Log, MemoryLog, State as ThreadState};
use pumphouse::prelude::*;
use pumphouse::sim::{Disk, Sim};
use pumphouse::wire::core::{ThreadResult, ThreadSpawned, ThreadStatus};

use super::{Answer, Down, Question, start, story};

fn list(condition: &str, steps: &[(&str, bool)]) -> TodoUntil {
    let step = |(text, done): &(&str, bool)| Step { done: Some(*done), text: (*text).into() };
    let (condition, step) = (condition.into(), steps.iter().map(step).collect());
    TodoUntil { condition, wait_for: None, from: None, step }
}

/// One that waits for an answer.
fn waiting(condition: &str) -> TodoUntil {
    TodoUntil { wait_for: Some("answer".into()), ..list(condition, &[]) }
}

fn answerer() -> Listener {
    Listener::new("a").on(async |Question { n }: Question| Answer { n: n + 1 })
}

/// The next entry.
async fn entry(follow: &mut Follow) -> Entry {
    loop {
        if let Followed::Entry(it) = follow.next().await.unwrap() {
            return it;
        }
    }
}

/// The reminder that a thread's next entries end with.
async fn nudge(pump: &Pump, thread: &ThreadId, after: u64) -> TodoNudge {
    let mut follow = pump.follow(thread, after);
    loop {
        let entry = entry(&mut follow).await;
        if entry.is::<TodoNudge>() {
            return entry.decode().unwrap();
        }
    }
}

#[tokio::test]
async fn lists_are_bounded_also_when_many_are_asked_for_at_once() {
    let limits = Limits { thread_todos_max: 3, ..Limits::default() };
    let pump = pumphouse::builder().with((answerer(), todo())).limits(limits);
    let pump = pump.build().unwrap().start();
    let thread = pump.tell(Question { n: 1 }).await.unwrap().thread;
    let here = pump.in_thread(&thread);
    let asked = (0..20).map(|n| {
        let here = here.clone();
        async move { here.ask::<TodoRegistered>(list(&format!("list {n}"), &[])).await }
    });
    let answers = futures_util::future::join_all(asked).await;
    let kept: Vec<u64> = answers.iter().flatten().map(|it| it.id).collect();
    assert_eq!(kept.len(), 3, "{answers:?}");
    let refused: TodoRefused = answers.into_iter().find_map(|it| it.err()?.other()).unwrap();
    let way = "close one with <todo-complete>, or add your steps to one";
    let text = format!("thread_todos_max is 3, and 3 todos are open here; {way}");
    assert!(refused.message.ends_with(way), "{}", refused.message);
    // The same list anew is no further one, and one that is closed makes room.
    let entries = pump.log().read(&thread, 0, u64::MAX, 1_000).await.unwrap();
    let first = entries.iter().find(|it| it.id.seq == kept[0]).unwrap();
    let first: TodoUntil = Element::from_canonical(first.body.clone())
        .map(|it| TodoUntil::read(it.view()).unwrap())
        .unwrap();
    let again: TodoRegistered = here.ask(list(&first.condition, &[("one", false)])).await.unwrap();
    assert_eq!((again.id, again.open, again.total), (kept[0], 1, 1));
    let more = here.ask::<TodoRegistered>(list("more", &[])).await.unwrap_err();
    assert_eq!(more.other::<TodoRefused>().unwrap().message, text);
    let _: TodoClosed = here.ask(TodoComplete { id: kept[1] }).await.unwrap();
    let _: TodoRegistered = here.ask(list("more", &[])).await.unwrap();
    pump.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_list_outlives_a_restart() {
    let log: Arc<dyn Log> = Arc::new(MemoryLog::new());
    let begin = || {
        let kept = log.clone();
        start((answerer(), todo(), move |it: &mut Builder| it.log(kept)))
    };
    let pump = begin();
    let thread = pump.tell(waiting("answered")).await.unwrap().thread;
    let _: TodoRegistered = pump.in_thread(&thread).ask(waiting("twice")).await.unwrap();
    let last = log.thread(&thread).await.unwrap().unwrap().last_seq;
    // A memory log that is closed takes no more: the second pump stands beside the first.
    let pump = begin();
    let _: Answer = pump.in_thread(&thread).ask(Question { n: 1 }).await.unwrap();
    let it = nudge(&pump, &thread, last).await;
    assert_eq!(
        it.text,
        "[SYSTEM NOTE: The following todos appear complete:]\n  \
         - Waiting for answer (answered): received from a\n    \
         Close with: <todo-complete><id>1</id></todo-complete>"
    );
}

#[tokio::test]
async fn a_list_keeps_no_thread_alive() {
    let plan = async |_: Question| To("todo", list("never", &[("rest", false)]));
    let pump = start((Listener::new("planner").on(plan), todo(), thread()));
    let first = InitialPayload { payload: Question { n: 1 }.encode().unwrap() };
    let it = SpawnThread {
        metadata: None,
        suggested_sub_id: Some("plan".into()),
        initial_payload: first,
    };
    let it: ThreadSpawned = pump.ask(it).await.unwrap();
    let mut follow = pump.follow(&ThreadId::new(&it.parent_id), 2);
    let result: ThreadResult = entry(&mut follow).await.decode().unwrap();
    assert_eq!(result.status, ThreadStatus::Empty);
    let child = pump.log().thread(&ThreadId::new(&it.assigned_id)).await.unwrap().unwrap();
    assert_eq!(child.state, ThreadState::Closed);
    assert!(pump.log().open_entries().await.unwrap().is_empty(), "its list waits no more");
    pump.shutdown().await.unwrap();
}

/// Keeps a list, does one step of two, and says that all is done.
fn hasty() -> Listener {
    let begin = async |Down { .. }: Down| {
        To("todo", list("all sources checked", &[("Search web", true), ("Analyze results", false)]))
    };
    let end = async |todos: Fold<Todos>, _: TodoRegistered| {
        (todos.left().map(Partial), Final(Answer { n: 42 }))
    };
    let hasty = Listener::new("hasty").on(begin).on_reply(end).fold::<Todos>();
    hasty.grant::<EmitCore>()
}

#[tokio::test]
async fn a_final_response_with_steps_open_says_which() {
    let pump = start((hasty(), todo()));
    let thread = pump.tell(Down { n: 1 }).await.unwrap().thread;
    let mut follow = pump.follow(&thread, 0);
    while !entry(&mut follow).await.is::<Answer>() {}
    let told = story(pump.log(), &thread).await;
    let (notice, answer) = (told.len() - 2, told.len() - 1);
    assert_eq!(told[notice..], ["hasty > console: steps-open", "hasty > console: answer"]);
    let entry = pump.log().read(&thread, notice as u64, answer as u64, 1).await.unwrap();
    let notice = Element::from_canonical(entry[0].body.clone()).unwrap();
    let notice = StepsOpen::read(notice.view()).unwrap();
    assert_eq!(notice.todo[0].condition, "all sources checked");
    assert_eq!(notice.todo[0].step, ["Analyze results"]);
    pump.shutdown().await.unwrap();
}

#[test]
fn a_reminder_comes_once_whenever_the_machine_stops() {
    for seed in 0..100 {
        let sim = Sim::new(seed);
        let disk = Disk::new(&sim);
        let start = || {
            let plan = pumphouse::builder().with((answerer(), todo(), disk.log()));
            plan.build().unwrap().start_on(&sim)
        };
        let pump = start();
        let id = sim.run(pump.tell(waiting("answered"))).unwrap().unwrap();
        let here = pump.in_thread(&id.thread);
        sim.run(here.ask::<Answer>(Question { n: 1 })).unwrap().unwrap();
        sim.run(sim.sleep(Duration::from_micros(sim.below(5_000)))).unwrap();
        sim.crash();
        let _pump = start();
        sim.rest().unwrap();
        let all = sim.run(disk.kept().read(&id.thread, 0, u64::MAX, 100)).unwrap().unwrap();
        let nudges = all.iter().filter(|it| it.name == TodoNudge::NAME).count();
        assert_eq!(nudges, 1, "seed {seed}: {all:#?}");
        let open = sim.run(disk.kept().open_entries()).unwrap().unwrap();
        assert_eq!(open.len(), 1, "seed {seed}: the list stays open");
    }
}
