//! `kill -9` under load: what was acknowledged is there, once, and answered; the head of before is
//! on the chain.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::sync::mpsc::{SyncSender, sync_channel};

use pumphouse::clock;
use serde_json::Value;

use crate::program::{Scene, Server};

/// Connections that push at once.
const CLIENTS: u64 = 4;
/// How many acknowledged pushes a kill waits for, at the most.
const ACKNOWLEDGED_MAX: u64 = 600;
/// Acknowledgements on their way to who counts them.
const WAITING: usize = 64;

/// What clients were told is in the log: the entry, and the text that they sent.
type Acknowledged = BTreeMap<String, String>;

#[test]
fn what_was_acknowledged_survives_a_kill() {
    #[expect(clippy::disallowed_methods, reason = "`just crash` says how often")]
    let rounds = std::env::var("PUMPHOUSE_CRASHES");
    let rounds: u64 = rounds.map_or(3, |it| it.parse().expect("a number of crashes"));
    let scene = Scene::new();
    let mut acknowledged = Acknowledged::new();
    let mut head = None;
    for round in 1..=rounds {
        let mut server = scene.serve(&[]);
        let threshold = 1 + clock::random() % ACKNOWLEDGED_MAX;
        let new = push_until(&mut server, round, threshold);
        println!("round {round}: {} acknowledged, killed after {threshold}", new.len());
        assert!(u64::try_from(new.len()).unwrap() >= threshold);
        acknowledged.extend(new);
        let server = scene.serve(&[]);
        check(&scene, &acknowledged, &mut head);
        drop(server);
    }
}

/// Pushes from several sides, kills after so many acknowledgements, and returns all that came.
fn push_until(server: &mut Server, round: u64, threshold: u64) -> Acknowledged {
    let (count, counted) = sync_channel(WAITING);
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| {
                let (count, address) = (count.clone(), server.address.clone());
                let name = format!("{round}-{client}");
                // Every other one stays in one thread.
                let stays = client % 2 == 1;
                scope.spawn(move || push(&address, &name, stays, &count))
            })
            .collect();
        drop(count);
        counted.iter().take(usize::try_from(threshold).unwrap()).for_each(drop);
        server.kill();
        // What is still on its way must not wait for us.
        counted.iter().for_each(drop);
        clients.into_iter().flat_map(|it| it.join().unwrap()).collect()
    })
}

/// Pushes until the connection breaks; what was acknowledged.
fn push(address: &str, name: &str, stays: bool, count: &SyncSender<()>) -> Acknowledged {
    let stream = TcpStream::connect(address).unwrap();
    let mut answers = BufReader::new(stream.try_clone().unwrap());
    let mut acknowledged = Acknowledged::new();
    let mut thread = None;
    if stays {
        let text = format!("{name}-first");
        let sent = (&stream).write_all(message(&text, None).as_bytes());
        let Some((entry, in_thread)) = sent.ok().and_then(|()| next(&mut answers)) else {
            return acknowledged;
        };
        acknowledged.insert(entry, text);
        thread = Some(in_thread);
        count.send(()).unwrap();
    }
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0.. {
                let text = message(&format!("{name}-{number}"), thread.as_deref());
                if (&stream).write_all(text.as_bytes()).is_err() {
                    return;
                }
            }
        });
        // Answers to pushes come in the order of the pushes.
        for number in 0.. {
            let Some((entry, _)) = next(&mut answers) else { break };
            acknowledged.insert(entry, format!("{name}-{number}"));
            // Whoever counts has seen enough.
            let _ = count.send(());
        }
        let _ = stream.shutdown(std::net::Shutdown::Both);
    });
    acknowledged
}

fn message(text: &str, thread: Option<&str>) -> String {
    let thread = thread.map(|it| format!("<thread>{it}</thread>")).unwrap_or_default();
    format!(
        "<message xmlns=\"https://xml-pipeline.org/ns/envelope/v1\"><meta>{thread}</meta>{}\
         </message>\n",
        payload(text)
    )
}

fn payload(text: &str) -> String {
    format!("<echo xmlns=\"https://xml-pipeline.org/ns/echo/v1\"><text>{text}</text></echo>")
}

/// The next acknowledgement: its entry and its thread; none once the connection is broken.
fn next(answers: &mut BufReader<TcpStream>) -> Option<(String, String)> {
    loop {
        let mut line = String::new();
        let read = answers.read_line(&mut line);
        // Half a line was never said.
        if read.is_err() || !line.ends_with('\n') {
            return None;
        }
        let Some((_, accepted)) = line.split_once("<accepted ") else {
            assert!(!line.contains("<huh "), "refused: {line}");
            continue;
        };
        let value = |name: &str| {
            let (_, rest) = accepted.split_once(&format!("{name}=\"")).unwrap();
            rest.split('"').next().unwrap().to_owned()
        };
        let thread = value("thread");
        return Some((format!("{thread}/{}", value("seq")), thread));
    }
}

/// Everything that was ever acknowledged is there and has one answer; the chain has grown.
fn check(scene: &Scene, acknowledged: &Acknowledged, head: &mut Option<String>) {
    let entries = answered(scene, acknowledged);
    let mut answers: BTreeMap<&str, &str> = BTreeMap::new();
    for it in entries.values() {
        let Some(to) = it["reply_to"].as_str() else { continue };
        let twice = answers.insert(to, it["entry"].as_str().unwrap());
        assert_eq!(twice, None, "{to} has two answers");
    }
    for (entry, text) in acknowledged {
        let there = entries.get(entry).unwrap_or_else(|| panic!("{entry} is lost: {text}"));
        assert_eq!(there["payload"], payload(text), "{entry}");
        let answer = &entries[answers[&**entry]];
        assert_eq!(answer["payload"], payload(text), "the answer to {entry}");
    }
    let texts: BTreeSet<&String> = acknowledged.values().collect();
    assert_eq!(texts.len(), acknowledged.len(), "no text was acknowledged twice");

    let mut verify = vec!["verify", "--json"];
    if let Some(head) = head {
        verify.extend(["--expect", head]);
    }
    let report = scene.run(&verify).code(0).objects().remove(0);
    assert_eq!(report["sound"], true, "{report}");
    *head = report["head"].as_str().map(str::to_owned);

    let some = usize::try_from(clock::random() % acknowledged.len() as u64).unwrap();
    let entry = acknowledged.keys().nth(some).unwrap();
    let why = scene.run(&["why", "--json", answers[&**entry]]).code(0).objects();
    assert_eq!((why.len(), &why[0]["entry"]), (2, &Value::from(entry.as_str())));
}

/// All entries, once what the kill left behind has been taken up.
fn answered(scene: &Scene, acknowledged: &Acknowledged) -> BTreeMap<String, Value> {
    let mut tries = 0;
    loop {
        let all = scene.run(&["tail", "--json", "-n", &u64::MAX.to_string()]).code(0).objects();
        let answered: BTreeSet<String> =
            all.iter().filter_map(|it| it["reply_to"].as_str().map(str::to_owned)).collect();
        tries += 1;
        if acknowledged.keys().all(|it| answered.contains(it)) || tries == 200 {
            let id = |it: &Value| it["entry"].as_str().unwrap().to_owned();
            return all.into_iter().map(|it| (id(&it), it)).collect();
        }
    }
}
