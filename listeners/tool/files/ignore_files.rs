//! The files `.ignore` and `.gitignore` of the folders of a walk. They are read as all other files
//! below the root are: through the root's open folder, regular files only, and no link. So no such
//! file leads out of the root, waits for anybody, or fills the memory.

use std::collections::HashMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use cap_std::fs::Dir;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use ignore::{DirEntry, Match};

use super::root::{no_waiting_options, within};

/// The most bytes of a file that says what is ignored. A larger file says nothing.
pub(super) const IGNORE_BYTES_MAX: u64 = 64 * 1024;
/// The names of the files, the one that counts first at the front.
const NAMES: [&str; 2] = [".ignore", ".gitignore"];

/// The patterns of the folders that a walk has come to.
pub(in super::super) struct IgnoreFiles {
    root: Dir,
    /// The root's real path.
    path: PathBuf,
    /// The folder at which the walk begins. Patterns of the folders above it don't count.
    top: PathBuf,
    /// Maps each folder to the patterns of its files.
    folders: Mutex<HashMap<PathBuf, Arc<Vec<Gitignore>>>>,
}

impl IgnoreFiles {
    pub(in super::super) fn new(root: Dir, path: PathBuf, top: PathBuf) -> IgnoreFiles {
        IgnoreFiles { root, path, top, folders: Mutex::default() }
    }

    /// Whether the walk comes to an entry. The patterns of the deepest folder count first.
    pub(in super::super) fn admits(&self, entry: &DirEntry) -> bool {
        let is_folder = entry.file_type().is_some_and(|it| it.is_dir());
        let folders = entry.path().ancestors().skip(1).take_while(|it| it.starts_with(&self.top));
        for folder in folders {
            for patterns in self.patterns(folder).iter() {
                match patterns.matched(entry.path(), is_folder) {
                    Match::None => {}
                    Match::Ignore(_) => return false,
                    Match::Whitelist(_) => return true,
                }
            }
        }
        true
    }

    fn patterns(&self, folder: &Path) -> Arc<Vec<Gitignore>> {
        let mut folders = self.folders.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = folders.get(folder) {
            return known.clone();
        }
        let read = Arc::new(NAMES.iter().filter_map(|name| self.read(folder, name)).collect());
        folders.entry(folder.to_owned()).or_insert(read).clone()
    }

    /// Reads one file. None if there is no such file, or if it says nothing.
    fn read(&self, folder: &Path, name: &str) -> Option<Gitignore> {
        let at = folder.join(name);
        let at = Path::new(within(&self.path, &at)?);
        if !self.root.symlink_metadata(at).ok()?.is_file() {
            return None;
        }
        let file = self.root.open_with(at, &no_waiting_options()).ok()?;
        let mut text = String::new();
        let is_file = file.metadata().ok()?.is_file();
        let read = file.take(IGNORE_BYTES_MAX + 1).read_to_string(&mut text);
        if !is_file || read.ok()? as u64 > IGNORE_BYTES_MAX {
            return None;
        }
        let mut patterns = GitignoreBuilder::new(folder);
        for line in text.lines() {
            // A line that is no pattern ignores nothing.
            let _ = patterns.add_line(None, line);
        }
        patterns.build().ok()
    }
}
