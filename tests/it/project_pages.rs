//! Checks the project's pages: the picture of the crates, the reasons for dependencies, and links.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

#[test]
fn every_dependency_has_its_reason() {
    let (mut products, mut tests) = (BTreeSet::new(), BTreeSet::new());
    for package in packages().iter().filter(|it| it["name"] != "pumphouse-bench") {
        let is_derive = package["name"] == "pumphouse-macros";
        for needed in package["dependencies"].as_array().unwrap() {
            let name = needed["rename"].as_str().or(needed["name"].as_str()).unwrap().to_owned();
            if name.starts_with("pumphouse") || is_derive {
                continue;
            }
            let kind = if needed["kind"].is_null() { &mut products } else { &mut tests };
            kind.insert(name);
        }
    }
    assert!(products.len() > 40, "{products:?}");
    let architecture = read("ARCHITECTURE.md");
    for name in &products {
        let row = format!("\n| {name} | ");
        assert!(architecture.contains(&row), "ARCHITECTURE.md doesn't say why {name} is there");
    }
    let rows = architecture.lines().skip_while(|it| *it != "## Dependencies");
    for row in rows.filter_map(|it| it.strip_prefix("| ")?.split(' ').next()) {
        let is_head = row == "|" || row == "---";
        let is_there = is_head || products.contains(row);
        assert!(is_there, "{row} stands in ARCHITECTURE.md, but is no dependency");
    }
    for name in tests {
        assert!(architecture.contains(&name), "ARCHITECTURE.md doesn't say why {name} is there");
    }
}

#[test]
fn the_crates_stand_on_one_another_as_the_picture_shows() {
    let short = |name: &str| name.strip_prefix("pumphouse-").unwrap_or(name).to_owned();
    let mut needs: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for package in packages().iter().filter(|it| it["name"] != "pumphouse-bench") {
        let all = package["dependencies"].as_array().unwrap().iter();
        let normal = all.filter(|it| it["kind"].is_null()).filter_map(|it| it["name"].as_str());
        let ours = normal.filter(|it| it.starts_with("pumphouse")).map(short).collect();
        needs.insert(short(package["name"].as_str().unwrap()), ours);
    }
    fn reaches(needs: &BTreeMap<String, BTreeSet<String>>, from: &str, to: &str) -> bool {
        needs[from].iter().any(|it| it == to || reaches(needs, it, to))
    }
    let mut arrows = BTreeSet::new();
    for (from, all) in &needs {
        let direct = all.iter().filter(|to| !all.iter().any(|it| reaches(&needs, it, to)));
        arrows.extend(direct.map(|to| format!("    {from} --> {to}")));
    }
    let architecture = read("ARCHITECTURE.md");
    let (_, picture) = architecture.split_once("```mermaid\ngraph BT\n").unwrap();
    let (picture, table) = picture.split_once("\n```\n").unwrap();
    let shown: BTreeSet<String> = picture.lines().map(str::to_owned).collect();
    let arrows_text: Vec<&str> = arrows.iter().map(|it| &**it).collect();
    assert!(shown == arrows, "the picture should have\n{}", arrows_text.join("\n"));
    let rows = table.lines().skip_while(|it| !it.starts_with('|')).take_while(|it| !it.is_empty());
    let rows = rows.skip(2).map(|it| it.split('|').nth(1).unwrap().trim().to_owned());
    let rows: BTreeSet<String> = rows.filter(|it| !it.is_empty()).collect();
    let crates: BTreeSet<String> = needs.into_keys().filter(|it| it != "macros").collect();
    assert_eq!(rows, crates, "the table of crates");
}

/// The packages of the workspace, as Cargo describes them.
fn packages() -> Vec<Value> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["metadata", "--no-deps", "--offline", "--format-version", "1"]).current_dir(root());
    let described = cargo.output().unwrap();
    assert!(described.status.success(), "{described:?}");
    let metadata: Value = serde_json::from_slice(&described.stdout).unwrap();
    metadata["packages"].as_array().unwrap().clone()
}

#[test]
fn every_link_leads_somewhere() {
    let mut pages = Vec::new();
    for folder in ["", "docs", "docs/faults"] {
        let entries = fs::read_dir(root().join(folder)).unwrap();
        let paths = entries.map(|it| it.unwrap().path());
        pages.extend(paths.filter(|it| it.extension().is_some_and(|it| it == "md")));
    }
    assert!(pages.len() > 30, "these are not all our pages: {pages:?}");
    for page in pages {
        let text = fs::read_to_string(&page).unwrap();
        for (_, rest) in text.match_indices("](").map(|(at, _)| text[at..].split_at(2)) {
            let link = rest.split([')', '#']).next().unwrap();
            let target = page.parent().unwrap().join(link);
            let leads = link.is_empty() || link.contains("://") || target.exists();
            assert!(leads, "{}: {link} leads nowhere", page.display());
        }
    }
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}
