//! Agents in manifests.

use pumphouse::listeners::agent::words::Response;
use pumphouse::listeners::{agent_support, core};
use pumphouse::manifest::Manifest;
use pumphouse::prelude::*;
use serde_json::Value;

use super::mistakes::{Case, found};
use super::{Greet, Path, builder, environment, read_in};
use crate::program::Scene;

/// What is spoilt.
const SOUND: &str = "\
models:
  local: {use: openai, url: \"http://127.0.0.1:9/v1\", model: small}
listeners:
  - use: calculate
  - use: agent
    name: researcher
    describe: Finds things out.
    model: local
    prompt: You find things out.
    peers: [calculate, oracle]
    dialect: tool_use
    dispatch: after_response
    final_default: false
    final_with_actions: strict
    final_payloads: [calculated]
    max_turns: unlimited
    agent_calls: same-thread
    internal_actions: {enabled: true, allowed_actions: [add_context_feed]}
    on_context_full: stop
    context_keep: 5
    abilities: [timers, todo]
    text_is_response: true
    summary_model: local
    max_tokens: 512
    temperature: 0.5
    timeout: 1h
  - use: agent
    name: oracle
    model: local
";

const CASES: &[Case] = &[
    (
        "use: agent\n    name: researcher\n    describe: Finds things out.\n    model: local\n",
        "use: agent\n    name: researcher\n",
        "use: agent",
        "an agent needs the key `model`",
        "model: local",
    ),
    (
        "use: agent\n    name: researcher\n",
        "use: agent\n",
        "use: agent",
        "an agent needs the key `name`",
        "name: researcher",
    ),
    ("name: researcher", "name: 2nd", "2nd", "no element can be <2nd>", "begin it with a letter"),
    ("name: researcher", "name: agent", "agent", "`agent` is a word of the pump's", "another"),
    (
        "model: local\n    prompt",
        "model: locale\n    prompt",
        "locale",
        "there is no model `locale`; did you mean `local`?",
        "",
    ),
    (
        "prompt: You",
        "promt: You",
        "promt",
        "an agent has no key `promt`; did you mean `prompt`?",
        "prompt: You find",
    ),
    (
        "You find things out.\n    peers",
        "{file: no/such.md}\n    peers",
        "no/such.md",
        "no/such.md: ",
        "",
    ),
    (
        "You find things out.\n    peers",
        "{fiel: a.md}\n    peers",
        "fiel",
        "a text's `file:` has no key `fiel`; did you mean `file`?",
        "file: researcher.md",
    ),
    (
        "You find things out.\n    peers",
        "[a, b]\n    peers",
        "[a, b]",
        "this is a list, and a text, or a text's `file:`, is expected",
        "prompt: You find",
    ),
    (
        "[calculate, oracle]",
        "[calculate, oracel]",
        "oracel",
        "there is no listener `oracel`; did you mean `oracle`?",
        "researcher",
    ),
    (
        "dialect: tool_use",
        "dialect: tool-use",
        "tool-use",
        "did you mean `tool_use`?",
        "dialect: tags",
    ),
    (
        "dispatch: after_response",
        "dispatch: later",
        "later",
        "`immediate`, `batched` or `after_response` is expected",
        "dispatch: immediate",
    ),
    (
        "final_default: false",
        "final_default: no way",
        "no way",
        "this is `no way`, and `true` or `false` is expected",
        "final_default: true",
    ),
    (
        "final_with_actions: strict",
        "final_with_actions: strickt",
        "strickt",
        "did you mean `strict`?",
        "hold",
    ),
    (
        "[calculated]",
        "[calclated]",
        "calclated",
        "no listener has a payload `calclated`; did you mean `calculated`?",
        "there is calculate, calculated, oracle, problem, researcher",
    ),
    (
        "[calculated]",
        "[thread-result]",
        "thread-result",
        "no listener has a payload `thread-result`",
        "there is calculate",
    ),
    ("max_turns: unlimited", "max_turns: -1", "-1", "a whole number, or unlimited", "50"),
    ("same-thread", "same_thread", "same_thread", "did you mean `same-thread`?", "own-thread"),
    (
        "{enabled: true",
        "{enable: true",
        "enable",
        "internal_actions has no key `enable`; did you mean `enabled`?",
        "enabled: true",
    ),
    (
        "on_context_full: stop",
        "on_context_full: halt",
        "halt",
        "`clear`, `summarise` or `stop`",
        "clear",
    ),
    ("context_keep: 5", "context_keep: no tokens", "no tokens", "4000 tokens", "context_keep: 10"),
    ("context_keep: 5", "context_keep: 0", "0", "a whole number from 1 to", "context_keep: 10"),
    ("max_tokens: 512", "max_tokens: some", "some", "a whole number from 1 to", "2048"),
    ("temperature: 0.5", "temperature: hot", "hot", "a number is expected", "0.2"),
    (
        "timeout: 1h",
        "settings: {model: local}",
        "settings",
        "an agent has no key `settings`",
        "it has use, name",
    ),
    (
        "name: oracle",
        "name: oracle\n    use: agent",
        "use: agent",
        "`use` stands here again, after line 27",
        "keep one",
    ),
];

#[test]
fn every_mistake_in_an_agent_is_found_placed_and_named() {
    read_in("organism.yaml", SOUND).map(drop).expect("what is spoilt is sound");
    let wrong: Vec<String> = CASES.iter().filter_map(|it| found(SOUND, it).err()).collect();
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), CASES.len(), wrong.join("\n\n"));
}

#[test]
fn a_payload_that_ends_an_agents_work_may_be_the_programs() {
    let report = Listener::new("clerk").on(async |Greet { .. }: Greet| {});
    let text = SOUND.replace("[calculated]", "[greet]");
    let file = Path::new("organism.yaml");
    let read = |builder| Manifest::read(file, text.as_bytes(), &environment, &builder);
    assert!(read(builder()).is_err());
    assert!(read(builder().with(report)).is_ok());
}

#[test]
fn a_model_that_is_wrong_is_one_mistake() {
    let text = SOUND.replace("http://127", "ftp://127");
    let mistakes = read_in("organism.yaml", text).err().unwrap();
    assert_eq!(mistakes.all().len(), 1, "{mistakes}");
}

#[test]
fn an_agent_without_its_staff_is_a_complaint() {
    let manifest = read_in("organism.yaml", SOUND).unwrap();
    let places = manifest.places.clone();
    let complaints = pumphouse::builder().with((core(), manifest)).build().map(drop).unwrap_err();
    let told = places.find(&complaints).to_string();
    let expected = "organism.yaml:5:5: researcher: it can't do without `action`: add that too";
    assert!(told.starts_with(expected), "{told}");
}

#[test]
fn an_agent_may_call_its_peers_and_what_it_relies_on() {
    let manifest = read_in("organism.yaml", SOUND).unwrap();
    let plan = pumphouse::builder().with((core(), agent_support(), manifest)).build().unwrap();
    let it = plan.listeners().iter().find(|it| it.name == "researcher").unwrap();
    assert_eq!(it.text.as_deref(), Some("Finds things out."));
    assert_eq!(it.peers.as_deref(), Some(&["calculate".to_owned(), "oracle".to_owned()][..]));
    assert!(it.relies_on.contains(&"action".to_owned()));
    let it = plan.listeners().iter().find(|it| it.name == "oracle").unwrap();
    assert_eq!(it.peers.as_deref(), Some(&[][..]));
}

/// A folder with an agent that calculates, whose prompt stands in a file.
fn folder() -> Scene {
    let scene = Scene::new();
    scene.write("prompts/oracle.md", "You are exact. ${sum} is a sum.\n");
    scene.write(
        "replies.txt",
        "%% reply\n\
         <action id=\"sum\">{\"name\": \"calculate\", \"parameters\": {\"expression\": \"6*7\"}}\
         </action>\n<response>It is ${sum}.</response>\n",
    );
    scene.write(
        "organism.yaml",
        "models: {fixed: {use: scripted, file: replies.txt}}\n\
         listeners:\n  - use: calculate\n  - use: agent\n    name: oracle\n    model: fixed\n    \
         prompt: {file: prompts/oracle.md}\n    peers: [calculate]\n",
    );
    scene
}

const QUESTION: &str =
    "<oracle xmlns=\"https://xml-pipeline.org/ns/oracle/v1\">Six times seven?</oracle>\n";

#[tokio::test]
async fn a_manifest_has_a_working_agent() {
    let scene = folder();
    let file = scene.path("organism.yaml");
    let manifest = read_in(&file, std::fs::read(&file).unwrap()).unwrap();
    let plan = pumphouse::builder().with((core(), agent_support(), manifest)).build().unwrap();
    let pump = plan.start();
    let bytes = QUESTION.trim().as_bytes().to_vec();
    let question = pumphouse::xml::read(
        bytes,
        pumphouse::xml::Profile::Wire,
        &pumphouse::limits::XmlLimits::DOOR,
    );
    let answer = pump.ask_element(question.unwrap()).await.unwrap();
    assert_eq!(answer.decode::<Response>().unwrap().text, "It is 42.");
    pump.shutdown().await.unwrap();
}

/// As the seed has it, with another tag.
const STREAMING: &str = r#"
    streaming_config:
      # Tool batching settings
      tool_batch_size: 5 # Execute immediately when this many tools ready
      tool_batch_delay: 0.1 # Seconds to wait for more tools before executing

      # Parser limits
      tool_parse_buffer_max: 1048576 # 1MB max per tool definition
      text_buffer_max: 10485760 # 10MB max text accumulation

      # Supported formats
      formats:
        xml:
          tag_open: "<call>"
          tag_close: "</call>"
          attributes: [id, name]

        json:
          schema:
            type: object
            required: [type, name, input]
            properties:
              type: { const: "tool_use" }
              id: { type: string }
              name: { type: string }
              input: { type: object }
"#;

#[test]
fn a_streaming_config_says_how_calls_are_spelled_and_batched() {
    let scene = folder();
    let manifest = "\
models: {fixed: {use: scripted, file: replies.txt}}
listeners:
  - use: calculate
  - use: agent
    name: oracle
    model: fixed
    peers: [calculate]
    references: true
    dialect: tool_use";
    scene.write("organism.yaml", format!("{manifest}{STREAMING}"));
    let call = r#"<call id="a" name="calculate">{"expression": "6*7"}</call>"#;
    scene.write(
        "replies.txt",
        format!("%% reply\n{call}\n%% reply\n<response>It is $a.</response>"),
    );
    let server = scene.serve(&[]);
    let told = scene.pipe(&["send", "--connect", &server.address], QUESTION).code(0);
    told.says(&["It is 42."]);
    drop(server);
    let thread = scene.run(&["threads", "--json"]).code(0).objects()[0]["thread"].clone();
    let shown = scene.run(&["show", thread.as_str().unwrap(), "--json"]).code(0).out;
    assert!(shown.contains("dispatch=\\\"batched\\\""), "{shown}");
    for (right, wrong, said) in [
        ("tool_batch_delay: 0.1", "tool_batch_delay: 61", "from 0 to 60"),
        ("\"<call>\"", "\"<call\"", "no pair such as"),
        ("tool_batch_size: 5", "tool_batch_sise: 5", "did you mean `tool_batch_size`?"),
        ("attributes: [id, name]", "attribute: [id, name]", "attribute"),
    ] {
        scene.write("organism.yaml", format!("{manifest}{}", STREAMING.replace(right, wrong)));
        let told = scene.run(&["check"]).code(1);
        assert!(told.err.contains(said) || told.out.contains(said), "{}{}", told.out, told.err);
    }
}

#[test]
fn a_streaming_config_may_stand_in_a_file_as_the_document_has_it() {
    let scene = folder();
    let manifest = "\
models: {fixed: {use: scripted, file: replies.txt}}
listeners:
  - use: calculate
  - use: agent
    name: oracle
    model: fixed
    peers: [calculate]
    dialect: tool_use
    references: true
    streaming_config: {file: config/streaming.yaml}
";
    let document = STREAMING.replace("\n    ", "\n");
    scene.write("config/streaming.yaml", format!("schema_version: \"1.0.0\"\n{document}"));
    scene.write("organism.yaml", manifest);
    let call = r#"<call id="a" name="calculate">{"expression": "6*7"}</call>"#;
    scene.write(
        "replies.txt",
        format!("%% reply\n{call}\n%% reply\n<response>It is $a.</response>"),
    );
    let server = scene.serve(&[]);
    scene.pipe(&["send", "--connect", &server.address], QUESTION).code(0).says(&["It is 42."]);
    drop(server);
    let wrong = |said: &[&str]| {
        let ran = scene.run(&["check"]).code(1);
        ran.says(said);
    };
    scene.write("config/streaming.yaml", format!("schema_version: \"2.0.0\"\n{document}"));
    wrong(&["organism.yaml:10:30: config/streaming.yaml: schema_version is 2.0.0"]);
    scene.write("config/streaming.yaml", "streaming_config: {tool_batch_sise: 5}\n");
    wrong(&["organism.yaml:10:30: ", "tool_batch_sise"]);
    let other = manifest.replace("streaming.yaml}", "none.yaml}");
    scene.write("organism.yaml", &other);
    wrong(&["config/none.yaml: No such file"]);
    scene.write("organism.yaml", other.replace("none.yaml}", "none.yaml, tool_batch_size: 2}"));
    wrong(&["beside `file` there is no other key, such as `tool_batch_size`"]);
}

#[test]
fn the_verbs_know_an_agent() {
    let scene = folder();
    scene.run(&["check"]).code(0).says(&[
        "model     fixed  scripted by replies.txt",
        "listener  oracle  The agent oracle.",
        "  takes   {https://xml-pipeline.org/ns/oracle/v1}oracle",
        "  peers   calculate",
    ]);
    scene.run(&["describe", "oracle"]).code(0).says(&["Something for the agent to do"]);
    let server = scene.serve(&[]);
    let told = scene.pipe(&["send", "--connect", &server.address], QUESTION).code(0);
    told.says(&["It is 42."]);
    drop(server);
    let thread = scene.run(&["threads", "--json"]).code(0).objects()[0]["thread"].clone();
    let thread = thread.as_str().unwrap();
    scene.run(&["tree", thread]).code(0).says(&["console → oracle"]);
    let entries = scene.run(&["show", thread, "--json"]).code(0).objects();
    let system = |it: &&Value| it.to_string().contains("cognition_system");
    let system = entries.iter().find(system).unwrap().to_string();
    assert!(system.contains("You are exact. ${sum} is a sum."), "{system}");
}

#[test]
fn a_limit_of_cost_needs_models_with_a_price() {
    let manifest = |limits: &str, price: &str| {
        format!(
            "limits: {{{limits}}}\nmodels:\n  gw: {{use: openai, url: \"http://127.0.0.1:1/v1\", \
             model: gpt-5-mini{price}}}\nlisteners: [{{use: agent, name: bot, model: gw}}]\n"
        )
    };
    let check = |limits: &str, price: &str| {
        let scene = Scene::new();
        scene.write("organism.yaml", manifest(limits, price));
        scene.run(&["check"])
    };
    let text = "`tree_cost_micros_max` can't hold the model `gw`: it has no price";
    check("tree_cost_micros_max: 1000", "").code(1).says(&[text, "price: {input: 0.15"]);
    check("tree_cost_micros_max: 1000", ", price: {input: 0, output: 0}").code(0);
    check("tree_cost_micros_max: unlimited", "").code(0);
    check("tree_tokens_max: 1000", "").code(0);
}

#[test]
fn a_limit_of_cost_needs_a_price_of_each_model_that_a_listener_may_ask() {
    let check = |settings: &str| {
        let scene = Scene::new();
        let model = "use: openai, url: \"http://127.0.0.1:1/v1\", model: homemade";
        scene.write(
            "organism.yaml",
            format!(
                "limits: {{tree_cost_micros_max: 1000}}\n\
                 models:\n  t: {{{model}}}\n  free: {{{model}, price: {{input: 0, output: 0}}}}\n\
                 listeners: [{{use: llm, settings: {{{settings}}}}}]\n"
            ),
        );
        scene.run(&["check"])
    };
    let text = "`tree_cost_micros_max` can't hold the model `t`: it has no price";
    check("model: t").code(1).says(&["1 mistake", text]);
    check("model: free, models: [free, t]").code(1).says(&["1 mistake", text]);
    let others = "can't hold `llm`, which may ask models without a price: t";
    check("model: free").code(1).says(&["1 mistake", others, "models: [m]"]);
    check("model: free, models: [free]").code(0);
}
