//! Explains why an entry is in the log. The causal chain of an entry is the list of messages that
//! led to it: each message was sent while the message before it was handled.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;

use crate::audit::entry::{self, count, lines, link, margin};
use crate::audit::text::{Paint, Style, line};
use crate::id::{EntryId, ThreadId};
use crate::log::{Entry, Error, Flags, Log, Pages};
use crate::wire::Payload;
use crate::wire::core::ThreadResult;
use crate::xml::Element;

/// How many entries of a thread are searched for the results of child threads that led to a step.
const LOOKED_AT_MAX: u64 = 10_000;
/// The name of the message that tells a listener which of its awaited threads have ended.
const AWAITED: &str = "threads-awaited";
/// The names of actions, of the messages with the result of an action and with the content of a
/// feed, of an agent's replies and of its responses; and the namespace of agents' payloads.
const ACTION: &str = "action";
const RESULT: &str = "action-result";
const FEED: &str = "context_feed";
const REPLY: &str = "cognition_out";
const RESPONSE: &str = "response";
const AGENTS: &str = "https://xml-pipeline.org/ns/agent/v1";
/// How many entries before and behind a response are searched for the reply that it stands in.
const REPLY_LOOKED_AT: u64 = 1_000;
/// The most steps that are shown. Of a longer causal chain, the last steps are shown.
const STEPS_MAX: usize = 1_000;

/// One message in the causal chain of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Step {
    /// The message.
    pub entry: Arc<Entry>,
    /// Whether earlier steps were left out.
    pub is_cut: bool,
    /// If the message was refused: the pump's message about the refusal.
    pub verdict: Option<Arc<Entry>>,
    /// If the message opened a fork: the entry that the fork begins after.
    pub fork: Option<EntryId>,
    /// Other child threads whose results led to the message, too.
    pub joined: Vec<Joined>,
    /// Other results that led to the message, too: those of actions that its sender got between the
    /// message that it answers and this one, and the feeds and earlier results that it refers to.
    pub results: Vec<Arc<Entry>>,
}

/// A child thread, and the entry of its parent thread with the child's result.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Joined {
    /// The child thread.
    pub thread: ThreadId,
    /// The `thread-result` in the parent.
    pub result: EntryId,
}

/// The causal chain of an entry, from the first message to the entry itself. `None` if the thread
/// has no such entry.
///
/// # Errors
/// If there is no such thread, or if the log can't be read.
pub async fn why(log: &dyn Log, id: &EntryId) -> Result<Option<Vec<Step>>, Error> {
    let Some(entry) = log.entry(id).await? else { return Ok(None) };
    let mut steps = vec![step(log, entry).await?];
    while let Some(before) = steps.last().and_then(|it| it.entry.cause.clone()) {
        if steps.len() >= STEPS_MAX {
            if let Some(last) = steps.last_mut() {
                last.is_cut = true;
            }
            break;
        }
        let Some(entry) = log.entry(&before).await? else { break };
        steps.push(step(log, entry).await?);
    }
    steps.reverse();
    for at in 0..steps.len() {
        let next = steps.get(at + 1).map(|it| &it.entry);
        // The last step of the causal chain within a thread may also depend on results of child
        // threads.
        let thread = &steps[at].entry.id.thread;
        if let Some(awaited) = awaited(&steps[at].entry) {
            steps[at].joined = ended(log, &steps, at, &awaited).await?;
        } else if next.is_none_or(|it| it.name == ThreadResult::NAME && it.id.thread != *thread) {
            steps[at].joined = joined(log, &steps, at).await?;
            steps[at].results = results(log, &steps, at).await?;
        }
    }
    Ok(Some(steps))
}

/// The ids of the threads that had ended, if the entry is a `threads-awaited`. `None` for any other
/// entry.
fn awaited(entry: &Entry) -> Option<BTreeSet<String>> {
    if entry.name.namespace() != ThreadResult::NAME.namespace() || entry.name.local() != AWAITED {
        return None;
    }
    let element = Element::from_canonical(entry.body.clone()).ok()?;
    let threads = element.elements().filter(|it| it.attribute("status").is_some());
    Some(threads.filter_map(|it| it.attribute("id").map(str::to_owned)).collect())
}

/// Finds the results of the given threads that stand before a step. Threads in the causal chain
/// itself are left out.
async fn ended(
    log: &dyn Log,
    steps: &[Step],
    at: usize,
    threads: &BTreeSet<String>,
) -> Result<Vec<Joined>, Error> {
    let last = &steps[at].entry.id;
    let from = last.seq.saturating_sub(LOOKED_AT_MAX);
    let mut pages = Pages::of(log, &last.thread).after(from).upto(last.seq - 1);
    let mut ended = Vec::new();
    while let Some(page) = pages.next().await? {
        for entry in page.iter().filter(|it| it.name == ThreadResult::NAME) {
            let below = entry.reply_to.as_ref().map(|it| &it.thread);
            let is_meant = |it: &&ThreadId| {
                threads.contains(it.as_str())
                    && steps.iter().all(|step| step.entry.id.thread != **it)
            };
            if let Some(thread) = below.filter(is_meant).cloned() {
                ended.push(Joined { thread, result: entry.id.clone() });
            }
        }
    }
    Ok(ended)
}

/// Finds the child threads that a step depends on. Such a child thread was opened because of the
/// message that the step answers, and had ended before the step. Threads in the causal chain itself
/// are left out.
async fn joined(log: &dyn Log, steps: &[Step], at: usize) -> Result<Vec<Joined>, Error> {
    let last = &steps[at].entry.id;
    let own = |it: &&EntryId| it.thread == last.thread;
    let first = steps[..=at].iter().map(|it| &it.entry.id).find(own);
    let first = steps[at].entry.reply_to.as_ref().filter(own).or(first).unwrap_or(last);
    let (mut comes_of, mut joined) = (BTreeSet::from([first.seq]), Vec::new());
    let upto = (last.seq - 1).min(first.seq.saturating_add(LOOKED_AT_MAX));
    let mut pages = Pages::of(log, &last.thread).after(first.seq).upto(upto);
    while let Some(page) = pages.next().await? {
        for entry in &page {
            let is_result = entry.name == ThreadResult::NAME;
            let below = entry.reply_to.as_ref().filter(|it| is_result && !own(it));
            let opened = match below {
                Some(first) => log.entry(first).await?,
                None => None,
            };
            let cause = opened.as_ref().map_or(entry.cause.as_ref(), |it| it.cause.as_ref());
            if !cause.is_some_and(|it| own(&it) && comes_of.contains(&it.seq)) {
                continue;
            }
            comes_of.insert(entry.id.seq);
            let is_new = |it: &&EntryId| steps.iter().all(|step| step.entry.id.thread != it.thread);
            if let Some(below) = below.filter(is_new) {
                joined.push(Joined { thread: below.thread.clone(), result: entry.id.clone() });
            }
        }
    }
    Ok(joined)
}

/// Finds the results that a step is made of: those of actions that its sender got for the work that
/// the step answers, and the feeds and earlier results that the sender's reply refers to. Results
/// in the causal chain itself are left out.
async fn results(log: &dyn Log, steps: &[Step], at: usize) -> Result<Vec<Arc<Entry>>, Error> {
    let entry = &steps[at].entry;
    let own = |it: &&EntryId| it.thread == entry.id.thread;
    let Some(asked) = entry.reply_to.as_ref().filter(own) else { return Ok(Vec::new()) };
    let reply = reply(log, entry).await?;
    let from = entry.id.seq.saturating_sub(LOOKED_AT_MAX);
    let mut pages = Pages::of(log, &entry.id.thread).after(from).upto(entry.id.seq - 1);
    let (mut results, mut named, mut keys) = (Vec::new(), BTreeMap::new(), BTreeMap::new());
    while let Some(page) = pages.next().await? {
        for it in page {
            if is_of_agents(&it, ACTION) && it.from == entry.from {
                let [id, _, key] = names(&it);
                keys.insert(id, key);
                continue;
            }
            let is_result = is_of_agents(&it, RESULT);
            if !is_result && !is_of_agents(&it, FEED) || it.to.as_ref() != Some(&entry.from) {
                continue;
            }
            let is_of_work = is_result && it.id.seq > asked.seq;
            let [id, called, _] = names(&it);
            let key = keys.get(&id).cloned().flatten();
            let names = [id, called, key].into_iter().flatten();
            for name in names.filter(|it| refers(&reply, it)) {
                if is_of_work {
                    named.remove(&name);
                } else {
                    named.insert(name, it.clone());
                }
            }
            results.extend(is_of_work.then_some(it));
        }
    }
    results.extend(named.into_values());
    results.sort_by_key(|it| it.id.seq);
    results.dedup_by_key(|it| it.id.seq);
    results.retain(|it| steps.iter().all(|step| step.entry.id != it.id));
    Ok(results)
}

/// The text of the reply in which an agent wrote a response. Empty if the entry is no response.
async fn reply(log: &dyn Log, response: &Entry) -> Result<String, Error> {
    let turn = |it: &Entry| {
        let element = Element::from_canonical(it.body.clone()).ok()?;
        Some((element.attribute("turn")?.to_owned(), element.text().into_owned()))
    };
    let Some((of, _)) = turn(response).filter(|_| is_of_agents(response, RESPONSE)) else {
        return Ok(String::new());
    };
    // A reply stands before its last response, and behind those that were sent while it came.
    let from = response.id.seq.saturating_sub(REPLY_LOOKED_AT);
    let upto = response.id.seq.saturating_add(REPLY_LOOKED_AT);
    let mut pages = Pages::of(log, &response.id.thread).after(from).upto(upto);
    let mut text = String::new();
    while let Some(page) = pages.next().await? {
        let replies = page.iter().filter(|it| is_of_agents(it, REPLY) && it.from == response.from);
        text.extend(replies.filter_map(|it| turn(it)).filter(|it| it.0 == of).map(|it| it.1));
    }
    Ok(text)
}

/// Whether an entry is a payload of agents with this local name.
fn is_of_agents(entry: &Entry, local: &str) -> bool {
    entry.name.local() == local && entry.name.namespace() == AGENTS
}

/// The id of an action, a result or a feed, what it calls, and its output key.
fn names(entry: &Entry) -> [Option<String>; 3] {
    let element = Element::from_canonical(entry.body.clone()).ok();
    let of = |name: &str| element.as_ref()?.attribute(name).map(str::to_owned);
    [of("id"), of("name"), of("output_key")]
}

/// Whether a text has a reference that begins with this name.
fn refers(text: &str, name: &str) -> bool {
    let mut rests = text.match_indices('$').map(|(at, _)| &text[at + 1..]);
    rests.any(|it| {
        let rest = it.strip_prefix('{').unwrap_or(it).strip_prefix(name);
        let continues = |it: char| it.is_alphanumeric() || matches!(it, '_' | '-');
        rest.is_some_and(|it| !it.starts_with(continues))
    })
}

async fn step(log: &dyn Log, entry: Arc<Entry>) -> Result<Step, Error> {
    /// How many entries after a refused message are searched for the pump's message about the
    /// refusal.
    const FOLLOWING: usize = 8;
    let mut verdict = None;
    if entry.flags.contains(Flags::REFUSED) {
        let after = log.read(&entry.id.thread, entry.id.seq, u64::MAX, FOLLOWING).await?;
        verdict = after.into_iter().find(|it| it.reply_to.as_ref() == Some(&entry.id));
    }
    let mut fork = None;
    if entry.cause.is_none() && entry.id.seq > 1 {
        let link = log.thread(&entry.id.thread).await?.and_then(|it| it.fork);
        fork = link.filter(|it| it.seq + 1 == entry.id.seq);
    }
    Ok(Step { entry, is_cut: false, verdict, fork, joined: Vec::new(), results: Vec::new() })
}

/// The causal chain of an entry, for people: each step as a sentence and a message.
#[must_use]
pub fn told(steps: &[Step], style: Style) -> String {
    let mut out = String::new();
    let Some(last) = steps.last() else { return out };
    let back = u64::try_from(steps.len() - 1).unwrap_or(u64::MAX);
    let way = match back {
        0 => "nothing in the log caused it".to_owned(),
        _ => format!("{} led to it", count(back, "message", "messages")),
    };
    let id = line(&last.entry.id.to_string()).into_owned();
    // Writing to a string can't fail.
    writeln!(out, "{}: {way}", style.paint(Paint::Strong, &id)).unwrap_or_default();
    for (at, step) in steps.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|it| steps.get(it));
        let sentence = sentence(step, before);
        writeln!(out, "\n{}. {sentence}", at + 1).unwrap_or_default();
        out.push_str(&margin(lines(&step.entry, style).trim_end_matches('\n')));
        if let Some(verdict) = &step.verdict {
            out.push_str("   It was refused, and this was said of it:\n");
            out.push_str(&margin(lines(verdict, style).trim_end_matches('\n')));
        }
        if !step.joined.is_empty() {
            out.push_str("   It rests on what came of these threads, too:\n");
        }
        for Joined { thread, result } in &step.joined {
            let (below, result) = (line(thread.as_str()), link(result, &step.entry.id.thread));
            writeln!(out, "   {below}, as {result} says").unwrap_or_default();
        }
        if !step.results.is_empty() {
            out.push_str("   It rests on these results, too:\n");
        }
        for result in &step.results {
            let id = link(&result.id, &step.entry.id.thread);
            writeln!(out, "   {id}  {}", line(&of_result(result))).unwrap_or_default();
        }
    }
    out
}

/// What a result or a feed is of, and its status: `sum: calculate, ok`.
fn of_result(result: &Entry) -> String {
    let Ok(element) = Element::from_canonical(result.body.clone()) else { return String::new() };
    let of = |name: &str| element.attribute(name).unwrap_or_default().to_owned();
    let source = if is_of_agents(result, FEED) { "source" } else { "name" };
    format!("{}: {}, {}", of("id"), of(source), of("status"))
}

/// A sentence that says what a step did.
fn sentence(step: &Step, before: Option<&Step>) -> String {
    let Entry { id, from, to, reply_to, cause, flags, receivers, .. } = &*step.entry;
    let (from, whom) = (line(from), entry::to(&step.entry));
    let sent = match (to, receivers) {
        (None, 0) if flags.contains(Flags::REFUSED) => "tried to send this".to_owned(),
        (None, 0) => "recorded this, for nobody".to_owned(),
        _ => format!("sent this to {whom}"),
    };
    let thread = line(id.thread.as_str());
    let Some(before) = before else {
        return match cause {
            Some(it) if step.is_cut => {
                format!("The way goes on back from here, to {}.", line(&it.to_string()))
            }
            Some(it) => format!("Its cause, {}, can't be found.", line(&it.to_string())),
            None if flags.contains(Flags::FROM_IDENTITY) && id.seq == 1 => {
                format!("From outside, {from} opened {thread} with this, for {whom}.")
            }
            None if flags.contains(Flags::FROM_IDENTITY) && step.fork.is_some() => {
                let at = step.fork.as_ref().map(ToString::to_string).unwrap_or_default();
                let at = line(&at);
                format!("From outside, {from} forked {thread} after {at} with this, for {whom}.")
            }
            None if flags.contains(Flags::FROM_IDENTITY) => {
                format!("From outside, {from} sent this into {thread}, for {whom}.")
            }
            None => format!("{from} {sent}, caused by no other message."),
        };
    };
    let handled = &before.entry.id;
    if id.seq == 1 && handled.thread != id.thread {
        return format!("Handling it opened {thread} with this, from {from} for {whom}.");
    }
    match reply_to {
        Some(it) if it == handled => format!("Handling it, {from} answered {whom}."),
        Some(it) => {
            format!("Handling it, {from} answered an earlier message, {}.", link(it, &id.thread))
        }
        None if *from == **to.as_ref().unwrap_or(&"".into()) => {
            format!("Handling it, {from} went on by a message to itself.")
        }
        None => format!("Handling it, {from} {sent}."),
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::log::{Batch, Draft, MemoryLog, NewThread};
    use crate::name::Name;

    fn draft(seq: u64, from: &str, to: &str, cause: Option<u64>) -> Draft {
        let id = ThreadId::new("sess-a");
        let body = Bytes::from(format!("<a>{seq}</a>"));
        let name = Name::of("urn:x", "a");
        let cause = cause.map(|it| EntryId::new(&id, it));
        let draft = Draft::new(EntryId::new(&id, seq), 0, from.into(), name, body);
        Draft { to: Some(to.into()), cause, ..draft }
    }

    async fn log() -> MemoryLog {
        let log = MemoryLog::new();
        let id = ThreadId::new("sess-a");
        let answers = |it: Draft, seq| Draft { reply_to: Some(EntryId::new(&id, seq)), ..it };
        let entries = vec![
            Draft { flags: Flags::FROM_IDENTITY, ..draft(1, "console", "plan", None) },
            draft(2, "plan", "plan", Some(1)),
            draft(3, "plan", "work", Some(2)),
            answers(draft(4, "work", "plan", Some(3)), 3),
            answers(draft(5, "plan", "console", Some(4)), 1),
            Draft { flags: Flags::REFUSED, ..draft(6, "plan", "secret", Some(4)) },
            answers(draft(7, "core", "plan", Some(4)), 6),
            Draft { to: None, ..draft(8, "core", "", Some(4)) },
            Draft { to: None, ..draft(9, "core", "", None) },
            Draft { to: None, flags: Flags::REFUSED, ..draft(10, "plan", "", Some(4)) },
            Draft { to: None, receivers: 2, ..draft(11, "plan", "", Some(4)) },
        ];
        let threads = vec![NewThread { id, parent: None, fork: None }];
        log.append(Batch { threads, entries, marks: Vec::new() }).await.unwrap();
        log
    }

    async fn sentences(id: &str) -> Vec<String> {
        let steps = why(&log().await, &id.parse().unwrap()).await.unwrap().unwrap();
        let told = told(&steps, Style::PLAIN);
        let numbered = |it: &&str| it.starts_with(|it: char| it.is_ascii_digit());
        told.lines().filter(numbered).map(str::to_owned).collect()
    }

    #[tokio::test]
    async fn the_way_is_told_from_its_beginning() {
        assert_eq!(
            sentences("sess-a/5").await,
            [
                "1. From outside, console opened sess-a with this, for plan.",
                "2. Handling it, plan went on by a message to itself.",
                "3. Handling it, plan sent this to work.",
                "4. Handling it, work answered plan.",
                "5. Handling it, plan answered an earlier message, /1.",
            ]
        );
        assert_eq!(sentences("sess-a/1").await.len(), 1);
    }

    #[tokio::test]
    async fn what_is_for_nobody_is_told_so() {
        let last = async |id: &str| sentences(id).await.pop().unwrap();
        assert_eq!(last("sess-a/8").await, "5. Handling it, core recorded this, for nobody.");
        let alone = "1. core recorded this, for nobody, caused by no other message.";
        assert_eq!(last("sess-a/9").await, alone);
        assert_eq!(last("sess-a/10").await, "5. Handling it, plan tried to send this.");
        let to_all = "5. Handling it, plan sent this to all who take it.";
        assert_eq!(last("sess-a/11").await, to_all);
    }

    #[tokio::test]
    async fn a_refusal_is_told_with_its_reason() {
        let steps = why(&log().await, &"sess-a/6".parse().unwrap()).await.unwrap().unwrap();
        let verdict = steps.last().unwrap().verdict.clone().unwrap();
        assert_eq!(verdict.id.to_string(), "sess-a/7");
        assert!(told(&steps, Style::PLAIN).contains("It was refused, and this was said of it:"));
    }

    /// A log with a session. The session's first message opened three child threads, and its second
    /// message opened one.
    async fn joins() -> MemoryLog {
        let log = MemoryLog::new();
        let id = |thread: &str, seq| EntryId::new(&ThreadId::new(thread), seq);
        let plain = |thread: &str, seq: u64, cause: Option<EntryId>| Draft {
            cause,
            ..Draft { id: id(thread, seq), ..draft(seq, "boss", "work", None) }
        };
        let new = |thread: &str, parent: Option<&str>| NewThread {
            id: ThreadId::new(thread),
            parent: parent.map(ThreadId::new),
            fork: None,
        };
        let pushed = |seq| Draft { flags: Flags::FROM_IDENTITY, ..plain("s", seq, None) };
        let mut entries = vec![pushed(1), pushed(2)];
        let mut threads = vec![new("s", None)];
        for (below, cause) in [("s.a", 1), ("s.b", 1), ("s.other", 2), ("s.c", 1)] {
            threads.push(new(below, Some("s")));
            entries.push(plain(below, 1, Some(id("s", cause))));
            entries.push(plain(below, 2, Some(id(below, 1))));
            let seq = 2 + threads.len() as u64 - 1;
            let result = Draft { name: ThreadResult::NAME, ..plain("s", seq, Some(id(below, 2))) };
            entries.push(Draft { reply_to: Some(id(below, 1)), ..result });
        }
        let answer = plain("s", 7, Some(id("s", 6)));
        entries.push(Draft { reply_to: Some(id("s", 1)), ..answer });
        log.append(Batch { threads, entries, marks: Vec::new() }).await.unwrap();
        log
    }

    #[tokio::test]
    async fn a_join_names_every_thread_that_the_answer_rests_on() {
        let joined = async |entry: &str| {
            let steps = why(&joins().await, &entry.parse().unwrap()).await.unwrap().unwrap();
            let joined = steps.iter().flat_map(|it| &it.joined);
            let joined: Vec<String> =
                joined.map(|it| format!("{} {}", it.thread, it.result)).collect();
            (joined, told(&steps, Style::PLAIN))
        };
        let (all, text) = joined("s/7").await;
        assert_eq!(all, ["s.a s/3", "s.b s/4"]);
        assert!(text.ends_with("   s.a, as /3 says\n   s.b, as /4 says\n"), "{text}");
        assert_eq!(joined("s/1").await.0, [""; 0]);
        assert_eq!(joined("s.c/2").await.0, [""; 0]);
    }

    #[tokio::test]
    async fn what_is_not_there_has_no_why() {
        assert_eq!(why(&log().await, &"sess-a/99".parse().unwrap()).await, Ok(None));
    }
}
