//! `examples/seeds.yaml`: each call of the design's origins has its parameters come back in its
//! result.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::program::{Scene, Server};

/// Puts the example into a folder of its own, and serves it.
fn serve() -> (Scene, Server) {
    let scene = Scene::new();
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    for name in ["seeds.yaml", "seeds.txt"] {
        fs::copy(examples.join(name), scene.path(name)).unwrap();
    }
    scene.run(&["check", "seeds.yaml"]).code(0).says(&["seeds.yaml is sound"]);
    let server = scene.serve(&["seeds.yaml"]);
    (scene, server)
}

/// What comes of a call.
#[track_caller]
fn call(pump: &(Scene, Server), kind: &str, name: &str, parameters: &Value) -> String {
    let parameters = parameters.to_string().replace('&', "&amp;").replace('<', "&lt;");
    let action = format!(
        "<action xmlns=\"https://xml-pipeline.org/ns/agent/v1\" id=\"c\" mode=\"sync\" \
         type=\"{kind}\"><name>{name}</name><parameters>{parameters}</parameters></action>\n"
    );
    let ran = pump.0.pipe(&["send", "--connect", &pump.1.address], &action).code(0);
    assert!(ran.out.contains("status=\"ok\""), "{name}: {ran:#?}");
    ran.out
}

#[test]
fn the_parameters_of_each_call_come_back_in_its_result() {
    let pump = serve();
    let page = "https://example.com";
    for (kind, name, parameters) in [
        ("tool", "web_scraper", json!({ "url": "https://api.example.com/data", "method": "GET" })),
        ("tool", "database_query", json!({ "query": "SELECT * FROM users" })),
        ("agent", "data_analyzer", json!({ "webpage": page, "users": "Ada" })),
        ("agent", "data_analyzer", json!({ "data": "7", "analysis_type": "comprehensive" })),
        ("agent", "data_analyzer", json!({ "wiki_data": "w", "news_data": "n" })),
        ("tool", "calculator", json!({ "operation": "add", "a": 5, "b": 3 })),
        ("llm", "summarize", json!({ "text": "A long document." })),
        ("llm", "summarize", json!({ "prompt": "Main purpose?", "context": "src/main.rs" })),
        ("tool", "authenticate", json!({ "token": "t0ken" })),
        ("tool", "fetch_data", json!({ "source": "api" })),
        ("relic", "logger", json!({ "event": "data_processed" })),
        (
            "tool",
            "logger",
            json!({ "timestamp": "2026-01-01", "message": "Done", "system_load": 1 }),
        ),
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
        ("tool", "file_editor", json!({ "path": "a.rs", "old": "a - b", "new": "a + b" })),
        ("tool", "filesystem", json!({ "path": "/journal", "format": "tree" })),
        ("tool", "git_tree", json!({ "path": "/repo", "max_depth": 3 })),
        ("tool", "git_log", json!({ "count": 10, "format": "oneline" })),
        ("tool", "docker_ps", json!({})),
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
    let pump = serve();
    let calculator = json!({ "operation": "add", "a": 5, "b": 3 });
    assert!(call(&pump, "tool", "calculator", &calculator).contains("add 5 3 = 8"));
    let set = json!({ "operation": "set", "key": "result_123", "value": "42", "ttl": 3600 });
    assert!(call(&pump, "relic", "redis_cache", &set).contains("3600"));
    let get = json!({ "operation": "get", "key": "result_123" });
    assert!(call(&pump, "relic", "redis_cache", &get).contains("42"));
    let metrics = json!({ "metrics": ["cpu", "memory"] });
    let measured = call(&pump, "tool", "system_monitor_tool", &metrics);
    assert!(measured.contains("load") && measured.contains("memory"), "{measured}");
    let model = json!({ "text": "Long.", "max_length": 200, "model": "gemini-1.5-flash" });
    assert!(call(&pump, "llm", "summarize", &model).contains("Long."));
}
