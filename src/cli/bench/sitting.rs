//! One sitting: which rows are wanted, where logs have room, which floors were found, and where
//! the rows go.

use std::path::Path;

use super::floors;
use super::measure::Waits;
use super::row::{self, Row};
use crate::cli::folder::Folder;
use crate::cli::screen::{Ending, Failure, Screen};
use crate::log::Durability;

/// Every durability, from the one that costs least.
pub(super) const DURABILITIES: [Durability; 3] =
    [Durability::Memory, Durability::Normal, Durability::Full];

/// A sitting: floors are measured once in it, before the first row that stands beside them.
pub(super) struct Sitting<'a, 'b> {
    to: &'a mut Screen<'b>,
    folder: Folder,
    scale: f64,
    only: Option<String>,
    pass_us: Option<f64>,
    sync: Option<Waits>,
    /// What there is, whether it was wanted or not.
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

    /// Whether a row is wanted.
    pub(super) fn wants(&mut self, what: &'static str, durability: Option<Durability>) -> bool {
        if !self.names.contains(&what) {
            self.names.push(what);
        }
        let said = format!("{what} {}", durability.map_or("-", Durability::as_str));
        self.only.as_deref().is_none_or(|it| said.contains(it))
    }

    /// So many times, as much as is to be done.
    pub(super) fn times(&self, count: f64) -> u64 {
        #[expect(clippy::cast_sign_loss, clippy::cast_possible_truncation, reason = "a count")]
        let count = (count * self.scale).max(1.0) as u64;
        count
    }

    /// Where logs have room.
    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// One pass of the tokenizer over the envelope, in microseconds.
    pub(super) fn pass_us(&mut self) -> f64 {
        let times = self.times(100_000.0);
        *self.pass_us.get_or_insert_with(|| floors::pass_us(times))
    }

    /// What a sync takes.
    pub(super) fn sync(&mut self) -> Result<&Waits, Failure> {
        let sync = match self.sync.take() {
            Some(sync) => sync,
            None => floors::sync(self.folder(), self.times(2_000.0))?,
        };
        Ok(self.sync.insert(sync))
    }

    /// Shows a row that was measured. What it wrote is gone before the next one is, whose syncs
    /// would else wait for it, too.
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
