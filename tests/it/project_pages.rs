//! Checks the project's pages: the reasons for dependencies, and links.

use std::fs;
use std::path::{Path, PathBuf};

#[test]
fn every_dependency_has_its_reason() {
    let manifest = read("Cargo.toml");
    let architecture = read("ARCHITECTURE.md");
    let (_, after) = manifest.split_once("\n[dependencies]\n").unwrap();
    let (dependencies, after) = after.split_once("\n[dev-dependencies]\n").unwrap();
    let (tests, _) = after.split_once("\n[").unwrap();
    let names = |text: &str| {
        let lines = text.lines().filter_map(|line| line.split_once([' ', '.', '=']));
        lines.map(|(name, _)| name.to_owned()).filter(|it| !it.starts_with(['#', '['])).collect()
    };
    let dependencies: Vec<String> = names(dependencies);
    assert!(dependencies.len() > 10, "{dependencies:?}");
    for name in &dependencies {
        let row = format!("\n| {name} | ");
        assert!(architecture.contains(&row), "ARCHITECTURE.md doesn't say why {name} is there");
    }
    let rows = architecture.lines().skip_while(|it| *it != "## Dependencies");
    for row in rows.filter_map(|it| it.strip_prefix("| ")?.split(' ').next()) {
        let is_head = row == "|" || row == "---";
        let is_there = is_head || dependencies.iter().any(|it| it == row);
        assert!(is_there, "{row} stands in ARCHITECTURE.md, but is no dependency");
    }
    for name in names(tests) as Vec<String> {
        assert!(architecture.contains(&name), "ARCHITECTURE.md doesn't say why {name} is there");
    }
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
