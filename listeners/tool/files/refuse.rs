//! Makes refusals. Their texts say how to correct the request.

use std::io;

use super::super::text::cut;
use super::{Reason, Refused};

/// Makes a refusal without line numbers.
pub(super) fn refused(reason: Reason, path: &str, text: impl Into<String>) -> Refused {
    let text = text.into();
    Refused { reason, path: cut(path), limit: None, text, line: Vec::new() }
}

/// Makes a refusal because a limit is exceeded.
pub(super) fn too_large(path: &str, what: &str, limit: &str, most: usize) -> Refused {
    let text = format!("{what}; the limit {limit} is {most}");
    Refused { limit: Some(limit.to_owned()), ..refused(Reason::TooLarge, path, text) }
}

/// Makes the refusal for an I/O error at a caller's path.
pub(super) fn failed(path: &str, error: &io::Error) -> Refused {
    let shown = cut(path);
    match error.kind() {
        // An error of the operating system has a number. An error without a number comes from
        // `cap_std`, and means that the path leads out of the root.
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

/// Returns the text of an error of the operating system, without its number.
fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    match text.split_once(" (os error") {
        Some((text, _)) => text.to_lowercase(),
        None => text,
    }
}
