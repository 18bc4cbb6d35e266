//! Metadata of one agent in the prompt of another agent, and what `check` says of wrong references.

use crate::program::Scene;

const MANIFEST: &str = "\
models:
  coding: {use: scripted, file: coding.txt}
  reviewing: {use: scripted, file: reviewing.txt}
services:
  news: {url: \"http://127.0.0.1:9\"}
listeners:
  - use: echo
  - use: agent
    name: coder
    model: coding
    peers: [reviewer]
    metadata: {fields: {status: {values: [IDLE, CODING], default: IDLE}, note: {type: string}}}
    context_feeds:
      - id: echoed
        source: {type: tool, name: echo, params: {text: \"It is ${metadata.status}.\"}}
    feeds: [{source: news, path: \"/${metadata.status}\", enabled: false}]
  - use: agent
    name: reviewer
    model: reviewing
    context_feeds:
      - {id: coder, source: {type: metadata, agent: coder, fields: [status]}}
";

fn scene(manifest: &str) -> Scene {
    let scene = Scene::new();
    scene.write("organism.yaml", manifest);
    let call = "<action id=\"r\">{\"name\": \"reviewer\", \"parameters\": {}}</action>";
    let coding = "<metadata>{\"status\": \"CODING\"}</metadata>";
    let coding = format!("%% reply\n{coding}{call}\n%% reply\n<response>$r</response>\n");
    scene.write("coding.txt", coding);
    scene.write("reviewing.txt", "%% reply\n<response>You are at ${coder.status}.</response>\n");
    scene
}

#[test]
fn a_reviewers_prompt_shows_the_status_of_the_coder() {
    let scene = scene(MANIFEST);
    scene.run(&["check"]).code(0);
    let server = scene.serve(&[]);
    let ask = "<coder xmlns=\"https://xml-pipeline.org/ns/coder/v1\">Build it.</coder>";
    let ran = scene.pipe(&["send", "--connect", &server.address, "--json"], ask).code(0);
    ran.says(&["You are at CODING."]);
    let threads = scene.run(&["threads", "--json"]).code(0).objects();
    let all: Vec<&str> = threads.iter().filter_map(|it| it["thread"].as_str()).collect();
    let shown: String = all.iter().map(|it| scene.run(&["show", it]).out).collect();
    assert!(shown.contains("\"status\": \"CODING\""), "{shown}");
    assert!(!shown.contains("\"note\""), "{shown}");
    for text in ["It is IDLE.", "It is CODING."] {
        assert!(shown.contains(text), "{shown}");
    }
    for thread in all {
        scene.run(&["replay", thread]).code(0);
    }
}

#[test]
fn what_feeds_refer_to_of_metadata_must_be_declared() {
    for (right, wrong, told) in [
        (
            "It is ${metadata.status}",
            "It is ${metadata.stauts}",
            ":15:57: ${metadata.stauts}: the agent has no metadata field `stauts`; did you mean \
             `status`?",
        ),
        (
            "/${metadata.status}",
            "/${metadata.stats}",
            ":16:34: ${metadata.stats}: the agent has no metadata field `stats`",
        ),
        ("It is ${metadata.status}", "It is ${metadata}", ":15:57: ${metadata} names no field"),
        ("agent: coder", "agent: codr", ":21:53: there is no agent `codr`; did you mean `coder`?"),
        ("[status]}}\n", "[statsu]}}\n", ":21:69: `coder` has no metadata field `statsu`"),
        ("model: reviewing\n", "model: reviewing\n    workspace: nowhere\n", ":20:16: "),
    ] {
        let spoilt = MANIFEST.replace(right, wrong);
        assert_ne!(spoilt, MANIFEST);
        let ran = scene(&spoilt).run(&["check"]);
        assert!(ran.err.contains(told) || ran.out.contains(told), "{told}\n{}{}", ran.out, ran.err);
    }
}
