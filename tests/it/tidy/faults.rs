//! Every fault has a number. Every number has a page, which ends in the advice that is sent with
//! the fault.

/// `source` has the table of codes; a page is a file's name and its text.
pub(super) fn complaints(source: &str, pages: &[(String, String)]) -> Vec<String> {
    let codes = codes(source);
    let mut complaints = Vec::new();
    if codes.is_empty() {
        complaints.push("src/wire/fault.rs: no code such as `Name = 1, \"Advice.\"`".to_owned());
    }
    for (at, (code, advice)) in codes.iter().enumerate() {
        if codes[..at].iter().any(|(it, _)| it == code) {
            complaints.push(format!("src/wire/fault.rs: {code} twice"));
        }
        match pages.iter().find(|(name, _)| name.strip_suffix(".md") == Some(code)) {
            None => complaints.push(format!("docs/faults/{code}.md: no such page")),
            Some((_, text)) => complaints.extend(page(code, advice, text)),
        }
    }
    for (name, _) in pages.iter().filter(|(name, _)| name != "README.md") {
        if !codes.iter().any(|(code, _)| name.strip_suffix(".md") == Some(code)) {
            complaints.push(format!("docs/faults/{name}: no fault has this number"));
        }
    }
    complaints
}

fn page(code: &str, advice: &str, text: &str) -> Option<String> {
    let plain = |text: &str| text.replace('`', "");
    let last = text.lines().rfind(|it| !it.trim().is_empty()).unwrap_or("");
    if !text.starts_with(&format!("# {code}")) {
        Some(format!("docs/faults/{code}.md: a page begins with `# {code}`"))
    } else if plain(last.trim()) != plain(advice) {
        Some(format!("docs/faults/{code}.md: a page ends in the fault's advice: {advice}"))
    } else {
        None
    }
}

/// Every `Name = 7, "Advice."` as `P0007` and its advice.
fn codes(source: &str) -> Vec<(String, String)> {
    let codes = source.split(" = ").skip(1).filter_map(|rest| {
        let (number, rest) = rest.split_once(',')?;
        let number: u16 = number.parse().ok()?;
        let quoted = rest.trim_start().strip_prefix('"')?.replace("\\\"", "\u{0}");
        let (advice, _) = quoted.split_once('"')?;
        Some((format!("P{number:04}"), advice.replace('\u{0}', "\"")))
    });
    codes.collect()
}

#[test]
fn codes_and_pages_go_in_pairs() {
    let check = |source: &str, pages: &[(&str, &str)], expected: &[&str]| {
        let pages: Vec<_> =
            pages.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
        assert_eq!(complaints(source, &pages), expected);
    };
    let table = "/// Bad.\nBad = 1, \"Send <a b=\\\"c\\\"/>.\", retry false;\n\
                 Worse = 2,\n    \"Don't.\", retry true;\nlet x = 3;";
    let (bad, worse) = ("# P0001: bad\n\nSo.\n\nSend `<a b=\"c\"/>`.\n", "# P0002\n\nDon't.\n");
    let readme = ("README.md", "");
    check(table, &[("P0001.md", bad), ("P0002.md", worse), readme], &[]);
    check("", &[], &["src/wire/fault.rs: no code such as `Name = 1, \"Advice.\"`"]);
    check(table, &[("P0001.md", bad)], &["docs/faults/P0002.md: no such page"]);
    check(
        &format!("{table} Again = 2, \"Don't.\""),
        &[("P0001.md", worse), ("P0002.md", "# P0002\n\nDo.\n"), ("P0009.md", bad)],
        &[
            "docs/faults/P0001.md: a page begins with `# P0001`",
            "docs/faults/P0002.md: a page ends in the fault's advice: Don't.",
            "src/wire/fault.rs: P0002 twice",
            "docs/faults/P0002.md: a page ends in the fault's advice: Don't.",
            "docs/faults/P0009.md: no fault has this number",
        ],
    );
}
