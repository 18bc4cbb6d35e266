//! `why`: shows what led to a message.

use std::path::Path;

use serde_json::json;

use crate::audit;
use crate::cli::base::data;
use crate::cli::base::screen::{Ending, Failure, Screen};
use crate::id::EntryId;

/// Tells what led to a message: the messages whose handling caused it, the oldest first.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  pumphouse why sess-k3v9x2ma/7
  pumphouse why sess-k3v9x2ma/7 --json | jq -r .entry")]
pub(crate) struct Why {
    /// The message, as THREAD/SEQ.
    #[arg(value_name = "THREAD/SEQ")]
    entry: EntryId,
}

impl Why {
    pub(crate) async fn run(self, data: &Path, to: &mut Screen<'_>) -> Result<Ending, Failure> {
        if !to.json {
            return tell(&self.entry, data, to).await;
        }
        let log = data::open(data)?;
        data::entry(&log, &self.entry).await?;
        let steps = audit::why(&log, &self.entry).await?.unwrap_or_default();
        for (number, step) in (1..).zip(&steps) {
            let mut object = audit::json(&step.entry);
            object["step"] = json!(number);
            object["verdict"] = step.verdict.as_deref().map_or(json!(null), audit::json);
            let joined = step
                .joined
                .iter()
                .map(|it| json!({ "thread": it.thread.as_str(), "result": it.result.to_string() }));
            object["rests_on"] = joined.collect();
            let results = step.results.iter().map(|it| json!(it.id.to_string()));
            object["results"] = results.collect();
            to.object(&object)?;
        }
        Ok(Ending::Well)
    }
}

/// Shows what led to a message, for people.
pub(crate) async fn tell(
    entry: &EntryId,
    data: &Path,
    to: &mut Screen<'_>,
) -> Result<Ending, Failure> {
    let log = data::open(data)?;
    data::entry(&log, entry).await?;
    let steps = audit::why(&log, entry).await?.unwrap_or_default();
    to.text(&audit::told(&steps, to.style))?;
    Ok(Ending::Well)
}
