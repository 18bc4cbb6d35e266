//! Times in a workflow's file.

use std::time::Duration;

use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// A time in seconds: `90`, `1.5`, or a text with a unit, such as `"2m"`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Seconds(f64);

impl Seconds {
    pub(super) const fn new(seconds: f64) -> Seconds {
        Seconds(seconds)
    }

    /// The number of seconds.
    #[must_use]
    pub fn seconds(self) -> f64 {
        self.0
    }

    /// The time as a duration.
    #[must_use]
    pub fn duration(self) -> Duration {
        Duration::try_from_secs_f64(self.0).unwrap_or(Duration::MAX)
    }
}

impl<'de> Deserialize<'de> for Seconds {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Seconds, D::Error> {
        use serde::de::Error;

        let value = Value::deserialize(from)?;
        let seconds = match &value {
            Value::Number(number) => number.as_f64(),
            Value::String(text) => with_unit(text),
            _ => None,
        };
        seconds.filter(|it| it.is_finite() && *it >= 0.0).map(Seconds).ok_or_else(|| {
            D::Error::custom(format!("{value} is no time: write seconds, or \"500ms\", \"2m\""))
        })
    }
}

/// Reads a number with a unit. Returns seconds.
fn with_unit(text: &str) -> Option<f64> {
    // Milliseconds are divided by 1,000, since 700 * 0.001 is 0.7000000000000001.
    const UNITS: [(&str, f64, f64); 5] = [
        ("ms", 1.0, 1_000.0),
        ("s", 1.0, 1.0),
        ("m", 60.0, 1.0),
        ("h", 3_600.0, 1.0),
        ("d", 86_400.0, 1.0),
    ];
    let (unit, seconds, parts) = UNITS.into_iter().find(|(unit, ..)| text.ends_with(unit))?;
    let number: f64 = text.strip_suffix(unit)?.trim().parse().ok()?;
    Some(number * seconds / parts)
}
