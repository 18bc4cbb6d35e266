//! Writes XML for people: indented, with one element per line. Messages to clients have a writer of
//! their own.

use crate::xml::{escape_attribute, escape_text};

/// An element to be written.
pub(super) struct Node {
    name: String,
    attributes: Vec<(String, String)>,
    inside: Inside,
}

enum Inside {
    Text(String),
    Nodes(Vec<Node>),
}

impl Node {
    pub(super) fn new(name: impl Into<String>) -> Node {
        Node { name: name.into(), attributes: Vec::new(), inside: Inside::Nodes(Vec::new()) }
    }

    pub(super) fn text(name: impl Into<String>, text: impl Into<String>) -> Node {
        Node { inside: Inside::Text(text.into()), ..Node::new(name) }
    }

    pub(super) fn filled_with(self, text: impl Into<String>) -> Node {
        Node { inside: Inside::Text(text.into()), ..self }
    }

    pub(super) fn with(mut self, name: impl Into<String>, value: impl Into<String>) -> Node {
        self.attributes.push((name.into(), value.into()));
        self
    }

    pub(super) fn holding(mut self, nodes: impl IntoIterator<Item = Node>) -> Node {
        nodes.into_iter().for_each(|it| self.push(it));
        self
    }

    /// Inserts the given node as the first child. Does nothing if this node has text.
    pub(super) fn holding_first(mut self, node: Option<Node>) -> Node {
        if let Inside::Nodes(nodes) = &mut self.inside {
            nodes.splice(0..0, node);
        }
        self
    }

    pub(super) fn push(&mut self, node: Node) {
        match &mut self.inside {
            Inside::Nodes(nodes) => nodes.push(node),
            Inside::Text(_) => self.inside = Inside::Nodes(vec![node]),
        }
    }

    /// Returns the node as XML text, with a line end after each element.
    pub(super) fn render(&self) -> String {
        let mut out = String::new();
        self.lines(0, &mut out);
        out
    }

    fn lines(&self, depth: usize, out: &mut String) {
        let indent = |out: &mut String| out.extend(std::iter::repeat_n("  ", depth));
        indent(out);
        out.push('<');
        out.push_str(&self.name);
        for (name, value) in &self.attributes {
            out.push(' ');
            out.push_str(name);
            out.push_str("=\"");
            escape_attribute(value, out);
            out.push('"');
        }
        match &self.inside {
            Inside::Nodes(nodes) if nodes.is_empty() => {
                out.push_str("/>\n");
                return;
            }
            Inside::Nodes(nodes) => {
                out.push_str(">\n");
                nodes.iter().for_each(|it| it.lines(depth + 1, out));
                indent(out);
            }
            Inside::Text(text) => {
                out.push('>');
                escape_text(text, out);
            }
        }
        out.push_str("</");
        out.push_str(&self.name);
        out.push_str(">\n");
    }
}
