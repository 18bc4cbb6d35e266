//! The shape of a file: a comment at its head, and limits on the lengths of lines, functions and
//! files.

use super::code::{File, closing, identifier};

/// Characters of a line.
const LINE_MAX: usize = 100;
/// Lines of a file.
const FILE_MAX: usize = 600;
/// Lines of a function, from its name to its last brace.
const FUNCTION_MAX: usize = 70;

pub(super) fn complaints(file: &File) -> Vec<String> {
    let mut complaints = Vec::new();
    if !file.text.starts_with("//! ") {
        complaints.push(file.complaint(0, "no head: begin with `//! What it is, in a line.`"));
    }
    let count = file.text.lines().count();
    if count > FILE_MAX {
        complaints.push(file.complaint(0, &format!("{count} lines; a file has {FILE_MAX}")));
    }
    if !file.text.ends_with('\n') || file.text.ends_with("\n\n") {
        let last = file.text.trim_end().len();
        complaints.push(file.complaint(last, "a file ends in one line end"));
    }
    for (line, text) in file.text.split('\n').enumerate() {
        let wrong = match () {
            () if text.chars().count() > LINE_MAX => format!("over {LINE_MAX} characters"),
            () if text.contains('\t') => "a tab".to_owned(),
            () if text.ends_with([' ', '\r']) => "a space at the end".to_owned(),
            () => continue,
        };
        complaints.push(format!("{}:{}: {wrong}", file.path, line + 1));
    }
    complaints.extend(functions(file).filter(|it| it.2 > FUNCTION_MAX).map(|(at, name, lines)| {
        file.complaint(at, &format!("`{name}` has {lines} lines; a function has {FUNCTION_MAX}"))
    }));
    complaints
}

/// Every function with a body: its place, its name, its lines.
fn functions(file: &File) -> impl Iterator<Item = (usize, &str, usize)> {
    file.words("fn").filter_map(|at| {
        let name = identifier(file.code[at + 2..].trim_start());
        if name.is_empty() {
            return None;
        }
        let open = body(&file.code, at)?;
        let lines = file.code[at..closing(&file.code, open)].matches('\n').count() + 1;
        Some((at, name, lines))
    })
}

/// Where the body of the function at `at` opens; none if it is declared only.
fn body(code: &str, at: usize) -> Option<usize> {
    let mut depth = 0;
    for (offset, it) in code[at..].bytes().enumerate() {
        match it {
            b'(' | b'[' => depth += 1,
            b')' | b']' => depth -= 1,
            b'{' if depth == 0 => return Some(at + offset),
            b';' if depth == 0 => return None,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[&str]) {
        assert_eq!(complaints(&File::new("a.rs", text)), expected, "{text}");
    }

    #[test]
    fn a_file_opens_with_its_head() {
        check("//! A file.\n", &[]);
        check(
            "",
            &[
                "a.rs:1: no head: begin with `//! What it is, in a line.`",
                "a.rs:1: a file ends in one line end",
            ],
        );
        check("// A file.\n", &["a.rs:1: no head: begin with `//! What it is, in a line.`"]);
        check("//! A file.", &["a.rs:1: a file ends in one line end"]);
        check("//! A file.\n\n", &["a.rs:1: a file ends in one line end"]);
    }

    #[test]
    fn lines_are_short_and_clean() {
        check(&format!("//! {}\n", "é".repeat(96)), &[]);
        check(&format!("//! {}\n", "é".repeat(97)), &["a.rs:1: over 100 characters"]);
        check("//! A file.\n\tlet a = 1;\n", &["a.rs:2: a tab"]);
        check("//! A file.\nlet a = 1; \n", &["a.rs:2: a space at the end"]);
        check("//! A file.\r\n", &["a.rs:1: a space at the end"]);
    }

    #[test]
    fn files_and_functions_have_a_size() {
        check(&format!("//! A file.\n{}", "a();\n".repeat(599)), &[]);
        let long = format!("//! A file.\n{}", "a();\n".repeat(600));
        check(&long, &["a.rs:1: 601 lines; a file has 600"]);
        let function = |lines: usize| {
            let body = "    \"}\"; // }\n".repeat(lines - 2);
            format!("//! A file.\nfn b(it: [u8; 2]);\nasync fn a() -> fn() {{\n{body}}}\n")
        };
        check(&function(70), &[]);
        check(&function(71), &["a.rs:3: `a` has 71 lines; a function has 70"]);
    }
}
