//! Tests of XSD's patterns: which texts a pattern matches, and which texts aren't valid patterns.

use regex::Regex;

use crate::schema::pattern::{Wrong, example, matches, parse, translate};

fn check(pattern: &str, right: &[&str], wrong: &[&str]) {
    let hir = parse(pattern).unwrap_or_else(|it| panic!("{pattern}: {it:?}"));
    let regex = Regex::new(&translate(pattern).expect(pattern)).expect(pattern);
    for (texts, expected) in [(right, true), (wrong, false)] {
        for text in texts {
            assert_eq!(regex.is_match(text), expected, "{pattern} on {text:?}");
            assert_eq!(matches(&hir, text), expected, "{pattern} on {text:?}, without a matcher");
        }
    }
    let text = example(&hir, 0, usize::MAX).unwrap_or_else(|| panic!("{pattern} has an example"));
    assert!(regex.is_match(&text), "{pattern}: {text:?}");
}

#[test]
fn a_pattern_matches_the_whole_text() {
    check("a|bc", &["a", "bc"], &["", "ab", "abc", "xa", "a\n"]);
    check("", &[""], &["a"]);
    check("a*", &["", "aaa"], &["b", "ab"]);
    check("(ab)+c?", &["ab", "ababc"], &["", "c", "abcc"]);
    check("a{2}b{1,}c{0,2}", &["aab", "aabbbcc"], &["ab", "aabccc"]);
    check("a||b", &["a", "", "b"], &["ab"]);
}

#[test]
fn a_dot_is_anything_within_a_line() {
    check(".", &["a", "🦀", " ", "\u{85}"], &["", "\n", "\r", "ab"]);
}

#[test]
fn letters_behind_a_backslash_are_sorts_of_characters() {
    check(r"\d", &["1", "٣"], &["a", ""]);
    check(r"\D", &["a"], &["1", "٣"]);
    check(r"\s+", &[" \t\n\r"], &["\u{A0}", ""]);
    check(r"\S", &["a", "\u{A0}"], &[" "]);
    check(r"\w+", &["aß1", "+"], &["a-b", " ", "_"]);
    check(r"\W", &["-", " ", "_"], &["a", "+"]);
    check(r"\i\c*", &["a", "_a-1.b", "a:b", "é·"], &["1a", "-", ""]);
    check(r"\I\C", &["1 "], &["a ", "1a"]);
    check(r"\p{Lu}\p{L}*", &["Ab", "Ä"], &["ab"]);
    check(r"\P{N}", &["a"], &["1"]);
    check(r"\n\r\t\\\|\.\?\*\+\(\)\{\}\-\[\]\^", &["\n\r\t\\|.?*+(){}-[]^"], &[""]);
}

#[test]
fn brackets_hold_ranges_and_take_away() {
    check("[a-c]", &["a", "c"], &["d", "-"]);
    check("[-a]", &["-", "a"], &["b"]);
    check("[a-]", &["-", "a"], &["b"]);
    check("[^a-c]", &["d"], &["b"]);
    check("[a-z-[aeiou]]", &["b"], &["a", "e"]);
    check("[^a-z-[0-9]]", &["A"], &["a", "5"]);
    check(r"[\w-[\d_]]+", &["ab"], &["a1"]);
    check("[a-z-[b-y-[m]]]", &["a", "z", "m"], &["b", "y"]);
    check(r"[\d.]+", &["1.2"], &["a"]);
    check(r"[\-\]\\^&~]+", &["-]\\^&~"], &["a"]);
    check("[a&&b~~c]+", &["a&b~c"], &["d"]);
    check("[$]", &["$"], &[""]);
    check(r"[\n-\r]", &["\n", "\u{B}", "\r"], &["\t"]);
    check(r"[+\-]", &["+", "-"], &[","]);
}

#[test]
fn what_is_no_pattern_is_told() {
    for (pattern, message) in [
        ("(a", "a `(` is not closed"),
        ("a)", "a `)` closes nothing"),
        ("[a", "a `[` is not closed"),
        ("[]", "the brackets are empty"),
        ("[z-a]", "`z-a` is no range"),
        ("[a[b]]", "`[` stands in brackets"),
        ("[a-[b]c]", "something follows what is taken away"),
        ("*a", "`*` stands where there is nothing for it"),
        ("a**", "`*` repeats what is repeated already"),
        ("a+?", "`?` repeats what is repeated already"),
        ("a{2,1}", "this says no number of times"),
        ("a{,2}", "this says no number of times"),
        ("a{9999}", "this says no number of times"),
        ("^a$", "a pattern matches the whole text without `^`"),
        ("a$", "a pattern matches the whole text without `$`"),
        (r"\b", r"XSD has no `\b`"),
        (r"\1", r"XSD has no `\1`"),
        ("a\\", "a `\\` ends the pattern"),
        (r"\p{Xx}", "Unicode has no category `Xx`"),
        (r"\p{IsGreek}", "blocks of Unicode such as `IsGreek` are not known"),
        ("(?i)a", "XSD knows groups, and no `(?` of another kind"),
        ("((a{1000}){1000}){1000}", "this pattern takes too much to match"),
        (&"(".repeat(100), "too many groups in groups"),
        (&"[a-".repeat(100), "too many brackets in brackets"),
    ] {
        let told = parse(pattern).map_err(|Wrong { message, .. }| message);
        assert_eq!(told, Err(message.to_owned()), "{pattern}");
    }
}

#[test]
fn an_example_has_the_length_it_should() {
    for (pattern, least, most, text) in [
        ("[a-z]+", 0, 9, Some("a")),
        ("[a-z]*", 3, 3, Some("aaa")),
        ("a{2}|b{5}", 5, 5, Some("bbbbb")),
        ("[A-Z]{3}-[0-9]{4}", 0, 99, Some("AAA-1111")),
        ("a{2}", 3, 9, None),
        ("[a-z]+@[a-z]+[.][a-z]{2,}", 0, 99, Some("a@a.aa")),
        (r"\p{Lo}", 0, 9, Some("ª")),
        (r"[\n]", 0, 9, Some("\n")),
        ("[\u{0}]", 0, 9, None),
    ] {
        let hir = parse(pattern).expect(pattern);
        assert_eq!(example(&hir, least, most).as_deref(), text, "{pattern}");
    }
}
