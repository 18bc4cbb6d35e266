//! Replay: pure listeners produce what the log has, or the replay shows the first difference.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pumphouse::engine::{Replayed, Tokio};
use pumphouse::limits::Limits;
use pumphouse::listener::{Spawn, Threads};
use pumphouse::listeners::thread::{InitialPayload, SpawnThread};
use pumphouse::prelude::*;
use pumphouse::wire::core::{ThreadResult, ThreadSpawned};

use super::{Answer, Down, Question, start};

/// The sum of all questions so far.
#[derive(Clone, Debug, Default)]
struct Total(u64);

impl Apply for Total {
    fn apply(&mut self, entry: &Entry) {
        self.0 += entry.decode().map_or(0, |Question { n }| n);
    }
}

type Sum = Fold<Total>;

/// A lucky number.
#[derive(Clone, Debug, PartialEq, Payload)]
#[payload(ns = "urn:test")]
struct Lucky {
    n: u64,
}

/// How listeners are tampered with between a run and its replay.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Tampered {
    No,
    Sum,
    Less,
    More,
    To,
    Fault,
}

/// Pure: answers with a sum, sends before that, counts down, draws, stumbles, calls.
fn pure(tampered: Tampered) -> Listener {
    let answer = move |sum: Sum, history: History, out: Outbox<Answer>, it: Question| async move {
        let seen = history.all().await?.len() as u64;
        out.send(Answer { n: seen }).await?;
        assert!(it.n != 13 || tampered == Tampered::Fault, "thirteen");
        let more = u64::from(tampered == Tampered::Sum);
        Ok::<_, Fault>(Answer { n: sum.0.0 + more })
    };
    let down = move |it: Down| async move {
        let next = Again(Down { n: it.n.saturating_sub(1) });
        let again = if tampered == Tampered::More { true } else { it.n > 0 };
        let done = (it.n == 2 && tampered != Tampered::Less).then_some(To("sink", Answer { n: 2 }));
        let to = if tampered == Tampered::To { "other" } else { "sink" };
        let call = (it.n == 1).then_some(To(to.to_owned(), Question { n: 1 }));
        (again.then_some(next), done, call)
    };
    let lucky = async |mut random: Random, clock: Clock, _: Lucky| Lucky {
        n: random.next_u64() ^ clock.now_us(),
    };
    Listener::new("pure").on(answer).on(down).on(lucky).fold::<Total>().pure()
}

/// Not pure: every answer is another.
fn chance() -> Listener {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = async |_: Answer| Lucky { n: COUNT.fetch_add(1, Ordering::Relaxed) };
    Listener::new("sink").on(count).on_named(schema_of_question(), async |_: Element| ())
}

fn schema_of_question() -> pumphouse::schema::Schema {
    Question::schema().clone()
}

fn cast(tampered: Tampered) -> Vec<Listener> {
    let mut all = crate::usual();
    all.extend([pure(tampered).shared(), chance().shared()]);
    all.push(Listener::new("other").on(async |_: Question| ()).shared());
    all
}

async fn replayed(pump: &Pump, thread: &ThreadId, tampered: Tampered) -> Replayed {
    let plan = pumphouse::builder().with(cast(tampered)).build().unwrap();
    plan.replay(pump.log(), thread, &Tokio::current()).await.unwrap()
}

/// A run with all that pure listeners do, settled; its thread.
async fn ran(pump: &Pump) -> ThreadId {
    let first = pump.to("pure").tell(Question { n: 3 }).await.unwrap();
    let here = pump.in_thread(&first.thread);
    here.to("pure").ask::<Answer>(Question { n: 4 }).await.unwrap();
    here.ask::<Lucky>(Lucky { n: 0 }).await.unwrap();
    let _ = here.to("pure").ask::<Answer>(Question { n: 13 }).await;
    let initial_payload = InitialPayload { payload: Down { n: 3 }.encode().unwrap() };
    let spawn =
        SpawnThread { metadata: None, suggested_sub_id: Some("sub".into()), initial_payload };
    here.tell(spawn).await.unwrap();
    here.tell(Down { n: 2 }).await.unwrap();
    crate::settled(pump).await;
    first.thread
}

#[tokio::test]
async fn what_the_pump_itself_tells_a_pure_listener_is_compared_too() {
    let cast = || {
        let opens = async |Down { n }: Down| Spawn::new(Question { n });
        let boss = Listener::new("boss").on(opens).pure();
        let boss = boss.on_reply(async |_: ThreadSpawned| ()).on_reply(async |_: ThreadResult| ());
        let worker = Listener::new("worker").on(async |Question { n }: Question| Answer { n });
        (boss.grant::<Threads>(), worker.pure())
    };
    let pump = start(cast());
    let thread = pump.tell(Down { n: 1 }).await.unwrap().thread;
    crate::settled(&pump).await;
    let plan = pumphouse::builder().with(cast()).build().unwrap();
    let it = plan.replay(pump.log(), &thread, &Tokio::current()).await.unwrap();
    assert_eq!((&it.difference, &it.skipped[..]), (&None, &[][..]));
    let compared: Vec<_> = it.compared.iter().map(|(it, n)| (&**it, *n)).collect();
    assert_eq!((compared, it.taken.len()), (vec![("boss", 3), ("worker", 1)], 0));
}

#[tokio::test]
async fn what_is_pure_comes_to_the_same() {
    let pump = start(cast(Tampered::No));
    let thread = ran(&pump).await;
    let same = replayed(&pump, &thread, Tampered::No).await;
    assert_eq!(same.difference, None);
    assert_eq!(same.skipped, []);
    let compared: Vec<_> = same.compared.iter().map(|(it, n)| (&**it, *n)).collect();
    assert_eq!(compared, [("pure", 3 + 1 + 4 + 3 + 2)]);
    let taken: Vec<_> = same.taken.iter().map(|(it, n)| (&**it, *n)).collect();
    assert_eq!(taken, [("sink", 4), ("thread", 1)]);
    let unknown = ThreadId::new("sess-nobodys");
    let plan = pumphouse::builder().with(cast(Tampered::No)).build().unwrap();
    assert!(plan.replay(pump.log(), &unknown, &Tokio::current()).await.is_err());
    pump.shutdown().await.unwrap();
}

#[tokio::test]
async fn the_first_difference_is_shown() {
    let pump = start(cast(Tampered::No));
    let thread = ran(&pump).await;
    let check = async |tampered: Tampered, recorded: Option<&str>, now: Option<&str>| {
        let it = replayed(&pump, &thread, tampered).await.difference;
        let it = it.unwrap_or_else(|| panic!("{tampered:?} makes no difference"));
        assert_eq!(it.entry.is_some(), recorded.is_some());
        for (said, expected) in [(&it.recorded, recorded), (&it.now, now)] {
            let said = said.as_ref().map(|it| {
                let to = it.to.as_deref().unwrap_or("*");
                format!("{to}: {}", String::from_utf8_lossy(&it.body))
            });
            match (said, expected) {
                (Some(said), Some(expected)) => assert!(said.contains(expected), "{said}"),
                (said, expected) => assert_eq!(said.as_deref(), expected, "{tampered:?}"),
            }
        }
        it.message
    };
    let first = EntryId::new(&thread, 1);
    let at = check(Tampered::Sum, Some("<n>3</n>"), Some("<n>4</n>")).await;
    assert_eq!(at, first);
    let at = check(Tampered::Fault, Some("P0015"), Some("<n>20</n>")).await;
    assert_eq!(at.thread, thread);
    check(Tampered::Less, Some("sink: <answer"), None).await;
    check(Tampered::More, None, Some("pure: <down")).await;
    check(Tampered::To, Some("sink: <question"), Some("other: <question")).await;
    pump.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_fork_is_replayed_with_what_it_shares() {
    let pump = start(cast(Tampered::No));
    let thread = ran(&pump).await;
    let at = EntryId::new(&thread, 5);
    let fork = pump.fork_at(&at).to("pure").tell(Question { n: 100 }).await.unwrap();
    pump.in_thread(&fork.thread).to("pure").ask::<Answer>(Question { n: 1 }).await.unwrap();
    crate::settled(&pump).await;
    let same = replayed(&pump, &fork.thread, Tampered::No).await;
    assert_eq!((same.difference, same.skipped.len()), (None, 0));
    assert_eq!(same.compared.get("pure"), Some(&4));
    let other = replayed(&pump, &fork.thread, Tampered::Sum).await.difference.unwrap();
    assert_eq!(other.message, EntryId::new(&thread, 1), "what it shares is its own past");
    pump.shutdown().await.unwrap();
}

#[tokio::test]
async fn what_was_not_handled_is_not_compared() {
    let late = async |_: Down| std::future::pending::<Answer>().await;
    let pump = start(Listener::new("late").on(late).pure());
    let first = pump.tell(Down { n: 1 }).await.unwrap();
    let plan = || pumphouse::builder().with(Listener::new("late").on(late).pure());
    let plan = plan().build().unwrap();
    let replayed = plan.replay(pump.log(), &first.thread, &Tokio::current()).await.unwrap();
    assert_eq!(replayed.skipped.len(), 1);
    assert_eq!(
        (replayed.skipped[0].why, &replayed.skipped[0].message),
        ("it is under way", &first)
    );
    let log: Arc<dyn pumphouse::log::Log> = pump.log().clone();
    assert_eq!(log.read(&first.thread, 0, 9, 9).await.unwrap().len(), 1, "nothing is written");
}

/// Has a thread opened below.
#[derive(Clone, Debug, PartialEq, Payload)]
#[payload(ns = "urn:test")]
struct Deeper {
    n: u64,
    /// In the name of who sent this.
    #[payload(attribute)]
    for_sender: bool,
}

/// Opens threads, one below the other.
fn nest() -> Listener {
    let open = async |it: Deeper| {
        let first = Spawn::new(Deeper { n: it.n + 1, ..it });
        if it.for_sender { first.for_sender() } else { first }
    };
    Listener::new("nest").on(open).grant::<Threads>().pure()
}

#[tokio::test]
async fn what_a_budget_refused_is_no_difference() {
    let deeper = |for_sender| Deeper { n: 1, for_sender }.encode().unwrap();
    type Bound = fn(&mut Limits);
    let bounds: [(Element, Bound); 4] = [
        (Down { n: 9 }.encode().unwrap(), |it| it.tree_messages_max = 3),
        (deeper(false), |it| it.thread_depth_max = 2),
        (deeper(true), |it| it.thread_depth_max = 2),
        (deeper(false), |it| it.tree_children_max = 1),
    ];
    for (at, (first, bound)) in bounds.into_iter().enumerate() {
        let plan = || {
            let mut limits = Limits::default();
            bound(&mut limits);
            let plugins = (cast(Tampered::No), nest());
            pumphouse::builder().with(plugins).limits(limits).build().unwrap()
        };
        let pump = plan().start();
        let thread = pump.tell_element(first).await.unwrap().thread;
        crate::settled(&pump).await;
        let same = plan().replay(pump.log(), &thread, &Tokio::current()).await.unwrap();
        assert_eq!(same.difference, None, "case {at}");
        assert!(same.compared.values().sum::<u64>() > 1, "case {at}: {:?}", same.skipped);
        pump.shutdown().await.unwrap();
    }
}
