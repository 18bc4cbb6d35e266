//! The files of a SQLite database. SQLite opens what stands beside a database, and waits for the
//! other end of a FIFO, so each of these files is looked at before.

use std::fs;
use std::path::Path;

/// The ends of the names of a database's own files.
const FILES: [&str; 4] = ["", "-journal", "-wal", "-shm"];

/// Checks that each file of a database, if it is there, is a regular file. The database itself may
/// be a link to one.
pub(super) fn check(path: &Path) -> Result<(), String> {
    for end in FILES {
        let mut name = path.as_os_str().to_owned();
        name.push(end);
        let found = match end {
            "" => fs::metadata(&name),
            _ => fs::symlink_metadata(&name),
        };
        if found.is_ok_and(|it| !it.is_file()) {
            return Err(format!("{} is no regular file", Path::new(&name).display()));
        }
    }
    Ok(())
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn what_stands_beside_a_database_and_is_no_file_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kv.db");
        assert_eq!(check(&path), Ok(()));
        fs::write(&path, "").unwrap();
        fs::write(folder.path().join("kv.db-wal"), "").unwrap();
        assert_eq!(check(&path), Ok(()));
        let mode = rustix::fs::Mode::from_bits_truncate(0o600);
        let fifo = folder.path().join("kv.db-journal");
        let kind = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, kind, mode, 0).unwrap();
        assert!(check(&path).unwrap_err().ends_with("kv.db-journal is no regular file"));
        fs::remove_file(&fifo).unwrap();
        std::os::unix::fs::symlink("/dev/zero", &fifo).unwrap();
        assert!(check(&path).unwrap_err().ends_with("kv.db-journal is no regular file"));
    }
}
