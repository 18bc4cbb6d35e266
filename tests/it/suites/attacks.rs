//! Documents made to hurt a parser. Each gets the right verdict, in little memory, and in any
//! chunks.

use pumphouse::limits::XmlLimits;
use pumphouse::xml::{Profile, read};

use super::stream::{assert_same_in_any_chunks, is_accepted};
use super::xmlconf::assert_stable;
use super::{Case, Score, cases, suites};

/// What one document may cost while it is read.
const MEMORY_MAX: u64 = 16 << 20;

#[test]
fn every_attack_gets_its_verdict() {
    let Some(suites) = suites() else { return };
    for limits in [XmlLimits::DOOR, XmlLimits::INSIDE, XmlLimits::FILE] {
        verdicts(&cases(&suites, "xml-attacks/index.jsonl"), &limits).assert_none_wrong(670);
    }
}

#[test]
fn an_attack_means_the_same_in_any_chunks() {
    let Some(suites) = suites() else { return };
    for case in cases(&suites, "xml-attacks/index.jsonl") {
        let (name, bytes) = (case.file(), case.bytes());
        let arrived = assert_same_in_any_chunks(name, &bytes, XmlLimits::DOOR);
        let whole = read(&bytes, Profile::Wire, &XmlLimits::DOOR).is_ok();
        let stream = is_accepted(&arrived, Profile::Wire, &XmlLimits::DOOR);
        assert_eq!(stream, whole, "{name}: as a stream, as a whole: {arrived:?}");
    }
}

pub(super) fn verdicts(cases: &[Case], limits: &XmlLimits) -> Score {
    let mut score = Score::default();
    for case in cases {
        let bytes = case.bytes();
        let mut got = None;
        let memory = allocation_counter::measure(|| {
            got = Some(read(&bytes, Profile::Document, limits));
        });
        let got = got.unwrap();
        score.judge(case.file(), case.text("expect_hardened"), got.as_ref().map(|_| ()));
        assert!(memory.bytes_max < MEMORY_MAX, "{}: {memory:?}", case.file());
        if let Ok(element) = got {
            assert_stable(case.file(), &element);
        }
    }
    score
}
