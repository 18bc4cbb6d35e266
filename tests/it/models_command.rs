//! `models`, run as an operator runs it.

use serde_json::{Value, json};

use crate::model::fake::{Server, answer, head, say};
use crate::program::Scene;

const KEY: &str = "sk-41d08f22";

fn with_server(url: &str) -> String {
    format!(
        "prices: ours.yaml
models:
  fixed: {{use: scripted, file: replies.txt, price: {{input: 1, output: 2}}}}
  large: {{use: openai, url: \"{url}\", model: large, key: \"${{SECRET}}\"}}
"
    )
}

const TABLE: &str = "\
as_of: 2026-11-01
from: our contract
providers:
  ours: {hosts: [127.0.0.1], models: {large: {window: 8192, input: 3, output: 15, cached: 0.3}}}
";

fn scene(url: &str) -> Scene {
    let scene = Scene::new();
    scene.write("replies.txt", "%% reply\nHello.\n");
    scene.write("ours.yaml", TABLE);
    scene.write("organism.yaml", with_server(url).replace("${SECRET}", "${SECRET:-sk-41d08f22}"));
    scene
}

#[test]
fn models_are_listed_with_their_prices_and_where_those_are_from() {
    let scene = scene("http://127.0.0.1:9/v1");
    let all = scene.run(&["models", "--json"]).code(0).objects();
    let price = json!({ "input": 3.0, "output": 15.0, "cached": 0.3, "cache_write": null });
    let large = json!({
        "manifest": "organism.yaml", "name": "large", "wire": "openai-chat", "model": "large",
        "host": "127.0.0.1:9", "window": 8_192, "price": price, "price_from": "table",
        "table": "our contract, as of 2026-11-01",
    });
    assert_eq!(all[1], large);
    assert_eq!((&all[0]["wire"], &all[0]["price_from"]), (&json!("scripted"), &json!("manifest")));
    assert_eq!((&all[0]["host"], &all[0]["table"]), (&Value::Null, &Value::Null));
    let table = scene.run(&["models"]).code(0);
    let row = table.out.lines().find(|it| it.starts_with("large")).unwrap();
    let cells: Vec<&str> = row.split_whitespace().collect();
    let expected =
        ["large", "openai-chat", "large", "127.0.0.1:9", "8192", "3.00", "0.30", "15.00", "table"];
    assert_eq!(cells, expected);
    let table = table.says(&["the table is our contract, as of 2026-11-01"]);
    assert!(!table.out.contains('\u{1b}') && !table.out.contains(KEY), "{}", table.out);
}

#[test]
fn several_manifests_are_listed_together() {
    let scene = scene("http://127.0.0.1:9/v1");
    scene.write("other.yaml", "models: {none: {use: ollama, model: gemma}}\n");
    let all = scene.run(&["models", "organism.yaml", "other.yaml", "--json"]).code(0).objects();
    let names: Vec<&Value> = all.iter().map(|it| &it["name"]).collect();
    assert_eq!(names, ["fixed", "large", "none"]);
    assert_eq!((&all[2]["price"], &all[2]["price_from"]), (&Value::Null, &Value::Null));
    let table = scene.run(&["models", "organism.yaml", "other.yaml"]).code(0).out;
    assert!(table.starts_with("manifest "), "{table}");
    scene.run(&["models", "no.yaml"]).code(2).says(&["no.yaml can't be read"]);
    scene.write("wrong.yaml", "models: {a: {use: olama}}\n");
    scene.run(&["models", "wrong.yaml"]).code(2).says(&["did you mean `ollama`?"]);
    let nowhere = Scene::new();
    nowhere.run(&["models"]).code(2).says(&["name a manifest"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_asks_for_one_token_and_says_who_answers() {
    let server = Server::start(vec![answer("OK")]).await;
    let scene = scene(&server.url());
    let told = scene.run(&["models", "--check"]).code(0);
    let line = told.out.lines().rfind(|it| it.starts_with("large")).unwrap();
    assert!(line.contains("answers in ") && line.ends_with(" ms"), "{line}");
    assert!(!told.out.contains("fixed  answers"), "a script isn't asked: {}", told.out);
    let asked = server.asked();
    assert_eq!(asked.len(), 1);
    assert_eq!((&asked[0].body["max_tokens"], &asked[0].body["stream"]), (&json!(1), &json!(true)));
    let messages = json!([{ "role": "user", "content": "Say OK." }]);
    assert_eq!(asked[0].body["messages"], messages);
    let all = scene.run(&["models", "--check", "--json"]).code(0).objects();
    assert_eq!((&all[0]["check"], &all[1]["check"]["answers"]), (&Value::Null, &json!(true)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_doesnt_answer_is_named_with_its_reason_and_without_the_key() {
    let refusal = format!("{{\"error\":{{\"message\":\"Incorrect API key: {KEY}\"}}}}");
    let unauthorized =
        vec![head("401 Unauthorized", "content-type: application/json\r\n"), say(&refusal)];
    let server = Server::start(vec![unauthorized]).await;
    let scene = scene(&server.url());
    let told = scene.run(&["models", "--check"]).code(1).says(&["Incorrect API key"]);
    assert!(!told.out.contains(KEY) && !told.err.contains(KEY), "{told:#?}");
    let all = scene.run(&["models", "--check", "--json"]).code(1).objects();
    assert_eq!(all[1]["check"]["answers"], false);
    assert!(!all[1].to_string().contains(KEY));
    assert_eq!(server.asked().len(), 2, "each check asks once");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_refuses_a_bound_is_asked_without_one() {
    let refusal = "{\"error\":{\"message\":\"Unsupported parameter: 'max_tokens'\"}}";
    let bad = vec![head("400 Bad Request", "content-type: application/json\r\n"), say(refusal)];
    let server = Server::start(vec![bad, answer("OK")]).await;
    scene(&server.url()).run(&["models", "--check"]).code(0).says(&["answers in "]);
    assert_eq!(server.asked()[1].body["max_tokens"], Value::Null);
}
