//! Faults, which are numbered errors. Each number has a page in `docs/faults/`, and is never reused
//! for another fault.

use std::borrow::Cow;
use std::fmt;

use crate::wire::budget::BudgetKey;
use crate::{schema, xml};

/// Declares the codes in one table. A row has a code's meaning, name, number and advice. `retry`
/// says whether the same message may succeed when it is sent again.
macro_rules! codes {
    ($(
        $(#[$doc:meta])*
        $code:ident = $number:literal, $advice:literal, retry $retry:literal;
    )*) => {
        /// The number of a fault: `P0007` is `Code::Invalid`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum Code { $($(#[$doc])* $code = $number),* }

        impl Code {
            /// Every code, in the order of the numbers.
            pub const ALL: &'static [Code] = &[$(Code::$code),*];

            /// Returns the advice for the fault, in one sentence. The pump sends the advice with
            /// the fault.
            #[must_use]
            pub const fn advice(self) -> &'static str {
                match self { $(Code::$code => $advice),* }
            }

            /// Returns whether the same message may succeed when it is sent again.
            #[must_use]
            pub const fn retry(self) -> bool {
                match self { $(Code::$code => $retry),* }
            }
        }
    };
}

codes! {
    /// The bytes aren't well-formed XML.
    Malformed = 1, "Send one well-formed XML element; the place says where it stops being one.",
        retry false;
    /// The bytes aren't UTF-8.
    Utf8 = 2, "Send UTF-8; other encodings are not read.", retry false;
    /// The message has a document type declaration.
    Doctype = 3, "Leave the DOCTYPE out; no entity but the five predefined ones exists here.",
        retry false;
    /// The message has a processing instruction.
    ProcessingInstruction = 4, "Leave processing instructions out of messages.", retry false;
    /// A prefix is bound to no namespace, or a declaration breaks the rules of namespaces.
    Namespace = 5, "Declare every prefix you use, and only once on an element.", retry false;
    /// The message crosses a limit, such as one of size, depth or number.
    Limit = 6, "Stay below the limit that the message names, or send a reference instead.",
        retry false;
    /// The payload doesn't fit its schema.
    Invalid = 7, "Change the payload at the path to what was expected there.", retry false;
    /// The `<message>` isn't a valid envelope.
    Envelope = 8, "Send <message><meta>…</meta> and exactly one payload, or a bare payload.",
        retry false;
    /// The `<from>` names another identity than the sender's.
    ForgedSender = 9, "Leave <from> out: the pump sets it.", retry false;
    /// Only the pump, and listeners with a grant for it, may send this payload.
    Reserved = 10, "Send a payload of a listener's; this name is the pump's own.", retry false;
    /// No listener takes the payload, or the sender may not send to that listener.
    Undeliverable = 11, "Check the payload's name and namespace, and <to> if you set it.",
        retry false;
    /// The thread doesn't exist or belongs to another identity. The sender gets
    /// `system-thread-error` instead of `huh`.
    UnknownThread = 12, "Leave <thread> out to open a session, or name one that you opened.",
        retry false;
    /// The client id was used for another message before.
    ClientId = 13, "Use a new <id> for a new message; the same <id> only repeats the same one.",
        retry false;
    /// The handler ran out of time.
    TimeOut = 14, "Try again, or ask the listener's author for a longer time-out.", retry true;
    /// The handler panicked.
    Panic = 15, "Report it to the listener's author; the log has the message it stumbled on.",
        retry false;
    /// The pump stopped while the handler ran. The handler's work may be done in part, in full or
    /// not at all.
    OutcomeUnknown = 16, "Find out whether it happened before you send it again.", retry false;
    /// The handler emitted a payload that can't be sent.
    InvalidReturn = 17, "Report it to the listener's author; what it emitted was not valid.",
        retry false;
    /// The log's disk is full.
    LogFull = 18, "Wait until the operator has made room, then send it again.", retry true;
    /// The log can't be read or written. After a failed write the pump accepts nothing until it is
    /// started again.
    LogFailed = 19, "The operator must look at the disk and restart the pump.", retry true;
    /// The pump is stopping.
    Stopping = 20, "Connect again when the pump is back, and send it again.", retry true;
    /// The token is unknown or no longer listed, or `<authenticate>` is missing or came too late.
    Authentication = 21,
        "Send <authenticate token=\"…\"/> first, once, with a token that is listed.",
        retry false;
    /// The stream begins with neither a length nor an element, has text between elements, or has an
    /// empty message.
    Framing = 22, "Begin with '<', or with a length of four bytes, most significant first.",
        retry false;
    /// The rest of a message didn't arrive, or arrived too slowly.
    HalfMessage = 23, "Send each message whole, and in time.", retry true;
    /// The client didn't read what the pump sent.
    SlowReader = 24, "Read what the pump sends while you send; what you missed is in the log.",
        retry true;
    /// The door has reached its limit of connections.
    Connections = 25, "Try again later, or send over a connection you have.", retry true;
    /// A handler asked for a context that its listener doesn't have.
    Context = 26, "Report it to the listener's author; its registration lacks what it asks for.",
        retry false;
    /// An entry of the log can't be read, because it is damaged or its type has changed.
    Unreadable = 27, "Run `pumphouse verify`; the log or the listener's types have changed.",
        retry false;
    /// A handler tried to emit after the work on its message had ended.
    Late = 28, "Emit before the handler's time is up.", retry false;
    /// A handler emitted more payloads for one message than `emissions_max` allows.
    TooManyEmissions = 29, "Emit less for one message, or spread the work over several.",
        retry false;
    /// The message is for a listener that no longer exists.
    ListenerGone = 30, "Send it to a listener that exists now.", retry false;
    /// The pump itself failed.
    Broken = 31, "The operator must restart the pump, and report what its traces say.", retry true;
    /// The listener begins no handler, because `stuck_handlers_max` of its handlers ran out of time
    /// and still block their threads.
    Stuck = 32, "Send it again later; if that doesn't help, the operator must restart the pump.",
        retry true;
    /// The process ended whenever the message was handled, three times with nothing else under way.
    Poisonous = 33, "Send it again only in another form; the log has the message.", retry false;
    /// The thread has ended: it is closed, cancelled or failed.
    ThreadEnded = 40, "Open another thread; what this one has stays in the log.", retry false;
    /// The message's thread was cancelled before the message was answered.
    Cancelled = 41, "Send it again in another thread, if it still matters.", retry false;
    /// The message needs more than the tree's budget has left, or its thread waits because a budget
    /// is spent.
    OverBudget = 42, "Do with less, or have an operator raise the budget that the message names.",
        retry false;
    /// A listener sent a payload more often in a row than `repeats_max` allows, a chain of messages
    /// became longer than `chain_max` allows, or a listener sent itself more messages in a row than
    /// `again_max` allows.
    Loop = 43, "Have the listener that the message names say something new, or stop.",
        retry false;
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "P{:04}", *self as u16)
    }
}

/// A numbered error. The pump reports it to the sender in a reserved payload, in most cases `huh`.
///
/// Code outside the crate can read faults and return them. The function that creates a fault from a
/// code and a message is private to the crate.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Fault {
    /// The fault's number.
    pub code: Code,
    /// The description of the mistake: a sentence without a full stop.
    pub message: String,
    /// The line in the sender's text, from 1.
    pub line: Option<u32>,
    /// The column in that line, in characters from 1.
    pub column: Option<u32>,
    /// The path to the wrong part of the payload, such as `/add/a`.
    pub path: Option<String>,
    /// Advice for this particular fault, if the advice differs from [`Code::advice`].
    pub advice: Option<String>,
    /// Whether the same message may succeed when it is sent again, if that differs from
    /// [`Code::retry`].
    pub retry: Option<bool>,
    /// The unknown thread's id, for [`Code::UnknownThread`].
    pub unknown_thread: Option<Box<str>>,
    /// Further details of a refusal.
    pub(crate) about: Option<Box<About>>,
}

/// How much of a budget is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BudgetLeft {
    /// The key of the budget.
    pub key: BudgetKey,
    /// The amount left. It includes the amounts that other running handlers have reserved, since
    /// these handlers may give them back.
    pub amount: u64,
}

/// Details that only few faults have. The details are boxed, so that other faults stay small.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct About {
    /// The sender's own id for its push.
    client_id: Option<String>,
    left: Option<BudgetLeft>,
}

/// Returns the beginning of a text from outside, for an error or a trace that quotes it.
pub fn quoted(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(QUOTED_MAX) {
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
        None => Cow::Borrowed(text),
    }
}

/// The most characters of a text that [`quoted`] keeps.
const QUOTED_MAX: usize = 200;

impl Fault {
    /// Creates a fault without a place.
    pub fn new(code: Code, message: impl Into<String>) -> Fault {
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

    /// Replaces the advice.
    #[must_use]
    pub fn advised(mut self, advice: impl Into<String>) -> Fault {
        self.advice = Some(advice.into());
        self
    }

    /// Returns a fault for a budget that has only `amount` left.
    pub(crate) fn over_budget(text: String, key: BudgetKey, amount: u64) -> Fault {
        let about = About { left: Some(BudgetLeft { key, amount }), ..About::default() };
        Fault { about: Some(Box::new(about)), ..Fault::new(Code::OverBudget, text) }
    }

    /// Returns this fault, with the client id of the push that it is about.
    pub fn of_client(self, id: Option<&str>) -> Fault {
        let Some(id) = id else { return self };
        let mut about = self.about.unwrap_or_default();
        about.client_id = Some(id.to_owned());
        Fault { about: Some(about), ..self }
    }

    /// Returns the client id of the push that the fault is about, if the sender gave one.
    #[must_use]
    pub fn client_id(&self) -> Option<&str> {
        self.about.as_ref().and_then(|it| it.client_id.as_deref())
    }

    /// Returns how much of the budget is left, if the fault is about a budget and names the amount.
    #[must_use]
    pub fn left(&self) -> Option<BudgetLeft> {
        self.about.as_ref().and_then(|it| it.left)
    }

    /// Returns the fault for a target that is unknown or forbidden. Both cases have the same fault,
    /// so that a sender can't find out which listeners exist.
    #[must_use]
    pub fn undeliverable() -> Fault {
        let text = "Message could not be delivered. Please verify your target and try again.";
        Fault::new(Code::Undeliverable, text)
    }

    /// Returns the fault for a thread that doesn't exist or isn't the sender's.
    pub(crate) fn unknown_thread(id: &str) -> Fault {
        let text = "Unknown thread; emit <spawn-thread/> to create.";
        Fault { unknown_thread: Some(quoted(id).into()), ..Fault::new(Code::UnknownThread, text) }
    }

    /// Returns this fault, with its place in the sender's text.
    pub fn at(self, place: xml::Place) -> Fault {
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

/// The fault's message lists all errors. The fault's path and advice are those of the first error.
impl From<schema::json::Errors> for Fault {
    fn from(errors: schema::json::Errors) -> Fault {
        let fault = Fault::new(Code::Invalid, errors.to_string().replace('\n', "; "));
        let first = errors.all.into_iter().next();
        let advice = first.as_ref().map(schema::json::Error::advice);
        Fault { path: first.map(|it| it.path), advice, ..fault }
    }
}
