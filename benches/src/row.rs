//! Rows of the table: what was measured, what it is compared with, and whether goals are met.

use pumphouse::log::Durability;
use serde_json::{Value, json};

use crate::measure::{Waits, number};

/// The columns, and the width of each in characters.
const COLUMNS: [(&str, usize); 6] = [
    ("what", 46),
    ("durability", 10),
    ("figure", 34),
    ("beside it", 31),
    ("ratio", 6),
    ("goal", 4),
];

/// One row of the table.
#[derive(Debug)]
pub(crate) struct Row {
    what: &'static str,
    durability: Option<Durability>,
    figures: Vec<Figure>,
    beside: Option<Beside>,
    goals: Vec<Goal>,
    /// Why there is no figure.
    missing: Option<String>,
}

/// A number with its unit.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Figure {
    PerSecond(f64),
    /// Millions of bytes a second.
    Megabytes(f64),
    /// The median of the waits, in microseconds.
    P50(f64),
    /// The 99th percentile of the waits, in microseconds.
    P99(f64),
    /// The longest wait, in microseconds.
    Most(f64),
    /// The time of something that happened once, in microseconds.
    Took(f64),
    /// Bytes.
    Size(f64),
    /// How many things the row measured, such as sessions.
    Of(u64),
}

/// What a row is compared with.
#[derive(Debug)]
struct Beside {
    what: &'static str,
    figure: Figure,
    ratio: f64,
}

/// A goal, and whether it is met.
#[derive(Debug)]
struct Goal {
    text: &'static str,
    is_met: bool,
}

impl Row {
    pub(crate) fn new(what: &'static str, durability: Option<Durability>) -> Row {
        let (figures, beside, goals, missing) = (Vec::new(), None, Vec::new(), None);
        Row { what, durability, figures, beside, goals, missing }
    }

    /// Makes a row for which this machine has no figure.
    pub(crate) fn missing(what: &'static str, why: String) -> Row {
        Row { missing: Some(why), ..Row::new(what, None) }
    }

    /// Returns the row's name.
    pub(crate) fn what(&self) -> &'static str {
        self.what
    }

    pub(crate) fn figure(mut self, figure: Figure) -> Row {
        self.figures.push(figure);
        self
    }

    /// Adds the median and the 99th percentile of waits.
    pub(crate) fn waits(self, waits: &Waits) -> Row {
        self.figure(Figure::P50(waits.at(50))).figure(Figure::P99(waits.at(99)))
    }

    pub(crate) fn beside(mut self, what: &'static str, figure: Figure, ratio: f64) -> Row {
        self.beside = Some(Beside { what, figure, ratio });
        self
    }

    pub(crate) fn goal(mut self, text: &'static str, is_met: bool) -> Row {
        self.goals.push(Goal { text, is_met });
        self
    }

    /// Returns the row as a line of the table.
    pub(crate) fn line(&self) -> String {
        let figures: Vec<String> = self.figures.iter().map(|it| it.text()).collect();
        let figures = self.missing.clone().unwrap_or_else(|| figures.join(", "));
        let beside = self.beside.as_ref();
        let goals: Vec<String> = self.goals.iter().map(Goal::text).collect();
        line(&[
            self.what,
            self.durability.map_or("–", Durability::as_str),
            &figures,
            &beside.map_or(String::new(), |it| format!("{}: {}", it.what, it.figure.text())),
            &beside.map_or(String::new(), |it| format!("{:.2}×", it.ratio)),
            &goals.join("; "),
        ])
    }

    /// Returns the row as a JSON object.
    pub(crate) fn object(&self) -> Value {
        let durability = self.durability.map(Durability::as_str);
        let mut object = json!({ "what": self.what, "durability": durability });
        for figure in &self.figures {
            object[figure.key()] = json!(figure.number());
        }
        if let Some(Beside { what, figure, ratio }) = &self.beside {
            let ratio = (ratio * 100.0).round() / 100.0;
            object["beside"] = json!({ "what": what, figure.key(): figure.number() });
            object["ratio"] = json!(ratio);
        }
        if !self.goals.is_empty() {
            let goals = self.goals.iter().map(|it| json!({ "goal": it.text, "met": it.is_met }));
            object["goals"] = goals.collect();
        }
        if let Some(why) = &self.missing {
            object["missing"] = json!(why);
        }
        object
    }
}

/// Returns the head of the table.
pub(crate) fn head() -> String {
    let rule = COLUMNS.map(|(_, width)| "-".repeat(width));
    format!("{}\n{}", line(&COLUMNS.map(|it| it.0)), line(&rule.each_ref().map(|it| &**it)))
}

fn line(cells: &[&str; COLUMNS.len()]) -> String {
    let padded = cells.iter().zip(COLUMNS).map(|(cell, (_, width))| format!("| {cell:width$} "));
    padded.collect::<String>() + "|"
}

impl Goal {
    fn text(&self) -> String {
        format!("{}: {}", self.text, if self.is_met { "met" } else { "**missed**" })
    }
}

impl Figure {
    /// Formats the figure with its unit, for people.
    fn text(self) -> String {
        match self {
            Figure::PerSecond(it) => format!("{}/s", grouped(it)),
            Figure::Megabytes(it) => format!("{} MB/s", grouped(it)),
            Figure::P50(us) => format!("p50 {}", time(us)),
            Figure::P99(us) => format!("p99 {}", time(us)),
            Figure::Most(us) => format!("at most {}", time(us)),
            Figure::Took(us) => time(us),
            Figure::Size(bytes) => format!("{:.1} MiB", bytes / MIB),
            Figure::Of(count) => format!("of {}", grouped(number(count))),
        }
    }

    /// Returns the figure's key in a JSON object.
    fn key(self) -> &'static str {
        match self {
            Figure::PerSecond(_) => "per_second",
            Figure::Megabytes(_) => "mb_per_second",
            Figure::P50(_) => "us_p50",
            Figure::P99(_) => "us_p99",
            Figure::Most(_) => "us_most",
            Figure::Took(_) => "us",
            Figure::Size(_) => "bytes",
            Figure::Of(_) => "of",
        }
    }

    /// Returns the number of the figure in a JSON object, rounded to a whole number.
    fn number(self) -> f64 {
        match self {
            Figure::PerSecond(it)
            | Figure::Megabytes(it)
            | Figure::P50(it)
            | Figure::P99(it)
            | Figure::Most(it)
            | Figure::Took(it)
            | Figure::Size(it) => it.round(),
            Figure::Of(count) => number(count),
        }
    }
}

const MIB: f64 = 1_048_576.0;

/// Formats a time: in microseconds if it is below 1,000 µs, else in milliseconds.
fn time(us: f64) -> String {
    if us < 1_000.0 { format!("{us:.0} µs") } else { format!("{:.1} ms", us / 1e3) }
}

/// Formats a number as a whole number with commas between its thousands.
fn grouped(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut grouped = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_read_with_their_units() {
        let check = |figure: Figure, text: &str, key: &str, number: f64| {
            assert_eq!((&*figure.text(), figure.key(), figure.number()), (text, key, number));
        };
        check(Figure::PerSecond(382_999.7), "383,000/s", "per_second", 383_000.0);
        check(Figure::PerSecond(999.0), "999/s", "per_second", 999.0);
        check(Figure::Megabytes(4_580.2), "4,580 MB/s", "mb_per_second", 4_580.0);
        check(Figure::P50(107.0), "p50 107 µs", "us_p50", 107.0);
        check(Figure::P99(1_183.0), "p99 1.2 ms", "us_p99", 1_183.0);
        check(Figure::Took(950_000.0), "950.0 ms", "us", 950_000.0);
        check(Figure::Most(8_000.0), "at most 8.0 ms", "us_most", 8_000.0);
        check(Figure::Of(10_000), "of 10,000", "of", 10_000.0);
        check(Figure::Size(14_575_206.0), "13.9 MiB", "bytes", 14_575_206.0);
    }

    #[test]
    fn a_row_says_beside_what_it_stands_and_whether_its_goals_are_met() {
        let row = Row::new("hop", Some(Durability::Memory))
            .figure(Figure::PerSecond(400_000.0))
            .beside("a pass", Figure::PerSecond(800_000.0), 2.0)
            .goal("≤ 2.5×", true)
            .goal("≥ 700,000/s", false);
        let line = row.line();
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let goals = "≤ 2.5×: met; ≥ 700,000/s: **missed**";
        assert_eq!(cells, ["hop", "memory", "400,000/s", "a pass: 800,000/s", "2.00×", goals]);
        assert_eq!(
            row.object(),
            json!({
                "what": "hop", "durability": "memory", "per_second": 400_000.0,
                "beside": { "what": "a pass", "per_second": 800_000.0 }, "ratio": 2.0,
                "goals": [
                    { "goal": "≤ 2.5×", "met": true }, { "goal": "≥ 700,000/s", "met": false },
                ],
            })
        );
    }

    #[test]
    fn a_row_without_a_figure_says_why() {
        let row = Row::missing("binary", "no strip".to_owned());
        assert!(row.line().contains("| no strip "), "{}", row.line());
        assert_eq!(
            row.object(),
            json!({ "what": "binary", "durability": null, "missing": "no strip" })
        );
    }
}
