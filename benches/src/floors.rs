//! The floors: the least times that reading XML and writing a log can take on this machine.

use std::fs::File;
use std::hint::black_box;
use std::io::{self, Seek as _, Write as _};
use std::path::Path;

use pumphouse::clock;
use pumphouse_bench::{envelope, tokens};

use crate::measure::{Waits, quickest_us, rate};
use crate::output::Failure;

pub(crate) const PASS: &str = "one NsReader pass";
pub(crate) const SYNC: &str = "fdatasync of 4 KiB";
pub(crate) const APPEND: &str = "append of envelopes, a sync each 256 KiB";

/// The block that is written before each sync.
pub(crate) const BLOCK: [u8; 4_096] = [b'x'; 4_096];
/// The size of the file that blocks are written into, in blocks.
pub(crate) const BLOCKS: usize = 1_024;
/// The fewest bytes that are appended between two syncs.
const APPENDED: usize = 256 * 1_024;

/// Returns the time of one pass of the tokenizer over the envelope, in microseconds. The pass
/// resolves namespaces, and checks nothing.
pub(crate) fn pass_us(times: u64) -> f64 {
    let text = envelope("sess-k3v9x2ma", 12_345);
    quickest_us(times, || tokens(black_box(&text)))
}

/// Measures the times of syncs, each after one block was written. The file has its full size
/// beforehand, like a write-ahead log that is reused.
pub(crate) fn sync(folder: &Path, times: u64) -> Result<Waits, Failure> {
    let path = folder.join("sync");
    let timed = || {
        let mut file = file(&path)?;
        let mut waits = Vec::new();
        for time in 0..times {
            if time % BLOCKS as u64 == 0 {
                file.rewind()?;
            }
            file.write_all(&BLOCK)?;
            let since = clock::now_us();
            file.sync_data()?;
            waits.push(clock::now_us().saturating_sub(since));
        }
        std::fs::remove_file(&path)?;
        Ok(Waits::of(waits))
    };
    timed().map_err(|it| unwritten(&it))
}

/// Makes a file of `BLOCKS` blocks, and sets its position back to the beginning.
pub(crate) fn file(path: &Path) -> io::Result<File> {
    let mut file = File::create(path)?;
    for _ in 0..BLOCKS {
        file.write_all(&BLOCK)?;
    }
    file.sync_all()?;
    file.rewind()?;
    Ok(file)
}

/// Appends envelopes to a file, and returns how many it appends per second. The file is synced only
/// after at least [`APPENDED`] bytes, so the syncs cost little. No log can append faster.
pub(crate) fn append(folder: &Path, count: u64) -> io::Result<f64> {
    let path = folder.join("append");
    let mut file = File::create(&path)?;
    let mut block = Vec::with_capacity(APPENDED);
    let since = clock::now_us();
    for number in 0..count {
        block.extend_from_slice(envelope("sess-k3v9x2ma", number).as_bytes());
        if block.len() >= APPENDED || number + 1 == count {
            file.write_all(&block)?;
            file.sync_data()?;
            block.clear();
        }
    }
    let per_second = rate(count, since);
    std::fs::remove_file(&path)?;
    Ok(per_second)
}

pub(crate) fn unwritten(error: &io::Error) -> Failure {
    Failure::Untried(format!("no file can be written and synced: {error}"))
}
