//! The use cases of the document *LLM-Driven Metadata & Workflow Triggering System*: an emergency,
//! and a research agent with workflows for each of its modes.

use super::seed_002::{records, shown};
use crate::program::Scene;

/// A manifest with an agent whose metadata are these, and with a workflow for each trigger, whose
/// steps call listeners that record what they are sent.
fn scene(metadata: &str, workflows: &[(&str, &str, &[&str])], reply: &str) -> Scene {
    let scene = Scene::new();
    let (mut listeners, mut names) = (String::new(), Vec::new());
    for (name, trigger, steps) in workflows {
        let each = steps.iter().map(|step| {
            let parameters = "{metadata: \"${agent.metadata}\"}";
            format!("  - {{name: {step}, target: {step}, parameters: {parameters}}}\n")
        });
        let steps_of: String = each.collect();
        let head = format!("kind: Workflow\nname: {name}\n{trigger}");
        scene.write(&format!("{name}.yml"), format!("{head}steps:\n{steps_of}"));
        listeners.extend(steps.iter().map(|step| records(step, &["metadata"])));
        names.push(*name);
    }
    let names = names.join(", ");
    let agent =
        format!("  - use: agent\n    name: worker\n    model: m\n    workflows: [{names}]\n");
    let models = "models: {m: {use: scripted, file: replies.txt}}\ninclude: [\"*.yml\"]\n";
    scene.write("organism.yaml", format!("{models}listeners:\n{listeners}{agent}{metadata}"));
    scene.write("replies.txt", format!("%% reply\n{reply}<response>Done.</response>\n"));
    scene.run(&["check"]).code(0);
    scene
}

/// Asks the agent. Returns its session.
#[track_caller]
fn ask(scene: &Scene, address: &str) -> String {
    let ask = "<worker xmlns=\"https://xml-pipeline.org/ns/worker/v1\">Go.</worker>";
    let sent = scene.pipe(&["send", "--connect", address, "--json"], ask).code(0).objects();
    sent[0]["thread"].as_str().unwrap().to_owned()
}

#[test]
fn an_emergency_is_answered_when_priority_and_status_say_so() {
    let metadata = "    metadata:
      fields:
        status: {type: enum, values: [IDLE, ERROR], default: IDLE}
        priority: {type: enum, values: [HIGH, LOW], default: LOW}
        context: {type: object}
";
    // The trigger and the output of the document, word for word.
    let trigger = "\
trigger:
  type: \"metadata_match\"
  conditions:
    priority: \"HIGH\"
    status: \"ERROR\"
  match_all: true
";
    let output = "\
<metadata>
{
  \"status\": \"ERROR\",
  \"priority\": \"HIGH\",
  \"context\": {\"error_type\": \"critical_failure\"}
}
</metadata>
";
    let steps = ["alert_escalation", "emergency_logging", "rollback", "incident_report"];
    let scene = scene(metadata, &[("emergency", trigger, &steps)], output);
    let server = scene.serve(&[]);
    let session = ask(&scene, &server.address);
    let run = shown(&scene, &format!("{session}.emergency"), &["<workflow-result"]);
    for step in steps {
        assert!(run.out.contains(&format!("<name>{step}</name>")), "{}", run.out);
    }
    run.says(&["\"error_type\":\"critical_failure\""]);
    drop(server);
}

#[test]
fn each_mode_of_a_research_agent_has_workflows_of_its_own() {
    // The fields of the document, word for word, and types for what it leaves open.
    let metadata = "    metadata:
      fields:
        mode:
          values: [\"RESEARCHING\", \"ANALYZING\", \"WRITING\"]
        context:
          type: \"object\"
";
    let on = |mode: &str| format!("trigger: {{conditions: {{mode: {mode}}}}}\n");
    let (researching, analyzing, writing) = (on("RESEARCHING"), on("ANALYZING"), on("WRITING"));
    let workflows: [(&str, &str, &[&str]); 3] = [
        ("sources", &researching, &["bookmark_urls", "save_citations"]),
        ("insights", &analyzing, &["summaries", "extract_insights"]),
        ("editing", &writing, &["grammar_check", "format_references"]),
    ];
    let modes = ["RESEARCHING", "ANALYZING"];
    let reply: String =
        modes.iter().map(|it| format!("<metadata>{{\"mode\": \"{it}\"}}</metadata>\n")).collect();
    let scene = scene(metadata, &workflows, &reply);
    let server = scene.serve(&[]);
    let session = ask(&scene, &server.address);
    for run in ["sources", "insights"] {
        shown(&scene, &format!("{session}.{run}"), &["<workflow-result"]);
    }
    let threads = scene.run(&["threads"]).out;
    assert!(!threads.contains(&format!("{session}.editing")), "{threads}");
    drop(server);
}
