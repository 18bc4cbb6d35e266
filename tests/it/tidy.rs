//! House rules that the compiler doesn't check: functions that find violations in a text, and tests
//! that apply them to this project.

mod code;
mod faults;
mod floors;
mod reach;
mod rooms;
mod shape;
mod words;

use std::fs;
use std::path::{Path, PathBuf};

use code::File;

/// Where our Rust lives.
const PLACES: [&str; 6] = ["src", "listeners", "macros", "tests", "benches", "examples"];

#[test]
fn a_module_uses_only_what_stands_above_it() {
    let files = files();
    let mut rooms = 0;
    for lib in ["src/ground/lib.rs", "src/core/lib.rs", "src/organism/lib.rs", "src/lib.rs"] {
        let map = floors::Map::read(&File::new(lib, &text(lib)));
        rooms += map.count();
        none(files.iter().flat_map(|it| floors::complaints(&map, it)));
    }
    assert!(rooms > 20, "these are not all rooms");
    none(files.iter().flat_map(floors::strangers));
}

#[test]
fn a_file_of_the_engine_uses_only_what_stands_above_it_there() {
    let files = files();
    let rooms = rooms::Rooms::read("src/engine", &files);
    assert!(rooms.count() > 40, "these are not all its modules");
    none(files.iter().flat_map(|it| rooms.complaints(it)));
}

#[test]
fn a_file_of_the_house_staff_uses_only_what_stands_above_it_there() {
    let files = files();
    for (folder, least) in [("listeners", 70), ("listeners/tool", 50)] {
        let rooms = rooms::Rooms::read(folder, &files);
        assert!(rooms.count() > least, "these are not all modules of {folder}: {}", rooms.count());
        none(files.iter().flat_map(|it| rooms.complaints(it)));
    }
}

#[test]
fn a_file_of_the_command_line_uses_only_what_stands_above_it_there() {
    let files = files();
    let rooms = rooms::Rooms::read("src/cli", &files);
    assert!(rooms.count() > 70, "these are not all its modules");
    none(files.iter().flat_map(|it| rooms.complaints(it)));
}

#[test]
fn a_file_of_these_rooms_uses_only_what_stands_above_it_there() {
    let files = files();
    let held = [("src/model", 50), ("src/log", 25), ("src/door", 20), ("src/manifest", 30)];
    none(held.iter().flat_map(|&(folder, least)| {
        let rooms = rooms::Rooms::read(folder, &files);
        assert!(rooms.count() > least, "these are not all modules of {folder}");
        files.iter().flat_map(move |it| rooms.complaints(it)).collect::<Vec<_>>()
    }));
}

#[test]
fn a_file_has_a_head_and_keeps_its_size() {
    none(files().iter().flat_map(shape::complaints));
}

#[test]
fn no_file_is_forgotten() {
    let files = files();
    let every: Vec<&File> = files.iter().collect();
    none(reach::complaints(&every));
}

#[test]
fn some_words_have_a_home() {
    none(files().iter().flat_map(words::complaints));
}

#[test]
fn every_fault_has_a_page() {
    let pages = names("docs/faults")
        .into_iter()
        .map(|name| (name.clone(), text(&format!("docs/faults/{name}"))))
        .collect::<Vec<_>>();
    none(faults::complaints(&text("src/wire/fault.rs"), &pages));
}

/// Fails with every complaint at once.
#[track_caller]
fn none(complaints: impl IntoIterator<Item = String>) {
    let complaints: Vec<String> = complaints.into_iter().collect();
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}

/// Every Rust file of ours, by its path.
fn files() -> Vec<File> {
    let mut paths = Vec::new();
    for place in PLACES {
        collect(&root().join(place), &mut paths);
    }
    paths.sort();
    assert!(paths.len() > 10, "these are not all our files: {paths:?}");
    paths.iter().map(|path| File::new(path, &text(path))).collect()
}

fn collect(folder: &Path, paths: &mut Vec<String>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("target") {
            collect(&path, paths);
        } else if path.extension().is_some_and(|it| it == "rs") {
            let path = path.strip_prefix(root()).unwrap();
            paths.push(path.to_str().unwrap().replace('\\', "/"));
        }
    }
}

/// The names in a folder, in order; none where there is no folder.
fn names(folder: &str) -> Vec<String> {
    let entries = fs::read_dir(root().join(folder)).into_iter().flatten();
    let mut names: Vec<String> =
        entries.map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn text(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|it| panic!("{path}: {it}"))
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}
