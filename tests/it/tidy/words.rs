//! Words that only some files may have. A file elsewhere that names a library, a clock or a source
//! of chance depends on something that its floor must not know.

use super::code::File;

/// Words, where in the library they may stand, and why only there.
const HOMES: [(&[&str], &[&str], &str); 7] = [
    (&["quick_xml", "roxmltree"], &["src/xml/"], "the strict reader is the one door for XML"),
    (
        &["SystemTime", "Instant", "UNIX_EPOCH"],
        &["src/clock.rs", "src/engine/runtime_port.rs", "src/door/", "src/client/", "src/cli/"],
        "time is given, as microseconds",
    ),
    (
        &["getrandom", "RandomState", "Uuid::new_v4", "now_v7"],
        &["src/clock.rs", "src/xml/intern.rs"],
        "chance is given, so that a run can be repeated",
    ),
    (
        &["rusqlite"],
        &["src/log/", "listeners/tool/keyvalue.rs", "listeners/tool/sql/"],
        "the log alone knows what keeps it; the tools are no part of it",
    ),
    (
        &["serde_json_path"],
        &[
            "src/model/provider_file/",
            "src/manifest/read/calls.rs",
            "listeners/feed_contents/transform.rs",
        ],
        "provider files, transforms of feeds and errors of parameters alone have paths",
    ),
    (&["clap"], &["src/cli/", "src/main.rs"], "settings come through the builder"),
    (
        &["crate"],
        &["src/", "macros/", "listeners/lib.rs", "listeners/tool/lib.rs"],
        "the house staff use what everyone can use: say `pumphouse::` or `super::`",
    ),
];

/// Floors that do no IO, and the words that would be some.
const PURE: [&str; 9] = [
    "src/name.rs",
    "src/id.rs",
    "src/limits.rs",
    "src/xml/",
    "src/schema/",
    "src/wire/",
    "src/reply/",
    "src/listener/",
    "macros/src/",
];
const IO: [&str; 3] = ["tokio", "fs", "net"];

pub(super) fn complaints(file: &File) -> Vec<String> {
    let is_in = |places: &[&str]| places.iter().any(|it| file.path.starts_with(it));
    if !is_in(&["src/", "listeners/", "macros/src/"]) {
        return Vec::new();
    }
    let mut complaints = Vec::new();
    for (words, _, why) in HOMES.iter().filter(|(_, homes, _)| !is_in(homes)) {
        for word in *words {
            let places = file.words(word).filter(|at| *word != "crate" || is_path(file, *at));
            complaints.extend(places.map(|at| file.complaint(at, &format!("`{word}`: {why}"))));
        }
    }
    let tests = file.path.ends_with("/tests.rs") || file.path.contains("/tests/");
    if is_in(&PURE) && !tests {
        for word in IO {
            let places = file.words(word).filter(|at| is_path(file, *at) && !in_tests(file, *at));
            complaints.extend(
                places.map(|at| file.complaint(at, &format!("`{word}`: this floor does no IO"))),
            );
        }
    }
    complaints
}

/// Whether the word at `at` begins or continues a path: `fs::read`, `std::fs`, `use std::{fs}`.
fn is_path(file: &File, at: usize) -> bool {
    let word = file.code[at..].split(|it| !super::code::is_word(it)).next().map_or(0, str::len);
    file.code[at + word..].starts_with("::") || file.code[..at].ends_with("::")
}

/// Whether the place is in a module that is compiled for tests only.
fn in_tests(file: &File, at: usize) -> bool {
    let tests = file.inline_modules().into_iter().filter(|(name, ..)| name == "tests");
    tests.into_iter().any(|(_, open, end)| (open..end).contains(&at))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, code: &str, expected: &[&str]) {
        assert_eq!(complaints(&File::new(path, code)), expected, "{path}: {code}");
    }

    #[test]
    fn only_its_home_may_name_a_library() {
        let why = "`quick_xml`: the strict reader is the one door for XML";
        check("src/xml/read.rs", "use quick_xml::NsReader;", &[]);
        check("src/wire/a.rs", "// quick_xml\nlet quick_xml_like = 1;", &[]);
        check("src/wire/a.rs", "use quick_xml::NsReader;", &[&format!("src/wire/a.rs:1: {why}")]);
        check("listeners/a.rs", "quick_xml::Reader", &[&format!("listeners/a.rs:1: {why}")]);
        check("benches/a.rs", "use quick_xml::NsReader;", &[]);
    }

    #[test]
    fn time_and_chance_are_given() {
        let why = "src/engine/tree.rs:1: `Instant`: time is given, as microseconds";
        check("src/engine/tree.rs", "use std::time::{Duration, Instant};", &[why]);
        check("src/engine/runtime_port.rs", "use std::time::{Duration, Instant};", &[]);
        check("src/door/tcp.rs", "Instant::now()", &[]);
        let why = "src/log/a.rs:1: `getrandom`: chance is given, so that a run can be repeated";
        check("src/log/a.rs", "getrandom::fill(&mut key)", &[why]);
    }

    #[test]
    fn the_house_staff_have_no_private_door() {
        let why = "the house staff use what everyone can use: say `pumphouse::` or `super::`";
        check("listeners/a.rs", "use crate::log;", &[&format!("listeners/a.rs:1: `crate`: {why}")]);
        check("listeners/a.rs", "pub(crate) fn a() {} use pumphouse::Listener;", &[]);
    }

    #[test]
    fn the_lower_floors_do_no_io() {
        let why = "src/wire/a.rs:1: `fs`: this floor does no IO";
        check("src/wire/a.rs", "std::fs::read(path)", &[why]);
        check("src/wire/a.rs", "mod tests { fn a() { std::fs::read(path) } }", &[]);
        check("src/wire/tests.rs", "std::fs::read(path)", &[]);
        check("src/log/a.rs", "std::fs::read(path)", &[]);
        check(
            "src/listener/a.rs",
            "use tokio::sync::Notify;",
            &["src/listener/a.rs:1: `tokio`: this floor does no IO"],
        );
    }
}
