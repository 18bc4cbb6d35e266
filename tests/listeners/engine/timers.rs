//! Timers: how many a thread may have, how often they may tick, and that every timer ticks.

use pumphouse::limits::XmlLimits;
use std::time::Duration;

use pumphouse::listeners::timer::{
    ClearTimer, SetTimer, Tick, TimerCleared, TimerRefused, TimerSet, timer,
};
use pumphouse::listeners::todo::todo;
use pumphouse::listeners::todo::words::{TodoRegistered, TodoUntil};
use pumphouse::prelude::*;
use pumphouse::schema;
use pumphouse::sim::{Disk, Sim};
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
    let limits = Limits { thread_timers_max: timers_max, ..Limits::default() };
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

#[tokio::test]
async fn taking_back_what_isnt_set_yet_takes_nothing_back() {
    let (pump, here) = thread_of(3).await;
    // The request is 2, its answer 3, and what is set next 4.
    let cleared: TimerCleared = here.ask(ClearTimer { timer: 4 }).await.unwrap();
    assert!(!cleared.was_set);
    let set = here.tell(after(0)).await.unwrap();
    assert_eq!(set.seq, 4);
    let mut follow = pump.follow(&set.thread, set.seq);
    let ticked = async {
        loop {
            if let pumphouse::engine::Followed::Entry(it) = follow.next().await.unwrap()
                && it.is::<Tick>()
            {
                break;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(10), ticked).await.expect("it ticks");
    pump.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_pattern_that_is_none_is_told_by_its_field() {
    let pump = start(timer());
    for (pattern, expected) in [
        ("61 * * * *", "cron: 61 is no minute; it takes 0 to 59, or *, "),
        ("* * * 13 *", "cron: 13 is no month; it takes 1 to 12 or JAN to DEC, or *, "),
        ("99 0 * * * *", "cron: 99 is no second; it takes 0 to 59, or *, "),
        ("* *", "cron takes five fields, minute, hour, day, month and weekday, as in "),
        ("@dayly", "cron: @dayly is no pattern; there is @hourly, @daily, @midnight, "),
    ] {
        let set = SetTimer { cron: Some(pattern.into()), ..NONE };
        let refused = pump.ask::<TimerSet>(set).await.unwrap_err().other::<TimerRefused>();
        let message = refused.unwrap().message;
        assert!(message.starts_with(expected), "{pattern}: {message}");
    }
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

#[tokio::test]
async fn an_interval_of_zero_is_refused_whatever_the_limit_is() {
    let limits = Limits { timer_every_min: Duration::ZERO, ..Limits::default() };
    let pump = pumphouse::builder().with(timer()).limits(limits).build().unwrap().start();
    let every = Some(SignedDuration::ZERO);
    let error = pump.ask::<TimerSet>(SetTimer { every, ..NONE }).await.unwrap_err();
    let refused: TimerRefused = error.other().unwrap();
    let text = "timer_every_min is 0.000001 s; say every=\"PT0.000001S\" or more";
    assert_eq!(refused.message, text);
    pump.shutdown().await.unwrap();
}

/// A machine on virtual time, and a disk that outlives it.
fn machine(seed: u64) -> (Sim, Disk) {
    let sim = Sim::new(seed);
    let disk = Disk::new(&sim);
    (sim, disk)
}

fn start_on(sim: &Sim, disk: &Disk) -> Pump {
    let plan = pumphouse::builder().with((timer(), disk.log()));
    plan.build().unwrap().start_on(sim)
}

/// The ticks on a disk in whole seconds: when each was due since time began, how late it was, and
/// how many were missed.
fn ticks(sim: &Sim, disk: &Disk) -> Vec<(i64, i64, u64)> {
    let all = sim.run(disk.kept().tail(0, 10_000)).unwrap().unwrap();
    let ticks = all.iter().filter(|it| it.name == Tick::NAME).map(|it| {
        let tick = Tick::read(Element::from_canonical(it.body.clone()).unwrap().view()).unwrap();
        let due = tick.due.as_microsecond() - Sim::BEGINS_US.cast_signed();
        (due / 1_000_000, tick.late.as_secs(), tick.missed.unwrap_or(0))
    });
    ticks.collect()
}

#[test]
fn what_ticks_over_and_over_catches_up_with_one_tick() {
    let (sim, disk) = machine(7);
    let pass = |seconds| sim.run(sim.sleep(Duration::from_secs(seconds))).unwrap();
    let pump = start_on(&sim, &disk);
    let every = Some(SignedDuration::from_secs(10));
    let _: TimerSet = sim.run(pump.ask(SetTimer { every, ..NONE })).unwrap().unwrap();
    pass(35);
    sim.crash();
    pass(60);
    let _pump = start_on(&sim, &disk);
    pass(10);
    let all = [(10, 0, 0), (20, 0, 0), (30, 0, 0), (40, 55, 5), (100, 0, 0)];
    assert_eq!(ticks(&sim, &disk), all);
}

#[test]
fn a_pattern_fits_by_the_clock_and_a_time_once() {
    let (sim, disk) = machine(7);
    let pump = start_on(&sim, &disk);
    let begins = i64::try_from(Sim::BEGINS_US / 1_000_000).unwrap();
    let at = Timestamp::from_second(begins + 400).unwrap();
    for it in [
        SetTimer { cron: Some("*/5 * * * *".into()), ..NONE },
        SetTimer { cron: Some("30 */7 * * * *".into()), ..NONE },
        SetTimer { cron: Some("@hourly".into()), ..NONE },
        SetTimer { at: Some(at), ..NONE },
        after(2_000),
    ] {
        let _: TimerSet = sim.run(pump.ask(it)).unwrap().unwrap();
    }
    sim.run(sim.sleep(Duration::from_secs(900))).unwrap();
    let fives = (1..=900).filter(|it| (begins + it) % 300 == 0);
    let sevens =
        (1..=900).filter(|it| (begins + it) % 60 == 30 && (begins + it) / 60 % 60 % 7 == 0);
    let hours = (1..=900).filter(|it| (begins + it) % 3_600 == 0);
    let mut due: Vec<i64> = fives.chain(sevens).chain(hours).chain([2, 400]).collect();
    due.sort_unstable();
    assert_eq!(ticks(&sim, &disk).iter().map(|it| it.0).collect::<Vec<_>>(), due);
}

#[test]
fn a_timer_ticks_once_whenever_the_machine_stops() {
    for seed in 0..100 {
        let (sim, disk) = machine(seed);
        let pump = start_on(&sim, &disk);
        let _: TimerSet = sim.run(pump.ask(after(5))).unwrap().unwrap();
        sim.run(sim.sleep(Duration::from_micros(sim.below(10_000)))).unwrap();
        sim.crash();
        let _pump = start_on(&sim, &disk);
        sim.rest().unwrap();
        assert_eq!(ticks(&sim, &disk).len(), 1, "seed {seed}");
    }
}
