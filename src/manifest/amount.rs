//! Reads amounts as people write them: `30s`, `64 KiB`, `40`.

use std::time::Duration;

use crate::limits::Allowance;
use crate::listeners::agent::settings::Keep;

/// Parses a number of bytes, with a binary or decimal unit or without: `65536`, `64 KiB`, `2 MB`.
pub(super) fn bytes(text: &str) -> Option<usize> {
    let text = text.trim();
    let end = text.find(|it: char| !(it.is_ascii_digit() || it == '_')).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let number: usize = number.replace('_', "").parse().ok()?;
    let unit = match unit.trim() {
        "" | "B" => 1,
        "kB" | "KB" => 1_000,
        "KiB" => 1 << 10,
        "MB" => 1_000_000,
        "MiB" => 1 << 20,
        "GB" => 1_000_000_000,
        "GiB" => 1 << 30,
        _ => return None,
    };
    number.checked_mul(unit)
}

/// Parses a time with its unit: `30s`, `1.5 h`, `2m 30s`.
pub(super) fn time(text: &str) -> Option<Duration> {
    let has_unit = text.ends_with(|it: char| it.is_ascii_alphabetic());
    let parsed = text.parse::<jiff::SignedDuration>().ok().filter(|_| has_unit)?;
    Duration::try_from(parsed).ok()
}

/// Parses a whole number, or `unlimited`.
pub(super) fn allowance(text: &str) -> Option<u64> {
    text.replace('_', "").parse::<Allowance>().ok().map(|it| it.0)
}

/// Parses how much stays in view: `10` messages, or `4000 tokens`.
pub(super) fn keep(text: &str) -> Option<Keep> {
    let within = |it: u64| (1..=u64::from(u32::MAX)).contains(&it).then_some(it);
    let number = |it: &str| it.trim_end().replace('_', "").parse().ok().and_then(within);
    match text.strip_suffix("tokens") {
        Some(tokens) => number(tokens).map(Keep::Tokens),
        None => number(text).map(Keep::Messages),
    }
}

/// Parses a finite number, with a fraction or without.
pub(super) fn number(text: &str) -> Option<f64> {
    text.parse().ok().filter(|it: &f64| it.is_finite())
}

/// Parses a whole number.
pub(super) fn count(text: &str) -> Option<usize> {
    text.replace('_', "").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stays_is_messages_or_tokens() {
        assert_eq!(keep("10"), Some(Keep::Messages(10)));
        assert_eq!(keep("4_000 tokens"), Some(Keep::Tokens(4_000)));
        assert_eq!([keep("0"), keep("tokens"), keep("4 words")], [None; 3]);
    }

    #[test]
    fn bytes_have_units() {
        for (text, expected) in [
            ("0", Some(0)),
            ("65536", Some(65_536)),
            ("65_536", Some(65_536)),
            ("64KiB", Some(65_536)),
            (" 64 KiB ", Some(65_536)),
            ("1 kB", Some(1_000)),
            ("2 MB", Some(2_000_000)),
            ("1 GiB", Some(1 << 30)),
            ("7 B", Some(7)),
            ("", None),
            ("-1", None),
            ("1.5 MiB", None),
            ("1 M", None),
            ("MiB", None),
            ("99999999999999999999", None),
            ("99999999999 GiB", None),
        ] {
            assert_eq!(bytes(text), expected, "{text}");
        }
    }

    #[test]
    fn an_allowance_may_have_no_bound() {
        for (text, expected) in [
            ("0", Some(0)),
            ("200_000", Some(200_000)),
            ("unlimited", Some(u64::MAX)),
            ("none", None),
            ("-1", None),
        ] {
            assert_eq!(allowance(text), expected, "{text}");
        }
    }

    #[test]
    fn a_time_has_a_unit() {
        let ms = |text: &str| time(text).map(|it| it.as_millis());
        assert_eq!(ms("30s"), Some(30_000));
        assert_eq!(ms("500ms"), Some(500));
        assert_eq!(ms("2m 30s"), Some(150_000));
        assert_eq!(ms("1.5h"), Some(5_400_000));
        assert_eq!(ms("1 day"), None);
        for wrong in ["30", "", "s", "-30s", "30s ago", "thirty"] {
            assert_eq!(ms(wrong), None, "{wrong}");
        }
    }
}
