//! Converts patterns of JSON Schema into patterns of XSD.

/// The pattern of XSD that lets through whatever this one does, if it is plain enough to say:
/// anchored at both ends, without alternatives at its top, and of words that both have.
pub(super) fn anchored(pattern: &str) -> Option<&str> {
    let inside = pattern.strip_prefix('^')?.strip_suffix('$')?;
    let mut letters = inside.chars().peekable();
    let (mut open, mut in_brackets) = (0_usize, false);
    while let Some(letter) = letters.next() {
        match letter {
            '\\' if !letters.next().is_some_and(|it| r"\|.?*+(){}-[]^nrtd".contains(it)) => {
                return None;
            }
            '\\' => {}
            '[' if in_brackets => return None,
            '[' => in_brackets = true,
            ']' => in_brackets = false,
            _ if in_brackets => {}
            '(' if letters.peek() == Some(&'?') => return None,
            '(' => open += 1,
            ')' => open = open.checked_sub(1)?,
            '|' if open == 0 => return None,
            '^' | '$' => return None,
            _ => {}
        }
    }
    (open == 0 && !in_brackets && !inside.ends_with('\\')).then_some(inside)
}
