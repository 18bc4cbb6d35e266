//! `export`: writes a thread as one document.

use std::collections::HashSet;
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::atomic_file::IfExists;
use crate::audit::{self, Filter, Selected, When};
use crate::cli::base::connect::Credentials;
use crate::cli::base::screen::{Ending, Failure, Screen};
use crate::cli::base::{data, follow, transcript};
use crate::client::Address;
use crate::clock;
use crate::id::ThreadId;
use crate::log::{Head, Log, Pages, ThreadPages, ThreadRecord};

/// Writes threads as one document, with all their entries so far.
///
/// Without THREAD, --identity or --since says which threads. --identity takes every session with a
/// message from or to this identity, and all threads below these sessions. --since and --until take
/// the entries of this time alone.
///
/// xml has everything that the digests are computed from, so it can be checked again. jsonl has
/// what `show --json` prints, an entry a line. markdown is for reading. transcript has what agents
/// were told, did and said, an event a line. With --follow, a transcript goes on with new events.
/// With --follow and --connect, it also has text that is still being written.
/// messages-openai and messages-anthropic have one agent's conversation in one line, in the form
/// that these providers accept.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  pumphouse export sess-k3v9x2ma > thread.xml
  pumphouse export sess-k3v9x2ma --below > job.xml            and the threads below it
  pumphouse export --identity ada --since 2026-11-01 --until 2026-12-01 --output ada.xml
  pumphouse verify thread.xml
  pumphouse export sess-k3v9x2ma --format jsonl --output thread.jsonl
  pumphouse export sess-k3v9x2ma --format markdown --output thread.md
  pumphouse export sess-k3v9x2ma --format transcript --follow | jq -r .type
  pumphouse export sess-k3v9x2ma --format messages-openai --agent researcher

A file that exists stays as it is; `--force` replaces it, once the export is complete.
Exits with 1 where there is no such thread, 2 where the file can't be written.")]
pub(crate) struct Export {
    /// The threads.
    #[arg(value_name = "THREAD", required_unless_present_any = ["identity", "since"])]
    threads: Vec<String>,
    /// Takes the threads below these as well.
    #[arg(long)]
    below: bool,
    /// Sessions with a message from or to this identity, and all threads below them. The option may
    /// be given more than once.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["follow", "connect"])]
    identity: Vec<String>,
    /// Entries from this time on: 10m (ago), 2h, 3d, or 2026-11-22, 2026-11-22T10:00 in UTC.
    #[arg(long, value_name = "TIME", conflicts_with_all = ["follow", "connect"])]
    since: Option<When>,
    /// Entries before this time, in the same forms as --since.
    #[arg(long, value_name = "TIME", conflicts_with_all = ["follow", "connect"])]
    until: Option<When>,
    /// The format of the document.
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = Format::Xml)]
    format: Format,
    /// The file to write; without it, the standard output.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replaces a file that exists.
    #[arg(long, requires = "output")]
    force: bool,
    /// The agent whose conversation is written. A thread with several agents needs it.
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// Goes on with new events, until Ctrl-C.
    #[arg(short, long, conflicts_with = "output")]
    follow: bool,
    /// Asks a running pump at this address: HOST:PORT, tls:HOST:PORT or unix:PATH.
    #[arg(long, value_name = "ADDR", conflicts_with = "output")]
    connect: Option<Address>,
    #[command(flatten)]
    credentials: Credentials,
}

/// The format of the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Xml,
    Jsonl,
    Markdown,
    Transcript,
    MessagesOpenai,
    MessagesAnthropic,
}

impl Export {
    pub(crate) async fn run(self, data: &Path, to: &mut Screen<'_>) -> Result<Ending, Failure> {
        self.fits()?;
        if let (Some(address), [id]) = (&self.connect, &self.threads[..]) {
            let id = ThreadId::new(id);
            return transcript::ask(address, &self.credentials, &id, self.follow, to).await;
        }
        let log = data::open(data)?;
        let (threads, selected) = self.selected(&log).await?;
        if let ([thread], true) = (&threads[..], self.follow) {
            return follow::until_stopped(transcript::events(&log, thread, true, to.out)).await;
        }
        // The log's head is read after the thread was looked up, so that the head covers the whole
        // thread.
        let head = log.head().await?;
        let agent = self.agent.as_deref();
        let format = if to.json { self.format.as_json() } else { self.format };
        let Some(path) = &self.output else {
            write(&log, (&threads, selected.as_ref()), head, (format, agent), to.out).await?;
            return Ok(Ending::Well);
        };
        let trouble = |it| Failure::Untried(format!("{} can't be written: {it}", path.display()));
        let if_exists = if self.force { IfExists::Replace } else { IfExists::Keep };
        let mut file = log.file_outside(path, if_exists).map_err(|error| match error.kind() {
            std::io::ErrorKind::AlreadyExists => {
                let text = "is there already; name another, or write over it with --force";
                Failure::Untried(format!("{} {text}", path.display()))
            }
            _ => trouble(error),
        })?;
        let what = (&threads[..], selected.as_ref());
        write(&log, what, head, (format, agent), &mut file).await.map_err(|it| match it {
            Failure::Pipe => trouble(std::io::ErrorKind::BrokenPipe.into()),
            other => other,
        })?;
        file.commit().map_err(trouble)?;
        Ok(Ending::Well)
    }

    /// Returns the threads to write. If they aren't one whole thread, also returns what was
    /// selected.
    async fn selected(
        &self,
        log: &dyn Log,
    ) -> Result<(Vec<ThreadRecord>, Option<Selected>), Failure> {
        let now_us = clock::wall_us();
        let at = |it: Option<When>| it.map(|it| it.at_us(now_us));
        let mut selected = Selected::default();
        selected.identities.clone_from(&self.identity);
        (selected.since_us, selected.before_us) = (at(self.since), at(self.until));
        let mut threads = Vec::new();
        for id in self.threads.iter().map(|it| ThreadId::new(it)) {
            let Some(thread) = log.thread(&id).await? else {
                return Err(data::unknown(log, &id).await);
            };
            let tree = if self.below { log.tree(&id).await? } else { Vec::new() };
            threads.push(thread);
            threads.extend(tree.into_iter().filter(|it| it.id != id));
        }
        let mut filter = Filter::default();
        filter.identities.clone_from(&self.identity);
        if self.threads.is_empty() {
            let mut pages = ThreadPages::of(log);
            while let Some(page) = pages.next().await? {
                for session in page.iter().filter(|it| it.parent.is_none()) {
                    let Some(record) = log.thread(&session.id).await? else { continue };
                    if filter.wants_thread(log, &record).await? {
                        threads.extend(log.tree(&session.id).await?);
                    }
                }
            }
        }
        let is_one = threads.len() == 1 && self.since.is_none() && self.until.is_none();
        if is_one && self.identity.is_empty() {
            return Ok((threads, None));
        }
        let mut wanted = Vec::new();
        for thread in threads {
            let entries = selected.count(log, &thread).await?;
            if entries > 0 {
                selected.entries += entries;
                wanted.push(thread);
            }
        }
        selected.threads = wanted.len();
        match wanted.is_empty() {
            true => Err(Failure::Wrong("the log has no such thread or entry".to_owned())),
            false => Ok((wanted, Some(selected))),
        }
    }

    /// Checks that the options apply to the format.
    fn fits(&self) -> Result<(), Failure> {
        let is_talk = matches!(self.format, Format::MessagesOpenai | Format::MessagesAnthropic);
        let wrong = if (self.follow || self.connect.is_some()) && self.format != Format::Transcript
        {
            "--follow and --connect are for --format transcript; `pumphouse show` has them, too"
        } else if (self.follow || self.connect.is_some() || is_talk)
            && (self.threads.len() != 1 || self.below || self.since.or(self.until).is_some())
        {
            "--follow, --connect and the messages of a provider are for one whole thread"
        } else if self.agent.is_some() && !is_talk {
            "--agent is for --format messages-openai and messages-anthropic"
        } else {
            return Ok(());
        };
        Err(Failure::Untried(wrong.to_owned()))
    }
}

impl Format {
    /// Returns the format to write if JSON is wanted.
    fn as_json(self) -> Format {
        match self {
            Format::Xml | Format::Markdown => Format::Jsonl,
            json => json,
        }
    }
}

async fn write(
    log: &dyn Log,
    (threads, selected): (&[ThreadRecord], Option<&Selected>),
    head: Head,
    (format, agent): (Format, Option<&str>),
    out: &mut dyn Write,
) -> Result<(), Failure> {
    if let (Format::MessagesOpenai | Format::MessagesAnthropic, [thread]) = (format, threads) {
        let talk = transcript::talk(log, thread, agent).await?;
        let talk = match format {
            Format::MessagesOpenai => talk.openai(),
            _ => talk.anthropic(),
        };
        writeln!(out, "{}", audit::ascii(&talk.to_string()))?;
        return Ok(());
    }
    if format == Format::Xml {
        let begin = match (selected, threads) {
            (None, [thread]) => audit::xml_head(thread, &log.identity(), head),
            (selected, _) => selected.cloned().unwrap_or_default().xml_head(&log.identity(), head),
        };
        out.write_all(begin.as_bytes())?;
    }
    let mut origins = HashSet::new();
    for thread in threads {
        one(log, thread, selected, head, (format, &mut origins), out).await?;
    }
    if format == Format::Xml {
        out.write_all(audit::xml_foot().as_bytes())?;
    }
    Ok(())
}

/// Writes the selected entries of one thread.
async fn one(
    log: &dyn Log,
    thread: &ThreadRecord,
    selected: Option<&Selected>,
    head: Head,
    (format, origins): (Format, &mut HashSet<ThreadId>),
    out: &mut dyn Write,
) -> Result<(), Failure> {
    match format {
        Format::Transcript => {
            transcript::events(log, thread, false, out).await?;
            return Ok(());
        }
        Format::Markdown => {
            out.write_all(audit::markdown_head(thread, &log.identity(), head).as_bytes())?;
        }
        _ => {}
    }
    let mut pages = Pages::of(log, &thread.id).upto(thread.last_seq);
    while let Some(page) = pages.next().await? {
        for entry in page.iter().filter(|it| selected.is_none_or(|all| all.wants(it))) {
            match format {
                Format::Jsonl => {
                    writeln!(out, "{}", audit::ascii(&audit::json(entry).to_string()))?;
                }
                Format::Markdown => {
                    out.write_all(audit::markdown_entry(entry, &thread.id).as_bytes())?;
                }
                _ => {
                    // An entry's digest also covers the parent and the fork of the entry's thread.
                    if origins.insert(entry.id.thread.clone())
                        && let Some(origin) = log.thread(&entry.id.thread).await?
                    {
                        out.write_all(audit::xml_thread(&origin).as_bytes())?;
                    }
                    out.write_all(audit::xml_entry(entry).as_bytes())?;
                }
            }
        }
    }
    Ok(())
}
