//! Sinks of a manifest, as an operator has them: files, and a WebSocket that goes away and comes
//! back.

mod channel;
mod files;
mod server;
mod websocket;

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use pumphouse::clock::now_us;
use serde_json::Value;

use crate::program::{Scene, Server};

const ECHO: &str = "<echo xmlns=\"https://xml-pipeline.org/ns/echo/v1\"><text>hi</text></echo>";

/// A folder with a pump that echoes and has these sinks.
fn scene(sinks: &str) -> Scene {
    let scene = Scene::new();
    scene.write("organism.yaml", format!("listeners: [{{use: echo}}]\n{sinks}"));
    scene
}

/// Pushes, and waits for the answer: two entries.
fn push(scene: &Scene, server: &Server) {
    scene.pipe(&["send", "--connect", &server.address], ECHO).code(0);
}

/// All entries of the log, as objects.
fn logged(scene: &Scene) -> Vec<Value> {
    scene.run(&["tail", "-n", "1000", "--json"]).code(0).objects()
}

/// Waits until something is so.
#[track_caller]
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end_us = now_us() + 60_000_000;
    while !is_so() {
        assert!(now_us() < end_us, "{what}");
        std::thread::park_timeout(Duration::from_millis(20));
    }
}

/// What the metrics say under a name and its labels.
fn metric(server: &Server, name: &str) -> u64 {
    let url = server.greeting["metrics"][0].as_str().unwrap();
    let at = url.trim_start_matches("http://").trim_end_matches("/metrics");
    let mut stream = TcpStream::connect(at).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).unwrap();
    let line = page.lines().find_map(|it| it.strip_prefix(name));
    line.unwrap_or_else(|| panic!("no {name} in {page}")).trim().parse().unwrap()
}
