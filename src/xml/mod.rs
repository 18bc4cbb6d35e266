//! XML without IO: cuts bytes into elements, reads elements into trees, and writes trees as
//! canonical bytes.
//!
//! ```
//! # extern crate pumphouse_ground as pumphouse;
//! use pumphouse::limits::XmlLimits;
//! use pumphouse::xml::{self, Profile};
//!
//! let add = xml::read("<add xmlns='urn:x' b='2' a='1'/>", Profile::Wire, &XmlLimits::DOOR)?;
//! assert_eq!(add.attribute("a"), Some("1"));
//! assert_eq!(&add.canonical()[..], br#"<add xmlns="urn:x" a="1" b="2"></add>"#);
//! # Ok::<(), xml::Error>(())
//! ```
//!
//! - [`Splitter`] cuts a stream into elements.
//! - [`read()`] checks a document strictly and makes it an [`Element`].
//! - [`Writer`] builds an [`Element`] from method calls.
//!
//! [`read()`] uses the tokenizer of the library `quick_xml`, and `root` its function `unescape`.
//! This module doesn't depend on envelopes, schemas or sockets.

mod canon;
mod chars;
mod element;
mod error;
mod intern;
mod nodes;
mod read;
mod root;
mod split;
mod tag;
mod tree;
mod write;

#[cfg(test)]
mod tests;

pub use chars::{is_character, is_name, writable};
pub use element::{Attribute, Child, Element, View};
pub use error::{Error, Kind, Place, place_of};
pub use read::{Profile, read};
pub use root::{root_attribute, root_text, unescaped};
pub use split::{Frame, Framing, Splitter, frame};
pub use write::{Writer, escape_attribute, escape_text};

/// The namespace that the prefix `xml` is always bound to.
const XML: &str = "http://www.w3.org/XML/1998/namespace";
/// The namespace that the prefix `xmlns` is always bound to.
const XMLNS: &str = "http://www.w3.org/2000/xmlns/";
/// The namespace of `xsi:type`, an attribute whose value is a qualified name.
const XSI: &str = "http://www.w3.org/2001/XMLSchema-instance";
