//! `eval`, run as an author of prompts runs it.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::model::fake::{self, Act, DONE, STOP, delta, events, say};
use crate::program::{Ran, Scene};

const MANIFEST: &str = "\
models:
  m: {use: scripted, file: m.txt, price: {input: 1, output: 10}}
  dull: {use: scripted, file: dull.txt}
  j: {use: scripted, file: j.txt}
doors: [{tcp: 127.0.0.1:1}]
listeners:
  - {use: calculate}
  - {use: agent, name: helper, model: m, peers: [calculate], final_payloads: [calculated]}
";
const MODEL: &str = "\
%% script repeat=last
%% reply usage=100/20
<action id=\"q\">{\"name\": \"calculate\", \"parameters\": {\"expression\": \"6*7\"}}</action>
%% reply usage=140/10
<response>It is $q.</response>
%% reply when=\"capital\" usage=90/5
<response>Paris</response>
%% reply when=\"payload\" usage=10/5
<calculated xmlns=\"https://xml-pipeline.org/ns/calculate/v1\"><value>7</value></calculated>
%% reply when=\"for ever\" fail=hang
";
const DULL: &str = "%% script repeat=last\n%% reply\n<response>I don't know.</response>\n";
const JUDGE: &str = "\
%% script repeat=last
%% reply when=\"one word\" usage=50/4
That is so.
PASS
%% reply when=\"a number\" usage=50/4
Paris is none.
FAIL
%% reply usage=50/4
Who knows?
";
const CASES: &str = "\
agent: helper
runs: 2
cases:
  - name: sums
    message: What is 6 times 7?
    expect:
      - contains: \"42\"
      - called: {tool: calculate}
      - called: {tool: calculate, with: {expression: 6*7}}
";

fn scene() -> Scene {
    let scene = Scene::new();
    let files =
        [("organism.yaml", MANIFEST), ("m.txt", MODEL), ("dull.txt", DULL), ("j.txt", JUDGE)];
    for (name, text) in files {
        scene.write(name, text);
    }
    scene.write("cases.yaml", CASES);
    scene
}

/// Runs these cases.
#[track_caller]
fn eval(scene: &Scene, cases: &str, options: &[&str]) -> Ran {
    scene.write("own.yaml", cases);
    scene.run(&[&["eval", "own.yaml"], options].concat())
}

/// One case of this message.
fn case(message: &str, expect: &str) -> String {
    let case = format!("{{name: c, message: {message}, expect: [{expect}]}}");
    format!("agent: helper\njudge: j\ncases:\n  - {case}\n")
}

/// The words of a line that begins so.
#[track_caller]
fn line(ran: &Ran, beginning: &str) -> String {
    let found = ran.out.lines().find(|it| it.starts_with(beginning));
    let found = found.unwrap_or_else(|| panic!("{beginning}: {}", ran.out));
    found.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn what_passes_is_counted_with_what_a_run_took() {
    let scene = scene();
    let ran = scene.run(&["eval", "cases.yaml"]).code(0);
    assert!(ran.out.starts_with("cases.yaml: helper with scripted by m.txt\n"), "{}", ran.out);
    assert_eq!(line(&ran, "case "), "case passed rate tokens cost seconds");
    // 100 + 140 at 1, and 20 + 10 at 10 a million.
    let row = line(&ran, "sums  ");
    assert!(row.starts_with("sums 2 of 2 100 % 270 0.000540 "), "{row}");
    assert!(!ran.out.contains("failed") && ran.err.is_empty(), "{ran:?}");
    assert_eq!(line(&ran, "2 runs"), "2 runs: 540 tokens, cost 0.001080");
    assert!(!scene.path("data").exists(), "its log is its own");
}

#[test]
fn a_case_that_fails_says_why_and_shows_its_thread_once() {
    let scene = scene();
    let ran = scene.run(&["eval", "cases.yaml", "--model", "dull"]).code(1);
    for run in [1, 2] {
        line(&ran, &format!("sums, run {run} of 2, failed, in sess-"));
    }
    let ran = ran.says(&[
        "the answer doesn't contain \"42\"; it is \"I don't know.\"",
        "calculate wasn't called; what was called is nothing",
        "console → helper",
        "helper writes\n",
        "<response>I don't know.</response>",
        "helper answers\n",
    ]);
    assert_eq!(ran.out.matches("helper answers").count(), 1, "{}", ran.out);
    assert!(line(&ran, "sums  ").starts_with("sums 0 of 2 0 % "), "{}", ran.out);
    assert!(ran.out.contains("helper with dull"), "{}", ran.out);
}

#[test]
fn an_agent_whose_name_is_in_a_variable_thinks_with_the_model_that_is_said() {
    let scene = scene();
    scene.write("organism.yaml", MANIFEST.replace("name: helper", "name: \"${NAME:-helper}\""));
    let ran = scene.run(&["eval", "cases.yaml", "--model", "dull"]).code(1);
    assert!(line(&ran, "sums  ").starts_with("sums 0 of 2 0 % "), "{}", ran.out);
}

#[test]
fn a_call_is_looked_at_with_its_parameters() {
    let scene = scene();
    let expect = "{called: {tool: calculate, with: {expression: 6*8}}}";
    eval(&scene, &case("Sum.", expect), &[])
        .code(1)
        .says(&["calculate wasn't called with {\"expression\":\"6*8\"}, but with", "6*7"]);
    eval(&scene, &case("Sum.", "{called: {tool: echo}}"), &[])
        .code(1)
        .says(&["echo wasn't called; what was called is calculate"]);
}

#[test]
fn a_payload_is_looked_for_by_its_name() {
    let scene = scene();
    let payload = |name: &str| format!("{{payload: \"{name}\"}}");
    let of = |local: &str| payload(&format!("{{https://xml-pipeline.org/ns/calculate/v1}}{local}"));
    eval(&scene, &case("A payload.", &of("calculated")), &[]).code(0);
    eval(&scene, &case("A payload.", &payload("calculated")), &[]).code(0);
    eval(&scene, &case("The capital.", &of("calculated")), &[]).code(1).says(&[
        "the reply is no {https://xml-pipeline.org/ns/calculate/v1}calculated; it is",
        "response",
    ]);
    eval(&scene, &case("A payload.", &of("calcluated")), &[])
        .code(2)
        .says(&["own.yaml:4:55: no payload and no listener is called"]);
}

#[test]
fn a_judge_has_the_last_word_and_its_own_bill() {
    let scene = scene();
    let judged = |criterion: &str| case("The capital.", &format!("{{judged: {criterion}}}"));
    let ran = eval(&scene, &judged("It is one word."), &["--json"]).code(0);
    let summary = ran.objects().pop().unwrap();
    assert_eq!((&summary["judge"], &summary["judged"]["tokens"]), (&json!("j"), &json!(54)));
    assert_eq!(summary["all"]["tokens"], 95, "the agent's own");
    eval(&scene, &judged("It is a number."), &[])
        .code(1)
        .says(&["the judge finds that \"It is a number.\" isn't met: Paris is none. FAIL"]);
    eval(&scene, &judged("It is nice."), &[])
        .code(1)
        .says(&["the judge didn't decide on \"It is nice.\": it said neither PASS nor FAIL"]);
}

#[test]
fn machines_read_an_object_a_run_and_a_summary() {
    let scene = scene();
    let arguments = ["eval", "cases.yaml", "--json", "--runs", "3", "--at-once", "3"];
    let all = scene.run(&arguments).code(0).objects();
    let mut runs: Vec<&Value> = all[..3].iter().map(|it| &it["run"]).collect();
    runs.sort_by_key(|it| it.as_u64());
    assert_eq!(runs, [1, 2, 3]);
    let first = &all[0];
    assert_eq!((&first["case"], &first["passed"]), (&json!("sums"), &json!(true)));
    assert_eq!((&first["answer"], &first["tokens"]), (&json!("It is 42."), &json!(270)));
    let threads: std::collections::BTreeSet<&str> =
        all[..3].iter().map(|it| it["thread"].as_str().unwrap()).collect();
    assert_eq!(threads.len(), 3, "each has its own");
    assert_eq!((all.len(), &all[3]["all"]["passed"]), (4, &json!(3)));
    let dull = ["eval", "cases.yaml", "--json", "--model", "dull", "--runs", "1"];
    let all = scene.run(&dull).code(1).objects();
    let kinds: Vec<&str> = all[0]["transcript"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["type"].as_str().unwrap())
        .collect();
    assert!(kinds.contains(&"cognition_out") && kinds.contains(&"response"), "{kinds:?}");
    assert_eq!(all[0]["wrong"].as_array().unwrap().len(), 3);
}

#[test]
fn an_earlier_result_stands_beside() {
    let scene = scene();
    let save = ["eval", "cases.yaml", "--model", "dull", "--save", "before.json"];
    scene.run(&save).code(1);
    let ran = scene.run(&["eval", "cases.yaml", "--against", "before.json"]).code(0);
    let head = "case passed before rate before tokens before cost before seconds before";
    assert_eq!(line(&ran, "case "), head);
    let row = line(&ran, "sums  ");
    assert!(row.starts_with("sums 2 of 2 0 of 2 100 % 0 % 270 "), "{row}");
    assert!(line(&ran, "before: ").ends_with("cases.yaml: helper with dull"), "{}", ran.out);
    let json = ["eval", "cases.yaml", "--against", "before.json", "--json"];
    let summary = scene.run(&json).code(0).objects().pop().unwrap();
    assert_eq!(summary["before"]["all"]["passed"], 0);
    scene.run(&["eval", "cases.yaml", "--save", "before.json"]).code(0);
    let kept: Value =
        serde_json::from_slice(&std::fs::read(scene.path("before.json")).unwrap()).unwrap();
    assert_eq!(kept["all"]["passed"], 2, "it takes the earlier one's place");
    let unwritten = scene.run(&["eval", "cases.yaml", "--save", "no/where.json"]).code(2);
    assert!(unwritten.out.is_empty(), "nothing runs: {unwritten:?}");
    unwritten.says(&["no/where.json can't be written"]);
    let wrong = scene.run(&["eval", "cases.yaml", "--against", "cases.yaml"]).code(2);
    wrong.says(&["cases.yaml is no kept result"]);
}

#[test]
fn a_run_ends_when_its_time_is_up() {
    let scene = scene();
    let cases = case("Work for ever.", "{contains: done}");
    let ran = eval(&scene, &cases, &["--seconds", "1", "--data", "kept"]).code(1);
    let ran = ran.says(&["no answer within 1 s; the limit --seconds is 1"]);
    let thread = ran.out.split(", in ").nth(1).unwrap().lines().next().unwrap().to_owned();
    let kept = scene.run(&["show", &thread, "--data", "kept"]).code(0);
    kept.says(&["the limit --seconds is 1", "cancelled"]);
}

#[test]
fn a_file_that_is_wrong_says_where() {
    let scene = scene();
    let check = |cases: &str, options: &[&str], expected: &str| {
        eval(&scene, cases, options).code(2).says(&[expected]);
    };
    let rest = "cases: [{name: a, message: b, expect: [{contains: c}]}]\n";
    let own = |text: &str| format!("{text}\n{rest}");
    check(&own("agent: hepler"), &[], "own.yaml:1:8: there is no agent `hepler`; did you mean");
    check(&own("agnt: helper"), &[], "own.yaml:1:1: here is no key `agnt`; did you mean `agent`?");
    check(&own("agent: helper\nmodel: dll"), &[], "own.yaml:2:8: there is no model `dll`; did");
    check(&own("agent: helper\njudge: x"), &[], "own.yaml:2:8: there is no model `x`; there is");
    check(&own("agent: helper\nruns: 0"), &[], "own.yaml:2:7: a whole number from 1 to 10000");
    check(
        &own("agent: helper"),
        &["--model", "dll"],
        "error: --model: there is no model `dll`; did",
    );
    check(&own("agent: helper\norganism: no.yaml"), &[], "no.yaml can't be read");
    check("agent: helper\ncases: []\n", &[], "own.yaml:2:8: there is no case");
    let one = |case: &str| format!("agent: helper\ncases:\n  - {case}\n");
    let head = "name: a, message: b";
    check(&one(&format!("{{{head}, expect: []}}")), &[], "own.yaml:3:35: say what is expected");
    let wrong = format!("{{{head}, expect: [{{contain: x}}]}}");
    check(&one(&wrong), &[], "own.yaml:3:36: this is keys with values, and `contains`");
    let judged = format!("{{{head}, expect: [{{judged: x}}]}}");
    check(&one(&judged), &[], "own.yaml:3:45: nobody judges: name a model at the top");
    let two = "agent: helper\ncases:\n".to_owned()
        + &"  - {name: a, message: b, expect: [{contains: c}]}\n".repeat(2);
    check(&two, &[], "own.yaml:4:12: there is a case `a` already");
    scene.run(&["eval", "none.yaml"]).code(2).says(&["none.yaml can't be read"]);
    scene.run(&["eval", "cases.yaml", "--at-once", "0"]).code(2).says(&["from 1 to 1024"]);
}

#[cfg(unix)]
#[test]
fn a_signal_ends_it_with_what_was_done() {
    let scene = scene();
    let cases = "agent: helper\ncases:\n  \
                 - {name: a, message: The capital., expect: [{contains: Paris}]}\n  \
                 - {name: b, message: Work for ever., expect: [{contains: x}]}\n";
    scene.write("own.yaml", cases);
    let mut command = scene.command(&["eval", "own.yaml", "--json", "--save", "s.json"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut first = String::new();
    out.read_line(&mut first).unwrap();
    assert!(first.contains("\"case\":\"a\""), "{first}");
    let id = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    let rest: Vec<String> = out.lines().map(Result::unwrap).collect();
    let ran = Ran::from(child.wait_with_output().unwrap()).code(1);
    ran.says(&["Ctrl-C: 1 of 2 runs were done"]);
    let summary: Value = serde_json::from_str(rest.last().unwrap()).unwrap();
    assert_eq!(summary["all"]["runs"], 1);
    assert!(!scene.path("s.json").exists(), "what isn't whole isn't kept");
}

/// The cases of the manual are such as `eval` reads.
#[test]
fn the_manual_has_cases_that_run() {
    let page = include_str!("../../docs/eval.md");
    let block = page.split("```text\n").nth(1).unwrap().split("```").next().unwrap();
    let scene = scene();
    scene.write("organism.yaml", MANIFEST.replace("  j: ", "  large: "));
    let ran = eval(&scene, block, &[]).code(0);
    assert!(line(&ran, "all  ").starts_with("all 6 of 6 100 % "), "{}", ran.out);
}

/// A whole answer that says what it took.
fn reply(text: &str, input: u64, output: u64) -> Vec<Act> {
    let usage = json!({ "prompt_tokens": input, "completion_tokens": output });
    let usage = format!("data: {}\n\n", json!({ "choices": [], "usage": usage }));
    vec![events(), delta(text), say(STOP), say(usage), say(DONE)]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_is_asked_by_the_agent_and_by_the_judge() {
    let server = fake::Server::start(vec![
        reply("<response>Paris</response>", 900, 7),
        reply("It is one.\nPASS", 60, 5),
        reply("<response>Rome, I think.</response>", 900, 9),
        reply("It has three.\nFAIL", 60, 5),
    ])
    .await;
    let scene = Scene::new();
    let url = server.url();
    let manifest = format!(
        "models:\n  m: {{use: openai, url: \"{url}\", model: small}}\n  \
         j: {{use: openai, url: \"{url}\", model: large, price: {{input: 1, output: 1}}}}\n\
         listeners:\n  - {{use: agent, name: helper, model: m}}\n"
    );
    scene.write("organism.yaml", manifest);
    let cases = case("The capital?", "{judged: The answer is one word.}");
    let ran = eval(&scene, &cases, &["--runs", "2"]).code(1);
    assert!(line(&ran, "c  ").starts_with("c 1 of 2 50 % 908 – "), "{}", ran.out);
    let foot = "2 runs: 1816 tokens, cost –; the judge: 130 tokens, cost 0.000130";
    assert_eq!(line(&ran, "2 runs"), foot);
    let asked = server.asked();
    let models: Vec<&Value> = asked.iter().map(|it| &it.body["model"]).collect();
    assert_eq!(models, ["small", "large", "small", "large"]);
    let judged = asked[1].body.to_string();
    for part in ["The answer is one word.", "The capital?", "Paris", "PASS if"] {
        assert!(judged.contains(part), "{judged}");
    }
    assert!(!judged.contains("<response>"), "the answer alone: {judged}");
}
