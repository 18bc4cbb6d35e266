//! Finds the programs that manifests and callers name.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use pumphouse::listener::ManifestPath;

/// The search path if neither the settings nor the pump's environment has a `PATH`.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Returns the search path: `PATH` of the settings, or else `PATH` of the pump's own environment.
#[expect(clippy::disallowed_methods, reason = "an operator's programs are where a shell has them")]
pub(in super::super) fn search_path(env: &BTreeMap<String, String>) -> String {
    let said = env.get("PATH").cloned();
    said.or_else(|| std::env::var("PATH").ok()).unwrap_or_else(|| PATH.to_owned())
}

/// Returns the path of a program that the manifest names. A name with a `/` is a path relative to
/// the manifest's folder. Any other name is looked up in the search path.
pub(in super::super) fn find(program: &ManifestPath, search: &str) -> Result<String, String> {
    match program.text().contains('/') {
        true => at(program.folder(), program.text()),
        false => searched(program.text(), search),
    }
}

/// Returns the path of the program at `name`, relative to `folder`.
pub(in super::super) fn at(folder: &Path, name: &str) -> Result<String, String> {
    let path = folder.join(name);
    let path = std::path::absolute(&path).unwrap_or(path);
    match is_program(&path) {
        true => text(path),
        false => Err(format!("{} is no program", path.display())),
    }
}

/// Returns the path of the first program of this name in the search path.
pub(in super::super) fn searched(name: &str, search: &str) -> Result<String, String> {
    // Relative folders are skipped, because they would depend on the pump's current folder.
    let folders = search.split(':').filter(|it| it.starts_with('/'));
    let mut paths = folders.map(|it| Path::new(it).join(name));
    match paths.find(|it| is_program(it)) {
        Some(path) => text(path),
        None => {
            Err(format!("there is no program `{name}` in {search}; say where, as in `./{name}`"))
        }
    }
}

fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
}

fn text(path: PathBuf) -> Result<String, String> {
    let shown = path.display().to_string();
    path.into_os_string().into_string().map_err(|_| format!("{shown} has a name that is no text"))
}
