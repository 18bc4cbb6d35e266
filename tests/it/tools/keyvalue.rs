//! `use: keyvalue`: which values are kept, for how long, and how many.

use pumphouse::listeners::tool::keyvalue::{Kept, Keyvalue, Operation, Reason, Refused, keyvalue};
use pumphouse::{AskError, Payload as _, Pump};
use tempfile::TempDir;

use super::{asked, in_order, organism};
use crate::program::Scene;

fn pump(folder: &TempDir, limits: &str) -> Pump {
    let file = folder.path().join("cache.db");
    let text = format!(r#"{{"file": {file:?}, "limits": {{{limits}}}}}"#);
    let keyvalue = keyvalue(&serde_json::from_str(&text).unwrap()).unwrap();
    pumphouse::builder().with(keyvalue).build().unwrap().start()
}

fn of(operation: Operation, key: &str) -> Keyvalue {
    Keyvalue { operation, key: Some(key.to_owned()), value: None, ttl: None }
}

fn set(key: &str, value: &str, ttl: Option<u64>) -> Keyvalue {
    Keyvalue { value: Some(value.to_owned()), ttl, ..of(Operation::Set, key) }
}

async fn ask(pump: &Pump, it: Keyvalue) -> Result<Kept, Refused> {
    match pump.ask::<Kept>(it).await {
        Ok(it) => Ok(it),
        Err(AskError::Other(it)) => Err(Refused::decode(&it).unwrap()),
        Err(error) => panic!("{error}"),
    }
}

#[tokio::test]
async fn a_value_is_there_until_it_is_deleted_and_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let first = pump(&folder, "");
    assert!(!ask(&first, of(Operation::Get, "a")).await.unwrap().found);
    assert!(!ask(&first, set("a", "<1>", None)).await.unwrap().found);
    assert!(ask(&first, set("a", "<2>", None)).await.unwrap().found);
    first.shutdown().await.unwrap();
    let pump = pump(&folder, "");
    let got = ask(&pump, of(Operation::Get, "a")).await.unwrap();
    assert_eq!((got.value.as_deref(), got.ttl), (Some("<2>"), None));
    assert!(ask(&pump, of(Operation::Delete, "a")).await.unwrap().found);
    assert!(!ask(&pump, of(Operation::Delete, "a")).await.unwrap().found);
    assert_eq!(ask(&pump, of(Operation::Get, "a")).await.unwrap().value, None);
    pump.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_value_with_a_ttl_is_forgotten() {
    let folder = tempfile::tempdir().unwrap();
    let pump = pump(&folder, "\"keys_max\": 2");
    ask(&pump, set("short", "1", Some(1))).await.unwrap();
    ask(&pump, set("long", "2", Some(3_600))).await.unwrap();
    assert_eq!(ask(&pump, of(Operation::Get, "long")).await.unwrap().ttl, Some(3_600));
    crate::eventually(async || !ask(&pump, of(Operation::Get, "short")).await.unwrap().found).await;
    // What is forgotten takes no room.
    ask(&pump, set("next", "3", None)).await.unwrap();
    let all = ask(&pump, Keyvalue { key: None, ..of(Operation::List, "") }).await.unwrap();
    assert_eq!((all.key, all.more), (vec!["long".to_owned(), "next".to_owned()], Some(false)));
    pump.shutdown().await.unwrap();
}

#[tokio::test]
async fn keys_values_and_their_number_are_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let limits = r#""key_bytes_max": 4, "value_bytes_max": 9, "keys_max": 2, "listed_max": 1"#;
    let pump = pump(&folder, limits);
    ask(&pump, set("a1", "x", None)).await.unwrap();
    ask(&pump, set("a_", "x", None)).await.unwrap();
    let no_key = Keyvalue { key: None, ..set("", "x", None) };
    for (it, reason, text) in [
        (set("b", "x", None), Reason::Full, "the limit keys_max is 2"),
        (set("abcde", "x", None), Reason::TooLarge, "the limit key_bytes_max is 4"),
        (set("a1", "0123456789", None), Reason::TooLarge, "the limit value_bytes_max is 9"),
        (set("a1", "x", Some(u64::MAX)), Reason::TooLarge, "the limit ttl_seconds_max is "),
        (no_key, Reason::BadRequest, "a `key` is missing"),
        (of(Operation::Set, "a1"), Reason::BadRequest, "`set` wants a `value`"),
        (Keyvalue { ttl: Some(1), ..of(Operation::Get, "a1") }, Reason::BadRequest, "`set` alone"),
    ] {
        let refused = ask(&pump, it).await.unwrap_err();
        assert_eq!(refused.reason, reason, "{refused:?}");
        assert!(refused.text.contains(text), "{refused:?}");
    }
    // One that is there may be set anew, and a list shows no more than its limit.
    assert!(ask(&pump, set("a1", "y", None)).await.unwrap().found);
    let all = ask(&pump, of(Operation::List, "a")).await.unwrap();
    assert_eq!((all.key.len(), all.more), (1, Some(true)));
    // A key is itself, whatever it means to a database.
    let one = ask(&pump, of(Operation::List, "a_")).await.unwrap();
    assert_eq!((one.key, one.more), (vec!["a_".to_owned()], Some(false)));
    pump.shutdown().await.unwrap();
}

#[test]
fn an_agent_calls_a_cache_by_its_own_name() {
    let tools = [("redis_cache", "use: keyvalue, settings: {file: cache.db}")];
    let replies = r#"%% reply
<action id="store">{"name": "redis_cache", "parameters":
{"operation": "set", "key": "result_123", "value": "42", "ttl": 3600}}</action>
%% reply
<action id="load">{"name": "redis_cache", "parameters":
{"operation": "get", "key": "result_123"}}</action>
%% reply
<response>It was $store; it is $load, or ${load.value}.</response>
"#;
    let told = asked(&organism(&tools, replies), "Keep it.");
    in_order(&told, &["<note>[ttl: 3600]</note>", "<response", "It was set; it is 42, or 42."]);
}

#[test]
fn check_makes_no_file_and_takes_none_of_another_program() {
    let scene = Scene::new();
    let check = |file: &str, code: i32, text: &str| {
        let manifest = format!("listeners: [{{use: keyvalue, settings: {{file: {file}}}}}]");
        scene.write("organism.yaml", manifest);
        scene.run(&["check"]).code(code).says(&[text]);
    };
    check("cache.db", 0, "Keeps values by their keys");
    assert!(!scene.path("cache.db").exists());
    check("no/cache.db", 1, "there is no such folder; make it first");
    scene.write("text.db", "this is no database, whatever it is called; it is only a text");
    check("text.db", 1, "file is not a database");
    let other = rusqlite::Connection::open(scene.path("other.db")).unwrap();
    other.execute_batch("CREATE TABLE t (a)").unwrap();
    check("other.db", 1, "it is another program's; give this listener a file of its own");
}
