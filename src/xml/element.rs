//! Read-only elements, as all other modules see them.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

use super::canon;
use super::error::{Error, Kind, Place, place_of};
use super::nodes::Nodes;
use super::read::{Profile, read};
use super::tree::{AttributeNode, Binding, Document};
use crate::limits::XmlLimits;
use crate::name::Name;

/// An element with its attributes and its content.
///
/// Cloning is cheap: clones share the document.
#[derive(Clone)]
pub struct Element {
    document: Arc<Document>,
    node: u32,
}

/// A borrowed [`Element`].
#[derive(Clone, Copy)]
pub struct View<'a> {
    document: &'a Arc<Document>,
    node: u32,
}

/// A child of an element.
#[derive(Clone, Copy, Debug)]
// Exhaustive: comments and processing instructions are not kept.
pub enum Child<'a> {
    /// An element.
    Element(View<'a>),
    /// A text. A text is never empty, and never next to another text.
    Text(&'a str),
}

/// An attribute. Its value is decoded and normalised. Namespace declarations don't count as
/// attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Attribute<'a> {
    /// The namespace. Empty for an attribute without a prefix.
    pub namespace: &'a str,
    /// The name without its prefix.
    pub local: &'a str,
    /// The prefix. Empty if there is none.
    pub prefix: &'a str,
    /// The value.
    pub value: &'a str,
}

impl Element {
    pub(super) fn root(document: Arc<Document>) -> Element {
        Element { document, node: 0 }
    }

    /// Reads bytes that [`canonical`](Element::canonical) wrote, and keeps them as the element's
    /// canonical form.
    ///
    /// # Errors
    /// Returns the errors of [`read`] with [`XmlLimits::FILE`]. The function doesn't check that the
    /// bytes are canonical, so the caller must be sure of it. The log verifies the bytes by their
    /// digest.
    pub fn from_canonical(bytes: Bytes) -> Result<Element, Error> {
        let element = read(&bytes, Profile::Wire, &XmlLimits::FILE)?;
        let _ = element.document.canonical.set(bytes);
        Ok(element)
    }

    /// Borrows the element.
    #[must_use]
    pub fn view(&self) -> View<'_> {
        View { document: &self.document, node: self.node }
    }

    /// Returns the bytes that the log stores and digests: exclusive C14N without comments. Prefixes
    /// stay as they are, and a prefix in the value of `xsi:type` counts as used.
    #[must_use]
    pub fn canonical(&self) -> Bytes {
        self.view().canonical()
    }

    /// Calls `then` with a `roxmltree` document, parsed from the element's canonical bytes.
    ///
    /// # Errors
    /// Returns an error if `roxmltree` refuses the document, for instance because of an element
    /// with the prefix `xml`. Returns an error, too, if there is an attribute with a prefix and the
    /// local name `xmlns`, which `roxmltree` would read differently.
    pub fn with_tree<T>(
        &self,
        then: impl FnOnce(&roxmltree::Document<'_>) -> T,
    ) -> Result<T, Error> {
        let bytes = self.canonical();
        let refuse = |message: String| {
            let place = place_of(&bytes, 0);
            Error { kind: Kind::Syntax, place, message }
        };
        if self.view().has_attribute_anywhere("xmlns") {
            return Err(refuse(
                "an attribute xmlns with a prefix has no roxmltree view".to_owned(),
            ));
        }
        let text = std::str::from_utf8(&bytes).map_err(|error| refuse(error.to_string()))?;
        let tree = roxmltree::Document::parse(text).map_err(|error| refuse(error.to_string()))?;
        Ok(then(&tree))
    }

    /// Returns the namespace and the local name.
    #[must_use]
    pub fn name(&self) -> Name {
        self.view().name()
    }

    /// Returns the namespace, which is empty if there is none.
    #[must_use]
    pub fn namespace(&self) -> &str {
        self.view().namespace()
    }

    /// Returns the name without its prefix.
    #[must_use]
    pub fn local(&self) -> &str {
        self.view().local()
    }

    /// Returns the prefix, which is empty if there is none.
    #[must_use]
    pub fn prefix(&self) -> &str {
        self.view().prefix()
    }

    /// Returns whether the element has this name.
    #[must_use]
    pub fn is(&self, namespace: &str, local: &str) -> bool {
        self.view().is(namespace, local)
    }

    /// Returns the value of the attribute with this local name and no namespace.
    #[must_use]
    pub fn attribute(&self, local: &str) -> Option<&str> {
        self.view().attribute(local)
    }

    /// Returns the attributes in document order, without namespace declarations.
    pub fn attributes(&self) -> impl Iterator<Item = Attribute<'_>> {
        self.view().attributes()
    }

    /// Returns the child elements and texts, in document order.
    pub fn children(&self) -> impl Iterator<Item = Child<'_>> {
        self.view().children()
    }

    /// Returns the child elements, in document order.
    pub fn elements(&self) -> impl Iterator<Item = View<'_>> {
        self.view().elements()
    }

    /// Returns the child texts, concatenated.
    #[must_use]
    pub fn text(&self) -> Cow<'_, str> {
        self.view().text()
    }

    /// Returns whether the element has no children. Its attributes don't count.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.view().is_empty()
    }

    /// Returns whether the element has no child elements.
    #[must_use]
    pub fn has_text_only(&self) -> bool {
        self.view().has_text_only()
    }

    /// Returns the namespace that a prefix is bound to within this element. The empty prefix stands
    /// for the default namespace.
    #[must_use]
    pub fn binding(&self, prefix: &str) -> Option<&str> {
        self.view().binding(prefix)
    }

    /// Returns where the element starts in the document that it was read from.
    #[must_use]
    pub fn place(&self) -> Place {
        self.view().place()
    }

    /// Returns the path of local names from the document's root to this element: `/message/add/a`.
    #[must_use]
    pub fn path(&self) -> String {
        self.view().path()
    }
}

impl<'a> View<'a> {
    /// Returns an owned element, which shares the document.
    #[must_use]
    pub fn to_element(self) -> Element {
        Element { document: Arc::clone(self.document), node: self.node }
    }

    /// Returns the bytes of [`Element::canonical`].
    #[must_use]
    pub fn canonical(self) -> Bytes {
        if self.node != 0 {
            return canon::write(self.document, self.node);
        }
        let make = || match self.document.is_canonical {
            true => Bytes::copy_from_slice(self.document.text.main.as_bytes()),
            false => canon::write(self.document, 0),
        };
        self.document.canonical.get_or_init(make).clone()
    }

    /// Returns the canonical bytes for a place where the default namespace is `namespace` already.
    /// The bytes don't declare that namespace again. If the element has no namespace, the bytes
    /// undeclare a non-empty `namespace` with `xmlns=""`.
    #[must_use]
    pub fn canonical_within(self, namespace: &str) -> Bytes {
        canon::write_within(self.document, self.node, namespace)
    }

    /// Passes the bytes of [`canonical`](View::canonical) to `take`, piece by piece. This is for
    /// digests of elements that are too large to copy.
    pub fn canonical_pieces(self, take: impl FnMut(&[u8])) {
        canon::pieces(self.document, self.node, take);
    }

    /// Returns the namespace and the local name.
    #[must_use]
    pub fn name(self) -> Name {
        Name::new(self.namespace(), self.local())
    }

    /// Returns the namespace, which is empty if there is none.
    #[must_use]
    pub fn namespace(self) -> &'a str {
        self.document.namespace(self.document.pair(self.name_number()).1)
    }

    /// Returns the name without its prefix.
    #[must_use]
    pub fn local(self) -> &'a str {
        self.document.get(self.document.nodes.text(self.node))
    }

    /// Returns the prefix, which is empty if there is none.
    #[must_use]
    pub fn prefix(self) -> &'a str {
        self.document.prefix(self.document.pair(self.name_number()).0)
    }

    /// Returns whether the element has this name.
    #[must_use]
    pub fn is(self, namespace: &str, local: &str) -> bool {
        self.local() == local && self.namespace() == namespace
    }

    /// Returns whether both elements have the same namespace. Within one document, only the
    /// namespaces' numbers are compared.
    pub fn shares_namespace(self, other: View<'_>) -> bool {
        if Arc::ptr_eq(self.document, other.document) {
            let namespace = |it: View<'_>| it.document.pair(it.name_number()).1;
            return namespace(self) == namespace(other);
        }
        self.namespace() == other.namespace()
    }

    /// Returns the value of the attribute with this local name and no namespace.
    #[must_use]
    pub fn attribute(self, local: &str) -> Option<&'a str> {
        let document: &'a Document = self.document;
        let is_it = |attribute: &AttributeNode| {
            let has_none = || document.namespace(document.pair(attribute.name).1).is_empty();
            document.get(attribute.local) == local && has_none()
        };
        document.nodes.attributes(self.node).find(is_it).map(|it| document.get(it.value))
    }

    /// Returns the attributes in document order, without namespace declarations.
    pub fn attributes(self) -> impl Iterator<Item = Attribute<'a>> {
        let document: &'a Document = self.document;
        document.nodes.attributes(self.node).map(|AttributeNode { local, value, name }| {
            let (prefix, namespace) = document.pair(name);
            Attribute {
                namespace: document.namespace(namespace),
                local: document.get(local),
                prefix: document.prefix(prefix),
                value: document.get(value),
            }
        })
    }

    /// Returns the child elements and texts, in document order.
    pub fn children(self) -> impl Iterator<Item = Child<'a>> {
        let document: &'a Document = self.document;
        self.child_nodes().map(move |node| {
            if document.nodes.is_text(node) {
                Child::Text(document.get(document.nodes.text(node)))
            } else {
                Child::Element(View { document: self.document, node })
            }
        })
    }

    /// Returns the child elements, in document order.
    pub fn elements(self) -> impl Iterator<Item = View<'a>> {
        self.child_nodes()
            .filter(move |&node| !self.document.nodes.is_text(node))
            .map(move |node| View { document: self.document, node })
    }

    /// Returns the child texts, concatenated.
    #[must_use]
    pub fn text(self) -> Cow<'a, str> {
        let (document, mut all): (&'a Document, _) = (self.document, Cow::Borrowed(""));
        for node in self.child_nodes().filter(|&node| document.nodes.is_text(node)) {
            all += document.get(document.nodes.text(node));
        }
        all
    }

    /// Returns whether the element has no children. Its attributes don't count.
    #[must_use]
    pub fn is_empty(self) -> bool {
        let nodes = &self.document.nodes;
        nodes.end(self.node) == nodes.after(self.node)
    }

    /// Returns whether the element has no child elements.
    #[must_use]
    pub fn has_text_only(self) -> bool {
        self.elements().next().is_none()
    }

    /// Returns the namespace that a prefix is bound to within this element. The empty prefix stands
    /// for the default namespace.
    ///
    /// The search covers all declarations before the element, so use this function only for
    /// prefixes in values.
    #[must_use]
    pub fn binding(self, prefix: &str) -> Option<&'a str> {
        if prefix == "xml" {
            return Some(super::XML);
        }
        let document: &'a Document = self.document;
        let before = document.bindings.partition_point(|it| it.owner <= self.node);
        let in_force = |it: &&Binding| document.nodes.end(it.owner) > self.node;
        let named = |it: &&Binding| document.prefix(it.prefix) == prefix;
        let found = document.bindings[..before].iter().rev().filter(in_force).find(named)?;
        Some(document.namespace(found.namespace)).filter(|namespace| !namespace.is_empty())
    }

    /// Returns where the element starts in the document that it was read from.
    ///
    /// The time is linear in the element's offset, so call this function only for places that a
    /// person will read.
    #[must_use]
    pub fn place(self) -> Place {
        place_of(self.document.text.main.as_bytes(), self.document.offset(self.node))
    }

    /// Returns the path of local names from the document's root to this element: `/message/add/a`.
    #[must_use]
    pub fn path(self) -> String {
        let (nodes, mut path) = (&self.document.nodes, String::new());
        let mut at = 0;
        loop {
            path.push('/');
            path.push_str(self.document.get(nodes.text(at)));
            if at == self.node {
                return path;
            }
            at = nodes.after(at);
            while nodes.end(at) <= self.node {
                at = nodes.end(at);
            }
        }
    }

    /// Returns whether the element, or an element within it, has an attribute with this local name
    /// in any namespace.
    fn has_attribute_anywhere(self, local: &str) -> bool {
        let nodes = &self.document.nodes;
        let (mut at, end) = (self.node, nodes.end(self.node));
        while at < end {
            let is_it = |it: AttributeNode| self.document.get(it.local) == local;
            if !nodes.is_text(at) && nodes.attributes(at).any(is_it) {
                return true;
            }
            at = nodes.after(at);
        }
        false
    }

    pub(super) fn document(self) -> &'a Document {
        self.document
    }

    pub(super) fn number(self) -> u32 {
        self.node
    }

    /// Returns the number of the element's name, which stands for a prefix and its namespace.
    fn name_number(self) -> u32 {
        self.document.nodes.name(self.node)
    }

    fn child_nodes(self) -> impl Iterator<Item = u32> {
        let nodes: &'a Nodes = &self.document.nodes;
        let (mut next, end) = (nodes.after(self.node), nodes.end(self.node));
        std::iter::from_fn(move || {
            let node = (next < end).then_some(next)?;
            next = nodes.end(node);
            Some(node)
        })
    }
}

impl fmt::Debug for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.view(), f)
    }
}

/// Shows the canonical form.
impl fmt::Debug for View<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.canonical()))
    }
}

/// Elements are equal if their canonical bytes are equal.
impl PartialEq for Element {
    fn eq(&self, other: &Element) -> bool {
        self.view() == other.view()
    }
}

impl Eq for Element {}

/// Elements are equal if their canonical bytes are equal.
impl PartialEq for View<'_> {
    fn eq(&self, other: &View<'_>) -> bool {
        self.canonical() == other.canonical()
    }
}

impl Eq for View<'_> {}
