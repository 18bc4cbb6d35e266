//! Converts patterns of JSON Schema into patterns of XSD.

/// Returns a pattern of XSD that allows every text that this pattern of JSON Schema allows. Returns
/// `None` if the pattern isn't simple enough. A simple pattern is anchored at both ends, has no
/// alternatives at its top level, and uses only syntax that both languages have.
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
