//! Floors, the layers of the library. The `mod` lines in lib.rs are in the order of dependency, and
//! a module may use only modules above it.

use super::code::{File, identifier};

/// The modules of lib.rs from the ground up, and where a name that lib.rs re-exports comes from.
pub(super) struct Map {
    modules: Vec<String>,
    exports: Vec<(String, String)>,
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
        let exports = lib.words("use").filter_map(|at| {
            let tree = lib.code[at + 3..].split(';').next()?.trim();
            let tree = tree.strip_prefix("crate::").unwrap_or(tree);
            let (module, names) = tree.split_once("::")?;
            let names = names.split(|it: char| !(it.is_alphanumeric() || it == '_'));
            Some(names.map(|it| (it.to_owned(), module.to_owned())).collect::<Vec<_>>())
        });
        let exports = exports.flatten().filter(|(name, _)| !name.is_empty()).collect();
        Map { modules: modules.collect(), exports }
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

pub(super) fn complaints(map: &Map, file: &File) -> Vec<String> {
    let Some(own) = module(&file.path) else { return Vec::new() };
    let Some(floor) = map.floor(own) else {
        return vec![format!("{}: lib.rs has no `mod {own};`", file.path)];
    };
    let mut complaints = Vec::new();
    for (at, name) in uses(file) {
        let staff = own == "staff";
        match map.home(name) {
            _ if staff && matches!(name, "prelude" | "builder") => {}
            None => complaints.push(file.complaint(at, &format!(
                "`{name}` stands in lib.rs itself, below every module: name the module it is from"
            ))),
            Some(home) if map.floor(home) > Some(floor) => complaints.push(file.complaint(
                at,
                &format!("`{own}` uses `{name}`, but `{home}` stands below it in lib.rs"),
            )),
            Some(home) => complaints.extend(
                STRANGERS
                    .iter()
                    .filter(|(it, not, _)| *it == own && not.contains(&home))
                    .map(|(.., why)| file.complaint(at, &format!("`{own}` uses `{name}`: {why}"))),
            ),
        }
    }
    complaints.extend(climbs(file, own));
    complaints
}

/// The top module that a file is a part of; none for what is no part of the library.
fn module(path: &str) -> Option<&str> {
    if path.starts_with("listeners/") {
        return Some("staff");
    }
    let path = path.strip_prefix("src/")?;
    let top = path.split('/').next()?;
    let own = top.strip_suffix(".rs").unwrap_or(top);
    (!matches!(own, "lib" | "main" | "bin")).then_some(own)
}

/// The first name after every `crate::` and `pumphouse::`, and each one of a group.
fn uses(file: &File) -> Vec<(usize, &str)> {
    let mut uses = Vec::new();
    for root in ["crate", "pumphouse"] {
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
fn climbs(file: &File, own: &str) -> Vec<String> {
    let path = file.path.trim_end_matches("/mod.rs").trim_end_matches(".rs");
    let depth =
        if own == "staff" { path.matches('/').count() + 1 } else { path.matches('/').count() };
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

    const LIB: &str = "//! A map.\npub mod name;\nmod xml;\npub mod wire;\nmod log;\n\
        #[path = \"../listeners/mod.rs\"]\nmod staff;\npub mod listeners {}\npub mod cli;\n\
        pub use name::Name;\npub use wire::{Envelope, fault::{Fault}};\n\
        pub mod prelude { pub use crate::cli::*; }\npub fn builder() {}\n";

    fn check(path: &str, code: &str, expected: &[&str]) {
        let map = Map::read(&File::new("src/lib.rs", LIB));
        assert_eq!(complaints(&map, &File::new(path, code)), expected, "{path}: {code}");
    }

    #[test]
    fn the_map_is_read_from_lib() {
        let map = Map::read(&File::new("src/lib.rs", LIB));
        assert_eq!(map.modules, ["name", "xml", "wire", "log", "staff", "listeners", "cli"]);
        assert_eq!(map.home("Fault"), Some("wire"));
        assert_eq!(map.home("builder"), None);
    }

    #[test]
    fn what_stands_above_may_be_used() {
        check("src/wire/fault.rs", "use crate::{name::{Name, log}, xml, wire::x};", &[]);
        check("src/wire/fault.rs", "use crate::Name; fn a(b: crate::Fault) {}", &[]);
        check("src/wire/mod.rs", "// crate::cli\nlet a = \"crate::cli\";", &[]);
        check("src/main.rs", "use crate::cli;", &[]);
        check("tests/it/a.rs", "use crate::cli;", &[]);
        check("listeners/a.rs", "use pumphouse::prelude::*; use pumphouse::{Fault, wire};", &[]);
    }

    #[test]
    fn what_stands_below_may_not() {
        let below = "src/xml/read.rs:2: `xml` uses `wire`, but `wire` stands below it in lib.rs";
        check("src/xml/read.rs", "\nuse crate::wire::x;", &[below]);
        check("src/xml/read.rs", "\nuse crate::{name::wire, wire::{self, x}};", &[below]);
        check("src/xml/read.rs", "\nfn a() -> pumphouse::wire::X {}", &[below]);
        let below = "src/xml/read.rs:1: `xml` uses `Fault`, but `wire` stands below it in lib.rs";
        check("src/xml/read.rs", "use crate::Fault;", &[below]);
        let below = "listeners/a.rs:1: `staff` uses `cli`, but `cli` stands below it in lib.rs";
        check("listeners/a.rs", "use pumphouse::cli;", &[below]);
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
        check("src/odd.rs", "", &["src/odd.rs: lib.rs has no `mod odd;`"]);
    }

    #[test]
    fn some_are_strangers() {
        let why = "src/log/a.rs:1: `log` uses `xml`: the log keeps bytes and positions, \
                   and knows no XML";
        check("src/log/a.rs", "use crate::xml::Element;", &[why]);
    }

    #[test]
    fn nobody_climbs_around_the_check() {
        let climb = "`super::` climbs to the root: say `crate::`";
        check("src/name.rs", "use super::cli;", &[&format!("src/name.rs:1: {climb}")]);
        check("src/xml/mod.rs", "use super::cli;", &[&format!("src/xml/mod.rs:1: {climb}")]);
        check("src/xml/a.rs", "use super::super::x;", &[&format!("src/xml/a.rs:1: {climb}")]);
        check("src/xml/a.rs", "use super::x; mod b { use super::super::x; }", &[]);
        check("src/name.rs", "mod tests { use super::*; }", &[]);
        check("listeners/a.rs", "use super::b;", &[]);
        check("listeners/mod.rs", "use super::b;", &[&format!("listeners/mod.rs:1: {climb}")]);
    }
}
