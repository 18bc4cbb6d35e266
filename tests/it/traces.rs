//! The traces that the program writes on its error output.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::process::Stdio;

use serde_json::Value;

use crate::program::Scene;

/// What a pump traces at `debug` while strangers send these, one connection each.
fn traced(more: &[&str], pushes: &[&str]) -> String {
    let scene = Scene::new();
    let traces = scene.path("traces");
    let verb = [more, &["run", "--json", "--listen", "127.0.0.1:0"]].concat();
    let mut command = scene.command(&verb);
    command.env("RUST_LOG", "debug").stderr(File::create(&traces).unwrap());
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let greeting: Value = serde_json::from_str(&line).unwrap();
    for push in pushes {
        let mut stream = TcpStream::connect(greeting["listen"][0].as_str().unwrap()).unwrap();
        stream.write_all(push.as_bytes()).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        stream.read_to_end(&mut Vec::new()).unwrap();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    fs::read_to_string(traces).unwrap()
}

#[test]
fn traces_steer_no_terminal_and_repeat_little_of_what_a_stranger_sent() {
    let long = "x".repeat(100_000);
    let push = |thread: &str| {
        format!(
            "<message xmlns=\"https://xml-pipeline.org/ns/envelope/v1\"><meta>\
             <thread>{thread}</thread></meta>\
             <echo xmlns=\"https://xml-pipeline.org/ns/echo/v1\"><text>a</text></echo></message>"
        )
    };
    let odd = "sess-&#x9B;31m&#x202E;&#x2028;&#x85;&#x3164;&#10;2026-11-23T00:00:00Z forged";
    for more in [&[][..], &["--log-json"]] {
        let text = traced(more, &[&push(odd), &push(&long)]);
        assert!(text.contains("sess-"), "the pushes are traced: {text}");
        for it in ['\u{9b}', '\u{202e}', '\u{2028}', '\u{85}', '\u{3164}'] {
            assert!(!text.contains(it), "{it:?}: {text}");
        }
        assert!(text.contains("forged"), "the whole of it is traced: {text}");
        assert!(!text.lines().any(|it| it.starts_with("2026-11-23")), "a line is forged: {text}");
        let longest = text.split(|it| it != 'x').map(str::len).max();
        assert!(longest <= Some(200), "{longest:?}");
    }
}
