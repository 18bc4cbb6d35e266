//! Golden files: compared with what the code makes now, or written anew with `BLESS=1`. Also runs
//! `xmllint` over schemas and their examples.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Files that were compared, and those that say something else.
#[derive(Default)]
pub(crate) struct Goldens {
    wrong: Vec<String>,
}

impl Goldens {
    /// Compares one file with what is made now.
    pub(crate) fn check(&mut self, path: &Path, made: &str) {
        let golden = fs::read_to_string(path).unwrap_or_default();
        if golden == made {
            return;
        }
        if is_blessed() {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            return fs::write(path, made).unwrap();
        }
        let line = golden.lines().zip(made.lines()).position(|(old, new)| old != new);
        let line = line.unwrap_or(golden.lines().count().min(made.lines().count()));
        let of = |text: &str| text.lines().nth(line).unwrap_or("(nothing)").to_owned();
        let (old, new) = (of(&golden), of(made));
        self.wrong.push(format!("{}:{}\n  is   {old}\n  made {new}", path.display(), line + 1));
    }

    /// Fails with every file that is stale.
    #[track_caller]
    pub(crate) fn finish(self) {
        let wrong = self.wrong.join("\n");
        assert!(wrong.is_empty(), "stale; BLESS=1 writes them anew:\n{wrong}");
    }
}

#[expect(clippy::disallowed_methods, reason = "whoever runs the tests says so in this way")]
pub(crate) fn is_blessed() -> bool {
    std::env::var_os("BLESS").is_some()
}

/// Has `xmllint` hold documents against their schema: names, schemas, documents.
#[track_caller]
pub(crate) fn lint(all: &[(String, String, Vec<String>)]) {
    if Command::new("xmllint").arg("--version").output().is_err() {
        return println!("skipped: no xmllint");
    }
    let folder = tempfile::tempdir().unwrap();
    let mut wrong = Vec::new();
    for (name, schema, documents) in all {
        let xsd = write(folder.path(), &format!("{name}.xsd"), schema);
        for (place, document) in documents.iter().enumerate() {
            let xml = write(folder.path(), &format!("{name}-{place}.xml"), document);
            let mut command = Command::new("xmllint");
            let told = command.args(["--noout", "--nonet", "--schema"]).arg(&xsd).arg(&xml);
            let told = told.output().unwrap();
            if !told.status.success() {
                wrong.push(format!("{name}: {}", String::from_utf8_lossy(&told.stderr)));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn write(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name.replace('/', "-"));
    fs::write(&path, text).unwrap();
    path
}
