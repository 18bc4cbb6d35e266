//! A client whose connections are cut at random: no message is lost, and none is doubled.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pumphouse::client::{Address, Incoming, Push, Resuming, Shown};
use pumphouse::door::{Options, Tokens};
use pumphouse::engine::{Port as _, Tokio};
use pumphouse::listeners::echo::Echo;
use pumphouse::prelude::*;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::{House, add, echo};

/// How many connections a run cuts unless it is told.
const CUTS: u64 = 300;
/// Pushes on their way at once.
const IN_FLIGHT: usize = 12;

/// Stands between a client and a door, and cuts each connection after so many bytes.
struct Scissors {
    address: SocketAddr,
    cuts: Arc<AtomicU64>,
}

impl Scissors {
    async fn before(door: SocketAddr, cuts_max: u64) -> Scissors {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let cuts = Arc::new(AtomicU64::new(0));
        let count = cuts.clone();
        Tokio::current().spawn(async move {
            let mut chance = 0x9E37_79B9_7F4A_7C15_u64;
            let mut upto = |max: u64| {
                chance ^= chance << 13;
                chance ^= chance >> 7;
                chance ^= chance << 17;
                chance % max
            };
            while let Ok((client, _)) = listener.accept().await {
                let Ok(server) = TcpStream::connect(door).await else { return };
                let last = count.load(Ordering::SeqCst) >= cuts_max;
                let room = |it| if last { u64::MAX } else { it };
                let (up, down) = (room(upto(20_000)), room(upto(12_000)));
                let count = count.clone();
                Tokio::current().spawn(async move {
                    cut(client, server, up, down).await;
                    count.fetch_add(1, Ordering::SeqCst);
                });
            }
        });
        Scissors { address, cuts }
    }
}

/// Carries so many bytes either way, then drops both sides.
async fn cut(mut client: TcpStream, mut server: TcpStream, up: u64, down: u64) {
    let (client_from, client_to) = client.split();
    let (server_from, server_to) = server.split();
    tokio::select! {
        () = carry(client_from, server_to, up) => {}
        () = carry(server_from, client_to, down) => {}
    }
}

async fn carry(mut from: impl AsyncRead + Unpin, mut to: impl AsyncWrite + Unpin, bytes: u64) {
    let mut left = bytes;
    let mut buffer = [0; 4_096];
    while left > 0 {
        let most = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
        let Ok(count @ 1..) = from.read(&mut buffer[..most]).await else { return };
        if to.write_all(&buffer[..count]).await.is_err() {
            return;
        }
        left -= count as u64;
    }
}

#[tokio::test]
async fn whatever_is_cut_nothing_is_lost_and_nothing_doubled() {
    #[expect(clippy::disallowed_methods, reason = "`just disconnects` says how often")]
    let cuts = std::env::var("PUMPHOUSE_DISCONNECTS");
    let cuts: u64 = cuts.map_or(CUTS, |it| it.parse().expect("a number of disconnects"));
    let tokens = Tokens::parse("ann:s3cret-a").unwrap();
    let house =
        House::with(|_| {}, Options::default().tokens(tokens), Listener::new("adder").on(add));
    let house = house.await;
    let scissors = Scissors::before(house.address, cuts).await;
    let address = Address::Tcp(scissors.address.to_string());
    let mut client = Resuming::new(address).token("s3cret-a");
    let first = client.push(&echo("0")).await.unwrap();
    let thread = loop {
        match client.recv().await.unwrap() {
            Incoming::Accepted { push, accepted } if push == first => {
                break ThreadId::new(&accepted.thread);
            }
            Incoming::Message(_) => {}
            other => panic!("{other:?}"),
        }
    };
    client.follow(&thread, 0).unwrap();
    let (mut pushes, mut accepted, mut followed) = (1, 1, 0);
    while scissors.cuts.load(Ordering::SeqCst) < cuts || followed < 2 * pushes {
        let cutting = scissors.cuts.load(Ordering::SeqCst) < cuts;
        if cutting && client.unanswered() < IN_FLIGHT {
            client.push(&echo(&pushes.to_string()).in_thread(&thread)).await.unwrap();
            pushes += 1;
            continue;
        }
        match client.recv().await.unwrap() {
            Incoming::Accepted { .. } => accepted += 1,
            Incoming::Message(it) => {
                assert_eq!(it.shown, Shown::Followed);
                followed += 1;
                assert_eq!(it.entry, Some(EntryId::new(&thread, followed)), "in order, and once");
            }
            Incoming::Following { .. } => {}
            other => panic!("{other:?}"),
        }
    }
    while client.unanswered() > 0 {
        let Incoming::Accepted { .. } = client.recv().await.unwrap() else { continue };
        accepted += 1;
    }
    let connections = client.connections();
    println!("{connections} connections, {pushes} pushes, {followed} entries followed");
    assert!(connections > cuts / 2, "{connections}");
    assert_eq!((accepted, followed), (pushes, 2 * pushes));
    check(&house.pump, &thread, pushes).await;
}

/// In the log each push stands once, in the order in which they were made.
async fn check(pump: &Pump, thread: &ThreadId, pushes: u64) {
    let entries = pump.log().read(thread, 0, u64::MAX, usize::MAX).await.unwrap();
    let texts = entries.iter().filter(|it| &*it.from == "ann").map(|it| {
        let text = String::from_utf8(it.body.to_vec()).unwrap();
        let text = text.split_once("<text>").unwrap().1.to_owned();
        text.split_once('<').unwrap().0.parse::<u64>().unwrap()
    });
    assert!(texts.eq(0..pushes));
    assert_eq!(entries.len() as u64, 2 * pushes);
    // The pump's own thread says what the door refused.
    let threads = pump.log().threads(None, 9).await.unwrap();
    assert!(threads.iter().all(|it| it.id == *thread || it.id.as_str() == "organism"));
}

#[tokio::test]
async fn an_answer_is_found_however_often_it_is_asked_for() {
    let house = House::new(|_| {}).await;
    let push = echo("what").with_fresh_id();
    let mut first = house.client().await;
    let answer = first.ask(&push).await.unwrap();
    assert_eq!(answer.decode::<Echo>().unwrap().text, "what");
    // On the same connection, and on another.
    assert_eq!(first.ask(&push).await.unwrap(), answer);
    let mut second = house.client().await;
    assert_eq!(second.ask(&push).await.unwrap(), answer);
    for client in [&mut first, &mut second] {
        client.push(&echo("next"));
        client.finish().await.unwrap();
        let heard = super::rest(client).await;
        assert_eq!(super::short(&heard), "+ echo");
    }
}

#[tokio::test]
async fn a_refusal_is_told_once_and_not_repeated() {
    let house = House::new(|_| {}).await;
    let mut client = Resuming::new(Address::Tcp(house.address.to_string()));
    let wrong = Push::text("<nobody xmlns='urn:x'/>").unwrap();
    let wrong = client.push(&wrong).await.unwrap();
    let unknown = client.follow(&ThreadId::new("sess-00000000"), 0).unwrap();
    let right = client.push(&echo("right")).await.unwrap();
    let mut heard = Vec::new();
    while heard.len() < 3 {
        heard.push(match client.recv().await.unwrap() {
            Incoming::Refused { push, huh } => (push.unwrap(), huh.code),
            Incoming::UnknownThread { push, error } => (push, error.code),
            Incoming::Accepted { push, .. } => (push, "+".into()),
            _ => continue,
        });
    }
    heard.sort();
    let expected = [(wrong, "P0011"), (unknown, "unknown_thread"), (right, "+")];
    assert_eq!(heard, expected.map(|(push, what)| (push, what.to_owned())));
    assert_eq!(client.unanswered(), 0);
}

#[tokio::test]
async fn a_door_that_closes_each_connection_at_once_is_asked_less_and_less_often() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = Address::Tcp(listener.local_addr().unwrap().to_string());
    Tokio::current().spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            drop(stream);
        }
    });
    let mut client = Resuming::new(address);
    let port = Tokio::current();
    tokio::select! {
        it = client.recv() => panic!("{it:?}"),
        () = port.sleep_until(port.now_us() + 500_000) => {}
    }
    assert!((2..20).contains(&client.connections()), "{} connections", client.connections());
}
