//! Counts open brackets around JSON: an object within brackets is no call.

/// Brackets that are open, in JSON that is no call or in what looks like some.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Nest {
    pub(super) depth: usize,
    pub(super) string: bool,
    escape: bool,
    /// There is something in it that JSON doesn't have.
    loose: bool,
}

impl Nest {
    /// Such brackets as this text leaves open.
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

    /// A blank line ends what isn't JSON.
    pub(super) fn blank(&mut self) {
        if self.loose {
            *self = Nest::default();
        }
    }
}
