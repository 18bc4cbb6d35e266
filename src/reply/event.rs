//! The events that a parser emits.

use crate::reply::{Kind, Why};
use crate::xml::Place;

/// One part of a reply. An event borrows its contents, so copy what you need to keep.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Event<'a> {
    /// The kind and the content of the event.
    pub what: What<'a>,
    /// The characters of the reply that the event covers. The source is empty if the event only
    /// reports something about characters of other events.
    pub source: &'a str,
    /// Where the part begins. A closed element has the place of its open tag, and a broken element
    /// has the place of the error. In a reply only `\n` ends a line.
    pub place: Place,
}

/// The kinds of events, with their contents.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum What<'a> {
    /// A piece of text, which is the event's source.
    Text {
        /// The kind of the element around the text. None for text between elements.
        within: Option<Kind>,
    },
    /// A thought, a response, a control block or the root of the agent's own payload begins.
    Opened(Element<'a>),
    /// An element is complete. If the element was [`Opened`](What::Opened), the source is only the
    /// close tag, since earlier events had the rest. Otherwise the source is the whole element.
    Closed(Element<'a>),
    /// An element can't be used, or a text crossed its limit.
    Broken(Broken<'a>),
    /// A note about markup that wasn't correct, and how the parser understood it. The event about
    /// the markup itself follows, unless the markup was dropped.
    Repaired(&'a str),
    /// A call, a payload or metadata is complete, but its place makes it text. Earlier events
    /// emitted the element as text. The event has the place where the element begins.
    ///
    /// For a control block in the middle of a line, this event comes before the block's
    /// [`Opened`](What::Opened), and the element has no content yet.
    Ignored {
        /// The element.
        element: Element<'a>,
        /// Why the element is text.
        why: Why,
    },
    /// A further piece of an element that crossed its limit.
    Discarded {
        /// The element's name.
        name: &'a str,
    },
    /// The reply has ended.
    Finished {
        /// The element that was incomplete when the reply ended. It never runs.
        cut: Option<Cut<'a>>,
    },
}

/// An element, or its open tag.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Element<'a> {
    /// The name as it is written.
    pub name: &'a str,
    /// The element's kind.
    pub kind: Kind,
    /// The attributes in their order. The parser adds attributes that are missing: `type`, `mode`
    /// and `id` to an action, and `id` to a `tool_use` or a `tool_call`.
    pub attributes: &'a [Attribute],
    /// The element's content. It is empty if the event only reports the open tag.
    pub body: Body<'a>,
}

impl<'a> Element<'a> {
    /// The value of the attribute with this name.
    #[must_use]
    pub fn attribute(&self, name: &str) -> Option<&'a str> {
        self.attributes.iter().find(|it| it.name == name).map(|it| it.value.as_str())
    }
}

/// An attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Attribute {
    /// The name as it is written.
    pub name: String,
    /// The value, without quotes and with entities decoded.
    pub value: String,
}

impl Attribute {
    pub(super) fn new(name: impl Into<String>, value: impl Into<String>) -> Attribute {
        Attribute { name: name.into(), value: value.into() }
    }
}

/// The content of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Body<'a> {
    /// Nothing, or only white space.
    Empty,
    /// Text. An element that was [`Opened`](What::Opened) has its own text here, without inner
    /// elements. A context feed has everything between its tags.
    Text(&'a str),
    /// Valid JSON as it is written, except that comments and the delimiters of CDATA sections are
    /// replaced by spaces.
    Json(&'a str),
    /// The whole element with its tags, as well-formed XML that [`xml::read`](crate::xml::read)
    /// accepts.
    Elements(&'a str),
}

impl<'a> Body<'a> {
    /// The characters of the content. For [`Elements`](Body::Elements) they include the element's
    /// own tags.
    #[must_use]
    pub fn as_str(self) -> &'a str {
        match self {
            Body::Empty => "",
            Body::Text(it) | Body::Json(it) | Body::Elements(it) => it,
        }
    }
}

/// An element that can't be used, and the reason.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Broken<'a> {
    /// The element's name, or `text` for text outside all elements.
    pub name: &'a str,
    /// The kind of rule that the element breaks.
    pub fault: Fault,
    /// The error and, if it helps, the correct form.
    pub reason: &'a str,
    /// The text around the place of the error, up to 40 characters on either side.
    pub snippet: &'a str,
}

/// A kind of rule that a reply may break.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Fault {
    /// Text that isn't valid JSON, or JSON that doesn't have the form of a call.
    Json,
    /// Tags, attributes or child elements that can't be understood with certainty.
    Markup,
    /// An element or a text that crosses one of the [`ReplyLimits`](crate::limits::ReplyLimits).
    Limit,
}

/// The element that was incomplete when a reply ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Cut<'a> {
    /// The element's name.
    pub name: &'a str,
    /// Where the element begins.
    pub place: Place,
}
