//! `trigger test`: whether a workflow's trigger would fire, and why.

use std::path::PathBuf;

use serde_json::{Map, Value, json};

use crate::cli::screen::{Ending, Failure, Screen};
use crate::cli::workflow::{Object, object, read};
use crate::listeners::condition::{Condition, Reference, Verdict};
use crate::listeners::workflow::definition::Fire;

/// Works with triggers of workflows.
#[derive(Debug, clap::Args)]
pub(crate) struct TriggerVerb {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    Test(Test),
}

/// Tells whether a workflow's trigger would fire for some metadata, and why.
///
/// Nothing runs, and no pump is needed. The fields that an agent declares, and their defaults,
/// aren't known here: give what holds before the change by --before.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  pumphouse trigger test workflows/finalization.yml --metadata '{\"status\": \"CODING\"}'
  pumphouse trigger test finalization.yml --metadata '{\"status\": \"CODING\"}' --before \
                        '{\"status\": \"IDLE\"}'

Exits with 0 where it would fire, 1 where it wouldn't, 2 where the file is wrong.")]
struct Test {
    /// The file of the workflow.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The agent's metadata, a JSON object.
    #[arg(long, value_name = "JSON", value_parser = object)]
    metadata: Object,
    /// The metadata before the change, a JSON object.
    #[arg(long, value_name = "JSON", default_value = "{}", value_parser = object)]
    before: Object,
}

impl TriggerVerb {
    pub(crate) fn run(self, to: &mut Screen<'_>) -> Result<Ending, Failure> {
        let Verb::Test(test) = self.verb;
        test.run(to)
    }
}

impl Test {
    fn run(self, to: &mut Screen<'_>) -> Result<Ending, Failure> {
        let workflow = read(&self.file)?;
        let name = workflow.name();
        let Some(trigger) = &workflow.definition().trigger else {
            return Err(Failure::Untried(format!("{name} has no trigger")));
        };
        let condition = trigger.condition();
        let condition = condition.map_err(|it| Failure::Untried(it.to_string()))?;
        let before = verdict(&condition, &self.before.0);
        let mut set = self.before.0.clone();
        set.extend(self.metadata.0);
        let after = verdict(&condition, &set);
        let why_not = match trigger.fire {
            _ if !after.holds => Some("its condition doesn't hold"),
            Fire::Edge => before.holds.then_some("its condition held before"),
            Fire::OnChange => (before.saw == after.saw).then_some("nothing in it has changed"),
            Fire::Level => None,
        };
        if to.json {
            let saw: Map<String, Value> = after.saw.into_iter().collect();
            to.object(&json!({
                "rule": name,
                "fires": why_not.is_none(),
                "holds": after.holds,
                "why": why_not,
                "condition": condition.to_string(),
                "saw": saw,
            }))?;
        } else {
            to.line(&match why_not {
                None => format!("{name} would begin: its condition holds"),
                Some(why) => format!("{name} wouldn't begin: {why}"),
            })?;
            to.line(&format!("  {condition}"))?;
            for (reference, value) in &after.saw {
                to.line(&format!("  {reference} is {value}"))?;
            }
        }
        Ok(if why_not.is_none() { Ending::Well } else { Ending::Wrong })
    }
}

/// Whether a condition holds of some metadata.
fn verdict(condition: &Condition, metadata: &Map<String, Value>) -> Verdict {
    let values = json!({ "metadata": metadata });
    condition.evaluate(&|reference: &Reference| reference.within(&values).cloned())
}
