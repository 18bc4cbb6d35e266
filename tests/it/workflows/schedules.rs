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

/// A schedule of each second whose first runs are at work until there is a file `go`.
fn slow(overlap: &str) -> Scene {
    let scene = Scene::new();
    let wait = "[sh, -c, 'until test -e go; do sleep 0.05; done']";
    let steps = "[{name: wait, target: wait}]";
    let trigger = format!("{{every: 1s{overlap}}}");
    let workflow = format!("kind: Workflow\nname: often\ntrigger: {trigger}\nsteps: {steps}\n");
    scene.write("often.yml", workflow);
    let settings = format!("{{run: {wait}, takes: {{type: object}}}}");
    let wait = format!("{{use: command, name: wait, settings: {settings}}}");
    scene.write("organism.yaml", format!("include: [often.yml]\nlisteners: [{wait}]\n"));
    scene
}

/// The messages of a schedule, as JSON.
fn schedules(scene: &Scene) -> Vec<serde_json::Value> {
    let all = entries(scene).objects();
    let due = all.iter().filter(|it| it["name"] == "trigger-due");
    let value = |it: &str| {
        let text = it.split_once('>')?.1.rsplit_once("</")?.0;
        serde_json::from_str(text).ok()
    };
    due.filter_map(|it| value(it["payload"].as_str()?)).collect()
}

#[test]
fn a_time_that_comes_while_the_last_run_is_at_work_is_skipped_and_counted() {
    for overlap in ["", ", overlap: skip"] {
        let scene = slow(overlap);
        let server = scene.serve(&[]);
        has_at_least(&scene, "often", 1);
        pause(3_500);
        assert_eq!(runs(&scene, "often"), 1);
        scene.write("work/go", "");
        has_at_least(&scene, "often", 2);
        let schedules = schedules(&scene);
        assert_eq!(schedules[0]["skipped"], 0, "{schedules:?}");
        assert!(schedules[1]["skipped"].as_u64().unwrap() >= 2, "{schedules:?}");
        drop(server);
    }
}

/// A schedule of each second whose runs wait this long for a second attempt of their step.
fn waiting(overlap: &str, delay: &str) -> Scene {
    let scene = Scene::new();
    let policy = format!("{{max_attempts: 2, backoff: none, initial_delay: {delay}}}");
    let step = "name: a, target: calculate, parameters: {expression: 1 / 0}";
    let trigger = format!("{{every: 1s, overlap: {overlap}}}");
    let steps = format!("[{{{step}, retry_policy: {policy}}}]");
    let workflow = format!("kind: Workflow\nname: often\ntrigger: {trigger}\nsteps: {steps}\n");
    scene.write("often.yml", workflow);
    scene.write("organism.yaml", "include: [often.yml]\nlisteners: [{use: calculate}]\n");
    scene
}

#[test]
fn a_run_that_is_at_work_since_before_a_crash_counts() {
    let scene = waiting("skip", "60s");
    let server = scene.serve(&[]);
    has_at_least(&scene, "often", 1);
    server.signal("-KILL");
    drop(server);
    let server = scene.serve(&[]);
    pause(2_500);
    assert_eq!(runs(&scene, "often"), 1);
    drop(server);
}

#[test]
fn a_time_that_waits_begins_its_run_when_the_run_before_it_has_ended() {
    let scene = waiting("queue", "2s");
    let server = scene.serve(&[]);
    has_at_least(&scene, "often", 1);
    pause(1_500);
    assert_eq!(runs(&scene, "often"), 1);
    // The times that wait outlive a crash.
    server.signal("-KILL");
    drop(server);
    let server = scene.serve(&[]);
    has_at_least(&scene, "often", 3);
    let schedules = schedules(&scene);
    assert!(schedules.iter().all(|it| it["skipped"] == 0), "{schedules:?}");
    let times = times(&scene);
    assert_eq!(times[1] - times[0], 1, "{times:?}");
    drop(server);
}

#[test]
fn a_run_that_is_at_work_is_cancelled_for_the_next_one() {
    let scene = slow(", overlap: cancel");
    let server = scene.serve(&[]);
    has_at_least(&scene, "often", 3);
    let shown = scene.run(&["workflows", "--json"]).code(0).objects();
    let states: Vec<_> = shown.iter().map(|it| it["state"].as_str().unwrap()).collect();
    assert_eq!(&states[1..3], ["cancelled", "cancelled"], "{states:?}");
    entries(&scene).says(&["the next time of the schedule often has come"]);
    scene.write("work/go", "");
    drop(server);
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
