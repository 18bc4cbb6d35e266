//! The listener `documents`: gathers the documents below a folder in one text, mostly for a feed.
//!
//! ```yaml
//! listeners:
//!   - {use: documents, settings: {root: .}}
//! ```
//!
//! Documents are Markdown and other text (program code, too), HTML, PDF and XML dumps of MediaWiki.
//! Hidden files, links, and files that a `.gitignore` excludes are skipped. The text is cut at
//! `max_tokens` or at a limit. If documents are left out, the last lines name some of them.

mod convert;

use std::collections::{HashMap, HashSet};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use pumphouse::listener::ManifestPath;
use pumphouse::prelude::*;
use serde::Deserialize;

use self::convert::Document;
use super::files::limits::FileLimits;
use super::files::root::Root;
use super::files::walk::Walk;
use super::files::{Reason, Refused as FileRefused};
use super::pdf::PDF_SECONDS_MAX;
use super::text::{cut, known};

/// The listener's default name. The payloads' namespace contains the name in use.
const NAME: &str = "documents";
/// The maximum number of left-out documents that the text names.
const NAMED_MAX: usize = 5;
/// The number of characters that count as one token. Feeds count tokens in the same way.
const CHARACTERS_PER_TOKEN: u64 = 4;
/// The time limit for all files together, except PDFs, in seconds.
const SECONDS_MAX: u64 = 30;

/// Gathers documents in one text, each below a heading with its path.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/documents/v1")]
pub struct Gather {
    /// Files and folders, in the order in which they are gathered; default all.
    #[payload(example = "docs/")]
    pub paths: Vec<String>,
    /// How many tokens the text may have, at four characters each.
    #[payload(no_example)]
    pub max_tokens: Option<u64>,
    /// The form of the text; Markdown is the only one.
    #[payload(no_example)]
    pub format: Option<TextForm>,
}

/// The form of the text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Payload)]
#[non_exhaustive]
pub enum TextForm {
    /// Markdown: each document below a heading of the second level.
    #[default]
    Markdown,
}

/// The documents' text.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/documents/v1")]
pub struct Gathered {
    /// How many documents the text has.
    #[payload(attribute, example = "1")]
    pub documents: u64,
    /// How many documents are left out.
    #[payload(attribute, note, example = "0")]
    pub left_out: u64,
    /// The text.
    #[payload(text, value, example = "## README.md\n\nBrews tea.\n")]
    pub text: String,
}

/// Nothing is gathered.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/documents/v1")]
pub struct Refused {
    /// Why, in a word.
    #[payload(attribute)]
    pub reason: Reason,
    /// The path.
    #[payload(attribute, example = "dosc")]
    pub path: String,
    /// Why, and how to correct it.
    #[payload(value, example = "there is no `dosc`; did you mean `docs`?")]
    pub text: String,
}

impl From<FileRefused> for Refused {
    fn from(FileRefused { reason, path, text, .. }: FileRefused) -> Refused {
        Refused { reason, path, text }
    }
}

/// The `settings` of `use: documents` in a manifest.
#[derive(Clone, Debug, Deserialize)]
#[non_exhaustive]
pub struct Settings {
    /// The folder with the documents.
    pub root: ManifestPath,
    /// The limits of one request.
    #[serde(default)]
    pub limits: DocumentLimits,
}

impl Settings {
    /// Makes settings for a folder, with the default limits.
    #[must_use]
    pub fn new(root: impl Into<String>) -> Settings {
        Settings { root: root.into().into(), limits: DocumentLimits::default() }
    }
}

/// The limits of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct DocumentLimits {
    /// The maximum number of entries of folders that one request looks at: files, folders, links
    /// and all others, hidden and ignored ones, too.
    pub files_max: usize,
    /// The maximum number of bytes of one file. A larger file is left out.
    pub file_bytes_max: usize,
    /// The maximum number of PDFs that are read. Each PDF takes a process of its own.
    pub pdfs_max: usize,
    /// The maximum number of bytes of the text, without the notes about what is left out.
    pub text_bytes_max: usize,
}

impl Default for DocumentLimits {
    fn default() -> DocumentLimits {
        DocumentLimits {
            files_max: 5_000,
            file_bytes_max: 8 << 20,
            pdfs_max: 8,
            text_bytes_max: 1 << 20,
        }
    }
}

/// The folder with the documents, and the limits of one request.
struct Folder {
    root: Root,
    limits: DocumentLimits,
}

/// Makes the listener `documents`.
///
/// # Errors
/// If the folder doesn't exist or can't be opened.
pub fn documents(settings: &Settings) -> Result<Listener, String> {
    let path = settings.root.path();
    let root = Root::open(&path, FileLimits::default());
    let root = root.map_err(|error| format!("root: {}: {error}", path.display()))?;
    let limits = settings.limits;
    let pdfs = limits.pdfs_max as u64;
    Ok(Listener::with_state(NAME, Arc::new(Folder { root, limits }))
        .own_namespace()
        .blocking()
        .on(gather)
        .timeout(Duration::from_secs(SECONDS_MAX + pdfs.saturating_mul(PDF_SECONDS_MAX)))
        .describe("Gathers the documents of a folder in one text.")
        .reader()
        .stateless())
}

async fn gather(
    State(folder): State<Arc<Folder>>,
    cancel: Cancel,
    request: Gather,
) -> Result<Gathered, Refused> {
    let most = request.max_tokens.map_or(u64::MAX, |it| it.saturating_mul(CHARACTERS_PER_TOKEN));
    let mut text = Gathering {
        text: String::new(),
        characters_left: usize::try_from(most).unwrap_or(usize::MAX),
        bytes_max: folder.limits.text_bytes_max,
        documents: 0,
        left_out: Vec::new(),
    };
    let all = [".".to_owned()];
    let paths = if request.paths.is_empty() { &all[..] } else { &request.paths };
    let (names, is_whole) = folder.names(paths)?;
    let mut pdfs = 0;
    for name in &names {
        if text.is_full() || cancel.is_cancelled() {
            text.left_out.push(format!("{name} (no room)"));
            continue;
        }
        match folder.document(name, &mut pdfs).await {
            Ok(document) => text.add(name, &document),
            Err(why) => text.left_out.push(format!("{name} ({why})")),
        }
    }
    Ok(text.gathered(is_whole))
}

impl Folder {
    /// Returns the paths of the files at and below the given paths, each once, in the order of the
    /// given paths. The folder is walked once. The flag is false if the walk left something out,
    /// since it had looked at `files_max` entries.
    fn names(&self, paths: &[String]) -> Result<(Vec<String>, bool), Refused> {
        let mut wanted = Wanted::default();
        for path in paths {
            let at = self.root.relative(path)?;
            let there = self.root.dir.metadata(at);
            there.map_err(|error| self.root.missing(path, &error))?;
            let real = self.root.dir.canonicalize(at);
            let real = real.map_err(|error| self.root.missing(path, &error))?;
            wanted.add(real.components().filter(|it| *it != Component::CurDir).collect());
        }
        // The walk begins at the root, so that the `.gitignore` of each folder on the way applies.
        let dir = self.root.dir.try_clone().map_err(|error| self.root.missing(".", &error))?;
        let looks_at = |path: &Path| wanted.leads_to(path);
        let mut walk = Walk::below(dir, self.limits.files_max, &looks_at);
        let mut found = Vec::new();
        while let Some(name) = walk.next_file(&looks_at) {
            found.extend(wanted.place(Path::new(&name)).map(|place| (place, name)));
        }
        Ok((in_order(found), !walk.is_cut()))
    }

    /// Reads a document. The error says in a few words why the document is left out.
    async fn document(&self, name: &str, pdfs: &mut usize) -> Result<Document, String> {
        let opened = self.root.file(name).map_err(|_| "it can't be opened".to_owned())?;
        let most = (self.limits.file_bytes_max, self.limits.text_bytes_max);
        let read = convert::read(name, opened, most)?;
        let pdf = match read {
            convert::Read::Document(document) => return Ok(document),
            convert::Read::Pdf(pdf) => pdf,
        };
        *pdfs += 1;
        match *pdfs > self.limits.pdfs_max {
            true => Err("pdfs_max".to_owned()),
            false => convert::pdf(&pdf).await,
        }
    }
}

/// The paths that a request names.
#[derive(Default)]
struct Wanted {
    /// Maps each path to its place in the request.
    places: HashMap<PathBuf, usize>,
    /// The folders above these paths.
    above: HashSet<PathBuf>,
}

impl Wanted {
    fn add(&mut self, path: PathBuf) {
        let place = self.places.len();
        self.above.extend(path.ancestors().skip(1).map(Path::to_owned));
        self.places.entry(path).or_insert(place);
    }

    /// The place of the first wanted path at or below which a path is. None if there is none.
    fn place(&self, path: &Path) -> Option<usize> {
        path.ancestors().filter_map(|it| self.places.get(it)).min().copied()
    }

    /// Whether a path is wanted, or a folder on the way to one that is.
    fn leads_to(&self, path: &Path) -> bool {
        self.above.contains(path) || self.place(path).is_some()
    }
}

/// The names in the order of the wanted paths that have them.
fn in_order(mut found: Vec<(usize, String)>) -> Vec<String> {
    found.sort_by_key(|(place, _)| *place);
    found.into_iter().map(|(_, name)| name).collect()
}

/// The text so far, and the remaining room.
struct Gathering {
    text: String,
    characters_left: usize,
    bytes_max: usize,
    documents: u64,
    /// The left-out documents, each with the reason.
    left_out: Vec<String>,
}

impl Gathering {
    fn is_full(&self) -> bool {
        self.characters_left == 0 || self.text.len() >= self.bytes_max
    }

    /// Adds a document below a heading. The document is cut if there isn't enough room.
    fn add(&mut self, name: &str, document: &Document) {
        let is_first = self.text.is_empty();
        let gap = if is_first { "" } else { "\n" };
        let name: String =
            name.chars().map(|it| known(if it == '\n' { ' ' } else { it })).collect();
        let section = format!("{gap}## {name}\n\n{}\n", document.text.trim_end());
        let in_characters = section.char_indices().nth(self.characters_left);
        let end = in_characters.map_or(section.len(), |(at, _)| at);
        let end = section.floor_char_boundary(end.min(self.bytes_max - self.text.len()));
        let shown = &section[..end];
        self.characters_left -= shown.chars().count();
        self.text += shown;
        self.documents += 1;
        if end < section.len() || document.is_cut {
            if end < section.len() {
                self.characters_left = 0;
            }
            if !self.text.ends_with('\n') {
                self.text.push('\n');
            }
            self.text += "[Content truncated]\n";
        }
    }

    fn gathered(mut self, is_whole: bool) -> Gathered {
        let left_out = self.left_out.len();
        if left_out > 0 {
            let named: Vec<String> =
                self.left_out.iter().take(NAMED_MAX).map(|it| cut(it)).collect();
            let more = match left_out.checked_sub(NAMED_MAX) {
                Some(more @ 1..) => format!(", and {more} more"),
                _ => String::new(),
            };
            self.text += &format!("\n[Left out: {}{more}]\n", named.join(", "));
        }
        if !is_whole {
            self.text += "\n[There are more files than files_max]\n";
        }
        Gathered { documents: self.documents, left_out: left_out as u64, text: self.text }
    }
}
