//! Times and spans of time as people read them.

use crate::wire::iso_time;

/// The length of a formatted time up to its seconds.
const SECONDS: usize = "2026-11-21T22:15:36".len();

/// Formats a time in UTC, to the second.
pub(crate) fn second(at_us: u64) -> String {
    let time = iso_time(at_us);
    format!("{}Z", time.get(..SECONDS).unwrap_or(&time))
}

/// Formats a span of time in whole seconds, minutes, hours or days. The unit is the largest one of
/// which the span has at least two.
pub(crate) fn span(us: u64) -> String {
    match us / 1_000_000 {
        seconds @ 0..120 => format!("{seconds} s"),
        seconds @ 120..7_200 => format!("{} min", seconds / 60),
        seconds @ 7_200..172_800 => format!("{} h", seconds / 3_600),
        seconds => format!("{} d", seconds / 86_400),
    }
}

/// Formats a span of time that may be short: below ten seconds, it is shown with its milliseconds.
pub(crate) fn took(us: u64) -> String {
    match us / 1_000 {
        milliseconds @ 0..10_000 => {
            format!("{}.{:03} s", milliseconds / 1_000, milliseconds % 1_000)
        }
        _ => span(us),
    }
}

/// Returns a span of time in seconds, for programs.
pub(crate) fn seconds(us: u64) -> f64 {
    std::time::Duration::from_micros(us).as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_has_its_largest_unit() {
        for (seconds, expected) in
            [(0, "0 s"), (119, "119 s"), (120, "2 min"), (7_200, "2 h"), (172_800, "2 d")]
        {
            assert_eq!(span(seconds * 1_000_000), expected);
        }
    }

    #[test]
    fn a_short_span_has_its_milliseconds() {
        for (us, expected) in [(0, "0.000 s"), (1_234_567, "1.234 s"), (10_000_000, "10 s")] {
            assert_eq!(took(us), expected);
        }
        assert_eq!(second(0), "1970-01-01T00:00:00Z");
    }
}
