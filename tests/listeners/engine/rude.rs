//! Listeners that panic, hang, flood or never yield, all at once. A well-behaved neighbour isn't
//! affected, and each message to such a listener has one outcome.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};

use pumphouse::log::Log;
use pumphouse::prelude::*;

use super::{Answer, Question};

const PANICS: u64 = 1_000;
const HANGS: u64 = 100;
const FLOODS: u64 = 100;
/// What one message may cause, unless `just rude` says: as many as there are without a manifest.
const EMISSIONS: usize = 60;
/// Longer than anything here takes, also where others use the machine.
const PATIENCE: Duration = Duration::from_secs(300);

/// Panic!
#[derive(Clone, Debug, Payload)]
#[payload(ns = "urn:test")]
struct Panic {}

/// Never answer.
#[derive(Clone, Debug, Payload)]
#[payload(ns = "urn:test")]
struct Hang {}

/// Answer more than anybody may.
#[derive(Clone, Debug, Payload)]
#[payload(ns = "urn:test")]
struct Flood {}

/// Say something, and never give the thread back.
#[derive(Clone, Debug, Payload)]
#[payload(ns = "urn:test")]
struct Spin {}

fn rude(emissions: usize, over: &Arc<AtomicBool>) -> impl Plugin + use<> {
    // The hook, which would print a thousand lines, isn't called; all else is as in a panic.
    let panic = async |_: Panic| -> () { std::panic::resume_unwind(Box::new("rude")) };
    let hang = async |_: Hang| std::future::pending::<()>().await;
    let flood = async |State(most): State<usize>, _: Flood| vec![Answer { n: 0 }; most + 1];
    let spin = async |State(over): State<Arc<AtomicBool>>, out: Outbox<Answer>, _: Spin| {
        drop(out.send(Answer { n: 0 }));
        while !over.load(SeqCst) {
            std::hint::spin_loop();
        }
    };
    let soon = Duration::from_millis(50);
    (
        Listener::new("panics").on(panic),
        Listener::new("hangs").on(hang).timeout(soon),
        Listener::with_state("floods", emissions).on(flood),
        Listener::with_state("spins", over.clone()).on(spin).timeout(soon),
        Listener::new("behaves").on(async |Question { n }: Question| Answer { n }),
    )
}

/// Tells a message so many times, each in a thread of its own.
async fn told<P: Payload + Clone>(pump: &Pump, it: P, count: u64) {
    let told = (0..count).map(|_| pump.tell(it.clone()));
    for accepted in futures_util::future::join_all(told).await {
        accepted.unwrap();
    }
}

/// How often a neighbour was answered while others were rude.
async fn neighbour(pump: &Pump, over: &AtomicBool) -> u64 {
    let mut count = 0;
    while !over.load(SeqCst) || count < 100 {
        let asked = pump.ask::<Answer>(Question { n: count });
        assert_eq!(asked.await.unwrap(), Answer { n: count });
        count += 1;
    }
    count
}

/// What came of the messages of each name: how many there were, by how many answers and faults
/// each had.
async fn ends(log: &Arc<dyn Log>) -> BTreeMap<(String, usize, usize), u64> {
    let mut ends = BTreeMap::new();
    for thread in log.threads(None, usize::MAX).await.unwrap() {
        let entries = log.read(&thread.id, 0, u64::MAX, usize::MAX).await.unwrap();
        for asked in entries.iter().filter(|it| it.receivers > 0) {
            let replies = entries.iter().filter(|it| it.reply_to.as_ref() == Some(&asked.id));
            let (faults, answers): (Vec<_>, Vec<_>) =
                replies.partition(|it| it.name.local() == "huh");
            let key = (asked.name.local().to_owned(), answers.len(), faults.len());
            *ends.entry(key).or_default() += 1;
        }
    }
    ends
}

/// Ends those who never yield, however the test ends.
struct Over(Arc<AtomicBool>);

impl Drop for Over {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_speaks_and_never_yields_again_stops_nobody() {
    let over = Over(Arc::default());
    let spin = async |State(over): State<Arc<AtomicBool>>, out: Outbox<Answer>, _: Spin| {
        // By now whoever started it waits for something to do.
        tokio::time::sleep(Duration::from_millis(20)).await;
        drop(out.send(Answer { n: 0 }));
        while !over.load(SeqCst) {
            std::hint::spin_loop();
        }
    };
    let behaves = Listener::new("behaves").on(async |Question { n }: Question| Answer { n });
    let all = (Listener::with_state("spins", over.0.clone()).on(spin), behaves);
    let pump = pumphouse::builder().with(all).workers(1).build().unwrap().start();
    pump.tell(Spin {}).await.unwrap();
    tokio::time::sleep(Duration::from_millis(100)).await;
    let answer =
        tokio::time::timeout(Duration::from_secs(20), pump.ask::<Answer>(Question { n: 1 }));
    assert_eq!(answer.await.expect("the pump works on").unwrap(), Answer { n: 1 });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_wakes_and_never_yields_again_holds_up_no_timer() {
    let over = Over(Arc::default());
    let spin = async |State(over): State<Arc<AtomicBool>>, _: Spin| {
        // Whoever waits for all timers is woken by this one, and runs what it is for.
        tokio::time::sleep(Duration::from_millis(20)).await;
        while !over.load(SeqCst) {
            std::hint::spin_loop();
        }
    };
    let pump = pumphouse::builder().with(Listener::with_state("spins", over.0.clone()).on(spin));
    let pump = pump.workers(1).build().unwrap().start();
    let ends = over.0.clone();
    std::thread::spawn(move || {
        std::thread::park_timeout(Duration::from_secs(20));
        ends.store(true, SeqCst);
    });
    pump.tell(Spin {}).await.unwrap();
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(!over.0.load(SeqCst), "the timer came while it span");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_blocks_on_what_it_sent_is_told_at_once() {
    let blocks = async |out: Outbox<Answer>, _: Spin| {
        // By now nobody else has anything to do.
        tokio::time::sleep(Duration::from_millis(20)).await;
        let sent = out.send(Answer { n: 0 });
        let here = tokio::runtime::Handle::current();
        tokio::task::block_in_place(|| here.block_on(sent)).unwrap();
        Answer { n: 1 }
    };
    let blocks = Listener::new("blocks").on(blocks).timeout(Duration::from_secs(20));
    let pump = pumphouse::builder().with(blocks).workers(1).build().unwrap().start();
    let began = Instant::now();
    pump.ask::<Answer>(Spin {}).await.unwrap();
    pump.shutdown().await.unwrap();
    assert!(began.elapsed() < Duration::from_secs(10), "it waited for its own end");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn rude_listeners_harm_nobody_and_each_message_has_one_end() {
    #[expect(clippy::disallowed_methods, reason = "`just rude` says how much")]
    let emissions = std::env::var("PUMPHOUSE_RUDE").ok().and_then(|it| it.parse().ok());
    let emissions = emissions.unwrap_or(EMISSIONS);
    let over = Arc::new(AtomicBool::new(false));
    let _over = Over(over.clone());
    let limits = Limits { emissions_max: emissions, drain_time_max: PATIENCE, ..Limits::default() };
    let plan = pumphouse::builder().with(rude(emissions, &over)).limits(limits).workers(2).build();
    let pump = plan.unwrap().start();
    let answered = tokio::spawn({
        let (pump, over) = (pump.clone(), over.clone());
        async move { neighbour(&pump, &over).await }
    });
    let began = Instant::now();
    let all = async {
        told(&pump, Spin {}, 1).await;
        told(&pump, Panic {}, PANICS).await;
        told(&pump, Hang {}, HANGS).await;
        told(&pump, Flood {}, FLOODS).await;
        let count = PANICS + HANGS + FLOODS + 1;
        loop {
            let ends = ends(pump.log()).await;
            let ended =
                ends.iter().filter(|((name, _, faults), _)| name != "question" && *faults > 0);
            if ended.map(|it| it.1).sum::<u64>() == count {
                break;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, all).await.expect("each has its end");
    over.store(true, SeqCst);
    let answered = tokio::time::timeout(PATIENCE, answered).await.expect("nobody is stuck");
    let answered = answered.unwrap();
    println!("{answered} answers beside the rude, in {:?}", began.elapsed());
    pump.shutdown().await.unwrap();
    let expected = BTreeMap::from([
        (("flood".to_owned(), emissions, 1), FLOODS),
        (("hang".to_owned(), 0, 1), HANGS),
        (("panic".to_owned(), 0, 1), PANICS),
        (("question".to_owned(), 1, 0), answered),
        (("spin".to_owned(), 1, 1), 1),
    ]);
    assert_eq!(ends(pump.log()).await, expected);
}
