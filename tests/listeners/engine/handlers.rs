//! Handlers: what they may take, how they end, and what happens to their message then.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use pumphouse::listeners::echo::Echo;
use pumphouse::prelude::*;
use pumphouse::wire::core::ContextCleared;

use super::{Answer, Down, Question, only_thread, start, story};

fn failed(error: AskError) -> String {
    match error {
        AskError::Failed(huh) => huh.code,
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn a_panic_is_one_fault_and_the_thread_lives_on() {
    for inline in [true, false] {
        let answer = async |Question { n }: Question| {
            assert!(n > 0, "none");
            Answer { n }
        };
        let it = Listener::new("a").on(answer);
        let pump = start(if inline { it.inline() } else { it });
        let first = pump.tell(Question { n: 1 }).await.unwrap();
        let pump = pump.in_thread(&first.thread);
        let error = pump.ask::<Answer>(Question { n: 0 }).await.unwrap_err();
        assert_eq!(failed(error), "P0015");
        assert_eq!(pump.ask::<Answer>(Question { n: 5 }).await.unwrap(), Answer { n: 5 });
    }
}

#[tokio::test]
async fn a_handler_out_of_time_is_one_fault_and_what_it_sent_stays() {
    let slow = async |out: Outbox<Answer>, Question { n }: Question| {
        let _kept = out.send(Answer { n }).await;
        std::future::pending::<()>().await;
    };
    let it = Listener::new("a").on(slow).timeout(Duration::from_millis(30));
    let pump = start(it);
    assert_eq!(pump.ask::<Answer>(Question { n: 3 }).await.unwrap(), Answer { n: 3 });
    pump.shutdown().await.unwrap();
    let told = ["console > a: question", "a > console: answer", "core > console: huh"];
    assert_eq!(story(pump.log(), &only_thread(&pump).await).await, told);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_handler_that_never_yields_is_reported_and_harms_nobody() {
    let stop = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let never = async |State(stop): State<Arc<std::sync::atomic::AtomicBool>>, _: Down| {
        while !stop.load(SeqCst) {
            std::thread::yield_now();
        }
    };
    let stuck = Listener::with_state("stuck", stop.clone()).on(never).blocking();
    let stuck = stuck.timeout(Duration::from_millis(20));
    let pump = start((stuck, Listener::new("a").on(async |Question { n }: Question| Answer { n })));
    let error = pump.ask::<Done>(Down { n: 1 }).await.unwrap_err();
    assert_eq!(failed(error), "P0014");
    assert_eq!(pump.ask::<Answer>(Question { n: 5 }).await.unwrap(), Answer { n: 5 });
    stop.store(true, SeqCst);
}

#[tokio::test]
async fn what_breaks_its_own_facets_is_one_fault() {
    /// Says a number.
    #[derive(Debug, Payload)]
    #[payload(ns = "urn:test")]
    struct Narrow {
        #[payload(max = 9)]
        digit: u8,
    }
    let say = async |_: Question| Narrow { digit: 10 };
    let pump = start(Listener::new("a").on(say));
    assert_eq!(failed(pump.ask::<Narrow>(Question { n: 1 }).await.unwrap_err()), "P0017");
}

#[tokio::test]
async fn a_character_that_xml_lacks_is_answered_as_its_replacement() {
    /// Says a text.
    #[derive(Debug, Payload)]
    #[payload(ns = "urn:test")]
    struct Said {
        #[payload(attribute)]
        name: String,
        text: String,
    }
    let say = async |_: Question| Said { name: "\u{1B}[1m".into(), text: "a\0b\u{FFFE}".into() };
    let pump = start(Listener::new("a").on(say));
    let said = pump.ask::<Said>(Question { n: 1 }).await.unwrap();
    assert_eq!((&*said.name, &*said.text), ("\u{FFFD}[1m", "a\u{FFFD}b\u{FFFD}"));
}

#[tokio::test]
async fn one_message_causes_only_so_many() {
    let flood = async |_: Question| vec![Answer { n: 1 }; 12];
    let limits = Limits { emissions_max: 10, ..Limits::default() };
    let plan = pumphouse::builder().with(Listener::new("a").on(flood)).limits(limits).build();
    let pump = plan.unwrap().start();
    pump.ask::<Answer>(Question { n: 1 }).await.unwrap();
    pump.shutdown().await.unwrap();
    let story = story(pump.log(), &only_thread(&pump).await).await;
    assert_eq!(story.len(), 12);
    assert_eq!(story[11], "core > console: huh");
}

/// The sum of all questions.
#[derive(Clone, Debug, Default)]
struct Total(u64);

impl Apply for Total {
    fn apply(&mut self, entry: &Entry) {
        if let Ok(Question { n }) = entry.decode() {
            self.0 += n;
        }
    }
}

#[tokio::test]
async fn a_fold_is_of_the_message_at_hand() {
    let total = async |Fold(it): Fold<Total>, _: Question| Answer { n: it.0 };
    for listener in [
        Listener::new("a").on(total).fold::<Total>(),
        Listener::new("a").on(total).fold::<Total>().inline(),
        Listener::new("a").on(total).fold::<Total>().serial(),
    ] {
        let pump = start(listener);
        let first = pump.tell(Question { n: 1 }).await.unwrap();
        let pump = pump.in_thread(&first.thread);
        for (n, sum) in [(2, 3), (3, 6), (4, 10)] {
            assert_eq!(pump.ask::<Answer>(Question { n }).await.unwrap(), Answer { n: sum });
        }
    }
}

#[tokio::test]
async fn a_fold_of_a_thread_that_slept_is_the_same() {
    let total = async |Fold(it): Fold<Total>, _: Question| Answer { n: it.0 };
    let limits = Limits { trees_awake_max: 1, ..Limits::default() };
    let it = Listener::new("a").on(total).fold::<Total>();
    let pump = pumphouse::builder().with(it).limits(limits).workers(1).build().unwrap().start();
    let mut threads = Vec::new();
    for _ in 0..5 {
        threads.push(pump.tell(Question { n: 1 }).await.unwrap().thread);
    }
    for round in 2..5 {
        for thread in &threads {
            let answer = pump.in_thread(thread).ask::<Answer>(Question { n: 1 }).await.unwrap();
            assert_eq!(answer, Answer { n: round });
        }
    }
}

#[tokio::test]
async fn chance_and_time_are_of_the_message() {
    let draw = async |mut it: Random, clock: Clock, message: Message, _: Question| {
        assert_eq!(clock.now_us(), message.at_us());
        Answer { n: it.next_u64() }
    };
    let pump = start(Listener::new("a").on(draw));
    let one = pump.ask::<Answer>(Question { n: 1 }).await.unwrap();
    let other = pump.ask::<Answer>(Question { n: 1 }).await.unwrap();
    assert_ne!(one, other);
}

#[tokio::test]
async fn live_payloads_reach_followers_only() {
    /// How far it is.
    #[derive(Clone, Debug, PartialEq, Payload)]
    #[payload(ns = "urn:test", live)]
    struct Progress {
        percent: u8,
    }
    let work = async |live: Outbox<Progress>, message: Message, _: Question| {
        if message.seq() > 1 {
            live.live(&Progress { percent: 50 });
        }
    };
    let pump = start(Listener::new("a").on(work));
    let first = pump.tell(Question { n: 1 }).await.unwrap();
    let mut follow = pump.follow(&first.thread, 0);
    pump.in_thread(&first.thread).ask::<Done>(Question { n: 2 }).await.unwrap();
    let (mut entries, mut live) = (0, 0);
    while entries < 3 || live < 1 {
        match follow.next().await.unwrap() {
            pumphouse::engine::Followed::Entry(_) => entries += 1,
            pumphouse::engine::Followed::Live(it) => {
                assert_eq!(Progress::decode(&it.payload).unwrap().percent, 50);
                assert_eq!((&*it.from, it.cause.seq), ("a", 2));
                live += 1;
            }
        }
    }
}

#[tokio::test]
async fn a_stop_lets_handlers_finish() {
    let count = Arc::new(AtomicUsize::new(0));
    let slow = async |State(count): State<Arc<AtomicUsize>>, _: Question| {
        tokio::task::yield_now().await;
        count.fetch_add(1, SeqCst);
    };
    let pump = start(Listener::with_state("a", count.clone()).on(slow));
    for n in 0..50 {
        pump.tell(Question { n }).await.unwrap();
    }
    pump.shutdown().await.unwrap();
    assert_eq!(count.load(SeqCst), 50);
    let fault = pump.tell(Question { n: 1 }).await.unwrap_err();
    assert_eq!(fault.code, pumphouse::wire::Code::Stopping);
}

/// Panics at the first question it sees.
#[derive(Clone, Debug, Default)]
struct Fragile;

impl Apply for Fragile {
    fn apply(&mut self, entry: &Entry) {
        assert!(!entry.is::<Question>(), "a question");
    }
}

#[tokio::test]
async fn a_fold_that_panics_harms_its_own_listener_only() {
    let limits = Limits { handlers_max: 2, ..Limits::default() };
    let fragile = Listener::new("a").on(async |_: Fold<Fragile>, _: Question| {}).fold::<Fragile>();
    let fragile = fragile.on(async |_: Fold<Fragile>, Down { n }: Down| Answer { n });
    let other = Listener::new("b").on(async |Answer { n }: Answer| Down { n });
    let plan = pumphouse::builder().with((fragile, other)).limits(limits).workers(1).build();
    let pump = plan.unwrap().start();
    for _ in 0..5 {
        let first = pump.tell(Question { n: 1 }).await.unwrap();
        let here = pump.in_thread(&first.thread);
        assert_eq!(here.ask::<Down>(Answer { n: 5 }).await.unwrap(), Down { n: 5 });
    }
    // The places of those that didn't begin are free.
    assert_eq!(pump.ask::<Answer>(Down { n: 5 }).await.unwrap(), Answer { n: 5 });
    pump.shutdown().await.unwrap();
}

/// Takes in nothing at all.
#[derive(Clone, Debug, Default)]
struct Never;

impl Apply for Never {
    fn apply(&mut self, entry: &Entry) {
        panic!("{} was to be taken in", entry.id());
    }
}

#[tokio::test]
async fn a_handler_that_takes_no_fold_waits_for_none() {
    let it = Listener::new("a").on(async |_: Fold<Never>, _: Question| {}).fold::<Never>();
    let pump = start(it.on(async |Down { n }: Down| Answer { n }));
    assert_eq!(pump.ask::<Answer>(Down { n: 5 }).await.unwrap(), Answer { n: 5 });
}

/// Asks so many times at once whoever waits until as many are there; how many waited for a place.
async fn crowd(listener: Listener, count: usize) -> u64 {
    let barrier = Arc::new(tokio::sync::Barrier::new(count));
    let meet = move |Question { n }: Question| {
        let barrier = barrier.clone();
        async move {
            barrier.wait().await;
            Answer { n }
        }
    };
    let pump = start(listener.on(meet));
    let asks = (0..count).map(|n| {
        let pump = pump.clone();
        tokio::spawn(async move { pump.ask::<Answer>(Question { n: n as u64 }).await })
    });
    for ask in asks.collect::<Vec<_>>() {
        let answered = tokio::time::timeout(Duration::from_secs(20), ask).await;
        answered.expect("all are there at once").unwrap().unwrap();
    }
    pump.metrics().handled[0].held_up
}

#[tokio::test]
async fn d13_two_hundred_turns_of_an_agent_run_at_once() {
    assert_eq!(crowd(Listener::new("agent").agent(), 200).await, 0);
    assert_eq!(crowd(Listener::new("other"), 20).await, 0);
}

#[tokio::test]
async fn who_waits_for_a_place_is_counted() {
    let limits = Limits { agents_at_once: 1, ..Limits::default() };
    let slow = async |Question { n }: Question| {
        tokio::time::sleep(Duration::from_millis(20)).await;
        Answer { n }
    };
    let agent = Listener::new("agent").agent().on(slow);
    let pump = pumphouse::builder().with(agent).limits(limits).build().unwrap().start();
    let (one, two) = (pump.ask::<Answer>(Question { n: 1 }), pump.ask::<Answer>(Question { n: 2 }));
    let (one, two) = tokio::join!(one, two);
    assert_eq!((one.unwrap().n, two.unwrap().n), (1, 2));
    assert_eq!(pump.metrics().handled[0].held_up, 1);
}

#[tokio::test]
async fn a_view_longer_than_a_page_has_every_entry_between_hidden_ones() {
    let clear = async |_: Down| {
        let except = Some((3..=1_400).collect());
        ContextCleared { kept_messages: 1, upto: 1_500, except, hidden: 1 }
    };
    let clearing = Listener::new("clearing").on(clear).grant::<EmitCore>();
    let see = async |view: View, _: Question| {
        let (mut all, mut last) = (Vec::new(), 0);
        loop {
            let page = view.read(last, 5_000).await?;
            let Some(entry) = page.last() else { break };
            last = entry.seq();
            all.extend(page.iter().map(Entry::seq));
        }
        let is_seen = |seq: &u64| *seq != 2 && !(1_401..=1_500).contains(seq);
        let expected: Vec<u64> = (1..=last).filter(is_seen).collect();
        Ok::<_, Fault>(Answer { n: u64::from(all == expected && last > 1_500) })
    };
    let seeing = Listener::new("seeing").on(see);
    let pump = start((clearing, seeing, pumphouse::listeners::echo::echo()));
    let first = pump.tell(Echo { text: "first".to_owned() }).await.unwrap();
    let pump = pump.in_thread(&first.thread);
    for number in 0..760 {
        pump.ask::<Echo>(Echo { text: number.to_string() }).await.unwrap();
    }
    pump.ask::<ContextCleared>(Down { n: 0 }).await.unwrap();
    assert_eq!(pump.ask::<Answer>(Question { n: 1 }).await.unwrap(), Answer { n: 1 });
}
