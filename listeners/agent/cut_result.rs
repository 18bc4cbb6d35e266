//! Cuts a long result to the part that a prompt shows.

use super::super::action::words::ActionResult;
use super::super::view::part;

/// The share of a prompt's part of a result that the notes beside the result may take, as a
/// divisor.
const BESIDE_SHARE: usize = 4;

/// Returns the part of a result that a prompt shows, and the note about the rest. The note is empty
/// if the whole result is shown. What stands beside the value, such as where a file goes on, is
/// shown even if the value is cut.
pub(super) fn shown(entry: u64, result: &ActionResult, most: u64) -> (String, String) {
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let mut text = result.said();
    let size = text.len();
    if size <= most {
        return (text, String::new());
    }
    let (_, to) = part(&text, 0, most);
    let beside = result.beside();
    let is_cut_off = to <= size - beside.len() && beside.len() <= most / BESIDE_SHARE;
    let beside = if is_cut_off { &*beside } else { "" };
    text.truncate(to);
    let note = format!(
        "{beside}\n[{to} of {size} bytes are shown. For more call read-result with \
         {{\"entry\": {entry}, \"from\": {to}}}.]"
    );
    (text, note)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::super::super::action::words::Status;
    use super::*;

    #[test]
    fn a_cut_result_keeps_what_stands_beside_it() {
        let result = |note: &str| ActionResult {
            id: "read".to_owned(),
            turn: None,
            of: 1,
            name: "files.read".to_owned(),
            status: Status::Ok,
            attempts: 1,
            dialect: None,
            show: None,
            because: None,
            answer: None,
            note: vec![note.to_owned()],
            warning: Vec::new(),
            error: None,
            value: Some(Value::String("x".repeat(100)).into()),
        };
        let whole = format!("{}\n[next: 7]", "x".repeat(100));
        assert_eq!(shown(12, &result("[next: 7]"), 110), (whole, String::new()));
        let rest = "For more call read-result with {\"entry\": 12, \"from\": 40}.]";
        let note = format!("\n[next: 7]\n[40 of 110 bytes are shown. {rest}");
        assert_eq!(shown(12, &result("[next: 7]"), 40), ("x".repeat(40), note));
        // What is too long to stand beside is found behind the value.
        let (_, note) = shown(12, &result(&"y".repeat(50)), 40);
        assert_eq!(note, format!("\n[40 of 151 bytes are shown. {rest}"));
    }
}
