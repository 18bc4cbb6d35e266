//! `otel export`: sends the spans of a log to a collector, or writes them to a file.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

use serde_json::json;

use crate::atomic_file::{AtomicFile, IfExists};
use crate::audit;
use crate::cli::base::screen::{Ending, Failure, Screen};
use crate::cli::base::{data, organism};
use crate::cli::otel::batch::{SPANS_MAX, send};
use crate::cli::otel::{Export, From};
use crate::clock;
use crate::id::ThreadId;
use crate::log::{Entry, Error, Log, SqliteLog};
use crate::manifest;
use crate::otel::{Collector, Projection, Resource, Span, Unsent, encode};

/// How many entries are read at a time, and up to how many bytes of them.
const PAGE: usize = 1_024;
const PAGE_BYTES: usize = 8 * 1024 * 1024;

/// Where spans go.
enum Target {
    Collector(Collector),
    File(String, Box<AtomicFile>),
    Output,
}

/// The counts of an export.
#[derive(Default)]
struct Sum {
    spans: u64,
    /// How many of the spans the collector rejected.
    rejected: u64,
}

impl Export {
    pub(super) async fn run(self, data: &Path, to: &mut Screen<'_>) -> Result<Ending, Failure> {
        let log = Arc::new(data::open(data)?);
        let (name, says) = organism::otel()?;
        let threads = self.threads(&*log).await?;
        let mut target = self.target(&log, says.as_ref())?;
        let resource = Resource::new(name.as_deref(), log.identity().uuid);
        let after = first_position(&*log, self.from).await?.saturating_sub(1);
        let upto = audit::last_position(&*log).await?;
        let content = self.content || says.is_some_and(|it| it.content);
        let mut projection = Projection::new(log.clone()).content(content);
        let (mut sum, mut spans, mut after) = (Sum::default(), Vec::new(), after);
        while after < upto {
            let page = page(&*log, after).await?;
            let Some(last) = page.last() else { break };
            after = last.position;
            for entry in page.iter().filter(|it| it.position <= upto) {
                if threads.as_ref().is_none_or(|it| it.contains(&entry.id.thread)) {
                    spans.extend(projection.take(entry).await?);
                }
                if spans.len() >= SPANS_MAX {
                    target.take(&std::mem::take(&mut spans), &resource, &mut sum, to).await?;
                }
            }
        }
        target.take(&spans, &resource, &mut sum, to).await?;
        target.end(&sum, to)
    }

    /// Returns the threads to export. None stands for all threads.
    async fn threads(&self, log: &dyn Log) -> Result<Option<BTreeSet<ThreadId>>, Failure> {
        let Some(thread) = self.thread.as_deref().map(ThreadId::new) else { return Ok(None) };
        let tree = log.tree(&thread).await?;
        if tree.is_empty() {
            return Err(data::unknown(log, &thread).await);
        }
        Ok(Some(tree.into_iter().map(|it| it.id).collect()))
    }

    fn target(&self, log: &SqliteLog, says: Option<&manifest::Otel>) -> Result<Target, Failure> {
        let collector = |endpoint: &str, headers: &manifest::Otel| {
            let collector = Collector::new(endpoint, headers.headers());
            collector
                .map(Target::Collector)
                .map_err(|it| Failure::Untried(format!("{endpoint}: {it}; give another with --to")))
        };
        let Some(to) = self.to.as_deref() else {
            let missing = "say where the spans go with --to FILE or --to URL, or give \
                           organism.yaml here an `otel: {endpoint: http://127.0.0.1:4318}`";
            let says = says.ok_or_else(|| Failure::Untried(missing.to_owned()))?;
            return collector(&says.endpoint, says);
        };
        if to.contains("://") {
            // The headers of the manifest may contain secrets. So only the endpoint of the manifest
            // gets them.
            let none = manifest::Otel::at(to);
            return collector(to, says.filter(|it| it.endpoint == to).unwrap_or(&none));
        }
        if to == "-" {
            return Ok(Target::Output);
        }
        let if_exists = if self.force { IfExists::Replace } else { IfExists::Keep };
        let file = log.file_outside(Path::new(to), if_exists).map_err(|error| {
            Failure::Untried(match error.kind() {
                std::io::ErrorKind::AlreadyExists => {
                    format!("{to} is there already; name another, or write over it with --force")
                }
                _ => format!("{to} can't be written: {error}"),
            })
        })?;
        Ok(Target::File(to.to_owned(), Box::new(file)))
    }
}

impl Target {
    async fn take(
        &mut self,
        spans: &[Span],
        resource: &Resource,
        sum: &mut Sum,
        to: &mut Screen<'_>,
    ) -> Result<(), Failure> {
        if spans.is_empty() {
            return Ok(());
        }
        match self {
            Target::Collector(it) => match send(it, spans, resource).await {
                Ok(rejected) => sum.rejected = sum.rejected.saturating_add(rejected),
                Err(error @ Unsent::Refused(_)) => {
                    let text = format!("{error} to spans of this log; see what the collector logs");
                    return Err(Failure::Wrong(text));
                }
                Err(error) => {
                    let sent = sum.spans;
                    return Err(Failure::Wrong(format!(
                        "{error}; {sent} spans were sent before. Export them again once the \
                         collector takes them: a span has the same id each time"
                    )));
                }
            },
            // Protobuf reads several requests that follow one another as one request.
            Target::File(path, file) => {
                let wrong = |it| Failure::Untried(format!("{path} can't be written: {it}"));
                file.write_all(&encode(spans, resource)).map_err(wrong)?;
            }
            Target::Output => to.out.write_all(&encode(spans, resource))?,
        }
        sum.spans += u64::try_from(spans.len()).unwrap_or(u64::MAX);
        Ok(())
    }

    fn end(self, sum: &Sum, to: &mut Screen<'_>) -> Result<Ending, Failure> {
        let place = match self {
            Target::Collector(it) => it.url(),
            Target::File(path, file) => {
                let kept = file.commit();
                kept.map_err(|it| Failure::Untried(format!("{path} can't be written: {it}")))?;
                path
            }
            Target::Output => return Ok(Ending::Well),
        };
        let Sum { spans, rejected } = sum;
        if to.json {
            to.object(&json!({ "spans": spans, "rejected": rejected, "to": place }))?;
        } else {
            let word = if *spans == 1 { "span" } else { "spans" };
            let but = match rejected {
                0 => String::new(),
                some => format!("; the collector didn't take {some} of them"),
            };
            to.line(&format!("{spans} {word} to {place}{but}"))?;
        }
        Ok(if *rejected == 0 { Ending::Well } else { Ending::Wrong })
    }
}

async fn page(log: &dyn Log, after: u64) -> Result<Vec<Arc<Entry>>, Error> {
    log.tail_within(after, PAGE, PAGE_BYTES).await
}

/// Returns the given position, or the position of the first entry from the given time on.
async fn first_position(log: &dyn Log, from: From) -> Result<u64, Failure> {
    let at_us = match from {
        From::Position(position) => return Ok(position),
        From::When(when) => when.at_us(clock::wall_us()),
    };
    // Entries up to the position `low` are older than the time. Entries after the position `high`
    // aren't.
    let (mut low, mut high) = (0, audit::last_position(log).await?);
    while low < high {
        let middle = low + (high - low) / 2;
        let found = log.tail(middle, 1).await?;
        if found.first().is_some_and(|it| it.at_us < at_us) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    Ok(low + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::conformance::{batch, note, wait};
    use crate::log::{Batch, Draft, MemoryLog};

    #[test]
    fn a_page_of_an_export_has_so_many_bytes_and_no_more() {
        let log = MemoryLog::new();
        let body = |bytes: usize| vec![b'x'; bytes].into();
        let draft = |seq| Draft { body: body(PAGE_BYTES / 2), ..note(&format!("a/{seq}")) };
        wait(log.append(Batch { entries: (1..=5).map(draft).collect(), ..batch(&["a"], &[]) }))
            .unwrap();
        let pages = [0, 2, 4, 5].map(|after| wait(page(&log, after)).unwrap().len());
        assert_eq!(pages, [2, 2, 1, 0]);
    }
}
