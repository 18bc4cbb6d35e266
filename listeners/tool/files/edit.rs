//! `edit`: replaces a text in a file. The text must be in the file exactly once.

use cap_std::fs::Metadata;

use super::super::text::{cut, known};
use super::diff::diff;
use super::refuse::{failed, refused, too_large};
use super::root::Root;
use super::write::Target;
use super::{Edit, Edited, Reason, Refused};

/// The maximum number of line numbers that a refusal lists.
const PLACES_MAX: usize = 10;

/// Replaces the text. The name of the temporary file contains the random number `chance`.
pub(super) fn edit(root: &Root, edit: &Edit, chance: u64) -> Result<Edited, Refused> {
    let _one = root.writing();
    let path = edit.path.as_str();
    let (text, read) = root.text(path)?;
    let (at, old, new) = place(&text, edit)?;
    let after = [&text[..at], &new, &text[at + old.len()..]].concat();
    let most = root.limits.file_bytes_max;
    if after.len() > most {
        let what = format!("{} would have {} bytes", cut(path), after.len());
        return Err(too_large(path, &what, "file_bytes_max", most));
    }
    let target = Target::find(root, path)?;
    target.replace(after.as_bytes(), chance, |target| {
        let now = target.now().map_err(|error| failed(path, &error))?;
        match is_same(&read, &now) {
            true => Ok(()),
            false => {
                let text = format!("{} was changed meanwhile; read it again", cut(path));
                Err(refused(Reason::Changed, path, text))
            }
        }
    })?;
    let shown = diff(&text, &after, at, root.limits.diff_bytes_max);
    Ok(Edited { path: cut(path), diff: shown.chars().map(known).collect() })
}

/// Returns whether a file seems unchanged since it was read. The file's length and the time of its
/// last change must be equal.
fn is_same(read: &Metadata, now: &Metadata) -> bool {
    read.len() == now.len() && read.modified().ok() == now.modified().ok() && now.is_file()
}

/// Finds the only occurrence of the old text. Returns its position, the old text and the new text.
/// In a file with Windows line ends, the old text and the new text get Windows line ends, too. If
/// only a part of the line ends are Windows line ends, this holds only for an old text that isn't
/// found otherwise.
fn place(text: &str, edit: &Edit) -> Result<(usize, String, String), Refused> {
    let path = edit.path.as_str();
    if edit.old.is_empty() {
        let text = "`old` is empty; `write` makes a file or replaces all of it";
        return Err(refused(Reason::NotFound, path, text));
    }
    if edit.old == edit.new {
        return Err(refused(Reason::Unchanged, path, "`old` and `new` are the same"));
    }
    let (mut old, mut new) = (edit.old.clone(), edit.new.clone());
    let has_windows_ends = text.contains("\r\n");
    let is_windows = has_windows_ends && text.matches('\n').count() == text.matches("\r\n").count();
    if !old.contains('\r') && (is_windows || has_windows_ends && !text.contains(&old)) {
        let windows = |it: &str| it.replace("\r\n", "\n").replace('\n', "\r\n");
        (old, new) = (windows(&old), windows(&new));
    }
    let places = places(text, &old);
    match places[..] {
        [one] => Ok((one, old, new)),
        [] => Err(absent(text, edit)),
        _ => {
            let count = places.len();
            let lines = places.into_iter().take(PLACES_MAX).map(|at| line_of(text, at));
            let line: Vec<u64> = lines.collect();
            let listed: Vec<String> = line.iter().map(ToString::to_string).collect();
            let more = if count > line.len() { " and more" } else { "" };
            let text = format!(
                "this text stands {} in {}, in the lines {}{more}; give more of what is around \
                 the one that is meant",
                times(count),
                cut(path),
                listed.join(", "),
            );
            Err(Refused { line, ..refused(Reason::Ambiguous, path, text) })
        }
    }
}

/// Returns the positions where `wanted` begins in `text`. Occurrences may overlap.
fn places(text: &str, wanted: &str) -> Vec<usize> {
    let mut places = Vec::new();
    let mut from = 0;
    while let Some(at) = text.get(from..).and_then(|it| it.find(wanted)) {
        places.push(from + at);
        from += at + wanted.chars().next().map_or(1, char::len_utf8);
    }
    places
}

/// Makes the refusal for a text that isn't in the file. If the file has the text's first non-blank
/// line, even with other white space, the refusal names this line.
fn absent(text: &str, edit: &Edit) -> Refused {
    let path = cut(&edit.path);
    let bare = |it: &str| it.split_whitespace().collect::<Vec<_>>().join(" ");
    let first = edit.old.lines().map(bare).find(|it| !it.is_empty()).unwrap_or_default();
    let near = (1_u64..).zip(text.lines()).find(|(_, line)| bare(line) == first);
    let mut refusal =
        refused(Reason::NotFound, &edit.path, format!("this text doesn't stand in {path}"));
    if let Some((line, _)) = near.filter(|_| !first.is_empty()) {
        refusal.line = vec![line];
        refusal.text.push_str(&format!(
            "; line {line} is like its first one, but white space or what follows is different: \
             read the file, and copy it exactly"
        ));
    } else {
        refusal.text.push_str("; read the file, and copy it exactly");
    }
    refusal
}

fn times(count: usize) -> String {
    match count {
        2 => "twice".to_owned(),
        _ => format!("{count} times"),
    }
}

/// Returns the number of the line at a position, counted from 1.
fn line_of(text: &str, at: usize) -> u64 {
    text[..at].bytes().filter(|it| *it == b'\n').count() as u64 + 1
}
