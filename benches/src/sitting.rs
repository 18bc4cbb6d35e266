//! The state of one run: which rows are wanted, the folder for logs, the floors measured
//! so far, and the output.

use std::fs;
use std::io;
use std::path::Path;

use pumphouse::log::Durability;
use tempfile::TempDir;

use crate::floors;
use crate::measure::Waits;
use crate::output::{Failure, Output};
use crate::row::{self, Row};

/// Every durability, the cheapest first.
pub(crate) const DURABILITIES: [Durability; 3] =
    [Durability::Memory, Durability::Normal, Durability::Full];

/// One run of the program. The times of a pass and of a sync are measured once, when a row first
/// needs them.
pub(crate) struct Sitting {
    to: Output,
    folder: TempDir,
    scale: f64,
    only: Option<String>,
    pass_us: Option<f64>,
    sync: Option<Waits>,
    /// The names of all rows, wanted or not.
    names: Vec<&'static str>,
    shown: usize,
}

impl Sitting {
    pub(crate) fn begin(
        scale: f64,
        only: Option<String>,
        mut to: Output,
    ) -> Result<Sitting, Failure> {
        let folder = TempDir::with_prefix("pumphouse-bench-").map_err(|error| {
            let at = std::env::temp_dir();
            Failure::Untried(format!("no folder can be made in {}: {error}", at.display()))
        })?;
        if !to.json {
            if cfg!(debug_assertions) {
                to.line("This is a debug build: its figures mean nothing.\n")?;
            }
            to.line(&row::head())?;
        }
        let (pass_us, sync, names, shown) = (None, None, Vec::new(), 0);
        Ok(Sitting { to, folder, scale, only, pass_us, sync, names, shown })
    }

    /// Whether a row is wanted. The row's name is kept for the error that no row is wanted.
    pub(crate) fn wants(&mut self, what: &'static str, durability: Option<Durability>) -> bool {
        if !self.names.contains(&what) {
            self.names.push(what);
        }
        let said = format!("{what} {}", durability.map_or("-", Durability::as_str));
        self.only.as_deref().is_none_or(|it| said.contains(it))
    }

    /// Returns a count times `--scale`, and at least 1.
    pub(crate) fn times(&self, count: f64) -> u64 {
        #[expect(clippy::cast_sign_loss, clippy::cast_possible_truncation, reason = "a count")]
        let count = (count * self.scale).max(1.0) as u64;
        count
    }

    /// Returns the folder for logs.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the time of one pass of the tokenizer over the envelope, in microseconds.
    pub(crate) fn pass_us(&mut self) -> f64 {
        let times = self.times(100_000.0);
        *self.pass_us.get_or_insert_with(|| floors::pass_us(times))
    }

    /// Returns the times of syncs, each after one block was written.
    pub(crate) fn sync(&mut self) -> Result<&Waits, Failure> {
        let sync = match self.sync.take() {
            Some(sync) => sync,
            None => floors::sync(self.folder(), self.times(2_000.0))?,
        };
        Ok(self.sync.insert(sync))
    }

    /// Shows a measured row. The files of the row are removed first. Otherwise a sync of the next
    /// row might also wait until these files are on disk.
    pub(crate) fn show(&mut self, row: &Row) -> Result<(), Failure> {
        self.shown += 1;
        let path = self.folder.path();
        clear(path).map_err(|it| Failure::Wrong(format!("{}: {it}", path.display())))?;
        match self.to.json {
            true => self.to.object(&row.object())?,
            false => self.to.line(&row.line())?,
        }
        Ok(())
    }

    pub(crate) fn end(self) -> Result<(), Failure> {
        let path = self.folder.path().to_owned();
        let left = |error| Failure::Wrong(format!("{} is left: {error}", path.display()));
        self.folder.close().map_err(left)?;
        if self.shown > 0 {
            return Ok(());
        }
        let only = self.only.as_deref().unwrap_or_default();
        let names = self.names.join("\n  ");
        Err(Failure::Untried(format!("no row's name holds {only:?}; they are:\n  {names}")))
    }
}

/// Removes everything in a folder, and waits until the removals are on disk.
fn clear(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        match path.is_dir() {
            true => fs::remove_dir_all(path)?,
            false => fs::remove_file(path)?,
        }
    }
    // A journaling file system records changes in order: once this file is synced, the removals
    // before it are on disk, too.
    let path = folder.join("cleared");
    fs::File::create(&path)?.sync_all()?;
    fs::remove_file(path)
}
