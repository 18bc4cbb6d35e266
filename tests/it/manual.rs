//! Checks every code block of the manual. Commands are run and their output is compared, queries
//! must find something, XML must be well-formed, and programs are compiled.

mod page;
mod stage;

use std::fs;
use std::path::{Path, PathBuf};

use pumphouse::log::{Batch, Draft, Durability, Flags, Log, SqliteLog};
use pumphouse::manifest::Manifest;
use pumphouse::prelude::*;
use pumphouse::reply::Streaming;
use rusqlite::{Connection, OpenFlags};

use page::{Block, blocks};
use stage::{Played, Stage, plain};

/// What blocks may be, and so who checks them: all of them here, but for programs in Rust, which
/// `src/lib.rs` takes up, scenes (`scenes.rs`), and the log's vectors (`src/log/chain.rs`).
const KINDS: [&str; 12] = [
    "sh", "text", "sql", "xml", "json", "yaml", "python", "js", "rust", "scene", "vectors",
    "mermaid",
];

#[test]
fn every_block_says_what_it_is() {
    let mut count = 0;
    for (path, text) in pages() {
        for block in blocks(&text) {
            count += 1;
            let known = KINDS.contains(&block.kind.as_str());
            assert!(known, "{path}:{}: nobody checks {:?}", block.line, block.kind);
        }
    }
    assert!(count > 60, "these are not all our blocks: {count}");
}

#[test]
fn documents_are_well_formed() {
    for (path, text) in pages() {
        for Block { line, kind, text } in blocks(&text) {
            let wrong = match kind.as_str() {
                "xml" => {
                    let whole = format!("<all>{}</all>", without_declaration(&text));
                    roxmltree::Document::parse(&whole).err().map(|it| it.to_string())
                }
                "json" => {
                    let values = serde_json::Deserializer::from_str(&text).into_iter();
                    let all: Result<Vec<serde_json::Value>, _> = values.collect();
                    all.err().map(|it| it.to_string())
                }
                "yaml" if text.contains("streaming_config:") => {
                    Streaming::from_yaml(&text).err().map(|it| it.to_string())
                }
                "yaml" => {
                    let value = serde_yaml::from_str::<serde_yaml::Value>(&text);
                    value.err().map(|it| it.to_string())
                }
                _ => None,
            };
            assert_eq!(wrong, None, "{path}:{line}");
        }
    }
}

/// A block in YAML is a manifest, or says how replies stream.
#[test]
fn what_is_yaml_is_sound() {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in [("tokens.txt", "ann:s3cret\n"), ("fleet.token", "s3cret-token\n")] {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        }
    }
    let builder = pumphouse::builder().with(pumphouse::listeners::factories);
    let mut count = 0;
    for (path, text) in pages() {
        for Block { line, text, .. } in blocks(&text).into_iter().filter(|it| it.kind == "yaml") {
            let file = folder.path().join("organism.yaml");
            if text.starts_with("otel:") && !cfg!(feature = "otel") {
                // Such a manifest is for programs with the feature.
                continue;
            }
            let wrong = match text.starts_with("streaming_config:") {
                true => Streaming::from_yaml(&text).err().map(|it| it.to_string()),
                false => Manifest::read(&file, text.as_bytes(), &|_| None, &builder)
                    .err()
                    .map(|it| it.to_string()),
            };
            assert_eq!(wrong, None, "{path}:{line}");
            count += 1;
        }
    }
    assert!(count >= 3, "only {count} blocks of YAML");
}

fn without_declaration(text: &str) -> &str {
    let Some(rest) = text.strip_prefix("<?xml ") else { return text };
    rest.split_once("?>").map_or(text, |(_, rest)| rest)
}

#[test]
fn every_program_in_a_page_is_compiled() {
    let lib = fs::read_to_string(root().join("src/lib.rs")).unwrap();
    for (path, text) in pages() {
        let has_rust = blocks(&text).iter().any(|it| it.kind == "rust");
        let line = format!("include_str!(\"../{path}\")");
        assert!(!has_rust || lib.contains(&line), "src/lib.rs doesn't have {line}");
        for block in blocks(&text).iter().filter(|it| ["python", "js"].contains(&&*it.kind)) {
            let found = examples().iter().any(|it| it.contains(&block.text));
            assert!(found, "{path}:{}: this stands in no file of examples/", block.line);
        }
    }
}

#[test]
fn the_tutorial_is_what_init_makes_and_its_example() {
    let read = |path: &str| fs::read_to_string(root().join(path)).unwrap();
    let page = read("docs/tutorial.md");
    let mut programs = ["src/cli/project/init/main.rs.txt", "examples/greeter.rs"].iter();
    let rust: Vec<Block> = blocks(&page).into_iter().filter(|it| it.kind == "rust").collect();
    assert_eq!(rust.len(), programs.len());
    for block in rust {
        let program = programs.next().unwrap();
        assert!(read(program).ends_with(&block.text), "line {}: not {program}", block.line);
    }
}

/// Defines a test for each page with commands, so that pages are played beside one another.
macro_rules! played {
    ($($name:ident: $path:literal,)+) => {
        const PLAYED: &[&str] = &[$($path),+];

        mod commands_do_what_the_page_says {
            $(#[test]
            fn $name() {
                super::play($path);
            })+
        }
    };
}

played! {
    readme: "README.md",
    agents: "docs/agents.md",
    audit: "docs/audit.md",
    doors: "docs/doors.md",
    feeds: "docs/feeds.md",
    log: "docs/log.md",
    manifest: "docs/manifest.md",
    metadata: "docs/metadata.md",
    models: "docs/models.md",
    operating: "docs/operating.md",
    pushing: "docs/pushing.md",
    reliability: "docs/reliability.md",
    security: "docs/security.md",
    speed: "docs/speed.md",
    tools: "docs/tools.md",
    tutorial: "docs/tutorial.md",
    workflows: "docs/workflows.md",
}

#[test]
fn every_page_with_commands_is_played() {
    let pages = pages();
    let has_commands = |text: &str| blocks(text).iter().any(|it| it.kind == "sh");
    let with_commands =
        pages.iter().filter(|(path, text)| !path.starts_with("docs/faults/") && has_commands(text));
    let mut with_commands: Vec<&str> = with_commands.map(|(path, _)| &**path).collect();
    with_commands.sort_unstable();
    assert_eq!(with_commands, PLAYED);
}

/// Runs the commands of a page, and compares what they print with what the page shows.
fn play(path: &str) {
    let text = fs::read_to_string(root().join(path)).unwrap();
    let stage = Stage::new();
    if !text.contains(" run\n") {
        // It reads a log that is there.
        let began = stage.play("pumphouse run; pumphouse send message.xml");
        assert!(matches!(began, Ok(Played::Said(_))));
    }
    let mut said: Option<String> = None;
    for block in blocks(&text) {
        match block.kind.as_str() {
            "sh" => {
                let at = format!("{path}:{}", block.line);
                said = match stage.play(&block.text) {
                    Ok(Played::Said(said)) => Some(said),
                    Ok(Played::Skipped(tool)) => {
                        // What the page goes on with may be what that would have done.
                        println!("skipped: {at} and what follows on the page: no {tool}");
                        break;
                    }
                    Err(wrong) => panic!("{at}: {wrong}"),
                };
            }
            "text" => compare(path, &block, said.take()),
            _ => {}
        }
    }
}

/// Compares what was said with what the page shows; a line of `…` stands for any lines.
fn compare(path: &str, block: &Block, said: Option<String>) {
    let Some(said) = said else { return };
    let (said, shown) = (plain(&said), plain(&block.text));
    let mut rest = said.as_str();
    let parts: Vec<&str> = shown.split("…\n").collect();
    for (number, part) in parts.iter().enumerate() {
        let part = part.trim_end_matches('\n');
        let found = if number == 0 { rest.starts_with(part).then_some(0) } else { rest.find(part) };
        let Some(at) = found else {
            panic!("{path}:{}: what was printed is\n{said}\nnot\n{shown}", block.line)
        };
        rest = &rest[at + part.len()..];
    }
    let whole = rest.trim().is_empty() || shown.ends_with("…\n");
    assert!(whole, "{path}:{}: there is more:\n{said}\nthan\n{shown}", block.line);
}

#[tokio::test]
async fn every_query_finds_something() {
    let stage = Stage::new();
    let calculate = |expression: &str| {
        format!(
            "<message xmlns='https://xml-pipeline.org/ns/envelope/v1'><meta><id>order-17</id>\
             </meta><calculate xmlns='https://xml-pipeline.org/ns/calculate/v1'>\
             <expression>{expression}</expression></calculate></message>"
        )
    };
    let write = format!("pumphouse run; echo \"{}\" | pumphouse send", calculate("6*7"));
    assert!(matches!(stage.play(&write), Ok(Played::Said(_))));
    stage.stop();
    let path = stage.path("here/data/pumphouse.db");
    let log = SqliteLog::open(&path, Durability::Normal).unwrap();
    unanswered(&log).await;
    log.close().await.unwrap();
    let db = Connection::open_with_flags(&path, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
    let mut count = 0;
    for (page, text) in pages() {
        for block in blocks(&text).into_iter().filter(|it| it.kind == "sql") {
            count += 1;
            let at = format!("{page}:{}", block.line);
            let query = stage.filled(&block.text);
            let mut statement = db.prepare(&query).unwrap_or_else(|it| panic!("{at}: {it}"));
            let mut rows = statement.query([]).unwrap();
            assert!(rows.next().unwrap().is_some(), "{at} finds nothing");
        }
    }
    assert!(count >= 10, "only {count} queries");
}

/// A question that has no answer, and a fault, at the end of the only thread.
async fn unanswered(log: &dyn Log) {
    let last = log.tail(0, 10).await.unwrap().pop().unwrap();
    let draft = |seq, name: &str, body: &'static str| {
        let id = EntryId::new(&last.id.thread, seq);
        let name = Name::new(pumphouse::name::CORE, name);
        Draft::new(id, last.at_us, "core".into(), name, body.into())
    };
    let (first, second) = (last.id.seq + 1, last.id.seq + 2);
    let question = draft(first, "question", "<question></question>");
    let huh = draft(second, "huh", "<huh code=\"P0014\"></huh>");
    let entries = vec![
        Draft { flags: Flags::FROM_IDENTITY, from: "ada".into(), ..question },
        Draft { reply_to: Some(last.id.clone()), ..huh },
    ];
    let batch = Batch { threads: Vec::new(), entries, marks: Vec::new() };
    log.append(batch).await.unwrap();
}

/// Every page, by its path.
fn pages() -> Vec<(String, String)> {
    let mut pages = vec!["README.md".to_owned()];
    for folder in ["docs", "docs/faults"] {
        let entries = fs::read_dir(root().join(folder)).unwrap();
        let names = entries.map(|it| it.unwrap().file_name().into_string().unwrap());
        pages.extend(names.filter(|it| it.ends_with(".md")).map(|it| format!("{folder}/{it}")));
    }
    pages.sort();
    let text = |path: String| {
        let text = fs::read_to_string(root().join(&path)).unwrap();
        (path, text)
    };
    pages.into_iter().map(text).collect()
}

/// What stands in the examples.
fn examples() -> Vec<String> {
    let entries = fs::read_dir(root().join("examples")).unwrap();
    entries.filter_map(|it| fs::read_to_string(it.unwrap().path()).ok()).collect()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}
