//! Measures what a call of a tool costs: `echo` for the pump alone, then `files.read`, a program of
//! `command`, and a tool of an MCP server. Measures also how long a pump takes to start, with an
//! MCP server and without one. Run it with `just tools-overhead` and nothing else on the machine.
//! It needs Python.
#![expect(clippy::print_stdout, reason = "that is what it is for")]
#![expect(clippy::disallowed_methods, reason = "it measures time")]
#![expect(clippy::expect_used, reason = "what fails here measures nothing")]

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use pumphouse::limits::XmlLimits;
use pumphouse::listeners::echo::echo;
use pumphouse::listeners::tool::command::command;
use pumphouse::listeners::tool::files::files;
use pumphouse::listeners::tool::{child_process, mcp};
use pumphouse::xml::{Profile, read};
use pumphouse_bench::executable;

/// An MCP server whose tool `say` returns the text that it gets.
const SERVER: &str = include_str!("tools/server.py");
/// Calls before the ones that are measured.
const WARM: usize = 20;
/// Starts of a pump. Their median is printed.
const STARTS: usize = 7;

fn main() -> ExitCode {
    if let Some(ended) = child_process(std::env::args_os()) {
        return ended;
    }
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("a.txt"), "Tea is green.\n".repeat(70)).expect("a file");
    fs::write(folder.path().join("server.py"), SERVER).expect("a file");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(calls(folder.path()));
    starts(folder.path());
    ExitCode::SUCCESS
}

/// Reads settings from JSON, as a manifest would have them.
fn settings<T: serde::de::DeserializeOwned>(json: &serde_json::Value) -> T {
    serde_json::from_value(json.clone()).expect("they are sound")
}

async fn calls(folder: &Path) {
    let root = folder.display().to_string();
    let server = folder.join("server.py").display().to_string();
    let files = files(&settings(&serde_json::json!({ "root": root }))).expect("files");
    let cat = serde_json::json!({ "run": ["cat"], "input": "text", "root": root });
    let cat = command(settings(&cat)).expect("command").named("cat");
    let words = serde_json::json!({ "command": ["python3", server], "trust": "all" });
    let words = &mut <dyn erased_serde::Deserializer<'_>>::erase(words);
    let asked = mcp::asking(None).make(words, &pumphouse::engine::Values::default());
    let words = asked.expect("mcp").named("words");
    let pump = pumphouse::builder().with((echo(), files, cat, words));
    let pump = pump.build().expect("it is sound").start();
    let ns = |name: &str| format!("https://xml-pipeline.org/ns/{name}/v1");
    let said = |tag: &str, name: &str, inside: &str| {
        format!("<{tag} xmlns=\"{}\">{inside}</{tag}>", ns(name))
    };
    println!("{:<28} {:>9} {:>9} {:>9}", "a call of", "p50", "p99", "calls");
    for (what, calls, payload) in [
        ("echo", 2_000, said("echo", "echo", "<text>tea</text>")),
        ("files.read, 1 KB", 2_000, said("read", "files", "<path>a.txt</path>")),
        ("command, cat", 200, said("run", "cat", "<text>tea</text>")),
        ("mcp, over stdio", 1_000, said("say", "mcp/words", "<words>tea</words>")),
    ] {
        let payload = read(payload, Profile::Wire, &XmlLimits::FILE).expect("well-formed");
        let mut times = Vec::new();
        for turn in 0..calls + WARM {
            let begun = Instant::now();
            let answer = pump.ask_element(payload.clone()).await.expect("an answer");
            let took = begun.elapsed();
            assert!(!answer.name().local().ends_with("failed"), "{answer:?}");
            times.extend((turn >= WARM).then_some(took));
        }
        times.sort_unstable();
        let at = |percent: usize| shown(times[times.len() * percent / 100]);
        println!("{what:<28} {:>9} {:>9} {calls:>9}", at(50), at(99));
    }
    pump.shutdown().await.expect("it stops");
}

/// Times the start of a pump, from its process to its first line, which says where it listens.
fn starts(folder: &Path) {
    let tools = "{use: files, settings: {root: .}}, {use: fetch}, {use: calculate}";
    let words = "{use: mcp, name: words, settings: {command: [python3, server.py]}}";
    println!("\n{:<28} {:>9}", "start of a pump", "median");
    for (what, listeners) in
        [("three tools", tools.to_owned()), ("and an MCP server", format!("{tools}, {words}"))]
    {
        let manifest = format!("listeners: [{listeners}]\ndoors: [{{tcp: \"127.0.0.1:0\"}}]\n");
        fs::write(folder.join("organism.yaml"), manifest).expect("a file");
        let mut times: Vec<Duration> = (0..STARTS).map(|_| start(folder)).collect();
        times.sort_unstable();
        println!("{what:<28} {:>9}", shown(times[STARTS / 2]));
    }
}

fn start(folder: &Path) -> Duration {
    let begun = Instant::now();
    let mut pump = Command::new(executable().expect("it is built"))
        .args(["run", "--json"])
        .current_dir(folder)
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut line = String::new();
    let out = pump.stdout.take().expect("it has one");
    BufReader::new(out).read_line(&mut line).expect("it speaks");
    let took = begun.elapsed();
    assert!(line.contains("accepting"), "{line}");
    pump.kill().expect("it ends");
    pump.wait().expect("it ends");
    took
}

fn shown(it: Duration) -> String {
    match it.as_micros() {
        us @ ..10_000 => format!("{us} µs"),
        us => format!("{:.1} ms", us as f64 / 1_000.0),
    }
}
