//! The names whose tags are markup in a reply, and the kinds of elements that they stand for.

/// The kind of an element of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Kind {
    /// `thought`, `think` or `thinking`: text that may have other elements in it.
    Thought,
    /// `response`: text without elements, unless the configuration lets calls in it run.
    Response,
    /// The root element of the agent's own payload. The content is parsed as if it stood outside
    /// the element.
    Root,
    /// An element that controls actions, if [`Markup::control`] added it: a block around actions
    /// (`if`, `then`, `else`, `foreach`, `parallel`), or `rollback`. The content is parsed as if it
    /// stood outside the element.
    Control,
    /// `action`: JSON or child elements.
    Action,
    /// `tool_use`: JSON or child elements.
    ToolUse,
    /// `tool_call`, if [`Markup::tool_call`] added it: JSON with a `name` and `arguments`, as the
    /// models Hermes and Qwen write their calls.
    ToolCall,
    /// `metadata`: JSON or child elements.
    Metadata,
    /// `context_feed` with any text. Only the pump may write this element, so the user of the
    /// parser has to refuse it.
    Feed,
    /// A payload that one of the pump's own listeners takes.
    Core,
    /// The root element of a peer's payload.
    Peer,
    /// A tool's output that the model copied into its reply. The output is text, and so are all
    /// elements in it.
    Output,
}

impl Kind {
    /// Whether the element's text is emitted piece by piece, before the element is complete.
    pub(super) fn is_text(self) -> bool {
        matches!(self, Kind::Thought | Kind::Response | Kind::Root | Kind::Control)
    }

    /// Whether the element's content is JSON or child elements.
    pub(super) fn is_call(self) -> bool {
        self.is_run() || self == Kind::Metadata
    }

    /// Whether the element is a call.
    pub(super) fn is_run(self) -> bool {
        matches!(self, Kind::Action | Kind::ToolUse | Kind::ToolCall)
    }
}

/// The payloads of the pump's own listeners that an agent may send. The payloads that only
/// operators or clients may send are left out.
const CORE: [&str; 12] = [
    "await-threads",
    "cancel-thread",
    "clear-context",
    "clear-timer",
    "pause-thread",
    "read-result",
    "resume-thread",
    "set-timer",
    "spawn-thread",
    "todo-complete",
    "todo-until",
    "undo-clear",
];

/// The elements that control actions.
const CONTROL: [&str; 6] = ["else", "foreach", "if", "parallel", "rollback", "then"];

/// The elements that usually hold the output of tools. A model that copies such an element into its
/// reply doesn't intend a call.
const OUTPUT: [&str; 5] =
    ["action-result", "function_results", "thread-result", "tool_response", "tool_result"];

/// The names whose tags are markup in a reply: protocol names such as `thought` and `action`, and
/// the names of the pump's own payloads, of the agent's own payload, and of its peers' payloads. A
/// name that is added twice keeps its first kind.
///
/// ```
/// # extern crate pumphouse_reply as pumphouse;
/// use pumphouse::reply::{Kind, Markup};
///
/// let markup = Markup::default().root("researcher").peer("calculate");
/// assert_eq!(markup.kind("think"), Some(Kind::Thought));
/// assert_eq!(markup.kind("calculate"), Some(Kind::Peer));
/// assert_eq!(markup.kind("div"), None);
/// ```
#[derive(Clone, Debug)]
pub struct Markup {
    /// The names, sorted by bytes, so that all names with the same beginning form a range.
    names: Vec<Name>,
}

#[derive(Clone, Debug)]
pub(super) struct Name {
    pub(super) text: Box<str>,
    pub(super) kind: Kind,
    /// The index of the name's group. A close tag closes any element of its group: `</think>`
    /// closes `<thought>`, too.
    pub(super) group: usize,
}

impl Default for Markup {
    fn default() -> Markup {
        let protocol = [
            ("thought", Kind::Thought),
            ("think", Kind::Thought),
            ("thinking", Kind::Thought),
            ("response", Kind::Response),
            ("action", Kind::Action),
            ("tool_use", Kind::ToolUse),
            ("metadata", Kind::Metadata),
            ("context_feed", Kind::Feed),
        ];
        let core = CORE.map(|it| (it, Kind::Core));
        let output = OUTPUT.map(|it| (it, Kind::Output));
        let all = protocol.into_iter().chain(core).chain(output);
        let name = |(text, kind): (&str, Kind)| Name { text: text.into(), kind, group: 0 };
        let mut names: Vec<Name> = all.map(name).collect();
        names.sort_unstable_by(|a, b| a.text.cmp(&b.text));
        let mut markup = Markup { names };
        markup.group();
        markup
    }
}

impl Markup {
    /// Adds the local name of the agent's own payload.
    #[must_use]
    pub fn root(self, name: &str) -> Markup {
        self.with(name, Kind::Root)
    }

    /// Adds the local name of a peer's payload.
    #[must_use]
    pub fn peer(self, name: &str) -> Markup {
        self.with(name, Kind::Peer)
    }

    /// Adds the local name of a further payload of the pump's own listeners.
    #[must_use]
    pub fn core(self, name: &str) -> Markup {
        self.with(name, Kind::Core)
    }

    /// Adds a further name for `tool_use`.
    #[must_use]
    pub fn tool_use(self, name: &str) -> Markup {
        self.with(name, Kind::ToolUse)
    }

    /// Makes `<tool_call>` a call.
    #[must_use]
    pub fn tool_call(self) -> Markup {
        self.with("tool_call", Kind::ToolCall)
    }

    /// Adds the names of the blocks around actions, such as `if`, and the name `rollback`.
    #[must_use]
    pub fn control(self) -> Markup {
        CONTROL.into_iter().fold(self, |markup, name| markup.with(name, Kind::Control))
    }

    /// Adds a further name of elements that hold the output of tools.
    #[must_use]
    pub fn output(self, name: &str) -> Markup {
        self.with(name, Kind::Output)
    }

    /// The kind of a name. None if tags of this name are text.
    #[must_use]
    pub fn kind(&self, name: &str) -> Option<Kind> {
        let place = self.names.binary_search_by(|it| (*it.text).cmp(name)).ok()?;
        Some(self.names[place].kind)
    }

    /// The names of this kind, sorted by bytes.
    pub fn names(&self, kind: Kind) -> impl Iterator<Item = &str> {
        self.names.iter().filter(move |it| it.kind == kind).map(|it| &*it.text)
    }

    fn with(mut self, name: &str, kind: Kind) -> Markup {
        self.add(name, kind);
        self
    }

    fn add(&mut self, text: &str, kind: Kind) {
        let Err(place) = self.names.binary_search_by(|it| (*it.text).cmp(text)) else { return };
        self.names.insert(place, Name { text: text.into(), kind, group: 0 });
        self.group();
    }

    fn group(&mut self) {
        let thought = self.names.iter().position(|it| it.kind == Kind::Thought);
        for (place, known) in self.names.iter_mut().enumerate() {
            let first = thought.filter(|_| known.kind == Kind::Thought);
            known.group = first.unwrap_or(place);
        }
    }

    pub(super) fn len(&self) -> usize {
        self.names.len()
    }

    pub(super) fn at(&self, place: usize) -> &Name {
        &self.names[place]
    }

    /// The range of the names among `from..to` that have `byte` at `position`.
    pub(super) fn narrow(
        &self,
        (from, to): (usize, usize),
        position: usize,
        byte: u8,
    ) -> (usize, usize) {
        let has = |it: &Name| it.text.as_bytes().get(position).copied();
        let mut from = from;
        while from < to && has(&self.names[from]) < Some(byte) {
            from += 1;
        }
        let mut end = from;
        while end < to && has(&self.names[end]) == Some(byte) {
            end += 1;
        }
        (from, end)
    }
}
