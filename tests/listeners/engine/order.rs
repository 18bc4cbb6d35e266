//! In which order handlers run, and how many of them at once.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pumphouse::prelude::*;
use pumphouse::sim::Sim;

use super::{Answer, Question, beside, pass, start, start_in};

#[derive(Clone, Default)]
struct Seen {
    now: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
    order: Arc<Mutex<Vec<u64>>>,
}

async fn work(State(seen): State<Seen>, Question { n }: Question) {
    let now = seen.now.fetch_add(1, SeqCst) + 1;
    seen.most.fetch_max(now, SeqCst);
    tokio::time::sleep(Duration::from_millis(1 + n % 3)).await;
    seen.order.lock().unwrap().push(n);
    seen.now.fetch_sub(1, SeqCst);
}

#[tokio::test]
async fn a_serial_listener_takes_a_threads_messages_one_by_one() {
    let seen = Seen::default();
    let pump = start(Listener::with_state("a", seen.clone()).on(work).serial());
    let first = pump.tell(Question { n: 0 }).await.unwrap();
    let here = pump.in_thread(&first.thread);
    for n in 1..40 {
        here.tell(Question { n }).await.unwrap();
    }
    pump.shutdown().await.unwrap();
    assert_eq!(seen.most.load(SeqCst), 1);
    assert_eq!(*seen.order.lock().unwrap(), (0..40).collect::<Vec<_>>());
}

#[tokio::test]
async fn others_run_at_once_up_to_the_limit() {
    for one_thread in [true, false] {
        let seen = Seen::default();
        let limits = Limits { handlers_max: 5, ..Limits::default() };
        let it = Listener::with_state("a", seen.clone()).on(work);
        let plan = pumphouse::builder().with(it).limits(limits).workers(3).build();
        let pump = plan.unwrap().start();
        let first = pump.tell(Question { n: 0 }).await.unwrap();
        for n in 1..60 {
            let here = if one_thread { pump.in_thread(&first.thread) } else { pump.clone() };
            here.tell(Question { n }).await.unwrap();
        }
        pump.shutdown().await.unwrap();
        assert_eq!(seen.most.load(SeqCst), 5);
        assert_eq!(seen.order.lock().unwrap().len(), 60);
    }
}

#[tokio::test]
async fn a_tree_with_much_to_do_does_some_of_it_at_once_however_many_others_have() {
    const TREES: u64 = 64;
    const LENGTH: u64 = 32;
    type Trees = Arc<Mutex<Vec<u64>>>;
    let trees = Trees::default();
    let down = async |State(trees): State<Trees>, Question { n }: Question| {
        trees.lock().unwrap().push(n / LENGTH);
        (n % LENGTH > 0).then(|| Again(Question { n: n - 1 }))
    };
    let limits =
        Limits { steps_in_batch_max: usize::try_from(TREES).unwrap(), ..Limits::default() };
    let it = Listener::with_state("a", trees.clone()).on(down).inline().pure();
    let pump = pumphouse::builder().with(it).limits(limits).workers(1).build().unwrap().start();
    let chains = (1..=TREES).map(|tree| pump.tell(Question { n: tree * LENGTH - 1 }));
    futures_util::future::try_join_all(chains).await.unwrap();
    pump.shutdown().await.unwrap();
    let trees = trees.lock().unwrap();
    assert_eq!(trees.len() as u64, TREES * LENGTH);
    let turns = trees.chunk_by(|one, other| one == other).count();
    assert!(trees.len() / turns >= 4, "{} messages in {turns} turns", trees.len());
}

#[tokio::test]
async fn a_serial_listener_may_take_all_that_waits() {
    let takes = Arc::new(Mutex::new(Vec::new()));
    type Takes = Arc<Mutex<Vec<usize>>>;
    let take = async |State(takes): State<Takes>,
                      Queue(rest): Queue,
                      history: History,
                      message: Message,
                      _: Question| {
        let last = rest.last().map_or(message.seq(), Entry::seq);
        assert_eq!(history.all().await.unwrap().last().unwrap().seq(), last);
        tokio::time::sleep(Duration::from_millis(20)).await;
        takes.lock().unwrap().push(1 + rest.len());
    };
    let pump = start(Listener::with_state("a", takes.clone()).on(take).serial());
    let first = pump.tell(Question { n: 0 }).await.unwrap();
    for n in 1..10 {
        pump.in_thread(&first.thread).tell(Question { n }).await.unwrap();
    }
    pump.shutdown().await.unwrap();
    let takes = takes.lock().unwrap().clone();
    assert_eq!(takes.iter().sum::<usize>(), 10);
    assert!(takes.len() < 10, "{takes:?}");
    assert!(pump.log().open_entries().await.unwrap().is_empty());
}

#[test]
fn doors_wait_while_a_thread_has_too_much_to_do() {
    let sim = Sim::new(1);
    let limits = Limits { unconsumed_max: 2, ..Limits::default() };
    let hold = Arc::new(tokio::sync::Semaphore::new(0));
    let wait = async |State(hold): State<Arc<tokio::sync::Semaphore>>, Question { n }: Question| {
        hold.acquire().await.unwrap().forget();
        Answer { n }
    };
    let it = Listener::with_state("a", hold.clone()).on(wait);
    let pump = pumphouse::builder().with(it).limits(limits).build().unwrap().start_on(&sim);
    let first = sim.run(pump.tell(Question { n: 0 })).unwrap().unwrap();
    let here = pump.in_thread(&first.thread);
    sim.run(here.tell(Question { n: 1 })).unwrap().unwrap();
    let third = here.clone();
    let came = beside(&sim, async move { third.tell(Question { n: 2 }).await });
    pass(&sim);
    assert!(came.lock().unwrap().is_none(), "it was taken at once");
    hold.add_permits(10);
    sim.run(here.tell(Question { n: 3 })).unwrap().unwrap();
    pass(&sim);
    assert!(came.lock().unwrap().take().is_some_and(|told| told.is_ok()));
    sim.run(pump.shutdown()).unwrap().unwrap();
}

/// What a handler at work waits for.
#[derive(Clone, Debug, PartialEq, Payload)]
#[payload(ns = "urn:test")]
struct Enough {}

#[test]
fn a_handler_at_work_hears_of_what_comes_for_its_listener_in_its_thread() {
    let sim = Sim::new(1);
    let draw = async |arrivals: Arrivals, Question { n }: Question| {
        assert!(!arrivals.has::<Enough>());
        let never = std::future::pending::<()>();
        assert_eq!(arrivals.unless::<Enough, _>(never).await, None);
        assert!(arrivals.has::<Enough>() && !arrivals.has::<Question>());
        Answer { n }
    };
    let ended = Arc::new(Mutex::new(Vec::new()));
    type Ended = Arc<Mutex<Vec<u64>>>;
    let enough = async |State(ended): State<Ended>, message: Message, _: Enough| {
        ended.lock().unwrap().push(message.seq());
    };
    let it = Listener::with_state("a", ended.clone()).on(draw).on(enough).serial();
    let pump = start_in(&sim, it);
    let first = sim.run(pump.tell(Enough {})).unwrap().unwrap();
    let here = pump.in_thread(&first.thread);
    let asking = here.clone();
    let answer = beside(&sim, async move { asking.ask::<Answer>(Question { n: 7 }).await });
    // Of another thread, and before it began: neither counts.
    sim.run(pump.tell(Enough {})).unwrap().unwrap();
    pass(&sim);
    assert!(answer.lock().unwrap().is_none(), "nothing came for it");
    sim.run(here.tell(Enough {})).unwrap().unwrap();
    pass(&sim);
    assert_eq!(answer.lock().unwrap().take().unwrap().unwrap(), Answer { n: 7 });
    sim.run(pump.shutdown()).unwrap().unwrap();
    assert_eq!(ended.lock().unwrap().len(), 3, "each is handled, too");
}
