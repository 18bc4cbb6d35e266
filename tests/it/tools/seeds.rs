//! `examples/seeds.yaml`: each call of the seed documents does what it is for. Of a service that is
//! only stood in for, and of an agent, the parameters come back in the call's result.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::program::{Ran, Scene, Server};

/// The example in a folder of its own, served, and what stands in for the services.
pub(super) struct Pump {
    pub(super) scene: Scene,
    pub(super) server: Server,
    /// The host and port of what stands in for the services.
    services: String,
    stand_in: Child,
}

impl Drop for Pump {
    fn drop(&mut self) {
        let _ = self.stand_in.kill();
        let _ = self.stand_in.wait();
    }
}

/// Starts both; nothing where there is no python3.
fn serve() -> Option<Pump> {
    serve_with("", &[])
}

/// Starts both, with further listeners in the manifest and with variables of the environment.
pub(super) fn serve_with(more: &str, variables: &[(&str, &str)]) -> Option<Pump> {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let mut python = Command::new("python3");
    python.arg(examples.join("seeds.py")).arg("0").stdout(Stdio::piped());
    let Ok(mut stand_in) = python.spawn() else {
        crate::skipped("no python3");
        return None;
    };
    let mut port = String::new();
    BufReader::new(stand_in.stdout.take().unwrap()).read_line(&mut port).unwrap();
    let scene = Scene::new();
    fs::create_dir(scene.path("workflows")).unwrap();
    for file in ["seeds.txt", "workflows/data_pipeline.yml", "workflows/doc_aggregator.yml"] {
        fs::copy(examples.join(file), scene.path(file)).unwrap();
    }
    let manifest = fs::read_to_string(examples.join("seeds.yaml")).unwrap();
    let here = format!("127.0.0.1:{}", port.trim());
    scene.write("seeds.yaml", manifest.replace("127.0.0.1:9000", &here) + more);
    for folder in ["journal", "repo"] {
        fs::create_dir(scene.path(folder)).unwrap();
    }
    scene.write("journal/2026/today.md", "Brewed tea.\n");
    repository(&scene);
    let folders = [("JOURNAL_ROOT", "journal"), ("REPO_ROOT", "repo")];
    let folders = folders.map(|(name, folder)| (name, scene.path(folder)));
    let mut check = scene.command(&["check", "seeds.yaml"]);
    check.envs(folders.clone());
    let checked = Ran::of(check.envs(variables.iter().copied()));
    checked.code(0).says(&["seeds.yaml is sound"]);
    let mut serve = scene.command(&["run", "seeds.yaml", "--json", "--listen", "127.0.0.1:0"]);
    serve.envs(folders);
    let server = Server::begin(serve.envs(variables.iter().copied()));
    Some(Pump { scene, server, services: here, stand_in })
}

/// Makes a repository with one commit, in the folder `repo`.
fn repository(scene: &Scene) {
    scene.write("repo/src/main.rs", "fn main() {}\n");
    let author = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"];
    let commit = [&author[..], &["commit", "-q", "-m", "Sums are right"]].concat();
    for words in [&["init", "-q", "-b", "main"][..], &["add", "."], &commit] {
        let done = Command::new("git").args(words).current_dir(scene.path("repo")).status();
        assert!(done.unwrap().success(), "{words:?}");
    }
}

/// What comes of a call.
#[track_caller]
fn call(pump: &Pump, kind: &str, name: &str, parameters: &Value) -> String {
    let parameters = parameters.to_string().replace('&', "&amp;").replace('<', "&lt;");
    let action = format!(
        "<action xmlns=\"https://xml-pipeline.org/ns/agent/v1\" id=\"c\" mode=\"sync\" \
         type=\"{kind}\"><name>{name}</name><parameters>{parameters}</parameters></action>\n"
    );
    let ran = pump.scene.pipe(&["send", "--connect", &pump.server.address], &action).code(0);
    assert!(ran.out.contains("status=\"ok\""), "{name}: {ran:#?}");
    ran.out
}

#[test]
fn the_parameters_of_a_call_of_a_stand_in_come_back_in_its_result() {
    let Some(pump) = serve() else { return };
    let page = "https://example.com";
    for (kind, name, parameters) in [
        ("tool", "database_query", json!({ "query": "SELECT * FROM users" })),
        ("agent", "data_analyzer", json!({ "webpage": page, "users": "Ada" })),
        ("agent", "data_analyzer", json!({ "data": "7", "analysis_type": "comprehensive" })),
        ("agent", "data_analyzer", json!({ "wiki_data": "w", "news_data": "n" })),
        ("tool", "calculator", json!({ "operation": "add", "a": 5, "b": 3 })),
        ("llm", "summarize", json!({ "text": "A long document." })),
        ("llm", "summarize", json!({ "prompt": "Main purpose?", "context": "src/main.rs" })),
        ("tool", "authenticate", json!({ "token": "t0ken" })),
        ("tool", "fetch_data", json!({ "source": "api" })),
        ("relic", "log_service", json!({ "filter": "ERROR", "since": "1h" })),
        ("tool", "text_analyzer", json!({ "text": "Words & <more>" })),
        ("relic", "cache_store", json!({ "key": "analysis_result", "value": "fine" })),
        ("relic", "results_cache", json!({ "key": "ai_report", "value": "long", "ttl": 86400 })),
        ("tool", "arxiv_search", json!({ "query": "machine learning", "max_results": 10 })),
        ("tool", "news_api", json!({ "topic": "artificial intelligence", "days": 7 })),
        (
            "agent",
            "comprehensive_analyzer",
            json!({ "wikipedia": "AI", "research_papers": "ten", "news": "seven" }),
        ),
        ("agent", "deep_analyzer", json!({ "data": "preliminary" })),
        ("relic", "health_check_service", json!({})),
        ("tool", "expensive_api_call", json!({})),
        ("relic", "data_warehouse", json!({})),
        ("tool", "market-summary", json!({})),
        ("tool", "portfolio", json!({})),
    ] {
        let result = call(&pump, kind, name, &parameters);
        for value in parameters.as_object().unwrap().values() {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
            assert!(result.contains(&text), "{name}: no {text:?} in {result}");
        }
    }
}

#[test]
fn what_is_computed_here_is_computed() {
    let Some(pump) = serve() else { return };
    let calculator = json!({ "operation": "add", "a": 5, "b": 3 });
    assert!(call(&pump, "tool", "calculator", &calculator).contains("add 5 3 = 8"));
    let set = json!({ "operation": "set", "key": "result_123", "value": "42", "ttl": 3600 });
    assert!(call(&pump, "relic", "redis_cache", &set).contains("[ttl: 3600]"));
    let get = json!({ "operation": "get", "key": "result_123" });
    assert!(call(&pump, "relic", "redis_cache", &get).contains("42"));
    let metrics = json!({ "metrics": ["cpu", "memory"] });
    let measured = call(&pump, "tool", "system_monitor_tool", &metrics);
    assert!(measured.contains("load") && measured.contains("memory"), "{measured}");
    let model = json!({ "text": "Long.", "max_length": 200, "model": "gemini-1.5-flash" });
    assert!(call(&pump, "llm", "summarize", &model).contains("Long."));
}

#[test]
fn the_tools_of_this_machine_are_the_shipped_ones() {
    let Some(pump) = serve() else { return };
    pump.scene.write("a.rs", "a - b\n");
    let edit = json!({ "path": "a.rs", "old": "a - b", "new": "a + b" });
    assert!(call(&pump, "tool", "file_editor", &edit).contains("-a - b"));
    assert_eq!(fs::read_to_string(pump.scene.path("a.rs")).unwrap(), "a + b\n");
    let folder = |name: &str| pump.scene.path(name).to_str().unwrap().to_owned();
    let tree = json!({ "path": folder("journal"), "format": "tree" });
    let shown = call(&pump, "tool", "filesystem", &tree).replace("\n│ ", "\n");
    assert!(shown.contains("2026/\n  today.md\n"), "{shown}");
    let tree = json!({ "path": folder("repo"), "max_depth": 3 });
    let shown = call(&pump, "tool", "git_tree", &tree).replace("\n│ ", "\n");
    assert!(shown.contains("src/\n  main.rs\n"), "{shown}");
    let log = json!({ "count": 10, "format": "oneline" });
    assert!(call(&pump, "tool", "git_log", &log).contains(" Sums are right"));
    assert!(call(&pump, "tool", "docker_ps", &json!({})).contains("CONTAINER ID"));
    let first = json!({ "event": "data_processed" });
    let next = json!({ "timestamp": "2026-01-01", "message": "Done", "system_load": 1 });
    for (kind, it) in [("relic", &first), ("tool", &next)] {
        call(&pump, kind, "logger", it);
    }
    let logged = fs::read_to_string(pump.scene.path("work/events.jsonl")).unwrap();
    let logged: Vec<Value> = logged.lines().map(|it| serde_json::from_str(it).unwrap()).collect();
    assert_eq!(logged, [first, next]);
}

/// The call of the document on actions, and that of its document feed.
#[test]
fn the_workflows_do_their_steps() {
    let Some(pump) = serve() else { return };
    let steps = json!({ "input_data": "b\na", "steps": ["validate", "transform", "load"] });
    let done = call(&pump, "workflow", "data_pipeline", &steps).replace("\n│ ", "\n");
    assert!(done.contains(">a\nb</value>"), "{done}");
    assert_eq!(fs::read_to_string(pump.scene.path("work/warehouse.txt")).unwrap(), "a\nb\n");
    let some = json!({ "input_data": "raw", "steps": ["validate"] });
    let told = call(&pump, "workflow", "data_pipeline", &some);
    assert!(told.contains("{\"lines\":\"1\",\"loaded\":null}</value>"), "{told}");
    pump.scene.write("README.md", "Brews tea.\n");
    let paths = json!({ "paths": ["README.md"], "format": "markdown" });
    let gathered = call(&pump, "workflow", "doc_aggregator", &paths);
    assert!(gathered.contains("Brews tea."), "{gathered}");
}

#[test]
fn a_service_of_the_network_is_asked_over_http() {
    let Some(pump) = serve() else { return };
    let url = format!("http://{}/data", pump.services);
    let page = call(&pump, "tool", "web_scraper", &json!({ "url": url, "method": "GET" }));
    assert!(page.contains("\"service\":\"data\""), "{page}");
    let asked = json!({ "query": "a & b = c?", "max_results": 10 });
    let found = call(&pump, "tool", "arxiv_search", &asked);
    assert!(found.contains("arxiv_search") && found.contains("a &amp; b = c?"), "{found}");
    let asked = json!({ "key": "k", "value": { "deep": [1, 2] } });
    let kept = call(&pump, "relic", "cache_store", &asked);
    assert!(kept.contains("deep") && kept.contains("cache_store"), "{kept}");
}
