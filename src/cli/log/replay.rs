//! `replay`: checks whether pure listeners and agents emit the same payloads again.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::audit::{self, Paint, Style};
use crate::cli::base::data;
use crate::cli::base::screen::{Ending, Failure, Screen};
use crate::engine::{Builder, Difference, Emitted, Replayed, Tokio};
use crate::id::ThreadId;
use crate::log::Log;

/// Runs pure listeners and agents again on the messages of a thread and of all below it, and
/// compares what they emit with the log.
///
/// Payloads are compared byte by byte, up to the first difference. `replay` writes nothing. Agents
/// get the replies that the log has, and no model is asked. What other listeners emitted is taken
/// from the log. The listeners are those of this program and of the manifest in the current folder.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  pumphouse replay sess-k3v9x2ma
  pumphouse replay sess-k3v9x2ma --data backup
  pumphouse replay sess-k3v9x2ma --json | jq .difference

Exits with 1 where there is a difference, or no such thread.")]
pub(crate) struct Replay {
    /// The thread.
    #[arg(value_name = "THREAD")]
    thread: String,
}

impl Replay {
    pub(crate) async fn run(
        self,
        builder: Builder,
        data: &Path,
        to: &mut Screen<'_>,
    ) -> Result<Ending, Failure> {
        let plan = builder.build().map_err(|it| Failure::Untried(it.to_string()))?;
        let log: Arc<dyn Log> = Arc::new(data::open(data)?);
        let thread = ThreadId::new(&self.thread);
        if log.thread(&thread).await?.is_none() {
            return Err(data::unknown(&*log, &thread).await);
        }
        let replayed = plan.replay(&log, &thread, &Tokio::current()).await?;
        match to.json {
            true => to.object(&object(&replayed))?,
            false => to.text(&told(&replayed, to.style))?,
        }
        Ok(if replayed.difference.is_some() { Ending::Wrong } else { Ending::Well })
    }
}

/// Formats the result for people.
fn told(it: &Replayed, style: Style) -> String {
    let mut out = String::new();
    let each = |all: &BTreeMap<Arc<str>, u64>| {
        let each = all.iter().map(|(name, number)| format!("{name} {number}"));
        each.collect::<Vec<_>>().join(", ")
    };
    if let Some(it) = &it.difference {
        out.push_str(&different(it, style));
    }
    let compared = audit::count(it.compared.values().sum(), "message", "messages");
    let so_far = if it.difference.is_some() { " before it" } else { "" };
    let same = style.paint(Paint::Well, "the same");
    match it.compared.is_empty() {
        true => out.push_str(&format!("no message of a pure listener{so_far}\n")),
        false => out.push_str(&format!("{same}: {compared}{so_far} ({})\n", each(&it.compared))),
    }
    if !it.taken.is_empty() {
        out.push_str(&format!("taken from the log: {}\n", each(&it.taken)));
    }
    for it in &it.skipped {
        let id = it.message.to_string();
        out.push_str(&format!("not compared: {}, {}: {}\n", audit::line(&id), it.listener, it.why));
    }
    out
}

fn different(it: &Difference, style: Style) -> String {
    let id = it.message.to_string();
    let head = format!("{}: {} comes to something else", audit::line(&id), it.listener);
    let entry = it.entry.as_ref().map(|it| format!(", {}", audit::line(&it.to_string())));
    let said = |it: &Option<Emitted>| match it {
        Some(it) => {
            let to = it.to.as_deref().unwrap_or("whoever takes it");
            format!(" → {}\n{}", audit::line(to), audit::pretty(&it.body, style))
        }
        None => " nothing more\n".to_owned(),
    };
    format!(
        "{}\n\nrecorded{}{}\nnow{}\n",
        style.paint(Paint::Wrong, &head),
        entry.unwrap_or_default(),
        said(&it.recorded),
        said(&it.now),
    )
}

/// Returns the result as an object.
fn object(it: &Replayed) -> Value {
    let each = |all: &BTreeMap<Arc<str>, u64>| -> Value {
        all.iter().map(|(name, number)| (name.to_string(), json!(number))).collect()
    };
    let said = |it: &Emitted| {
        json!({
            "to": it.to.as_deref(),
            "name": it.name.to_string(),
            "payload": String::from_utf8_lossy(&it.body),
        })
    };
    let skipped = it.skipped.iter().map(
        |it| json!({ "entry": it.message.to_string(), "listener": &*it.listener, "why": it.why }),
    );
    let difference = it.difference.as_ref().map(|it| {
        json!({
            "message": it.message.to_string(),
            "listener": &*it.listener,
            "entry": it.entry.as_ref().map(ToString::to_string),
            "recorded": it.recorded.as_ref().map(said),
            "now": it.now.as_ref().map(said),
        })
    });
    json!({
        "same": it.difference.is_none(),
        "compared": each(&it.compared),
        "taken": each(&it.taken),
        "skipped": skipped.collect::<Vec<_>>(),
        "difference": difference,
    })
}
