//! Triggers of the whole organism: on payloads, faults, threads, pushed events and times.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::program::{Ran, Scene, Server};

/// A workflow that adds one and one, with this trigger.
pub(super) fn workflow(name: &str, trigger: &str) -> String {
    let steps = "[{name: sum, target: calculate, parameters: {expression: \"1 + 1\"}}]";
    format!("kind: Workflow\nname: {name}\ntrigger: {trigger}\nsteps: {steps}\n")
}

/// A folder with these workflows, and with the listeners `echo` and `calculate`.
pub(super) fn scene(workflows: &[(&str, &str)]) -> Scene {
    let scene = Scene::new();
    for (name, trigger) in workflows {
        scene.write(&format!("{name}.yml"), workflow(name, trigger));
    }
    let listeners = "listeners: [{use: calculate}, {use: echo}]\n";
    scene.write("organism.yaml", format!("include: [\"*.yml\"]\n{listeners}"));
    scene
}

/// Sends messages, each in a session of its own. Returns what the command says.
#[track_caller]
pub(super) fn send(scene: &Scene, server: &Server, messages: &str) -> Ran {
    scene.pipe(&["send", "--connect", &server.address, "--json"], messages)
}

/// All entries of the log.
pub(super) fn entries(scene: &Scene) -> Ran {
    scene.run(&["tail", "--json", "-n", "100000"]).code(0)
}

pub(super) fn echo(text: &str) -> String {
    format!("<echo xmlns=\"https://xml-pipeline.org/ns/echo/v1\"><text>{text}</text></echo>")
}

fn event(name: &str, input: &str) -> String {
    let ns = "https://xml-pipeline.org/ns/trigger/v1";
    format!("<trigger xmlns=\"{ns}\" name=\"{name}\">{input}</trigger>")
}

/// The threads of the log whose first message is for this workflow.
pub(super) fn runs(scene: &Scene, workflow: &str) -> usize {
    let threads = scene.run(&["threads", "--json"]).code(0).objects();
    let is_run = |it: &&Value| {
        let id = it["thread"].as_str().unwrap_or_default();
        id.rsplit('.').next().is_some_and(|label| label.split('-').next() == Some(workflow))
            && id.contains('.')
    };
    threads.iter().filter(is_run).count()
}

/// The present time in microseconds since 1970.
#[expect(clippy::disallowed_methods, reason = "a served pump works by the clock")]
fn wall_us() -> u128 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.expect("the clock is set").as_micros()
}

#[expect(clippy::disallowed_methods, reason = "a served pump works by the clock")]
pub(super) fn pause(millis: u64) {
    std::thread::sleep(Duration::from_millis(millis));
}

/// Waits until a workflow has this many runs.
#[expect(clippy::disallowed_methods, reason = "a served pump works by the clock")]
pub(super) fn has_at_least(scene: &Scene, workflow: &str, expected: usize) {
    let until = Instant::now() + Duration::from_secs(20);
    while runs(scene, workflow) < expected && Instant::now() < until {
        pause(50);
    }
}

/// Waits until a workflow has this many runs, and checks that it gets no more.
#[track_caller]
pub(super) fn has_runs(scene: &Scene, workflow: &str, expected: usize) {
    has_at_least(scene, workflow, expected);
    pause(400);
    assert_eq!(runs(scene, workflow), expected, "{}", scene.run(&["threads"]).out);
}

#[test]
fn a_payload_triggers_a_run_in_its_tree_when_its_fields_match() {
    let scene = scene(&[("archive", "{payload: echo, from: console, conditions: {text: fire}}")]);
    let server = scene.serve(&[]);
    let sent = send(&scene, &server, &(echo("calm") + &echo("fire"))).code(0);
    has_runs(&scene, "archive", 1);
    let sent = sent.objects();
    let sessions: Vec<&str> = sent.iter().filter_map(|it| it["thread"].as_str()).collect();
    let run = sessions.iter().find_map(|session| {
        let ran = scene.run(&["show", &format!("{session}.archive")]);
        ran.out.contains("<workflow-result").then_some(ran)
    });
    run.expect("the run is below one of the sessions").says(&["\"text\":\"fire\""]);
    drop(server);
}

#[test]
fn each_message_fires_once_where_the_pump_is_killed() {
    let scene = scene(&[("archive", "{payload: echo, from: console}")]);
    let mut messages = 0;
    for _ in 0..4 {
        let server = scene.serve(&[]);
        let sent = send(&scene, &server, &echo("x").repeat(5)).code(0);
        drop(sent);
        messages += 5;
        server.signal("-KILL");
    }
    let server = scene.serve(&[]);
    has_runs(&scene, "archive", messages);
    drop(server);
}

/// A workflow that echoes these texts.
fn echoing(name: &str, trigger: &str, texts: &[&str]) -> String {
    let step = |(number, text): (usize, &&str)| {
        format!("  - {{name: s{number}, target: echo, parameters: {{text: {text}}}}}\n")
    };
    let steps: String = texts.iter().enumerate().map(step).collect();
    format!("kind: Workflow\nname: {name}\ntrigger: {trigger}\nsteps:\n{steps}")
}

/// Adds a limit to the manifest.
fn limit(scene: &Scene, limit: &str) {
    let manifest = std::fs::read_to_string(scene.path("organism.yaml")).unwrap();
    scene.write("organism.yaml", manifest + &format!("limits: {{{limit}}}\n"));
}

#[test]
fn a_chain_of_triggers_ends_at_the_depth_of_threads() {
    let scene = scene(&[]);
    for number in 0..5 {
        let trigger = format!("{{payload: echo, from: echo, conditions: {{text: t{number}}}}}");
        let (name, next) = (format!("w{number}"), format!("t{}", number + 1));
        scene.write(&format!("{name}.yml"), echoing(&name, &trigger, &[&next]));
    }
    limit(&scene, "thread_depth_max: 3");
    let server = scene.serve(&[]);
    send(&scene, &server, &echo("t0")).code(0);
    has_runs(&scene, "w2", 1);
    assert_eq!(runs(&scene, "w3"), 0);
    entries(&scene).says(&["4 triggers have begun one another; thread_depth_max is 3"]);
    drop(server);
}

#[test]
fn a_trigger_begins_no_run_for_an_entry_of_its_own_run() {
    let scene = scene(&[("after", "{type: thread_state}"), ("first", "{event: begin}")]);
    scene.write("again.yml", echoing("again", "{payload: echo}", &["one", "two"]));
    let server = scene.serve(&[]);
    // The message and its answer fire the trigger.
    send(&scene, &server, &echo("x")).code(0);
    has_runs(&scene, "again", 2);
    entries(&scene).says(&["the entry was sent within a run of this trigger, which sess-"]);
    // Each of these runs begins one of `after` when it ends, and the run of an event does, too.
    send(&scene, &server, &event("begin", "")).code(0);
    has_runs(&scene, "after", 3);
    assert_eq!(runs(&scene, "again"), 2);
    drop(server);
}

#[test]
fn a_circle_of_triggers_ends_where_it_closes() {
    let scene = scene(&[]);
    let trigger =
        |text: &str| format!("{{payload: echo, from: echo, conditions: {{text: {text}}}}}");
    scene.write("a.yml", echoing("a", &trigger("to_a"), &["to_b"]));
    scene.write("b.yml", echoing("b", &trigger("to_b"), &["to_a"]));
    let server = scene.serve(&[]);
    send(&scene, &server, &echo("to_a")).code(0);
    has_runs(&scene, "b", 1);
    has_runs(&scene, "a", 1);
    entries(&scene).says(&["the entry was sent within a run of this trigger"]);
    drop(server);
}

#[test]
fn the_runs_that_triggers_begin_because_of_one_are_limited() {
    let scene =
        scene(&[("second", "{payload: echo, from: echo, conditions: {text: [a, b, c, d]}}")]);
    let first = echoing("first", "{payload: echo, from: console}", &["a", "b", "c", "d"]);
    scene.write("first.yml", first);
    limit(&scene, "trigger_runs_max: 3");
    let server = scene.serve(&[]);
    for runs in [3, 6] {
        // Each message is a cause of its own.
        send(&scene, &server, &echo("x")).code(0);
        has_runs(&scene, "second", runs);
    }
    entries(&scene).says(&["triggers began 3 runs because of sess-", "trigger_runs_max is 3"]);
    drop(server);
}

#[test]
fn a_fault_triggers_a_run() {
    let scene = scene(&[("alarm", "{type: fault, conditions: {code: P0043}}")]);
    let manifest = std::fs::read_to_string(scene.path("organism.yaml")).unwrap();
    let repeated = "steps: [{name: a, target: echo, parameters: {text: x}}, \
                    {name: b, target: echo, parameters: {text: x}}]";
    scene.write("twice.yml", format!("kind: Workflow\nname: twice\n{repeated}\n"));
    scene.write("organism.yaml", manifest + "limits: {repeats_max: 1}\n");
    let server = scene.serve(&[]);
    scene.run(&["workflow", "run", "twice.yml", "--connect", &server.address]).code(1);
    has_runs(&scene, "alarm", 1);
    drop(server);
}

#[test]
fn an_event_triggers_the_runs_that_wait_for_it_and_tells_who_pushed_it() {
    let trigger = "{event: deploy, conditions: \"event.branch == 'main'\"}";
    let scene = scene(&[("deploy", trigger)]);
    let server = scene.serve(&[]);
    let main = send(&scene, &server, &event("deploy", "{\"branch\": \"main\"}")).code(0);
    main.says(&["fires=\\\"true\\\"", "event.branch"]);
    has_runs(&scene, "deploy", 1);
    let other = send(&scene, &server, &event("deploy", "{\"branch\": \"x\"}")).code(0);
    other.says(&["fires=\\\"false\\\""]);
    let unknown = send(&scene, &server, &event("deplo", ""));
    unknown.says(&["no trigger waits for deplo; did you mean deploy?"]);
    let broken = send(&scene, &server, &event("deploy", "{branch}"));
    broken.says(&["the input is no JSON object"]);
    let list = send(&scene, &server, &event("deploy", "[1]"));
    list.says(&["is JSON, but no object"]);
    has_runs(&scene, "deploy", 1);
    drop(server);
}

#[test]
fn an_event_with_a_client_id_begins_one_run() {
    let scene = scene(&[("deploy", "{event: deploy}")]);
    let server = scene.serve(&[]);
    let envelope = "https://xml-pipeline.org/ns/envelope/v1";
    let message = format!(
        "<message xmlns=\"{envelope}\"><meta><id>push-7</id></meta>{}</message>",
        event("deploy", "{}")
    );
    for _ in 0..3 {
        send(&scene, &server, &message).code(0);
    }
    has_runs(&scene, "deploy", 1);
    drop(server);
}

#[test]
fn a_time_that_passes_while_the_pump_is_down_begins_one_run_or_none() {
    let scene = scene(&[
        ("often", "{every: 1s}"),
        ("soon", "{at: \"2999-01-01T00:00:00\", time_zone: Europe/Berlin}"),
    ]);
    let server = scene.serve(&[]);
    has_at_least(&scene, "often", 2);
    server.signal("-TERM");
    drop(server);
    let before = runs(&scene, "often");
    let down = wall_us();
    pause(3_000);
    let up = wall_us();
    let server = scene.serve(&[]);
    has_at_least(&scene, "often", before + 2);
    let messages = entries(&scene).out;
    // A client id ends with the time that came. The others of these times are missed, or skipped
    // where an earlier run was still under way at the stop.
    let came = messages.split("\"client_id\":\"often/").skip(1);
    let times = came.filter_map(|it| it.split('"').next()?.parse::<u128>().ok());
    let meanwhile = times.filter(|it| (down..up).contains(it)).count();
    assert!(meanwhile <= 1, "{meanwhile} between {down} and {up}: {messages}");
    let told = messages.lines().filter(|it| it.contains("trigger-due"));
    let none = "\\\"missed\\\":0,\\\"skipped\\\":0}";
    assert!(told.filter(|it| !it.contains(none)).count() >= 1, "{messages}");
    assert_eq!(runs(&scene, "soon"), 0);
    drop(server);
}

#[test]
fn a_trigger_that_is_switched_off_begins_nothing_until_it_is_switched_on() {
    let scene = scene(&[("archive", "{payload: echo, from: console}")]);
    let operator = ["--connect", "unix:pump.sock"];
    let switch =
        |verb: &str, name: &str| scene.run(&[&["trigger", verb, name][..], &operator].concat());
    let server = scene.serve(&["--unix", "pump.sock"]);
    switch("disable", "archive").code(0).says(&["archive is switched off by"]);
    switch("disable", "archiv")
        .code(1)
        .says(&["there is no trigger archiv; did you mean archive?"]);
    send(&scene, &server, &echo("x")).code(0);
    has_runs(&scene, "archive", 0);
    // It stays off when the pump is started anew.
    server.signal("-TERM");
    drop(server);
    let server = scene.serve(&["--unix", "pump.sock"]);
    send(&scene, &server, &echo("x")).code(0);
    has_runs(&scene, "archive", 0);
    assert!(entries(&scene).out.contains("it is switched off"));
    switch("enable", "archive").code(0).says(&["archive is switched on by"]);
    send(&scene, &server, &echo("x")).code(0);
    has_runs(&scene, "archive", 1);
    let refused = scene.run(&["trigger", "disable", "archive", "--connect", &server.address]);
    let told = "refused: console may not switch triggers; operators may: a caller over the Unix \
                socket, or one whose token is an operator's";
    let refused = refused.code(1).says(&[told]);
    assert!(!refused.out.contains("<trigger-refused"), "{}", refused.out);
    drop(server);
}

/// Checks that `check` refuses a trigger at this column of its line, with this text.
#[track_caller]
fn refused(trigger: &str, column: usize, expected: &str) {
    let place = format!("archive.yml:3:{column}: ");
    scene(&[("archive", trigger)]).run(&["check"]).code(1).says(&[&place, expected]);
}

#[test]
fn a_trigger_of_the_organism_is_compared_with_its_payloads() {
    let unknown = "no listener takes or sends a payload `ecko`; did you mean `echo`?";
    refused("{payload: ecko}", 20, unknown);
    let field = "`payload` has no `txt`; did you mean `text`?";
    refused("{payload: echo, conditions: {txt: x}}", 38, field);
    refused("{payload: trigger-due}", 20, "`trigger-due` is a payload of the triggers' own");
    let ran = scene(&[("archive", "{payload: ecko}")]).run(&["run", "--listen", "127.0.0.1:0"]);
    ran.code(2).says(&["archive.yml:3:20: ", unknown]);
}

#[test]
fn a_trigger_that_can_not_fire_is_refused() {
    let wrong = "`thread.status` is one of completed, empty, failed, cancelled, never \"done\"";
    refused("{type: thread_state, conditions: {status: done}}", 43, wrong);
    refused("{payload: echo, fire: level}", 32, "a trigger of the type payload has no `fire`");
    refused("{type: event}", 10, "a trigger of the type event needs `event`");
    refused("{event: \"\"}", 18, "an event has a name, as in `event: deploy`");
    refused("{every: 1s, cron: \"* * * * *\"}", 10, "one of `at`, `every` and `cron`");
    refused("{cron: \"0 25 * * *\"}", 17, "25 is no hour; it takes 0 to 23");
    refused("{cron: \"0 0 31 2 *\"}", 17, "`0 0 31 2 *` never comes: no month");
    let zone = "there is no time zone `Europe/Berln`";
    refused("{cron: \"0 9 * * *\", time_zone: Europe/Berln}", 41, zone);
    refused("{at: soon}", 15, "`soon` is no time");
    refused("{every: 10ms}", 18, "this is 0.01 s, and trigger_every_min is 1 s");
    refused("{every: 0}", 18, "this is 0 s, and trigger_every_min is 1 s: write `every: 1s`");
    refused("{every: 99999999d}", 18, "trigger_every_max is 36500 d");
    let zone = "`time_zone` means nothing beside `every`";
    refused("{every: 1h, time_zone: Europe/Berlin}", 33, zone);
    let all = "`match_all` means nothing here";
    refused("{event: a, conditions: \"event.b == 1\", match_all: false}", 60, all);
    refused("{conditions: {a: 1}, fire: level, for: 3s}", 49, "`for` goes with `fire: edge` only");
    refused("{every: 1h, thread: nope}", 30, "no thread can have the id `nope`");
    refused("{every: 1h, thread: organism}", 30, "no thread can have the id `organism`");
}

#[test]
fn the_code_of_a_fault_must_be_one_that_there_is() {
    let near = "never \"P0111\"; did you mean \"P0011\"?; docs/faults/README.md lists the codes";
    refused("{type: fault, conditions: {code: P0111}}", 36, near);
    refused("{type: fault, conditions: {code: [P0011, X]}}", 36, "one of P0001, P0002, P0003, … (");
    refused("{type: fault, conditions: {cod: P0011}}", 36, "`fault` has no `cod`; did you mean");
    // `trigger test` goes by the same rules, and needs no manifest.
    let scene = scene(&[("archive", "{type: fault, conditions: {code: P0111}}")]);
    let arguments = ["trigger", "test", "archive.yml", "--value", "{\"code\": \"P0111\"}"];
    scene.run(&arguments).code(2).says(&["archive.yml:3:36: ", near]);
}

#[test]
fn a_trigger_is_a_map_of_keys() {
    let form = "a map of keys, as in `trigger: {type: event, event: deploy}`, is expected";
    refused("deploy", 10, &format!("this is `deploy`, and {form}"));
    refused("[{event: deploy}]", 10, &format!("this is a list, and {form}"));
}

#[test]
fn the_next_times_of_a_schedule_are_shown_in_its_zone() {
    let scene = scene(&[("nightly", "{cron: \"30 2 * * *\", time_zone: Europe/Berlin}")]);
    let ran = scene.run(&["trigger", "test", "nightly.yml"]).code(0);
    assert_eq!(ran.out.matches("T02:30:00+0").count(), 3, "{}", ran.out);
    let past = workflow("past", "{at: \"2020-01-01T00:00:00Z\"}");
    scene.write("past.yml", past);
    scene.run(&["trigger", "test", "past.yml"]).code(1).says(&["its time has passed"]);
}

#[test]
fn what_is_recorded_in_two_threads_is_one_event() {
    let scene = Scene::new();
    scene.write("onalert.yml", workflow("onalert", "{payload: alert-raised}"));
    scene.write(
        "organism.yaml",
        "include: [\"*.yml\"]\nlisteners: [{use: alerts, settings: {raised_by: [console]}}, \
         {use: calculate}]\n",
    );
    let traces = scene.path("traces");
    let to = std::fs::File::create(&traces).unwrap();
    let mut server = scene.serve_traced(&[], to.into());
    let alert = |text: &str| {
        let ns = "https://xml-pipeline.org/ns/alerts/v1";
        format!("<raise-alert xmlns=\"{ns}\" id=\"disk\">{text}</raise-alert>")
    };
    send(&scene, &server, &alert("full")).code(0);
    has_runs(&scene, "onalert", 1);
    // The same alert once more is another event, of the caller's session.
    let told = send(&scene, &server, &alert("full")).code(0).objects();
    has_runs(&scene, "onalert", 2);
    let session = told[0]["thread"].as_str().unwrap().to_owned();
    assert!(scene.run(&["threads"]).out.contains(&format!("{session}.onalert")));
    let recorded = scene.run(&["show", "organism", "--payload", "alert-raised", "--json"]);
    let causes: Vec<Value> = recorded.objects().iter().map(|it| it["cause"].clone()).collect();
    assert_eq!(causes[1], format!("{session}/1"), "{causes:?}");
    // The copy in the other thread is the expected case, and no warning.
    server.stop("-TERM");
    let traces = std::fs::read_to_string(traces).unwrap();
    assert!(!traces.contains("a trigger's message was refused"), "{traces}");
}

#[test]
fn equal_responses_to_one_message_are_several_events() {
    let scene = Scene::new();
    scene.write("onreply.yml", workflow("onreply", "{payload: response, from: bot}"));
    scene.write(
        "organism.yaml",
        "include: [\"*.yml\"]\nmodels: {m: {use: scripted, file: r.txt}}\n\
         listeners: [{use: calculate}, {use: agent, name: bot, model: m}]\n",
    );
    let tick = "<response final=\"false\">Tick.</response>\n";
    let replies = [tick, tick, "<response>End.</response>\n"].concat();
    scene.write("r.txt", format!("%% reply\n{replies}"));
    let server = scene.serve(&[]);
    let ask = "<bot xmlns=\"https://xml-pipeline.org/ns/bot/v1\">go</bot>";
    send(&scene, &server, ask).code(0);
    has_runs(&scene, "onreply", 3);
    drop(server);
}
