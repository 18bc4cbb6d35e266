//! Small files beside the log, which hold one value as JSON.

use std::io::{self, ErrorKind, Write as _};
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::atomic_file::AtomicFile;
use crate::regular_file;

/// The most bytes of a file that a follower keeps.
const BYTES_MAX: u64 = 16 << 20;

/// Reads a file. Returns None if there is no file. `what` names the value in the error, and
/// `advice` says what to do.
pub fn read<T: DeserializeOwned>(
    file: &Path,
    what: &str,
    advice: &str,
) -> Result<Option<T>, String> {
    let shown = file.display();
    match regular_file::bytes(file, BYTES_MAX) {
        Ok(bytes) => serde_json::from_slice(&bytes)
            .map(Some)
            .map_err(|it| format!("{shown} holds no {what}: {it}; {advice}")),
        Err(it) if it.kind() == ErrorKind::NotFound => Ok(None),
        Err(it) => Err(format!("{shown} can't be read: {it}; {advice}")),
    }
}

/// Writes a file, whole or not at all.
pub fn write(file: &Path, value: &impl Serialize) -> io::Result<()> {
    let mut to = AtomicFile::replacing(file)?;
    serde_json::to_writer(&mut to, value)?;
    to.write_all(b"\n")?;
    to.commit()
}
