//! XML without IO: bytes to whole elements, elements to trees, trees to canonical bytes.
//!
//! ```
//! use pumphouse::limits::XmlLimits;
//! use pumphouse::xml::{self, Profile};
//!
//! let add = xml::read("<add xmlns='urn:x' b='2' a='1'/>", Profile::Wire, &XmlLimits::DOOR)?;
//! assert_eq!(add.attribute("a"), Some("1"));
//! assert_eq!(&add.canonical()[..], br#"<add xmlns="urn:x" a="1" b="2"></add>"#);
//! # Ok::<(), xml::Error>(())
//! ```
//!
//! [`Splitter`] cuts a stream into elements, [`read()`] checks one strictly and keeps it as an
//! [`Element`], [`Writer`] makes one from events. Only `read` names the XML library, whose
//! tokenizer it uses. Nothing here knows envelopes, schemas or sockets.

mod canon;
mod chars;
mod element;
mod error;
mod floor;
mod intern;
mod nodes;
mod read;
mod split;
mod tag;
mod tree;
mod write;

#[cfg(test)]
mod tests;

pub use chars::{is_character, is_name, writable};
pub use element::{Attribute, Child, Element, View};
pub use error::{Error, Kind, Place, place_of};
pub use floor::tokens;
pub use read::{Profile, read};
pub use split::{Frame, Framing, Splitter, frame};
pub use write::{Writer, escape_attribute, escape_text};

/// What the prefix `xml` is bound to, always.
const XML: &str = "http://www.w3.org/XML/1998/namespace";
/// What the prefix `xmlns` is bound to, always.
const XMLNS: &str = "http://www.w3.org/2000/xmlns/";
/// Where `xsi:type` lives, whose values are qualified names.
const XSI: &str = "http://www.w3.org/2001/XMLSchema-instance";
