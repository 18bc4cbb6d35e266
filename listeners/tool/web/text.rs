//! Converts the bytes of an answer into text for a model.

use encoding_rs::{Encoding, UTF_8};

use super::super::text::known;
use super::{Answer, Reason, Refusal, content_type, html};

/// The number of bytes at the beginning of a page in which the page may name its encoding. Browsers
/// use the same number.
const HEAD_BYTES: usize = 1_024;

/// The kind of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Html,
    Text,
    Pdf,
    /// The server names no type.
    Unknown,
}

/// An answer as text.
pub(in super::super) struct Read {
    /// The media type that the server names, without its parameters.
    pub(in super::super) kind: String,
    pub(in super::super) title: Option<String>,
    /// The text, with U+FFFD for each character that XML can't hold.
    pub(in super::super) text: String,
}

impl Read {
    /// Reads an answer. An HTML page is converted to text, unless `keeps_html` is true. A PDF is
    /// refused.
    pub(in super::super) fn of(answer: &Answer, keeps_html: bool) -> Result<Read, Refusal> {
        let said = content_type(&answer.headers);
        let name = media_type(said);
        let kind = match kind_of(&name)? {
            Kind::Unknown => guessed(&answer.body)?,
            kind => kind,
        };
        if kind == Kind::Pdf {
            return Err(Refusal::new(Reason::WrongKind, "the answer is a PDF, and no text"));
        }
        let text = decoded(&answer.body, said, kind);
        let most = answer.body.len().saturating_mul(4).max(HEAD_BYTES);
        let (title, text) = match kind {
            Kind::Html if !keeps_html => {
                let page = html::read(&text, &answer.url, most);
                (page.title, page.text)
            }
            _ => (None, text),
        };
        let clean = |it: String| it.chars().map(known).collect();
        Ok(Read { kind: name, title: title.map(clean), text: clean(text) })
    }
}

/// Refuses an answer with a `Content-Type` that can't be read as text, before its body is read. A
/// PDF isn't refused here.
pub(super) fn check_kind(said: &str) -> Result<(), Refusal> {
    kind_of(&media_type(said)).map(drop)
}

/// Returns the part of a text from the character number `from` on, of at most `most` bytes. If more
/// text follows, the number of the next character is returned, too. In this case, the part ends
/// after a line end, if it has one.
pub(in super::super) fn piece(text: &str, from: usize, most: usize) -> (&str, Option<usize>) {
    let start = text.char_indices().nth(from).map_or(text.len(), |(at, _)| at);
    let rest = &text[start..];
    if rest.len() <= most {
        return (rest, None);
    }
    let shown = &rest[..rest.floor_char_boundary(most)];
    let shown = match shown.rfind('\n') {
        Some(end) => &shown[..=end],
        None => shown,
    };
    (shown, Some(from + shown.chars().count()))
}

/// Returns whether an answer is a PDF.
pub(in super::super) fn is_pdf(answer: &Answer) -> bool {
    match kind_of(&media_type(content_type(&answer.headers))) {
        Ok(Kind::Pdf) => true,
        Ok(Kind::Unknown) => guessed(&answer.body).is_ok_and(|it| it == Kind::Pdf),
        _ => false,
    }
}

/// Returns whether the server says that an answer is JSON.
pub(in super::super) fn is_json(answer: &Answer) -> bool {
    let name = media_type(content_type(&answer.headers));
    name == "application/json" || name.ends_with("+json")
}

/// Returns the media type that an answer's server names, without its parameters.
pub(in super::super) fn kind_named(answer: &Answer) -> String {
    media_type(content_type(&answer.headers)).chars().map(known).collect()
}

fn media_type(said: &str) -> String {
    said.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

fn kind_of(name: &str) -> Result<Kind, Refusal> {
    const TEXTS: [&str; 12] = [
        "application/json",
        "application/ld+json",
        "application/ndjson",
        "application/x-ndjson",
        "application/jsonl",
        "application/xml",
        "application/javascript",
        "application/ecmascript",
        "application/yaml",
        "application/x-yaml",
        "application/toml",
        "application/sql",
    ];
    match name {
        "" => Ok(Kind::Unknown),
        "application/pdf" | "application/x-pdf" => Ok(Kind::Pdf),
        "text/html" | "application/xhtml+xml" => Ok(Kind::Html),
        it if it.starts_with("text/") || it.ends_with("+json") || it.ends_with("+xml") => {
            Ok(Kind::Text)
        }
        it if TEXTS.contains(&it) => Ok(Kind::Text),
        other => {
            let shown: String = other.chars().take(100).map(known).collect();
            Err(Refusal::new(
                Reason::WrongKind,
                format!("the answer is {shown}; HTML, plain text, PDF, JSON and XML are read"),
            ))
        }
    }
}

/// Guesses the kind of an answer whose server names no type.
fn guessed(body: &[u8]) -> Result<Kind, Refusal> {
    let head = &body[..body.len().min(HEAD_BYTES)];
    if head.starts_with(b"%PDF-") {
        return Ok(Kind::Pdf);
    }
    if head.contains(&0) {
        let text = "the answer is no text, and the server doesn't say what it is";
        return Err(Refusal::new(Reason::WrongKind, text));
    }
    let begun = String::from_utf8_lossy(head).trim_start().to_ascii_lowercase();
    let is_html = begun.starts_with("<!doctype html") || begun.starts_with("<html");
    Ok(if is_html { Kind::Html } else { Kind::Text })
}

/// Decodes bytes. The encoding is taken from the byte order mark, or else from the server's
/// `Content-Type`, or else from the page. The default is UTF-8.
fn decoded(body: &[u8], said: &str, kind: Kind) -> String {
    let named = parameter(said, "charset").and_then(|it| Encoding::for_label(it.as_bytes()));
    let own = || match kind {
        Kind::Html => named_within(body),
        _ => None,
    };
    let encoding = named.or_else(own).unwrap_or(UTF_8);
    encoding.decode(body).0.into_owned()
}

fn parameter<'a>(said: &'a str, name: &str) -> Option<&'a str> {
    let all = said.split(';').skip(1).filter_map(|it| it.split_once('='));
    let mut found = all.filter(|(key, _)| key.trim().eq_ignore_ascii_case(name));
    found.next().map(|(_, value)| value.trim().trim_matches('"'))
}

/// Returns the encoding that a page names by `<meta charset=…>` or `<meta content="…; charset=…">`.
/// `None` if the page names no encoding.
fn named_within(body: &[u8]) -> Option<&'static Encoding> {
    let head = String::from_utf8_lossy(&body[..body.len().min(HEAD_BYTES)]).to_ascii_lowercase();
    let mut tags = head.split("<meta").skip(1).filter_map(|it| it.split('>').next());
    let label = tags.find_map(|it| it.split_once("charset="))?.1.trim_start_matches(['"', '\'']);
    let end = label.find(['"', '\'', ' ', ';', '/']).unwrap_or(label.len());
    let encoding = Encoding::for_label(&label.as_bytes()[..end])?;
    // The tags of this page were read as ASCII. So the page isn't in UTF-16, even if it names
    // UTF-16.
    Some(if encoding.is_ascii_compatible() { encoding } else { UTF_8 })
}

/// Makes an answer for tests.
#[cfg(test)]
fn answer(said: &'static str, body: &[u8]) -> Answer {
    use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(said));
    let url: reqwest::Url = "https://example.org/".parse().unwrap();
    Answer { url, status: reqwest::StatusCode::OK, headers, body: body.to_vec() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(said: &'static str, body: &[u8], expected: &str) {
        let read = Read::of(&answer(said, body), false);
        let text = read.map_or_else(|it| format!("{:?}: {}", it.reason, it.text), |it| it.text);
        assert_eq!(text, expected);
    }

    #[test]
    fn a_text_is_read_as_it_is_encoded() {
        check("text/plain; charset=ISO-8859-1", b"caf\xe9", "café");
        check("text/plain; charset=\"windows-1251\"", b"\xcf\xf0\xe8", "При");
        check("text/plain; charset=shift_jis", b"\x93\xfa\x96{", "日本");
        check("text/plain; charset=utf-8", b"\xff\xfea\0b\0", "ab");
        check("text/plain; charset=no-such", "é".as_bytes(), "é");
        check("text/plain", b"a\xffb", "a\u{fffd}b");
        check("text/html", b"<meta charset=latin1><p>caf\xe9", "café");
        let content = b"<meta http-equiv=x content='text/html; charset=koi8-r'><p>\xf0";
        check("text/html", content, "П");
        check("text/html", b"<meta charset=utf-16><p>a", "a");
    }

    #[test]
    fn what_is_no_text_is_refused() {
        check("application/json", b"{\"a\": 1}", "{\"a\": 1}");
        check("application/feed+json", b"{}", "{}");
        let text = "HTML, plain text, PDF, JSON and XML are read";
        let pdf = "WrongKind: the answer is a PDF, and no text";
        check("application/pdf", b"%PDF-1.4", pdf);
        check("", b"%PDF-1.4", pdf);
        check("image/png", b"\x89", &format!("WrongKind: the answer is image/png; {text}"));
        check("", b"<!DOCTYPE html><p>a<p>b", "a\n\nb");
        check("", b"plain", "plain");
        let nobody = "WrongKind: the answer is no text, and the server doesn't say what it is";
        check("", b"a\0b", nobody);
        check("text/plain", b"a\x01b", "a\u{fffd}b");
    }

    #[test]
    fn a_long_text_is_shown_piece_by_piece() {
        assert_eq!(piece("abc", 0, 3), ("abc", None));
        assert_eq!(piece("abc", 9, 3), ("", None));
        assert_eq!(piece("a\nbcd\nef", 0, 4), ("a\n", Some(2)));
        assert_eq!(piece("a\nbcd\nef", 2, 4), ("bcd\n", Some(6)));
        assert_eq!(piece("ééé", 1, 3), ("é", Some(2)));
    }
}
