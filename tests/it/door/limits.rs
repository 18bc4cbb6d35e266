//! Clients that are slow, silent, or too many.

use std::time::Duration;

use pumphouse::client::{Client, Push};
use pumphouse::door::Options;
use pumphouse::listeners::echo::Echo;
use pumphouse::prelude::*;
use pumphouse::wire::Code;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::{Add, ECHO, House, echo, text_to_end};

const SHORT: Duration = Duration::from_millis(50);

#[tokio::test]
async fn a_message_that_doesnt_come_to_its_end_is_refused() {
    let house = House::new(|it| it.frame_time_max = SHORT).await;
    let mut neighbour = house.client().await;
    for half in [&ECHO.as_bytes()[..40], b"\0\0\0\x09<a>", b"\0", b"<!-- no end "] {
        let mut stream = house.stream().await;
        stream.write_all(half).await.unwrap();
        let text = text_to_end(&mut stream).await;
        assert!(text.contains("code=\"P0023\" column="), "{text}");
        neighbour.ask(&echo("there")).await.unwrap();
    }
}

#[tokio::test]
async fn a_byte_at_a_time_doesnt_buy_time() {
    let house = House::new(|it| it.frame_time_max = 4 * SHORT).await;
    let mut stream = house.stream().await;
    stream.set_nodelay(true).unwrap();
    let (mut from, mut to) = stream.split();
    let dribble = async {
        while to.write_all(b"<a>").await.is_ok() {
            let mut neighbour = house.client().await;
            neighbour.ask(&echo("there")).await.unwrap();
        }
    };
    let mut text = String::new();
    tokio::select! {
        () = dribble => {}
        read = from.read_to_string(&mut text) => drop(read.unwrap()),
    }
    assert!(text.contains("code=\"P0023\"") || text.contains("code=\"P0006\""), "{text}");
}

#[tokio::test]
async fn an_idle_connection_stays() {
    let house = House::new(|it| it.frame_time_max = Duration::from_millis(5)).await;
    let mut idle = house.client().await;
    idle.tell(&echo("one")).await.unwrap();
    let mut slow = house.stream().await;
    // Another connection runs into the limit meanwhile, so the idle one has waited longer.
    slow.write_all(b"<a").await.unwrap();
    assert!(text_to_end(&mut slow).await.contains("P0023"));
    idle.tell(&echo("two")).await.unwrap();
}

#[tokio::test]
async fn whoever_never_reads_is_cut_and_harms_nobody() {
    let house = House::new(|it| {
        it.write_time_max = SHORT;
        it.outbound_bytes_high = 64 * 1024;
    });
    let house = house.await;
    let mut neighbour = house.client().await;
    let mut stream = house.stream().await;
    let text = ECHO.replace("hello", &"x".repeat(100_000));
    // It sends until the door stops reading it, and then until the door cuts it off.
    while stream.write_all(text.as_bytes()).await.is_ok() {}
    neighbour.ask(&echo("there")).await.unwrap();
    assert_eq!(house.pump.refusals().get(&Code::SlowReader), Some(&1));
}

/// A connection that asked for more than it reads, and was cut for that.
async fn cut_off() -> (House, TcpStream) {
    let answer = async |_: Add| Echo { text: "x".repeat(1_000_000) };
    let change = |it: &mut Limits| it.outbound_bytes_max = 2 << 20;
    let house = House::with(change, Options::default(), Listener::new("big").on(answer)).await;
    let mut stream = house.stream().await;
    let mut text = String::new();
    Push::of(&Add { a: 1, b: 2 }).unwrap().write(&mut text);
    // Beside what the system buffers, more answers wait than may.
    stream.write_all(text.repeat(20).as_bytes()).await.unwrap();
    crate::eventually(async || house.pump.refusals().contains_key(&Code::SlowReader)).await;
    (house, stream)
}

#[tokio::test]
async fn whoever_is_cut_for_not_reading_is_told_between_two_messages() {
    let (_house, mut stream) = cut_off().await;
    let heard = text_to_end(&mut stream).await;
    assert!(heard.lines().all(|it| it.starts_with("<message") && it.ends_with("</message>")));
    assert!(heard.lines().last().unwrap().contains("code=\"P0024\""));
}

#[tokio::test]
async fn whoever_is_cut_is_told_though_it_goes_on_sending() {
    let (_house, mut stream) = cut_off().await;
    // What nobody reads would turn the end into a reset.
    stream.write_all(ECHO.repeat(2_000).as_bytes()).await.unwrap();
    let heard = text_to_end(&mut stream).await;
    assert!(heard.lines().last().unwrap().contains("code=\"P0024\""));
}

#[tokio::test]
async fn clients_that_never_read_share_one_bound_and_a_reader_goes_on() {
    let answer = async |_: Add| Echo { text: "x".repeat(1_000_000) };
    let change = |it: &mut Limits| {
        it.owed_bytes_max = 4 << 20;
        it.send_buffer_bytes = 64 * 1024;
    };
    let house = House::with(change, Options::default(), Listener::new("big").on(answer)).await;
    let mut text = String::new();
    Push::of(&Add { a: 1, b: 2 }).unwrap().write(&mut text);
    let mut reader = house.client().await;
    let mut unread = Vec::new();
    for _ in 0..8 {
        let mut stream = house.stream().await;
        stream.write_all(text.repeat(8).as_bytes()).await.unwrap();
        unread.push(stream);
    }
    // None of them comes near outbound_bytes_max or write_time_max.
    while house.pump.refusals().get(&Code::SlowReader).is_none_or(|it| *it < 4) {
        reader.ask(&echo("there")).await.unwrap();
    }
    drop(unread);
    reader.ask(&echo("there")).await.unwrap();
}

#[tokio::test]
async fn one_too_many_is_told_so() {
    let house = House::new(|it| it.connections_max = 2).await;
    let mut first = house.client().await;
    let mut second = house.client().await;
    first.tell(&echo("one")).await.unwrap();
    second.tell(&echo("two")).await.unwrap();
    let mut third = house.stream().await;
    let text = text_to_end(&mut third).await;
    assert!(text.contains("code=\"P0025\"") && text.contains("connections_max is 2"), "{text}");
    assert_eq!(text.lines().count(), 1);
    first.finish().await.unwrap();
    while first.recv().await.unwrap().is_some() {}
    drop(first);
    // The place is free once the door has seen it.
    loop {
        let mut next = house.client().await;
        if next.tell(&echo("three")).await.is_ok() {
            break;
        }
    }
    second.tell(&echo("still there")).await.unwrap();
}

#[tokio::test]
async fn a_newcomer_takes_the_place_of_a_connection_that_never_spoke() {
    let house = House::new(|it| it.connections_max = 3).await;
    let mut first = house.client().await;
    first.tell(&echo("one")).await.unwrap();
    let mut silent = house.stream().await;
    let mut half = house.stream().await;
    half.write_all(&ECHO.as_bytes()[..40]).await.unwrap();
    let mut newcomers = Vec::new();
    for leaves in [&mut silent, &mut half] {
        // Both may take half a second to send their first.
        let newcomer = loop {
            let mut newcomer = house.client().await;
            if newcomer.tell(&echo("there")).await.is_ok() {
                break newcomer;
            }
        };
        let text = text_to_end(leaves).await;
        assert!(text.contains("code=\"P0025\"") && text.contains("was silent for"), "{text}");
        newcomers.push(newcomer);
    }
    first.tell(&echo("still there")).await.unwrap();
    // Now all have spoken of late.
    let text = text_to_end(&mut house.stream().await).await;
    assert!(text.contains("connections_max is 3"), "{text}");
}

#[tokio::test]
async fn a_connection_keeps_its_place_while_something_is_under_way_for_it() {
    let house = House::new(|it| {
        it.connections_max = 2;
        it.frame_time_max = Duration::from_millis(20);
    });
    let house = house.await;
    let mut follows = house.client().await;
    let thread = ThreadId::new(&follows.tell(&echo("one")).await.unwrap().thread);
    let mut follow = follows.follow(&thread, 0).await.unwrap();
    let mut rests = house.stream().await;
    rests.write_all(ECHO.as_bytes()).await.unwrap();
    let mut heard = String::new();
    while !heard.contains("<text>hello</text>") {
        let mut bytes = [0; 1_000];
        let count = rests.read(&mut bytes).await.unwrap();
        heard.push_str(std::str::from_utf8(&bytes[..count]).unwrap());
    }
    let mut newcomer = loop {
        let mut newcomer = house.client().await;
        if newcomer.tell(&echo("there")).await.is_ok() {
            break newcomer;
        }
    };
    let text = text_to_end(&mut rests).await;
    assert!(text.contains("code=\"P0025\"") && text.contains("was silent for"), "{text}");
    newcomer.tell(&echo("two").in_thread(&thread)).await.unwrap();
    let two = "two".to_owned();
    loop {
        let message = follow.next().await.unwrap().expect("it is still followed");
        if message.decode::<Echo>().is_ok_and(|it| it.text == two) {
            break;
        }
    }
}

#[tokio::test]
async fn many_connections_are_served() {
    let house = House::new(|_| {}).await;
    let mut clients = Vec::new();
    for _ in 0..300 {
        clients.push(Client::connect(house.address).await.unwrap());
    }
    for client in &mut clients {
        client.push(&echo("hello"));
        client.flush().await.unwrap();
    }
    for client in &mut clients {
        assert!(client.recv().await.unwrap().is_some());
        assert!(client.recv().await.unwrap().is_some());
    }
}
