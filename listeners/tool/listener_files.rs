//! The files of listeners that programs of the organism mustn't use.

use std::path::PathBuf;

/// The files of a listener that no program of `command` or `shell` may use. A listener declares
/// them with [`Listener::extension`](pumphouse::listener::Listener::extension).
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ListenerFiles {
    /// Files of secrets, which no program may read.
    pub secret: Vec<PathBuf>,
    /// Files that the listener writes, and no program may.
    pub own: Vec<PathBuf>,
}

impl ListenerFiles {
    /// Files of secrets.
    #[must_use]
    pub fn secret(files: impl IntoIterator<Item = PathBuf>) -> ListenerFiles {
        ListenerFiles { secret: files.into_iter().collect(), own: Vec::new() }
    }

    /// A file that the listener writes.
    #[must_use]
    pub fn own(file: PathBuf) -> ListenerFiles {
        ListenerFiles { secret: Vec::new(), own: vec![file] }
    }
}
