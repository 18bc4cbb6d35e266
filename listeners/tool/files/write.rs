//! `write`: replaces a file as a whole, or leaves it unchanged.

use std::ffi::OsStr;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use cap_std::fs::{Dir, Metadata, OpenOptions};

use super::super::text::cut;
use super::refuse::{failed, refused, too_large};
use super::root::{Root, is_file};
use super::{Reason, Refused, Write, Written};

/// Writes the file. The name of the temporary file contains the random number `chance`.
pub(super) fn write(root: &Root, write: &Write, chance: u64) -> Result<Written, Refused> {
    let bytes = write.text.len();
    let most = root.limits.file_bytes_max;
    if bytes > most {
        let text = format!("the text has {bytes} bytes");
        return Err(too_large(&write.path, &text, "file_bytes_max", most));
    }
    let _one = root.writing();
    let target = Target::find(root, &write.path)?;
    let created = target.there.is_none();
    target.replace(write.text.as_bytes(), chance, |_| Ok(()))?;
    Ok(Written { path: cut(&write.path), bytes: bytes as u64, created })
}

/// The target of a write: an open folder, and a name in this folder.
pub(super) struct Target<'a> {
    /// The path as the caller gave it.
    path: &'a str,
    folder: Dir,
    name: PathBuf,
    /// The metadata of the existing file, or `None` if there is no file yet.
    there: Option<Metadata>,
}

impl<'a> Target<'a> {
    /// Finds the target for a path, and creates missing folders above it. If the path is a link to
    /// a file below the root, the target is this file.
    pub(super) fn find(root: &Root, path: &'a str) -> Result<Target<'a>, Refused> {
        let fail = |error: io::Error| failed(path, &error);
        let mut at = root.relative(path)?.to_owned();
        let is_link = root.dir.symlink_metadata(&at).is_ok_and(|it| it.is_symlink());
        if is_link {
            at = root.dir.canonicalize(&at).map_err(fail)?;
        }
        let Some(name) = at.file_name().map(OsStr::to_owned) else {
            let text = format!("`{}` is a folder", cut(path));
            return Err(refused(Reason::WrongKind, path, text));
        };
        let above = match at.parent() {
            Some(it) if !it.as_os_str().is_empty() => it,
            _ => Path::new("."),
        };
        let folder = match root.dir.open_dir(above) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let made = root.dir.create_dir_all(above);
                made.and_then(|()| root.dir.open_dir(above))
            }
            opened => opened,
        };
        let folder = folder.map_err(fail)?;
        let there = match folder.symlink_metadata(&name) {
            Ok(it) => Some(it),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(fail(error)),
        };
        if let Some(file) = &there {
            is_file(path, file)?;
            if file.permissions().readonly() {
                let text = format!("`{}` is read-only", cut(path));
                return Err(refused(Reason::Failed, path, text));
            }
        }
        Ok(Target { path, folder, name: name.into(), there })
    }

    /// Replaces the content of the file by `bytes`. The bytes are written to a temporary file in
    /// the same folder and synced. Then `may` is called, which can still refuse the change.
    /// Finally, the temporary file is renamed to the file's name.
    pub(super) fn replace(
        &self,
        bytes: &[u8],
        chance: u64,
        may: impl Fn(&Target<'a>) -> Result<(), Refused>,
    ) -> Result<(), Refused> {
        let beside = PathBuf::from(format!(".pumphouse-{chance:016x}~"));
        let done = self.fill(&beside, bytes).map_err(|error| failed(self.path, &error));
        let done = done.and_then(|()| may(self)).and_then(|()| {
            let moved = self.folder.rename(&beside, &self.folder, &self.name);
            moved.map_err(|error| failed(self.path, &error))
        });
        if done.is_err() {
            // Errors are ignored, because the temporary file may never have been created.
            let _ = self.folder.remove_file(&beside);
        }
        done?;
        // The open folder may be a handle that can't be synced (`O_PATH`), so the folder is opened
        // again.
        let kept = self.folder.open(".").and_then(|it| it.sync_all());
        kept.map_err(|error| failed(self.path, &error))
    }

    /// Returns the metadata of the file that is at the target now.
    pub(super) fn now(&self) -> io::Result<Metadata> {
        self.folder.symlink_metadata(&self.name)
    }

    fn fill(&self, beside: &Path, bytes: &[u8]) -> io::Result<()> {
        // An earlier attempt to handle the same message may have left its temporary file.
        match self.folder.remove_file(beside) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file =
            self.folder.open_with(beside, OpenOptions::new().write(true).create_new(true))?;
        if let Some(known) = &self.there {
            file.set_permissions(known.permissions())?;
        }
        file.write_all(bytes)?;
        file.sync_all()
    }
}
