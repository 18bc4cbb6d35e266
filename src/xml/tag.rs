//! Reads the parts of tags: names, attributes and references. Also reads the XML declaration.

use std::collections::HashSet;

use super::chars::{is_character, is_space, name_end, space_end};
use super::error::{Refusal, clip};
use super::tree::{AttributeNode, BARE, Builder, EMPTY, Span};
use super::{XML, XMLNS};

/// The message for a bare `&`.
pub(super) const BARE_AMPERSAND: &str = "`&` must be written `&amp;`";

/// An attribute before its prefix is looked up.
#[derive(Clone, Copy, Debug)]
pub(super) struct RawAttribute {
    prefix: Span,
    local: Span,
    value: Span,
    offset: usize,
    /// The number of the name. `namespace` is the number of the name's namespace. Both are set once
    /// the prefix is looked up.
    name: u32,
    namespace: u32,
}

/// Opens the element whose tag starts at `start` and whose `>` or `/>` stands at `stop`.
///
/// `attributes` is a buffer. The function clears it first.
pub(super) fn start(
    source: &str,
    start: usize,
    stop: usize,
    tree: &mut Builder,
    attributes: &mut Vec<RawAttribute>,
) -> Result<(), Refusal> {
    let bytes = source.as_bytes();
    let name_max = tree.limits.name_bytes_max;
    let (prefix, local) = qualified_name(source, start + 1, name_max)?;
    let mut at = local.end();
    attributes.clear();
    let mut xml_declared = false;
    while at < stop {
        let space = space_end(bytes, at);
        if space >= stop {
            break;
        }
        if space == at {
            return Err(unexpected(source, at));
        }
        let attribute = attribute(source, space, stop, tree)?;
        at = attribute.value.1;
        let attribute = attribute.raw;
        let (prefix, local) = (tree.text.get(attribute.prefix), tree.text.get(attribute.local));
        match (prefix, local) {
            ("xmlns", "xml") if tree.text.get(attribute.value) == XML && !xml_declared => {
                xml_declared = true;
            }
            ("xmlns", _) => {
                check_declaration(local, tree.text.get(attribute.value), attribute.offset)?;
                tree.declare(attribute.local, attribute.value, attribute.offset)?;
            }
            ("", "xmlns") => {
                check_declaration("", tree.text.get(attribute.value), attribute.offset)?;
                tree.declare(attribute.prefix, attribute.value, attribute.offset)?;
            }
            _ => {
                if attributes.len() >= tree.limits.attributes_max {
                    let (what, max) = ("too many attributes in one element", tree.limits);
                    let max = max.attributes_max;
                    return Err(Refusal::limit(space, what, "attributes_max", max));
                }
                attributes.push(attribute);
            }
        }
    }
    let prefix_text = &source[prefix.start()..prefix.end()];
    let name = tree.resolve(prefix_text).ok_or_else(|| unbound(prefix_text, start + 1))?;
    tree.open(local, name, start)?;
    resolve_attributes(attributes, tree)
}

/// Looks up the prefixes of an element's attributes, refuses a name that occurs twice, and adds the
/// attributes to the tree.
fn resolve_attributes(attributes: &mut [RawAttribute], tree: &mut Builder) -> Result<(), Refusal> {
    const COMPARED_MAX: usize = 12;
    let mut seen: HashSet<(u32, &str)> = HashSet::new();
    let hashed = attributes.len() > COMPARED_MAX;
    for index in 0..attributes.len() {
        let (earlier, rest) = attributes.split_at_mut(index);
        let Some(raw) = rest.first_mut() else { break };
        let prefix = tree.text.get(raw.prefix);
        raw.name = match prefix {
            "" => BARE,
            _ => tree.resolve(prefix).ok_or_else(|| unbound(prefix, raw.offset))?,
        };
        raw.namespace = tree.namespace_of(raw.name);
        let local = tree.text.get(raw.local);
        let is_new = if hashed {
            seen.insert((raw.namespace, local))
        } else {
            earlier.iter().all(|other| {
                other.namespace != raw.namespace || tree.text.get(other.local) != local
            })
        };
        if !is_new {
            let name = &tree.text.main[raw.offset..raw.local.end()];
            let message = format!("attribute {} is given twice", clip(name));
            let kind = if prefix.is_empty() { Refusal::syntax } else { Refusal::namespace };
            return Err(kind(raw.offset, message));
        }
    }
    for raw in attributes {
        let RawAttribute { local, value, offset, name, .. } = *raw;
        tree.attribute(AttributeNode { local, value, name }, offset)?;
    }
    Ok(())
}

/// Refuses a declaration whose prefix must not be bound to its namespace.
fn check_declaration(prefix: &str, namespace: &str, offset: usize) -> Result<(), Refusal> {
    let message = match (prefix, namespace) {
        ("xmlns", _) => "xmlns can't be declared",
        ("xml", XML) => "xmlns:xml is declared twice",
        ("xml", _) => "xml can't be bound to another namespace",
        (_, XML) => "only xml can be bound to the namespace of xml",
        (_, XMLNS) => "nothing can be bound to the namespace of xmlns",
        ("", _) => return Ok(()),
        (_, "") => "a prefix can't be bound to the empty namespace",
        _ => return Ok(()),
    };
    Err(Refusal::namespace(offset, message))
}

struct Parsed {
    raw: RawAttribute,
    /// The offset of the opening quote, and the offset after the closing quote.
    value: (usize, usize),
}

/// Parses the attribute that starts at `start`.
fn attribute(
    source: &str,
    start: usize,
    stop: usize,
    tree: &mut Builder,
) -> Result<Parsed, Refusal> {
    let bytes = source.as_bytes();
    let (prefix, local) = qualified_name(source, start, tree.limits.name_bytes_max)?;
    let equals = space_end(bytes, local.end());
    if bytes.get(equals) != Some(&b'=') || equals >= stop {
        let name = clip(&source[start..local.end()]);
        let message = format!("attribute {name} needs `=` and a quoted value");
        return Err(Refusal::syntax(equals, message));
    }
    let open = space_end(bytes, equals + 1);
    let quote = match bytes.get(open) {
        Some(&quote @ (b'"' | b'\'')) if open < stop => quote,
        _ => {
            let name = clip(&source[start..local.end()]);
            let message = format!("the value of attribute {name} must stand in quotes");
            return Err(Refusal::syntax(open, message));
        }
    };
    let mut plain = true;
    let mut end = open + 1;
    loop {
        match bytes.get(end) {
            Some(&byte) if byte == quote => break,
            Some(b'<') => {
                let message = "`<` in an attribute value must be written `&lt;`";
                return Err(Refusal::syntax(end, message));
            }
            Some(b'&' | b'\t' | b'\n' | b'\r') => plain = false,
            Some(_) => {}
            None => return Err(Refusal::syntax(open, "an attribute value is never closed")),
        }
        end += 1;
    }
    let value = if plain {
        Span::new(open + 1, end)
    } else {
        let extra = tree.text.extra.len();
        push_value(source, open + 1, end, &mut tree.text.extra)?;
        tree.text.extra_since(extra)
    };
    let (name, namespace) = (BARE, EMPTY);
    let raw = RawAttribute { prefix, local, value, offset: start, name, namespace };
    Ok(Parsed { raw, value: (open, end + 1) })
}

/// Parses a name with or without a prefix. Returns the spans of the prefix and of the local name.
fn qualified_name(source: &str, start: usize, bytes_max: usize) -> Result<(Span, Span), Refusal> {
    let bytes = source.as_bytes();
    let first = name_end(source, start);
    if first == start {
        return Err(match bytes.get(start) {
            Some(b':') => Refusal::namespace(start, "a prefix can't be empty"),
            _ => unexpected(source, start),
        });
    }
    let (prefix, local) = if bytes.get(first) == Some(&b':') {
        let end = name_end(source, first + 1);
        if end == first + 1 {
            let message = "a name must follow the colon";
            return Err(Refusal::namespace(end, message));
        }
        if bytes.get(end) == Some(&b':') {
            return Err(Refusal::namespace(end, "a name has one colon at the most"));
        }
        (Span::new(start, first), Span::new(first + 1, end))
    } else {
        (Span::new(start, start), Span::new(start, first))
    };
    if local.end() - start > bytes_max {
        let what = format!("a name of {} bytes", local.end() - start);
        return Err(Refusal::limit(start, &what, "name_bytes_max", bytes_max));
    }
    Ok((prefix, local))
}

/// Returns the character that the reference at `start` stands for, and where the reference ends.
pub(super) fn reference(source: &str, start: usize) -> Result<(char, usize), Refusal> {
    let bytes = source.as_bytes();
    if bytes.get(start + 1) == Some(&b'#') {
        return character_reference(source, start);
    }
    let end = name_end(source, start + 1);
    if end == start + 1 || bytes.get(end) != Some(&b';') {
        return Err(Refusal::syntax(start, BARE_AMPERSAND));
    }
    let character = match &source[start + 1..end] {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        name => {
            let name = clip(name);
            let message = format!("&{name}; is none of &lt; &gt; &amp; &quot; &apos;");
            return Err(Refusal::syntax(start, message));
        }
    };
    Ok((character, end + 1))
}

fn character_reference(source: &str, start: usize) -> Result<(char, usize), Refusal> {
    let bytes = source.as_bytes();
    let is_hex = bytes.get(start + 2) == Some(&b'x');
    let (digits, radix) = if is_hex { (start + 3, 16) } else { (start + 2, 10) };
    let mut end = digits;
    let mut code = 0_u32;
    while let Some(digit) = bytes.get(end).and_then(|&byte| char::from(byte).to_digit(radix)) {
        code = code.saturating_mul(radix).saturating_add(digit);
        end += 1;
    }
    if end == digits || bytes.get(end) != Some(&b';') {
        let message = "a character reference is written `&#10;` or `&#xA;`";
        return Err(Refusal::syntax(start, message));
    }
    match char::from_u32(code).filter(|&c| is_character(c)) {
        Some(character) => Ok((character, end + 1)),
        None => {
            let name = clip(&source[start..=end]);
            Err(Refusal::syntax(start, format!("{name} is no XML character")))
        }
    }
}

/// Decodes an attribute value. A line end or other white space becomes a space, and a reference
/// becomes its character.
fn push_value(source: &str, start: usize, end: usize, out: &mut String) -> Result<(), Refusal> {
    let bytes = source.as_bytes();
    let mut at = start;
    while at < end {
        let plain = bytes[at..end]
            .iter()
            .position(|byte| matches!(byte, b'&' | b'\t' | b'\n' | b'\r'))
            .unwrap_or(end - at);
        out.push_str(&source[at..at + plain]);
        at += plain;
        match bytes[at..end] {
            [] => {}
            [b'&', ..] => {
                let (character, next) = reference(source, at)?;
                out.push(character);
                at = next;
            }
            [b'\r', b'\n', ..] => {
                out.push(' ');
                at += 2;
            }
            _ => {
                out.push(' ');
                at += 1;
            }
        }
    }
    Ok(())
}

/// Copies text, and writes `\n` for each `\r\n` and each `\r`.
pub(super) fn push_lines(text: &str, out: &mut String) {
    let mut rest = text;
    while let Some(at) = memchr::memchr(b'\r', rest.as_bytes()) {
        out.push_str(&rest[..at]);
        out.push('\n');
        rest = &rest[at + 1..];
        rest = rest.strip_prefix('\n').unwrap_or(rest);
    }
    out.push_str(rest);
}

/// The part of an XML declaration that the reader needs.
pub(super) struct Declaration {
    pub(super) is_ascii: bool,
}

/// Checks `<?xml version="1.0" encoding="…" standalone="…"?>`.
pub(super) fn declaration(source: &str, start: usize, end: usize) -> Result<Declaration, Refusal> {
    let bytes = source.as_bytes();
    let stop = end - "?>".len();
    let mut at = start + "<?xml".len();
    let mut is_ascii = false;
    let mut expected: &[&str] = &["version", "encoding", "standalone"];
    loop {
        let space = space_end(bytes, at).min(stop);
        if space == stop {
            break;
        }
        if space == at {
            return Err(unexpected(source, at));
        }
        let name_stop = name_end(source, space);
        let name = &source[space..name_stop];
        let Some(index) = expected.iter().position(|&known| known == name) else {
            let found = if name.is_empty() { quoted(source, space) } else { clip(name).into() };
            let message = format!("an XML declaration has no {found} here");
            return Err(Refusal::syntax(space, message));
        };
        if expected.len() == 3 && index > 0 {
            return Err(Refusal::syntax(space, "an XML declaration begins with its version"));
        }
        expected = &expected[index + 1..];
        let (value, next) = declared(source, name_stop, stop)?;
        at = next;
        let is_right = match name {
            "version" => value == "1.0",
            "encoding" => {
                is_ascii = value.eq_ignore_ascii_case("us-ascii");
                is_ascii || value.eq_ignore_ascii_case("utf-8")
            }
            _ => matches!(value, "yes" | "no"),
        };
        if !is_right {
            let message = match name {
                "version" => "only XML 1.0 is read",
                "encoding" => "only UTF-8 and US-ASCII are read",
                _ => "standalone is yes or no",
            };
            return Err(Refusal::syntax(space, message));
        }
    }
    if expected.len() == 3 {
        return Err(Refusal::syntax(stop, "an XML declaration begins with its version"));
    }
    Ok(Declaration { is_ascii })
}

/// Returns the quoted value after a name in the XML declaration, and the offset after its closing
/// quote.
fn declared(source: &str, at: usize, stop: usize) -> Result<(&str, usize), Refusal> {
    let bytes = source.as_bytes();
    let equals = space_end(bytes, at);
    let open = space_end(bytes, equals + 1);
    let quote = match bytes.get(open) {
        Some(&quote @ (b'"' | b'\'')) if bytes[equals] == b'=' && open < stop => quote,
        _ => return Err(Refusal::syntax(equals, "`=` and a quoted value are needed here")),
    };
    match memchr::memchr(quote, &bytes[open + 1..stop]) {
        Some(length) => Ok((&source[open + 1..open + 1 + length], open + length + 2)),
        None => Err(Refusal::syntax(open, "a value is never closed")),
    }
}

fn unexpected(source: &str, at: usize) -> Refusal {
    let after_value = at > 0 && matches!(source.as_bytes()[at - 1], b'"' | b'\'');
    let starts_name = name_end(source, at) > at;
    let message = if after_value && starts_name {
        "white space is missing before this attribute".to_owned()
    } else {
        format!("{} can't stand here", quoted(source, at))
    };
    Refusal::syntax(at, message)
}

/// Returns the character at `at` in the form that error messages use.
fn quoted(source: &str, at: usize) -> String {
    match source[at..].chars().next() {
        Some(c) if c.is_ascii() && is_space(c as u8) => "white space".to_owned(),
        Some(c) => format!("`{c}`"),
        None => "the end".to_owned(),
    }
}

fn unbound(prefix: &str, at: usize) -> Refusal {
    let message = match prefix {
        "xmlns" => "the prefix xmlns is reserved".to_owned(),
        _ => format!("the prefix {} is bound to nothing", clip(prefix)),
    };
    Refusal::namespace(at, message)
}
