//! Rebuilds the prompt of a past turn from the thread's entries and the turn's `cognition_in`.

use std::fmt;

use pumphouse::listener::{Apply as _, Clears};
use pumphouse::model::{Prompt, Tool};
use pumphouse::prelude::*;

use super::super::feed::Shown;
use super::context::asked_by;
use super::prompt_order::ordered;
use super::render::{Form, RENDERING, render};
use super::words::{CognitionIn, CognitionSystem, CognitionTools};

/// A rebuilt prompt. It has the digest of the prompt that the model was shown.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Recalled {
    /// The agent.
    pub agent: String,
    /// The entry of the turn's `cognition_in`.
    pub entry: EntryId,
    /// The turn's `cognition_in`.
    pub begun: CognitionIn,
    /// The prompt.
    pub prompt: Prompt,
}

/// The reason why the prompt of a turn can't be rebuilt.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Forgotten {
    /// No turn of an agent had begun.
    NoTurn,
    /// An entry can't be decoded.
    Unreadable(Fault),
    /// The prompt has a form that this program doesn't know.
    Form {
        /// The number of the form, from `cognition_in`.
        recorded: u32,
    },
    /// The rebuilt prompt differs from the prompt that the model was shown.
    Different {
        /// The digest in `cognition_in`.
        recorded: String,
        /// The digest of the rebuilt prompt.
        now: String,
    },
}

impl fmt::Display for Forgotten {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Forgotten::NoTurn => f.write_str("no turn of an agent had begun there"),
            Forgotten::Unreadable(fault) => write!(f, "{fault}"),
            Forgotten::Form { recorded } => {
                write!(f, "the prompt is of form {recorded}, and this program makes {RENDERING}")
            }
            Forgotten::Different { recorded, now } => {
                write!(f, "the prompt had the digest {recorded}, and comes to {now} now")
            }
        }
    }
}

impl std::error::Error for Forgotten {}

/// Rebuilds the prompt of the turn that an entry belongs to. This is the newest turn of the entry's
/// sender up to the entry. If the sender had none, it is the newest turn of any agent up to the
/// entry.
///
/// `thread` has the thread's entries from the first one on, at least up to the entry `seq`.
///
/// # Errors
/// If no turn had begun, if an entry can't be decoded, if the form isn't known, or if the rebuilt
/// prompt differs from the prompt that the model was shown.
pub fn recall(thread: &[Entry], seq: u64) -> Result<Recalled, Forgotten> {
    let upto = thread.iter().take_while(|it| it.seq() <= seq);
    let turns: Vec<&Entry> = upto.filter(|it| is_turn(it)).collect();
    let sender = thread.iter().find(|it| it.seq() == seq).map(Entry::from);
    let own = turns.iter().rev().find(|it| Some(it.from()) == sender);
    let entry = *own.or(turns.last()).ok_or(Forgotten::NoTurn)?;
    let begun: CognitionIn = entry.decode().map_err(Forgotten::Unreadable)?;
    if begun.rendering != RENDERING {
        return Err(Forgotten::Form { recorded: begun.rendering });
    }
    let agent = entry.from();
    let shown: Vec<Entry> = thread.iter().filter(|it| it.seq() <= begun.until).cloned().collect();
    let mut clears = Clears::default();
    shown.iter().for_each(|it| clears.apply(it));
    let view: Vec<Entry> = shown.into_iter().filter(|it| !clears.hides(it.seq())).collect();
    let view = ordered(agent, view, begun.waiting.as_deref().unwrap_or_default());
    let system = newest::<CognitionSystem>(thread, entry).map_err(Forgotten::Unreadable)?;
    let system = system.map(|it| it.text).unwrap_or_default();
    let tools = newest::<CognitionTools>(thread, entry).map_err(Forgotten::Unreadable)?;
    let mut feeds = Shown::default();
    let own = |it: &&Entry| it.seq() <= begun.until || it.seq() < entry.seq() && it.from() == agent;
    thread.iter().filter(own).for_each(|it| feeds.apply(it));
    let mut tools = tools.unwrap_or_default();
    let format = tools.format.take().map(Into::into);
    let tools: Vec<Tool> = tools.into();
    let (form, root, feeds) = (Form::of(&begun, &tools), super::root(agent), feeds.of(agent));
    let prompt = render(form, agent, &root, &system, &view, &feeds);
    let mut prompt = asked_by(agent, entry.thread(), begun.turn, prompt);
    (prompt.tools, prompt.format) = (tools, format);
    prompt.max_tokens = begun.max_tokens;
    prompt.temperature = begun.temperature;
    let now = prompt.digest().to_string();
    if now != begun.digest {
        return Err(Forgotten::Different { recorded: begun.digest, now });
    }
    Ok(Recalled { agent: agent.to_owned(), entry: entry.id().clone(), begun, prompt })
}

fn is_turn(entry: &Entry) -> bool {
    entry.is::<CognitionIn>() && !entry.is_refused() && entry.to() == Some(entry.from())
}

/// The newest payload of a type that an agent recorded before a turn.
fn newest<P: Payload>(thread: &[Entry], turn: &Entry) -> Result<Option<P>, Fault> {
    let own = |it: &&Entry| it.from() == turn.from() && it.is::<P>() && !it.is_refused();
    let newest = thread.iter().rev().filter(|it| it.seq() < turn.seq()).find(own);
    newest.map(Entry::decode::<P>).transpose()
}
