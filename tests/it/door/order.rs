//! The order of a door's lines: answers in push order, replies after their answers. Also pushes
//! that are sent twice.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use pumphouse::client::{Client, Incoming, Push};
use pumphouse::door::{Options, Tcp};
use pumphouse::listeners::echo::Echo;
use pumphouse::log::{self, Durability, SqliteLog};
use pumphouse::prelude::*;
use pumphouse::xml::Framing;
use tokio::sync::Semaphore;

use super::life::gated;
use super::{ECHO, House, echo, message, rest, short};

#[tokio::test]
async fn answers_come_in_push_order_whatever_is_wrong() {
    let house = House::new(|_| {}).await;
    for framing in [Framing::Element, Framing::Length] {
        let mut client = Client::connect_framed(house.address, framing).await.unwrap();
        let unknown = message("<thread>sess-00000000</thread>", ECHO);
        let forged = message("<from>x</from>", ECHO);
        for round in 0..50 {
            client.push(&echo(&round.to_string()).with_fresh_id());
            for it in ["<a xmlns='urn:a'/>", &unknown, ECHO, &forged, "<huh/>"] {
                client.push_raw(it.as_bytes());
            }
        }
        client.finish().await.unwrap();
        let all = rest(&mut client).await;
        let is_answer = |it: &&Incoming| !matches!(it, Incoming::Message(_));
        let answers: Vec<_> = all.iter().filter(is_answer).cloned().collect();
        assert_eq!(short(&answers), ["+ P0011 ? + P0009 P0010"; 50].join(" "));
        assert_eq!(all.len(), 50 * 8);
        replies_follow_their_answers(&all);
    }
}

/// Every message comes after the answer to the push that caused it.
fn replies_follow_their_answers(all: &[Incoming]) {
    let mut accepted = std::collections::HashSet::new();
    for it in all {
        match it {
            Incoming::Accepted { accepted: it, .. } => {
                assert!(accepted.insert(format!("{}/{}", it.thread, it.seq)));
            }
            Incoming::Message(it) => {
                assert!(accepted.contains(&it.cause.as_ref().unwrap().to_string()), "{it:?}");
            }
            _ => {}
        }
    }
}

#[tokio::test]
async fn a_reply_tells_where_it_stands() {
    let house = House::new(|_| {}).await;
    let mut client = house.client().await;
    let accepted = client.tell(&echo("a\nb").with_id("my <id>")).await.unwrap();
    assert_eq!((accepted.seq, accepted.id.as_deref()), (1, Some("my <id>")));
    let thread = ThreadId::new(&accepted.thread);
    let Some(Incoming::Message(reply)) = client.recv().await.unwrap() else { panic!("no reply") };
    assert_eq!(reply.from, "echo");
    assert_eq!(reply.to.as_deref(), Some("console"));
    assert_eq!(reply.thread.as_ref(), Some(&thread));
    assert_eq!(reply.entry, Some(EntryId::new(&thread, 2)));
    assert_eq!(reply.cause, Some(EntryId::new(&thread, 1)));
    assert!(reply.time.as_ref().is_some_and(|it| it.ends_with('Z')), "{reply:?}");
    assert_eq!(reply.decode::<Echo>().unwrap().text, "a\nb");
    let again = client.ask(&echo("again").in_thread(&thread).to("echo")).await.unwrap();
    assert_eq!(again.entry, Some(EntryId::new(&thread, 4)));
}

#[tokio::test]
async fn every_message_has_a_line() {
    let house = House::new(|_| {}).await;
    let text = house.exchange(ECHO.replace("hello", "a\n\nb").as_bytes()).await;
    assert_eq!(text.lines().count(), 2, "{text}");
    assert!(text.lines().all(|it| it.starts_with("<message ") && it.ends_with("</message>")));
    assert!(text.contains("<text>a&#xA;&#xA;b</text>"), "{text}");
}

#[tokio::test]
async fn the_same_push_under_the_same_id_is_recorded_once() {
    let house = House::new(|_| {}).await;
    let push = echo("once").with_fresh_id();
    let mut first = house.client().await;
    let accepted = first.tell(&push).await.unwrap();
    drop(first);
    let mut second = house.client().await;
    assert_eq!(second.tell(&push).await.unwrap(), accepted);
    let id = push.id().unwrap().to_owned();
    let thread = ThreadId::new(&accepted.thread);
    let others = [
        echo("other").with_id(&id),
        echo("once").with_id(&id).to("echo"),
        echo("once").with_id(&id).in_thread(&thread),
    ];
    for other in &others {
        second.push(other);
    }
    for _ in 0..10 {
        second.push(&push);
    }
    second.finish().await.unwrap();
    let heard = rest(&mut second).await;
    assert_eq!(short(&heard), format!("{} {}", ["P0013"; 3].join(" "), ["+"; 10].join(" ")));
    let entries = house.pump.log().tail(0, 100).await.unwrap();
    assert_eq!(entries.iter().filter(|it| it.client_id.is_some()).count(), 1);
    assert_eq!(entries.len(), 2);
}

#[tokio::test]
async fn whoever_waits_for_the_same_id_elsewhere_still_hears() {
    let gate = Arc::new(Semaphore::new(0));
    let house = House::with(|it| it.unconsumed_max = 1, Options::default(), gated(&gate)).await;
    let add = Push::of(&super::Add { a: 1, b: 2 }).unwrap();
    let (mut first, mut second) = (house.client().await, house.client().await);
    let thread = ThreadId::new(&first.tell(&add).await.unwrap().thread);
    // Held, since the thread has as much as it may have.
    let same = add.in_thread(&thread).with_id("same");
    first.push(&same);
    first.flush().await.unwrap();
    let quick = second.push(&echo("quick"));
    second.push(&same);
    second.push(&echo("behind"));
    second.flush().await.unwrap();
    let heard = [second.recv().await.unwrap().unwrap(), second.recv().await.unwrap().unwrap()];
    assert_eq!((short(&heard), quick), ("+ echo".to_owned(), 0));
    gate.add_permits(2);
    second.finish().await.unwrap();
    assert_eq!(short(&rest(&mut second).await).replace(" add", ""), "+ + echo");
    first.finish().await.unwrap();
    assert_eq!(short(&rest(&mut first).await).matches('+').count(), 1);
    let entries = house.pump.log().tail(0, 100).await.unwrap();
    assert_eq!(entries.iter().filter(|it| it.client_id.is_some()).count(), 1);
}

/// A pump on a file, where looking an id up takes a while.
async fn on_disk(folder: &Path) -> (Pump, SocketAddr) {
    let log = SqliteLog::open(folder.join("pumphouse.db"), Durability::Normal).unwrap();
    let door = Tcp::bind("127.0.0.1:0", Options::default()).await.unwrap();
    let (adder, address) = (Listener::new("adder").on(super::add), door.local_addr());
    (pumphouse::builder().with((adder, log, door)).build().unwrap().start(), address)
}

/// Ids are looked up side by side.
#[tokio::test]
async fn pushes_keep_their_order_with_ids_and_without_and_said_twice() {
    let folder = tempfile::tempdir().unwrap();
    let (pump, address) = on_disk(folder.path()).await;
    let mut client = Client::connect(address).await.unwrap();
    let add = |a: i64| Push::of(&super::Add { a, b: 0 }).unwrap();
    let thread = ThreadId::new(&client.tell(&add(1)).await.unwrap().thread);
    for n in 2..=1_000 {
        let push = add(n).in_thread(&thread);
        let named = push.clone().with_id(&n.to_string());
        match n % 7 {
            0 => client.push(&push),
            1 => {
                client.push(&named);
                client.push(&named)
            }
            _ => client.push(&named),
        };
    }
    client.finish().await.unwrap();
    let heard = rest(&mut client).await;
    assert!(heard.iter().all(|it| matches!(it, Incoming::Accepted { .. })), "{heard:?}");
    let entries = pump.log().read(&thread, 0, u64::MAX, 2_000).await.unwrap();
    let number = |it: &Arc<log::Entry>| {
        let entry: Entry = (&**it).into();
        entry.decode::<super::Add>().unwrap().a
    };
    assert!(entries.iter().map(number).eq(1..=1_000));
    pump.shutdown().await.unwrap();
}

#[tokio::test]
async fn nobody_waits_for_ever_for_ids_that_others_send_in_another_order() {
    let folder = tempfile::tempdir().unwrap();
    let (pump, address) = on_disk(folder.path()).await;
    let say = async |step: usize| {
        let mut client = Client::connect(address).await.unwrap();
        for n in (1..=400).map(|it| it * step % 401) {
            let push = Push::of(&super::Add { a: 0, b: 0 }).unwrap();
            client.push(&push.with_id(&n.to_string()));
        }
        client.finish().await.unwrap();
        rest(&mut client).await.len()
    };
    // Each step leads through all of them, since 401 is a prime.
    let heard = futures_util::join!(say(1), say(400), say(17), say(384));
    assert_eq!(heard, (400, 400, 400, 400));
    let entries = pump.log().tail(0, 1_000).await.unwrap();
    assert_eq!(entries.iter().filter(|it| it.client_id.is_some()).count(), 400);
    pump.shutdown().await.unwrap();
}

#[tokio::test]
async fn pushes_are_pipelined_further_than_the_window() {
    let house = House::new(|it| it.pushes_in_flight_max = 3).await;
    let mut client = house.client().await;
    let push = Push::of(&super::Add { a: 1, b: 2 }).unwrap();
    let thread = client.tell(&push).await.unwrap().thread;
    let push = push.in_thread(&ThreadId::new(&thread));
    for _ in 0..2_000 {
        client.push(&push);
    }
    client.finish().await.unwrap();
    let heard = rest(&mut client).await;
    let seqs = heard.iter().map(|it| match it {
        Incoming::Accepted { accepted, .. } => accepted.seq,
        other => panic!("{other:?}"),
    });
    assert!(seqs.eq(2..=2_001));
}
