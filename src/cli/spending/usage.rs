//! Shows the model usage of agents, as a table or as objects.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use serde_json::{Value, json};

use crate::audit;
use crate::cli::base::data;
use crate::cli::base::screen::{Ending, Failure, Screen};
use crate::cli::spending::money::{UNKNOWN, money};
use crate::cli::spending::sum::{ModelUsage, UsageKey, UsageSum, by};
use crate::id::ThreadId;
use crate::listener::Entry;
use crate::log::{Error, Log, ThreadPages};

/// Maps a listener and a model to the listener's usage of the model.
type UsageByKey = BTreeMap<UsageKey, ModelUsage>;

/// Returns the usage of a thread and all threads below it within a range of times, in microseconds
/// since the epoch.
pub(crate) async fn of_thread(
    log: &dyn Log,
    thread: &ThreadId,
    within: Range<u64>,
) -> Result<UsageByKey, Error> {
    let mut usages = UsageSum::within(within);
    take(log, thread, &mut usages).await?;
    Ok(usages.all())
}

/// Formats the usage as a line. Returns None if there was no turn.
pub(crate) fn line(used: &UsageByKey) -> Option<String> {
    let all = total(used);
    let cost = all.cost().map_or(UNKNOWN.to_owned(), money);
    let line = format!("{} tokens in, {} out; cost {cost}", all.input, all.output);
    (all.turns > 0).then_some(line)
}

/// Shows the usage of a thread and all threads below it.
pub(crate) async fn tell(
    thread: &ThreadId,
    data: &Path,
    to: &mut Screen<'_>,
) -> Result<(), Failure> {
    let log = data::open(data)?;
    let used = of_thread(&log, thread, 0..u64::MAX).await?;
    if used.is_empty() {
        to.line("nothing was charged")?;
    }
    show(&used, to)
}

/// Shows the usage on a day: in all threads, or in one thread and all threads below it.
pub(crate) async fn of_day(
    data: &Path,
    thread: Option<&ThreadId>,
    day: &Range<u64>,
    to: &mut Screen<'_>,
) -> Result<Ending, Failure> {
    let used = within(data, thread, day.clone()).await?.all();
    if used.is_empty() && !to.json {
        to.line("nothing was charged on that day")?;
    }
    show(&used, to)?;
    Ok(Ending::Well)
}

/// Sums up the usage within a range of times: in all threads, or in one thread and all threads
/// below it.
pub(crate) async fn within(
    data: &Path,
    thread: Option<&ThreadId>,
    time: Range<u64>,
) -> Result<UsageSum, Failure> {
    let log = data::open(data)?;
    let mut usages = UsageSum::within(time);
    if let Some(thread) = thread {
        if log.thread(thread).await?.is_none() {
            return Err(data::unknown(&log, thread).await);
        }
        take(&log, thread, &mut usages).await?;
        return Ok(usages);
    }
    let mut pages = ThreadPages::of(&log);
    while let Some(page) = pages.next().await? {
        for session in page.iter().filter(|it| it.parent.is_none()) {
            take(&log, &session.id, &mut usages).await?;
        }
    }
    Ok(usages)
}

/// Returns the sum of all usage.
pub(crate) fn total(used: &UsageByKey) -> ModelUsage {
    by(used, |_| ()).remove(&()).unwrap_or_default()
}

async fn take(log: &dyn Log, thread: &ThreadId, usages: &mut UsageSum) -> Result<(), Error> {
    let charges = log.charges(thread).await?;
    charges.iter().for_each(|it| usages.take(&Entry::kept(it)));
    Ok(())
}

/// Shows the usage by agent and model. If several agents used one model, the sum of each model
/// follows. If there are several models, the sum of all models follows.
pub(crate) fn show(used: &UsageByKey, to: &mut Screen<'_>) -> Result<(), Failure> {
    if to.json {
        for (user, it) in used {
            to.object(&object(Some(&user.listener), user.model.as_deref(), it))?;
        }
        return Ok(());
    }
    let models = by(used, |it| it.model.clone());
    let named = |it: &Option<String>| it.as_deref().map_or(UNKNOWN.to_owned(), shown);
    let mut rows: Vec<(String, String, ModelUsage)> = Vec::new();
    rows.extend(used.iter().map(|(user, it)| (shown(&user.listener), named(&user.model), *it)));
    if used.len() > models.len() {
        rows.extend(models.iter().map(|(model, it)| ("all".to_owned(), named(model), *it)));
    }
    if models.len() > 1 {
        rows.push(("all".to_owned(), "all".to_owned(), total(used)));
    }
    if rows.is_empty() {
        return Ok(());
    }
    let widest = |of: fn(&(String, String, ModelUsage)) -> &str, least: usize| {
        rows.iter().map(|it| audit::cells(of(it))).max().unwrap_or(0).max(least)
    };
    let (agents, names) = (widest(|it| &it.0, 5), widest(|it| &it.1, 5));
    let padded = |text: &str, width: usize| {
        format!("{text}{}", " ".repeat(width.saturating_sub(audit::cells(text))))
    };
    let head = ["turns", "input", "output", "estimated", "reserved", "tokens", "cost"];
    let numbers = |all: [String; 7]| all.map(|it| format!("{it:>11}")).concat();
    let head = numbers(head.map(str::to_owned));
    to.line(&format!("\n{}  {}{head}", padded("agent", agents), padded("model", names)))?;
    for (agent, model, it) in &rows {
        let cells = numbers([
            it.turns.to_string(),
            it.input.to_string(),
            it.output.to_string(),
            it.estimated.to_string(),
            it.reserved.to_string(),
            it.tokens().to_string(),
            it.cost().map_or(UNKNOWN.to_owned(), money),
        ]);
        to.line(&format!("{}  {}{cells}", padded(agent, agents), padded(model, names)))?;
    }
    Ok(())
}

/// Formats a name on one line.
fn shown(name: &str) -> String {
    audit::line(name).into_owned()
}

fn object(listener: Option<&str>, model: Option<&str>, it: &ModelUsage) -> Value {
    json!({
        "listener": listener,
        "model": model,
        "turns": it.turns,
        "tokens_in": it.input,
        "tokens_out": it.output,
        "estimated": it.estimated,
        "reserved": it.reserved,
        "tokens": it.tokens(),
        "cost_micros": it.cost(),
    })
}
