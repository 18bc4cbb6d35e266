//! The characters that nobody sees: controls, and what is shown as nothing.

/// Whether a terminal would take the character as a command or show it as nothing. Such characters
/// are controls, changes of direction, line separators, Unicode's `Default_Ignorable_Code_Point`,
/// and all blank characters except the usual space.
#[must_use]
pub fn is_hidden(it: char) -> bool {
    it.is_control()
        || matches!(
            it,
            '\u{a0}' | '\u{ad}'
                | '\u{34f}'
                | '\u{61c}'
                | '\u{115f}'..='\u{1160}'
                | '\u{1680}'
                | '\u{17b4}'..='\u{17b5}'
                | '\u{180b}'..='\u{180f}'
                | '\u{2000}'..='\u{200f}'
                | '\u{2028}'..='\u{202f}'
                | '\u{205f}'..='\u{206f}'
                | '\u{2800}'
                | '\u{3000}'
                | '\u{3164}'
                | '\u{fe00}'..='\u{fe0f}'
                | '\u{feff}'
                | '\u{ffa0}'
                | '\u{fff0}'..='\u{fffb}'
                | '\u{1bca0}'..='\u{1bca3}'
                | '\u{1d159}'
                | '\u{1d173}'..='\u{1d17a}'
                | '\u{e0000}'..='\u{e0fff}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_unicode_says_is_ignorable_or_blank_is_hidden() {
        let ignorable = r"[\p{Default_Ignorable_Code_Point}\p{Cc}\p{Zl}\p{Zp}]";
        let blank = r"[\p{Zs}\u{2800}\u{1D159}--\u{20}]";
        let hidden = regex::Regex::new(&format!("{ignorable}|{blank}")).unwrap();
        for it in '\0'..=char::MAX {
            if hidden.is_match(it.encode_utf8(&mut [0; 4])) {
                assert!(is_hidden(it), "U+{:04X}", u32::from(it));
            }
        }
        for it in ["é", "漢", " ", "👍", "a\u{301}", "न"] {
            assert!(!it.chars().any(is_hidden), "{it}");
        }
        assert!("\u{3164}\u{fe0f}\u{200d}".chars().all(is_hidden));
    }
}
