//! Tests of every scalar: its extremes, its other accepted texts, and texts that are refused.

use std::borrow::Cow;

use super::*;
use crate::wire::value::Text;

/// A scalar in both places where one can stand.
#[derive(Payload, Debug, PartialEq)]
#[payload(ns = "urn:test")]
struct Both {
    #[payload(attribute)]
    a: f64,
    b: f64,
}

/// Asserts that `values` are written as these texts, that the texts in `same` are read as these
/// values, and that the texts in `wrong` are refused.
fn check<T: Text + PartialEq + Debug>(values: &[(T, &str)], same: &[(T, &str)], wrong: &[&str]) {
    for (value, text) in values {
        value.with_text(|written| assert_eq!(written, *text));
    }
    for (value, text) in values.iter().chain(same) {
        assert_eq!(T::parse(Cow::Borrowed(text)).as_ref(), Some(value), "{text:?}");
        assert!(T::scalar().accepts(text), "{text:?}");
    }
    for text in wrong {
        assert_eq!(T::parse(Cow::Borrowed(text)), None, "{text:?}");
        assert!(!T::scalar().accepts(text), "{text:?}");
    }
}

macro_rules! integers {
    ($($type:ident $least:literal $most:literal $under:literal $over:literal)*) => {
        #[test]
        fn integers_go_from_end_to_end() {
            $(
                let values = [($type::MIN, $least), (0, "0"), (7, "7"), ($type::MAX, $most)];
                let same = [(7, " +7\n"), (7, "007"), (0, "-0"), (0, "+00"), (0, "-00")];
                let wrong = ["", " ", "+", "-", "7.0", "1e1", "0x7", "1_0", "１", "- 7", "--7"];
                check::<$type>(&values, &same, &wrong);
                check::<$type>(&[], &[], &[$under, $over]);
            )*
        }
    };
}

integers! {
    i8 "-128" "127" "-129" "128"
    i16 "-32768" "32767" "-32769" "32768"
    i32 "-2147483648" "2147483647" "-2147483649" "2147483648"
    i64 "-9223372036854775808" "9223372036854775807" "-9223372036854775809" "9223372036854775808"
    i128 "-170141183460469231731687303715884105728" "170141183460469231731687303715884105727"
        "-170141183460469231731687303715884105729" "170141183460469231731687303715884105728"
    u8 "0" "255" "-1" "256"
    u16 "0" "65535" "-1" "65536"
    u32 "0" "4294967295" "-1" "4294967296"
    u64 "0" "18446744073709551615" "-1" "18446744073709551616"
    u128 "0" "340282366920938463463374607431768211455"
        "-1" "340282366920938463463374607431768211456"
}

#[test]
fn numbers_are_written_as_short_as_they_can_be_read_back() {
    let wrong =
        ["", ".", "e5", "1e", "1,5", "inf", "Infinity", "nan", "NAN", "+NaN", "0x1p3", "1 2"];
    check::<f64>(
        &[
            (0.1, "0.1"),
            (-0.0, "-0"),
            (1e15, "1000000000000000"),
            (1e16, "1e16"),
            (1e-5, "0.00001"),
            (1e-6, "1e-6"),
            (f64::MAX, "1.7976931348623157e308"),
            (f64::MIN, "-1.7976931348623157e308"),
            (f64::MIN_POSITIVE, "2.2250738585072014e-308"),
            (5e-324, "5e-324"),
            (-1.25e-300, "-1.25e-300"),
            (f64::INFINITY, "INF"),
            (f64::NEG_INFINITY, "-INF"),
        ],
        &[
            (1.0, "1."),
            (0.5, ".5"),
            (1.0, "+1"),
            (1500.0, " 1.5E3 "),
            (0.0, "0e999999999"),
            (f64::INFINITY, "+INF"),
            (f64::INFINITY, "1e999"),
        ],
        &wrong,
    );
    check::<f32>(
        &[
            (0.1, "0.1"),
            (f32::MAX, "3.4028235e38"),
            (f32::MIN_POSITIVE, "1.1754944e-38"),
            (1e-45, "1e-45"),
            (16_777_216.0, "16777216"),
            (f32::INFINITY, "INF"),
            (f32::NEG_INFINITY, "-INF"),
        ],
        &[(1.0, "1.0"), (f32::INFINITY, "1e39")],
        &wrong,
    );
    assert!(f64::parse("NaN".into()).is_some_and(f64::is_nan));
    assert!(f32::parse(" NaN ".into()).is_some_and(f32::is_nan));
    f64::NAN.with_text(|it| assert_eq!(it, "NaN"));
    f32::NAN.with_text(|it| assert_eq!(it, "NaN"));
}

#[test]
fn truths_are_two_words_or_two_digits() {
    check(
        &[(true, "true"), (false, "false")],
        &[(true, "1"), (false, "0"), (true, "\t true ")],
        &["", "True", "yes", "no", "01", "t r u e"],
    );
}

#[test]
fn strings_and_characters_keep_their_space() {
    let texts = ["", " ", " a ", "\n", "ÄΩ🦀"].map(|it| (it.to_owned(), it));
    check(&texts, &[], &[]);
    check(&[('a', "a"), (' ', " "), ('🦀', "🦀"), ('<', "<")], &[], &["", "ab", " a", "e\u{301}"]);
}

#[test]
fn words_are_words() {
    check(
        &[(Color::Red, "red"), (Color::DarkGreen, "dark-green"), (Color::Blue, "BLUE")],
        &[(Color::Red, " red\n")],
        &["", "Red", "darkgreen", "blue", "red red"],
    );
    check(&[(Note("x".into()), "x")], &[(Note(" x".into()), " x")], &[]);
}

#[test]
fn a_text_is_the_same_in_an_attribute() {
    for text in ["INF", "-INF", "0.1", "1e300", "-0"] {
        let value = f64::parse(text.into()).expect(text);
        let both = format!("<both xmlns=\"urn:test\" a=\"{text}\"><b>{text}</b></both>");
        round(&Both { a: value, b: value }, &both);
    }
}
