//! Many connections at once: some send nothing, some stop in the middle of a message. The pump is
//! another process, as in production.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::time::Duration;

use pumphouse::clock;

use crate::program::Scene;

/// Connections that say nothing, unless it is told how many; half as many stop half-way.
const IDLE: usize = 300;
/// How long a new client may wait for its answer meanwhile.
const WAIT_MAX: Duration = Duration::from_millis(100);
/// How often a new client comes.
const CLIENTS: usize = 20;

const ECHO: &str = "<echo xmlns=\"https://xml-pipeline.org/ns/echo/v1\"><text>hello</text></echo>";

#[test]
fn a_crowd_that_says_nothing_holds_nobody_up() {
    #[expect(clippy::disallowed_methods, reason = "`just idle` says how many")]
    let idle = std::env::var("PUMPHOUSE_IDLE");
    let idle: usize = idle.map_or(IDLE, |it| it.parse().expect("a number of connections"));
    let scene = Scene::new();
    let server = scene.serve(&["--durability", "normal"]);
    let connect = || TcpStream::connect(&server.address).unwrap();
    let silent: Vec<TcpStream> = (0..idle).map(|_| connect()).collect();
    let half: Vec<TcpStream> = (0..idle / 2)
        .map(|_| {
            let mut stream = connect();
            stream.write_all(&ECHO.as_bytes()[..40]).unwrap();
            stream
        })
        .collect();
    let mut waits: Vec<Duration> = (0..CLIENTS).map(|_| served(connect)).collect();
    waits.sort();
    let (median, longest) = (waits[CLIENTS / 2], waits[CLIENTS - 1]);
    println!("{} silent, {} half-open: median {median:?}, longest {longest:?}", idle, half.len());
    assert!(median < WAIT_MAX, "{median:?}");
    drop((silent, half));
}

/// How long a new client waits, from its first step to its answer.
fn served(connect: impl FnOnce() -> TcpStream) -> Duration {
    let began = clock::now_us();
    let mut stream = connect();
    stream.write_all(ECHO.as_bytes()).unwrap();
    let mut lines = BufReader::new(stream).lines();
    assert!(lines.next().unwrap().unwrap().contains("<accepted "));
    assert!(lines.next().unwrap().unwrap().contains("<text>hello</text>"));
    Duration::from_micros(clock::now_us() - began)
}
