//! Which characters XML 1.0 (fifth edition) allows where.

/// Whether `text` is a name without a colon (`NCName`).
#[must_use]
pub fn is_name(text: &str) -> bool {
    !text.is_empty() && name_end(text, 0) == text.len()
}

/// Where the name that starts at `at` ends; `at` itself if none starts there.
#[inline]
pub(super) fn name_end(text: &str, at: usize) -> usize {
    let bytes = text.as_bytes();
    let mut end = at;
    let mut wanted = START;
    while let Some(&byte) = bytes.get(end) {
        if byte < 0x80 {
            if CLASS[usize::from(byte)] & wanted == 0 {
                return end;
            }
            end += 1;
        } else {
            match text[end..].chars().next() {
                Some(c) if is_wide_start(c) || (wanted == NAME && is_wide_name(c)) => {
                    end += c.len_utf8();
                }
                _ => return end,
            }
        }
        wanted = NAME;
    }
    end
}

/// Where the white space that starts at `at` ends.
#[inline]
pub(super) fn space_end(bytes: &[u8], at: usize) -> usize {
    let mut end = at;
    while bytes.get(end).is_some_and(|&byte| is_space(byte)) {
        end += 1;
    }
    end
}

/// White space as XML has it: four characters, all ASCII.
#[inline]
pub(super) const fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

/// Whether a document may hold this character at all.
pub(super) const fn is_character(c: char) -> bool {
    !matches!(c, '\0'..='\x08' | '\x0B' | '\x0C' | '\x0E'..='\x1F' | '\u{FFFE}' | '\u{FFFF}')
}

/// The first character that no document may hold.
pub(super) fn find_illegal(text: &str) -> Option<(usize, char)> {
    if !survey(text.as_bytes()).suspicious {
        return None;
    }
    text.char_indices().find(|&(_, c)| !is_character(c))
}

/// What one look at every byte shows, so that later looks may be spared.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Survey {
    /// There may be a character that no document may hold.
    pub(super) suspicious: bool,
    /// There is a carriage return: line ends have to be normalised.
    pub(super) returns: bool,
    /// There is a `]`: text may hold `]]>`.
    pub(super) brackets: bool,
}

/// One pass without branches, which compilers turn into vector instructions.
pub(super) fn survey(bytes: &[u8]) -> Survey {
    let (mut suspicious, mut returns, mut brackets) = (false, false, false);
    for &byte in bytes {
        let space = (byte == b'\t') | (byte == b'\n') | (byte == b'\r');
        suspicious |= ((byte < 0x20) & !space) | (byte == 0xEF);
        returns |= byte == b'\r';
        brackets |= byte == b']';
    }
    Survey { suspicious, returns, brackets }
}

const START: u8 = 1;
const NAME: u8 = 2;

/// What each ASCII character may be in a name; a colon nothing, since it parts names.
const CLASS: [u8; 128] = {
    let mut table = [0_u8; 128];
    let mut byte = 0;
    while byte < 128 {
        table[byte] = match byte as u8 {
            b'A'..=b'Z' | b'a'..=b'z' | b'_' => START | NAME,
            b'0'..=b'9' | b'-' | b'.' => NAME,
            _ => 0,
        };
        byte += 1;
    }
    table
};

const fn is_wide_start(c: char) -> bool {
    matches!(c,
        '\u{C0}'..='\u{D6}' | '\u{D8}'..='\u{F6}' | '\u{F8}'..='\u{2FF}'
        | '\u{370}'..='\u{37D}' | '\u{37F}'..='\u{1FFF}' | '\u{200C}'..='\u{200D}'
        | '\u{2070}'..='\u{218F}' | '\u{2C00}'..='\u{2FEF}' | '\u{3001}'..='\u{D7FF}'
        | '\u{F900}'..='\u{FDCF}' | '\u{FDF0}'..='\u{FFFD}' | '\u{10000}'..='\u{EFFFF}')
}

const fn is_wide_name(c: char) -> bool {
    matches!(c, '\u{B7}' | '\u{300}'..='\u{36F}' | '\u{203F}'..='\u{2040}')
}
