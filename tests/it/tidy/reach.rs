//! Forgotten files: a file that no `mod` line reaches is never compiled, and its tests never run.

use std::collections::BTreeSet;

use super::code::{File, identifier};

/// Where every file belongs to a crate.
const PLACES: [&str; 7] = [
    "src/",
    "listeners/",
    "macros/src/",
    "benches/src/",
    "tests/it/",
    "tests/listeners/",
    "tests/support/",
];

/// Whether a crate of ours begins with this file.
fn is_root(path: &str) -> bool {
    let programs =
        ["src/main.rs", "benches/src/main.rs", "tests/it/main.rs", "tests/listeners/main.rs"];
    path.ends_with("/lib.rs") || programs.contains(&path)
}

pub(super) fn complaints(files: &[&File]) -> Vec<String> {
    let mut reached = BTreeSet::new();
    let roots = files.iter().map(|it| it.path.clone()).filter(|it| is_root(it));
    let mut waiting: Vec<String> = roots.collect();
    while let Some(path) = waiting.pop() {
        let Some(file) = files.iter().find(|it| it.path == path) else { continue };
        if reached.insert(path) {
            waiting.extend(modules(file));
        }
    }
    let ours = files.iter().map(|it| it.path.as_str());
    let lost = ours
        .clone()
        .filter(|path| PLACES.iter().any(|it| path.starts_with(it)) && !reached.contains(*path));
    let lost = lost.map(|path| format!("{path}: no `mod` line reaches it"));
    let loose =
        ours.filter(|path| path.strip_prefix("tests/").is_some_and(|rest| !rest.contains('/')));
    let loose = loose.map(|path| format!("{path}: no test program has it; put it in tests/it"));
    lost.chain(loose).collect()
}

/// The paths that the `mod` lines of a file may mean.
fn modules(file: &File) -> Vec<String> {
    let (folder, name) = file.path.rsplit_once('/').unwrap_or(("", &file.path));
    let own = match name.trim_end_matches(".rs") {
        _ if is_root(&file.path) || name == "mod.rs" => folder.to_owned(),
        stem => format!("{folder}/{stem}"),
    };
    let inline = file.inline_modules();
    let mut paths = Vec::new();
    for at in file.words("mod") {
        let rest = file.code[at + 3..].trim_start();
        let name = identifier(rest);
        if name.is_empty() || !rest[name.len()..].trim_start().starts_with(';') {
            continue;
        }
        if let Some(path) = given_path(&file.text[..at]) {
            paths.push(normal(&format!("{folder}/{path}")));
            continue;
        }
        let within = inline.iter().filter(|(_, open, end)| (*open..*end).contains(&at));
        let base = within.fold(own.clone(), |base, (module, ..)| format!("{base}/{module}"));
        paths.push(format!("{base}/{name}.rs"));
        paths.push(format!("{base}/{name}/mod.rs"));
    }
    paths
}

/// `#[path = "…"]` among the attributes right before a `mod` line.
fn given_path(before: &str) -> Option<&str> {
    let since = before.rfind([';', '}']).map_or(0, |it| it + 1);
    let (_, rest) = before[since..].rsplit_once("#[path = \"")?;
    rest.split('"').next()
}

/// Takes `a/../` out of a path.
fn normal(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "." | "" => {}
            ".." if parts.last().is_some_and(|it| *it != "..") => drop(parts.pop()),
            _ => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(files: &[(&str, &str)], expected: &[&str]) {
        let files: Vec<File> = files.iter().map(|(path, text)| File::new(path, text)).collect();
        assert_eq!(complaints(&files.iter().collect::<Vec<_>>()), expected);
    }

    #[test]
    fn a_mod_line_reaches_its_file() {
        check(
            &[
                (
                    "src/lib.rs",
                    "mod a;\n/// B.\npub(crate) mod b;\n#[path = \"../listeners/mod.rs\"]\n\
                    #[doc(inline)]\npub mod listeners;",
                ),
                ("src/a.rs", "#[cfg(test)]\nmod tests;\nmod c { mod d; }"),
                ("src/a/tests.rs", ""),
                ("src/a/c/d.rs", ""),
                ("src/b/mod.rs", "mod e;"),
                ("src/b/e.rs", ""),
                ("listeners/mod.rs", "pub mod echo;"),
                ("listeners/echo.rs", ""),
                ("tests/ui/bad.rs", ""),
            ],
            &[],
        );
    }

    #[test]
    fn a_forgotten_file_is_found() {
        check(
            &[
                ("src/lib.rs", "// mod a;\nmod b;"),
                ("src/a.rs", "mod c;"),
                ("src/a/c.rs", ""),
                ("src/b.rs", ""),
                ("tests/it/main.rs", ""),
                ("tests/it/d.rs", ""),
                ("tests/e.rs", ""),
            ],
            &[
                "src/a.rs: no `mod` line reaches it",
                "src/a/c.rs: no `mod` line reaches it",
                "tests/it/d.rs: no `mod` line reaches it",
                "tests/e.rs: no test program has it; put it in tests/it",
            ],
        );
    }
}
