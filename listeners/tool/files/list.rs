//! `list` shows the files and folders in a folder. `tree` shows the tree of the files below a
//! folder.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use cap_std::fs::DirEntry;

use super::super::path_tree::{DEPTH, PathTree};
use super::super::text::{cut, known};
use super::refuse::failed;
use super::root::{Root, within};
use super::search::walk;
use super::{FileTree, Kind, Listed, Listing, Refused, Tree, TreeForm};

/// The text of a folder without files.
const EMPTY: &str = "There are no files.\n";

pub(super) fn list(root: &Root, path: &str) -> Result<Listing, Refused> {
    let at = root.relative(path)?;
    let entries = root.dir.read_dir(at).map_err(|error| root.missing(path, &error))?;
    let most = root.limits.items_max;
    // The system returns the names of a folder in no order. So all names are read to find the first
    // ones.
    let mut first = BTreeMap::new();
    let mut more = false;
    for entry in entries {
        let entry = entry.map_err(|error| failed(path, &error))?;
        first.insert(entry.file_name(), entry);
        if first.len() > most {
            more = true;
            first.pop_last();
        }
    }
    let item: Vec<Listed> = first.values().map(described).collect();
    let text = match &item[..] {
        [] => EMPTY.to_owned(),
        items => items.iter().map(line).collect(),
    };
    Ok(Listing { path: cut(path), more, text, item })
}

/// The line for an item in the text of a listing.
fn line(Listed { name, kind, bytes }: &Listed) -> String {
    match (kind, bytes) {
        (Kind::Folder, _) => format!("{name}/\n"),
        (Kind::File, Some(1)) => format!("{name} (1 byte)\n"),
        (Kind::File, Some(bytes)) => format!("{name} ({bytes} bytes)\n"),
        (Kind::File, None) => format!("{name}\n"),
        (Kind::Link, _) => format!("{name} (a link)\n"),
        (Kind::Other, _) => format!("{name} (no file)\n"),
    }
}

/// Returns the tree of the files below a folder. The search for files ends early if
/// `searched_files_max` is reached or if `is_over` returns true.
pub(super) fn tree(
    root: &Root,
    asked: &Tree,
    is_over: &dyn Fn() -> bool,
) -> Result<FileTree, Refused> {
    let path = asked.path.as_deref().unwrap_or(".");
    let depth = asked.max_depth.unwrap_or(DEPTH);
    let at = root.relative(path)?;
    // This call fails if there is no folder at the path.
    root.dir.read_dir(at).map_err(|error| root.missing(path, &error))?;
    let begin = root.dir.canonicalize(at).map_err(|error| root.missing(path, &error))?;
    let begin: PathBuf = begin.components().filter(|it| *it != Component::CurDir).collect();
    let (mut names, mut is_late) = (Vec::new(), false);
    let mut walk = walk(root, path)?;
    while let Some(name) = walk.next_file(&|_| true) {
        is_late = is_over();
        if is_late {
            break;
        }
        let name = within(&begin, Path::new(&name));
        names.extend(name.map(|it| it.chars().map(known).collect::<String>()));
    }
    let more = is_late || walk.is_cut();
    let tree = PathTree::of(names.iter().map(String::as_str));
    let text = match asked.format.unwrap_or_default() {
        _ if tree.files() == 0 => EMPTY.to_owned(),
        TreeForm::Tree => tree.text(depth),
        TreeForm::Paths => tree.paths(depth),
    };
    Ok(FileTree { files: tree.files(), more, text })
}

fn described(entry: &DirEntry) -> Listed {
    let name: String = entry.file_name().to_string_lossy().chars().map(known).collect();
    let kind = match entry.file_type() {
        Ok(it) if it.is_file() => Kind::File,
        Ok(it) if it.is_dir() => Kind::Folder,
        Ok(it) if it.is_symlink() => Kind::Link,
        _ => Kind::Other,
    };
    let is_file = kind == Kind::File;
    let bytes = is_file.then(|| entry.metadata().ok()).flatten().map(|it| it.len());
    Listed { name, kind, bytes }
}
