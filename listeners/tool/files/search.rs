//! `search`: finds lines in the files below a folder, by ripgrep's matcher.
//!
//! Folders and files are opened relative to the open root. Thus no file outside the root is read,
//! even if a folder is replaced by a link meanwhile.

use std::io;
use std::ops::Range;

use cap_std::fs::File;
use grep_matcher::Matcher as _;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkMatch};

use super::super::text::{cut, known, lossy};
use super::limits::FileLimits;
use super::refuse::{refused, too_large};
use super::root::Root;
use super::walk::Walk;
use super::{Found, Hit, Reason, Refused};

/// The maximum number of bytes of a compiled pattern.
const COMPILED_BYTES_MAX: usize = 4 * 1024 * 1024;
/// The maximum number of bytes of memory that the searcher uses for lines.
const HEAP_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Searches a folder or a file. The search ends early if a limit is reached or if `is_over` returns
/// true.
pub(super) fn search(
    root: &Root,
    pattern: &str,
    path: &str,
    is_over: &dyn Fn() -> bool,
) -> Result<Found, Refused> {
    let limits = &root.limits;
    let matcher = matcher(pattern, limits)?;
    let at = root.relative(path)?;
    let there = root.dir.metadata(at).map_err(|error| root.missing(path, &error))?;
    let (path_now, hit, stopped_by) = (String::new(), Vec::new(), None);
    let mut hits =
        Hits { limits, matcher: &matcher, path: path_now, hit, bytes: 0, is_over, stopped_by };
    let mut files = 0;
    let mut searcher = SearcherBuilder::new()
        .line_number(true)
        .heap_limit(Some(HEAP_BYTES_MAX))
        .binary_detection(BinaryDetection::quit(0))
        .build();
    if there.is_file() {
        let (file, _) = root.file(path)?;
        hits.path = cut(path);
        hits.look(&mut searcher, file);
        return Ok(hits.found(1));
    }
    let mut walk = walk(root, path)?;
    while let Some(name) = walk.next_file(&|_| true) {
        let Ok((file, opened)) = root.file(&name) else { continue };
        if opened.len() > limits.searched_file_bytes_max as u64 {
            continue;
        }
        files += 1;
        hits.path = name.chars().map(known).collect();
        hits.look(&mut searcher, file);
        if hits.stopped_by.is_some() {
            break;
        }
    }
    if walk.is_cut() && hits.stopped_by.is_none() {
        hits.stopped_by = Some("searched_files_max");
    }
    Ok(hits.found(files))
}

/// Walks through the files below a folder, and looks at `searched_files_max` entries at most. The
/// walk begins at the folder's real path.
pub(super) fn walk(root: &Root, path: &str) -> Result<Walk, Refused> {
    let real = root.dir.canonicalize(root.relative(path)?);
    let top = real.map_err(|error| root.missing(path, &error))?;
    let dir = root.dir.try_clone().map_err(|error| root.missing(path, &error))?;
    Ok(Walk::at(dir, &top, root.limits.searched_files_max, &|_| true))
}

fn matcher(pattern: &str, limits: &FileLimits) -> Result<RegexMatcher, Refused> {
    let most = limits.pattern_bytes_max;
    if pattern.len() > most {
        let text = format!("the pattern has {} bytes", pattern.len());
        return Err(too_large(pattern, &text, "pattern_bytes_max", most));
    }
    let mut builder = RegexMatcherBuilder::new();
    builder.size_limit(COMPILED_BYTES_MAX).dfa_size_limit(COMPILED_BYTES_MAX);
    builder.multi_line(true).line_terminator(Some(b'\n'));
    // With the flag `R`, `$` matches before a Windows line end, too. A pattern that names the
    // carriage return means this character itself. Errors show the pattern without the flag.
    let with_flag = match names_carriage_return(pattern) {
        true => None,
        false => builder.build(&format!("(?R){pattern}")).ok(),
    };
    with_flag.map_or_else(|| builder.build(pattern), Ok).map_err(|error| {
        let text = format!("the pattern is no regular expression: {error}");
        refused(Reason::Pattern, pattern, text.chars().map(known).collect::<String>())
    })
}

/// Whether a pattern has a carriage return, as the character or as an escape such as `\r` or
/// `\x0D`.
fn names_carriage_return(pattern: &str) -> bool {
    let mut rest = pattern;
    while let Some(at) = rest.find(['\\', '\r']) {
        let Some(escaped) = rest[at..].strip_prefix('\\') else { return true };
        let mut chars = escaped.chars();
        let digits = match chars.next() {
            Some('r') => return true,
            Some('x') => 2,
            Some('u') => 4,
            Some('U') => 8,
            _ => 0,
        };
        rest = chars.as_str();
        let braced = rest.strip_prefix('{').and_then(|it| it.split_once('}')).map(|it| it.0);
        let number = braced.or_else(|| rest.get(..digits)).unwrap_or_default();
        if digits > 0 && u32::from_str_radix(number, 16) == Ok(u32::from('\r')) {
            return true;
        }
    }
    false
}

/// The lines that were found so far, and the state of the search.
struct Hits<'a> {
    limits: &'a FileLimits,
    matcher: &'a RegexMatcher,
    /// The file that is being searched.
    path: String,
    hit: Vec<Hit>,
    /// The number of bytes that were read, in all files together.
    bytes: usize,
    is_over: &'a dyn Fn() -> bool,
    stopped_by: Option<&'static str>,
}

impl Hits<'_> {
    /// Searches one file. The search of this file stops at an error and at a NUL byte.
    fn look(&mut self, searcher: &mut Searcher, file: File) {
        let left = self.limits.searched_bytes_max.saturating_sub(self.bytes);
        let mut counted = Counted { file, left, read: 0 };
        // An error is ignored: the lines that were found before it are still shown.
        let _ = searcher.search_reader(self.matcher, &mut counted, &mut *self);
        self.bytes += counted.read;
        if self.bytes >= self.limits.searched_bytes_max {
            self.stopped_by = Some("searched_bytes_max");
        }
        if (self.is_over)() {
            self.stopped_by = Some("timeout");
        }
    }

    fn found(self, files: u64) -> Found {
        let line = |Hit { path, line, text }: &Hit| format!("{path}:{line}: {text}\n");
        let text = match &self.hit[..] {
            [] => {
                format!("No line matches, in {files} file{}.\n", if files == 1 { "" } else { "s" })
            }
            hits => hits.iter().map(line).collect(),
        };
        Found { files, stopped_by: self.stopped_by.map(str::to_owned), text, hit: self.hit }
    }
}

impl Sink for Hits<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, sink_match: &SinkMatch<'_>) -> io::Result<bool> {
        if self.hit.len() == self.limits.hits_max {
            self.stopped_by = Some("hits_max");
            return Ok(false);
        }
        let bytes = sink_match.bytes();
        let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
        let found = self.matcher.find(bytes).ok().flatten();
        let found = found.map_or(0..0, |it| it.start()..it.end());
        let line = sink_match.line_number().unwrap_or(1);
        let text = around(bytes, found, self.limits.hit_bytes_max);
        self.hit.push(Hit { path: self.path.clone(), line, text });
        Ok(true)
    }
}

/// Returns a line as text. Of a line with more than `most` bytes, the part around `found` is shown,
/// with `…` where something is left out.
fn around(line: &[u8], found: Range<usize>, most: usize) -> String {
    let length = found.len().min(most);
    // A third of the room stands before what was found.
    let from = found.start.saturating_sub((most - length) / 3).min(line.len().saturating_sub(most));
    let to = line.len().min(from + most);
    let is_inside = |at: usize| line.get(at).is_some_and(|it| it & 0xC0 == 0x80);
    let from = (from..to).find(|at| !is_inside(*at)).unwrap_or(to);
    let to = (from..=to).rev().find(|at| !is_inside(*at)).unwrap_or(from);
    let (before, after) = (if from > 0 { "…" } else { "" }, if to < line.len() { "…" } else { "" });
    format!("{before}{}{after}", lossy(&line[from..to]))
}

/// A file of which at most `left` more bytes may be read.
struct Counted {
    file: File,
    left: usize,
    read: usize,
}

impl io::Read for &mut Counted {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let most = to.len().min(self.left);
        let read = self.file.read(&mut to[..most])?;
        self.left -= read;
        self.read += read;
        Ok(read)
    }
}
