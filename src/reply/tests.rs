//! Tests of parts that are easier to test alone than through the parser.

use super::place::{self, START};
use super::tag::{entities, inside};
use super::{Kind, Markup};
use crate::xml::Place;

#[test]
fn places_are_counted_in_characters() {
    let check = |text: &str, line: u32, column: u32| {
        let offset = text.len();
        assert_eq!(place::behind(START, text), Place { line, column, offset }, "{text:?}");
    };
    check("", 1, 1);
    check("aé", 1, 3);
    check("a\n\néb", 3, 3);
    check("a\r\n", 2, 1);
    // These texts are long enough to be counted by searching.
    check(&format!("é\n{}", "é".repeat(15)), 2, 16);
    check(&"é".repeat(600), 1, 601);
}

#[test]
fn a_snippet_has_forty_characters_on_either_side() {
    let text = format!("{}|{}", "é".repeat(50), "ü".repeat(50));
    let snippet = place::snippet(&text, 100);
    assert_eq!(snippet, format!("{}|{}", "é".repeat(40), "ü".repeat(39)));
    assert_eq!(place::snippet("ab", 9), "ab");
}

#[test]
fn attributes_are_read_leniently() {
    let check = |tag: &str, expected: &[(&str, &str)], repairs: usize| {
        let found = inside(tag);
        let pairs: Vec<(&str, &str)> =
            found.attributes.iter().map(|it| (&*it.name, &*it.value)).collect();
        assert_eq!((&*pairs, found.repairs.len()), (expected, repairs), "{tag}");
    };
    check("<a>", &[], 0);
    check("<a/>", &[], 0);
    check("<a b = 'c>d' e=\"f\"g='h'/>", &[("b", "c>d"), ("e", "f"), ("g", "h")], 0);
    check("<a b=c/>", &[("b", "c")], 1);
    check("<a b=c/d e>", &[("b", "c/d"), ("e", "")], 2);
    check("<a b=[1, 2] c={\"]\": 1}>", &[("b", "[1, 2]"), ("c", "{\"]\": 1}")], 2);
    check("<a = 'b'>", &[("'b'", "")], 2);
}

#[test]
fn entities_are_the_five_and_numbers() {
    let mut repairs = Vec::new();
    let text = entities("&amp;&lt;&gt;&quot;&apos;&#65;&#x42;", &mut repairs);
    assert_eq!((&*text, repairs.len()), ("&<>\"'AB", 0));
    assert_eq!(entities("&nbsp; & &#0; &#xD800;", &mut repairs), "&nbsp; & &#0; &#xD800;");
    assert_eq!(repairs.len(), 4);
}

#[test]
fn a_name_has_one_meaning() {
    let markup = Markup::default().peer("response").root("me").peer("me").output("shell");
    assert_eq!(markup.kind("response"), Some(Kind::Response));
    assert_eq!(markup.kind("me"), Some(Kind::Root));
    assert_eq!(markup.kind("shell"), Some(Kind::Output));
    assert_eq!(markup.kind("m"), None);
}
