//! A temporary folder for one run of a verb.

use std::fs;
use std::path::{Path, PathBuf};

use crate::cli::base::data;
use crate::cli::base::screen::Failure;
use crate::clock;

/// A temporary folder, which is removed when this value is dropped, unless it is kept.
pub(crate) struct Folder {
    path: PathBuf,
    is_kept: bool,
}

impl Folder {
    pub(crate) fn make(verb: &str) -> Result<Folder, Failure> {
        let name = format!("pumphouse-{verb}-{:016x}", clock::random());
        let path = std::env::temp_dir().join(name);
        let made = data::make(&path);
        let why = |error| Failure::Untried(format!("{} can't be made: {error}", path.display()));
        made.map_err(why)?;
        Ok(Folder { path, is_kept: false })
    }

    /// Makes a folder that stays. It must not have a log yet.
    pub(crate) fn at(path: &Path) -> Result<Folder, Failure> {
        if path.join(data::LOG).exists() {
            let text = format!("{} has a log already; name another folder", path.display());
            return Err(Failure::Untried(text));
        }
        let why = |error| Failure::Untried(format!("{} can't be made: {error}", path.display()));
        data::make(path).map_err(why)?;
        Ok(Folder { path: path.to_owned(), is_kept: true })
    }

    /// Keeps the folder.
    pub(crate) fn keep(mut self) {
        self.is_kept = true;
    }

    /// Returns the folder's path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes the folder. Unlike a drop, this method reports a failure.
    pub(crate) fn remove(&self) -> Result<(), Failure> {
        let why = |error| Failure::Wrong(format!("{} is left: {error}", self.path.display()));
        fs::remove_dir_all(&self.path).map_err(why)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !self.is_kept {
            // An error may mean that `remove` has removed the folder already.
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}
