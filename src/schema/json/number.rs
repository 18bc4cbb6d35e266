//! Whole numbers in JSON texts. A [`Value`](serde_json::Value) holds those of 64 bits exactly, and
//! rounds others, which therefore aren't read.

/// Finds the first whole number that a value would round, with its place in bytes. A number with an
/// exponent counts as a real number.
pub(super) fn rounded(text: &str) -> Option<(usize, &str)> {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => at = string_end(bytes, at + 1),
            b'-' | b'0'..=b'9' => {
                let is_inside =
                    |it: &u8| it.is_ascii_digit() || matches!(it, b'.' | b'e' | b'E' | b'+' | b'-');
                let length = bytes[at..].iter().take_while(|it| is_inside(it)).count();
                let number = &text[at..at + length];
                if !is_exact(number) {
                    return Some((at, number));
                }
                at += length;
            }
            _ => at += 1,
        }
    }
    None
}

/// The place behind the quote that ends a string.
fn string_end(bytes: &[u8], mut at: usize) -> usize {
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    at
}

fn is_exact(number: &str) -> bool {
    if number.contains(['e', 'E']) {
        return true;
    }
    match number.split_once('.') {
        None => number.parse::<i64>().is_ok() || number.parse::<u64>().is_ok(),
        Some((_, fraction)) if fraction.bytes().any(|it| it != b'0') => true,
        Some((whole, _)) => number.parse::<f64>().is_ok_and(|it| format!("{it:.0}") == whole),
    }
}

/// Returns whether a double holds a whole number exactly.
pub(super) fn is_double(number: i128) -> bool {
    #[expect(clippy::cast_precision_loss, reason = "this is what is asked")]
    let double = number as f64;
    double as i128 == number
}

/// Returns whether a number of single precision holds a whole number exactly.
pub(super) fn is_single(number: i128) -> bool {
    #[expect(clippy::cast_precision_loss, reason = "this is what is asked")]
    let single = number as f32;
    single as i128 == number
}

#[cfg(test)]
mod tests {
    use super::rounded;

    #[test]
    fn a_whole_number_is_exact_or_told() {
        let check = |text: &str, expected: Option<&str>| {
            assert_eq!(rounded(text).map(|it| it.1), expected, "{text}");
        };
        check("[9007199254740993, -9223372036854775808, 18446744073709551615]", None);
        check("[1, 18446744073709551616]", Some("18446744073709551616"));
        check("-9223372036854775809", Some("-9223372036854775809"));
        check("{\"a\":9007199254740993.0}", Some("9007199254740993.0"));
        check("[9007199254740992.0, -0.0, 1e30, 0.1, 123456789012345678901.5]", None);
        check(r#"["18446744073709551616", "\"18446744073709551616"]"#, None);
    }
}
