//! `models`: lists the models, what they cost, and whether their servers answer.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::audit::{self, Paint};
use crate::cli::base::organism::{self, here};
use crate::cli::base::screen::{Ending, Failure, Screen};
use crate::cli::spending::money::UNKNOWN;
use crate::clock;
use crate::engine::Builder;
use crate::model::{Details, Error, Kind, Model, Price, PriceSource, Prompt, Wire};

/// Lists the models of manifests: the wire of each, its server, its window, the price of a million
/// tokens, and the source of that price. No API key is shown.
///
/// --check asks each server for the shortest possible reply, which costs a few tokens. It asks
/// without retries, and waits no longer than the limits of the model allow.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  pumphouse models
  pumphouse models --check
  pumphouse models conf/*.yaml --json | jq 'select(.price == null).name'

Exit codes: 0 done; 1 a server doesn't answer; 2 a manifest can't be read, or has mistakes.")]
pub(crate) struct Models {
    /// The manifests; without any, organism.yaml in the current folder, if there is one.
    #[arg(value_name = "MANIFEST")]
    files: Vec<PathBuf>,
    /// Asks each server, and tells whether it answers.
    #[arg(long)]
    check: bool,
}

impl Models {
    pub(crate) async fn run(
        self,
        builder: Builder,
        to: &mut Screen<'_>,
    ) -> Result<Ending, Failure> {
        let mut files = self.files;
        if files.is_empty() {
            files.extend(here().map(Path::to_owned));
        }
        let (of_files, of_program) = organism::models(&files, builder)?;
        let mut rows: Vec<Row> = Vec::new();
        for (file, models) in files.iter().zip(&of_files) {
            rows.extend(models.iter().map(|(name, it)| Row::new(Some(file), name, it)));
        }
        rows.extend(of_program.iter().map(|(name, it)| Row::new(None, name, it)));
        if files.is_empty() && rows.is_empty() {
            let text = "there is no organism.yaml here: name a manifest";
            return Err(Failure::Untried(text.to_owned()));
        }
        if self.check {
            let answers = join_all(rows.iter().map(|it| check(&*it.model))).await;
            rows.iter_mut().zip(answers).for_each(|(row, it)| row.answer = it);
        }
        match to.json {
            true => rows.iter().try_for_each(|it| to.object(&it.object(self.check)))?,
            false => show(&rows, files.len() > 1, to)?,
        }
        match rows.iter().any(|it| matches!(it.answer, Some(Err(_)))) {
            true => Ok(Ending::Wrong),
            false => Ok(Ending::Well),
        }
    }
}

/// A model that a manifest declares, or that the program gave its builder.
struct Row {
    file: Option<String>,
    name: String,
    details: Details,
    model: Arc<dyn Model>,
    /// Whether the model's server answers.
    answer: Answer,
}

/// The time until a server's reply began, or why there is no reply. None if the server wasn't
/// asked.
type Answer = Option<Result<Duration, Error>>;

impl Row {
    fn new(file: Option<&PathBuf>, name: &str, model: &Arc<dyn Model>) -> Row {
        Row {
            file: file.map(|it| it.display().to_string()),
            name: name.to_owned(),
            details: model.details(),
            model: model.clone(),
            answer: None,
        }
    }

    /// Returns the source of the price, as a word.
    fn source(&self) -> Option<&'static str> {
        match self.details.price_source.as_ref()? {
            PriceSource::Setting => Some("manifest"),
            PriceSource::Table(_) => Some("table"),
        }
    }

    /// Returns the name of the table that the price is from.
    fn table(&self) -> Option<&str> {
        match self.details.price_source.as_ref()? {
            PriceSource::Table(it) => Some(it),
            PriceSource::Setting => None,
        }
    }

    fn object(&self, is_checked: bool) -> Value {
        let Details { wire, model, host, .. } = &self.details;
        let units = |micros: u64| micros as f64 / 1e6;
        let price = self.model.price().map(|it| {
            json!({
                "input": units(it.input_micros),
                "output": units(it.output_micros),
                "cached": it.cached_micros.map(units),
                "cache_write": it.cache_write_micros.map(units),
            })
        });
        let mut object = json!({
            "manifest": self.file,
            "name": self.name,
            "wire": wire,
            "model": model,
            "host": host,
            "window": self.model.window(),
            "price": price,
            "price_from": self.source(),
            "table": self.table(),
        });
        if is_checked {
            object["check"] = match &self.answer {
                None => Value::Null,
                Some(Ok(took)) => json!({ "answers": true, "ms": took.as_millis() as u64 }),
                Some(Err(error)) => json!({ "answers": false, "error": error.to_string() }),
            };
        }
        object
    }

    fn cells(&self, has_file: bool) -> Vec<String> {
        let or_unknown = |it: Option<String>| it.unwrap_or_else(|| UNKNOWN.to_owned());
        let price = self.model.price();
        let of = |micros: fn(Price) -> Option<u64>| or_unknown(price.and_then(micros).map(units));
        let mut cells = vec![
            self.name.clone(),
            self.details.wire.clone().into_owned(),
            self.details.model.clone(),
            or_unknown(self.details.host.clone()),
            or_unknown(self.model.window().map(|it| it.to_string())),
            of(|it| Some(it.input_micros)),
            of(|it| it.cached_micros),
            of(|it| Some(it.output_micros)),
            or_unknown(self.source().map(str::to_owned)),
        ];
        if has_file {
            cells.insert(0, or_unknown(self.file.clone()));
        }
        cells.iter().map(|it| audit::line(it).into_owned()).collect()
    }
}

const HEAD: [&str; 9] =
    ["name", "wire", "model", "host", "window", "input", "cached", "output", "price from"];

/// Formats a number of millionths as a decimal number, with at least two places.
fn units(micros: u64) -> String {
    let places = format!("{:06}", micros % 1_000_000);
    let places = places.trim_end_matches('0');
    format!("{}.{places:0<2}", micros / 1_000_000)
}

/// Shows the models as a table, and the servers' answers below the table.
fn show(rows: &[Row], has_file: bool, to: &mut Screen<'_>) -> Result<(), Failure> {
    if rows.is_empty() {
        return Ok(to.line("there are no models")?);
    }
    let mut lines = vec![HEAD.map(str::to_owned).to_vec()];
    if has_file {
        lines[0].insert(0, "manifest".to_owned());
    }
    lines.extend(rows.iter().map(|it| it.cells(has_file)));
    let widest = |at: usize| lines.iter().map(|it| audit::cells(&it[at])).max().unwrap_or(0);
    let widths: Vec<usize> = (0..lines[0].len()).map(widest).collect();
    for line in &lines {
        let padded = line.iter().zip(&widths).map(|(text, width)| {
            let room = " ".repeat(width - audit::cells(text));
            format!("{text}{room}")
        });
        to.line(padded.collect::<Vec<_>>().join("  ").trim_end())?;
    }
    if let Some(table) = rows.iter().find_map(Row::table) {
        let text = format!("prices are for a million tokens; the table is {}", audit::line(table));
        to.line(&to.style.paint(Paint::Faint, &text))?;
    }
    let width = widths[usize::from(has_file)];
    for row in rows {
        let told = match &row.answer {
            None => continue,
            Some(Ok(took)) => format!("answers in {} ms", took.as_millis()),
            Some(Err(error)) => to.style.paint(Paint::Wrong, &audit::line(&error.to_string())),
        };
        let name = audit::line(&row.name);
        let room = " ".repeat(width - audit::cells(&name));
        to.line(&format!("{name}{room}  {told}"))?;
    }
    Ok(())
}

/// Asks a model for the shortest reply. A scripted model isn't asked.
async fn check(model: &dyn Model) -> Answer {
    let wire = model.details().wire;
    if wire == "scripted" {
        return None;
    }
    let mut prompt = Prompt::new("").user("Say OK.");
    // OpenAI's Responses API refuses a limit below 16 tokens.
    let is_responses = wire.parse() == Ok(Wire::OpenAiResponses);
    prompt.max_tokens = Some(if is_responses { 16 } else { 1 });
    Some(match answer(model, prompt.clone()).await {
        // Some models have another name for `max_tokens`, and refuse this name.
        Err(error) if error.kind == Kind::Refused && error.status == Some(400) => {
            prompt.max_tokens = None;
            answer(model, prompt).await
        }
        answered => answered,
    })
}

/// Returns the time until a reply begins. Fails if the reply doesn't come to its end.
async fn answer(model: &dyn Model, prompt: Prompt) -> Result<Duration, Error> {
    let began_us = clock::now_us();
    let mut reply = model.turn_once(prompt).await?;
    let took = Duration::from_micros(clock::now_us().saturating_sub(began_us));
    while reply.next().await?.is_some() {}
    Ok(took)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_price_has_two_places_or_more() {
        let shown = [0, 150_000, 3_000_000, 3_625, 12_500_000].map(units);
        assert_eq!(shown, ["0.00", "0.15", "3.00", "0.003625", "12.50"]);
    }
}
