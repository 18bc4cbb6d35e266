//! Temporary folders. Each folder belongs to one process, which removes the folder after use. If a
//! process is killed, its folders stay until the next pump starts its first program.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::Once;

use rustix::fs::{FlockOperation, flock};
use rustix::process::{getpid, getuid};

/// The maximum number of names that are tried for a new folder.
const NAMES_MAX: u32 = 1_000;
/// The beginning of each temporary folder's name.
const PREFIX: &str = "pumphouse-";

/// A temporary folder of this process. The folder is removed when this value is dropped.
pub(in super::super) struct Scratch {
    path: PathBuf,
    /// The open and locked folder. No other process removes a locked folder.
    _lock: File,
}

impl Scratch {
    pub(in super::super) fn new() -> io::Result<Scratch> {
        let own = getpid().as_raw_nonzero();
        let above = std::env::temp_dir();
        for number in 0..NAMES_MAX {
            let path = above.join(format!("{PREFIX}{own}-{number}"));
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                Err(error) => return Err(error),
            }
            // Another process may have removed the folder before it was locked. In this case, the
            // next name is tried.
            if let Some(lock) = lock(&path) {
                return Ok(Scratch { path, _lock: lock });
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    pub(in super::super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Errors are ignored: a folder that can't be removed stays until the next pump removes it.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Opens and locks the folder at a path. Returns `None` if another process has locked the folder,
/// or if a link or another folder is at the path by now.
fn lock(path: &Path) -> Option<File> {
    let folder = File::open(path).ok()?;
    flock(&folder, FlockOperation::NonBlockingLockExclusive).ok()?;
    let (is, stands) = (folder.metadata().ok()?, path.symlink_metadata().ok()?);
    (stands.is_dir() && (is.dev(), is.ino()) == (stands.dev(), stands.ino())).then_some(folder)
}

/// Removes the folders that killed processes have left. Only the first call in a process has this
/// effect.
pub(in super::super) fn clear_once() {
    static CLEARED: Once = Once::new();
    CLEARED.call_once(|| clear(&std::env::temp_dir()));
}

/// Removes this user's temporary folders that no process has locked.
fn clear(above: &Path) {
    let Ok(all) = fs::read_dir(above) else { return };
    for entry in all.flatten() {
        let is_ours = entry.file_name().to_str().is_some_and(is_scratch)
            && entry.metadata().is_ok_and(|it| it.is_dir() && it.uid() == getuid().as_raw());
        if is_ours && let Some(lock) = lock(&entry.path()) {
            let _ = fs::remove_dir_all(entry.path());
            drop(lock);
        }
    }
}

/// Returns whether a name has the form of a temporary folder's name: `pumphouse-PROCESS-NUMBER`.
fn is_scratch(name: &str) -> bool {
    let numbers = name.strip_prefix(PREFIX).and_then(|it| it.split_once('-'));
    let is_number = |it: &str| !it.is_empty() && it.bytes().all(|it| it.is_ascii_digit());
    numbers.is_some_and(|(process, number)| is_number(process) && is_number(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_process_left_is_cleared_away_and_nothing_else() {
        let above = tempfile::tempdir().unwrap();
        let at = |name: &str| above.path().join(name);
        for name in ["pumphouse-1-0", "pumphouse-1-1", "pumphouse-x-0", "pumphouse-1", "other-1-1"]
        {
            fs::create_dir(at(name)).unwrap();
            fs::write(at(name).join("file"), "x").unwrap();
        }
        fs::write(at("pumphouse-2-0"), "a file").unwrap();
        std::os::unix::fs::symlink(at("other-1-1"), at("pumphouse-3-0")).unwrap();
        let held = lock(&at("pumphouse-1-1")).unwrap();
        clear(above.path());
        assert!(!at("pumphouse-1-0").exists());
        for name in ["pumphouse-1-1", "pumphouse-x-0", "pumphouse-1", "other-1-1"] {
            assert!(at(name).join("file").exists(), "{name}");
        }
        assert!(at("pumphouse-2-0").exists() && at("pumphouse-3-0").exists());
        drop(held);
        clear(above.path());
        assert!(!at("pumphouse-1-1").exists());
    }

    #[test]
    fn a_folder_stands_while_it_is_in_use() {
        let folder = Scratch::new().unwrap();
        clear(&std::env::temp_dir());
        assert!(folder.path().is_dir());
        let path = folder.path().to_owned();
        drop(folder);
        assert!(!path.exists());
    }
}
