//! Measures `pumphouse` as a server: the time until it responds to a first push, its memory, and
//! the size of its binary.

use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;

use pumphouse::clock;
use pumphouse::log::Durability;

use crate::measure::{Waits, number};
use crate::output::Failure;
use crate::program::{NO_PROC, Program, unserved};
use crate::row::{Figure, Row};
use crate::sitting::Sitting;

const START: &str = "start to the first push answered";
const MEMORY: &str = "memory of an idle server";
const BINARY: &str = "stripped binary";

/// The goal for every start, in microseconds.
const START_US_MAX: f64 = 50_000.0;
/// The goal for the memory and for the binary, in bytes.
const BYTES_MAX: f64 = 20.0 * 1_048_576.0;

pub(crate) fn rows(sitting: &mut Sitting) -> Result<(), Failure> {
    let folder = sitting.folder().to_owned();
    let (full, durability) = (Durability::Full, Some(Durability::Full));
    if sitting.wants(START, durability) {
        let program = Program::find()?;
        let starts = (0..sitting.times(20.0)).map(|number| {
            let since = clock::now_us();
            program.run(&folder.join(format!("start-{number}")), full, "")?.ask()?;
            Ok(clock::now_us().saturating_sub(since))
        });
        let waits = Waits::of(starts.collect::<io::Result<_>>().map_err(|it| unserved(&it))?);
        let (median, most) = (Figure::P50(waits.at(50)), Figure::Most(waits.at(100)));
        let row = Row::new(START, durability).figure(median).figure(most);
        sitting.show(&row.goal("< 50 ms", waits.at(100) < START_US_MAX))?;
    }
    if sitting.wants(MEMORY, durability) {
        let memory =
            Program::find()?.idle(&folder.join("memory"), full).map_err(|it| unserved(&it))?;
        sitting.show(&match memory {
            Some(it) => sized(Row::new(MEMORY, durability), it),
            None => Row::missing(MEMORY, NO_PROC.to_owned()),
        })?;
    }
    if sitting.wants(BINARY, None) {
        sitting.show(&match stripped(Program::find()?.path(), &folder.join("stripped")) {
            Ok(bytes) => sized(Row::new(BINARY, None), bytes),
            Err(error) => Row::missing(BINARY, format!("strip doesn't: {error}")),
        })?;
    }
    Ok(())
}

fn sized(row: Row, bytes: u64) -> Row {
    let bytes = number(bytes);
    row.figure(Figure::Size(bytes)).goal("< 20 MiB", bytes < BYTES_MAX)
}

/// Returns the size of a program after `strip`, in bytes.
fn stripped(program: &Path, to: &Path) -> io::Result<u64> {
    let status = Command::new("strip").arg("-o").arg(to).arg(program).status()?;
    match status.success() {
        true => Ok(fs::metadata(to)?.len()),
        false => Err(io::Error::other(status.to_string())),
    }
}
