//! Tokens: which connections a door accepts, and under which identity.

use pumphouse::client::{Error, Push};
use pumphouse::door::{self, Options, Tcp, Tokens};
use pumphouse::listener::{DoorAccess, Effects};
use pumphouse::listeners::thread::{InitialPayload, SpawnThread};
use pumphouse::prelude::*;
use tokio::io::AsyncWriteExt;

use super::{Add, ECHO, House, add, echo, message, rest, short, text_to_end};

async fn house() -> House {
    let tokens = Tokens::parse("ann:s3cret-a\nben:s3cret-b\nops:s3cret-o:operator").unwrap();
    let options = Options::default().tokens(tokens);
    House::with(|_| {}, options, Listener::new("adder").on(add)).await
}

#[tokio::test]
async fn a_token_decides_who_sends_and_where() {
    let house = house().await;
    let mut ann = house.client().await;
    assert_eq!(ann.authenticate("s3cret-a").await.unwrap(), "ann");
    let thread = ThreadId::new(&ann.tell(&echo("mine")).await.unwrap().thread);
    let mut ben = house.client().await;
    assert_eq!(ben.authenticate("s3cret-b").await.unwrap(), "ben");
    let refused = ben.tell(&echo("not mine").in_thread(&thread)).await.unwrap_err();
    assert!(matches!(refused, Error::UnknownThread(_)), "{refused:?}");
    let mut console = house.client().await;
    let refused = console.tell(&echo("not mine").in_thread(&thread)).await.unwrap_err();
    assert!(matches!(refused, Error::UnknownThread(_)), "{refused:?}");
    let mut ops = house.client().await;
    assert_eq!(ops.authenticate("s3cret-o").await.unwrap(), "ops");
    assert_eq!(ops.tell(&echo("any").in_thread(&thread)).await.unwrap().thread, thread.as_str());
    let entries = house.pump.log().tail(0, 10).await.unwrap();
    let from: Vec<&str> = entries.iter().map(|it| &*it.from).collect();
    assert_eq!(from, ["ann", "echo", "ops", "echo"]);
    let forged = message("<from>ann</from>", ECHO);
    ben.push_raw(forged.as_bytes());
    ben.finish().await.unwrap();
    assert_eq!(short(&rest(&mut ben).await), "P0009");
}

#[tokio::test]
async fn a_wrong_token_and_a_late_one_end_the_connection() {
    let house = house().await;
    let core = "https://xml-pipeline.org/ns/core/v1";
    let authenticate = |token: &str| format!("<authenticate xmlns='{core}' token='{token}'/>");
    let check = async |text: String, before: &str| {
        let mut stream = house.stream().await;
        stream.write_all(text.as_bytes()).await.unwrap();
        let text = text_to_end(&mut stream).await;
        let first = text.lines().next().unwrap_or("");
        assert!(first.contains(before), "{text}");
        assert!(text.contains("code=\"P0021\""), "{text}");
        assert!(!text.contains("s3cret"), "{text}");
    };
    check(authenticate("s3cret"), "P0021").await;
    check(authenticate(""), "P0021").await;
    check(format!("<authenticate xmlns='{core}'/>"), "P0021").await;
    check("<authenticate token='s3cret-'/>".into(), "P0021").await;
    check(ECHO.to_owned() + &authenticate("s3cret-a"), "<accepted ").await;
    check(authenticate("s3cret-a") + &authenticate("s3cret-a"), "<authenticated ").await;
    let mut bare = house.stream().await;
    bare.write_all(b"<authenticate token='s3cret-a'/>").await.unwrap();
    bare.shutdown().await.unwrap();
    let text = text_to_end(&mut bare).await;
    assert!(text.contains("<to>ann</to>") && text.contains("identity=\"ann\""), "{text}");
}

#[tokio::test]
async fn whoever_guesses_waits() {
    let house = house().await;
    let mut ann = house.client().await;
    ann.authenticate("s3cret-a").await.unwrap();
    let guess = async |token: &str| {
        let guess = house.client().await.authenticate(token).await;
        guess.map_err(|it| it.to_string())
    };
    for number in 0..5 {
        let refused = guess(&format!("s3cret-{number}")).await.unwrap_err();
        assert!(refused.contains("nobody has this token"), "{refused}");
    }
    // Not even the right one is looked at now, or guessing on would tell.
    for token in ["s3cret-x", "s3cret-a"] {
        let refused = guess(token).await.unwrap_err();
        assert!(refused.contains("P0021") && refused.contains("wait 1 s"), "{refused}");
    }
    let core = "https://xml-pipeline.org/ns/core/v1";
    let right = format!("<authenticate xmlns='{core}' token='s3cret-a'/>");
    let refused = house.exchange(right.as_bytes()).await;
    assert!(refused.contains("retry=\"true\""), "{refused}");
    assert!(refused.contains("<advice>Connect again after that, "), "{refused}");
    // Whoever is in stays, and so does whoever needs no token.
    ann.ask(&echo("still here")).await.unwrap();
    house.client().await.ask(&echo("hello")).await.unwrap();
}

#[tokio::test]
async fn beyond_this_machine_everybody_says_who_they_are() {
    let bare = Tcp::bind("0.0.0.0:0", Options::default()).await.unwrap_err();
    assert!(matches!(bare, door::Error::Exposed(_)));
    assert!(bare.to_string().contains("NAME:TOKEN"), "{bare}");
    let mapped = Tcp::bind("[::]:0", Options::default()).await.unwrap_err();
    assert!(matches!(mapped, door::Error::Exposed(_)));
    let tokens = Tokens::parse("ann:s3cret-a").unwrap();
    let door = Tcp::bind("0.0.0.0:0", Options::default().tokens(tokens)).await.unwrap();
    let address = ([127, 0, 0, 1], door.local_addr().port()).into();
    let limits =
        Limits { frame_time_max: std::time::Duration::from_millis(50), ..Limits::default() };
    let builder = pumphouse::builder().with(pumphouse::listeners::standard()).limits(limits);
    let house = House { pump: builder.with(door).build().unwrap().start(), address };
    let text = house.exchange(ECHO.as_bytes()).await;
    assert!(text.contains("code=\"P0021\"") && !text.contains("<to>"), "{text}");
    // Whoever says nothing at all doesn't stay either.
    let text = text_to_end(&mut house.stream().await).await;
    assert!(text.contains("code=\"P0021\""), "{text}");
    let mut ann = house.client().await;
    ann.authenticate("s3cret-a").await.unwrap();
    ann.ask(&echo("hello")).await.unwrap();
}

#[tokio::test]
async fn no_identity_has_a_listeners_name() {
    let tokens = Tokens::parse("echo:x\nann:y").unwrap();
    let door = Tcp::bind("127.0.0.1:0", Options::default().tokens(tokens)).await.unwrap();
    let builder = pumphouse::builder().with(pumphouse::listeners::standard()).with(door);
    let complaints = builder.build().unwrap_err();
    assert_eq!(
        complaints.all(),
        ["echo: a listener and an identity have this name; give one of them another"]
    );
}

/// A request for a thread that begins with this payload.
fn spawn(payload: Element) -> SpawnThread {
    let initial_payload = InitialPayload { payload };
    SpawnThread { metadata: None, suggested_sub_id: None, initial_payload }
}

/// Waits until `adder` gets a message behind this position of the log, or until its sender is
/// told that nobody takes it. Returns whether `adder` gets it.
async fn was_added(house: &House, after: u64) -> bool {
    loop {
        let entries = house.pump.log().tail(after, 100).await.unwrap();
        if entries.iter().any(|it| it.to.as_deref() == Some("adder")) {
            return true;
        }
        if entries.iter().any(|it| String::from_utf8_lossy(&it.body).contains("P0011")) {
            return false;
        }
        tokio::task::yield_now().await;
    }
}

/// Who of three identities, and of a client without a token, may call `adder`, which declares
/// effects. Without tokens the clients are all `console`.
async fn admitted(tokens: Option<Tokens>, access: Option<DoorAccess>) -> Vec<&'static str> {
    let adder = Listener::new("adder").on(add).effects(Effects::Writes);
    let adder = access.into_iter().fold(adder, Listener::door);
    let has_tokens = tokens.is_some();
    let options = tokens.into_iter().fold(Options::default(), Options::tokens);
    let house = House::with(|_| {}, options, adder).await;
    let mut admitted = Vec::new();
    for (name, token) in [("ann", "s3cret-a"), ("ben", "s3cret-b"), ("ops", "s3cret-o"), ("", "")] {
        let mut client = house.client().await;
        if has_tokens && !token.is_empty() {
            client.authenticate(token).await.unwrap();
        }
        let is_admitted = match client.tell(&Push::of(&Add { a: 1, b: 2 }).unwrap()).await {
            Ok(_) => true,
            Err(Error::Refused(huh)) => {
                assert_eq!(huh.code, "P0011");
                // Only an operator is told who is there, and who may send to it.
                let is_told = huh.message.contains("its `door`");
                assert_eq!(is_told, name == "ops" || !has_tokens, "{name}: {}", huh.message);
                false
            }
            Err(error) => panic!("{error:?}"),
        };
        // A thread that begins with the message, or with such a thread, is no way around it.
        let first = Add { a: 1, b: 2 }.encode().unwrap();
        let inner = spawn(first.clone());
        for first in [first, inner.encode().unwrap()] {
            let all = house.pump.log().tail(0, 10_000).await.unwrap();
            let before = all.last().map_or(0, |it| it.position);
            client.tell(&Push::of(&spawn(first)).unwrap()).await.unwrap();
            assert_eq!(was_added(&house, before).await, is_admitted, "{name}");
        }
        if is_admitted {
            admitted.push(name);
        }
    }
    admitted
}

#[tokio::test]
async fn effects_are_for_operators_unless_the_listener_says_otherwise() {
    let tokens = || Tokens::parse("ann:s3cret-a\nben:s3cret-b\nops:s3cret-o:operator").ok();
    let check = async |access, expected: &[&str]| {
        assert_eq!(admitted(tokens(), access).await, expected);
    };
    check(None, &["ops"]).await;
    check(Some(DoorAccess::Everybody), &["ann", "ben", "ops", ""]).await;
    check(Some(DoorAccess::Nobody), &[]).await;
    check(Some(DoorAccess::listed(["ann", "operators"])), &["ann", "ops"]).await;
    check(Some(DoorAccess::listed(["ben"])), &["ben"]).await;
}

#[tokio::test]
async fn without_tokens_console_counts_as_an_operator() {
    assert_eq!(admitted(None, None).await.len(), 4);
    assert_eq!(admitted(None, Some(DoorAccess::Nobody)).await.len(), 0);
    assert_eq!(admitted(None, Some(DoorAccess::listed(["ann"]))).await.len(), 0);
}
