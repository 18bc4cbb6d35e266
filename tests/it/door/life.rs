//! How a connection begins and ends.

use std::sync::Arc;

use pumphouse::client::{Client, Incoming};
use pumphouse::door::Options;
use pumphouse::engine::Stage;
use pumphouse::listeners::echo::Echo;
use pumphouse::prelude::*;
use tokio::io::AsyncWriteExt;
use tokio::sync::Semaphore;

use super::{Add, ECHO, House, echo, message, rest, short, text_to_end};

#[tokio::test]
async fn what_goes_in_comes_out_and_the_connection_ends() {
    let house = House::new(|_| {}).await;
    let text = house.exchange(ECHO.as_bytes()).await;
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 2, "{text}");
    assert!(lines[0].contains("<accepted ") && lines[0].contains("<from>core</from>"), "{text}");
    assert!(lines[1].contains(ECHO) && lines[1].contains("<from>echo</from>"), "{text}");
    house.pump.shutdown().await.unwrap();
}

#[tokio::test]
async fn white_space_a_mark_and_comments_between_messages_are_nothing() {
    let house = House::new(|_| {}).await;
    let text = format!("\u{FEFF}\n<!-- first -->{ECHO}\r\n\t<!-- last -->");
    assert_eq!(house.exchange(text.as_bytes()).await.lines().count(), 2);
    assert_eq!(house.exchange(b"").await, "");
    assert_eq!(house.exchange(b" \n").await, "");
}

/// A listener that answers when it is let.
pub(super) fn gated(gate: &Arc<Semaphore>) -> Listener {
    let gate = gate.clone();
    let answer = move |Add { a, b }: Add| {
        let gate = gate.clone();
        async move {
            gate.acquire().await.unwrap().forget();
            Add { a: b, b: a }
        }
    };
    Listener::new("adder").on(answer)
}

#[tokio::test]
async fn after_a_half_close_the_connection_stays_until_all_is_done() {
    let gate = Arc::new(Semaphore::new(0));
    let house = House::with(|_| {}, Options::default(), gated(&gate)).await;
    let mut client = house.client().await;
    client.push(&pumphouse::client::Push::of(&Add { a: 1, b: 2 }).unwrap());
    client.push(&echo("quick"));
    client.finish().await.unwrap();
    let mut heard = Vec::new();
    for _ in 0..3 {
        heard.push(client.recv().await.unwrap().unwrap());
    }
    assert!(matches!(&*short(&heard), "+ + echo" | "+ echo +"), "{heard:?}");
    gate.add_permits(1);
    let last = rest(&mut client).await;
    assert_eq!(short(&last), "add");
}

#[tokio::test]
async fn what_is_due_comes_before_the_end_that_a_fault_brings() {
    let gate = Arc::new(Semaphore::new(0));
    let house = House::with(|_| {}, Options::default(), gated(&gate)).await;
    let mut client = house.client().await;
    client.push(&pumphouse::client::Push::of(&Add { a: 1, b: 2 }).unwrap());
    client.push_raw(b"<not></xml>");
    client.push(&echo("after"));
    client.flush().await.unwrap();
    let heard = [client.recv().await.unwrap().unwrap(), client.recv().await.unwrap().unwrap()];
    assert_eq!(short(&heard), "+ P0001");
    gate.add_permits(1);
    assert_eq!(short(&rest(&mut client).await), "add");
}

#[tokio::test]
async fn a_fault_arrives_though_the_client_goes_on_sending() {
    let house = House::new(|_| {}).await;
    let mut stream = house.stream().await;
    stream.write_all(b"<not></xml>").await.unwrap();
    stream.write_all(&vec![b'x'; 500_000]).await.unwrap();
    let text = text_to_end(&mut stream).await;
    assert!(text.contains("code=\"P0001\""), "{text}");
}

#[tokio::test]
async fn a_client_that_goes_away_harms_nobody() {
    let house = House::new(|_| {}).await;
    let mut neighbour = house.client().await;
    for _ in 0..20 {
        let mut stream = house.stream().await;
        stream.write_all(ECHO.repeat(50).as_bytes()).await.unwrap();
        drop(stream);
        neighbour.ask(&echo("there")).await.unwrap();
    }
    let thread = ThreadId::new(&neighbour.tell(&echo("last")).await.unwrap().thread);
    assert!(!house.pump.log().read(&thread, 0, 9, 9).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_shutdown_tells_what_is_due_and_closes() {
    let gate = Arc::new(Semaphore::new(0));
    let own = crate::loopback::own_address();
    let house = House::at(&own, |_| {}, Options::default(), gated(&gate)).await;
    let mut client = house.client().await;
    let mut idle = house.client().await;
    idle.tell(&echo("x")).await.unwrap();
    client.tell(&pumphouse::client::Push::of(&Add { a: 1, b: 2 }).unwrap()).await.unwrap();
    let told = async {
        let mut stage = house.pump.stage();
        stage.wait_for(|it| *it > Stage::Running).await.unwrap();
        client.push(&echo("too late"));
        let Some(Incoming::Refused { huh, .. }) = client.recv().await.unwrap() else { panic!() };
        assert_eq!((huh.code.as_str(), huh.retry), ("P0020", true));
        gate.add_permits(1);
        assert_eq!(short(&rest(&mut client).await), "add");
        assert_eq!(short(&rest(&mut idle).await), "echo");
        drop((client, idle));
    };
    let (stopped, ()) = tokio::join!(house.pump.shutdown(), told);
    stopped.unwrap();
    assert!(Client::connect(house.address).await.is_err());
}

#[tokio::test]
async fn meta_of_the_senders_own_is_kept() {
    let house = House::new(|_| {}).await;
    let meta = "<trace xmlns=\"urn:t\">7</trace>";
    house.exchange(message(meta, ECHO).as_bytes()).await;
    let entries = house.pump.log().tail(0, 9).await.unwrap();
    assert_eq!(entries[0].meta.as_deref(), Some(meta.as_bytes()));
    assert_eq!(entries[0].name, Echo::NAME);
}
