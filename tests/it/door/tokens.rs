//! Tokens: which connections a door accepts, and under which identity.

use pumphouse::client::Error;
use pumphouse::door::{self, Options, Tcp, Tokens};
use pumphouse::prelude::*;
use tokio::io::AsyncWriteExt;

use super::{ECHO, House, add, echo, message, rest, short, text_to_end};

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
    let mut limits = Limits::default();
    limits.frame_time_max = std::time::Duration::from_millis(50);
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
