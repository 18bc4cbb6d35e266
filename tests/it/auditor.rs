//! What an auditor asks: what an answer rests on, what happened in plain words, what was in force
//! and for whom, and whether a document is as it was written.

use std::fs::{Permissions, set_permissions};
use std::os::unix::fs::PermissionsExt as _;

use serde_json::Value;

use crate::program::{Scene, Server};

const ORGANISM: &str = "
name: sums
models: {m: {use: scripted, file: replies.txt, price: {input: 3, output: 15}}}
limits: {tree_tokens_max: 90000}
listeners:
  - {use: calculate}
  - {use: echo}
  - {use: agent, name: adder, model: m, peers: [calculate]}
";
const REPLIES: &str = r#"%% reply
<action id="a">{"name": "calculate", "parameters": {"expression": "1+1"}}</action>
<action id="b">{"name": "calculate", "parameters": {"expression": "20+2"}}</action>
<action id="c">{"name": "calculate", "parameters": {"expression": "300+3"}}</action>
%% reply
<response>They are ${a}, ${b} and ${c}.</response>
"#;
const ASK: &str = "<adder xmlns=\"https://xml-pipeline.org/ns/adder/v1\">go</adder>";

fn scene() -> Scene {
    let scene = Scene::new();
    scene.write("replies.txt", REPLIES);
    scene.write("organism.yaml", ORGANISM);
    scene
}

/// Sends a message, and returns its thread.
fn send(scene: &Scene, server: &Server, message: &str) -> String {
    let told = scene.pipe(&["send", "--json", "--connect", &server.address], message).code(0);
    told.objects()[0]["thread"].as_str().unwrap().to_owned()
}

/// The payloads with this name in the thread `organism`, which a new server begins soon.
fn recorded(scene: &Scene, name: &str) -> Vec<String> {
    let told = scene.run(&["show", "organism", "--payload", name, "--json"]);
    if told.err.starts_with("error: there is no thread organism") {
        return Vec::new();
    }
    let all = told.code(0).objects();
    all.iter().map(|it| it["payload"].as_str().unwrap().to_owned()).collect()
}

/// Waits until the thread `organism` has so many payloads with this name.
fn awaited(scene: &Scene, name: &str, count: usize) -> Vec<String> {
    crate::until(|| recorded(scene, name).len() >= count);
    recorded(scene, name)
}

#[test]
fn why_names_every_result_that_an_answer_is_made_of() {
    let scene = scene();
    let server = scene.serve(&[]);
    let thread = send(&scene, &server, ASK);
    let all = scene.run(&["show", &thread, "--json"]).code(0).objects();
    let of = |name: &str| -> Vec<String> {
        let named = all.iter().filter(|it| it["name"] == name);
        named.map(|it| it["entry"].as_str().unwrap().to_owned()).collect()
    };
    let (answer, results) = (&of("response")[0], of("action-result"));
    let steps = scene.run(&["why", answer, "--json"]).code(0).objects();
    let mut named: Vec<String> =
        steps.iter().map(|it| it["entry"].as_str().unwrap().into()).collect();
    let more = steps.iter().flat_map(|it| it["results"].as_array().unwrap().clone());
    named.extend(more.map(|it| it.as_str().unwrap().to_owned()));
    assert_eq!(results.len(), 3);
    assert!(results.iter().all(|it| named.contains(it)), "{named:?}");
    let told = scene.run(&["why", answer]).code(0).out;
    assert!(told.contains("It rests on these results, too:"), "{told}");
    assert!(told.contains("calculate, ok"), "{told}");
}

/// The action of a feed, or of an earlier answer, is a result that an answer is made of.
#[test]
fn why_names_feeds_and_results_of_earlier_work() {
    let scene = Scene::new();
    let actions = &REPLIES[..REPLIES.find("%% reply\n<response>").unwrap()];
    scene.write(
        "conv.txt",
        format!(
            "{actions}%% reply\n<response>They are ${{a}} and ${{b}}.</response>\n\
             %% reply\n<response>As I said: ${{a}}, $b.</response>\n"
        ),
    );
    scene.write("feedy.txt", "%% reply\n<response>$one and $two</response>\n");
    let feed = |id: &str, sum: &str| {
        let params = format!("params: {{expression: \"{sum}\"}}");
        format!("{{id: {id}, source: {{type: tool, name: calculate, {params}}}}}")
    };
    let feeds = [feed("one", "1+0"), feed("two", "1+1"), feed("three", "1+2")].join(", ");
    scene.write(
        "organism.yaml",
        format!(
            "models:\n  c: {{use: scripted, file: conv.txt}}\n\
             \x20 f: {{use: scripted, file: feedy.txt}}\n\
             listeners:\n- {{use: calculate}}\n\
             - {{use: agent, name: conv, model: c, peers: [calculate]}}\n\
             - {{use: agent, name: feedy, model: f, context_feeds: [{feeds}]}}\n"
        ),
    );
    let server = scene.serve(&[]);
    let ask = |agent: &str| format!("<{agent} xmlns=\"https://xml-pipeline.org/ns/{agent}/v1\"/>");
    let thread = send(&scene, &server, &ask("conv"));
    let again = ["send", "--json", "--connect", &server.address, "--thread", &thread];
    scene.pipe(&again, &ask("conv")).code(0);
    let of_feeds = send(&scene, &server, &ask("feedy"));
    let why = |thread: &str, expected: &[&str], others: &[&str]| {
        let all = scene.run(&["show", thread, "--payload", "response", "--json"]).objects();
        let answer = all.last().unwrap()["entry"].as_str().unwrap();
        let told = scene.run(&["why", answer]).code(0).out;
        assert!(expected.iter().all(|it| told.contains(it)), "{expected:?} in {told}");
        assert!(others.iter().all(|it| !told.contains(it)), "{others:?} in {told}");
    };
    why(&thread, &["a: calculate, ok", "b: calculate, ok"], &["c: calculate"]);
    why(&of_feeds, &["one: calculate, fresh", "two: calculate, fresh"], &["three: calculate"]);
    drop(server);
}

#[test]
fn a_thread_is_told_in_plain_words() {
    let scene = scene();
    let server = scene.serve(&[]);
    let thread = send(&scene, &server, ASK);
    let told = scene.run(&["show", &thread, "--story"]).code(0).out;
    let mut rest = &*told;
    for text in [
        "console → adder",
        "adder, turn 1, with scripted by replies.txt",
        "adder calls calculate, a",
        "a: ok",
        "adder answers",
        "They are 2, 22 and 303.",
    ] {
        let at = rest.find(text).unwrap_or_else(|| panic!("no {text} in {told}"));
        rest = &rest[at + text.len()..];
    }
    assert!(!told.contains("charge") && !told.contains("actions-due"), "{told}");
    // A thread without agents is told as well.
    let echo = "<echo xmlns=\"https://xml-pipeline.org/ns/echo/v1\"><text>Hello</text></echo>";
    let plain = send(&scene, &server, echo);
    let told = scene.run(&["show", &plain, "--story", "--json"]).code(0).objects();
    let titles: Vec<&str> = told.iter().map(|it| it["title"].as_str().unwrap()).collect();
    assert_eq!(titles, ["console → echo: <echo>", "echo → console: <echo>"]);
    scene.run(&["show", &plain, "--story", "--failed"]).code(2).says(&["leave out the filters"]);
}

#[test]
fn a_run_of_a_workflow_is_told_in_plain_words() {
    let scene = Scene::new();
    scene.write(
        "flow.yml",
        "kind: Workflow\nname: flow\nsteps:\n\
         - {name: a, target: calculate, parameters: {expression: \"${trigger.sum}\"}}\n\
         - {name: b, target: calculate, condition: steps.a == 3, parameters: {expression: \"5\"}}\n\
         outputs: {x: \"${steps.a}\"}\n",
    );
    let call = "<action id=\"f\">{\"name\": \"flow\", \"parameters\": {\"sum\": \"1+1\"}}</action>";
    scene.write("r.txt", format!("%% reply\n{call}\n%% reply\n<response>${{f}}</response>\n"));
    scene.write(
        "organism.yaml",
        "include: [flow.yml]\nmodels: {m: {use: scripted, file: r.txt}}\n\
         listeners: [{use: calculate}, {use: agent, name: lead, model: m, peers: [flow]}]\n",
    );
    let server = scene.serve(&[]);
    let ask = "<lead xmlns=\"https://xml-pipeline.org/ns/lead/v1\"/>";
    let session = send(&scene, &server, ask);
    let flow =
        "<flow xmlns=\"https://xml-pipeline.org/ns/workflow/flow/v1\">{\"sum\": \"2\"}</flow>";
    let pushed = send(&scene, &server, flow);
    for (thread, asker, sum, value) in
        [(format!("{session}.flow"), "action", "1+1", "2"), (pushed, "console", "2", "2")]
    {
        let told = scene.run(&["show", &thread, "--story"]).code(0).out;
        let mut rest = &*told;
        for text in [
            &*format!("{asker} → flow: <flow>"),
            "flow begins a run",
            &format!("sum: {sum}"),
            "flow calls calculate, a",
            "a: ok",
            "flow: the condition of b doesn't hold",
            &format!("steps.a: {value}"),
            "flow answers",
            &format!("x: {value}"),
        ] {
            let at = rest.find(text).unwrap_or_else(|| panic!("no {text} in {told}"));
            rest = &rest[at + text.len()..];
        }
        assert!(!told.contains("xmlns") && !told.contains("</"), "{told}");
    }
    drop(server);
}

#[test]
fn an_export_takes_several_threads_and_is_verified_again() {
    let scene = scene();
    let server = scene.serve(&[]);
    let (one, other) = (send(&scene, &server, ASK), send(&scene, &server, ASK));
    let verified = |file: &str| scene.run(&["verify", file, "--json"]);
    let written = |arguments: &[&str]| {
        let ran = scene.run(&[&["export"], arguments, &["--output", "it.xml", "--force"]].concat());
        ran.code(0);
        let report = verified("it.xml").code(0).objects().remove(0);
        assert_eq!(report["sound"], true, "{report}");
        (report["threads"].as_u64().unwrap(), report["entries"].as_u64().unwrap())
    };
    let (_, of_one) = written(&[&one]);
    let (threads, entries) = written(&[&one, &other]);
    assert_eq!((threads, entries), (2, 2 * of_one));
    assert_eq!(written(&["--identity", "console"]), (2, 2 * of_one));
    assert_eq!(written(&["--since", "1h"]).0, 3, "with the thread `organism`");
    scene.run(&["export", "--identity", "nobody"]).code(1).says(&["no such thread or entry"]);
    scene.run(&["export"]).code(2);
    // A change is found.
    scene.run(&["export", &one, &other, "--output", "it.xml", "--force"]).code(0);
    let text = std::fs::read_to_string(scene.path("it.xml")).unwrap();
    scene.write("changed.xml", text.replacen("300+3", "300+4", 1));
    verified("changed.xml").code(1).says(&["its digest is another one"]);
    scene.run(&["verify", "organism.yaml"]).code(2);
    // So is an entry that was taken out of one of the threads.
    let (before, rest) = text.split_once("  <x:entry ").unwrap();
    let (_, after) = rest.split_once("</x:entry>\n").unwrap();
    let said = |entries: u64| format!("entries=\"{entries}\"");
    let gap = format!("{before}{after}").replacen(&said(2 * of_one), &said(2 * of_one - 1), 1);
    scene.write("gap.xml", gap);
    verified("gap.xml").code(1).says(&["entries are missing or moved"]);
}

#[test]
fn the_demo_keeps_its_log_where_it_is_told_to() {
    let scene = Scene::new();
    scene.run(&["demo", "agent", "--keep", "--data", "tour"]).code(0).says(&["tour has its log"]);
    let threads = scene.run(&["threads", "--data", "tour", "--json"]).code(0).objects();
    assert!(threads.len() > 1, "{threads:?}");
    scene.run(&["verify", "--data", "tour"]).code(0);
    scene.run(&["demo", "--keep", "--data", "tour"]).code(2).says(&["has a log already"]);
    scene.run(&["demo", "--data", "other"]).code(2).says(&["--keep puts it there"]);
}

#[test]
fn the_version_says_from_which_commit_the_program_was_built() {
    let said = Scene::new().run(&["--version"]).code(0).out;
    let version = env!("CARGO_PKG_VERSION");
    assert!(said.starts_with(&format!("pumphouse {version} (commit ")), "{said}");
}

#[test]
fn a_change_of_any_file_of_the_manifest_is_recorded() {
    let scene = Scene::new();
    scene.write("replies.txt", REPLIES);
    let organism = "include: [inc.yml, flow.yml]\n\
                    models: {m: {use: scripted, file: replies.txt}}\n\
                    default_model: m\nlisteners: [{use: calculate}]\n";
    let organism = format!("name: sums\n{organism}");
    scene.write("organism.yaml", &organism);
    let agent = "kind: Agent\nname: inc\nprompt: {file: prompt.txt}\nmax_turns: 5\n";
    let flow = "kind: Workflow\nname: flow\nsteps: [{name: a, target: calculate, parameters: \
                {expression: 1+1}}]\n";
    scene.write("inc.yml", agent);
    scene.write("flow.yml", flow);
    scene.write("prompt.txt", "Add.");
    let start = || {
        let mut server = scene.serve(&[]);
        server.stop("-TERM");
        recorded(&scene, "rules-in-force")
    };
    let first = start().pop().unwrap();
    for rule in ["files/inc.yml\">blake3 ", "files/inc.yml/prompt.file\">prompt.txt, blake3 "] {
        assert!(first.contains(rule), "no {rule} in {first}");
    }
    let mut count = 1;
    for (file, text, rules) in [
        ("inc.yml", agent.replace('5', "500"), 1),
        ("flow.yml", flow.replace("1+1", "9+9"), 1),
        ("prompt.txt", "Subtract.".to_owned(), 1),
        ("organism.yaml", format!("{organism}# two\n"), 0),
    ] {
        scene.write(file, text);
        let said = start();
        count += 1;
        assert_eq!(said.len(), count, "{file}: {said:?}");
        assert_eq!(said[count - 1].matches("<rule ").count(), rules, "{file}: {said:?}");
    }
    assert_eq!(start().len(), count);
}

#[test]
fn what_was_in_force_is_recorded_without_secrets() {
    let scene = scene();
    let list = |lines: &str| {
        let path = scene.write("tokens.txt", lines);
        set_permissions(path, Permissions::from_mode(0o600)).unwrap();
    };
    list("ada:s3cret-a\nops:s3cret-o:operator\n");
    let mut server = scene.serve(&["--tokens", "tokens.txt"]);
    let said = awaited(&scene, "rules-in-force", 1);
    let [first] = &said[..] else { panic!("{said:?}") };
    for rule in [
        "<rule name=\"manifest/listeners[adder].model\">m</rule>",
        "<rule name=\"tokens/ops\">operator</rule>",
        "<rule name=\"prices/m\">3.000000 and 15.000000 for a million tokens in and out</rule>",
        "<rule name=\"limits/tree_tokens_max\">90000</rule>",
        "digest=\"",
        "(commit ",
    ] {
        assert!(first.contains(rule), "no {rule} in {first}");
    }
    assert!(!first.contains("s3cret"), "{first}");
    // Tokens that are read again are a difference.
    list("ada:s3cret-a\nbob:s3cret-b\n");
    server.signal("-HUP");
    let said = awaited(&scene, "rules-in-force", 2);
    assert!(said[1].contains("since=\"reload\""), "{said:?}");
    assert!(said[1].contains("<rule name=\"tokens/bob\">user</rule>"), "{said:?}");
    assert!(said[1].contains("<gone name=\"tokens/ops\">"), "{said:?}");
    assert!(!said[1].contains("manifest/"), "{said:?}");
    // A copy is recorded by the pump that runs, and a follower once.
    scene.run(&["backup", "copy.db"]).code(0);
    let copies = awaited(&scene, "log-backed-up", 1);
    assert!(copies[0].contains("file=\"copy.db\""), "{copies:?}");
    let thread = send(&scene, &server, ASK);
    let follow = ["show", &thread, "--connect", &server.address];
    (0..2).for_each(|_| drop(scene.run(&follow).code(0)));
    let followers = awaited(&scene, "thread-followed", 1);
    assert!(followers.len() == 1 && followers[0].contains(&thread), "{followers:?}");
    server.stop("-TERM");
    // The next start says what has changed, and nothing else.
    scene.write("organism.yaml", ORGANISM.replace("90000", "80000"));
    let mut server = scene.serve(&["--tokens", "tokens.txt"]);
    let said = awaited(&scene, "rules-in-force", 3);
    let rules = said[2].matches("<rule ").count();
    assert_eq!(rules, 2, "the manifest's value and the limit: {}", said[2]);
    server.stop("-TERM");
    let mut server = scene.serve(&["--tokens", "tokens.txt"]);
    server.stop("-TERM");
    assert_eq!(recorded(&scene, "rules-in-force").len(), 3);
    let verified: Vec<Value> = scene.run(&["verify", "--json"]).code(0).objects();
    assert_eq!(verified[0]["sound"], true);
}
