//! Timers: how many a thread may have, how often they may tick, and that all of them do.

use pumphouse::limits::XmlLimits;
use pumphouse::listeners::timer::{
    ClearTimer, SetTimer, Tick, TimerCleared, TimerRefused, TimerSet, timer,
};
use pumphouse::listeners::todo::todo;
use pumphouse::listeners::todo::words::{TodoRegistered, TodoUntil};
use pumphouse::prelude::*;
use pumphouse::schema;
use pumphouse::wire::budget::RaiseBudget;
use pumphouse::wire::{SignedDuration, Timestamp};
use pumphouse::xml::{self, Profile};

use super::{Question, start};

const NONE: SetTimer = SetTimer { after: None, at: None, every: None, cron: None, note: None };

/// One that is due in some lifetimes.
fn far() -> SetTimer {
    SetTimer { at: Some("2999-01-01T00:00:00Z".parse::<Timestamp>().unwrap()), ..NONE }
}

fn after(millis: i64) -> SetTimer {
    SetTimer { after: Some(SignedDuration::from_millis(millis)), ..NONE }
}

/// A pump with a thread in it, where so many timers may be set.
async fn thread_of(timers_max: usize) -> (Pump, Pump) {
    let mut limits = Limits::default();
    limits.thread_timers_max = timers_max;
    let quiet = Listener::new("quiet").on(async |_: Question| {});
    let plan = pumphouse::builder().with((quiet, timer())).limits(limits).build();
    let pump = plan.unwrap().start();
    let thread = pump.tell(Question { n: 1 }).await.unwrap().thread;
    let here = pump.in_thread(&thread);
    (pump, here)
}

#[tokio::test]
async fn timers_are_bounded_also_when_many_are_set_at_once() {
    let (pump, here) = thread_of(3).await;
    let asked = (0..20).map(|_| here.ask::<TimerSet>(far()));
    let answers = futures_util::future::join_all(asked).await;
    let set: Vec<u64> = answers.iter().flatten().map(|it| it.timer).collect();
    assert_eq!(set.len(), 3, "{answers:?}");
    let refused = here.ask::<TimerSet>(far()).await.unwrap_err().other::<TimerRefused>();
    let text = "thread_timers_max is 3, and 3 timers are set here; \
                take one back with <clear-timer>";
    assert_eq!(refused.unwrap().message, text);
    // One that is taken back makes room, and so does one that has ticked.
    let cleared: TimerCleared = here.ask(ClearTimer { timer: set[0] }).await.unwrap();
    assert!(cleared.was_set);
    let again: TimerCleared = here.ask(ClearTimer { timer: set[0] }).await.unwrap();
    assert!(!again.was_set);
    let short = here.tell(after(0)).await.unwrap();
    let mut follow = pump.follow(&short.thread, short.seq);
    loop {
        let next = follow.next().await.unwrap();
        if let pumphouse::engine::Followed::Entry(it) = next
            && it.is::<Tick>()
        {
            break;
        }
    }
    let _: TimerSet = here.ask(far()).await.unwrap();
    pump.shutdown().await.unwrap();
}

/// What everybody is told that one looks like.
fn example<P: Payload>() -> P {
    let text = schema::example(P::schema());
    P::decode(&xml::read(text, Profile::Wire, &XmlLimits::DOOR).unwrap()).unwrap()
}

#[tokio::test]
async fn the_example_of_one_is_one() {
    let shown: SetTimer = example();
    assert_eq!(shown, SetTimer { note: shown.note.clone(), ..after(5_000) });
    let pump = start((timer(), todo()));
    let _: TimerSet = pump.ask(shown).await.unwrap();
    let _: TodoRegistered = pump.ask(example::<TodoUntil>()).await.unwrap();
    let raise: RaiseBudget = example();
    assert_eq!((raise.by.is_some(), raise.to.is_some()), (true, false));
    pump.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_timer_ticks_no_oftener_than_it_may() {
    let pump = start(timer());
    for (millis, fits) in [(999, false), (0, false), (1_000, true)] {
        let every = Some(SignedDuration::from_millis(millis));
        match pump.ask::<TimerSet>(SetTimer { every, ..NONE }).await {
            Ok(_) => assert!(fits, "{millis}"),
            Err(error) => {
                let refused: TimerRefused = error.other().unwrap();
                let text = "timer_every_min is 1 s; say every=\"PT1S\" or more";
                assert_eq!((fits, &*refused.message), (false, text), "{millis}");
            }
        }
    }
    pump.shutdown().await.unwrap();
}
