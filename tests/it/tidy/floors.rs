//! Floors, the layers of a crate that holds several rooms. The `mod` lines in its lib.rs are in the
//! order of dependency, and a room may use only rooms above it. Cargo holds the order of crates.

use std::collections::BTreeSet;

use super::code::{File, identifier};

/// The rooms of a crate from the ground up.
pub(super) struct Map {
    modules: Vec<String>,
    /// Where a name that lib.rs re-exports comes from.
    exports: Vec<(String, String)>,
    /// The names that lib.rs has from the crates below, and the crate's own name.
    foreign: BTreeSet<String>,
}

/// Who may not use what, though it stands above.
const STRANGERS: [(&str, &[&str], &str); 6] = [
    ("log", &["xml", "schema", "wire"], "the log keeps bytes and positions, and knows no XML"),
    ("engine", &["model"], "the engine keeps models for others, by their type"),
    ("door", &["log", "model", "audit"], "a door serves; it reads no log and asks no model"),
    ("audit", &["engine", "door", "listener"], "an audit reads a log, not a running engine"),
    ("follower", &["audit"], "entries are handed on as they are"),
    ("manifest", &["client", "audit"], "a manifest only builds"),
];

impl Map {
    pub(super) fn read(lib: &File) -> Map {
        let modules = lib.words("mod").filter_map(|at| {
            let name = identifier(lib.code[at + 3..].trim_start());
            let end = at + 3 + lib.code[at + 3..].find([';', '{'])?;
            let is_floor = lib.code[end..].starts_with(';') || name == "listeners";
            (is_floor && !name.is_empty()).then(|| name.to_owned())
        });
        let (mut exports, mut foreign) = (Vec::new(), BTreeSet::new());
        for at in lib.words("use") {
            let tree = lib.code[at + 3..].split(';').next().unwrap_or_default().trim();
            let tree = tree.strip_prefix("crate::").unwrap_or(tree);
            let names = |text: &str| -> Vec<String> {
                let names = text.split(|it: char| !(it.is_alphanumeric() || it == '_'));
                names.filter(|it| !it.is_empty()).map(str::to_owned).collect()
            };
            if tree.starts_with("pumphouse_") || tree.starts_with("crate as ") {
                foreign.extend(names(tree));
            } else if let Some((module, rest)) = tree.split_once("::") {
                exports.extend(names(rest).into_iter().map(|it| (it, module.to_owned())));
            }
        }
        Map { modules: modules.collect(), exports, foreign }
    }

    /// Whether the crate has rooms of its own beside its modules' names.
    pub(super) fn count(&self) -> usize {
        self.modules.len()
    }

    fn floor(&self, module: &str) -> Option<usize> {
        self.modules.iter().position(|it| it == module)
    }

    /// The module that `crate::name` belongs to.
    fn home<'a>(&'a self, name: &'a str) -> Option<&'a str> {
        if self.floor(name).is_some() {
            return Some(name);
        }
        let export =
            self.exports.iter().find(|(it, module)| it == name && self.floor(module).is_some());
        export.map(|(_, module)| module.as_str())
    }
}

/// What a file of one of these rooms uses and may not.
pub(super) fn complaints(map: &Map, file: &File) -> Vec<String> {
    let Some(own) = module(&file.path) else { return Vec::new() };
    let Some(floor) = map.floor(own) else { return Vec::new() };
    let mut complaints = Vec::new();
    for (at, name) in uses(file, &["crate", "pumphouse"]) {
        match map.home(name) {
            None if map.foreign.contains(name) => {}
            None => complaints.push(file.complaint(at, &format!(
                "`{name}` stands in lib.rs itself, below every module: name the module it is from"
            ))),
            Some(home) if map.floor(home) > Some(floor) => complaints.push(file.complaint(
                at,
                &format!("`{own}` uses `{name}`, but `{home}` stands below it in lib.rs"),
            )),
            Some(_) => {}
        }
    }
    complaints.extend(climbs(file));
    complaints
}

/// What a file uses though its room is to know nothing of it.
pub(super) fn strangers(file: &File) -> Vec<String> {
    let Some(own) = module(&file.path) else { return Vec::new() };
    let rules = STRANGERS.iter().filter(|(room, ..)| *room == own);
    let roots = ["crate", "pumphouse", "pumphouse_core", "pumphouse_ground", "pumphouse_organism"];
    let named = uses(file, &roots).into_iter();
    let crates = file.code.match_indices("pumphouse_");
    let crates = crates.map(|(at, start)| (at, identifier(&file.code[at + start.len()..])));
    let all: Vec<(usize, &str)> = named.chain(crates).collect();
    let mut complaints = Vec::new();
    for (_, not, why) in rules {
        for (at, name) in all.iter().filter(|(_, name)| not.contains(name)) {
            complaints.push(file.complaint(*at, &format!("`{own}` uses `{name}`: {why}")));
        }
    }
    complaints
}

/// The room that a file is a part of; none for what is in no room of `src`.
fn module(path: &str) -> Option<&str> {
    let path = path.strip_prefix("src/")?;
    let top = path.split('/').next()?;
    let own = top.strip_suffix(".rs").unwrap_or(top);
    (!matches!(own, "lib" | "main" | "bin")).then_some(own)
}

/// The first name after each of these roots and `::`, and each one of a group.
fn uses<'f>(file: &'f File, roots: &[&str]) -> Vec<(usize, &'f str)> {
    let mut uses = Vec::new();
    for root in roots {
        for at in file.words(root) {
            let Some(rest) = file.code[at + root.len()..].strip_prefix("::") else { continue };
            let from = at + root.len() + 2;
            match identifier(rest) {
                "" if rest.starts_with('{') => uses.extend(group(&file.code, from)),
                "" => uses.push((at, "*")),
                name => uses.push((at, name)),
            }
        }
    }
    uses
}

/// `{a, b::{c, d}, e}`: a, b and e.
pub(super) fn group(code: &str, open: usize) -> Vec<(usize, &str)> {
    let (mut names, mut depth, mut at) = (Vec::new(), 0, open);
    let mut fresh = false;
    while at < code.len() {
        let name = identifier(&code[at..]);
        match code.as_bytes()[at] {
            b'{' => (depth, fresh) = (depth + 1, depth == 0),
            b'}' if depth == 1 => break,
            b'}' => depth -= 1,
            b',' => fresh = depth == 1,
            _ if fresh && !name.is_empty() => {
                names.push((at, name));
                fresh = false;
            }
            _ => {}
        }
        at += code[at..].chars().next().map_or(1, char::len_utf8).max(name.len());
    }
    names
}

/// `super::` that climbs to the root or out of its module, around the check above.
fn climbs(file: &File) -> Vec<String> {
    let path = file.path.trim_end_matches("/mod.rs").trim_end_matches(".rs");
    let depth = path.matches('/').count();
    let inline = file.inline_modules();
    let firsts = file.words("super").filter(|&at| !file.code[..at].ends_with("super::"));
    let climbs = firsts.filter(|&at| {
        let supers = file.code[at..].split("::").take_while(|it| it.trim() == "super").count();
        let modules = inline.iter().filter(|(_, open, end)| (*open..*end).contains(&at)).count();
        supers >= depth + modules
    });
    climbs.map(|at| file.complaint(at, "`super::` climbs to the root: say `crate::`")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIB: &str = "//! A map.\nuse crate as house;\nuse pumphouse_ground::{name, xml};\n\
        pub use pumphouse_log as log;\npub mod wire;\npub mod door;\n\
        #[path = \"../cli/mod.rs\"]\npub mod cli;\n\
        pub use wire::{Envelope, fault::{Fault}};\n\
        pub mod prelude { pub use crate::cli::*; }\npub fn builder() {}\n";

    fn check(path: &str, code: &str, expected: &[&str]) {
        let map = Map::read(&File::new("src/lib.rs", LIB));
        assert_eq!(complaints(&map, &File::new(path, code)), expected, "{path}: {code}");
    }

    #[test]
    fn the_map_is_read_from_lib() {
        let map = Map::read(&File::new("src/lib.rs", LIB));
        assert_eq!(map.modules, ["wire", "door", "cli"]);
        assert_eq!(map.home("Fault"), Some("wire"));
        assert_eq!(map.home("builder"), None);
        assert!(["house", "log", "xml"].iter().all(|it| map.foreign.contains(*it)));
    }

    #[test]
    fn what_stands_above_or_in_a_crate_below_may_be_used() {
        check("src/door/tcp.rs", "use crate::{name::{Name, log}, xml, wire::x};", &[]);
        check("src/door/tcp.rs", "use crate::Fault; fn a(b: crate::Fault) {}", &[]);
        check("src/wire/mod.rs", "// crate::cli\nlet a = \"crate::cli\";", &[]);
        check("src/main.rs", "use crate::cli;", &[]);
        check("tests/it/a.rs", "use crate::cli;", &[]);
        check("src/xml/read.rs", "use crate::cli;", &[]);
    }

    #[test]
    fn what_stands_below_may_not() {
        let below = "src/wire/read.rs:2: `wire` uses `door`, but `door` stands below it in lib.rs";
        check("src/wire/read.rs", "\nuse crate::door::x;", &[below]);
        check("src/wire/read.rs", "\nuse crate::{name::wire, door::{self, x}};", &[below]);
        check("src/wire/read.rs", "\nfn a() -> pumphouse::door::X {}", &[below]);
    }

    #[test]
    fn what_lib_itself_has_stands_below_all() {
        let root = |name: &str| {
            format!(
                "src/cli.rs:1: `{name}` stands in lib.rs itself, below every module: \
                 name the module it is from"
            )
        };
        check("src/cli.rs", "use crate::prelude::*;", &[&root("prelude")]);
        check("src/cli.rs", "use crate::*;", &[&root("*")]);
        check("src/cli.rs", "crate::builder()", &[&root("builder")]);
    }

    #[test]
    fn some_are_strangers() {
        let why = "src/log/a.rs:1: `log` uses `xml`: the log keeps bytes and positions, \
                   and knows no XML";
        for code in ["use crate::xml::Element;", "use pumphouse_ground::xml::Element;"] {
            assert_eq!(strangers(&File::new("src/log/a.rs", code)), [why], "{code}");
        }
        let why = "src/engine/a.rs:1: `engine` uses `model`: the engine keeps models for others, \
                   by their type";
        let code = "use pumphouse_model::Model;";
        assert_eq!(strangers(&File::new("src/engine/a.rs", code)), [why]);
    }

    #[test]
    fn nobody_climbs_around_the_check() {
        let climb = "`super::` climbs to the root: say `crate::`";
        check("src/wire.rs", "use super::cli;", &[&format!("src/wire.rs:1: {climb}")]);
        check("src/wire/mod.rs", "use super::cli;", &[&format!("src/wire/mod.rs:1: {climb}")]);
        check("src/wire/a.rs", "use super::super::x;", &[&format!("src/wire/a.rs:1: {climb}")]);
        check("src/wire/a.rs", "use super::x; mod b { use super::super::x; }", &[]);
        check("src/wire.rs", "mod tests { use super::*; }", &[]);
    }
}
