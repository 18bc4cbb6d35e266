//! Tells whether a text that grows is a whole JSON object. Each byte is read once, however many
//! parts the text comes in.

use serde::de::IgnoredAny;

/// Whether a JSON text that arrives in pieces is a whole object yet, and the place up to which the
/// text has been read.
#[derive(Debug, Default)]
pub(super) struct GrowingObject {
    /// Bytes of the text that have been read.
    read: usize,
    /// Brackets that are open.
    depth: usize,
    is_string: bool,
    is_escaped: bool,
    /// Whether there was anything but white space.
    is_begun: bool,
    /// Whether the text is an object. None until its first bracket is closed.
    is_object: Option<bool>,
}

impl GrowingObject {
    /// Reads the end of a text whose beginning was read before. A text that became shorter is read
    /// anew.
    pub(super) fn read(&mut self, text: &str) {
        if !text.is_char_boundary(self.read) {
            *self = GrowingObject::default();
        }
        let from = self.read;
        for (at, letter) in text[from..].char_indices() {
            let is_outside = self.depth == 0 && !self.is_string;
            if is_outside && letter.is_whitespace() {
                continue;
            }
            self.is_begun = true;
            if self.is_object.is_some() {
                // No object goes on behind its last bracket.
                self.is_object = Some(false);
                break;
            }
            self.step(letter);
            if self.depth == 0 && !self.is_string {
                self.is_object = Some(is_object(&text[..from + at + letter.len_utf8()]));
            }
        }
        self.read = text.len();
    }

    fn step(&mut self, letter: char) {
        match letter {
            _ if self.is_escaped => self.is_escaped = false,
            '\\' => self.is_escaped = self.is_string,
            '"' => self.is_string = !self.is_string,
            _ if self.is_string => {}
            '{' | '[' => self.depth += 1,
            '}' | ']' => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
    }

    /// Whether the text is a whole JSON object.
    pub(super) fn is_whole(&self) -> bool {
        self.is_object == Some(true)
    }

    /// Whether the text has nothing but white space.
    pub(super) fn is_blank(&self) -> bool {
        !self.is_begun
    }
}

/// Whether a text is a whole JSON object.
pub(super) fn is_object(text: &str) -> bool {
    let text = text.trim();
    let ends = text.starts_with('{') && text.ends_with('}');
    ends && serde_json::from_str::<IgnoredAny>(text).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_grows_is_an_object_when_the_whole_text_is_one() {
        for text in [
            " {\"a\": \"}\\\"{\", \"b\": [{}, []]} \n",
            "{}{}",
            "{} x",
            "{\"a\":]",
            "{\"a\":}",
            "\u{a0}{\"é\":1}\u{a0}",
            "[{}]",
            "\"{}\"",
            "\\{}",
            "}{}",
            "x",
            " ",
        ] {
            let mut growing = GrowingObject::default();
            for end in (0..=text.len()).filter(|it| text.is_char_boundary(*it)) {
                growing.read(&text[..end]);
                assert_eq!(growing.is_whole(), is_object(&text[..end]), "{}", &text[..end]);
                assert_eq!(growing.is_blank(), text[..end].trim().is_empty(), "{}", &text[..end]);
            }
            growing.read("");
            assert!(growing.is_blank() && !growing.is_whole(), "{text}");
        }
    }
}
