//! The listener `files`: reads, writes, edits, lists and searches the files below one folder, the
//! *root*.
//!
//! ```yaml
//! listeners:
//!   - {use: files, settings: {root: work}}
//! ```
//!
//! The root is opened when the listener is made, and every file is opened relative to this open
//! folder. Thus no path and no link leads out of the root, even if a link is put there during a
//! call. A link to a place below the root is followed, but a search skips the links that it finds.
//! FIFOs and devices are refused, so that no call waits for them. [`limits::FileLimits`] has the
//! limits of reading and writing.
//!
//! A manifest may have several such listeners, each with its own root and name. The namespace of a
//! listener's payloads contains the listener's name.

mod diff;
pub mod limits;
mod refuse;
pub(super) mod root;
mod ignore_files;
pub(super) mod walk;
mod search;
mod list;
mod read;
mod write;
mod edit;
#[cfg(test)]
mod tests;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use pumphouse::listener::{Effects, ManifestPath};
use pumphouse::prelude::*;
use serde::Deserialize;

use limits::FileLimits;
use root::Root;

/// The listener's default name. The payloads' namespace contains the name in use.
const NAME: &str = "files";

/// Reads a text file, from a line on.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/files/v1")]
pub struct Read {
    /// The file, relative to the listener's folder.
    #[payload(example = "src/main.rs")]
    pub path: String,
    /// The first line to read; default 1.
    #[payload(min = 1, example = "1")]
    pub from: Option<u64>,
    /// How many lines; by default as many as fit.
    #[payload(min = 1, example = "200")]
    pub lines: Option<u64>,
}

/// Lines of a file.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/files/v1")]
pub struct FileText {
    /// The file.
    #[payload(attribute, example = "src/main.rs")]
    pub path: String,
    /// The first line that is shown, counted from 1.
    #[payload(attribute)]
    pub from: u64,
    /// The last line that is shown.
    #[payload(attribute)]
    pub to: u64,
    /// The line to go on from, if the file has more.
    #[payload(attribute, note)]
    pub next: Option<u64>,
    /// How many characters were replaced by U+FFFD, since XML can't hold them.
    #[payload(attribute, note)]
    pub replaced: Option<u64>,
    /// The lines, with their ends.
    #[payload(value, example = "fn main() {}")]
    pub text: String,
}

/// Writes a file, or replaces an existing one; missing folders are made.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/files/v1")]
pub struct Write {
    /// The file, relative to the listener's folder.
    #[payload(example = "notes/today.md")]
    pub path: String,
    /// The file's whole content.
    #[payload(example = "Buy milk.")]
    pub text: String,
}

/// The file was written.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/files/v1")]
pub struct Written {
    /// The file.
    #[payload(attribute, value, example = "notes/today.md")]
    pub path: String,
    /// Its size in bytes.
    #[payload(attribute, note)]
    pub bytes: u64,
    /// Whether the file is new.
    #[payload(attribute, note)]
    pub created: bool,
}

/// Replaces a text that occurs exactly once in a file.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/files/v1")]
pub struct Edit {
    /// The file, relative to the listener's folder.
    #[payload(example = "src/main.rs")]
    pub path: String,
    /// The text to replace, exactly as in the file, and long enough to occur only once.
    #[payload(example = "fn main() {}")]
    pub old: String,
    /// The new text.
    #[payload(example = "fn main() { run(); }")]
    pub new: String,
}

/// A text was replaced.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/files/v1")]
pub struct Edited {
    /// The file.
    #[payload(attribute, example = "src/main.rs")]
    pub path: String,
    /// The change, as a unified diff.
    #[payload(value, example = "@@ -1,1 +1,1 @@\n-fn main() {}\n+fn main() { run(); }\n")]
    pub diff: String,
}

/// Lists a folder.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/files/v1")]
pub struct List {
    /// The folder, relative to the listener's folder; by default the listener's folder.
    #[payload(example = "src")]
    pub path: Option<String>,
}

/// The items of a folder, by name.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/files/v1")]
pub struct Listing {
    /// The folder.
    #[payload(attribute, example = "src")]
    pub path: String,
    /// Whether there are more items.
    #[payload(attribute, note)]
    pub more: bool,
    /// A line for each item.
    #[payload(value, example = "main.rs (120 bytes)\n")]
    pub text: String,
    /// The items.
    pub item: Vec<Listed>,
}

/// An item of a folder.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
pub struct Listed {
    /// Its name.
    #[payload(attribute, example = "main.rs")]
    pub name: String,
    /// Its kind.
    #[payload(attribute)]
    pub kind: Kind,
    /// The size of a file.
    #[payload(attribute)]
    pub bytes: Option<u64>,
}

/// The kind of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Payload)]
pub enum Kind {
    /// A file.
    File,
    /// A folder.
    Folder,
    /// A link to something else.
    Link,
    /// A FIFO, a socket or a device.
    Other,
}

/// Finds lines that match a regular expression, in the files below a folder. Hidden files and files
/// that a .gitignore excludes are skipped.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/files/v1")]
pub struct Search {
    /// A regular expression as ripgrep takes it.
    #[payload(example = r"fn \w+\(")]
    pub pattern: String,
    /// The folder or file, relative to the listener's folder; by default the listener's folder.
    #[payload(example = "src")]
    pub path: Option<String>,
}

/// The lines that match.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/files/v1")]
pub struct Found {
    /// How many files were searched.
    #[payload(attribute)]
    pub files: u64,
    /// The limit that stopped the search early, or `timeout`.
    #[payload(attribute, note)]
    pub stopped_by: Option<String>,
    /// Each hit on a line, as in `src/main.rs:1: fn main() {}`.
    #[payload(value, example = "src/main.rs:1: fn main() {}\n")]
    pub text: String,
    /// The lines.
    pub hit: Vec<Hit>,
}

/// A line that matches.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
pub struct Hit {
    /// The file, relative to the listener's folder.
    #[payload(attribute, example = "src/main.rs")]
    pub path: String,
    /// The line, counted from 1.
    #[payload(attribute)]
    pub line: u64,
    /// The line, or its beginning.
    #[payload(example = "fn main() {}")]
    pub text: String,
}

/// Shows the tree of the files below a folder. Hidden files and files that a
/// `.gitignore` excludes are skipped.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/files/v1")]
pub struct Tree {
    /// The folder, relative to the listener's folder; by default the listener's folder.
    #[payload(example = "src")]
    pub path: Option<String>,
    /// How many levels are shown; default 8.
    #[payload(min = 1, example = "3")]
    pub max_depth: Option<u64>,
    /// The form; default `tree`.
    #[payload(no_example)]
    pub format: Option<TreeForm>,
}

/// The form of a tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Payload)]
#[non_exhaustive]
pub enum TreeForm {
    /// Each file is indented below its folder.
    #[default]
    Tree,
    /// Each file has a line with its whole path.
    Paths,
}

/// The tree of files, by name.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/files/v1")]
pub struct FileTree {
    /// How many files there are, including those that are too deep to be shown.
    #[payload(attribute, example = "2")]
    pub files: u64,
    /// Whether the search for files stopped early, because of a limit or the time.
    #[payload(attribute, note)]
    pub more: bool,
    /// A line for each file and folder.
    #[payload(text, value, example = "src/\n  main.rs\n  lib.rs\n")]
    pub text: String,
}

/// The request was refused, or failed.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/files/v1")]
pub struct Refused {
    /// Why, in a word.
    #[payload(attribute)]
    pub reason: Reason,
    /// The path or the pattern, as it was given.
    #[payload(attribute, example = "src/main.rs")]
    pub path: String,
    /// The limit that was exceeded, if any.
    #[payload(attribute, no_example)]
    pub limit: Option<String>,
    /// Why, and how to correct it.
    #[payload(value, example = "this text stands twice in src/main.rs")]
    pub text: String,
    /// The lines where a text that must be unique occurs; of many, the first ones.
    pub line: Vec<u64>,
}

/// Why a request was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Payload)]
pub enum Reason {
    /// The file, folder or line doesn't exist.
    Missing,
    /// The path leads out of the listener's folder.
    Outside,
    /// A folder, a FIFO or a device is there instead of a file, or a file instead of a folder.
    WrongKind,
    /// The file isn't text in UTF-8.
    NoText,
    /// A limit is exceeded.
    TooLarge,
    /// The text to replace isn't in the file.
    NotFound,
    /// The text to replace occurs more than once.
    Ambiguous,
    /// Nothing would change.
    Unchanged,
    /// Another program changed the file at the same time.
    Changed,
    /// The pattern is no regular expression.
    Pattern,
    /// The file is read-only, or the system failed.
    Failed,
}

/// The `settings` of `use: files` in a manifest.
#[derive(Clone, Debug, Deserialize)]
#[non_exhaustive]
pub struct Settings {
    /// The root. No request reaches a file outside of this folder.
    pub root: ManifestPath,
    /// Whether the listener may only read.
    #[serde(default)]
    pub read_only: bool,
    /// The limits of one request.
    #[serde(default)]
    pub limits: FileLimits,
}

impl Settings {
    /// Makes settings for a folder that may be read and written, with the default limits.
    #[must_use]
    pub fn new(root: impl Into<String>) -> Settings {
        let root = root.into().into();
        Settings { root, read_only: false, limits: FileLimits::default() }
    }
}

/// Makes the listener `files`.
///
/// # Errors
/// If the folder doesn't exist or can't be opened.
pub fn files(settings: &Settings) -> Result<Listener, Unusable> {
    let path = settings.root.path();
    let root = Root::open(&path, settings.limits);
    let root = root.map_err(|error| Unusable { path, error })?;
    let listener = Listener::with_state(NAME, Arc::new(root))
        .own_namespace()
        .blocking()
        .on(read)
        .on(list)
        .on(tree)
        .on(search);
    let text = match settings.read_only {
        true => "Reads, lists and searches the files of a folder.",
        false => "Reads, writes, edits, lists and searches the files of a folder.",
    };
    let listener = match settings.read_only {
        true => listener.reader(),
        false => {
            let listener = listener.on(write).on(edit).effects(Effects::Writes);
            listener.idempotent_for(|it| it.local() != Edit::NAME.local())
        }
    };
    Ok(listener.describe(text).stateless())
}

/// The reason why a folder can't be the root.
#[derive(Debug)]
pub struct Unusable {
    path: PathBuf,
    error: io::Error,
}

impl std::fmt::Display for Unusable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let path = self.path.display();
        match self.error.kind() {
            io::ErrorKind::NotFound => write!(f, "there is no folder {path}; make it first"),
            _ => write!(f, "the folder {path} can't be opened: {}", self.error),
        }
    }
}

impl std::error::Error for Unusable {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}

async fn read(State(root): State<Arc<Root>>, read: Read) -> Result<FileText, Refused> {
    read::read(&root, read)
}

async fn list(State(root): State<Arc<Root>>, list: List) -> Result<Listing, Refused> {
    list::list(&root, &list.path.unwrap_or_else(|| ".".to_owned()))
}

async fn tree(
    State(root): State<Arc<Root>>,
    cancel: Cancel,
    tree: Tree,
) -> Result<FileTree, Refused> {
    list::tree(&root, &tree, &|| cancel.is_cancelled())
}

async fn search(
    State(root): State<Arc<Root>>,
    cancel: Cancel,
    search: Search,
) -> Result<Found, Refused> {
    let path = search.path.unwrap_or_else(|| ".".to_owned());
    search::search(&root, &search.pattern, &path, &|| cancel.is_cancelled())
}

async fn write(
    State(root): State<Arc<Root>>,
    mut random: Random,
    write: Write,
) -> Result<Written, Refused> {
    write::write(&root, &write, random.next_u64())
}

async fn edit(
    State(root): State<Arc<Root>>,
    mut random: Random,
    edit: Edit,
) -> Result<Edited, Refused> {
    edit::edit(&root, &edit, random.next_u64())
}
