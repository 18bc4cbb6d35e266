//! `state` and `replay`, run as an auditor runs them.

use serde_json::{Value, json};

use crate::program::{Scene, log_in};

const CORE: &str = "https://xml-pipeline.org/ns/core/v1";

fn calculate(expression: &str) -> String {
    format!(
        "<calculate xmlns=\"https://xml-pipeline.org/ns/calculate/v1\">\
         <expression>{expression}</expression></calculate>"
    )
}

/// A thread with two sums, a timer and a sum in a thread below; nobody serves it.
fn written(scene: &Scene) -> String {
    let mut server = scene.serve(&["--durability", "normal"]);
    let send = ["send", "--json", "--connect", &server.address];
    let sent = scene.pipe(&send, &calculate("6*7")).code(0).objects();
    let thread = sent[0]["thread"].as_str().unwrap().to_owned();
    let into = [&send[..], &["--thread", &thread]].concat();
    let timer = format!("<set-timer xmlns=\"{CORE}\" in=\"PT1H\" note=\"later\"/>");
    let spawn = format!(
        "<spawn-thread xmlns=\"{CORE}\" suggested_sub_id=\"sub\"><initial-payload>{}\
         </initial-payload></spawn-thread>",
        calculate("1+1")
    );
    for payload in [calculate("2+2"), spawn] {
        scene.pipe(&into, &payload).code(0);
    }
    let waits = [&into[..], &["--timeout", "0.3"]].concat();
    scene.pipe(&waits, &timer);
    server.stop("-INT");
    thread
}

#[test]
fn a_state_is_shown_as_of_any_entry() {
    let scene = Scene::new();
    let thread = written(&scene);
    let now = scene.run(&["state", &thread]).code(0);
    now.says(&[
        &format!("{thread} at /"),
        &format!("{thread}.sub at /2  closed  "),
        "  thread  thread::wait::Children  ",
        &format!("            \"{thread}.sub\",\n"),
        "  timer-due → timer  until 20",
        "budget of the whole tree\n  messages ",
        " 6 of unlimited\n",
    ]);
    let objects = scene.run(&["state", &thread, "--json"]).code(0).objects();
    assert_eq!(objects.iter().filter(|it| it["thread"].is_string()).count(), 2);
    let waiting = objects[0]["waiting"].as_array().unwrap();
    assert_eq!((waiting.len(), &waiting[0]["listener"]), (1, &json!("timer")));
    let digest = |it: &Value| it["folds"][0]["digest"].as_str().unwrap().to_owned();
    assert_eq!(digest(&objects[0]).len(), 64);
    let first = scene.run(&["state", &format!("{thread}/1"), "--json"]).code(0).objects();
    assert_eq!((first[0]["seq"].clone(), first[1]["key"].clone()), (json!(1), json!("messages")));
    assert_eq!(first[1]["used"], 1);
    assert_ne!(digest(&first[0]), digest(&objects[0]));
    scene
        .run(&["state", &format!("{thread}/99")])
        .code(1)
        .says(&["the last message of its thread"]);
    scene.run(&["state", "sess-nobodys"]).code(1).says(&["there is no thread sess-nobodys"]);
}

#[test]
fn a_replay_finds_the_first_thing_that_is_different() {
    let scene = Scene::new();
    let thread = written(&scene);
    let same = scene.run(&["replay", &thread]).code(0);
    assert_eq!(
        same.out,
        "the same: 3 messages (calculate 3)\ntaken from the log: thread 1, timer 1\n"
    );
    let log = rusqlite::Connection::open(log_in(&scene.path("data"))).unwrap();
    log.execute_batch(
        "DROP TRIGGER entries_no_update;
         UPDATE entries SET body = CAST(replace(CAST(body AS TEXT), '>4<', '>5<') AS BLOB);",
    )
    .unwrap();
    drop(log);
    let other = scene.run(&["replay", &thread]).code(1);
    other.says(&[
        &format!("{thread}/3: calculate comes to something else\n\n"),
        &format!("recorded, {thread}/4 → console\n"),
        "<value>5</value>",
        "\nnow → console\n",
        "<value>4</value>",
        "the same: 1 message before it (calculate 1)",
    ]);
    let object = scene.run(&["replay", &thread, "--json"]).code(1).objects().remove(0);
    assert_eq!((&object["same"], &object["compared"]["calculate"]), (&json!(false), &json!(1)));
    assert_eq!(object["difference"]["entry"], format!("{thread}/4"));
    assert!(object["difference"]["now"]["payload"].to_string().contains("<value>4</value>"));
    scene.run(&["replay", "sess-nobodys"]).code(1).says(&["there is no thread sess-nobodys"]);
    scene.run(&["replay", &thread, "--data", "nowhere"]).code(2).says(&["there is no folder"]);
}

/// A called agent whose thread ends while its model writes, since its caller's action is over.
#[test]
fn a_called_agent_that_is_cut_off_in_mid_turn_is_no_difference() {
    let scene = Scene::new();
    scene.write(
        "organism.yaml",
        "models: {l: {use: scripted, file: l.txt}, t: {use: scripted, file: t.txt}}\nlisteners:\n  \
         - {use: agent, name: l, model: l, peers: [t]}\n  - use: agent\n    name: t\n    \
         model: t\n    \
         metadata: {fields: {n: {type: number}}}\n",
    );
    let call = "{\"name\": \"t\", \"parameters\": {\"text\": \"Go.\"}}";
    scene.write(
        "l.txt",
        format!(
            "%% reply\n<action id=\"c\" type=\"agent\" timeout=\"0.5\">{call}</action>\n%% \
             reply\n<response>$c</response>\n"
        ),
    );
    scene.write(
        "t.txt",
        "%% reply chunk=10 every=100ms\n<metadata>{\"n\": 3}</metadata>\n<thought>I think about it \
         for a long while, and go on</thought>\n<response>late</response>\n",
    );
    let server = scene.serve(&[]);
    let ask = "<l xmlns=\"https://xml-pipeline.org/ns/l/v1\">Go.</l>";
    let ran = scene.pipe(&["send", "--json", "--connect", &server.address], ask).code(0);
    let thread = ran.objects()[0]["thread"].as_str().unwrap().to_owned();
    let replayed = scene.run(&["replay", &thread]).code(0);
    replayed.says(&["not compared: ", "its thread came to its end meanwhile"]);
}
