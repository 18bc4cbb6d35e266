//! `export`: a thread as one document.

use std::collections::HashSet;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::audit;
use crate::cli::data;
use crate::cli::screen::{Ending, Failure, Screen};
use crate::id::ThreadId;
use crate::log::{Head, Log, ThreadRecord};

/// Entries that are read at a time.
const PAGE: usize = 256;

/// Writes a thread as one document, as far as it goes now.
///
/// xml can be checked again: it has all that the digests are over. jsonl has what `show --json`
/// prints, an entry a line. markdown is for reading.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  pumphouse export sess-k3v9x2ma > thread.xml
  pumphouse export sess-k3v9x2ma --format jsonl --output thread.jsonl
  pumphouse export sess-k3v9x2ma --format markdown --output thread.md

A file that is there already stays as it is; `--force` writes over it.
Exits with 1 where there is no such thread, 2 where the file can't be written.")]
pub(crate) struct Export {
    /// The thread.
    #[arg(value_name = "THREAD")]
    thread: String,
    /// How.
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = Format::Xml)]
    format: Format,
    /// Where to; without it, the output.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Writes over a file that is there.
    #[arg(long, requires = "output")]
    force: bool,
}

/// What a thread is written as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Xml,
    Jsonl,
    Markdown,
}

impl Export {
    pub(crate) async fn run(self, data: &Path, to: &mut Screen<'_>) -> Result<Ending, Failure> {
        let log = data::open(data)?;
        let id = ThreadId::new(&self.thread);
        let Some(thread) = log.thread(&id).await? else {
            return Err(data::unknown(&log, &id).await);
        };
        // After the thread was looked up, so that the head covers all of it.
        let head = log.head().await?;
        let format = if to.json { Format::Jsonl } else { self.format };
        let Some(path) = &self.output else {
            write(&log, &thread, head, format, to.out).await?;
            return Ok(Ending::Well);
        };
        let trouble = |it| Failure::Untried(format!("{} can't be written: {it}", path.display()));
        let mut options = File::options();
        options.write(true).create(true).truncate(true).create_new(!self.force);
        let file = options.open(path).map_err(|error| match error.kind() {
            std::io::ErrorKind::AlreadyExists => {
                let text = "is there already; name another, or write over it with --force";
                Failure::Untried(format!("{} {text}", path.display()))
            }
            _ => trouble(error),
        })?;
        let mut file = BufWriter::new(file);
        write(&log, &thread, head, format, &mut file).await.map_err(|it| match it {
            Failure::Pipe => trouble(std::io::ErrorKind::BrokenPipe.into()),
            other => other,
        })?;
        let kept = file.into_inner().map_err(|it| it.into_error()).and_then(|it| it.sync_all());
        kept.map_err(trouble)?;
        Ok(Ending::Well)
    }
}

async fn write(
    log: &dyn Log,
    thread: &ThreadRecord,
    head: Head,
    format: Format,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    match format {
        Format::Xml => out.write_all(audit::xml_head(thread, &log.identity(), head).as_bytes())?,
        Format::Markdown => {
            out.write_all(audit::markdown_head(thread, &log.identity(), head).as_bytes())?;
        }
        Format::Jsonl => {}
    }
    let (mut seq, mut origins) = (0, HashSet::new());
    loop {
        let page = log.read(&thread.id, seq, thread.last_seq, PAGE).await?;
        let Some(last) = page.last() else { break };
        seq = last.id.seq;
        for entry in &page {
            match format {
                Format::Jsonl => {
                    writeln!(out, "{}", audit::ascii(&audit::json(entry).to_string()))?;
                }
                Format::Markdown => out.write_all(audit::markdown_entry(entry).as_bytes())?,
                Format::Xml => {
                    // A digest is also over where the entry's own thread comes from.
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
    if format == Format::Xml {
        out.write_all(audit::xml_foot().as_bytes())?;
    }
    Ok(())
}
