//! The state of one run of `bench`: which rows are wanted, the folder for logs, the floors measured
//! so far, and the output.

use std::path::Path;

use super::floors;
use super::measure::Waits;
use super::row::{self, Row};
use crate::cli::base::folder::Folder;
use crate::cli::base::screen::{Ending, Failure, Screen};
use crate::log::Durability;

/// Every durability, the cheapest first.
pub(super) const DURABILITIES: [Durability; 3] =
    [Durability::Memory, Durability::Normal, Durability::Full];

/// One run of `bench`. The times of a pass and of a sync are measured once, when a row first needs
/// them.
pub(super) struct Sitting<'a, 'b> {
    to: &'a mut Screen<'b>,
    folder: Folder,
    scale: f64,
    only: Option<String>,
    pass_us: Option<f64>,
    sync: Option<Waits>,
    /// The names of all rows, wanted or not.
    names: Vec<&'static str>,
    shown: usize,
}

impl<'a, 'b> Sitting<'a, 'b> {
    pub(super) fn begin(
        scale: f64,
        only: Option<String>,
        to: &'a mut Screen<'b>,
    ) -> Result<Sitting<'a, 'b>, Failure> {
        let folder = Folder::make("bench")?;
        if !to.json {
            if cfg!(debug_assertions) {
                to.line("This is a debug build: its figures mean nothing.\n")?;
            }
            to.text(&row::head())?;
            to.flush()?;
        }
        let (pass_us, sync, names, shown) = (None, None, Vec::new(), 0);
        Ok(Sitting { to, folder, scale, only, pass_us, sync, names, shown })
    }

    /// Whether a row is wanted. The row's name is kept for the error that no row is wanted.
    pub(super) fn wants(&mut self, what: &'static str, durability: Option<Durability>) -> bool {
        if !self.names.contains(&what) {
            self.names.push(what);
        }
        let said = format!("{what} {}", durability.map_or("-", Durability::as_str));
        self.only.as_deref().is_none_or(|it| said.contains(it))
    }

    /// Returns a count times `--scale`, and at least 1.
    pub(super) fn times(&self, count: f64) -> u64 {
        #[expect(clippy::cast_sign_loss, clippy::cast_possible_truncation, reason = "a count")]
        let count = (count * self.scale).max(1.0) as u64;
        count
    }

    /// Returns the folder for logs.
    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the time of one pass of the tokenizer over the envelope, in microseconds.
    pub(super) fn pass_us(&mut self) -> f64 {
        let times = self.times(100_000.0);
        *self.pass_us.get_or_insert_with(|| floors::pass_us(times))
    }

    /// Returns the times of syncs, each after one block was written.
    pub(super) fn sync(&mut self) -> Result<&Waits, Failure> {
        let sync = match self.sync.take() {
            Some(sync) => sync,
            None => floors::sync(self.folder(), self.times(2_000.0))?,
        };
        Ok(self.sync.insert(sync))
    }

    /// Shows a measured row. The files of the row are removed first. Otherwise a sync of the next
    /// row might also wait until these files are on disk.
    pub(super) fn show(&mut self, row: &Row) -> Result<(), Failure> {
        self.shown += 1;
        self.folder.clear()?;
        match self.to.json {
            true => self.to.object(&row.object())?,
            false => self.to.line(&row.line())?,
        }
        Ok(self.to.flush()?)
    }

    pub(super) fn end(self) -> Result<Ending, Failure> {
        self.folder.remove()?;
        if self.shown > 0 {
            return Ok(Ending::Well);
        }
        let only = self.only.as_deref().unwrap_or_default();
        let names = self.names.join("\n  ");
        Err(Failure::Untried(format!("no row's name holds {only:?}; they are:\n  {names}")))
    }
}
