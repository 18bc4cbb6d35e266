//! `trigger`: says whether a workflow's trigger would fire, and why; and switches triggers off and
//! on.

use std::path::PathBuf;

use jiff::tz::TimeZone;
use serde_json::{Map, Value, json};

use crate::cli::base::connect::Caller;
use crate::cli::base::screen::{Ending, Failure, Screen};
use crate::cli::workflow::{Object, object, read};
use crate::client::Push;
use crate::clock;
use crate::listeners::condition::{Condition, Reference, Verdict};
use crate::listeners::trigger;
use crate::listeners::trigger::words::TriggerSwitched;
use crate::listeners::words::operator::SwitchTrigger;
use crate::listeners::workflow::definition::{Fire, Times, TriggerDefinition, TriggerKind};
use crate::wire::Timestamp;

/// How many of a schedule's next times are shown.
const TIMES_SHOWN: usize = 3;

/// Works with triggers of workflows.
#[derive(Debug, clap::Args)]
pub(crate) struct TriggerVerb {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    Test(Test),
    Disable(Disable),
    Enable(Enable),
}

/// Tells whether a workflow's trigger would fire, and why.
///
/// Nothing runs, and no pump is needed. The fields that an agent declares, and their defaults,
/// aren't known here, so --before gives the values before the change. For a schedule, the next
/// times are shown.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  pumphouse trigger test workflows/finalization.yml --metadata '{\"status\": \"CODING\"}'
  pumphouse trigger test finalization.yml --metadata '{\"status\": \"CODING\"}' --before \
                        '{\"status\": \"IDLE\"}'
  pumphouse trigger test archive.yml --value '{\"total\": 120}'     # of a payload or an event
  pumphouse trigger test nightly.yml                               # the next times

Exits with 0 where it would fire, 1 where it wouldn't, 2 where the file is wrong.")]
struct Test {
    /// The file of the workflow.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The agent's metadata, a JSON object.
    #[arg(long, value_name = "JSON", value_parser = object)]
    metadata: Option<Object>,
    /// The metadata before the change, a JSON object.
    #[arg(long, value_name = "JSON", value_parser = object)]
    before: Option<Object>,
    /// The fields of the payload, event, thread or fault, a JSON object.
    #[arg(long, value_name = "JSON", value_parser = object, conflicts_with = "metadata")]
    value: Option<Object>,
}

/// Switches a trigger of a running pump off.
///
/// A trigger that is off decides as before, and its decisions are in the log, but it begins no run.
/// It stays off until it is switched on again, even if the pump is restarted. Only operators may
/// switch a trigger.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  pumphouse trigger disable code_finalization
  pumphouse trigger enable code_finalization

Exits with 1 where there is no such trigger, or you may not switch it; 2 where no pump can be
reached.")]
struct Disable {
    /// The trigger, which has the name of its workflow.
    name: String,
    #[command(flatten)]
    caller: Caller,
}

/// Switches a trigger of a running pump on again.
#[derive(Debug, clap::Args)]
struct Enable {
    /// The trigger, which has the name of its workflow.
    name: String,
    #[command(flatten)]
    caller: Caller,
}

impl TriggerVerb {
    pub(crate) async fn run(self, to: &mut Screen<'_>) -> Result<Ending, Failure> {
        match self.verb {
            Verb::Test(test) => test.run(to),
            Verb::Disable(Disable { name, caller }) => switch(name, false, &caller, to).await,
            Verb::Enable(Enable { name, caller }) => switch(name, true, &caller, to).await,
        }
    }
}

/// Switches a trigger on or off, and shows the pump's answer.
async fn switch(
    name: String,
    on: bool,
    caller: &Caller,
    to: &mut Screen<'_>,
) -> Result<Ending, Failure> {
    let push = Push::of(&SwitchTrigger { name, on });
    let push = push.map_err(|it| Failure::Untried(it.to_string()))?.to(trigger::NAME);
    let line = |it: TriggerSwitched| {
        format!("{} is switched {} by {}", it.name, if it.on { "on" } else { "off" }, it.by)
    };
    caller.ask(&push, line, to).await
}

/// What a trigger would do for given values.
struct Outlook {
    condition: Option<Condition>,
    verdict: Verdict,
    why_not: Option<&'static str>,
}

impl Test {
    fn run(self, to: &mut Screen<'_>) -> Result<Ending, Failure> {
        let workflow = read(&self.file)?;
        let name = workflow.name();
        let Some(trigger) = &workflow.definition().trigger else {
            return Err(Failure::Untried(format!("{name} has no trigger")));
        };
        let untried = |it: String| Failure::Untried(it);
        if let Some(times) = trigger.times().map_err(|it| untried(it.to_string()))? {
            return show_times(name, &times, to);
        }
        let outlook = self.outlook(trigger)?;
        let Outlook { condition, verdict, why_not } = outlook;
        let condition = condition.map(|it| it.to_string());
        if to.json {
            let saw: Map<String, Value> = verdict.saw.into_iter().collect();
            to.object(&json!({
                "rule": name,
                "fires": why_not.is_none(),
                "holds": verdict.holds,
                "why": why_not,
                "condition": condition,
                "saw": saw,
            }))?;
        } else {
            to.line(&match why_not {
                None => format!("{name} would begin: its condition holds"),
                Some(why) => format!("{name} wouldn't begin: {why}"),
            })?;
            if let Some(condition) = condition {
                to.line(&format!("  {condition}"))?;
            }
            for (reference, value) in &verdict.saw {
                to.line(&format!("  {reference} is {value}"))?;
            }
            if let Some(time) = trigger.lasts.filter(|_| why_not.is_none()) {
                to.line(&format!("  once this has held for {} s", time.seconds()))?;
            }
        }
        Ok(if why_not.is_none() { Ending::Well } else { Ending::Wrong })
    }

    /// Evaluates the trigger for the given values.
    fn outlook(&self, trigger: &TriggerDefinition) -> Result<Outlook, Failure> {
        let condition = trigger.condition();
        let condition = condition.map_err(|it| Failure::Untried(it.to_string()))?;
        let kind = trigger.kind();
        let subject = kind.subject();
        if kind != TriggerKind::MetadataMatch {
            if self.value.is_none() && condition.is_some() {
                let text = format!("give what the trigger sees of the {subject}: --value JSON");
                return Err(Failure::Untried(text));
            }
            let value = self.value.as_ref().map(|it| it.0.clone()).unwrap_or_default();
            let verdict = verdict(condition.as_ref(), subject, &value);
            let why_not = (!verdict.holds).then_some("its condition doesn't hold");
            return Ok(Outlook { condition, verdict, why_not });
        }
        let Some(metadata) = &self.metadata else {
            return Err(Failure::Untried("give the agent's metadata: --metadata JSON".to_owned()));
        };
        let mut set = self.before.as_ref().map(|it| it.0.clone()).unwrap_or_default();
        let before = verdict(condition.as_ref(), subject, &set);
        set.extend(metadata.0.clone());
        let after = verdict(condition.as_ref(), subject, &set);
        let why_not = match trigger.fire() {
            _ if !after.holds => Some("its condition doesn't hold"),
            Fire::Edge => before.holds.then_some("its condition held before"),
            Fire::OnChange => (before.saw == after.saw).then_some("nothing in it has changed"),
            Fire::Level => None,
        };
        Ok(Outlook { condition, verdict: after, why_not })
    }
}

/// Shows the next times of a schedule.
fn show_times(name: &str, times: &Times, to: &mut Screen<'_>) -> Result<Ending, Failure> {
    let next = std::iter::successors(times.after(clock::wall_us()), |it| times.after(*it));
    let next: Vec<String> = next.take(TIMES_SHOWN).filter_map(|it| shown(it, times)).collect();
    if to.json {
        to.object(&json!({"rule": name, "fires": !next.is_empty(), "next": next}))?;
    } else if next.is_empty() {
        to.line(&format!("{name} wouldn't begin: its time has passed"))?;
    } else {
        to.line(&format!("{name} would begin at"))?;
        next.iter().try_for_each(|it| to.line(&format!("  {it}")))?;
    }
    Ok(if next.is_empty() { Ending::Wrong } else { Ending::Well })
}

/// Formats a time in the zone of a schedule.
fn shown(us: u64, times: &Times) -> Option<String> {
    let time = Timestamp::from_microsecond(i64::try_from(us).ok()?).ok()?;
    let zone = match times {
        Times::Cron { zone, .. } => zone.clone(),
        Times::At(_) | Times::Every(_) => TimeZone::UTC,
    };
    Some(time.to_zoned(zone).to_string())
}

/// Evaluates a condition on some values. An absent condition holds.
fn verdict(condition: Option<&Condition>, subject: &str, values: &Map<String, Value>) -> Verdict {
    let values = json!({ subject: values });
    match condition {
        Some(it) => it.evaluate(&|reference: &Reference| reference.within(&values).cloned()),
        None => Verdict::without_condition(subject, &values[subject]),
    }
}
