//! The transcript of a thread, and the conversations of its agents.

use std::io::{self, Write};

use crate::audit;
use crate::cli::base::connect::{Credentials, broken};
use crate::cli::base::follow;
use crate::cli::base::screen::{Ending, Failure, Screen};
use crate::client::{Address, Message, Shown};
use crate::id::{EntryId, ThreadId};
use crate::listener::Entry;
use crate::listeners::agent::messages::{Conversation, agents, conversation};
use crate::listeners::agent::transcript::{Event, Transcript, transcript};
use crate::log::{Draft, Log, Pages, ThreadRecord};
use crate::name::Name;

/// Writes the events of a thread so far. If `is_live`, continues with new events and never ends.
pub(crate) async fn events(
    log: &dyn Log,
    thread: &ThreadRecord,
    is_live: bool,
    out: &mut dyn Write,
) -> Result<Ending, Failure> {
    let last_seq = if is_live { u64::MAX } else { thread.last_seq };
    let mut transcript = Transcript::default();
    let mut pages = Pages::of(log, &thread.id).upto(last_seq);
    loop {
        while let Some(page) = pages.next().await? {
            for entry in &page {
                put(&transcript.hear(&entry.as_ref().into()), is_live, out)?;
            }
        }
        out.flush()?;
        if !is_live {
            return Ok(Ending::Well);
        }
        follow::pause().await;
    }
}

/// Writes the events of a thread that a running pump sends. If `is_live`, continues with new
/// events, and with text that is still being written, until a stop signal.
pub(crate) async fn ask(
    address: &Address,
    credentials: &Credentials,
    thread: &ThreadId,
    is_live: bool,
    to: &mut Screen<'_>,
) -> Result<Ending, Failure> {
    let mut client = credentials.connect(address).await?;
    let follow = match is_live {
        true => client.follow_live(thread, 0).await,
        false => client.follow(thread, 0).await,
    };
    let (mut follow, mut transcript) = (follow.map_err(|it| broken(&it))?, Transcript::default());
    let reading = async {
        while is_live || !follow.has_caught_up() {
            let Some(message) = follow.next().await.map_err(|it| broken(&it))? else { break };
            put(&hear(&mut transcript, &message), is_live, to.out)?;
            to.flush()?;
        }
        Ok(Ending::Well)
    };
    if is_live { follow::until_stopped(reading).await } else { reading.await }
}

/// Adds a message of a followed thread to a transcript, and returns the message's events.
pub(crate) fn hear(transcript: &mut Transcript, message: &Message) -> Vec<Event> {
    match (entry(message), &message.thread) {
        (Some(entry), _) => transcript.hear(&entry),
        (None, Some(thread)) => {
            transcript.glimpse(&message.from, thread, &message.payload).into_iter().collect()
        }
        (None, None) => Vec::new(),
    }
}

/// Converts a message to its entry in the log. Returns None if the message is live.
///
/// A door doesn't say which entry a message answers. Mostly the answered entry is the message's
/// cause, so the cause stands in for it.
pub(crate) fn entry(message: &Message) -> Option<Entry> {
    let thread = message.thread.clone()?;
    let seq = message.entry.as_ref().filter(|_| message.shown != Shown::Live)?.seq;
    let time = message.time.as_ref().and_then(|it| it.parse::<jiff::Timestamp>().ok());
    let at_us = time.map_or(0, |it| u64::try_from(it.as_microsecond()).unwrap_or(0));
    let payload = &message.payload;
    let name = Name::new(payload.namespace().to_owned(), payload.local().to_owned());
    let (id, from) = (EntryId { thread, seq }, message.from.as_str().into());
    let draft = Draft::new(id, at_us, from, name, payload.canonical());
    let (to, cause) = (message.to.as_deref().map(Into::into), message.cause.clone());
    let draft = Draft { to, reply_to: cause.clone(), cause, ..draft };
    Some(Entry::fresh(&draft, payload.clone()))
}

fn put(events: &[Event], is_live: bool, out: &mut dyn Write) -> io::Result<()> {
    for event in events.iter().filter(|it| it.show || !is_live) {
        let line = serde_json::to_string(event)?;
        writeln!(out, "{}", audit::ascii(&line))?;
    }
    Ok(())
}

/// Returns the conversation of one of a thread's agents: of the agent with the given name, or of
/// the only agent. Fails if there is no such agent, or if there are several agents and no name is
/// given.
pub(crate) async fn talk(
    log: &dyn Log,
    thread: &ThreadRecord,
    agent: Option<&str>,
) -> Result<Conversation, Failure> {
    let events = transcript(&read(log, &thread.id, thread.last_seq).await?);
    let all = agents(&events);
    let id = &thread.id;
    let wrong = |text: String| Err(Failure::Wrong(text));
    let agent = match (agent, &all[..]) {
        (_, []) => {
            let text = "`--format jsonl` has its messages as they are";
            return wrong(format!("no agent had a turn in {id}; {text}"));
        }
        (None, [one]) => one,
        (None, _) => {
            let text = "say whose conversation is wanted, with --agent NAME";
            return wrong(format!("{id} has several agents, {}: {text}", all.join(", ")));
        }
        (Some(agent), _) if !all.contains(&agent) => {
            return wrong(format!("no {agent} had a turn in {id}; who had is {}", all.join(", ")));
        }
        (Some(agent), _) => agent,
    };
    Ok(conversation(agent, &events))
}

/// Reads a thread's entries up to a number, in the form in which listeners get them.
pub(crate) async fn read(
    log: &dyn Log,
    thread: &ThreadId,
    upto: u64,
) -> Result<Vec<Entry>, Failure> {
    let mut all: Vec<Entry> = Vec::new();
    let mut pages = Pages::of(log, thread).upto(upto);
    while let Some(page) = pages.next().await? {
        all.extend(page.iter().map(|it| -> Entry { (&**it).into() }));
    }
    Ok(all)
}
