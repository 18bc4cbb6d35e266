//! Checks docs/security.md: the tests that hold its claims exist, and its claims about the supply
//! chain are true.

use std::path::Path;

use crate::program::Scene;

/// Claims that the page makes at the least: a table that isn't read any more claims nothing.
const CLAIMS_MIN: usize = 40;

pub(crate) fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The rows of a page's tables whose last column is headed `test`, by their cells.
fn claims(page: &str) -> Vec<Vec<&str>> {
    let mut claims = Vec::new();
    let mut is_claims = false;
    for line in page.lines() {
        let Some(row) = line.strip_prefix("| ").and_then(|it| it.strip_suffix(" |")) else {
            is_claims = false;
            continue;
        };
        let cells: Vec<&str> = row.split(" | ").collect();
        match cells.last() {
            Some(&"test") => is_claims = true,
            _ if is_claims && !row.starts_with("---") => claims.push(cells),
            _ => {}
        }
    }
    claims
}

/// The links of a cell: what each says, and where it leads.
fn links(cell: &str) -> Vec<(&str, &str)> {
    let parts = cell.split(", ");
    let link = |it| str::strip_prefix(it, "[")?.strip_suffix(')')?.split_once("](");
    parts.filter_map(link).collect()
}

/// Whether a file has a test of that name, and no other function that is mistaken for one.
pub(crate) fn has_test(text: &str, name: &str) -> bool {
    let called = format!("fn {name}(");
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    lines.iter().enumerate().filter(|(_, it)| it.contains(&called)).any(|(at, _)| {
        let before = lines[..at].iter().rev().take_while(|it| it.starts_with("#["));
        before.into_iter().any(|it| it.starts_with("#[test]") || it.starts_with("#[tokio::test"))
    })
}

#[test]
fn every_claim_names_tests_that_exist() {
    let docs = root().join("docs");
    let page = read(&docs.join("security.md"));
    let claims = claims(&page);
    assert!(claims.len() >= CLAIMS_MIN, "{} claims", claims.len());
    for claim in claims {
        let [what, tests] = claim[..] else { panic!("a claim is two cells: {claim:?}") };
        let tests = links(tests);
        assert!(!tests.is_empty(), "no test holds: {what}");
        for (name, file) in tests {
            let text = read(&docs.join(file));
            assert!(has_test(&text, name), "{file} has no test {name}, which holds: {what}");
        }
    }
}

#[test]
fn a_claim_without_its_test_is_noticed() {
    let text = "#[test]\nfn there_is() {}\n\nfn no_test() {}\n#[tokio::test(flavor = \"x\")]\n\
                #[cfg(unix)]\nasync fn also() {}\n";
    let found = ["there_is", "no_test", "also", "nowhere"].map(|it| has_test(text, it));
    assert_eq!(found, [true, false, true, false]);
    let page = "| claim | test |\n| --- | --- |\n| A. | [a](x.rs), [b](y.rs) |\n\n\
                | who | what |\n| b | c |\n";
    assert_eq!(claims(page), [["A.", "[a](x.rs), [b](y.rs)"]]);
    assert_eq!(links("[a](x.rs), [b](y.rs)"), [("a", "x.rs"), ("b", "y.rs")]);
}

/// The folders of the workspace's crates.
fn members() -> Vec<String> {
    let manifest = read(&root().join("Cargo.toml"));
    let (_, rest) = manifest.split_once("\nmembers = [").unwrap();
    let (members, _) = rest.split_once(']').unwrap();
    let members = members.split(',').map(|it| it.trim().trim_matches('"').to_owned());
    members.filter(|it| !it.is_empty()).chain([".".to_owned()]).collect()
}

#[test]
fn no_code_of_ours_is_unsafe() {
    let manifest = read(&root().join("Cargo.toml"));
    assert!(manifest.contains("\nunsafe_code = \"forbid\"\n"));
    let members = members();
    for folder in &members {
        let manifest = root().join(folder).join("Cargo.toml");
        let (text, manifest) = (read(&manifest), manifest.display());
        assert!(text.contains("[lints]\nworkspace = true"), "{manifest} has lints of its own");
    }
}

#[test]
fn code_comes_from_one_registry_and_is_what_it_was() {
    const REGISTRY: &str = "source = \"registry+https://github.com/rust-lang/crates.io-index\"";
    let lock = read(&root().join("Cargo.lock"));
    for package in lock.split("[[package]]\n").skip(1) {
        match package.lines().find(|it| it.starts_with("source = ")) {
            Some(source) => {
                assert_eq!(source, REGISTRY, "{package}");
                assert!(package.contains("\nchecksum = \""), "{package}");
            }
            None => assert!(package.starts_with("name = \"pumphouse"), "{package}"),
        }
    }
}

#[test]
fn a_server_leaves_no_core_dump() {
    let scene = Scene::new();
    scene.write("organism.yaml", "listeners: [{use: calculate}]");
    let server = scene.serve(&[]);
    let limits = read(Path::new(&format!("/proc/{}/limits", server.id())));
    let core = limits.lines().find(|it| it.starts_with("Max core file size")).unwrap();
    assert_eq!(core.split_whitespace().nth(4), Some("0"), "{core}");
}
