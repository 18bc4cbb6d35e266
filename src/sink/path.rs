//! Makes the path of a thread's file. The thread's id is escaped, so no id leads into another
//! folder.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use crate::sink::NoSink;

/// The placeholder for the thread.
const THREAD: &str = "{thread_id}";
/// The longest escaped id, in bytes: file systems allow 255 for a name, and some tools fewer.
const NAME_BYTES_MAX: usize = 120;
/// How many digits of the id's digest stand at the end of an escaped id that was cut.
const DIGEST_DIGITS: usize = 16;
/// The text that replaces the placeholder for items that have no thread.
const NO_THREAD: &str = "-";

/// A path that may have `{thread_id}` in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Template {
    /// The folder that the path is relative to.
    folder: PathBuf,
    /// The parts around `{thread_id}`.
    parts: Vec<String>,
}

impl Template {
    /// Reads a path. Fails unless the path is UTF-8, ends in a file name, and has no braces besides
    /// `{thread_id}`.
    pub(super) fn parse(path: &Path) -> Result<Template, NoSink> {
        let wrong = |text: String| NoSink { setting: "path", text };
        let Some(text) = path.to_str() else {
            let text = format!("{} is no text; give the file another path", path.display());
            return Err(wrong(text));
        };
        let parts: Vec<String> = text.split(THREAD).map(str::to_owned).collect();
        if parts.iter().any(|it| it.contains(['{', '}'])) {
            let text = "only {thread_id} can stand in braces here; write the rest without them";
            return Err(wrong(text.to_owned()));
        }
        if path.file_name().is_none() || text.ends_with(['/', '\\']) {
            let text = "this is no file; end it with a name, as in sinks/{thread_id}/stream.jsonl";
            return Err(wrong(text.to_owned()));
        }
        Ok(Template { folder: PathBuf::new(), parts })
    }

    /// Makes the path relative to this folder.
    pub(super) fn within(self, folder: &Path) -> Template {
        Template { folder: folder.to_owned(), ..self }
    }

    /// Whether the path may name a file of the log. The names of a log's files all begin with the
    /// log's own name. If `{thread_id}` stands in a folder's name, only the path for items without
    /// a thread is checked.
    pub(super) fn may_be_of(&self, log: &Path) -> bool {
        let path = self.fill(None);
        let folder = |it: &Path| {
            let folder = it.parent().unwrap_or(Path::new(""));
            let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
            let plain = || std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
            std::fs::canonicalize(folder).unwrap_or_else(|_| plain())
        };
        let name = |it: &Path| it.file_name().map(|it| it.to_string_lossy().into_owned());
        let is_named = self.parts.last().is_some_and(|it| !it.contains(['/', '\\']));
        let varies = self.parts.len() > 1 && is_named;
        let (own, other) = (name(&path).unwrap_or_default(), name(log).unwrap_or_default());
        folder(&path) == folder(log) && (varies || own.starts_with(&other))
    }

    /// The path for a thread, or for items that have no thread.
    pub(super) fn fill(&self, thread: Option<&str>) -> PathBuf {
        let name = thread.map_or_else(|| NO_THREAD.to_owned(), folder_name);
        self.folder.join(self.parts.join(&name))
    }
}

/// Escapes a thread's id. ASCII letters, digits, `-`, `_` and `.` stay. Any other byte becomes `%`
/// and two hexadecimal digits, and so does a leading `.` or `-`. An id that is too long is cut, and
/// ends in `%` and a digest. The empty id becomes `%`.
fn folder_name(thread: &str) -> String {
    let mut name = String::with_capacity(thread.len());
    for (at, byte) in thread.bytes().enumerate() {
        let is_plain = byte.is_ascii_alphanumeric() || byte == b'_';
        match is_plain || at > 0 && matches!(byte, b'.' | b'-') {
            true => name.push(char::from(byte)),
            // Writing to a `String` can't fail.
            false => write!(name, "%{byte:02X}").unwrap_or_default(),
        }
    }
    if name.is_empty() {
        return "%".to_owned();
    }
    if name.len() > NAME_BYTES_MAX {
        let digest = blake3::hash(thread.as_bytes()).to_hex();
        name.truncate(NAME_BYTES_MAX - DIGEST_DIGITS - 1);
        name.push('%');
        name.push_str(&digest[..DIGEST_DIGITS]);
    }
    name
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Component;

    use super::*;

    fn filled(path: &str, thread: &str) -> PathBuf {
        Template::parse(Path::new(path)).unwrap().fill(Some(thread))
    }

    #[test]
    fn a_thread_is_one_folder() {
        for (thread, folder) in [
            ("sess-k3v9x2ma", "sess-k3v9x2ma"),
            ("organism", "organism"),
            ("a.b_c", "a.b_c"),
            ("..", "%2E."),
            (".", "%2E"),
            ("-", "%2D"),
            ("../../etc/passwd", "%2E.%2F..%2Fetc%2Fpasswd"),
            ("/etc", "%2Fetc"),
            ("a\\b:c\0", "a%5Cb%3Ac%00"),
            ("a%2Fb", "a%252Fb"),
            ("{thread_id}", "%7Bthread_id%7D"),
            ("é", "%C3%A9"),
            ("", "%"),
        ] {
            let path = filled("sinks/{thread_id}/stream.jsonl", thread);
            assert_eq!(path, Path::new("sinks").join(folder).join("stream.jsonl"), "{thread:?}");
        }
    }

    #[test]
    fn no_thread_leads_out_and_no_two_share_a_folder() {
        let long = |end: &str| format!("{}{end}", "x/".repeat(400));
        let threads = ["..", "../..", "/", "a/b", "a%2Fb", "a", "A/../b", &long("a"), &long("b")];
        let mut names = BTreeSet::new();
        for thread in threads {
            let path = filled("{thread_id}", thread);
            let parts: Vec<Component<'_>> = path.components().collect();
            assert!(matches!(parts[..], [Component::Normal(_)]), "{thread:?}: {parts:?}");
            assert!(path.as_os_str().len() <= NAME_BYTES_MAX);
            assert!(names.insert(path), "{thread:?}");
        }
    }

    #[test]
    fn no_file_of_the_log_is_written_to() {
        let data = tempfile::tempdir().unwrap();
        let log = data.path().join("pumphouse.db");
        for (path, may) in [
            ("pumphouse.db", true),
            ("pumphouse.db-sink-file.json", true),
            ("{thread_id}.db", true),
            ("../{thread_id}/pumphouse.db", false),
            ("stream.jsonl", false),
            ("sinks/{thread_id}/stream.jsonl", false),
        ] {
            let template = Template::parse(Path::new(path)).unwrap().within(data.path());
            assert_eq!(template.may_be_of(&log), may, "{path}");
        }
    }

    #[test]
    fn a_path_with_other_braces_or_without_a_file_is_refused() {
        for path in ["sinks/{thread}/a", "a}b", "sinks/{thread_id}/", "..", ""] {
            let wrong = Template::parse(Path::new(path)).unwrap_err();
            assert_eq!(wrong.setting, "path", "{path}");
        }
    }
}
