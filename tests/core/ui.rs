//! The compiler's messages about invalid payloads and listeners.

/// One test, for every case is a crate of its own. `TRYBUILD=overwrite` writes what is said anew.
#[test]
fn mistakes_are_explained() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("../../tests/ui/payload/*.rs");
    cases.compile_fail("../../tests/ui/listener/*.rs");
}
