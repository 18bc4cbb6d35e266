//! Following a thread over a door.

use pumphouse::client::{Client, Error, Incoming, Push, Shown};
use pumphouse::door::{Options, Tokens};
use pumphouse::listeners::echo::Echo;
use pumphouse::prelude::*;
use pumphouse::wire::Code;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{Add, House, add, echo, message, rest, short};

const META: &str = "https://xml-pipeline.org/ns/meta/v1";

fn follow(attributes: &str) -> String {
    format!("<follow xmlns='{META}' {attributes}/>")
}

/// Asks for a session of so many entries.
async fn session(client: &mut Client, entries: u64) -> ThreadId {
    let thread = ThreadId::new(&client.tell(&echo("1")).await.unwrap().thread);
    for number in 1..entries.div_ceil(2) {
        client.ask(&echo(&number.to_string()).in_thread(&thread)).await.unwrap();
    }
    thread
}

#[tokio::test]
async fn what_there_is_and_what_is_to_come() {
    let house = House::new(|_| {}).await;
    let (mut sender, mut client) = (house.client().await, house.client().await);
    let thread = session(&mut sender, 4).await;
    let mut follow = client.follow(&thread, 1).await.unwrap();
    for seq in 2..=4 {
        assert!(!follow.has_caught_up());
        let it = follow.next().await.unwrap().unwrap();
        assert_eq!((it.entry, it.shown), (Some(EntryId::new(&thread, seq)), Shown::Followed));
        assert_eq!(it.cause.is_some(), it.from == "echo");
    }
    assert!(follow.has_caught_up());
    sender.tell(&echo("new").in_thread(&thread)).await.unwrap();
    let it = follow.next().await.unwrap().unwrap();
    assert_eq!((&*it.from, it.to.as_deref()), ("console", Some("echo")));
    assert_eq!(it.decode::<Echo>().unwrap().text, "new");
    let after = follow.after();
    assert_eq!(after, 5);
    // Another connection goes on where this one was.
    drop(client);
    let mut client = house.client().await;
    let mut follow = client.follow(&thread, after).await.unwrap();
    assert_eq!(follow.next().await.unwrap().unwrap().entry, Some(EntryId::new(&thread, 6)));
    follow.end().await.unwrap();
    sender.ask(&echo("unseen").in_thread(&thread)).await.unwrap();
    client.finish().await.unwrap();
    assert_eq!(short(&rest(&mut client).await), "");
}

#[tokio::test]
async fn a_thread_is_followed_by_its_opener_and_by_operators() {
    let tokens = Tokens::parse("ann:s3cret-a\nben:s3cret-b\nops:s3cret-o:operator").unwrap();
    let options = Options::default().tokens(tokens);
    let house = House::with(|_| {}, options, Listener::new("adder").on(add)).await;
    let client = async |token: &str| {
        let mut client = house.client().await;
        client.authenticate(token).await.unwrap();
        client
    };
    let (mut ann, mut ben) = (client("s3cret-a").await, client("s3cret-b").await);
    let mut ops = client("s3cret-o").await;
    let thread = session(&mut ann, 2).await;
    for client in [&mut ann, &mut ops] {
        let mut follow = client.follow(&thread, 0).await.unwrap();
        assert_eq!(follow.next().await.unwrap().unwrap().from, "ann");
    }
    let text = |error: Error| match error {
        Error::UnknownThread(it) => it.message,
        other => panic!("{other:?}"),
    };
    let other = text(ben.follow(&thread, 0).await.unwrap_err());
    let none = text(ops.follow(&ThreadId::new("sess-00000000"), 0).await.unwrap_err());
    assert_eq!(other, none);
    assert_eq!(house.pump.refusals().get(&Code::UnknownThread), Some(&2));
}

#[tokio::test]
async fn after_a_half_close_the_thread_comes_as_it_stands() {
    let house = House::new(|_| {}).await;
    let thread = session(&mut house.client().await, 600).await;
    let text = house.exchange(follow(&format!("thread='{thread}'")).as_bytes()).await;
    assert_eq!(text.lines().count(), 601);
    assert_eq!(text.matches("<followed xmlns=").count(), 600);
    // What it caused itself is among it.
    let meta = format!("<thread>{thread}</thread>");
    let both = follow(&format!("thread='{thread}' after='600'")) + &message(&meta, super::ECHO);
    let text = house.exchange(both.as_bytes()).await;
    assert_eq!((text.matches("/601").count() > 0, text.matches("<followed").count()), (true, 2));
}

#[tokio::test]
async fn answers_come_in_push_order_and_entries_after_them() {
    let house = House::new(|_| {}).await;
    let mut client = house.client().await;
    let thread = session(&mut house.client().await, 2).await;
    let asked = follow(&format!("thread='{thread}'"));
    let unfollow = format!("<unfollow thread='{thread}'/>");
    for it in [&*asked, super::ECHO, &unfollow, "<follow thread='x'/>", &asked, &asked, &unfollow] {
        client.push_raw(it.as_bytes());
    }
    client.push_raw(follow("").as_bytes());
    client.push_raw(message("<to>echo</to>", &asked).as_bytes());
    client.push_raw(format!("<following xmlns='{META}'/>").as_bytes());
    client.finish().await.unwrap();
    let heard = rest(&mut client).await;
    let is_answer = |it: &&Incoming| !matches!(it, Incoming::Message(_));
    let answers: Vec<_> = heard.iter().filter(is_answer).cloned().collect();
    let words = answers.iter().map(|it| match it {
        Incoming::Following { .. } => "f".to_owned(),
        Incoming::Unfollowed { .. } => "u".to_owned(),
        other => short(std::slice::from_ref(other)),
    });
    let words: Vec<_> = words.collect();
    assert_eq!(words.join(" "), "f + u ? f f u P0007 P0008 P0010");
}

#[tokio::test]
async fn live_payloads_come_to_who_wants_them() {
    /// How far the work is.
    #[derive(Clone, Debug, PartialEq, Payload)]
    #[payload(ns = "urn:test", live)]
    struct Progress {
        percent: u8,
    }
    let work = async |live: Outbox<Progress>, Add { a, .. }: Add| {
        live.live(&Progress { percent: u8::try_from(a).unwrap() });
    };
    let house = House::with(|_| {}, Options::default(), Listener::new("worker").on(work)).await;
    let push = |a| Push::of(&Add { a, b: 0 }).unwrap();
    let mut sender = house.client().await;
    let thread = ThreadId::new(&sender.tell(&push(1)).await.unwrap().thread);
    let (mut eager, mut plain) = (house.client().await, house.client().await);
    let mut live = eager.follow_live(&thread, 1).await.unwrap();
    let mut logged = plain.follow(&thread, 1).await.unwrap();
    // A live payload may come before its cause, and is lost on who follows too late.
    let mut shown = None;
    for a in 2.. {
        sender.tell(&push(a).in_thread(&thread)).await.unwrap();
        let it = live.next().await.unwrap().unwrap();
        if it.shown == Shown::Live {
            shown = Some(it);
            break;
        }
    }
    let shown = shown.unwrap();
    let percent = shown.decode::<Progress>().unwrap().percent;
    assert_eq!(shown.cause.as_ref().map(|it| it.seq), Some(u64::from(percent)));
    assert_eq!((&*shown.from, shown.entry, shown.thread), ("worker", None, Some(thread.clone())));
    for seq in 2..=u64::from(percent) {
        let it = logged.next().await.unwrap().unwrap();
        assert_eq!((it.entry, it.shown), (Some(EntryId::new(&thread, seq)), Shown::Followed));
    }
}

#[tokio::test]
async fn a_slow_follower_costs_its_own_lag_only() {
    let house = House::new(|it| it.outbound_bytes_high = 16 * 1024).await;
    let mut sender = house.client().await;
    let thread = session(&mut sender, 2).await;
    let mut slow = house.stream().await;
    slow.write_all(follow(&format!("thread='{thread}'")).as_bytes()).await.unwrap();
    // Much more than the system buffers and the door keeps; nobody waits for the slow one.
    let large = echo(&"x".repeat(50_000)).in_thread(&thread);
    for _ in 0..300 {
        sender.push(&large);
    }
    sender.finish().await.unwrap();
    assert_eq!(rest(&mut sender).await.len(), 601);
    slow.shutdown().await.unwrap();
    let mut text = String::new();
    slow.read_to_string(&mut text).await.unwrap();
    assert_eq!(text.matches("<followed ").count(), 602);
    assert!(house.pump.refusals().is_empty(), "{:?}", house.pump.refusals());
}

#[tokio::test]
async fn one_connection_follows_so_many_threads() {
    let house = House::new(|it| it.follows_max = 2).await;
    let (mut sender, mut client) = (house.client().await, house.client().await);
    let mut threads = Vec::new();
    for _ in 0..3 {
        threads.push(session(&mut sender, 2).await);
    }
    client.follow(&threads[0], 0).await.unwrap();
    client.follow(&threads[1], 0).await.unwrap();
    // The same again takes its own place.
    client.follow(&threads[0], 0).await.unwrap();
    let refused = client.follow(&threads[2], 0).await.unwrap_err();
    assert!(refused.to_string().contains("follows_max is 2"), "{refused}");
    client.follow(&threads[1], 0).await.unwrap().end().await.unwrap();
    let mut follow = client.follow(&threads[2], 1).await.unwrap();
    assert_eq!(follow.next().await.unwrap().unwrap().from, "echo");
}

/// However fast they come: what isn't followed any more takes no place.
#[tokio::test]
async fn a_follow_that_was_replaced_or_ended_counts_no_more() {
    let house = House::new(|it| it.follows_max = 2).await;
    let thread = session(&mut house.client().await, 2).await;
    let asked = follow(&format!("thread='{thread}'"));
    let ended = format!("{asked}<unfollow xmlns='{META}' thread='{thread}'/>");
    for pipelined in [asked, ended] {
        let text = house.exchange(pipelined.repeat(20).as_bytes()).await;
        assert_eq!(text.matches("<following ").count(), 20, "{text}");
    }
    assert!(house.pump.refusals().is_empty(), "{:?}", house.pump.refusals());
}
