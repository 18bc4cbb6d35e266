//! The context of an agent: as an argument of a tool's handler, and as an answer of
//! `agent_context`.

use std::sync::Arc;

use pumphouse::listeners::agent::Agent;
use pumphouse::listeners::agent_context::{AgentContext, CallingAgent, FIELDS, Variables};
use pumphouse::listeners::metadata::{Field, Fields};
use pumphouse::listeners::{agent_support, core};
use pumphouse::model::Scripted;
use pumphouse::prelude::*;

use super::{asked, in_order};
use crate::program::Scene;

/// Asks for the name of the agent that calls.
#[derive(Clone, Debug, Default, Payload)]
#[payload(ns = "urn:test")]
struct Whose;

async fn tell(agent: CallingAgent, _: Whose) -> Result<AgentContext, Fault> {
    Ok(agent.context().await?.unwrap_or_default())
}

const CALL: &str = "<metadata>{\"status\": \"CODING\"}</metadata><thought>Hm.</thought>\
    <action id=\"a\">{\"name\": \"tool\"}</action>";

/// The context that a tool has of an agent that replies so, with the thread of the agent.
async fn context(tool: Listener, reply: &'static str) -> (AgentContext, ThreadId) {
    let model = Scripted::replies([reply, "<response>Done.</response>"]);
    let status = Field::choice("status", ["IDLE", "CODING"]).default("IDLE");
    let fields = Fields::new([status]).unwrap();
    let coder = Agent::new("coder", Arc::new(model)).peers(["tool"]).metadata(fields);
    let coder = coder.workspace("/srv/project");
    let ask = coder.ask("Go.").unwrap();
    let all = (core(), agent_support(), coder.listener(), tool);
    let pump = pumphouse::builder().with(all).build().unwrap().start();
    let thread = pump.ask_element(ask).await.unwrap().thread().clone();
    for thread in [thread.child("tool", 0), thread.clone()] {
        let entries = pump.log().read(&thread, 0, u64::MAX, 1_000).await.unwrap_or_default();
        if let Some(it) = entries.iter().find(|it| it.name == AgentContext::NAME) {
            let element = Element::from_canonical(it.body.clone()).unwrap();
            return (AgentContext::read(element.view()).unwrap(), thread.tree());
        }
    }
    panic!("the tool did not answer");
}

#[track_caller]
fn check((context, thread): (AgentContext, ThreadId)) {
    assert_eq!((&*context.session_id, &*context.thread), (thread.as_str(), thread.as_str()));
    assert_eq!((&*context.agent_name, context.iteration_count), ("coder", 1));
    assert_eq!(context.metadata.0, serde_json::json!({"status": "CODING"}));
    assert_eq!(context.tools, ["tool"]);
    assert_eq!(context.thoughts, ["Hm."]);
    assert_eq!(context.environment, [("REGION".to_owned(), "eu".to_owned())].into());
    assert_eq!(context.workspace_path.as_deref(), Some("/srv/project"));
    assert_eq!((&*context.manifest.name, context.manifest.max_turns), ("coder", Some(50)));
    assert!(context.started_at.is_some());
    assert!(FIELDS.iter().all(|it| context.field(it).is_some()));
}

fn tool() -> Listener {
    Listener::new("tool").on(tell).extension(Variables::from([("REGION", "eu")]))
}

#[tokio::test]
async fn a_tool_learns_for_which_agent_it_works() {
    let called = context(tool(), CALL).await;
    assert_eq!(called.0.actions_executed[0].status, "running");
    check(called);
}

#[tokio::test]
async fn a_tool_with_a_thread_of_its_own_learns_it_too() {
    check(context(tool().own_thread().kind("tool"), CALL).await);
}

#[tokio::test]
async fn a_payload_of_the_agent_tells_it_as_an_action_does() {
    const SENT: &str = "<metadata>{\"status\": \"CODING\"}</metadata><thought>Hm.</thought>\
        <whose/>";
    check(context(tool(), SENT).await);
    check(context(tool().own_thread().kind("tool"), SENT).await);
}

fn scene() -> Scene {
    let scene = Scene::new();
    std::fs::create_dir(scene.path("work")).unwrap();
    let replies = "%% reply\n<metadata>{\"status\": \"CODING\"}</metadata>\
        <action id=\"c\">{\"name\": \"agent_context\"}</action>\n\
        %% reply\n<response>${c.metadata.status} ${c.manifest.organism}</response>\n";
    scene.write("replies.txt", replies);
    let manifest = "\
name: house
models: {m: {use: scripted, file: replies.txt}}
listeners:
  - {use: agent_context, settings: {environment: [PATH, NO_SUCH_VARIABLE]}}
  - use: agent
    name: coder
    model: m
    peers: [agent_context]
    workspace: work
    metadata: {fields: {status: {values: [IDLE, CODING], default: IDLE}}}
";
    scene.write("organism.yaml", manifest);
    scene
}

#[test]
fn an_agent_asks_for_its_own_context() {
    let scene = scene();
    let all = asked(&scene, "Go.");
    let folder = scene.path("work").canonicalize().unwrap();
    in_order(&all, &["agent-context", "PATH", folder.to_str().unwrap(), "CODING house"]);
    // The thread `organism` has the manifest, which names the variables.
    let told = all.lines().filter(|it| !it.contains("\"thread\":\"organism\""));
    let told = told.collect::<Vec<_>>().join("\n");
    assert!(!told.contains("NO_SUCH_VARIABLE") && !told.contains("\"HOME\""), "{told}");
    let thread = scene.run(&["threads", "--json"]).objects()[0]["thread"].to_string();
    scene.run(&["replay", thread.trim_matches('"')]).code(0);
}

#[test]
fn a_client_asks_for_the_context_of_an_agent_in_its_session() {
    let scene = scene();
    let server = scene.serve(&[]);
    let ask = "<coder xmlns=\"https://xml-pipeline.org/ns/coder/v1\">Go.</coder>";
    let ran = scene.pipe(&["send", "--connect", &server.address, "--json"], ask).code(0);
    let thread = ran.objects()[0]["thread"].as_str().unwrap().to_owned();
    let get = |attribute: &str| {
        let ns = "https://xml-pipeline.org/ns/agent_context/v1";
        let get = format!("<get-agent-context xmlns=\"{ns}\"{attribute}/>");
        scene.pipe(&["send", "--connect", &server.address, "--thread", &thread], &get).out
    };
    let told = get(" agent=\"coder\"");
    in_order(&told, &["agent_name=\"coder\"", "iteration_count=\"2\"", "CODING"]);
    assert!(get(" agent=\"codr\"").contains("there is no agent codr; did you mean coder?"));
    assert!(get(" agent=\"\"").contains("agent is empty; there is coder"));
    assert!(get("").contains("no agent asks; name one, as in agent=\"coder\""));
}
