//! A source file, and a copy of its text without comments and without the contents of quotes.

/// One file. `code` is `text` with comments and the insides of quotes blanked, byte by byte, so
/// that a place in the one is the same place in the other.
pub(super) struct File {
    pub(super) path: String,
    pub(super) text: String,
    pub(super) code: String,
}

impl File {
    pub(super) fn new(path: &str, text: &str) -> File {
        File { path: path.to_owned(), text: text.to_owned(), code: strip(text) }
    }

    /// A complaint about the line that holds the byte `at`.
    pub(super) fn complaint(&self, at: usize, what: &str) -> String {
        let line = self.text[..at].matches('\n').count() + 1;
        format!("{}:{line}: {what}", self.path)
    }

    /// Every place where `word` stands in the code as a whole word.
    pub(super) fn words(&self, word: &str) -> impl Iterator<Item = usize> {
        self.code.match_indices(word).map(|(at, _)| at).filter(move |&at| {
            let before = self.code[..at].chars().next_back();
            let after = self.code[at + word.len()..].chars().next();
            !before.is_some_and(is_word) && !after.is_some_and(is_word)
        })
    }

    /// Every module written out in this file, `mod name { … }`: where its braces stand.
    pub(super) fn inline_modules(&self) -> Vec<(String, usize, usize)> {
        let bodies = self.words("mod").filter_map(|at| {
            let rest = self.code[at + 3..].trim_start();
            let name = identifier(rest);
            let rest = rest[name.len()..].trim_start();
            let open = self.code.len() - rest.len();
            let named = !name.is_empty() && rest.starts_with('{');
            named.then(|| (name.to_owned(), open, closing(&self.code, open)))
        });
        bodies.collect()
    }
}

pub(super) fn is_word(it: char) -> bool {
    it.is_alphanumeric() || it == '_'
}

/// The identifier that `text` begins with; empty if none.
pub(super) fn identifier(text: &str) -> &str {
    let end = text.find(|it| !is_word(it)).unwrap_or(text.len());
    if text.starts_with(|it: char| it.is_ascii_digit()) { "" } else { &text[..end] }
}

/// The end of the braces that open at `open`.
pub(super) fn closing(code: &str, open: usize) -> usize {
    let mut depth = 0;
    for (at, it) in code[open..].bytes().enumerate() {
        match it {
            b'{' => depth += 1,
            b'}' if depth == 1 => return open + at,
            b'}' => depth -= 1,
            _ => {}
        }
    }
    code.len()
}

/// Blanks comments and the insides of quotes; line ends stay.
pub(super) fn strip(text: &str) -> String {
    let mut code = text.as_bytes().to_vec();
    let mut at = 0;
    while at < code.len() {
        let length = match &text.as_bytes()[at..] {
            [b'/', b'/', ..] => until(text, at, "\n"),
            [b'/', b'*', ..] => block_comment(text, at),
            [b'"', ..] => quoted(text, at),
            [b'\'', ..] => character(text, at),
            [b'r', b'"' | b'#', ..] if starts_word(text, at) => raw(text, at, 1),
            [b'b' | b'c', b'r', b'"' | b'#', ..] if starts_word(text, at) => raw(text, at, 2),
            _ => 0,
        };
        code[at..at + length].iter_mut().filter(|it| **it != b'\n').for_each(|it| *it = b' ');
        at += length.max(1);
    }
    String::from_utf8(code).unwrap()
}

/// Whether a word begins at `at`; `b` and `c` before an `r` are a part of the prefix.
fn starts_word(text: &str, at: usize) -> bool {
    !text[..at].chars().next_back().is_some_and(is_word)
}

fn until(text: &str, at: usize, end: &str) -> usize {
    text[at..].find(end).unwrap_or(text.len() - at)
}

fn block_comment(text: &str, from: usize) -> usize {
    let (bytes, mut at, mut depth) = (text.as_bytes(), from, 0);
    while at < bytes.len() {
        match &bytes[at..] {
            [b'/', b'*', ..] => (depth, at) = (depth + 1, at + 2),
            [b'*', b'/', ..] if depth == 1 => return at + 2 - from,
            [b'*', b'/', ..] => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
    }
    bytes.len() - from
}

fn quoted(text: &str, from: usize) -> usize {
    let bytes = text.as_bytes();
    let mut at = from + 1;
    while at < bytes.len() && bytes[at] != b'"' {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    (at + 1).min(bytes.len()) - from
}

/// A character in quotes; nothing if the quote begins a lifetime.
fn character(text: &str, from: usize) -> usize {
    let mut rest = text[from + 1..].chars();
    let length = match rest.next() {
        Some('\\') => {
            let escaped = rest.next().map_or(0, char::len_utf8);
            1 + escaped + until(text, from + 2 + escaped, "'")
        }
        Some(it) if rest.next() == Some('\'') => it.len_utf8(),
        _ => return 0,
    };
    (length + 2).min(text.len() - from)
}

/// A raw string whose prefix has `prefix` letters; nothing if it is a raw identifier.
fn raw(text: &str, from: usize, prefix: usize) -> usize {
    let hashes = text[from + prefix..].bytes().take_while(|it| *it == b'#').count();
    let open = from + prefix + hashes;
    if text.as_bytes().get(open) != Some(&b'"') {
        return 0;
    }
    let end = format!("\"{}", "#".repeat(hashes));
    let body = until(text, open + 1, &end);
    (open + 1 + body + end.len()).min(text.len()) - from
}

#[test]
fn comments_and_quotes_are_not_code() {
    let check = |text: &str, code: &str| {
        let stripped = strip(text);
        assert_eq!(stripped.split_whitespace().collect::<Vec<_>>().join(" "), code, "{text}");
        assert_eq!(stripped.len(), text.len(), "{text}");
    };
    check("a // b\nc", "a c");
    check("a /* b /* c */ d */ e /* f", "a e");
    check(r#"a "b \" // c" d"#, "a d");
    check(r###"a r"b\" c"###, "a c");
    check(r###"a br#"b " c"# d"###, "a d");
    check("a '\"' b '\\'' c '\\u{41}' 'é' d", "a b c d");
    check("fn a<'a>(b: &'a str, 'c')", "fn a<'a>(b: &'a str, )");
    check("a r#fn b\"c\nd", "a r#fn b");
    check("for\"é\"it", "for it");
}
