//! Elements of a reply that are payloads. They are read as strict XML.

use pumphouse::Element;
use pumphouse::limits::XmlLimits;
use pumphouse::reply::{self, Body};
use pumphouse::xml::{self, Profile};

/// Reads an element as strict XML.
pub(super) fn element(it: &reply::Element<'_>) -> Result<Element, String> {
    let text = match it.body {
        Body::Elements(text) => text.to_owned(),
        Body::Empty => empty(it),
        _ => return Err("it holds no elements".to_owned()),
    };
    xml::read(text, Profile::Wire, &XmlLimits::INSIDE).map_err(|it| it.to_string())
}

/// Writes an element that has attributes only.
fn empty(it: &reply::Element<'_>) -> String {
    let mut text = format!("<{}", it.name);
    for attribute in it.attributes {
        text += &format!(" {}=\"", attribute.name);
        xml::escape_attribute(&attribute.value, &mut text);
        text.push('"');
    }
    text + "/>"
}
