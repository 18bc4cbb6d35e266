//! Formats the result as a table for people, beside an earlier result if one is given. This module
//! is pure.

use crate::audit;
use crate::cli::spending::money::{UNKNOWN, money};

use super::result::{EvalResult, Row};

/// The titles of the columns.
const HEAD: [&str; 5] = ["passed", "rate", "tokens", "cost", "seconds"];
/// The title of each column of an earlier result.
const BEFORE: &str = "before";

/// Returns the table: a line for each case with averages over its runs, and a line for all cases
/// together.
pub(super) fn table(now: &EvalResult, earlier: Option<&EvalResult>) -> String {
    let mut lines = vec![head(earlier.is_some())];
    for row in &now.cases {
        let before = earlier.map(|it| it.case(&row.name));
        lines.push(line(row, before));
    }
    if now.cases.len() > 1 {
        lines.push(line(&now.all, earlier.map(|it| Some(&it.all))));
    }
    let count = lines[0].len();
    let width = |column: usize| lines.iter().map(|it| audit::cells(&it[column])).max().unwrap_or(0);
    let widths: Vec<usize> = (0..count).map(width).collect();
    let mut out = format!("{}\n\n", title(now));
    for line in &lines {
        let cells = line.iter().zip(&widths).enumerate().map(|(column, (it, width))| {
            let room = " ".repeat(width.saturating_sub(audit::cells(it)));
            if column == 0 { format!("{it}{room}") } else { format!("  {room}{it}") }
        });
        out.push_str(cells.collect::<String>().trim_end());
        out.push('\n');
    }
    out.push('\n');
    out.push_str(&foot(now));
    if let Some(it) = earlier {
        out.push_str(&format!("before: {}, {}\n", it.time, title(it)));
    }
    out
}

/// Returns a line with the file, the agent, its model and the judge.
fn title(it: &EvalResult) -> String {
    let model = it.model.as_deref().unwrap_or(UNKNOWN);
    let judge = it.judge.as_ref().map(|it| format!(", judged by {it}")).unwrap_or_default();
    let text = format!("{}: {} with {model}{judge}", it.file, it.agent);
    audit::line(&text).into_owned()
}

/// Returns a line with the model usage of all runs together.
fn foot(it: &EvalResult) -> String {
    let runs = if it.all.runs == 1 { "run" } else { "runs" };
    let sum = |used: super::model_spending::ModelSpending| {
        let cost = used.cost_micros.map_or(UNKNOWN.to_owned(), money);
        format!("{} tokens, cost {cost}", used.tokens)
    };
    let mut text = format!("{} {runs}: {}", it.all.runs, sum(it.all.used));
    if it.judge.is_some() {
        text = format!("{text}; the judge: {}", sum(it.judged));
    }
    format!("{text}\n")
}

fn head(is_compared: bool) -> Vec<String> {
    let mut cells = vec!["case".to_owned()];
    for name in HEAD {
        cells.push(name.to_owned());
        if is_compared {
            cells.push(BEFORE.to_owned());
        }
    }
    cells
}

/// Returns the cells of a row. If there is an earlier result, each figure is followed by the
/// earlier figure.
fn line(row: &Row, before: Option<Option<&Row>>) -> Vec<String> {
    let mut cells = vec![audit::line(&row.name).into_owned()];
    let now = figures(row);
    let before = before.map(|it| it.map_or([UNKNOWN; 5].map(str::to_owned), figures));
    for (column, figure) in now.into_iter().enumerate() {
        cells.push(figure);
        cells.extend(before.as_ref().map(|it| it[column].clone()));
    }
    cells
}

fn figures(it: &Row) -> [String; 5] {
    let passed = format!("{} of {}", it.passed, it.runs);
    let Some(percent) = (it.passed * 100).checked_div(it.runs) else {
        return [passed, UNKNOWN.into(), UNKNOWN.into(), UNKNOWN.into(), UNKNOWN.into()];
    };
    let runs = i64::try_from(it.runs).unwrap_or(i64::MAX);
    let cost = it.used.cost_micros.map(|it| money(it / runs));
    let milliseconds = it.milliseconds / it.runs;
    let seconds = format!("{}.{:03}", milliseconds / 1_000, milliseconds % 1_000);
    let tokens = (it.used.tokens / runs).to_string();
    [passed, format!("{percent} %"), tokens, cost.unwrap_or(UNKNOWN.to_owned()), seconds]
}
