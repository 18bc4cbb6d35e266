//! `use: sql`: which rows a statement finds, and what no statement may do.

use pumphouse::Payload as _;
use pumphouse::client::{Client, Incoming, Push};
use pumphouse::listeners::tool::sql::{Reason, Refused, Rows, Sql};
use pumphouse::wire::Json;
use serde_json::{Value, json};

use super::{asked, in_order, organism};
use crate::program::{Scene, Server};
use crate::until;

const SHOP: &str = "\
CREATE TABLE items (id INTEGER PRIMARY KEY, name TEXT, price REAL, picture BLOB);
INSERT INTO items (name, price, picture) VALUES ('tea', 2.5, NULL), ('jam', 4.0, x'0102');
";

/// A pump with a database, and a client of it.
struct Shop {
    scene: Scene,
    client: Client,
    server: Server,
}

fn make(path: &std::path::Path) {
    rusqlite::Connection::open(path).unwrap().execute_batch(SHOP).unwrap();
}

async fn shop(limits: &str) -> Shop {
    let scene = Scene::new();
    make(&scene.path("shop.db"));
    let settings = format!("{{file: shop.db, limits: {{{limits}}}}}");
    scene.write("organism.yaml", format!("listeners: [{{use: sql, settings: {settings}}}]\n"));
    let server = scene.serve(&[]);
    let client = Client::connect(&*server.address).await.unwrap();
    Shop { scene, client, server }
}

impl Shop {
    async fn ask(&mut self, query: &str, parameters: Option<Value>) -> Result<Rows, Refused> {
        let asked = Sql { query: query.to_owned(), parameters: parameters.map(Json) };
        let answer = self.client.ask(&Push::of(&asked).unwrap()).await.unwrap().payload;
        Rows::decode(&answer).map_err(|_| Refused::decode(&answer).unwrap())
    }

    async fn refused(&mut self, query: &str, reason: Reason, text: &str) {
        let refused = self.ask(query, None).await.expect_err(query);
        assert_eq!(refused.reason, reason, "{query}: {refused:?}");
        assert!(refused.text.contains(text), "{query}: {refused:?}");
    }

    async fn rows(&mut self, query: &str) -> Vec<Value> {
        let rows = self.ask(query, None).await.unwrap();
        rows.row.into_iter().map(|it| it.0).collect()
    }
}

/// A statement that is one call of a function for far longer than any limit here: its time is the
/// product of two lengths.
fn one_long_call() -> String {
    let letters = "replace(hex(zeroblob(2000000)), '0', 'a')";
    format!("SELECT instr({letters}, substr({letters}, 1, 2000000) || 'b')")
}

#[tokio::test]
async fn a_statement_finds_rows() {
    let mut shop = shop("").await;
    let rows = shop.ask("SELECT * FROM items ORDER BY id", None).await.unwrap();
    assert_eq!(rows.column, ["id", "name", "price", "picture"]);
    let expected = [json!([1, "tea", 2.5, null]), json!([2, "jam", 4.0, "(a blob of 2 bytes)"])];
    assert_eq!(rows.row.into_iter().map(|it| it.0).collect::<Vec<_>>(), expected);
    let cheap = "SELECT name FROM items WHERE price < ? AND name <> ?";
    let rows = shop.ask(cheap, Some(json!([3, "' OR 1"]))).await.unwrap();
    assert_eq!(rows.row, [Json(json!(["tea"]))]);
    let values = json!([null, true, -1, 0.1, 9_007_199_254_740_993_i64, "a\nb"]);
    let rows = shop.ask("SELECT ?, ?, ?, ?, ?, ?", Some(values)).await.unwrap();
    let expected = json!([null, 1, -1, 0.1, 9_007_199_254_740_993_i64, "a\nb"]);
    assert_eq!(rows.row, [Json(expected)]);
    for it in ["SELECT sql FROM sqlite_schema", "PRAGMA table_info(items)", "SELECT 1 WHERE 0"] {
        shop.ask(it, None).await.unwrap();
    }
}

#[tokio::test]
async fn a_statement_reads_and_does_nothing_else() {
    let mut shop = shop("").await;
    let other = shop.scene.path("other.db");
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
        let refused = shop.ask(it, None).await.expect_err(it);
        let is_said = matches!(refused.reason, Reason::NotAllowed | Reason::Statement);
        assert!(is_said && !refused.text.contains("shop.db"), "{it}: {refused:?}");
    }
    assert!(!other.exists());
    shop.refused("SELECT 1; SELECT 2", Reason::Statement, "give one statement").await;
    shop.refused("SELECT nme FROM items", Reason::Statement, "no such column: nme").await;
    let one = "SELECT name FROM items WHERE id = ?";
    shop.refused(one, Reason::Parameters, "1 are wanted").await;
    for it in [json!({"a": 1}), json!([[1]]), json!([{"a": 1}])] {
        let wrong = shop.ask("SELECT ?", Some(it)).await.unwrap_err();
        assert_eq!(wrong.reason, Reason::Parameters);
    }
    assert_eq!(shop.rows("SELECT count(*) FROM items").await, [json!([2])]);
}

#[tokio::test]
async fn time_rows_and_bytes_are_bounded() {
    let mut shop = shop("seconds_max: 1, rows_max: 3, shown_bytes_max: 1000").await;
    let count = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)";
    let all = format!("{count} SELECT count(*) FROM n");
    shop.refused(&all, Reason::Timeout, "seconds_max is 1").await;
    let three = shop.ask(&format!("{count} SELECT i FROM n"), None).await.unwrap();
    assert_eq!((three.row.len(), three.stopped_by.as_deref()), (3, Some("rows_max")));
    let one = shop.ask("SELECT printf('%.600c', 'x') FROM items", None).await.unwrap();
    assert_eq!((one.row.len(), one.stopped_by.as_deref()), (1, Some("shown_bytes_max")));
    let long = "SELECT printf('%.5000c', 'x')";
    shop.refused(long, Reason::TooLarge, "one row is too large").await;
    let wide = format!("SELECT 1 AS {} WHERE 0", "x".repeat(1_001));
    shop.refused(&wide, Reason::TooLarge, "the columns' names are too large").await;
    shop.refused("SELECT length(zeroblob(1000000000))", Reason::TooLarge, "").await;
    let long = format!("SELECT {}", "1+".repeat(20_000));
    shop.refused(&long, Reason::TooLarge, "the limit is 16384 bytes").await;
    shop.refused(&format!("SELECT {}1", "(".repeat(8_000)), Reason::Statement, "").await;
}

#[tokio::test]
async fn a_call_that_sqlite_cannot_end_ends_with_its_process_and_no_other_does() {
    let mut shop = shop("seconds_max: 1, value_bytes_max: 16000000").await;
    let mut neighbour = Client::connect(&*shop.server.address).await.unwrap();
    let slow = Sql { query: one_long_call(), parameters: None };
    neighbour.tell(&Push::of(&slow).unwrap()).await.unwrap();
    for _ in 0..3 {
        assert_eq!(shop.rows("SELECT name FROM items WHERE id = 1").await, [json!(["tea"])]);
    }
    let all = (0..3).map(|_| neighbour.push(&Push::of(&slow).unwrap())).count();
    let mut ended = 0;
    while ended < all + 1 {
        let Some(Incoming::Message(it)) = neighbour.recv().await.unwrap() else { continue };
        let refused = Refused::decode(&it.payload).unwrap();
        let limit = refused.limit.as_deref();
        assert_eq!((refused.reason, limit), (Reason::Timeout, Some("seconds_max")), "{refused:?}");
        ended += 1;
    }
    // None of them works on.
    let path = shop.scene.path("shop.db").canonicalize().unwrap();
    let reads_it = |it: &std::io::Result<std::fs::DirEntry>| {
        let words = std::fs::read_to_string(it.as_ref().unwrap().path().join("cmdline"));
        words.is_ok_and(|it| it.contains(&*path.to_string_lossy()))
    };
    let readers = || std::fs::read_dir("/proc").unwrap().filter(|it| reads_it(it)).count();
    until(|| readers() <= 2);
    // One that waits may have ended by itself, so the killing may fail.
    let kill = |it: std::io::Result<std::fs::DirEntry>| {
        let id = it.unwrap().file_name();
        std::process::Command::new("kill").arg("-9").arg(id).output().unwrap();
    };
    std::fs::read_dir("/proc").unwrap().filter(|it| reads_it(it)).for_each(kill);
    until(|| readers() == 0);
    assert_eq!(shop.rows("SELECT name FROM items WHERE id = 1").await, [json!(["tea"])]);
}

#[tokio::test]
async fn a_database_with_a_write_ahead_log_is_read_however_its_files_come_and_go() {
    let mut shop = shop("").await;
    let path = shop.scene.path("shop.db");
    let count = "SELECT count(*) FROM items";
    assert_eq!(shop.rows(count).await, [json!([2])]);
    let writer = rusqlite::Connection::open(&path).unwrap();
    writer.pragma_update(None, "journal_mode", "wal").unwrap();
    writer.execute("INSERT INTO items (name) VALUES ('oat')", []).unwrap();
    assert_eq!(shop.rows(count).await, [json!([3])]);
    writer.close().unwrap();
    assert_eq!(shop.rows(count).await, [json!([3])]);
    let writer = rusqlite::Connection::open(&path).unwrap();
    writer.execute("DELETE FROM items", []).unwrap();
    assert_eq!(shop.rows(count).await, [json!([0])]);
    writer.pragma_update(None, "journal_mode", "persist").unwrap();
    writer.execute("INSERT INTO items (name) VALUES ('rye')", []).unwrap();
    assert_eq!(shop.rows(count).await, [json!([1])]);
    drop(writer);
    // A file in its place has another inode.
    std::fs::rename(&path, shop.scene.path("old.db")).unwrap();
    make(&path);
    assert_eq!(shop.rows(count).await, [json!([2])]);
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

/// The processes that read databases make no sockets, so doors take clients as they do without
/// programs, after a query as before it.
#[tokio::test]
async fn a_client_that_is_gone_is_taken_after_a_query_as_before_it() {
    let mut shop = shop("").await;
    let threads = |shop: &Shop| shop.scene.run(&["threads", "--json"]).code(0).objects().len();
    for _ in 0..2 {
        let before = threads(&shop);
        let mut gone = std::net::TcpStream::connect(&*shop.server.address).unwrap();
        let query = Sql { query: "SELECT 1".to_owned(), parameters: None };
        let mut message = String::new();
        Push::of(&query).unwrap().write(&mut message);
        std::io::Write::write_all(&mut gone, message.as_bytes()).unwrap();
        drop(gone);
        until(|| threads(&shop) > before);
        shop.rows("SELECT 1").await;
    }
}
