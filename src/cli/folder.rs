//! A temporary folder of a verb's own.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::cli::data;
use crate::cli::screen::Failure;
use crate::clock;

/// A folder that is gone when this is.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn make(verb: &str) -> Result<Folder, Failure> {
        let name = format!("pumphouse-{verb}-{:016x}", clock::random());
        let path = std::env::temp_dir().join(name);
        let made = data::make(&path);
        let why = |error| Failure::Untried(format!("{} can't be made: {error}", path.display()));
        made.map_err(why)?;
        Ok(Folder(path))
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Removes all that is in it, and waits until the disk has done so.
    pub(crate) fn clear(&self) -> Result<(), Failure> {
        let cleared = || {
            for entry in fs::read_dir(&self.0)? {
                let path = entry?.path();
                match path.is_dir() {
                    true => fs::remove_dir_all(path)?,
                    false => fs::remove_file(path)?,
                }
            }
            // A new file is on the disk once all that came before it is.
            let path = self.0.join("cleared");
            fs::File::create(&path)?.sync_all()?;
            fs::remove_file(path)
        };
        let why = |error: io::Error| Failure::Wrong(format!("{}: {error}", self.0.display()));
        cleared().map_err(why)
    }

    /// Removes it, and says where that failed.
    pub(crate) fn remove(&self) -> Result<(), Failure> {
        let why = |error| Failure::Wrong(format!("{} is left: {error}", self.0.display()));
        fs::remove_dir_all(&self.0).map_err(why)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Gone already where all went well.
        let _ = fs::remove_dir_all(&self.0);
    }
}
