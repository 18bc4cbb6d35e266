//! Faults: numbered errors. Each number has a page in `docs/faults/` and is never used for another
//! fault.

use std::borrow::Cow;
use std::fmt;

use crate::wire::budget::BudgetKey;
use crate::{schema, xml};

/// Declares the codes in one table: number, name, what it is, what to do, whether to try again.
macro_rules! codes {
    ($(
        $(#[$doc:meta])*
        $code:ident = $number:literal, $advice:literal, retry $retry:literal;
    )*) => {
        /// The numbers of all that can go wrong. `P0007` is `Code::Invalid`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum Code { $($(#[$doc])* $code = $number),* }

        impl Code {
            /// Every code, in the order of the numbers.
            pub const ALL: &'static [Code] = &[$(Code::$code),*];

            /// One sentence that says what to do; it is sent with the fault.
            #[must_use]
            pub const fn advice(self) -> &'static str {
                match self { $(Code::$code => $advice),* }
            }

            /// Whether the same message may succeed when it is sent again.
            #[must_use]
            pub const fn retry(self) -> bool {
                match self { $(Code::$code => $retry),* }
            }
        }
    };
}

codes! {
    /// The bytes are no well-formed XML.
    Malformed = 1, "Send one well-formed XML element; the place says where it stops being one.",
        retry false;
    /// The bytes are no UTF-8.
    Utf8 = 2, "Send UTF-8; other encodings are not read.", retry false;
    /// A document type declaration.
    Doctype = 3, "Leave the DOCTYPE out; no entity but the five predefined ones exists here.",
        retry false;
    /// A processing instruction.
    ProcessingInstruction = 4, "Leave processing instructions out of messages.", retry false;
    /// A prefix without a namespace, or a declaration that namespaces forbid.
    Namespace = 5, "Declare every prefix you use, and only once on an element.", retry false;
    /// Larger, deeper or more than a limit allows.
    Limit = 6, "Stay below the limit that the message names, or send a reference instead.",
        retry false;
    /// The payload is not what its schema says.
    Invalid = 7, "Change the payload at the path to what was expected there.", retry false;
    /// The `<message>` is not what an envelope may be.
    Envelope = 8, "Send <message><meta>…</meta> and exactly one payload, or a bare payload.",
        retry false;
    /// A `<from>` that is not the sender.
    ForgedSender = 9, "Leave <from> out: the pump sets it.", retry false;
    /// A payload that only the pump and the house staff may send.
    Reserved = 10, "Send a payload of a listener's; this name is the pump's own.", retry false;
    /// Nobody takes it, or the sender may not send there.
    Undeliverable = 11, "Check the payload's name and namespace, and <to> if you set it.",
        retry false;
    /// A thread that doesn't exist, or is another's. On the wire: `system-thread-error`.
    UnknownThread = 12, "Leave <thread> out to open a session, or name one that you opened.",
        retry false;
    /// A client's message id that was used for something else.
    ClientId = 13, "Use a new <id> for a new message; the same <id> only repeats the same one.",
        retry false;
    /// The handler ran out of time.
    TimeOut = 14, "Try again, or ask the listener's author for a longer time-out.", retry true;
    /// The handler panicked.
    Panic = 15, "Report it to the listener's author; the log has the message it stumbled on.",
        retry false;
    /// The pump stopped while a handler ran, and nobody knows how far it came.
    OutcomeUnknown = 16, "Find out whether it happened before you send it again.", retry false;
    /// What a handler emitted can't be sent.
    InvalidReturn = 17, "Report it to the listener's author; what it emitted was not valid.",
        retry false;
    /// The log's disk is full.
    LogFull = 18, "Wait until the operator has made room, then send it again.", retry true;
    /// The log can't be trusted any more, and nothing is accepted until a restart.
    LogFailed = 19, "The operator must look at the disk and restart the pump.", retry true;
    /// The pump is stopping.
    Stopping = 20, "Connect again when the pump is back, and send it again.", retry true;
    /// A token that nobody has, or an `<authenticate>` at the wrong moment.
    Authentication = 21,
        "Send <authenticate token=\"…\"/> first, once, with a token that is listed.",
        retry false;
    /// The first byte begins neither framing, or a frame is empty.
    Framing = 22, "Begin with '<', or with a length of four bytes, most significant first.",
        retry false;
    /// The rest of a message didn't come.
    HalfMessage = 23, "Send each message whole, and in time.", retry true;
    /// The client didn't read what it was sent.
    SlowReader = 24, "Read what the pump sends while you send; what you missed is in the log.",
        retry true;
    /// The door has as many connections as it may have.
    Connections = 25, "Try again later, or send over a connection you have.", retry true;
    /// A handler asked for something its listener was not given.
    Context = 26, "Report it to the listener's author; its registration lacks what it asks for.",
        retry false;
    /// An entry of the log can't be read as what it was.
    Unreadable = 27, "Run `pumphouse verify`; the log or the listener's types have changed.",
        retry false;
    /// A handler whose message is over tried to emit.
    Late = 28, "Emit before the handler's time is up.", retry false;
    /// A handler emitted more than one message may cause.
    TooManyEmissions = 29, "Emit less for one message, or spread the work over several.",
        retry false;
    /// A message for a listener that no longer exists.
    ListenerGone = 30, "Send it to a listener that exists now.", retry false;
    /// The pump itself failed inside.
    Broken = 31, "The operator must restart the pump, and report what its traces say.", retry true;
    /// The thread has ended, or waits for its operator.
    ThreadEnded = 40, "Open another thread; what this one has stays in the log.", retry false;
    /// The message waited in a thread that was ended.
    Cancelled = 41, "Send it again in another thread, if it still matters.", retry false;
    /// More than the tree's budget allows.
    OverBudget = 42, "Do with less, or have an operator raise the budget that the message names.",
        retry false;
    /// Messages that go round in a circle.
    Loop = 43, "Have the listener that the message names say something new, or stop.",
        retry false;
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "P{:04}", *self as u16)
    }
}

/// What went wrong, for the pump to tell the sender in a reserved payload of its own, `huh`.
///
/// Anyone may return one; only the pump makes them.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Fault {
    /// Its number.
    pub code: Code,
    /// What is wrong, in a sentence without its full stop.
    pub message: String,
    /// The line in what the sender sent, from 1.
    pub line: Option<u32>,
    /// The column in that line, in characters from 1.
    pub column: Option<u32>,
    /// The path to what is wrong in the payload, such as `/add/a`.
    pub path: Option<String>,
    /// What to do about this very one, where more can be said than [`Code::advice`] says.
    pub advice: Option<String>,
    /// Whether the same may succeed when it is sent again, where that differs from [`Code::retry`].
    pub retry: Option<bool>,
    /// The thread that is unknown, where that is the fault.
    pub unknown_thread: Option<Box<str>>,
    /// What else is known of what was refused.
    pub(crate) about: Option<Box<About>>,
}

/// How much of a budget is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Left {
    /// Of what.
    pub key: BudgetKey,
    /// How much. What handlers at work have reserved isn't counted as spent.
    pub amount: u64,
}

/// What few faults say of what was refused.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct About {
    /// The sender's own id for its push.
    client_id: Option<String>,
    left: Option<Left>,
}

/// What an error or a trace repeats of a text that a stranger sent: its beginning.
pub(crate) fn quoted(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(QUOTED_MAX) {
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
        None => Cow::Borrowed(text),
    }
}

/// Characters of what a stranger sent that an error or a trace repeats.
const QUOTED_MAX: usize = 200;

impl Fault {
    /// A fault without a place.
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Fault {
        Fault {
            code,
            message: message.into(),
            line: None,
            column: None,
            path: None,
            advice: None,
            retry: None,
            unknown_thread: None,
            about: None,
        }
    }

    /// A budget has no more than this left.
    pub(crate) fn over_budget(text: String, key: BudgetKey, amount: u64) -> Fault {
        let about = About { left: Some(Left { key, amount }), ..About::default() };
        Fault { about: Some(Box::new(about)), ..Fault::new(Code::OverBudget, text) }
    }

    /// The same, about a push that its sender gave this id.
    pub(crate) fn of_client(self, id: Option<&str>) -> Fault {
        let Some(id) = id else { return self };
        let mut about = self.about.unwrap_or_default();
        about.client_id = Some(id.to_owned());
        Fault { about: Some(about), ..self }
    }

    /// The sender's own id for the push that it is about, where it gave one.
    #[must_use]
    pub fn client_id(&self) -> Option<&str> {
        self.about.as_ref().and_then(|it| it.client_id.as_deref())
    }

    /// What a budget has left, where that isn't enough.
    #[must_use]
    pub fn left(&self) -> Option<Left> {
        self.about.as_ref().and_then(|it| it.left)
    }

    /// What is told about every target that is unknown or forbidden: which of the two, nobody
    /// learns.
    #[must_use]
    pub fn undeliverable() -> Fault {
        let text = "Message could not be delivered. Please verify your target and try again.";
        Fault::new(Code::Undeliverable, text)
    }

    /// A thread that doesn't exist or isn't the sender's.
    pub(crate) fn unknown_thread(id: &str) -> Fault {
        let text = "Unknown thread; emit <spawn-thread/> to create.";
        Fault { unknown_thread: Some(quoted(id).into()), ..Fault::new(Code::UnknownThread, text) }
    }

    /// Where in the sender's text it is.
    pub(crate) fn at(self, place: xml::Place) -> Fault {
        Fault { line: Some(place.line), column: Some(place.column), ..self }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.code)?;
        if let (Some(line), Some(column)) = (self.line, self.column) {
            write!(f, "line {line}, column {column}: ")?;
        }
        f.write_str(&self.message)?;
        if let Some(path) = &self.path {
            write!(f, " (at {path})")?;
        }
        Ok(())
    }
}

impl std::error::Error for Fault {}

impl From<xml::Error> for Fault {
    fn from(error: xml::Error) -> Fault {
        let code = match error.kind {
            xml::Kind::Utf8 => Code::Utf8,
            xml::Kind::Namespace => Code::Namespace,
            xml::Kind::Doctype => Code::Doctype,
            xml::Kind::ProcessingInstruction => Code::ProcessingInstruction,
            xml::Kind::Limit => Code::Limit,
            xml::Kind::Framing => Code::Framing,
            _ => Code::Malformed,
        };
        Fault::new(code, error.message).at(error.place)
    }
}

impl From<schema::Error> for Fault {
    fn from(error: schema::Error) -> Fault {
        let advice = Some(error.advice());
        let fault = Fault::new(Code::Invalid, error.message).at(error.place);
        Fault { path: Some(error.path), advice, ..fault }
    }
}

/// All mistakes in its message; the path and the advice are the first one's.
impl From<schema::json::Errors> for Fault {
    fn from(errors: schema::json::Errors) -> Fault {
        let fault = Fault::new(Code::Invalid, errors.to_string().replace('\n', "; "));
        let first = errors.all.into_iter().next();
        let advice = first.as_ref().map(schema::json::Error::advice);
        Fault { path: first.map(|it| it.path), advice, ..fault }
    }
}
