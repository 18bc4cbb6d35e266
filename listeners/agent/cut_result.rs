//! Cuts a long result to the part that a prompt shows.

use super::super::view::part;

/// Returns the part of a result that a prompt shows, and the note about the rest. The note is empty
/// if the whole result is shown.
pub(super) fn shown(entry: u64, mut text: String, most: u64) -> (String, String) {
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let size = text.len();
    if size <= most {
        return (text, String::new());
    }
    let (_, to) = part(&text, 0, most);
    text.truncate(to);
    let note = format!(
        "\n[{to} of {size} bytes are shown. For more call read-result with \
         {{\"entry\": {entry}, \"from\": {to}}}.]"
    );
    (text, note)
}
