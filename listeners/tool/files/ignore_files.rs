//! The files `.ignore` and `.gitignore` of the folders of a walk. They are read as all other files
//! below the root are: through the root's open folder, regular files only, and no link. So no such
//! file leads out of the root, waits for anybody, or fills the memory.

use std::io::Read as _;
use std::path::Path;

use cap_std::fs::Dir;
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::root::no_waiting_options;

/// The most bytes of a file that says what is ignored. A larger file says nothing.
pub(super) const BYTES_MAX: u64 = 64 * 1024;
/// The most bytes of all such files of a walk. Each pattern takes a hundred times its bytes of
/// memory. Further files say nothing.
pub(super) const BYTES_OF_ALL_MAX: u64 = 256 * 1024;
/// The names of the files, the one that counts first at the front.
const NAMES: [&str; 2] = [".ignore", ".gitignore"];

/// The patterns of a folder.
#[derive(Default)]
pub(super) struct Patterns(Vec<Gitignore>);

impl Patterns {
    /// Reads the files of a folder, and takes their bytes from those that are left.
    pub(super) fn read(root: &Dir, folder: &Path, bytes_left: &mut u64) -> Patterns {
        Patterns(NAMES.iter().filter_map(|name| read(root, folder, name, bytes_left)).collect())
    }
}

/// Whether a path is ignored. The patterns of its folder come first, then those of the folders
/// above.
pub(super) fn ignores<'p>(
    folders: impl Iterator<Item = &'p Patterns>,
    path: &Path,
    is_folder: bool,
) -> bool {
    for patterns in folders.flat_map(|it| &it.0) {
        match patterns.matched(path, is_folder) {
            Match::None => {}
            Match::Ignore(_) => return true,
            Match::Whitelist(_) => return false,
        }
    }
    false
}

/// Reads one file. None if there is no such file, or if it says nothing.
fn read(root: &Dir, folder: &Path, name: &str, bytes_left: &mut u64) -> Option<Gitignore> {
    let at = folder.join(name);
    let there = root.symlink_metadata(&at).ok()?;
    let bytes_max = BYTES_MAX.min(*bytes_left);
    if !there.is_file() || there.len() > bytes_max {
        return None;
    }
    let file = root.open_with(&at, &no_waiting_options()).ok()?;
    let mut text = String::new();
    let is_file = file.metadata().ok()?.is_file();
    let read = file.take(bytes_max + 1).read_to_string(&mut text).ok()? as u64;
    if !is_file || read > bytes_max {
        return None;
    }
    *bytes_left -= read;
    let mut patterns = GitignoreBuilder::new(folder);
    for line in text.lines() {
        // A line that is no pattern ignores nothing.
        let _ = patterns.add_line(None, line);
    }
    patterns.build().ok()
}
