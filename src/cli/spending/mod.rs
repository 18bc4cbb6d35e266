//! `budget`: shows what a tree of threads has spent and may spend, and the model usage of agents.
//! With `--raise`, raises a limit.

pub(crate) mod money;
pub(crate) mod sum;
pub(crate) mod usage;
mod table;

use std::ops::Range;
use std::path::Path;
use std::str::FromStr;

use serde_json::{Value, json};

use crate::audit::When;
use crate::cli::base::connect::Caller;
use crate::cli::base::data;
use crate::cli::base::screen::{Ending, Failure, Screen};
use crate::client::Push;
use crate::clock;
use crate::engine::ledger;
use crate::engine::{Builder, Spending};
use crate::id::ThreadId;
use crate::limits::{Allowance, UNLIMITED};
use crate::log::{Log, ThreadRecord};
use crate::name::CORE_NAME;
use crate::schema::nearest;
use crate::wire::budget::{BudgetKey, BudgetRaised, RaiseBudget};
use money::UNKNOWN;
use sum::DAY_US;
use table::Group;

/// Shows what the tree of a thread has spent and may spend, and the model usage of agents in the
/// thread and below it.
///
/// --day and --by show only the model usage: in all threads, or in THREAD and below it. The limits
/// are from the manifest in the current folder, and from the log if they were raised. --raise asks
/// a running pump to raise a limit, which only operators may do.
#[derive(Debug, clap::Args)]
#[command(mut_arg("connect", |it| it.requires("raise")))]
#[command(after_help = "\
Examples:
  pumphouse budget sess-k3v9x2ma
  pumphouse budget sess-k3v9x2ma --json | jq 'select(.key == \"tokens\").used'
  pumphouse budget --day 2026-11-22                   of all threads, from midnight on in UTC
  pumphouse budget --by model                         of all threads, a row for each model
  pumphouse budget sess-k3v9x2ma --by day --json
  pumphouse budget sess-k3v9x2ma --raise tokens=+50000 --connect unix:/run/pump.sock
  PUMPHOUSE_TOKEN=t0psecret pumphouse budget sess-k3v9x2ma --raise messages=unlimited

Keys: messages, turns, depth, children, tokens, seconds, cost-micros.
Exits with 1 where there is no such thread, or the pump refused.")]
pub(crate) struct Budget {
    /// A thread of the tree.
    #[arg(value_name = "THREAD", required_unless_present_any = ["day", "by"])]
    thread: Option<String>,
    /// Shows only the model usage of this day in UTC: in all threads, or in THREAD and below it.
    #[arg(long, value_name = "DATE", conflicts_with = "raise")]
    day: Option<Day>,
    /// Shows only one table: tokens, turns and cost by model, by agent or by day.
    #[arg(long, value_name = "WHAT", conflicts_with = "raise")]
    by: Option<Group>,
    /// Raises a limit: KEY=N to N, KEY=+N by N. KEY=unlimited removes it.
    #[arg(long, value_name = "KEY=N", requires = "thread")]
    raise: Option<Raise>,
    #[command(flatten)]
    caller: Caller,
}

/// The argument `KEY=N` of --raise.
#[derive(Clone, Debug)]
struct Raise(RaiseBudget);

impl FromStr for Raise {
    type Err = String;

    fn from_str(text: &str) -> Result<Raise, String> {
        let (word, amount) = text.split_once('=').ok_or("say KEY=N, such as tokens=+50000")?;
        let words = BudgetKey::ALL.map(BudgetKey::as_str);
        let key =
            BudgetKey::ALL.into_iter().find(|it| it.as_str() == word).ok_or_else(
                || match nearest(word, words.into_iter()) {
                    Some(near) => format!("there is no budget {word}; did you mean {near}?"),
                    None => format!("there is no budget {word}; there are {}", words.join(", ")),
                },
            )?;
        let allowance = |text: &str| text.parse::<Allowance>().map_err(|it| it.to_string());
        let (by, to) = match amount.strip_prefix('+') {
            Some(by) => (Some(allowance(by)?.0), None),
            None => (None, Some(allowance(amount)?.to_string())),
        };
        Ok(Raise(RaiseBudget { key, by, to }))
    }
}

impl Budget {
    pub(crate) async fn run(
        self,
        builder: Builder,
        data: &Path,
        to: &mut Screen<'_>,
    ) -> Result<Ending, Failure> {
        let thread = self.thread.as_deref().map(ThreadId::new);
        if let Some(group) = self.by {
            let time = self.day.map_or(0..u64::MAX, |it| it.0);
            let used = usage::within(data, thread.as_ref(), time).await?.by_day();
            table::show(&used, group, to)?;
            return Ok(Ending::Well);
        }
        match (&self.raise, thread, &self.day) {
            (Some(raise), Some(thread), _) => self.ask_for(&raise.0, &thread, to).await,
            (None, Some(thread), None) => show(builder, data, &thread, to).await,
            (_, thread, Some(day)) => usage::of_day(data, thread.as_ref(), &day.0, to).await,
            (_, None, None) => Err(Failure::Untried("name a thread, or say --day".to_owned())),
        }
    }

    /// Asks a running pump to raise a limit.
    async fn ask_for(
        &self,
        raise: &RaiseBudget,
        thread: &ThreadId,
        to: &mut Screen<'_>,
    ) -> Result<Ending, Failure> {
        let push = Push::of(raise).map_err(|it| Failure::Untried(it.to_string()))?;
        let said = |it: BudgetRaised| format!("{}: the limit is {}", it.key, it.limit);
        self.caller.ask(&push.in_thread(thread), said, to).await
    }
}

/// Shows the budget of a thread's tree, and the model usage of agents in the thread and below it.
async fn show(
    builder: Builder,
    data: &Path,
    thread: &ThreadId,
    to: &mut Screen<'_>,
) -> Result<Ending, Failure> {
    let plan = builder.build().map_err(|it| Failure::Untried(it.to_string()))?;
    let log = data::open(data)?;
    let there = (log.thread(thread).await?, log.thread(&thread.tree()).await?);
    let (Some(_), Some(session)) = there else {
        return Err(data::unknown(&log, thread).await);
    };
    let threads = log.tree(&session.id).await?;
    let messages = log.count(&session.id, CORE_NAME).await?;
    let ledger = ledger::charged(&log, &threads, plan.limits(), messages).await?;
    let opening = log.opening(&session).await?;
    let opened_us = opening.as_ref().map_or(u64::MAX, |it| it.at_us);
    let seconds = clock::wall_us().saturating_sub(opened_us) / 1_000_000;
    let live = threads.iter().filter(|it| it.parent.is_some() && it.state.is_live());
    let whole = usage::total(&usage::of_thread(&log, &session.id, 0..u64::MAX).await?);
    for key in BudgetKey::ALL {
        let used = match key {
            BudgetKey::Turns => continue,
            BudgetKey::Depth => depth(&threads),
            BudgetKey::Children => live.clone().count() as u64,
            BudgetKey::Seconds => seconds,
            BudgetKey::Messages | BudgetKey::Tokens | BudgetKey::CostMicros => ledger.used(key),
        };
        let it = Spending::new(key, used, ledger.limit(key), None);
        match key {
            BudgetKey::CostMicros if whole.unpriced > 0 => cost(&it, whole.unpriced, to)?,
            _ => line(&it, to)?,
        }
    }
    for (thread, listener, used) in ledger.turns() {
        let (key, of) = (BudgetKey::Turns, Some((thread.clone(), listener.into())));
        let it = Spending::new(key, used, ledger.limit(key), of);
        let max_turns = plan.capabilities().listener(listener).and_then(|it| it.turns_max);
        turns(&it, max_turns.filter(|it| *it < UNLIMITED), to)?;
    }
    usage::show(&usage::of_thread(&log, thread, 0..u64::MAX).await?, to)?;
    Ok(Ending::Well)
}

/// Shows the cost of a tree in which some turns have no price.
fn cost(it: &Spending, unpriced: u64, to: &mut Screen<'_>) -> Result<(), Failure> {
    if to.json {
        let mut object = object(it);
        object["unpriced_turns"] = json!(unpriced);
        return Ok(to.object(&object)?);
    }
    let told = match it.used {
        0 => told(it).replacen(" 0 of ", &format!(" {UNKNOWN} of "), 1),
        _ => told(it),
    };
    let turns = if unpriced == 1 { "1 turn has" } else { &format!("{unpriced} turns have") };
    Ok(to.line(&format!("{told}   {turns} no price"))?)
}

/// Shows the turns of a listener, and the listener's own `max_turns` if it has one.
fn turns(it: &Spending, max_turns: Option<u64>, to: &mut Screen<'_>) -> Result<(), Failure> {
    match max_turns {
        None => line(it, to),
        Some(max) if to.json => {
            let mut object = object(it);
            object["max_turns"] = json!(max);
            Ok(to.object(&object)?)
        }
        Some(max) => Ok(to.line(&format!("{}   max_turns {max}", told(it)))?),
    }
}

/// A day in UTC: the range of its microseconds since the epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Day(Range<u64>);

impl FromStr for Day {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Day, &'static str> {
        let error = "a day is written as 2026-11-22";
        let at = |text: &str| match text.parse() {
            Ok(When::At(at_us)) if text.len() == DATE.len() => Ok(at_us),
            _ => Err(error),
        };
        let from = at(text)?;
        Ok(Day(from..from.saturating_add(DAY_US)))
    }
}

/// An example of a day. Every day that is written in this form has the same length.
const DATE: &str = "2026-11-22";

/// Returns how many levels of threads there are below the session.
fn depth(threads: &[ThreadRecord]) -> u64 {
    let mut depths = std::collections::HashMap::new();
    for it in threads {
        let above = it.parent.as_ref().and_then(|it| depths.get(it)).copied();
        depths.insert(&it.id, above.map_or(0, |it: u64| it + 1));
    }
    depths.into_values().max().unwrap_or(0)
}

fn line(it: &Spending, to: &mut Screen<'_>) -> Result<(), Failure> {
    match to.json {
        true => Ok(to.object(&object(it))?),
        false => Ok(to.line(&told(it))?),
    }
}

/// Formats the spending of one budget as a line.
pub(crate) fn told(it: &Spending) -> String {
    let Spending { used, of, .. } = it;
    let key = it.key.as_str();
    let limit = Allowance(it.limit);
    let of = of.as_ref().map(|(thread, listener)| format!("   {listener} in {thread}"));
    format!("{key:<12} {used:>14} of {limit}{}", of.unwrap_or_default())
}

/// Returns the spending of one budget as an object. The object's `limit` is null if the budget has
/// no limit.
pub(crate) fn object(it: &Spending) -> Value {
    let limit = (it.limit != UNLIMITED).then_some(it.limit);
    let mut object = json!({ "key": it.key.as_str(), "used": it.used, "limit": limit });
    if let Some((thread, listener)) = &it.of {
        object["thread"] = json!(thread.as_str());
        object["listener"] = json!(&**listener);
    }
    object
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_is_a_date_and_nothing_else() {
        let Day(day) = "1970-01-02".parse().unwrap();
        assert_eq!(day, DAY_US..2 * DAY_US);
        for text in ["1d", "2026-11-22T10:00", "today", "2026-13-01", ""] {
            assert!(text.parse::<Day>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_raise_says_what_and_how_far() {
        let read = |text: &str| text.parse::<Raise>().map(|it| (it.0.key, it.0.by, it.0.to));
        assert_eq!(read("tokens=+50"), Ok((BudgetKey::Tokens, Some(50), None)));
        assert_eq!(read("cost-micros=7"), Ok((BudgetKey::CostMicros, None, Some("7".into()))));
        let none = Ok((BudgetKey::Messages, None, Some("unlimited".into())));
        assert_eq!(read("messages=unlimited"), none);
        let wrong = |text: &str| read(text).unwrap_err();
        assert_eq!(wrong("tokens"), "say KEY=N, such as tokens=+50000");
        assert_eq!(wrong("token=1"), "there is no budget token; did you mean tokens?");
        assert_eq!(wrong("tokens=many"), "it takes a whole number such as 200, or unlimited");
    }
}
