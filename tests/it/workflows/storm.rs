//! A burst of metadata updates. A trigger fires once for each edge, in order, even if the pump is
//! killed.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::program::Scene;

/// How many updates there are, unless `PUMPHOUSE_STORM` says otherwise.
const UPDATES: usize = 600;
/// How often the pump is killed.
const KILLS: usize = 4;

/// Updates of a status that changes now and then, each with its number; and the numbers of those
/// with which the status becomes CODING.
fn updates(count: usize) -> (String, Vec<u64>) {
    let (mut text, mut edges, mut chance, mut status) = (String::new(), Vec::new(), 7_u64, "IDLE");
    for number in 0..count as u64 {
        chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        if (chance >> 33).is_multiple_of(20) {
            let next = ["IDLE", "CODING", "TESTING"][usize::try_from(chance >> 60).unwrap() % 3];
            if next == "CODING" && status != "CODING" {
                edges.push(number);
            }
            status = next;
        }
        let fields = format!("{{\"status\": \"{status}\", \"count\": {number}}}");
        text += &format!("<metadata>{fields}</metadata>\n");
    }
    (text, edges)
}

/// The numbers of the updates with which the trigger fired, in the order of the log.
fn fired(scene: &Scene, thread: &str) -> Vec<u64> {
    let entries = scene.run(&["show", thread, "--json"]).code(0).objects();
    let decided = entries.iter().filter(|it| it["name"] == "triggers-decided");
    let fires = decided.filter_map(|it| it["payload"].as_str());
    let fires = fires.filter(|it| it.contains("fires=\"true\""));
    let number = |it: &str| {
        let fields = it.split_once("<fields>")?.1.split_once("</fields>")?.0;
        serde_json::from_str::<Value>(fields).ok()?["count"].as_u64()
    };
    fires.filter_map(number).collect()
}

/// Waits until a thread has so many entries.
#[expect(clippy::disallowed_methods, reason = "a served pump works by the clock")]
fn await_entries(scene: &Scene, wanted: usize) {
    let until = Instant::now() + Duration::from_secs(60);
    let has_them = || {
        let threads = scene.run(&["threads", "--json"]).objects();
        let mut entries = threads.iter().filter_map(|it| it["entries"].as_u64());
        entries.any(|it| it >= wanted as u64)
    };
    while !has_them() {
        assert!(Instant::now() < until, "no thread has {wanted} entries");
    }
}

/// How many updates the log has.
fn updates_in(scene: &Scene) -> usize {
    let verb = ["tail", "--json", "--payload", "metadata", "-n", "1000000"];
    scene.run(&verb).code(0).objects().len()
}

#[test]
fn each_edge_fires_once_and_in_order_where_the_pump_is_killed() {
    storm(false);
}

#[test]
fn each_edge_of_shared_metadata_fires_once_and_in_order_where_the_pump_is_killed() {
    storm(true);
}

/// The triggers watch the agent that sets the metadata or, if they are shared, its caller.
#[expect(clippy::disallowed_methods, reason = "a served pump works by the clock")]
fn storm(is_shared: bool) {
    let count = std::env::var("PUMPHOUSE_STORM").map_or(UPDATES, |it| it.parse().unwrap());
    let (text, edges) = updates(count);
    let scene = Scene::new();
    scene.write("replies.txt", format!("%% reply\n{text}<response>Done.</response>\n"));
    let steps = "[{name: note, target: echo, parameters: {text: coding}}]";
    let trigger = "{conditions: {status: CODING}}";
    scene.write("w.yml", format!("kind: Workflow\nname: w\ntrigger: {trigger}\nsteps: {steps}\n"));
    let fields =
        "{status: {values: [IDLE, CODING, TESTING], default: IDLE}, count: {type: number}}";
    let call = "<action type=\"agent\" id=\"a\" timeout=\"600\">{\"name\": \"coder\", \
                \"parameters\": {\"text\": \"Go.\"}}</action>";
    scene.write(
        "boss.txt",
        format!("%% reply\n{call}\n%% reply\n<response final=\"true\">All done.</response>\n"),
    );
    let models = "models:\n  m: {use: scripted, file: replies.txt}\n  boss: {use: scripted, file: \
                  boss.txt}\ninclude: [w.yml]\nlimits: {emissions_max: 50000}\n";
    let metadata = format!("metadata: {{fields: {fields}");
    let (watched, coder) = match is_shared {
        false => ("coder", format!("workflows: [w], {metadata}}}")),
        true => ("boss", format!("{metadata}}}")),
    };
    let boss = format!("peers: [coder], workflows: [w], {metadata}, children: share}}");
    let boss = format!("  - {{use: agent, name: boss, model: boss, {boss}}}\n");
    let coder = format!("  - {{use: agent, name: coder, model: m, {coder}}}\n");
    let boss = if is_shared { boss } else { String::new() };
    let listeners = format!("  - {{use: echo}}\n{coder}{boss}");
    scene.write("organism.yaml", format!("{models}listeners:\n{listeners}"));
    let server = scene.serve(&[]);
    let ask =
        format!("<{watched} xmlns=\"https://xml-pipeline.org/ns/{watched}/v1\">Go.</{watched}>");
    let mut sending = scene.command(&["send", "--connect", &server.address]);
    scene.write("ask.xml", ask);
    sending.arg("ask.xml").stdout(std::process::Stdio::null());
    let mut sending = sending.stderr(std::process::Stdio::null()).spawn().unwrap();
    let thread = loop {
        let threads = scene.run(&["threads", "--json"]).objects();
        if let Some(it) = threads.iter().find_map(|it| it["thread"].as_str()) {
            break it.to_owned();
        }
    };
    let mut server = Some(server);
    // How many updates the log had at each kill.
    let mut counts = Vec::new();
    for kill in 1..=KILLS {
        await_entries(&scene, kill * count / 20);
        server.take().unwrap().signal("-KILL");
        counts.push(updates_in(&scene));
        server = Some(scene.serve(&[]));
    }
    let within = counts.iter().filter(|it| **it > 0 && **it < count).count();
    assert!(within > KILLS / 2, "kills missed the storm: {counts:?} of {count}");
    let _ = sending.kill();
    let _ = sending.wait();
    crate::until(|| scene.run(&["show", &thread]).out.contains("final=\"true\""));
    // What the last update means is decided behind the answer, too.
    crate::until(|| fired(&scene, &thread).len() >= edges.len());
    assert_eq!(fired(&scene, &thread), edges);
    let runs = scene.run(&["workflows", "-n", "100000", "--json"]).code(0).objects();
    assert_eq!(runs.len(), edges.len());
    drop(server);
}
