//! `use: sql`: which rows a statement finds, and what no statement may do.

use pumphouse::listeners::tool::sql::{Reason, Refused, Rows, Sql, sql};
use pumphouse::wire::Json;
use pumphouse::{AskError, Payload as _, Pump};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{asked, in_order, organism};
use crate::program::Scene;

const SHOP: &str = "\
CREATE TABLE items (id INTEGER PRIMARY KEY, name TEXT, price REAL, picture BLOB);
INSERT INTO items (name, price, picture) VALUES ('tea', 2.5, NULL), ('jam', 4.0, x'0102');
";

fn shop() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    make(&folder.path().join("shop.db"));
    folder
}

fn make(path: &std::path::Path) {
    rusqlite::Connection::open(path).unwrap().execute_batch(SHOP).unwrap();
}

fn pump(folder: &TempDir, limits: &str) -> Pump {
    let file = folder.path().join("shop.db");
    let text = format!(r#"{{"file": {file:?}, "limits": {{{limits}}}}}"#);
    let sql = sql(&serde_json::from_str(&text).unwrap()).unwrap();
    pumphouse::builder().with(sql).build().unwrap().start()
}

async fn ask(pump: &Pump, query: &str, parameters: Option<Value>) -> Result<Rows, Refused> {
    let asked = Sql { query: query.to_owned(), parameters: parameters.map(Json) };
    match pump.ask::<Rows>(asked).await {
        Ok(it) => Ok(it),
        Err(AskError::Other(it)) => Err(Refused::decode(&it).unwrap()),
        Err(error) => panic!("{error}"),
    }
}

async fn refused(pump: &Pump, query: &str, reason: Reason, text: &str) {
    let refused = ask(pump, query, None).await.expect_err(query);
    assert_eq!(refused.reason, reason, "{query}: {refused:?}");
    assert!(refused.text.contains(text), "{query}: {refused:?}");
}

#[tokio::test]
async fn a_statement_finds_rows() {
    let folder = shop();
    let pump = pump(&folder, "");
    let rows = ask(&pump, "SELECT * FROM items ORDER BY id", None).await.unwrap();
    assert_eq!(rows.column, ["id", "name", "price", "picture"]);
    let expected = [json!([1, "tea", 2.5, null]), json!([2, "jam", 4.0, "(a blob of 2 bytes)"])];
    assert_eq!(rows.row.into_iter().map(|it| it.0).collect::<Vec<_>>(), expected);
    let cheap = "SELECT name FROM items WHERE price < ? AND name <> ?";
    let rows = ask(&pump, cheap, Some(json!([3, "' OR 1"]))).await.unwrap();
    assert_eq!(rows.row, [Json(json!(["tea"]))]);
    for it in ["SELECT sql FROM sqlite_schema", "PRAGMA table_info(items)", "SELECT 1 WHERE 0"] {
        ask(&pump, it, None).await.unwrap();
    }
    pump.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_statement_reads_and_does_nothing_else() {
    let folder = shop();
    let pump = pump(&folder, "");
    let other = folder.path().join("other.db");
    let attach = format!("ATTACH {:?} AS other", other.display().to_string());
    let vacuum = format!("VACUUM INTO {:?}", other.display().to_string());
    for it in [
        "DELETE FROM items",
        "INSERT INTO items (name) VALUES ('x')",
        "UPDATE items SET name = 'x' RETURNING name",
        "WITH a AS (SELECT 1) DELETE FROM items",
        "DROP TABLE items",
        "CREATE TEMP TABLE x (a)",
        "PRAGMA query_only = OFF",
        "PRAGMA journal_mode = WAL",
        "PRAGMA database_list",
        "SELECT load_extension('x')",
        "BEGIN IMMEDIATE",
        "SELECT 1; DELETE FROM items",
        &attach,
        &vacuum,
    ] {
        let refused = ask(&pump, it, None).await.expect_err(it);
        let is_said = matches!(refused.reason, Reason::NotAllowed | Reason::Statement);
        assert!(is_said && !refused.text.contains("shop.db"), "{it}: {refused:?}");
    }
    assert!(!other.exists());
    refused(&pump, "SELECT 1; SELECT 2", Reason::Statement, "give one statement").await;
    refused(&pump, "SELECT nme FROM items", Reason::Statement, "no such column: nme").await;
    refused(&pump, "SELECT name FROM items WHERE id = ?", Reason::Parameters, "1 are wanted").await;
    let wrong = ask(&pump, "SELECT ?", Some(json!({"a": 1}))).await.unwrap_err();
    assert_eq!(wrong.reason, Reason::Parameters);
    let all = ask(&pump, "SELECT count(*) FROM items", None).await.unwrap();
    assert_eq!(all.row, [Json(json!([2]))]);
    pump.shutdown().await.unwrap();
}

#[tokio::test]
async fn time_rows_and_bytes_are_bounded() {
    let folder = shop();
    let limits = r#""seconds_max": 1, "rows_max": 3, "shown_bytes_max": 1000"#;
    let pump = pump(&folder, limits);
    let count = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)";
    refused(&pump, &format!("{count} SELECT count(*) FROM n"), Reason::Timeout, "seconds_max is 1")
        .await;
    let three = ask(&pump, &format!("{count} SELECT i FROM n"), None).await.unwrap();
    assert_eq!((three.row.len(), three.stopped_by.as_deref()), (3, Some("rows_max")));
    let long = "SELECT printf('%.600c', 'x') FROM items";
    let one = ask(&pump, long, None).await.unwrap();
    assert_eq!((one.row.len(), one.stopped_by.as_deref()), (1, Some("shown_bytes_max")));
    refused(&pump, "SELECT printf('%.5000c', 'x')", Reason::TooLarge, "one row is too large").await;
    refused(&pump, "SELECT length(zeroblob(1000000000))", Reason::TooLarge, "").await;
    let long = format!("SELECT {}", "1+".repeat(20_000));
    refused(&pump, &long, Reason::TooLarge, "the limit is 16384 bytes").await;
    refused(&pump, &format!("SELECT {}1", "(".repeat(8_000)), Reason::Statement, "").await;
    pump.shutdown().await.unwrap();
}

#[test]
fn an_agent_of_a_manifest_asks_a_database() {
    let tools = [("shop", "use: sql, settings: {file: shop.db}")];
    let replies = r#"%% reply
<action id="cheap">{"name": "shop", "parameters":
{"query": "SELECT name FROM items WHERE price < ?", "parameters": [3]}}</action>
%% reply
<response>There is ${cheap.row}.</response>
"#;
    let scene = organism(&tools, replies);
    make(&scene.path("shop.db"));
    in_order(&asked(&scene, "What is cheap?"), &["<response", "There is", "tea"]);
}

#[test]
fn check_tells_what_is_no_database() {
    let scene = Scene::new();
    let check = |code: i32, text: &str| {
        scene.write("organism.yaml", "listeners: [{use: sql, settings: {file: shop.db}}]");
        scene.run(&["check"]).code(code).says(&[text]);
    };
    check(1, "there is no such file");
    scene.write("shop.db", "this is no database, whatever it is called; it is only a text");
    check(1, "file is not a database");
    std::fs::remove_file(scene.path("shop.db")).unwrap();
    make(&scene.path("shop.db"));
    check(0, "Reads the database shop.db by SQL.");
}
