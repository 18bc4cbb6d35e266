//! The names that are markup.

/// What an element of a reply is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Kind {
    /// `thought`, `think` or `thinking`: text that others may stand in.
    Thought,
    /// `response`: text that nothing stands in.
    Response,
    /// The agent's own root: what is in it is looked at as if it stood alone.
    Root,
    /// `action`: JSON or child elements.
    Action,
    /// `tool_use`: JSON or child elements.
    ToolUse,
    /// `tool_call`, where it is markup: JSON with a `name` and `arguments`, as Hermes and Qwen
    /// write their calls.
    ToolCall,
    /// `metadata`: JSON or child elements.
    Metadata,
    /// `context_feed`: any text; only the pump may say such a thing, so it is for others to refuse.
    Feed,
    /// A payload of the core's.
    Core,
    /// A peer's root.
    Peer,
    /// What a tool said, pasted: text that is never looked at, and never an element.
    Output,
}

impl Kind {
    /// Whether its text is handed on as it comes.
    pub(super) fn is_text(self) -> bool {
        matches!(self, Kind::Thought | Kind::Response | Kind::Root)
    }

    /// Whether its body is JSON or child elements.
    pub(super) fn is_call(self) -> bool {
        self.is_run() || self == Kind::Metadata
    }

    /// Whether it has something done.
    pub(super) fn is_run(self) -> bool {
        matches!(self, Kind::Action | Kind::ToolUse | Kind::ToolCall)
    }
}

/// What an agent may say to the core without asking anybody: whatever the core's listeners take,
/// but for what only operators and those outside may say.
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

/// How tools' output is commonly marked. A model that pastes it means no call by it.
const OUTPUT: [&str; 5] =
    ["action-result", "function_results", "thread-result", "tool_response", "tool_result"];

/// The names that are markup in a reply: the protocol's, the core's, the agent's own root, and its
/// peers' roots. A name has one meaning; who comes first keeps it.
///
/// ```
/// use pumphouse::reply::{Kind, Markup};
///
/// let markup = Markup::default().root("researcher").peer("calculate");
/// assert_eq!(markup.kind("think"), Some(Kind::Thought));
/// assert_eq!(markup.kind("calculate"), Some(Kind::Peer));
/// assert_eq!(markup.kind("div"), None);
/// ```
#[derive(Clone, Debug)]
pub struct Markup {
    /// In the order of their bytes, so that a name that is still arriving is a range of them.
    names: Vec<Name>,
}

#[derive(Clone, Debug)]
pub(super) struct Name {
    pub(super) text: Box<str>,
    pub(super) kind: Kind,
    /// The place of those that close each other: the thoughts'.
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
    /// The local name of the agent's own root.
    #[must_use]
    pub fn root(self, name: &str) -> Markup {
        self.with(name, Kind::Root)
    }

    /// The local name of a peer's root.
    #[must_use]
    pub fn peer(self, name: &str) -> Markup {
        self.with(name, Kind::Peer)
    }

    /// A further payload of the core's.
    #[must_use]
    pub fn core(self, name: &str) -> Markup {
        self.with(name, Kind::Core)
    }

    /// A further name of `tool_use`.
    #[must_use]
    pub fn tool_use(self, name: &str) -> Markup {
        self.with(name, Kind::ToolUse)
    }

    /// With `<tool_call>` as a call.
    #[must_use]
    pub fn tool_call(self) -> Markup {
        self.with("tool_call", Kind::ToolCall)
    }

    /// A further name by which tools' output is known.
    #[must_use]
    pub fn output(self, name: &str) -> Markup {
        self.with(name, Kind::Output)
    }

    /// What a name means; nothing if it is text.
    #[must_use]
    pub fn kind(&self, name: &str) -> Option<Kind> {
        let place = self.names.binary_search_by(|it| (*it.text).cmp(name)).ok()?;
        Some(self.names[place].kind)
    }

    /// The names that mean this, in the order of their bytes.
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

    /// The names among `from..to` that have `byte` at `position`.
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
