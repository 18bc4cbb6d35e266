//! Cuts parts of a text by bytes, never within a character.

/// Default size of a part of a result, in bytes. Together with the line that states its range, such
/// a part is shorter than the limit to which prompts truncate results.
pub const READ_BYTES: usize = 32_000;

/// Returns the range of a part of a text, in bytes. The part begins with the character that
/// contains the byte `from`. The part has at most `bytes` bytes, but at least one character. The
/// part is empty if the text has no byte `from`.
#[must_use]
pub fn part(text: &str, from: usize, bytes: usize) -> (usize, usize) {
    let from = text.floor_char_boundary(from);
    let to = text.floor_char_boundary(from.saturating_add(bytes));
    let one = text[from..].chars().next().map_or(0, char::len_utf8);
    (from, to.max(from + one))
}

#[cfg(test)]
mod tests {
    use super::part;

    #[test]
    fn a_part_begins_and_ends_with_whole_characters() {
        let check = |from, bytes, expected: &str| {
            let (from, to) = part("aé€b", from, bytes);
            assert_eq!(&"aé€b"[from..to], expected);
        };
        check(0, 2, "a");
        check(0, 3, "aé");
        check(2, 1, "é");
        check(3, 1, "€");
        check(3, 4, "€b");
        check(7, 4, "");
        check(9, 4, "");
    }
}
