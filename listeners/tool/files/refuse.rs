//! Refusals, with texts that say what would be accepted.

use std::io;

use super::super::text::cut;
use super::{Reason, Refused};

/// A refusal without lines.
pub(super) fn refused(reason: Reason, path: &str, text: impl Into<String>) -> Refused {
    let text = text.into();
    Refused { reason, path: cut(path), limit: None, text, line: Vec::new() }
}

/// A refusal by a limit.
pub(super) fn too_large(path: &str, what: &str, limit: &str, most: usize) -> Refused {
    let text = format!("{what}; the limit {limit} is {most}");
    Refused { limit: Some(limit.to_owned()), ..refused(Reason::TooLarge, path, text) }
}

/// What the system says, for a path that was given.
pub(super) fn failed(path: &str, error: &io::Error) -> Refused {
    let shown = cut(path);
    match error.kind() {
        // The system's own refusals have a number; this one is of the handle.
        io::ErrorKind::PermissionDenied if error.raw_os_error().is_none() => refused(
            Reason::Outside,
            path,
            format!(
                "`{shown}` leads out of the folder; paths are written from it, as in `a/b.txt`"
            ),
        ),
        io::ErrorKind::NotFound => refused(Reason::Missing, path, format!("there is no `{shown}`")),
        io::ErrorKind::NotADirectory => {
            refused(Reason::WrongKind, path, format!("in `{shown}` something is no folder"))
        }
        io::ErrorKind::IsADirectory => {
            refused(Reason::WrongKind, path, format!("`{shown}` is a folder"))
        }
        _ => refused(Reason::Failed, path, format!("`{shown}`: {}", plain(error))),
    }
}

/// An error of the system's without its number.
fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    match text.split_once(" (os error") {
        Some((text, _)) => text.to_lowercase(),
        None => text,
    }
}
