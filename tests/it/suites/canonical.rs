//! Exclusive canonical XML without comments, of a whole element: what we claim of it is right byte
//! for byte.

use std::fs;
use std::path::Path;

use pumphouse::limits::XmlLimits;
use pumphouse::xml::{Kind, Profile, View, read};

use super::{Score, suites};

/// A document, the element that is written, and what is expected.
struct Vector {
    input: &'static str,
    /// Prefix and local name of the first element to write; empty for the root.
    element: (&'static str, &'static str),
    expected: &'static str,
}

const fn vector(
    input: &'static str,
    element: (&'static str, &'static str),
    expected: &'static str,
) -> Vector {
    Vector { input, element, expected }
}

/// The examples of the recommendation, the interoperability vectors whose node set is an element
/// with all that it uses, and those of inclusive form where the two are the same by definition:
/// a whole document without comments that declares nothing that it doesn't use.
const CLAIMED: [Vector; 9] = [
    vector(
        "c14n_w3c/excc14n_2_1_enveloped_input.xml",
        ("n1", "elem1"),
        "c14n_w3c/excc14n_2_1_enveloped_expected.xml",
    ),
    vector(
        "c14n_w3c/excc14n_2_1_standalone_input.xml",
        ("n1", "elem1"),
        "c14n_w3c/excc14n_2_1_standalone_expected.xml",
    ),
    vector("c14n_w3c/excc14n_2_2_input1.xml", ("n1", "elem2"), "c14n_w3c/excc14n_2_2_expected.xml"),
    vector("c14n_w3c/excc14n_2_2_input2.xml", ("n1", "elem2"), "c14n_w3c/excc14n_2_2_expected.xml"),
    vector(
        "test/c14n/exc-without-comments/merlin-c14n-two-09.xml",
        ("bar", "Something"),
        "result/c14n/exc-without-comments/merlin-c14n-two-09",
    ),
    vector(
        "test/c14n/exc-without-comments/merlin-c14n-two-10.xml",
        ("bar", "Something"),
        "result/c14n/exc-without-comments/merlin-c14n-two-10",
    ),
    vector(
        "test/c14n/exc-without-comments/merlin-c14n-two-11.xml",
        ("bar", "Something"),
        "result/c14n/exc-without-comments/merlin-c14n-two-11",
    ),
    vector(
        "test/c14n/exc-without-comments/test-2.xml",
        ("", "SignedInfo"),
        "result/c14n/exc-without-comments/test-2",
    ),
    vector("c14n_w3c/c14n10_3_2_input.xml", ("", ""), "c14n_w3c/c14n10_3_2_expected.xml"),
];

/// Documents with a DOCTYPE, which are refused before they have any form.
const REFUSED: [&str; 4] = [
    "c14n_w3c/c14n10_3_1_input.xml",
    "c14n_w3c/c14n10_3_3_input.xml",
    "test/c14n/exc-without-comments/test-0.xml",
    "test/c14n/exc-without-comments/test-1.xml",
];

#[test]
fn what_we_claim_of_canonical_form_is_right_byte_for_byte() {
    let Some(suites) = suites() else { return };
    claimed(&suites).assert_none_wrong(CLAIMED.len());
}

#[test]
fn a_document_with_a_doctype_has_no_canonical_form() {
    let Some(suites) = suites() else { return };
    for input in REFUSED {
        let text = fs::read(suites.join("c14n").join(input)).unwrap();
        let error = read(text, Profile::Document, &XmlLimits::FILE).unwrap_err();
        assert_eq!(error.kind, Kind::Doctype, "{input}");
    }
}

pub(super) fn claimed(suites: &Path) -> Score {
    let mut score = Score::default();
    let folder = suites.join("c14n");
    for Vector { input, element: (prefix, local), expected } in &CLAIMED {
        let text = fs::read_to_string(folder.join(input)).unwrap();
        let expected = fs::read_to_string(folder.join(expected)).unwrap();
        let document = read(&text, Profile::Document, &XmlLimits::FILE).unwrap();
        let found = match *local {
            "" => document.view(),
            _ => find(document.view(), &|it| it.prefix() == *prefix && it.local() == *local)
                .unwrap_or_else(|| panic!("{input}: no {prefix}:{local}")),
        };
        let got = String::from_utf8(found.canonical().to_vec()).unwrap();
        // Files end in a line end, or in none.
        let same = got == expected.trim_end_matches('\n');
        score.count(same.then_some(()).ok_or_else(|| format!("{input}:\n{got}\n{expected}")));
    }
    score
}

/// The first element, in document order, that is as wanted.
fn find<'a>(from: View<'a>, wanted: &dyn Fn(View<'a>) -> bool) -> Option<View<'a>> {
    if wanted(from) {
        return Some(from);
    }
    from.elements().find_map(|it| find(it, wanted))
}
