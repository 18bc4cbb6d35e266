//! Doors and clients over real sockets.

mod bad;
mod follow;
mod life;
mod limits;
mod order;
mod resume;
pub(crate) mod tls;
mod tokens;
mod unix;

use std::net::SocketAddr;
use std::time::Duration;

use pumphouse::client::{Client, Incoming, Push};
use pumphouse::door::{Options, Tcp};
use pumphouse::listeners::echo::Echo;
use pumphouse::prelude::*;
use pumphouse::xml::Framing;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// What is said aloud.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/echo/v1")]
struct Add {
    /// The first.
    a: i64,
    /// The second.
    b: i64,
}

/// A pump with a door, the house staff and `adder`, which has no answer.
struct House {
    pump: Pump,
    address: SocketAddr,
}

impl House {
    async fn new(change: impl FnOnce(&mut Limits)) -> House {
        House::with(change, Options::default(), Listener::new("adder").on(add)).await
    }

    async fn with(change: impl FnOnce(&mut Limits), options: Options, listener: Listener) -> House {
        House::at("127.0.0.1:0", change, options, listener).await
    }

    async fn at(
        address: &str,
        change: impl FnOnce(&mut Limits),
        options: Options,
        listener: Listener,
    ) -> House {
        let mut limits =
            Limits { linger_time_max: Duration::from_millis(200), ..Limits::default() };
        change(&mut limits);
        let door = Tcp::bind(address, options).await.unwrap();
        let address = door.local_addr();
        let builder = pumphouse::builder().with(pumphouse::listeners::standard()).with(listener);
        House { pump: builder.with(door).limits(limits).build().unwrap().start(), address }
    }

    async fn client(&self) -> Client {
        Client::connect(self.address).await.unwrap()
    }

    async fn stream(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// Sends these bytes and no more, and reads to the end.
    async fn exchange(&self, bytes: &[u8]) -> String {
        let mut stream = self.stream().await;
        stream.write_all(bytes).await.unwrap();
        stream.shutdown().await.unwrap();
        text_to_end(&mut stream).await
    }
}

async fn add(_: Add) {}

fn echo(text: &str) -> Push {
    Push::of(&Echo { text: text.into() }).unwrap()
}

const ECHO: &str = "<echo xmlns=\"https://xml-pipeline.org/ns/echo/v1\"><text>hello</text></echo>";

/// A `<message>` with this in its `<meta>`.
fn message(meta: &str, payload: &str) -> String {
    let namespace = "https://xml-pipeline.org/ns/envelope/v1";
    format!("<message xmlns=\"{namespace}\"><meta>{meta}</meta>{payload}</message>")
}

fn counted(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    pumphouse::xml::frame(Framing::Length, text.as_bytes(), &mut out);
    out
}

async fn text_to_end(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).await.unwrap();
    String::from_utf8(bytes).unwrap()
}

/// All that still comes.
async fn rest(client: &mut Client) -> Vec<Incoming> {
    let mut all = Vec::new();
    while let Some(it) = client.recv().await.unwrap() {
        all.push(it);
    }
    all
}

/// In a few letters: `+` accepted, `?` an unknown thread, `P0007` refused, `echo` a message.
fn short(incoming: &[Incoming]) -> String {
    let words = incoming.iter().map(|it| match it {
        Incoming::Accepted { .. } => "+".to_owned(),
        Incoming::UnknownThread { .. } => "?".to_owned(),
        Incoming::Refused { huh, .. } => huh.code.clone(),
        Incoming::Message(it) => it.payload.local().to_owned(),
        other => format!("{other:?}"),
    });
    words.collect::<Vec<_>>().join(" ")
}
