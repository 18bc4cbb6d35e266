//! The tools that a manifest names, used by agents whose models are scripted.

mod adr_013;
mod agent_context;
mod command;
mod documents;
mod environment;
mod failed_statuses;
mod fetch;
mod files;
mod git;
mod given_context;
mod http;
mod keyvalue;
mod llm;
mod mcp;
mod namespaces;
mod organism_state;
mod other_organism;
mod pdf;
mod pods;
mod program_network;
mod program_paths;
mod program_rights;
mod recall;
mod secrets;
mod seed_feeds;
mod seeds;
mod service;
mod service_feeds;
mod set_feeds;
mod site;
mod skills;
mod sql;
mod subscribe;
mod system_monitor;
mod together;
mod typed;
mod values;

use serde_json::Value;

use crate::program::Scene;

/// A manifest with some tools and an agent that may use all of them.
fn organism(tools: &[(&str, &str)], replies: &str) -> Scene {
    let scene = Scene::new();
    let each = |(name, rest): &(&str, &str)| format!("  - {{name: {name}, {rest}}}\n");
    let listeners: String = tools.iter().map(each).collect();
    let peers: Vec<&str> = tools.iter().map(|it| it.0).collect();
    scene.write(
        "organism.yaml",
        format!(
            "models: {{m: {{use: scripted, file: replies.txt}}}}\nlisteners:\n{listeners}  \
             - {{use: agent, name: coder, model: m, peers: [{}]}}\n",
            peers.join(", ")
        ),
    );
    scene.write("replies.txt", replies);
    scene
}

/// Asks the agent, and has every entry of the thread as text.
#[track_caller]
fn asked(scene: &Scene, text: &str) -> String {
    scene.run(&["check"]).code(0);
    let server = scene.serve(&[]);
    let ask = format!("<coder xmlns=\"https://xml-pipeline.org/ns/coder/v1\">{text}</coder>\n");
    scene.pipe(&["send", "--connect", &server.address], &ask).code(0);
    drop(server);
    let threads = scene.run(&["threads", "--json"]).code(0).objects();
    let all = threads.iter().map(|it| {
        let thread = it["thread"].as_str().unwrap();
        let entries = scene.run(&["show", thread, "--json"]).code(0).objects();
        entries.iter().map(Value::to_string).collect::<Vec<_>>().join("\n")
    });
    all.collect::<Vec<_>>().join("\n")
}

/// Checks that each of these stands in a text, one after the other.
#[track_caller]
fn in_order(text: &str, expected: &[&str]) {
    let mut rest = text;
    for it in expected {
        let at = rest.find(it).unwrap_or_else(|| panic!("no {it:?} in\n{rest}"));
        rest = &rest[at + it.len()..];
    }
}
