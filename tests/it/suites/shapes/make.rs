//! Makes documents of any size with one feature that a parser may choke on.

use pumphouse::xml::Kind;

/// A shape, and what becomes of it.
pub(crate) struct Shape {
    pub(crate) name: &'static str,
    /// About so many bytes.
    pub(crate) make: fn(usize) -> Vec<u8>,
    /// Why it is refused where nothing is too large; none where it is right.
    pub(crate) refused: Option<Kind>,
    /// Why a door refuses it, where it would be right or wrong in another way otherwise.
    pub(crate) at_a_door: Option<Kind>,
}

const fn right(name: &'static str, make: fn(usize) -> Vec<u8>) -> Shape {
    Shape { name, make, refused: None, at_a_door: None }
}

const fn large(name: &'static str, make: fn(usize) -> Vec<u8>) -> Shape {
    Shape { name, make, refused: None, at_a_door: Some(Kind::Limit) }
}

const fn wrong(name: &'static str, kind: Kind, make: fn(usize) -> Vec<u8>) -> Shape {
    Shape { name, make, refused: Some(kind), at_a_door: Some(kind) }
}

pub(crate) const SHAPES: &[Shape] = &[
    wrong("entity bomb", Kind::Doctype, |n| bomb(n, "ENTITY")),
    wrong("parameter-entity bomb", Kind::Doctype, |n| bomb(n, "ENTITY %")),
    wrong("external entities and DTDs", Kind::Doctype, external),
    wrong("DOCTYPE that never ends", Kind::Doctype, |n| {
        around("<!DOCTYPE r [", "<!ENTITY a '", "", n)
    }),
    wrong("DOCTYPE hidden by UTF-16", Kind::Utf8, hidden),
    wrong("DOCTYPE hidden by UTF-7", Kind::Syntax, |n| {
        around("<?xml version='1.0' encoding='UTF-7'?>", "+ADwAIQ-DOCTYPE ", "<r/>", n)
    }),
    large("100,000 attributes", |n| numbered("<r", n, |i| format!(" a{i}=''"), "/>")),
    Shape {
        name: "the same attribute, at the end",
        make: |n| numbered("<r", n, |i| format!(" a{i}=''"), " a0=''/>"),
        refused: Some(Kind::Syntax),
        at_a_door: Some(Kind::Limit),
    },
    large("namespace declarations without end", |n| {
        numbered("<r", n, |i| format!(" xmlns:p{i}='u{i}'"), "/>")
    }),
    large("deep nesting", |n| nested(n / 7, |_| "<a>".to_owned(), "</a>")),
    large("a new namespace on each level", |n| {
        nested(n / 28, |i| format!("<a xmlns:p{i}='urn:{i}'>"), "</a>")
    }),
    large("a new default namespace on each level", |n| {
        nested(n / 22, |i| format!("<a xmlns='urn:{i}'>"), "</a>")
    }),
    large("prefixes bound anew on each level", |n| {
        nested(n / 32, |i| format!("<p:a xmlns:p='urn:{}'>", i % 7), "</p:a>")
    }),
    right("prefixes bound anew side by side", |n| {
        numbered("<r>", n, |i| format!("<p:a xmlns:p='urn:{i}' p:b=''/>"), "</r>")
    }),
    large("a huge name", |n| around("<", "a", "/>", n)),
    large("a huge attribute name", |n| around("<r ", "a", "=''/>", n)),
    Shape {
        name: "a huge prefix, bound to nothing",
        make: |n| around("<", "a", ":r/>", n),
        refused: Some(Kind::Namespace),
        at_a_door: Some(Kind::Limit),
    },
    right("a huge attribute value", |n| around("<r a='", "v&amp;", "'/>", n)),
    right("a huge namespace", |n| around("<p:r xmlns:p='", "u", "'/>", n)),
    right("a huge text", |n| around("<r>", "text ", "</r>", n)),
    right("a huge comment", |n| around("<!--", "- ", "--><r/>", n)),
    right("a huge CDATA section", |n| around("<r><![CDATA[", "]]", "]]></r>", n)),
    right("adjacent text pieces", |n| around("<r>", "x<![CDATA[y]]>", "</r>", n)),
    right("references", |n| around("<r>", "&lt;&#65;", "</r>", n)),
    right("carriage returns", |n| around("<r>", "\r", "</r>", n)),
    right("text split by comments", |n| around("<r>", "x<!---->", "</r>", n)),
    right("closing brackets", |n| around("<r>", "]]", "</r>", n)),
    right("greater-than signs", |n| around("<r>", ">", "</r>", n)),
    right("elements that are nothing", |n| around("<r>", "<element/>", "</r>", n)),
    right("the smallest elements", |n| around("<r>", "<a/>", "</r>", n)),
    right("the smallest texts", |n| around("<r>", "<a>x</a>", "</r>", n)),
    right("the smallest attributes", |n| around("<r>", "<a b=''/>", "</r>", n)),
    right("three attributes each", |n| around("<r>", "<a b='' c='' d=''/>", "</r>", n)),
    right("attributes to decode", |n| around("<r>", "<a b = '&lt;' c='&gt;'/>", "</r>", n)),
    right("many attributes each", |n| {
        let element: String = ('a'..='z').chain('A'..='Z').map(|it| format!(" {it}=''")).collect();
        around("<r>", &format!("<a{element}/>"), "</r>", n)
    }),
    right("names that never repeat", |n| {
        numbered("<r>", n, |i| format!("<name{i}>t</name{i}>"), "</r>")
    }),
    right("attribute names that never repeat", |n| {
        numbered("<r>", n, |i| format!("<e name{i}='v{i}'/>"), "</r>")
    }),
    wrong("closing tags that never come", Kind::Syntax, |n| around("<r>", "text<a/>", "", n)),
    wrong("a tag that never ends", Kind::Syntax, |n| around("<r ", "a", "", n)),
    wrong("a value that never ends", Kind::Syntax, |n| around("<r a='", "v", "", n)),
    wrong("a comment that never ends", Kind::Syntax, |n| around("<r><!--", ">", "", n)),
    wrong("a section that never ends", Kind::Syntax, |n| around("<r><![CDATA[", "]>", "", n)),
    wrong("an instruction that never ends", Kind::Syntax, |n| around("<r><?a ", "? ", "", n)),
    wrong("ampersands", Kind::Syntax, |n| around("<r>", "&", "</r>", n)),
    wrong("a NUL byte at the end", Kind::Syntax, |n| around("<r>", "text", "\0</r>", n)),
    wrong("a surrogate by number", Kind::Syntax, |n| around("<r>", "text", "&#xD800;</r>", n)),
    wrong("a surrogate in bytes", Kind::Utf8, |n| spoilt(n, b"\xED\xA0\x80")),
    wrong("UTF-8 cut short", Kind::Utf8, |n| spoilt(n, b"\xF0\x9F\x98")),
    wrong("UTF-8 too long", Kind::Utf8, |n| spoilt(n, b"\xC0\xBC")),
    wrong("one document after another", Kind::Syntax, |n| around("", "<a/>", "", n)),
    Shape {
        name: "a long namespace used everywhere",
        make: |n| {
            let half = String::from_utf8(around("<r xmlns:p='", "u", "'>", n / 2)).unwrap();
            around(&half, "<p:a/>", "</r>", n / 2 + half.len())
        },
        refused: Some(Kind::Limit),
        at_a_door: Some(Kind::Limit),
    },
];

/// `open`, so many `piece`s that it comes to `bytes`, `close`.
fn around(open: &str, piece: &str, close: &str, bytes: usize) -> Vec<u8> {
    let count = bytes.saturating_sub(open.len() + close.len()) / piece.len();
    [open, &piece.repeat(count), close].concat().into_bytes()
}

fn numbered(open: &str, bytes: usize, piece: impl Fn(usize) -> String, close: &str) -> Vec<u8> {
    let mut text = open.to_owned();
    for number in 0.. {
        if text.len() >= bytes {
            break;
        }
        text.push_str(&piece(number));
    }
    (text + close).into_bytes()
}

fn nested(levels: usize, open: impl Fn(usize) -> String, close: &str) -> Vec<u8> {
    let mut text: String = (0..levels).map(open).collect();
    text.push_str(&close.repeat(levels));
    text.into_bytes()
}

fn bomb(bytes: usize, kind: &str) -> Vec<u8> {
    let entity = |i: usize| {
        let inside = format!("&e{};", i.saturating_sub(1)).repeat(10);
        format!("<!{kind} e{i} \"{inside}\">")
    };
    numbered("<!DOCTYPE r [", bytes, entity, "]><r>&e9;</r>")
}

fn external(bytes: usize) -> Vec<u8> {
    let entity = |i| format!("<!ENTITY e{i} SYSTEM \"http://127.0.0.1:9/{i}\">");
    let open = "<!DOCTYPE r SYSTEM \"file:///etc/passwd\" [";
    numbered(open, bytes, entity, "]><r>&e0;</r>")
}

fn hidden(bytes: usize) -> Vec<u8> {
    let text = String::from_utf8(bomb(bytes / 2, "ENTITY")).unwrap();
    let units = std::iter::once(0xFEFF).chain(text.encode_utf16());
    units.flat_map(u16::to_le_bytes).collect()
}

/// Text that is fine but for its last bytes.
fn spoilt(bytes: usize, by: &[u8]) -> Vec<u8> {
    let mut text = around("<r>", "text", "", bytes);
    text.extend_from_slice(by);
    text.extend_from_slice(b"</r>");
    text
}
