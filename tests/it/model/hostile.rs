//! Hostile providers on every wire. The agent's work ends as its policy says, the log has the
//! reason, the pump's memory stays bounded, and nothing that the pump writes has the key.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::thread;

use pumphouse::model::Wire;
use serde_json::Value;

use super::fake::{Act, Asked, Server, head, say};
use super::speaking::speaking;
use super::wires::{begun, failure, head_of};
use crate::program::{self, Scene};

/// What nothing may show.
const KEY: &str = "sk-5d0e8c1d2f";

/// What a provider of a wire does with a request.
type Does = fn(Wire, &Asked) -> Vec<Act>;

const JSON: &str = "content-type: application/json\r\n";
const GZIP: &str = "content-encoding: gzip\r\n";

/// The beginning of a gzip file; each zero byte behind it is unpacked to 516 more.
const BOMB: &[u8] =
    b"\x1f\x8b\x08\0\0\0\0\0\x02\x03\xec\xc1\x01\x01\0\0\0\x80\x90\xfe\xaf\xee\x08\x0a";

/// An error that repeats the key.
fn echo() -> Act {
    say(format!("{{\"error\": {{\"message\": \"Your key is {KEY}\"}}}}"))
}

/// The same bytes, a megabyte at a time, so many times.
fn flood(byte: u8, times: usize) -> Act {
    Act::Flood(vec![byte; 1 << 20].into(), times)
}

/// What stands before the data of an event.
fn data(wire: Wire) -> &'static str {
    if wire == Wire::Ollama { "" } else { "data: " }
}

/// A reply that says this text and never ends.
fn unended(wire: Wire, text: &str) -> Vec<Act> {
    let whole = speaking(wire, &[text], &[]);
    let end = whole.find(text).unwrap() + text.len();
    let end = end + whole[end..].find('\n').unwrap();
    vec![head_of(wire), say(format!("{}\n\n", &whole[..end]))]
}

/// What a provider does, and what the work ends with.
const WAYS: [(&str, Does, &str); 18] = [
    (
        "a rate limit",
        |_, _| {
            let headers = format!("{JSON}retry-after: 3600\r\nx-key: {KEY}\r\n");
            vec![head("429 Too Many Requests", &headers), echo()]
        },
        "429 Too Many Requests; it said: Your key is …",
    ),
    (
        "a failure",
        |_, _| vec![head("500 Internal Server Error", JSON), echo()],
        "500 Internal Server Error; it said: Your key is …",
    ),
    ("an overload", |_, _| vec![head("529 Overloaded", JSON), echo()], "it said: Your key is …"),
    ("a wrong key", |_, _| vec![head("401 Unauthorized", JSON), echo()], "is the key right?"),
    (
        "a page",
        |_, _| {
            let page = format!("<html><title>{KEY}</title><body>{KEY}</body></html>");
            vec![head("200 OK", "content-type: text/html\r\n"), say(page)]
        },
        "the server sent a page for people",
    ),
    (
        "half a document",
        |_, _| vec![head("200 OK", JSON), say(format!("{{\"choices\": [\"{KEY}"))],
        "an event that is none of a reply",
    ),
    (
        "a document that is none",
        |_, _| vec![head("200 OK", JSON), say(format!("[\"{KEY}\"]"))],
        "an event that is none of a reply",
    ),
    (
        "an event that is none",
        |wire, _| vec![head_of(wire), say(format!("{}{KEY}\n\n", data(wire)))],
        "an event that is none of a reply",
    ),
    (
        "a long line",
        |wire, _| vec![head_of(wire), say(data(wire)), flood(b'x', 1_024)],
        "event_bytes_max is 1048576",
    ),
    (
        "a long document",
        |_, _| vec![head("200 OK", JSON), say("{\"a\": \""), flood(b'x', 1_024)],
        "the reply is over a limit",
    ),
    (
        "a bomb",
        |wire, _| {
            let media = if wire == Wire::Ollama { "x-ndjson" } else { "event-stream" };
            let headers = format!("content-type: text/{media}\r\n{GZIP}");
            vec![head("200 OK", &headers), say(BOMB), flood(0, 8)]
        },
        "",
    ),
    (
        "a bomb in an error",
        |_, _| vec![head("500 Internal Server Error", GZIP), say(BOMB), flood(0, 8)],
        "500 Internal Server Error",
    ),
    (
        "a redirect",
        |_, _| vec![head("302 Found", &format!("location: http://127.0.0.1:1/{KEY}/v1\r\n"))],
        "the server sends us elsewhere, 302 Found",
    ),
    ("silence before", |_, _| vec![Act::Hang], "first_byte_time_max is 300ms"),
    (
        "silence within",
        |wire, _| [unended(wire, KEY), vec![Act::Hang]].concat(),
        "silence_time_max is 300ms",
    ),
    ("a cut", |wire, _| unended(wire, KEY), "the reply was cut off before its end"),
    (
        "a failure within",
        |wire, _| {
            let failure = failure(wire).replace("Overloaded", &format!("Your key is {KEY}"));
            vec![head_of(wire), say(begun(wire)), say(failure)]
        },
        "the server failed in the middle of its reply; it said: Your key is …",
    ),
    (
        "the key in a reply",
        |wire, _| {
            let (first, rest) = KEY.split_at(4);
            let texts = ["<response>Your key is ", first, rest, "</response>"];
            vec![head_of(wire), say(speaking(wire, &texts, &[]))]
        },
        "Your key is …</response>",
    ),
];

/// A provider of each wire, at a path of its name, that does what the question says.
async fn provider() -> Server {
    Server::answering(|asked| {
        let line = asked.head.lines().next().unwrap();
        let wire = Wire::ALL.into_iter().find(|it| line.contains(&format!("/{it}/"))).unwrap();
        let body = asked.body.to_string();
        let way = WAYS.iter().find(|(name, ..)| body.contains(&format!("Do {name}!"))).unwrap();
        (way.1)(wire, asked)
    })
    .await
}

fn manifest(url: &str) -> String {
    let mut text = "models:\n".to_owned();
    let limits = "{retries_max: 0, first_byte_time_max: 300ms, silence_time_max: 300ms, \
                  usage_time_max: 300ms}";
    for wire in Wire::ALL {
        let url = url.replace("/v1", &format!("/{wire}/v1"));
        text += &format!(
            "  {wire}: {{use: {wire}, url: \"{url}\", model: m, key: \"${{TEST_KEY}}\", \
             limits: {limits}}}\n"
        );
    }
    text += "listeners:\n";
    for wire in Wire::ALL {
        text += &format!("  - {{use: agent, name: {wire}, model: {wire}}}\n");
    }
    text
}

/// Asks the agent of a wire: the answer, and the thread's entries.
fn ask(scene: &Scene, address: &str, wire: Wire, way: &str) -> (String, String) {
    let question =
        format!("<{wire} xmlns=\"https://xml-pipeline.org/ns/{wire}/v1\">Do {way}!</{wire}>");
    let sent = scene.pipe(&["send", "--json", "--connect", address], &question).objects();
    let answer = sent.iter().find(|it| it["event"] == "message");
    let answer = answer.unwrap_or_else(|| panic!("{wire}, {way}: {sent:?}"));
    let text = |it: &Value| it.as_str().unwrap().to_owned();
    (text(&answer["payload"]), text(&answer["thread"]))
}

/// The most memory that a process has had, in MiB.
fn peak_mib(id: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    let line = status.lines().find_map(|it| it.strip_prefix("VmHWM:"))?;
    Some(line.trim().trim_end_matches(" kB").parse::<u64>().ok()? / 1_024)
}

/// Everything below a folder, by name.
fn files(folder: &std::path::Path, all: &mut BTreeMap<String, Vec<u8>>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => files(&path, all),
            false => drop(all.insert(path.display().to_string(), fs::read(&path).unwrap())),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_a_provider_does_is_told_bounded_and_without_the_key() {
    let provider = provider().await;
    let scene = Scene::new();
    scene.write("organism.yaml", manifest(&provider.url()));
    let traces = scene.path("traces");
    let arguments = ["run", "--json", "--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0"];
    let mut command = scene.command(&arguments);
    command.env("RUST_LOG", "trace").env("TEST_KEY", KEY);
    command.stderr(File::create(&traces).unwrap());
    let mut pump = program::Server::begin(&mut command);
    let mut wrong = Vec::new();
    let mut threads = Vec::new();
    thread::scope(|scope| {
        let asking = Wire::ALL.map(|wire| {
            let (scene, address) = (&scene, &*pump.address);
            scope.spawn(move || WAYS.map(|(way, _, _)| ask(scene, address, wire, way)))
        });
        for (wire, asking) in Wire::ALL.into_iter().zip(asking) {
            let answers = asking.join().unwrap();
            for ((way, _, expected), (answer, thread)) in WAYS.into_iter().zip(answers) {
                let is_stopped = answer.starts_with("<agent-stopped ");
                if !answer.contains(expected) || is_stopped == (way == "the key in a reply") {
                    wrong.push(format!("{wire}, {way}: {answer}"));
                }
                threads.push((wire, way, thread));
            }
        }
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let metrics = pump.page();
    let peak_mib = peak_mib(pump.id());
    let (_, told) = pump.stop("-INT");
    assert!(peak_mib.is_none_or(|it| it < 400), "it had {peak_mib:?} MiB");
    assert!(provider.said() < 1 << 30, "it was told {} bytes", provider.said());
    for (wire, way, thread) in threads {
        let entries = scene.run(&["show", &thread, "--json"]).code(0).objects();
        let outs = entries.iter().filter(|it| it["name"] == "cognition_out");
        let mut outs = outs.map(|it| it["payload"].as_str().unwrap());
        let is_told = |it: &str| it.contains(" error=\"") || way == "the key in a reply";
        assert!(outs.by_ref().next().is_some_and(is_told), "{wire}, {way}: no turn says why");
        assert!(outs.all(is_told), "{wire}, {way}: a turn doesn't say why");
    }
    let mut all = BTreeMap::from([("metrics".to_owned(), metrics.into_bytes())]);
    all.insert("standard output".to_owned(), format!("{told:?}").into_bytes());
    files(scene.path("data").parent().unwrap(), &mut all);
    let has = |bytes: &[u8], text: &str| bytes.windows(text.len()).any(|it| it == text.as_bytes());
    assert!(has(&all[&traces.display().to_string()], " TRACE "), "nothing was traced");
    for (name, bytes) in &all {
        assert!(!has(bytes, KEY), "the key is in {name}");
    }
}
