//! Triggers that fire at times of the clock.

use std::time::{SystemTime, UNIX_EPOCH};

use super::triggers::{echo, entries, has_at_least, pause, runs, scene, send, workflow};
use crate::program::Scene;

/// The times of the messages of a schedule, in seconds since the epoch.
fn times(scene: &Scene) -> Vec<u64> {
    let all = entries(scene).objects();
    let due = all.iter().filter(|it| it["name"] == "trigger-due");
    let time = |it: &str| {
        let time = it.split_once("\"due\":\"")?.1.split_once('"')?.0;
        let time: pumphouse::wire::Timestamp = time.parse().ok()?;
        u64::try_from(time.as_second()).ok()
    };
    due.filter_map(|it| time(it["payload"].as_str()?)).collect()
}

#[expect(clippy::disallowed_methods, reason = "a served pump works by the clock")]
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

#[test]
fn a_schedule_skips_times_that_pass_while_the_pump_is_down() {
    let scene = scene(&[("often", "{every: 1s, missed: skip}")]);
    let server = scene.serve(&[]);
    has_at_least(&scene, "often", 2);
    server.signal("-KILL");
    drop(server);
    let (before, down) = (runs(&scene, "often"), now());
    pause(3_000);
    let up = now();
    let server = scene.serve(&[]);
    has_at_least(&scene, "often", before + 2);
    let times = times(&scene);
    assert!(times.len() >= before + 2, "{times:?}");
    assert!(!times.iter().any(|it| (down + 1..=up).contains(it)), "{down} {up} {times:?}");
    drop(server);
}

#[test]
fn a_cron_pattern_fires_when_its_times_come() {
    let pattern = "{cron: \"*/2 * * * * *\", time_zone: Europe/Berlin}";
    let scene = scene(&[("often", pattern)]);
    let server = scene.serve(&[]);
    has_at_least(&scene, "often", 2);
    let times = times(&scene);
    assert!(times.len() >= 2 && times.iter().all(|it| it.is_multiple_of(2)), "{times:?}");
    drop(server);
}

#[test]
fn a_schedule_begins_its_runs_below_its_thread() {
    let scene = scene(&[("often", "{every: 36500d}")]);
    let server = scene.serve(&[]);
    let sent = send(&scene, &server, &echo("x")).code(0).objects();
    let session = sent.iter().find_map(|it| it["thread"].as_str()).unwrap();
    server.signal("-TERM");
    drop(server);
    let trigger = format!("{{every: 1s, thread: {session}}}");
    scene.write("often.yml", workflow("often", &trigger));
    let server = scene.serve(&[]);
    has_at_least(&scene, "often", 2);
    drop(server);
    let threads = scene.run(&["threads", "--json"]).code(0).objects();
    let strays: Vec<_> = threads
        .iter()
        .filter_map(|it| it["thread"].as_str())
        .filter(|it| !it.starts_with(session) && *it != "organism")
        .collect();
    assert!(strays.is_empty(), "{strays:?}");
    scene.run(&["show", &format!("{session}.often")]).code(0).says(&["<workflow-result"]);
}

#[test]
fn only_operators_read_the_sessions_of_a_schedule() {
    let scene = scene(&[("often", "{every: 1s}")]);
    let server = scene.serve(&["--unix", "pump.sock"]);
    has_at_least(&scene, "often", 1);
    let threads = scene.run(&["threads", "--json"]).code(0).objects();
    let session = threads
        .iter()
        .filter_map(|it| it["thread"].as_str())
        .find_map(|it| it.strip_suffix(".often"))
        .unwrap();
    let shown = scene.run(&["show", session]).code(0);
    shown.says(&["core", "<trigger-due"]);
    let show = |address: &str| scene.run(&["show", session, "--connect", address]);
    show("unix:pump.sock").code(0).says(&["<trigger-due"]);
    let refused = show(&server.address);
    assert!(!refused.out.contains("<trigger-due"), "{}", refused.out);
    drop(server);
}
