//! The spellings of a character in a text: as it is, or escaped for JSON, XML, HTML or a URL. An
//! escape may be escaped itself, as in JSON within JSON.

/// How often a character may be escaped, each time by any of the escapes.
pub(super) const LEVELS: usize = 3;

/// The most bytes of one character's spelling. Only a text that is made to be long has a longer
/// one.
pub(super) const SPELLING_BYTES_MAX: usize = 64;

/// The most characters of a reference such as `&#x10ffff;`, without the `&` and the `;`. There may
/// be zeros before a number.
const REFERENCE_CHARS_MAX: usize = 12;

/// The names that HTML has for characters of ASCII. XML has some of them, too.
const NAMES: [(&str, char); 39] = [
    ("amp", '&'),
    ("AMP", '&'),
    ("apos", '\''),
    ("ast", '*'),
    ("bsol", '\\'),
    ("colon", ':'),
    ("comma", ','),
    ("commat", '@'),
    ("dollar", '$'),
    ("equals", '='),
    ("excl", '!'),
    ("grave", '`'),
    ("gt", '>'),
    ("GT", '>'),
    ("Hat", '^'),
    ("lbrace", '{'),
    ("lbrack", '['),
    ("lcub", '{'),
    ("lowbar", '_'),
    ("lpar", '('),
    ("lsqb", '['),
    ("lt", '<'),
    ("LT", '<'),
    ("num", '#'),
    ("percnt", '%'),
    ("period", '.'),
    ("plus", '+'),
    ("quest", '?'),
    ("quot", '"'),
    ("QUOT", '"'),
    ("rbrace", '}'),
    ("rbrack", ']'),
    ("rcub", '}'),
    ("rpar", ')'),
    ("rsqb", ']'),
    ("semi", ';'),
    ("sol", '/'),
    ("verbar", '|'),
    ("vert", '|'),
];

/// Whether an escape begins with this byte.
pub(super) fn is_escape(byte: u8) -> bool {
    matches!(byte, b'\\' | b'&' | b'%')
}

/// The first character of a text, once its escapes are undone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Decoded {
    pub(super) char: char,
    /// Its bytes in the text.
    pub(super) bytes: usize,
    /// Whether the text ends where an escape may go on.
    pub(super) is_open: bool,
}

/// Undoes the escapes of the first character of a text, as many times as `level` says. Returns None
/// for an empty text.
pub(super) fn decoded(text: &str, level: usize) -> Option<Decoded> {
    let near = &text[..text.floor_char_boundary(SPELLING_BYTES_MAX)];
    let found = decoded_near(near, level)?;
    Some(Decoded { is_open: found.is_open && near.len() == text.len(), ..found })
}

fn decoded_near(text: &str, level: usize) -> Option<Decoded> {
    let Some(level) = level.checked_sub(1) else {
        let char = text.chars().next()?;
        return Some(Decoded { char, bytes: char.len_utf8(), is_open: false });
    };
    let first = decoded_near(text, level)?;
    let mut rest = Reader { rest: &text[first.bytes..], level, is_open: first.is_open };
    let char = match first.char {
        '\\' => of_json(&mut rest),
        '&' => of_reference(&mut rest),
        '%' => of_url(&mut rest),
        _ => return Some(first),
    };
    let bytes = text.len() - rest.rest.len();
    Some(match char {
        Some(char) => Decoded { char, bytes, is_open: rest.is_open },
        None => Decoded { is_open: rest.is_open, ..first },
    })
}

/// Reads a text, with the escapes of a level undone.
#[derive(Clone, Copy)]
struct Reader<'t> {
    rest: &'t str,
    level: usize,
    /// Whether the text ended where more was looked for.
    is_open: bool,
}

impl Reader<'_> {
    fn peek(&mut self) -> Option<Decoded> {
        let found = decoded_near(self.rest, self.level);
        self.is_open |= found.is_none_or(|it| it.is_open);
        found
    }

    /// Takes the next character, if it is one of these.
    fn take(&mut self, is_one: impl Fn(char) -> bool) -> Option<char> {
        let found = self.peek().filter(|it| is_one(it.char))?;
        self.rest = &self.rest[found.bytes..];
        Some(found.char)
    }

    /// The number that exactly so many digits of base 16 say.
    fn hex(&mut self, digits: usize) -> Option<u32> {
        (0..digits).try_fold(0, |number, _| {
            let digit = self.take(|it| it.is_ascii_hexdigit())?;
            Some(number * 16 + digit.to_digit(16)?)
        })
    }
}

/// The character that an escape of JSON or of a programming language stands for, behind its
/// backslash. A sign stands for itself.
fn of_json(rest: &mut Reader<'_>) -> Option<char> {
    match rest.take(|it| !it.is_ascii_alphanumeric() || "uxnrt".contains(it))? {
        'u' => char::from_u32(rest.hex(4)?),
        'x' => char::from_u32(rest.hex(2)?),
        'n' => Some('\n'),
        'r' => Some('\r'),
        't' => Some('\t'),
        sign => Some(sign),
    }
}

/// The character that a reference of XML or HTML stands for, behind its `&`. HTML takes a number
/// without a `;` behind it, too.
fn of_reference(rest: &mut Reader<'_>) -> Option<char> {
    let is_number = rest.take(|it| it == '#').is_some();
    let is_hex = is_number && rest.take(|it| matches!(it, 'x' | 'X')).is_some();
    let (mut name, mut length) = ([0; REFERENCE_CHARS_MAX], 0);
    while length < REFERENCE_CHARS_MAX {
        let is_one = |it: char| match (is_number, is_hex) {
            (false, _) => it.is_ascii_alphabetic(),
            (true, false) => it.is_ascii_digit(),
            (true, true) => it.is_ascii_hexdigit(),
        };
        match rest.take(is_one) {
            Some(it) => name[length] = u8::try_from(it).ok()?,
            None => break,
        }
        length += 1;
    }
    let name = std::str::from_utf8(&name[..length]).ok()?;
    let is_ended = rest.take(|it| it == ';').is_some();
    if is_number {
        return char::from_u32(u32::from_str_radix(name, if is_hex { 16 } else { 10 }).ok()?);
    }
    let all = NAMES.iter().filter(|_| is_ended);
    all.copied().find(|(it, _)| *it == name).map(|(_, it)| it)
}

/// The character whose bytes a URL has percent-encoded, behind the first `%`.
fn of_url(rest: &mut Reader<'_>) -> Option<char> {
    let mut bytes = [0; 4];
    bytes[0] = u8::try_from(rest.hex(2)?).ok()?;
    let length = match bytes[0] {
        0..0x80 => 1,
        0xc0..0xe0 => 2,
        0xe0..0xf0 => 3,
        _ => 4,
    };
    for byte in &mut bytes[1..length] {
        rest.take(|it| it == '%')?;
        *byte = u8::try_from(rest.hex(2)?).ok()?;
    }
    std::str::from_utf8(&bytes[..length]).ok()?.chars().next()
}
