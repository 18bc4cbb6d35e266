//! The W3C's XML conformance suite: the verdict on each document, and the stability of canonical
//! outputs.

use pumphouse::limits::XmlLimits;
use pumphouse::xml::{Element, Profile, Writer, read};

use super::{Case, Score, cases, suites};

/// Documents that the index expects to be refused for a DOCTYPE, and which have none: the word
/// stands in a comment, a processing instruction, a CDATA section. Two other parsers accept them,
/// and by the suite's own words they are well-formed; so do we.
pub(super) const NO_DOCTYPE: [&str; 3] =
    ["xmlconf/oasis/p15pass1.xml", "xmlconf/oasis/p16pass1.xml", "xmlconf/oasis/p18pass1.xml"];

#[test]
fn every_document_of_xmlconf_gets_its_verdict() {
    let Some(suites) = suites() else { return };
    verdicts(&cases(&suites, "xmlconf/index.jsonl")).assert_none_wrong(1_300);
}

#[test]
fn documents_with_doctype_only_in_a_comment_are_accepted() {
    let Some(suites) = suites() else { return };
    let cases = cases(&suites, "xmlconf/index.jsonl");
    let found: Vec<&Case> = cases.iter().filter(|it| is_excepted(it)).collect();
    assert_eq!(found.len(), NO_DOCTYPE.len());
    for case in found {
        assert_eq!(case.text("expect_nonvalidating"), "accept");
        read(case.bytes(), Profile::Document, &XmlLimits::FILE).unwrap();
    }
}

#[test]
fn canonical_outputs_are_accepted_and_stable() {
    let Some(suites) = suites() else { return };
    outputs(&cases(&suites, "xmlconf/canonical_outputs.jsonl")).assert_none_wrong(174);
}

pub(super) fn verdicts(cases: &[Case]) -> Score {
    let mut score = Score::default();
    for case in cases.iter().filter(|it| !is_excepted(it)) {
        let got = read(case.bytes(), Profile::Document, &XmlLimits::FILE);
        let expected = case.text("expect_no_dtd");
        score.judge(case.file(), expected, got.as_ref().map(|_| ()));
        if let Ok(element) = got {
            assert_stable(case.file(), &element);
        }
    }
    score
}

pub(super) fn outputs(cases: &[Case]) -> Score {
    let mut score = Score::default();
    for case in cases {
        let expected = match case.text("expect") {
            "accept" => "accept",
            _ => "either",
        };
        let got = read(case.bytes(), Profile::Document, &XmlLimits::FILE);
        score.judge(case.file(), expected, got.as_ref().map(|_| ()));
        if let Ok(element) = got {
            assert_stable(case.file(), &element);
        }
    }
    score
}

fn is_excepted(case: &Case) -> bool {
    NO_DOCTYPE.contains(&case.file())
}

impl Score {
    pub(super) fn judge(
        &mut self,
        file: &str,
        expected: &str,
        got: Result<(), &pumphouse::xml::Error>,
    ) {
        let verdict = if got.is_ok() { "accept" } else { "reject" };
        match expected {
            "either" => self.either += 1,
            _ if expected == verdict => self.right += 1,
            _ => {
                let why = got.err().map(ToString::to_string).unwrap_or_default();
                self.wrong.push(format!("{file}: {verdict}, not {expected}: {why}"));
            }
        }
    }
}

/// Read, write, read, write: the same bytes, whichever way they are written.
pub(super) fn assert_stable(file: &str, element: &Element) {
    let canonical = element.canonical();
    let again = read(&canonical, Profile::Wire, &XmlLimits::FILE);
    let again = again.unwrap_or_else(|error| panic!("{file}: its canonical form: {error}"));
    assert_eq!(again.canonical(), canonical, "{file}");
    let mut pieces = Vec::new();
    element.view().canonical_pieces(|piece| pieces.extend_from_slice(piece));
    assert!(pieces == canonical, "{file}: pieces differ");
    let mut writer = Writer::new(XmlLimits::FILE);
    writer.element(element.view());
    let written = writer.finish().unwrap_or_else(|error| panic!("{file}: written: {error}"));
    assert_eq!(written.canonical(), canonical, "{file}: written");
    assert_eq!(Element::from_canonical(canonical.clone()).unwrap().canonical(), canonical);
}
