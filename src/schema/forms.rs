//! Reads and writes structured texts: times, durations, base64, UUIDs and lists.

use std::fmt::Write as _;

use bytes::Bytes;
use jiff::{SignedDuration, Timestamp};
use uuid::Uuid;

use super::scalar::trim;

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Reads a point in time. The text is an XSD `dateTime` with an offset, and at most nine digits in
/// the fraction of the second. In UTC, the time is in the years 1 to 9999.
#[must_use]
pub fn timestamp(text: &str) -> Option<Timestamp> {
    let text = trim(text);
    let shape = b"dddd-dd-ddTdd:dd:dd";
    let (head, rest) = text.split_at_checked(shape.len())?;
    let fits = |(byte, form): (u8, &u8)| match form {
        b'd' => byte.is_ascii_digit(),
        form => byte == *form,
    };
    if !head.bytes().zip(shape).all(fits) || head.starts_with("0000") {
        return None;
    }
    let zone = rest.find(['Z', '+', '-'])?;
    let (fraction, zone) = rest.split_at(zone);
    if !fraction.is_empty() {
        digits(fraction.strip_prefix('.')?, 9)?;
    }
    let offset = match zone.as_bytes() {
        b"Z" => 0,
        [sign, hours @ .., b':', _, _] if hours.len() == 2 => {
            let (hours, minutes) = (digits(&zone[1..3], 2)?, digits(&zone[4..], 2)?);
            let fits = (hours < 14 && minutes < 60) || (hours == 14 && minutes == 0);
            let seconds = i64::try_from(hours * 3_600 + minutes * 60).ok().filter(|_| fits)?;
            if *sign == b'-' { -seconds } else { seconds }
        }
        _ => return None,
    };
    // 24:00:00 is the first moment of the next day. Leap seconds are refused.
    let (day, time) = head.split_once('T')?;
    let (time, midnight) = match time {
        "24:00:00" if fraction.bytes().all(|it| matches!(it, b'.' | b'0')) => ("00:00:00", 86_400),
        it if it.ends_with(":60") => return None,
        it => (it, 0),
    };
    let local: Timestamp = format!("{day}T{time}{fraction}Z").parse().ok()?;
    let moment = local.checked_add(SignedDuration::from_secs(midnight - offset)).ok()?;
    let text = timestamp_text(moment);
    (text.starts_with(|it: char| it.is_ascii_digit()) && !text.starts_with("0000"))
        .then_some(moment)
}

/// Writes a point in time in UTC, without zeros at the end of the fraction.
#[must_use]
pub fn timestamp_text(time: Timestamp) -> String {
    time.to_string()
}

/// Reads a span of time. The text is an XSD `duration` of days, hours, minutes and seconds, with at
/// most nine digits in the fraction of the second. Years and months aren't allowed, since they have
/// no fixed length.
#[must_use]
pub fn duration(text: &str) -> Option<SignedDuration> {
    let text = trim(text);
    let (negative, rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let rest = rest.strip_prefix('P')?;
    let (days, time) = match rest.split_once('T') {
        Some((_, "")) => return None,
        Some((days, time)) => (days, time),
        None => (rest, ""),
    };
    let mut seconds: i128 = 0;
    let mut found = false;
    let mut take = |text: &mut &str, unit: char, length: i128| {
        if let Some((count, rest)) = text.split_once(unit) {
            seconds = seconds.checked_add(i128::from(digits(count, 19)?).checked_mul(length)?)?;
            (*text, found) = (rest, true);
        }
        Some(())
    };
    let (mut days, mut time) = (days, time);
    take(&mut days, 'D', 86_400)?;
    take(&mut time, 'H', 3_600)?;
    take(&mut time, 'M', 60)?;
    let mut nanos: i128 = 0;
    if let Some((whole, fraction)) = time.strip_suffix('S').and_then(|it| it.split_once('.')) {
        let count = u32::try_from(fraction.len()).ok().filter(|it| *it <= 9)?;
        nanos = i128::from(digits(fraction, 9)?) * 10_i128.pow(9 - count);
        seconds = seconds.checked_add(i128::from(digits(whole, 19)?))?;
        (time, found) = ("", true);
    } else {
        take(&mut time, 'S', 1)?;
    }
    if !days.is_empty() || !time.is_empty() || !found {
        return None;
    }
    let total = seconds.checked_mul(1_000_000_000)?.checked_add(nanos)?;
    let total = if negative { -total } else { total };
    let (seconds, nanos) = (total / 1_000_000_000, total % 1_000_000_000);
    Some(SignedDuration::new(i64::try_from(seconds).ok()?, i32::try_from(nanos).ok()?))
}

/// Writes a span of time, such as `P1DT2H3M4.5S` or `PT0S`.
#[must_use]
pub fn duration_text(duration: SignedDuration) -> String {
    let (seconds, nanos) =
        (duration.as_secs().unsigned_abs(), duration.subsec_nanos().unsigned_abs());
    let mut text = if duration.is_negative() { "-P" } else { "P" }.to_owned();
    let mut put = |count: u64, unit: &str| {
        if count > 0 {
            let _ = write!(text, "{count}{unit}");
        }
    };
    put(seconds / 86_400, "D");
    let (hours, minutes, rest) = (seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60);
    if hours + minutes + rest > 0 || nanos > 0 || seconds == 0 {
        text.push('T');
        let mut put = |count: u64, unit: &str| {
            if count > 0 {
                let _ = write!(text, "{count}{unit}");
            }
        };
        put(hours, "H");
        put(minutes, "M");
        if nanos > 0 {
            let fraction = format!("{nanos:09}");
            let _ = write!(text, "{rest}.{}S", fraction.trim_end_matches('0'));
        } else if rest > 0 || seconds == 0 {
            let _ = write!(text, "{rest}S");
        }
    }
    text
}

/// Reads a UUID in five groups, in upper or lower case.
#[must_use]
pub fn uuid(text: &str) -> Option<Uuid> {
    let text = trim(text);
    let grouped = text.len() == 36 && text.bytes().filter(|it| *it == b'-').count() == 4;
    Uuid::try_parse(text).ok().filter(|_| grouped)
}

/// Reads bytes from base64. White space in the text is skipped.
#[must_use]
pub fn base64(text: &str) -> Option<Bytes> {
    let mut letters: Vec<u8> = text.bytes().filter(|it| !b" \t\n\r".contains(it)).collect();
    if !letters.len().is_multiple_of(4) {
        return None;
    }
    let padding = letters.iter().rev().take_while(|it| **it == b'=').count();
    if padding > 2 {
        return None;
    }
    letters.truncate(letters.len() - padding);
    let mut bytes = Vec::with_capacity(letters.len() / 4 * 3 + 2);
    for group in letters.chunks(4) {
        let mut bits = 0_u32;
        for letter in group {
            bits = bits << 6 | u32::from(value(*letter)?);
        }
        bits <<= 6 * (4 - group.len());
        let [_, all @ ..] = bits.to_be_bytes();
        let (kept, dropped) = all.split_at(group.len() - 1);
        if dropped.iter().any(|it| *it != 0) {
            return None;
        }
        bytes.extend_from_slice(kept);
    }
    Some(Bytes::from(bytes))
}

/// Writes bytes as base64, without white space.
#[must_use]
pub fn base64_text(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let mut all = [0; 4];
        all[1..=group.len()].copy_from_slice(group);
        let bits = u32::from_be_bytes(all);
        for place in 0..4 {
            let letter = ALPHABET[(bits >> (18 - 6 * place) & 63) as usize];
            text.push(if place <= group.len() { letter.into() } else { '=' });
        }
    }
    text
}

/// Returns the items of a list, which are separated by white space.
pub fn items(text: &str) -> impl Iterator<Item = &str> {
    text.split([' ', '\t', '\n', '\r']).filter(|it| !it.is_empty())
}

fn value(letter: u8) -> Option<u8> {
    match letter {
        b'A'..=b'Z' => Some(letter - b'A'),
        b'a'..=b'z' => Some(letter - b'a' + 26),
        b'0'..=b'9' => Some(letter - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    }
}

/// Reads a number of one to `most` digits.
fn digits(text: &str, most: usize) -> Option<u64> {
    let fits = (1..=most).contains(&text.len()) && text.bytes().all(|it| it.is_ascii_digit());
    text.parse().ok().filter(|_| fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_base64() {
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64_text(bytes.as_bytes()), text);
            assert_eq!(base64(text).as_deref(), Some(bytes.as_bytes()), "{text}");
        }
        assert_eq!(base64(" Z m\n9 v ").as_deref(), Some(&b"foo"[..]));
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(base64(&base64_text(&all)).as_deref(), Some(all.as_slice()));
        for wrong in ["Z", "Zg", "Zg=", "Zh==", "Zm9=", "====", "Zg==Zg==", "Zm-_", "=Zg="] {
            assert_eq!(base64(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_point_in_time_is_written_in_utc() {
        for (text, written) in [
            ("2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z"),
            (" 2026-01-02T03:04:05.500Z ", "2026-01-02T03:04:05.5Z"),
            ("2026-01-02T03:04:05.123456789Z", "2026-01-02T03:04:05.123456789Z"),
            ("2026-01-02T03:04:05+02:00", "2026-01-02T01:04:05Z"),
            ("2026-01-02T03:04:05-14:00", "2026-01-02T17:04:05Z"),
            ("2026-12-31T24:00:00Z", "2027-01-01T00:00:00Z"),
            ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z"),
        ] {
            let read = timestamp(text).expect(text);
            assert_eq!(timestamp_text(read), written);
            assert_eq!(timestamp(written), Some(read));
        }
        for wrong in [
            "",
            "2026-01-02",
            "2026-01-02T03:04:05",
            "2026-01-02 03:04:05Z",
            "2026-01-02t03:04:05z",
            "2026-02-30T00:00:00Z",
            "2026-01-02T03:04:60Z",
            "2026-01-02T25:00:00Z",
            "2026-01-02T24:00:01Z",
            "2026-01-02T03:04:05.Z",
            "2026-01-02T03:04:05.1234567890Z",
            "2026-01-02T03:04:05+14:01",
            "2026-01-02T03:04:05+2:00",
            "2026-01-02T03:04:05+0200",
            "0000-01-01T00:00:00Z",
            "0001-01-01T00:00:00+01:00",
            "-0001-01-01T00:00:00Z",
            "12026-01-02T03:04:05Z",
            "2026-01-02T03:04:05Z[UTC]",
        ] {
            assert_eq!(timestamp(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_span_of_time_has_days_and_what_is_smaller() {
        for (text, written) in [
            ("PT0S", "PT0S"),
            ("P0D", "PT0S"),
            ("-P0D", "PT0S"),
            ("P1D", "P1D"),
            ("PT36H", "P1DT12H"),
            ("PT90S", "PT1M30S"),
            (" P1DT2H3M4.50S ", "P1DT2H3M4.5S"),
            ("-PT0.000000001S", "-PT0.000000001S"),
            ("P1DT0.5S", "P1DT0.5S"),
        ] {
            let read = duration(text).expect(text);
            assert_eq!(duration_text(read), written);
            assert_eq!(duration(written), Some(read));
        }
        for limit in [SignedDuration::MIN, SignedDuration::MAX] {
            assert_eq!(duration(&duration_text(limit)), Some(limit));
        }
        for wrong in [
            "",
            "P",
            "PT",
            "P1DT",
            "P1Y",
            "P1M",
            "P1Y2M",
            "1D",
            "P-1D",
            "PT1S2M",
            "PT.5S",
            "PT1.S",
            "PT1.5M",
            "P1W",
            "+P1D",
            "PT1H1H",
            "P99999999999999999999D",
            "PT1",
        ] {
            assert_eq!(duration(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_uuid_has_five_groups() {
        let text = "018f4e2a-1b2c-7d3e-8f40-123456789abc";
        assert_eq!(uuid(text).expect(text).to_string(), text);
        assert_eq!(uuid(&text.to_uppercase()), uuid(text));
        for wrong in ["", &text.replace('-', ""), &format!("{{{text}}}"), &text[1..]] {
            assert_eq!(uuid(wrong), None, "{wrong}");
        }
    }
}
