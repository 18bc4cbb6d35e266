//! Triggers that go by a clock.

use std::time::{SystemTime, UNIX_EPOCH};

use super::triggers::{entries, has_at_least, pause, runs, scene};
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
