//! `feeds`: shows the feeds of agents in a thread, and what the last prompt had of each feed.

use std::path::Path;

use serde_json::{Value, json};

use crate::audit::{self, Paint, Style};
use crate::cli::base::screen::{Ending, Failure, Screen};
use crate::cli::base::time::span;
use crate::cli::base::{data, transcript};
use crate::clock;
use crate::id::ThreadId;
use crate::listener::{Apply as _, Entry};
use crate::listeners::agent::words::CognitionIn;
use crate::listeners::feed::definition::{Definition, SourceKind};
use crate::listeners::feed::words::{ContextFeed, FeedContent, FeedStatus, NAME as FEED};
use crate::listeners::feed::{Feed, Shown};
use crate::listeners::feed_values;
use crate::log::{Log, SqliteLog, ThreadPages};
use crate::wire::iso_time;

/// Shows the feeds of an agent: the source, the age and size of the content, when the source is
/// asked again, and whether the last prompt showed the feed.
///
/// The thread is the newest one in which the agent has feeds, unless `--thread` names another. Ages
/// are counted from the source's last answer in the log.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  pumphouse feeds                                the feeds of the newest thread that has any
  pumphouse feeds octopus
  pumphouse feeds octopus --values               what each feed holds, too
  pumphouse feeds --thread sess-k3v9x2ma --json | jq -r 'select(.status != \"fresh\").why'

Exits with 1 where there is no such thread, or no thread in which the agent has feeds.")]
pub(crate) struct Feeds {
    /// The agent; without it, all agents of the thread.
    #[arg(value_name = "AGENT")]
    agent: Option<String>,
    /// The thread; without it, the newest one in which the agent has feeds.
    #[arg(long, value_name = "THREAD")]
    thread: Option<String>,
    /// Prints the content of each feed, too.
    #[arg(long)]
    values: bool,
}

/// A feed of an agent, as the log shows it.
struct FeedReport {
    agent: String,
    definition: Definition,
    content: Option<Feed>,
    /// Why the source couldn't be asked or didn't answer.
    why: Option<String>,
    /// When the source answered last, in microseconds since the epoch.
    answered_us: Option<u64>,
    /// When the content stops being fresh. None if the last answer was never fresh, if there is no
    /// answer, or if the pump itself is the source.
    fresh_until_us: Option<u64>,
    /// How the agent's last prompt showed the feed.
    prompt: InPrompt,
}

/// How a prompt showed a feed.
enum InPrompt {
    /// The agent had no turn yet.
    NoTurn,
    /// The prompt showed this many bytes.
    Shown(usize),
    /// The prompt didn't show the feed. The text says why.
    Absent(&'static str),
}

impl Feeds {
    pub(crate) async fn run(self, data: &Path, to: &mut Screen<'_>) -> Result<Ending, Failure> {
        let log = data::open(data)?;
        let (thread, entries) = self.entries(&log).await?;
        log.close().await?;
        let reports = reports(&entries, self.agent.as_deref());
        if !to.json {
            let thread = audit::line(thread.as_str()).into_owned();
            to.line(&to.style.paint(Paint::Strong, &thread))?;
        }
        for report in &reports {
            match to.json {
                true => to.object(&object(&thread, report))?,
                false => to.text(&lines(report, clock::wall_us(), self.values, to.style))?,
            }
        }
        Ok(Ending::Well)
    }

    /// Returns the thread to report on, with its entries. Fails if there is no thread in which the
    /// agent has feeds.
    async fn entries(&self, log: &SqliteLog) -> Result<(ThreadId, Vec<Entry>), Failure> {
        let thread = self.thread.as_deref().map(ThreadId::new);
        let found = newest_thread(log, thread.as_ref(), |it| self.has_feeds(it)).await?;
        let place = || thread.map_or("in any thread".to_owned(), |it| format!("in {it}"));
        found.ok_or_else(|| self.without_feeds(&place()))
    }

    fn has_feeds(&self, entries: &[Entry]) -> bool {
        !reports(entries, self.agent.as_deref()).is_empty()
    }

    fn without_feeds(&self, place: &str) -> Failure {
        let who = self.agent.as_deref().map_or("no agent".into(), audit::line);
        let advice = "a feed is declared with its agent, under `feeds` or `context_feeds`, and \
                      stands in a thread once the agent had a turn";
        let text = match self.agent {
            Some(_) => format!("{who} has no feeds {place}; {advice}"),
            None => format!("{who} has feeds {place}; {advice}"),
        };
        Failure::Wrong(text)
    }
}

/// Returns the newest thread whose entries satisfy `is_wanted`, with its entries. With `named`,
/// only this thread is considered, and it must exist.
pub(crate) async fn newest_thread(
    log: &SqliteLog,
    named: Option<&ThreadId>,
    is_wanted: impl Fn(&[Entry]) -> bool,
) -> Result<Option<(ThreadId, Vec<Entry>)>, Failure> {
    let mut threads = Vec::new();
    if let Some(thread) = named {
        if log.thread(thread).await?.is_none() {
            return Err(data::unknown(log, thread).await);
        }
        threads.push(thread.clone());
    } else {
        let mut pages = ThreadPages::of(log);
        while let Some(page) = pages.next().await? {
            threads.extend(page.into_iter().map(|it| it.id));
        }
    }
    for thread in threads.into_iter().rev() {
        let entries = transcript::read(log, &thread, u64::MAX).await?;
        if is_wanted(&entries) {
            return Ok(Some((thread, entries)));
        }
    }
    Ok(None)
}

/// Returns the agents of a thread that have a feed with this id.
pub(crate) fn agents_with(entries: &[Entry], id: &str) -> Vec<String> {
    let mut shown = Shown::default();
    entries.iter().for_each(|it| shown.apply(it));
    let registry = shown.registry();
    let having = registry.agents().filter(|it| registry.get(it, id).is_some());
    having.map(str::to_owned).collect()
}

/// Returns the feeds of an agent, or of all agents, in the order in which they are declared.
fn reports(entries: &[Entry], agent: Option<&str>) -> Vec<FeedReport> {
    let mut shown = Shown::default();
    entries.iter().for_each(|it| shown.apply(it));
    let agents = shown.registry().agents().filter(|it| agent.is_none_or(|agent| agent == *it));
    let mut all = Vec::new();
    for agent in agents {
        let last = entries.iter().rev().find(|it| it.from() == agent && it.is::<CognitionIn>());
        let until = last.and_then(Entry::decode_if::<CognitionIn>).map(|it| it.until);
        let mut at_prompt = Shown::default();
        let before = entries.iter().filter(|it| until.is_some_and(|until| it.seq() <= until));
        before.for_each(|it| at_prompt.apply(it));
        for registered in shown.registry().of(agent) {
            let definition = registered.definition.clone();
            let content = shown.get(agent, &definition.id).cloned();
            let (answered_us, fresh_until_us) = answered(entries, agent, &definition);
            all.push(FeedReport {
                agent: agent.to_owned(),
                why: why(entries, agent, &definition.id),
                prompt: in_prompt(&at_prompt, agent, &definition, until),
                definition,
                content,
                answered_us,
                fresh_until_us,
            });
        }
    }
    all
}

/// Returns when a feed's source last answered, and until when the answer is fresh, if it is fresh
/// at all.
fn answered(entries: &[Entry], agent: &str, definition: &Definition) -> (Option<u64>, Option<u64>) {
    let own = format!("/{agent}/{}", definition.id);
    let is_question =
        |it: &&Entry| it.from() == FEED && it.key().is_some_and(|key| key.ends_with(&own));
    let Some(question) = entries.iter().rev().find(is_question) else {
        // If no source was asked, the pump itself is the source. It answers by recording the
        // content.
        let recorded = entries.iter().rev().find(|it| is_content(it, agent, &definition.id));
        return (recorded.map(Entry::at_us), None);
    };
    let is_answer = |it: &&Entry| it.reply_to() == Some(question.id()) && it.to() == Some(FEED);
    let Some(answer) = entries.iter().find(is_answer) else { return (None, None) };
    let seconds = match answer.decode_if::<FeedContent>() {
        Some(content) => content.fresh_for,
        None if definition.is_periodic() => definition.interval.unwrap_or_default(),
        None => definition.cache_ttl.unwrap_or_default(),
    };
    let fresh = std::time::Duration::try_from_secs_f64(seconds).unwrap_or_default();
    let until = u64::try_from(fresh.as_micros()).ok().filter(|it| *it > 0);
    (Some(answer.at_us()), until.map(|it| answer.at_us().saturating_add(it)))
}

/// Returns why a feed could not be refreshed, if the feed's last record says so.
fn why(entries: &[Entry], agent: &str, id: &str) -> Option<String> {
    let last = entries.iter().rev().find(|it| is_content(it, agent, id))?;
    last.decode_if::<ContextFeed>()?.why
}

fn is_content(entry: &Entry, agent: &str, id: &str) -> bool {
    entry.to() == Some(agent)
        && !entry.is_refused()
        && entry.decode_if::<ContextFeed>().is_some_and(|it| it.id == id)
}

fn in_prompt(
    at_prompt: &Shown,
    agent: &str,
    definition: &Definition,
    until: Option<u64>,
) -> InPrompt {
    if until.is_none() {
        return InPrompt::NoTurn;
    }
    let at_turn = at_prompt.registry().get(agent, &definition.id).map(|it| &it.definition);
    if at_turn.is_some_and(|it| it.is_enabled() && !it.is_shown()) {
        return InPrompt::Absent("it is there for references only");
    }
    match at_prompt.contents(agent).get(&definition.id) {
        Some(Some(text)) => InPrompt::Shown(text.len()),
        _ if !definition.is_enabled() => InPrompt::Absent("it is not enabled"),
        None => InPrompt::Absent("it was added later"),
        Some(None) => InPrompt::Absent(match at_prompt.get(agent, &definition.id) {
            None => "nothing had come of it",
            Some(it) if it.status == FeedStatus::Unavailable => "it was unavailable",
            Some(it) if it.text.is_empty() => "it was empty",
            Some(_) => "the feeds before it left no room",
        }),
    }
}

/// Returns the source, as the definition names it.
fn source(definition: &Definition) -> String {
    let Some(source) = &definition.source else { return String::new() };
    if source.kind == SourceKind::Set {
        return feed_values::NAME.to_owned();
    }
    let name = source.asked().unwrap_or_default();
    let path = source.params.as_ref().and_then(|it| it.0.get("path")?.as_str());
    format!("{name}{}", path.map(|it| format!(" {it}")).unwrap_or_default())
}

fn status(report: &FeedReport) -> &'static str {
    report.content.as_ref().map_or("not read yet", |it| it.status.as_str())
}

fn lines(it: &FeedReport, now_us: u64, has_values: bool, style: Style) -> String {
    let who = format!("{} {}", audit::line(&it.agent), audit::line(&it.definition.id));
    let bytes = it.content.as_ref().map_or(0, |it| it.text.len());
    let age = it.answered_us.map(|at| format!("{} old, ", span(now_us.saturating_sub(at))));
    let next = match it.fresh_until_us {
        Some(until) if until > now_us => format!("fresh for {}", span(until - now_us)),
        _ => "asked again at the next turn".to_owned(),
    };
    let prompt = match &it.prompt {
        InPrompt::NoTurn => "no turn yet".to_owned(),
        InPrompt::Shown(bytes) => format!("{bytes} bytes in the last prompt"),
        InPrompt::Absent(why) => format!("not in the last prompt: {why}"),
    };
    let mut out = format!(
        "  {}  {}  from {}\n    {bytes} bytes, {}{next}; {prompt}\n",
        style.paint(Paint::Who, &who),
        status(it),
        audit::line(&source(&it.definition)),
        age.unwrap_or_default(),
    );
    if let Some(why) = &it.why {
        out += &format!("    {}\n", audit::line(why));
    }
    if let Some(content) = it.content.as_ref().filter(|_| has_values) {
        out += &audit::quoted(&content.text);
    }
    out
}

fn object(thread: &ThreadId, it: &FeedReport) -> Value {
    let (bytes, why_not) = match &it.prompt {
        InPrompt::NoTurn => (None, Some("no turn yet")),
        InPrompt::Shown(bytes) => (Some(bytes), None),
        InPrompt::Absent(why) => (None, Some(*why)),
    };
    let content = it.content.as_ref();
    json!({
        "thread": thread.as_str(),
        "agent": it.agent,
        "feed": it.definition.id,
        "source": source(&it.definition),
        "enabled": it.definition.is_enabled(),
        "status": content.map(|it| it.status.as_str()),
        "as_of": content.and_then(|it| it.as_of).map(|it| it.to_string()),
        "why": it.why,
        "bytes": content.map(|it| it.text.len()),
        "answered": it.answered_us.map(iso_time),
        "fresh_until": it.fresh_until_us.map(iso_time),
        "prompt_bytes": bytes,
        "not_in_prompt": why_not,
        "text": content.map(|it| &it.text),
    })
}
