//! Tests of every error of an invalid payload. `errors.txt` lists the payloads with their errors.

use std::fmt::Write as _;
use std::fs;

use super::*;

/// Below each case, `errors.txt` has the broken rule and its path, the message, the expectation,
/// and the advice.
#[test]
fn every_way_to_be_wrong_has_its_sentence() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../wire/derive/tests/errors.txt");
    let golden = fs::read_to_string(path).expect(path);
    let mut told = String::new();
    for line in golden.lines().filter(|it| !it.starts_with("  ")) {
        told += line;
        told.push('\n');
        if let Some((name, text)) = line.split_once(": ").filter(|_| !line.starts_with('#')) {
            let error = refused_by(name, &text.replace("\\n", "\n"));
            let Error { rule, path, expected, .. } = &error;
            let end: &str = if expected.is_empty() { "nothing" } else { expected };
            let advice = error.advice();
            writeln!(told, "  {rule:?} in {path}\n  {error}\n  right: {end}\n  advice: {advice}")
                .expect("a String");
        }
    }
    if is_blessed() {
        return fs::write(path, &told).expect(path);
    }
    assert_eq!(told, golden, "BLESS=1 writes it anew");
}

#[expect(clippy::disallowed_methods, reason = "whoever runs the tests says so in this way")]
fn is_blessed() -> bool {
    std::env::var_os("BLESS").is_some()
}

fn refused_by(name: &str, text: &str) -> Error {
    match name {
        "Add" => refused::<Add>(text),
        "All" => refused::<All>(text),
        "Carry" => refused::<Carry>(text),
        "Mood" => refused::<Mood>(text),
        "Ping" => refused::<Ping>(text),
        "Said" => refused::<Said>(text),
        "Say" => refused::<Say>(text),
        "Tree" => refused::<Tree>(text),
        other => panic!("no payload is called {other}"),
    }
}

#[test]
fn the_nearest_name_is_told_apart_from_the_sentence() {
    let nearest = |text: &str| refused::<All>(text).nearest;
    let start = "<everything xmlns='urn:test' id=''><name/>";
    assert_eq!(nearest(&format!("{start}<note/><setp/></everything>")).as_deref(), Some("<step>"));
    assert_eq!(nearest("<everything xmlns='urn:test' Id=''/>").as_deref(), Some("id"));
    assert_eq!(nearest(&format!("{start}</everything>")), None);
}

#[test]
fn an_error_repeats_little_of_what_was_sent() {
    let long = "x".repeat(4_000);
    for text in [
        format!("<{long} xmlns='urn:test'/>"),
        format!("<add xmlns='urn:test'><{long}/></add>"),
        format!("<add xmlns='urn:test' {long}=''/>"),
        format!("<add xmlns='urn:test'>{long}</add>"),
        format!("<add xmlns='urn:test'><a>{long}</a></add>"),
        format!("<add xmlns='urn:test'><a {long}=''/></add>"),
        format!("<add xmlns='urn:test'><a><{long}/></a></add>"),
        format!("<add xmlns='urn:test'><a xmlns='{long}'/></add>"),
    ] {
        let error = refused::<Add>(&text);
        let most = error.message.len().max(error.path.len()).max(error.expected.len());
        assert!(most < 500, "{error}");
    }
}
