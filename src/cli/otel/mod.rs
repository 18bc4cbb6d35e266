//! `otel`: makes spans for OpenTelemetry from the log, and lists their names.

#[cfg(feature = "otel")]
mod batch;
#[cfg(feature = "otel")]
mod export;
#[cfg(feature = "otel")]
mod follower;
mod running;

use std::path::Path;
use std::str::FromStr;

use crate::audit::When;
use crate::cli::base::screen::{Ending, Failure, Screen};
pub(crate) use running::{FollowerSettings, Following};

/// Makes spans for OpenTelemetry from the log.
#[derive(Debug, clap::Args)]
pub(crate) struct Otel {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    Export(Export),
    Names(Names),
}

/// Makes the spans of a log and sends them to a collector, or writes them into a file.
///
/// A span's ids, times and attributes come from the log, so each export of a log has the same
/// spans. Work that isn't over has no span yet. The file has one ExportTraceServiceRequest, as
/// protobuf.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  pumphouse otel export                            # to the endpoint of organism.yaml
  pumphouse otel export --from 2d --to http://127.0.0.1:4318
  pumphouse otel export --from 1500 --to spans.pb
  pumphouse otel export --thread sess-k3v9x2ma --content --to - | protoc --decode_raw

A file that exists stays as it is; `--force` replaces it.
Exit codes: 0 exported; 1 there is no such thread, or the collector didn't take all spans; 2 the log
can't be read or the file can't be written, or this program is built without the feature otel.")]
pub(crate) struct Export {
    /// Where to begin: a position of the log, a time such as 2026-11-22 or 2d, or the word begin. A
    /// span belongs to the position of its last entry.
    #[arg(long, value_name = "POSITION|DATE|begin", default_value = "begin")]
    from: From,
    /// Where spans go: the URL of a collector, such as http://127.0.0.1:4318, a file, or - for the
    /// standard output. Without --to, they go to the endpoint under otel in organism.yaml here.
    #[arg(long, value_name = "FILE|URL")]
    to: Option<String>,
    /// Exports only this thread and those below it.
    #[arg(long, value_name = "THREAD")]
    thread: Option<String>,
    /// Exports content as well: messages, arguments and results of actions, and texts of errors, up
    /// to 8 KiB of each.
    #[arg(long)]
    content: bool,
    /// Replaces a file that exists.
    #[arg(long)]
    force: bool,
}

/// Lists every name that a span or a metric may have, what it stands for, and the page that
/// defines it.
#[derive(Debug, clap::Args)]
pub(crate) struct Names {}

/// Where an export begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum From {
    Position(u64),
    When(When),
}

impl FromStr for From {
    type Err = String;

    fn from_str(text: &str) -> Result<From, String> {
        if text == "begin" {
            return Ok(From::Position(1));
        }
        if let Ok(position) = text.parse() {
            return Ok(From::Position(position));
        }
        text.parse().map(From::When).map_err(|it: crate::audit::NoWhen| {
            format!("it is a position of the log, such as 1500, or begin, or a time; {it}")
        })
    }
}

#[cfg(feature = "otel")]
impl Otel {
    pub(crate) async fn run(self, data: &Path, to: &mut Screen<'_>) -> Result<Ending, Failure> {
        match self.verb {
            Verb::Export(it) => it.run(data, to).await,
            Verb::Names(_) => names(to),
        }
    }
}

#[cfg(not(feature = "otel"))]
impl Otel {
    #[expect(clippy::unused_async, reason = "as where it does something")]
    pub(crate) async fn run(self, _: &Path, _: &mut Screen<'_>) -> Result<Ending, Failure> {
        Err(Failure::Untried(
            "this program is built without the feature `otel`; build it with `cargo build \
             --release --features otel`"
                .to_owned(),
        ))
    }
}

#[cfg(feature = "otel")]
fn names(to: &mut Screen<'_>) -> Result<Ending, Failure> {
    use crate::otel::names;
    let metrics = [
        names::INPUT_TOKENS_OF_REQUESTS,
        names::OUTPUT_TOKENS_OF_REQUESTS,
        names::INFERENCE_DURATION,
    ];
    for it in names::ALL.iter().chain(&metrics) {
        match to.json {
            true => to.object(&serde_json::json!({
                "name": it.name, "text": it.text, "page": it.page, "schema": names::SCHEMA_URL,
            }))?,
            false => to.line(&format!("{:<32} {}\n{:<32} {}", it.name, it.text, "", it.page))?,
        }
    }
    Ok(Ending::Well)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_export_begins_at_a_position_or_a_time() {
        for (text, from) in [
            ("begin", From::Position(1)),
            ("1500", From::Position(1_500)),
            ("2h", From::When(When::Ago(7_200_000_000))),
            ("1970-01-01", From::When(When::At(0))),
        ] {
            assert_eq!(text.parse(), Ok(from), "{text}");
        }
        assert!("soon".parse::<From>().unwrap_err().contains("1500, or begin, or a time"));
    }
}
