//! A sink that the program itself reads.

use pumphouse::listeners::echo::Echo;
use pumphouse::prelude::*;
use pumphouse::sink::{Item, Sink};

/// How far the work is.
#[derive(Clone, Debug, PartialEq, Payload)]
#[payload(ns = "urn:test", live)]
struct Progress {
    percent: u64,
}

/// Works.
#[derive(Clone, Debug, PartialEq, Payload)]
#[payload(ns = "urn:test")]
struct Work {
    times: u64,
}

#[tokio::test]
async fn a_slow_program_gets_every_entry_in_order() {
    let (sink, mut items) = Sink::channel("program", 1);
    let builder = pumphouse::builder().with(pumphouse::listeners::standard());
    let pump = builder.with(sink.drop_deltas()).build().unwrap().start();
    for number in 0..20 {
        pump.ask::<Echo>(Echo { text: number.to_string() }).await.unwrap();
    }
    for position in 1..=40 {
        let Some(Item::Entry(entry)) = items.next().await else { panic!("an entry comes") };
        assert_eq!(entry.position, position);
    }
    pump.shutdown().await.unwrap();
    assert!(items.next().await.is_none(), "the pump has stopped");
}

#[tokio::test]
async fn the_oldest_live_payloads_are_dropped_and_counted() {
    let work = async |live: Outbox<Progress>, Work { times }: Work| {
        for percent in 1..=times {
            live.live(&Progress { percent });
        }
    };
    let (sink, mut items) = Sink::channel("program", 1);
    let limits = Limits { live_lag_max: 4, ..Limits::default() };
    let builder = pumphouse::builder().limits(limits).with(sink);
    let pump = builder.with(Listener::new("worker").on(work)).build().unwrap().start();
    // They are all shown before the sink has its turn: this runtime has one thread.
    let message = pump.tell(Work { times: 100 }).await.unwrap();
    let (mut dropped, mut shown) = (0, Vec::new());
    while shown.last() != Some(&100) {
        match items.next().await.unwrap() {
            Item::Dropped { thread, count } => {
                assert_eq!(thread, Some(message.thread.clone()));
                dropped += count;
            }
            Item::Live(it) => {
                assert_eq!((&*it.from, &it.cause), ("worker", &message));
                let text = it.payload.canonical();
                let text = std::str::from_utf8(&text).unwrap();
                let number = text.split(['>', '<']).find_map(|it| it.parse::<u64>().ok());
                shown.push(number.unwrap());
            }
            Item::Entry(it) => assert_eq!(it.id, message),
            other => panic!("{other:?}"),
        }
    }
    let count = u64::try_from(shown.len()).unwrap();
    assert_eq!(dropped + count, 100);
    assert!(dropped > 0 && shown.is_sorted(), "{dropped} {shown:?}");
    pump.shutdown().await.unwrap();
}
