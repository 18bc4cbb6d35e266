//! The table in `docs/conformance.md` has the scores that the tests compute. `BLESS=1` rewrites it.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use pumphouse::limits::XmlLimits;

use super::{Score, attacks, canonical, cases, http_cache, json, naughty, suites, xmlconf};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/conformance.md");
const OPEN: &str = "<!-- scores: written by the tests -->\n";
const CLOSE: &str = "<!-- end of scores -->\n";

#[tokio::test]
async fn the_page_has_the_scores() {
    let Some(suites) = suites() else { return };
    let scores = scores(&suites).await;
    for (name, score) in &scores {
        assert!(score.wrong.is_empty(), "{name}:\n{}", score.wrong.join("\n"));
    }
    let page = fs::read_to_string(PAGE).unwrap();
    let (before, rest) = page.split_once(OPEN).expect("the page has a place for scores");
    let (there, after) = rest.split_once(CLOSE).expect("the scores have an end");
    let table = table(&scores);
    if is_blessed() {
        fs::write(PAGE, [before, OPEN, &table, CLOSE, after].concat()).unwrap();
    } else if cells(there, 1) == cells(&table, 1) {
        assert_eq!(there, table, "BLESS=1 rewrites it");
    } else {
        // The page is about the edition whose number of cases it names.
        println!("another edition of the suites:\n{table}");
    }
}

async fn scores(suites: &Path) -> Vec<(&'static str, Score)> {
    let verdicts = xmlconf::verdicts(&cases(suites, "xmlconf/index.jsonl"));
    let outputs = xmlconf::outputs(&cases(suites, "xmlconf/canonical_outputs.jsonl"));
    let hostile = cases(suites, "xml-attacks/index.jsonl");
    let at_a_door = attacks::verdicts(&hostile, &XmlLimits::DOOR);
    let in_a_file = attacks::verdicts(&hostile, &XmlLimits::FILE);
    let (kept, refused) = naughty::survive(&naughty::strings(suites)).await;
    let (texts, no_texts) = json::texts(suites).await;
    let parameters = json::parameters(suites).await;
    vec![
        ("xmlconf: documents, accepted or refused", verdicts),
        ("xmlconf: canonical outputs, accepted and stable", outputs),
        ("xml-attacks: with the limits of a door", at_a_door),
        ("xml-attacks: with the limits of a file", in_a_file),
        ("c14n: claimed vectors, byte for byte", canonical::claimed(suites)),
        ("blns: strings kept through route, log and restart", kept),
        ("blns: strings refused, with the character named", refused),
        ("json: texts, read or refused", json::verdicts(suites)),
        ("json: texts kept as text through route, log and restart", texts),
        ("json: texts refused as text, with the character named", no_texts),
        ("json: parameters kept through schema, route, log and restart", parameters),
        ("http-cache: required of every cache", http_cache::required(suites)),
        ("http-cache: optimal, which saves requests", http_cache::optimal(suites)),
    ]
}

fn table(scores: &[(&str, Score)]) -> String {
    let mut table = "\n| Suite | Cases | Right | Either will do | Wrong |\n".to_owned();
    table.push_str("| --- | ---: | ---: | ---: | ---: |\n");
    for (name, Score { right, either, wrong }) in scores {
        let wrong = wrong.len();
        let cases = right + either + wrong;
        writeln!(table, "| {name} | {cases} | {right} | {either} | {wrong} |").unwrap();
    }
    table.push('\n');
    table
}

fn cells(table: &str, column: usize) -> Vec<&str> {
    table.lines().filter_map(|line| line.split('|').nth(column + 1)).map(str::trim).collect()
}

#[expect(clippy::disallowed_methods, reason = "whoever blesses says so there")]
fn is_blessed() -> bool {
    std::env::var_os("BLESS").is_some_and(|it| it == "1")
}
