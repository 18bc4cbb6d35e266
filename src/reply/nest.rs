//! Counts the brackets that are open in the text, since a JSON object within other brackets isn't a
//! call.

/// The brackets that are open in JSON that isn't a call, or in text that looks like JSON.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Nest {
    pub(super) depth: usize,
    pub(super) string: bool,
    escape: bool,
    /// Whether the text has a character that JSON allows only in strings, or a line end within a
    /// string.
    loose: bool,
}

impl Nest {
    /// Counts the brackets that `text` leaves open. The text begins with a bracket.
    pub(super) fn of(text: &[u8]) -> Nest {
        let mut nest = Nest { depth: 1, ..Nest::default() };
        text.iter().skip(1).for_each(|byte| nest.step(*byte));
        nest
    }

    pub(super) fn step(&mut self, byte: u8) {
        if self.depth == 0 {
            return;
        }
        if self.string {
            let is_end = matches!(byte, b'"' | b'\n') && !self.escape;
            self.loose |= byte == b'\n';
            self.escape = byte == b'\\' && !self.escape;
            self.string = !is_end;
            return;
        }
        match byte {
            b'"' => self.string = true,
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' if self.depth == 1 => *self = Nest::default(),
            b'}' | b']' => self.depth -= 1,
            _ => {
                let is_json = b",:+-.0123456789eEtruefalsn".contains(&byte);
                self.loose |= !is_json && !byte.is_ascii_whitespace();
            }
        }
    }

    /// Handles a blank line: forgets the open brackets if the text has turned out not to be JSON.
    pub(super) fn blank(&mut self) {
        if self.loose {
            *self = Nest::default();
        }
    }
}
