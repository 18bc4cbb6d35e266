//! The events of a parser.

use crate::reply::{Kind, Why};
use crate::xml::Place;

/// Something in a reply. All of it is borrowed: keep what you need.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Event<'a> {
    /// What it is.
    pub what: What<'a>,
    /// The characters of the reply that it covers; none if it only says something.
    pub source: &'a str,
    /// Where it begins: of a closed element, its open tag; of what is broken, where it breaks.
    pub place: Place,
}

/// What there may be in a reply.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum What<'a> {
    /// A piece of text, as it comes: the event's source.
    Text {
        /// The kind of the element it stands in; none between elements.
        within: Option<Kind>,
    },
    /// A thought, a response or the agent's own root begins.
    Opened(Element<'a>),
    /// An element is whole. The source of a thought, a response or an own root is its close tag,
    /// as all else was said before; the source of all others is the element.
    Closed(Element<'a>),
    /// An element that will not run, and why.
    Broken(Broken<'a>),
    /// Markup that was not quite right, and how it was understood. What it is about comes next.
    Repaired(&'a str),
    /// An element that is whole and could run, but stands where it is text: it was said as text
    /// already. Its place is that of its open tag.
    Ignored {
        /// The element.
        element: Element<'a>,
        /// Why it is text.
        why: Why,
    },
    /// A piece of an element that crossed a limit, as it comes.
    Discarded {
        /// The element's name.
        name: &'a str,
    },
    /// The reply is over.
    Finished {
        /// The element that it ended within, if that can't be closed: it never runs.
        cut: Option<Cut<'a>>,
    },
}

/// An element, or its beginning.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Element<'a> {
    /// Its name as it is written.
    pub name: &'a str,
    /// What it is.
    pub kind: Kind,
    /// Its attributes in their order. An action's `type`, `mode` and `id` and a `tool_use`'s `id`
    /// are there even if they weren't written.
    pub attributes: &'a [Attribute],
    /// What is in it; nothing yet if it just begins.
    pub body: Body<'a>,
}

impl<'a> Element<'a> {
    /// The value of an attribute.
    #[must_use]
    pub fn attribute(&self, name: &str) -> Option<&'a str> {
        self.attributes.iter().find(|it| it.name == name).map(|it| it.value.as_str())
    }
}

/// An attribute, its value without quotes and entities.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Attribute {
    /// Its name as it is written.
    pub name: String,
    /// Its value.
    pub value: String,
}

impl Attribute {
    pub(super) fn new(name: impl Into<String>, value: impl Into<String>) -> Attribute {
        Attribute { name: name.into(), value: value.into() }
    }
}

/// What is in an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Body<'a> {
    /// Nothing, or only white space.
    Empty,
    /// The text of a thought or a response, without the elements in it; or what a context feed
    /// is said to hold.
    Text(&'a str),
    /// JSON that was checked, as it is written; comments and the marks of CDATA sections are
    /// spaces.
    Json(&'a str),
    /// The whole element with its tags, well-formed: [`xml::read`](crate::xml::read) takes it.
    Elements(&'a str),
}

impl<'a> Body<'a> {
    /// The characters of the body; of [`Elements`](Body::Elements), with the element's own tags.
    #[must_use]
    pub fn as_str(self) -> &'a str {
        match self {
            Body::Empty => "",
            Body::Text(it) | Body::Json(it) | Body::Elements(it) => it,
        }
    }
}

/// Why an element will not run.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Broken<'a> {
    /// The element's name.
    pub name: &'a str,
    /// What sort of rule it breaks.
    pub fault: Fault,
    /// What is wrong and, where it helps, what would be right.
    pub reason: &'a str,
    /// Up to 40 characters on either side of the place.
    pub snippet: &'a str,
}

/// What sort of rule is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Fault {
    /// JSON that isn't, or that isn't what a call looks like.
    Json,
    /// Tags, attributes or child elements whose meaning isn't plain.
    Markup,
    /// A bound of [`ReplyLimits`](crate::limits::ReplyLimits) is crossed.
    Limit,
}

/// What a reply ended within.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Cut<'a> {
    /// The element's name.
    pub name: &'a str,
    /// Where it begins.
    pub place: Place,
}
