//! The other parsers, each with a function that returns its reading in a common form.

use uppsala::pull::{PullEvent, PullParser};
use xml::reader::{ParserConfig, XmlEvent};

use super::Said;

/// Another parser.
pub(super) struct Other {
    pub(super) name: &'static str,
    /// What it says of a text, or why it refuses it.
    pub(super) parse: fn(&str) -> Result<Said, String>,
    /// Whether a text has something that it is known to read wrongly.
    pub(super) errs: fn(&str) -> bool,
}

pub(super) const OTHERS: [Other; 3] = [
    // It takes an attribute such as `p:xmlns` for a declaration of the default namespace.
    Other { name: "roxmltree", parse: roxmltree, errs: |it| it.contains(":xmlns=") },
    // It keeps the line ends and tabs of attribute values, where a space must come instead.
    Other { name: "uppsala", parse: uppsala, errs: has_white_space_in_a_value },
    Other { name: "xml", parse: xml, errs: |_| false },
];

fn roxmltree(text: &str) -> Result<Said, String> {
    // It keeps a carriage return before a reference.
    let text = &line_ends_alike(text);
    let document = roxmltree::Document::parse(text).map_err(|error| error.to_string())?;
    let mut said = Said::default();
    tree(document.root_element(), &mut said);
    Ok(said)
}

pub(super) fn tree(node: roxmltree::Node<'_, '_>, said: &mut Said) {
    let name = node.tag_name();
    said.start(name.namespace().unwrap_or_default(), name.name());
    let attribute = |it: roxmltree::Attribute<'_, '_>| {
        let namespace = it.namespace().unwrap_or_default();
        (namespace.to_owned(), it.name().to_owned(), it.value().to_owned())
    };
    said.attributes(node.attributes().map(attribute).collect());
    for child in node.children() {
        if child.is_element() {
            tree(child, said);
        } else if child.is_text() {
            said.text(child.text().unwrap_or_default());
        }
    }
    said.end();
}

fn uppsala(text: &str) -> Result<Said, String> {
    let mut said = Said::default();
    // It keeps carriage returns in CDATA sections.
    let text = &line_ends_alike(text);
    let mut parser = PullParser::new(text).with_forbid_dtd(true);
    while let Some(event) = parser.next_event().map_err(|error| error.to_string())? {
        match event {
            PullEvent::StartElement { name, attributes, .. } => {
                said.start(&name.namespace_uri.unwrap_or_default(), &name.local_name);
                let attribute = |it: uppsala::Attribute<'_>| {
                    let namespace = it.name.namespace_uri.unwrap_or_default().into_owned();
                    (namespace, it.name.local_name.into_owned(), it.value.into_owned())
                };
                said.attributes(attributes.into_iter().map(attribute).collect());
            }
            PullEvent::Text { content, .. } | PullEvent::CData { content, .. } => {
                said.text(&content);
            }
            PullEvent::EndElement { .. } => said.end(),
            _ => {}
        }
    }
    Ok(said)
}

fn xml(text: &str) -> Result<Said, String> {
    let mut said = Said::default();
    let mut config = ParserConfig::new();
    config.whitespace_to_characters = true;
    config.cdata_to_characters = true;
    config.allow_multiple_root_elements = false;
    for event in config.create_reader(text.as_bytes()) {
        match event.map_err(|error| error.to_string())? {
            XmlEvent::StartElement { name, attributes, .. } => {
                said.start(&name.namespace.unwrap_or_default(), &name.local_name);
                let attribute = |it: xml::attribute::OwnedAttribute| {
                    (it.name.namespace.unwrap_or_default(), it.name.local_name, it.value)
                };
                said.attributes(attributes.into_iter().map(attribute).collect());
            }
            XmlEvent::Characters(text) | XmlEvent::CData(text) => said.text(&text),
            XmlEvent::EndElement { .. } => said.end(),
            _ => {}
        }
    }
    Ok(said)
}

/// What is done before a document is parsed (2.11), for those who forget it somewhere.
fn line_ends_alike(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\r', "\n")
}

/// Whether an attribute value of a right document has white space that is no space.
fn has_white_space_in_a_value(text: &str) -> bool {
    let mut rest = text;
    while let Some(at) = rest.find('<') {
        rest = &rest[at..];
        let skipped = [("<!--", "-->"), ("<![CDATA[", "]]>"), ("<?", "?>")];
        if let Some((open, close)) = skipped.iter().find(|(open, _)| rest.starts_with(open)) {
            rest = &rest[open.len()..];
            rest = &rest[rest.find(close).unwrap() + close.len()..];
            continue;
        }
        while let Some(at) = rest.find(['"', '\'', '>']) {
            let (quote, inside) = (rest.as_bytes()[at], &rest[at + 1..]);
            if quote == b'>' {
                rest = inside;
                break;
            }
            let (value, after) = inside.split_once(char::from(quote)).unwrap();
            if value.contains(['\t', '\n', '\r']) {
                return true;
            }
            rest = after;
        }
    }
    false
}
