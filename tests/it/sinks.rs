//! Sinks of a manifest, as an operator sets them up: files, and a WebSocket whose peer goes away
//! and comes back.

mod channel;
mod files;
mod raw;
mod server;
mod websocket;

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
