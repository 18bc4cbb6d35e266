//! `budget`, run as an operator runs it: its figures agree with the log to the token.

use serde_json::{Value, json};

use crate::program::{Ran, Scene, log_in};

/// A lead that has a helper work, each with a model of its own; one has a price.
const MANIFEST: &str = "\
limits: {tree_tokens_max: 100000}
models:
  dear: {use: scripted, file: dear.txt, price: {input: 0.5, output: 2}}
  free: {use: scripted, file: free.txt}
listeners:
  - {use: agent, name: lead, model: dear, peers: [helper], max_turns: 7}
  - {use: agent, name: helper, model: free, max_turns: unlimited}
";
const DEAR: &str = "\
%% reply usage=800/40
<action id=\"h\">{\"name\": \"helper\", \"parameters\": {\"text\": \"Help.\"}}</action>
%% reply usage=900/10
<response>Done: $h</response>
";
const FREE: &str = "%% reply\n<response>Helped.</response>\n";
const ASK: &str = "<lead xmlns=\"https://xml-pipeline.org/ns/lead/v1\">Go.</lead>";

/// What the log's charges come to, by who made them.
fn charged(scene: &Scene, from: &str) -> i64 {
    let log = rusqlite::Connection::open(log_in(&scene.path("data"))).unwrap();
    let sql = "SELECT cast(body AS TEXT) FROM entries WHERE cast(body AS TEXT) LIKE '<charge%'";
    let mut charges = log.prepare(sql).unwrap();
    let bodies = charges.query_map([], |it| it.get::<_, String>(0)).unwrap();
    let tokens = |it: String| {
        let model = if from == "lead" { "dear.txt" } else { "free.txt" };
        let number = it.split(" tokens=\"").nth(1)?.split('"').next()?;
        it.contains(model).then(|| number.parse::<i64>().unwrap())
    };
    bodies.filter_map(|it| tokens(it.unwrap())).sum()
}

fn user<'a>(all: &'a [Value], listener: &str) -> &'a Value {
    all.iter().find(|it| it["model"].is_string() && it["listener"] == listener).unwrap()
}

#[test]
fn a_budget_agrees_with_the_log_by_agent_and_model_for_a_thread_and_a_day() {
    let scene = Scene::new();
    scene.write("organism.yaml", MANIFEST);
    scene.write("dear.txt", DEAR);
    scene.write("free.txt", FREE);
    let mut server = scene.serve(&["--durability", "normal"]);
    let sent = scene.pipe(&["send", "--json", "--connect", &server.address], ASK).code(0).objects();
    let thread = sent[0]["thread"].as_str().unwrap().to_owned();
    server.stop("-INT");
    let all = scene.run(&["budget", &thread, "--json"]).code(0).objects();
    let (lead, helper) = (user(&all, "lead"), user(&all, "helper"));
    let expected = json!({
        "listener": "lead", "model": "scripted by dear.txt", "turns": 2,
        "tokens_in": 1_700, "tokens_out": 50, "estimated": 0, "reserved": 0,
        "tokens": 1_750, "cost_micros": 950,
    });
    assert_eq!(*lead, expected);
    assert_eq!((&helper["turns"], &helper["cost_micros"]), (&json!(1), &Value::Null));
    assert_eq!(helper["estimated"], helper["tokens"], "its model counts nothing");
    for (agent, it) in [("lead", lead), ("helper", helper)] {
        assert_eq!(it["tokens"], charged(&scene, agent), "{agent}");
    }
    let of = |key: &str| all.iter().find(|it| it["key"] == key).unwrap();
    let both = lead["tokens"].as_i64().unwrap() + helper["tokens"].as_i64().unwrap();
    assert_eq!(*of("tokens"), json!({ "key": "tokens", "used": both, "limit": 100_000 }));
    let cost = json!({ "key": "cost-micros", "used": 950, "limit": null, "unpriced_turns": 1 });
    assert_eq!(*of("cost-micros"), cost);
    let turns: Vec<&Value> = all.iter().filter(|it| it["key"] == "turns").collect();
    assert_eq!((&turns[0]["listener"], &turns[0]["max_turns"]), (&json!("lead"), &json!(7)));
    assert_eq!((&turns[1]["listener"], &turns[1]["max_turns"]), (&json!("helper"), &Value::Null));
    let below = turns[1]["thread"].as_str().unwrap();
    let of_helper = scene.run(&["budget", below, "--json"]).code(0).objects();
    assert!(of_helper.iter().all(|it| it["listener"] != "lead" || it["key"] == "turns"));
    assert_eq!(user(&of_helper, "helper"), helper, "of the thread below only");
    shown(&scene, &thread, both);
    for (day, is_it) in [(today(&sent), true), ("2001-01-01".to_owned(), false)] {
        let used = scene.run(&["budget", "--day", &day, "--json"]).code(0).objects();
        assert_eq!(used.len(), if is_it { 2 } else { 0 }, "{day}");
        let of_thread = ["budget", &thread, "--day", &day, "--json"];
        assert_eq!(scene.run(&of_thread).code(0).objects(), used);
        assert!(!is_it || user(&used, "lead") == lead && user(&used, "helper") == helper);
    }
    scene.run(&["budget", "--day", "2001-01-01"]).code(0).says(&["nothing was charged"]);
    scene.run(&["budget", "--day", "1d"]).code(2).says(&["a day is written as 2026-11-22"]);
    scene.run(&["budget"]).code(2);
}

/// A server's log in which the lead has worked with a price, and its helper without one.
fn worked(scene: &Scene) -> (String, String) {
    scene.write("organism.yaml", MANIFEST.replace("output: 2}", "output: 2, cached: 0.05}"));
    scene.write("dear.txt", DEAR.replace("usage=900/10", "usage=900/10/800"));
    scene.write("free.txt", FREE);
    let mut server = scene.serve(&["--durability", "normal"]);
    let sent = scene.pipe(&["send", "--json", "--connect", &server.address], ASK).code(0).objects();
    server.stop("-INT");
    (sent[0]["thread"].as_str().unwrap().to_owned(), today(&sent))
}

#[test]
fn usage_is_summed_by_model_by_agent_or_by_day() {
    let scene = Scene::new();
    let (thread, day) = worked(&scene);
    let by = |arguments: &[&str]| {
        let all = [&["budget", "--json", "--by"], arguments].concat();
        scene.run(&all).code(0).objects()
    };
    let agents = by(&["agent"]);
    let lead = agents.iter().find(|it| it["agent"] == "lead").unwrap();
    // 900 tokens at the full price, 800 kept ones, 50 of replies.
    let expected = json!({
        "agent": "lead", "turns": 2, "tokens_in": 1_700, "tokens_cached": 800, "tokens_out": 50,
        "tokens": 1_750, "unpriced_turns": 0, "cost_micros": 450 + 40 + 100,
    });
    assert_eq!(*lead, expected);
    let models = by(&["model"]);
    let dear = models.iter().find(|it| it["model"] == "scripted by dear.txt").unwrap();
    assert_eq!(dear["cost_micros"], 590);
    let free = models.iter().find(|it| it["model"] == "scripted by free.txt").unwrap();
    assert_eq!((&free["unpriced_turns"], &free["cost_micros"]), (&json!(1), &Value::Null));
    for arguments in [&["day"][..], &["day", &thread], &["day", "--day", &day]] {
        let days = by(arguments);
        assert_eq!((days.len(), &days[0]["day"]), (1, &json!(day)), "{arguments:?}");
        assert_eq!((&days[0]["turns"], &days[0]["cost_micros"]), (&json!(3), &json!(590)));
        assert_eq!(days[0]["unpriced_turns"], 1);
    }
    assert_eq!(by(&["model", "--day", "2001-01-01"]), [json!(null); 0]);
    let table = scene.run(&["budget", "--by", "model"]).code(0).out;
    let rows: Vec<Vec<&str>> = table.lines().map(|it| it.split_whitespace().collect()).collect();
    let head = ["model", "turns", "input", "cached", "output", "tokens", "unpriced", "cost"];
    assert_eq!(rows[0], head);
    assert_eq!((rows.len(), rows[3][0], rows[3][1]), (4, "all", "3"));
    assert_eq!(rows[3][6..], ["1", "0.000590"], "a sum at the end: {table}");
    let nothing = ["budget", "--by", "model", "--day", "2001-01-01"];
    scene.run(&nothing).code(0).says(&["nothing was charged"]);
    scene.run(&["budget", "--by", "models"]).code(2).says(&["model", "agent", "day"]);
    scene.run(&["budget", "sess-none", "--by", "day"]).code(1);
    scene.run(&["budget", &format!("{thread}.none")]).code(1);
}

#[test]
fn a_later_price_changes_no_earlier_turn() {
    let scene = Scene::new();
    let (thread, _) = worked(&scene);
    let costs = || -> Vec<Value> {
        let all = scene.run(&["budget", &thread, "--json"]).code(0).objects();
        all.iter().map(|it| it["cost_micros"].clone()).filter(|it| !it.is_null()).collect()
    };
    assert_eq!(costs(), [json!(590)]);
    scene.write("organism.yaml", MANIFEST.replace("input: 0.5, output: 2", "input: 9, output: 9"));
    assert_eq!(costs(), [json!(590)], "a turn keeps what it cost when it was settled");
    let log = rusqlite::Connection::open(log_in(&scene.path("data"))).unwrap();
    let sql = "SELECT cast(body AS TEXT) FROM entries WHERE body LIKE '%tokens_cached=\"800\"%'";
    let kept: String = log.query_row(sql, [], |it| it.get(0)).unwrap();
    assert!(kept.contains("spent_micros=\""), "{kept}");
}

/// For people.
fn shown(scene: &Scene, thread: &str, both: i64) {
    let ran: Ran = scene.run(&["budget", thread]).code(0);
    let line = |beginning: &str| {
        let found = ran.out.lines().find(|it| it.starts_with(beginning));
        found.unwrap_or_else(|| panic!("{beginning}: {}", ran.out)).to_owned()
    };
    let words = |it: &str| it.split_whitespace().map(str::to_owned).collect::<Vec<_>>().join(" ");
    assert_eq!(words(&line("tokens")), format!("tokens {both} of 100000"));
    assert_eq!(words(&line("cost-micros")), "cost-micros 950 of unlimited 1 turn has no price");
    assert!(line("turns").ends_with(&format!("lead in {thread}   max_turns 7")), "{}", ran.out);
    let lead = "lead scripted by dear.txt 2 1700 50 0 0 1750 0.000950";
    assert_eq!(words(&line("lead")), lead);
    assert!(line("helper").ends_with(" –"), "{}", ran.out);
    assert!(words(&line("all")).starts_with("all all 3 "), "{}", ran.out);
}

/// The day of a push, as the log has it.
fn today(sent: &[Value]) -> String {
    let time = sent.iter().find_map(|it| it["time"].as_str());
    let now = || pumphouse::wire::Timestamp::now().to_string();
    time.map_or_else(now, str::to_owned)[..10].to_owned()
}
