//! The root folder, and the files below it. Every file is opened relative to the open root. Thus no
//! path leads out of the root, even if a folder is replaced by a link meanwhile.

use std::io::{self, Read as _};
use std::path::{Component, Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use cap_std::ambient_authority;
use cap_std::fs::{Dir, File, Metadata, OpenOptions};
use pumphouse::regular_file::no_waiting_flags;
use pumphouse::schema::nearest;

use super::super::text::cut;
use super::limits::FileLimits;
use super::refuse::{failed, refused, too_large};
use super::{Reason, Refused};

/// The maximum number of names in a folder that are compared with a misspelt name.
const COMPARED_MAX: usize = 1_000;

/// The root folder, which is held open.
pub(in super::super) struct Root {
    pub(in super::super) dir: Dir,
    /// The root's path as the settings have it, made absolute.
    given: PathBuf,
    /// The root's real path. A search walks this path, but opens the files that it finds relative
    /// to `dir`.
    pub(in super::super) path: PathBuf,
    pub(super) limits: FileLimits,
    /// A lock that is held while a file is written or edited. Without this lock, an edit could be
    /// lost if two calls run at once.
    writing: Mutex<()>,
}

impl Root {
    /// Opens the root.
    pub(in super::super) fn open(path: &Path, limits: FileLimits) -> io::Result<Root> {
        let path = match path.as_os_str().is_empty() {
            true => Path::new("."),
            false => path,
        };
        let dir = Dir::open_ambient_dir(path, ambient_authority())?;
        let given = std::path::absolute(path)?;
        let path = std::fs::canonicalize(path)?;
        Ok(Root { dir, given, path, limits, writing: Mutex::new(()) })
    }

    /// Returns a caller's path, relative to the root. An absolute path must begin with the root's
    /// path. A path that leads out of the root in another way is refused when it is opened.
    pub(in super::super) fn relative<'a>(&self, path: &'a str) -> Result<&'a Path, Refused> {
        let at = Path::new(path);
        let inside = at.strip_prefix(&self.path).or_else(|_| at.strip_prefix(&self.given));
        let at = inside.unwrap_or(at);
        match at.components().next() {
            None => Ok(Path::new(".")),
            Some(Component::RootDir | Component::Prefix(_)) => Err(refused(
                Reason::Outside,
                path,
                format!(
                    "`{}` leads out of the folder; paths are written from it, as in `a/b.txt`",
                    cut(path)
                ),
            )),
            Some(_) => Ok(at),
        }
    }

    /// Takes the lock for writing. Other calls that write or edit wait until the guard is dropped.
    pub(super) fn writing(&self) -> MutexGuard<'_, ()> {
        // The mutex contains no data, so a panic can't leave inconsistent data behind.
        self.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a file for reading. A folder, or anything else that isn't a file, is refused.
    pub(in super::super) fn file(&self, path: &str) -> Result<(File, Metadata), Refused> {
        let at = self.relative(path)?;
        let there = self.dir.metadata(at).map_err(|error| self.missing(path, &error))?;
        is_file(path, &there)?;
        // By now, a FIFO may be at the path. The opening must not wait for the FIFO's other end.
        let file = self.dir.open_with(at, &no_waiting_options());
        let file = file.map_err(|error| failed(path, &error))?;
        let opened = file.metadata().map_err(|error| failed(path, &error))?;
        is_file(path, &opened)?;
        Ok((file, opened))
    }

    /// Reads a whole file of at most `file_bytes_max` bytes, as text.
    pub(in super::super) fn text(&self, path: &str) -> Result<(String, Metadata), Refused> {
        let (file, there) = self.file(path)?;
        let most = self.limits.file_bytes_max;
        let large = || {
            let text = format!("{} is too large to be edited", cut(path));
            too_large(path, &text, "file_bytes_max", most)
        };
        if there.len() > most as u64 {
            return Err(large());
        }
        let mut bytes = Vec::new();
        let read = file.take(most as u64 + 1).read_to_end(&mut bytes);
        read.map_err(|error| failed(path, &error))?;
        if bytes.len() > most {
            return Err(large());
        }
        Ok((text_of(path, bytes)?, there))
    }

    /// Makes the refusal for an I/O error at a path. If nothing is at the path, the refusal
    /// suggests the most similar name in the folder.
    pub(in super::super) fn missing(&self, path: &str, error: &io::Error) -> Refused {
        let mut refusal = failed(path, error);
        let at = Path::new(path);
        let names = || {
            let folder = match at.parent() {
                Some(it) if !it.as_os_str().is_empty() => it,
                _ => Path::new("."),
            };
            let wanted = at.file_name()?.to_str()?;
            let names = self.dir.read_dir(folder).ok()?.take(COMPARED_MAX);
            let names = names.filter_map(|it| it.ok()?.file_name().into_string().ok());
            let names: Vec<String> = names.collect();
            let near = nearest(wanted, names.iter().map(String::as_str))?;
            at.with_file_name(near).to_str().map(str::to_owned)
        };
        if let Some(near) =
            Some(()).filter(|()| refusal.reason == Reason::Missing).and_then(|()| names())
        {
            refusal.text.push_str(&format!("; did you mean `{}`?", cut(&near)));
        }
        refusal
    }
}

/// Returns a path relative to the root. Returns `None` if the path isn't below the root, or isn't
/// Unicode.
pub(in super::super) fn within<'a>(root: &Path, path: &'a Path) -> Option<&'a str> {
    path.strip_prefix(root).ok()?.to_str()
}

/// Refuses a path that leads to a folder or to anything else that isn't a file.
pub(super) fn is_file(path: &str, metadata: &Metadata) -> Result<(), Refused> {
    let what = match () {
        () if metadata.is_file() => return Ok(()),
        () if metadata.is_dir() => "a folder",
        () => "neither a file nor a folder",
    };
    Err(refused(Reason::WrongKind, path, format!("`{}` is {what}", cut(path))))
}

/// Converts bytes to text. Bytes that aren't UTF-8 or that contain a NUL are refused.
pub(super) fn text_of(path: &str, bytes: Vec<u8>) -> Result<String, Refused> {
    let no_text =
        || refused(Reason::NoText, path, format!("`{}` holds no text in UTF-8", cut(path)));
    if bytes.contains(&0) {
        return Err(no_text());
    }
    String::from_utf8(bytes).map_err(|_| no_text())
}

/// Options to open a file for reading. Opening returns at once, even if the file is a FIFO.
pub(super) fn no_waiting_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    cap_std::fs::OpenOptionsExt::custom_flags(&mut options, no_waiting_flags());
    options
}
