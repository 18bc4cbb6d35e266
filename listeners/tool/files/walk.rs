//! A walk through the folders below a root, in the order of names. It follows no links, leaves out
//! hidden files and what ignore files name, and has a bound on all that it looks at.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

use cap_std::fs::{Dir, FileType};

use super::ignore_files::{BYTES_OF_ALL_MAX, Patterns, ignores};

/// A walk. It holds the folders from the top down to the present one, and nothing of folders that
/// it has left.
pub(in super::super) struct Walk {
    root: Dir,
    folders: Vec<Folder>,
    /// How many more entries it may look at: files, folders, links and all others, hidden and
    /// ignored ones, too.
    entries_left: usize,
    /// How many more bytes of ignore files it reads.
    ignore_bytes_left: u64,
    is_cut: bool,
}

/// A folder on the way to the present place of a walk.
struct Folder {
    /// The folder's path, from the root.
    path: PathBuf,
    patterns: Patterns,
    /// The entries that weren't looked at yet.
    entries: BTreeMap<OsString, Option<FileType>>,
}

impl Walk {
    /// Walks through all below a root. `looks_at` says at which paths the walk looks; the others
    /// don't count.
    pub(in super::super) fn below(
        root: Dir,
        entries_max: usize,
        looks_at: &dyn Fn(&Path) -> bool,
    ) -> Walk {
        Walk::at(root, Path::new(""), entries_max, looks_at)
    }

    /// As [`below`](Walk::below), from a folder on, which is given by its real path from the root.
    /// The ignore files of the folders above it don't count.
    pub(in super::super) fn at(
        root: Dir,
        top: &Path,
        entries_max: usize,
        looks_at: &dyn Fn(&Path) -> bool,
    ) -> Walk {
        let (entries_left, ignore_bytes_left) = (entries_max, BYTES_OF_ALL_MAX);
        let folders = Vec::new();
        let mut walk = Walk { root, folders, entries_left, ignore_bytes_left, is_cut: false };
        let is_name = |it: &Component<'_>| *it != Component::CurDir;
        walk.enter(top.components().filter(is_name).collect(), looks_at);
        walk
    }

    /// The path of the next file, from the root. A path that isn't Unicode is left out.
    pub(in super::super) fn next_file(
        &mut self,
        looks_at: &dyn Fn(&Path) -> bool,
    ) -> Option<String> {
        while let Some(folder) = self.folders.last_mut() {
            let Some((name, kind)) = folder.entries.pop_first() else {
                self.folders.pop();
                continue;
            };
            if self.entries_left == 0 {
                self.is_cut = true;
                return None;
            }
            self.entries_left -= 1;
            let is_hidden = name.as_encoded_bytes().starts_with(b".");
            let path = folder.path.join(name);
            let kind = kind.filter(|it| !is_hidden && (it.is_dir() || it.is_file()));
            let Some(is_folder) = kind.map(|it| it.is_dir()) else { continue };
            if ignores(self.folders.iter().rev().map(|it| &it.patterns), &path, is_folder) {
                continue;
            }
            if is_folder {
                self.enter(path, looks_at);
            } else if let Some(text) = path.to_str() {
                return Some(text.to_owned());
            }
        }
        None
    }

    /// Whether the walk left something out, since it had looked at as many entries as it may.
    pub(in super::super) fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Reads the names in a folder: of more than the walk may look at, the first ones. A folder
    /// that can't be read is empty.
    fn enter(&mut self, path: PathBuf, looks_at: &dyn Fn(&Path) -> bool) {
        let at = if path.as_os_str().is_empty() { Path::new(".") } else { &path };
        let mut entries = BTreeMap::new();
        for entry in self.root.read_dir(at).into_iter().flatten().flatten() {
            let name = entry.file_name();
            if !looks_at(&path.join(&name)) {
                continue;
            }
            entries.insert(name, entry.file_type().ok());
            if entries.len() > self.entries_left {
                entries.pop_last();
                self.is_cut = true;
            }
        }
        let patterns = Patterns::read(&self.root, at, &mut self.ignore_bytes_left);
        self.folders.push(Folder { path, patterns, entries });
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;
    use std::{fs, os::unix::fs::symlink};

    use cap_std::ambient_authority;

    use super::*;

    fn walked(folder: &Path, entries_max: usize) -> (Vec<String>, bool) {
        let root = Dir::open_ambient_dir(folder, ambient_authority()).unwrap();
        let mut walk = Walk::below(root, entries_max, &|_| true);
        let files = std::iter::from_fn(|| walk.next_file(&|_| true)).collect();
        (files, walk.is_cut())
    }

    #[test]
    fn all_that_a_walk_looks_at_counts() {
        let makes: [fn(&Path, u8); 6] = [
            |folder, it| fs::write(folder.join(format!("{it}.txt")), "").unwrap(),
            |folder, it| fs::write(folder.join(format!(".{it}")), "").unwrap(),
            |folder, it| fs::write(folder.join(format!("{it}.log")), "").unwrap(),
            |folder, it| fs::create_dir(folder.join(it.to_string())).unwrap(),
            |folder, it| symlink("/dev/zero", folder.join(it.to_string())).unwrap(),
            |folder, it| fs::write(folder.join(OsStr::from_bytes(&[it, 0xff])), "").unwrap(),
        ];
        for (kind, make) in makes.iter().enumerate() {
            let folder = tempfile::tempdir().unwrap();
            fs::write(folder.path().join(".gitignore"), "*.log\n").unwrap();
            (b'a'..=b'i').for_each(|it| make(folder.path(), it));
            fs::create_dir(folder.path().join("z")).unwrap();
            fs::write(folder.path().join("z/last"), "").unwrap();
            let (files, is_cut) = walked(folder.path(), 11);
            assert!(is_cut && !files.contains(&"z/last".to_owned()), "{kind}: {files:?}");
            let (files, is_cut) = walked(folder.path(), 12);
            assert!(!is_cut && files.last().unwrap() == "z/last", "{kind}: {files:?}");
        }
    }

    #[test]
    fn of_more_names_than_a_walk_may_look_at_the_first_ones_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["e", "c", "a", "d", "b"] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        assert_eq!(walked(folder.path(), 2), (vec!["a".to_owned(), "b".to_owned()], true));
    }

    #[test]
    fn a_walk_holds_the_patterns_of_the_folders_above_it_alone_and_reads_so_many_bytes_of_them() {
        let folder = tempfile::tempdir().unwrap();
        let patterns = format!("left\n#{}\n", "x".repeat(60 * 1024));
        for name in ["a", "b", "c", "d", "e"] {
            let at = folder.path().join(name);
            fs::create_dir(&at).unwrap();
            fs::write(at.join(".gitignore"), &patterns).unwrap();
            fs::write(at.join("left"), "").unwrap();
            fs::write(at.join("seen"), "").unwrap();
        }
        let root = Dir::open_ambient_dir(folder.path(), ambient_authority()).unwrap();
        let mut walk = Walk::below(root, 100, &|_| true);
        let mut files = Vec::new();
        while let Some(file) = walk.next_file(&|_| true) {
            assert_eq!(walk.folders.len(), 2, "the root, and the folder of {file}");
            files.push(file);
        }
        assert_eq!(files, ["a/seen", "b/seen", "c/seen", "d/seen", "e/left", "e/seen"]);
    }
}
