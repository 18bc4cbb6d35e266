//! Statuses of answers that count as failures, in a workflow's file.

use std::ops::RangeInclusive;

use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// The largest status.
const MAX: u16 = 999;

/// Some statuses: `404`, `"500-599"`, `"400-"`, or a list of these.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statuses(Vec<RangeInclusive<u16>>);

impl Statuses {
    /// Whether a status is one of these.
    #[must_use]
    pub fn has(&self, status: u64) -> bool {
        u16::try_from(status).is_ok_and(|status| self.0.iter().any(|it| it.contains(&status)))
    }
}

impl<'de> Deserialize<'de> for Statuses {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Statuses, D::Error> {
        let value = Value::deserialize(from)?;
        let items = match &value {
            Value::Array(items) if !items.is_empty() => &items[..],
            one => std::slice::from_ref(one),
        };
        let read = |item: &Value| {
            let range = match item {
                Value::Number(number) => range(&number.to_string()),
                Value::String(text) => range(text.trim()),
                _ => None,
            };
            range.ok_or_else(|| {
                let text = format!("{item} is no status: write 404, \"500-599\", or \"400-\" for");
                serde::de::Error::custom(format!("{text} each from 400 on"))
            })
        };
        items.iter().map(read).collect::<Result<_, _>>().map(Statuses)
    }
}

fn range(text: &str) -> Option<RangeInclusive<u16>> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let number = |it: &str| it.trim().parse().ok().filter(|it| (100..=MAX).contains(it));
    let last = if last.is_empty() { Some(MAX) } else { number(last) };
    let range = number(first)?..=last?;
    (!range.is_empty()).then_some(range)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn statuses_are_numbers_ranges_and_lists_of_them() {
        let has = |written: Value, status: u64| {
            Statuses::deserialize(&written).map(|it| it.has(status)).map_err(|it| it.to_string())
        };
        for (written, yes, no) in [
            (json!(404), 404, 405),
            (json!("400-"), 599, 399),
            (json!("500 - 599"), 500, 499),
            (json!([402, "500-"]), 503, 404),
        ] {
            assert_eq!(has(written.clone(), yes), Ok(true), "{written}");
            assert_eq!(has(written.clone(), no), Ok(false), "{written}");
        }
        for written in [json!("4xx"), json!("500-400"), json!(40), json!([]), json!("-400")] {
            let told = has(written.clone(), 400).unwrap_err();
            assert!(told.contains("is no status: write 404"), "{written}: {told}");
        }
    }
}
