//! The other parsers, each made to say what it reads.

use uppsala::pull::{PullEvent, PullParser};
use xml::reader::{ParserConfig, XmlEvent};

use super::Said;

/// A parser: what it says of a text, or why it refuses it.
type Parse = fn(&str) -> Result<Said, String>;

pub(super) const OTHERS: [(&str, Parse); 3] =
    [("roxmltree", roxmltree), ("uppsala", uppsala), ("xml", xml)];

/// What another parser refuses although it is right.
pub(super) struct Exception {
    pub(super) who: &'static str,
    /// Part of what it says.
    pub(super) error: &'static str,
    /// Whether a text has what it stumbles over.
    pub(super) when: fn(&str) -> bool,
    /// What it is, for people.
    pub(super) what: &'static str,
}

pub(super) const EXCEPTIONS: [Exception; 0] = [];

fn roxmltree(text: &str) -> Result<Said, String> {
    let document = roxmltree::Document::parse(text).map_err(|error| error.to_string())?;
    let mut said = Said::default();
    tree(document.root_element(), &mut said);
    Ok(said)
}

fn tree(node: roxmltree::Node<'_, '_>, said: &mut Said) {
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
