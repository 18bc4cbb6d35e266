//! Malformed replies that other programs have met, and JSON of every kind within an action.

use std::fs;

use pumphouse::reply::{Config, Dialect};
use serde_json::Value;

use super::tell::{action, config, cuts, sources, tell, whole};
use crate::suites::suites;

#[test]
fn dirty_replies_are_told_the_same_in_any_chunks() {
    let Some(folder) = suites() else { return };
    let lines = fs::read_to_string(folder.join("llm-xml-dirty/streams.jsonl")).unwrap();
    let mut cases = 0;
    for line in lines.lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let chunks: Vec<&str> =
            case["chunks"].as_array().unwrap().iter().map(|it| it.as_str().unwrap()).collect();
        let text = chunks.concat();
        for config in configs(&case) {
            let told = whole(&config, &text);
            assert_eq!(tell(&config, chunks.iter().copied()), told, "{}", case["id"]);
            for seed in 0..5 {
                assert_eq!(tell(&config, cuts(&text, seed)), told, "{}", case["id"]);
            }
        }
        cases += 1;
    }
    assert!(cases > 700, "{cases}");
}

/// As they are, with their own tags as peers' roots, and with calls in JSON.
fn configs(case: &Value) -> [Config; 3] {
    let (plain, mut peers, mut calls) = (config(), config(), config());
    for tag in case["tags"].as_array().unwrap() {
        peers.markup = peers.markup.peer(tag.as_str().unwrap());
    }
    calls.dialect = Dialect::ToolUse;
    [plain, peers, calls]
}

#[test]
fn quoted_dirt_never_runs() {
    let Some(folder) = suites() else { return };
    let lines = fs::read_to_string(folder.join("llm-xml-dirty/streams.jsonl")).unwrap();
    for line in lines.lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let mut config = config();
        for tag in case["tags"].as_array().unwrap() {
            config.markup = config.markup.peer(tag.as_str().unwrap());
        }
        let text: String =
            case["chunks"].as_array().unwrap().iter().map(|it| it.as_str().unwrap()).collect();
        let fence = "`".repeat(64);
        let quoted = format!("{fence}\n{text}\n{fence}\n");
        assert_eq!(whole(&config, &quoted), [format!("text: {quoted}")], "{}", case["id"]);
    }
}

/// The cases that are JSON but for their comments.
const COMMENTED: [&str; 3] = [
    "n_object_trailing_comment.json",
    "n_object_trailing_comment_slash_open.json",
    "n_structure_object_with_comment.json",
];

#[test]
fn json_in_an_action_is_what_json_is() {
    let Some(folder) = suites() else { return };
    let index = fs::read_to_string(folder.join("json/index.jsonl")).unwrap();
    let (mut accepted, mut refused, mut commented) = (0, 0, 0);
    for line in index.lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let name = case["file"].as_str().unwrap();
        let Ok(text) = String::from_utf8(fs::read(folder.join("json").join(name)).unwrap()) else {
            continue;
        };
        let text = action(&text);
        let told = whole(&config(), &text);
        assert_eq!(sources(&config(), &text), text, "{name}");
        let ran = told.len() == 1 && told[0].starts_with("action id=a ");
        match case["expect"].as_str().unwrap() {
            "accept" => {
                assert!(ran, "{name}: {told:?}");
                accepted += 1;
            }
            // Actions may have comments in their JSON.
            "reject" if COMMENTED.iter().any(|it| name.ends_with(it)) => {
                assert!(ran, "{name}: {told:?}");
                commented += 1;
            }
            "reject" => {
                let is_broken = told[0].starts_with("broken action ");
                assert!(!ran && is_broken, "{name}: {told:?}");
                refused += 1;
            }
            _ => {}
        }
    }
    assert!(accepted > 30 && refused > 50, "{accepted} {refused}");
    assert_eq!(commented, COMMENTED.len());
}
