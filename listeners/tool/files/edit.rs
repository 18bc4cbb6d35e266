//! `edit`: replaces a text in a file. The text must be in the file exactly once.

use std::ops::Range;

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
    let (Range { start: at, end }, new) = place(&text, edit)?;
    let after = [&text[..at], &new, &text[end..]].concat();
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

/// Finds the only occurrence of the old text. Returns its place, and the new text with the file's
/// line ends. Windows line ends and others count as equal, unless the old text has Windows line
/// ends itself and stands in the file exactly so.
fn place(text: &str, edit: &Edit) -> Result<(Range<usize>, String), Refused> {
    let path = edit.path.as_str();
    if edit.old.is_empty() {
        let text = "`old` is empty; `write` makes a file or replaces all of it";
        return Err(refused(Reason::NotFound, path, text));
    }
    if edit.old == edit.new {
        return Err(refused(Reason::Unchanged, path, "`old` and `new` are the same"));
    }
    let is_exact = edit.old.contains('\r') && text.contains(&edit.old);
    let places: Vec<Range<usize>> = match is_exact {
        true => places(text, &edit.old).map(|at| at..at + edit.old.len()).collect(),
        false => {
            let (flat, old) = (text.replace("\r\n", "\n"), edit.old.replace("\r\n", "\n"));
            let windows = windows_ends(text);
            let place = |at| unflat(at, &windows)..unflat(at + old.len(), &windows);
            places(&flat, &old).map(place).collect()
        }
    };
    match &places[..] {
        [one] if is_exact => Ok((one.clone(), edit.new.clone())),
        [one] => {
            let new = with_ends_of(text, one, &edit.new.replace("\r\n", "\n"));
            match new == text[one.clone()] {
                true => Err(refused(Reason::Unchanged, path, "`old` and `new` are the same")),
                false => Ok((one.clone(), new)),
            }
        }
        [] => Err(absent(text, edit)),
        _ => {
            let count = places.len();
            let lines = places.into_iter().take(PLACES_MAX).map(|it| line_of(text, it.start));
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
fn places(text: &str, wanted: &str) -> impl Iterator<Item = usize> {
    let step = wanted.chars().next().map_or(1, char::len_utf8);
    let mut from = 0;
    std::iter::from_fn(move || {
        let at = from + text.get(from..)?.find(wanted)?;
        from = at + step;
        Some(at)
    })
}

/// Returns the positions of the Windows line ends, in the text that has none of them any more.
fn windows_ends(text: &str) -> Vec<usize> {
    text.match_indices("\r\n").enumerate().map(|(before, (at, _))| at - before).collect()
}

/// Converts a position in the text without Windows line ends to that in the file's text.
fn unflat(at: usize, windows: &[usize]) -> usize {
    at + windows.partition_point(|it| *it < at)
}

/// Gives the lines of the new text, which has no Windows line ends, the line ends of the lines that
/// they replace. Equal lines at the beginning and at the end keep their own. A line that is added
/// gets the end of the line before.
fn with_ends_of(text: &str, place: &Range<usize>, new: &str) -> String {
    let (old, new) = (lines(&text[place.clone()]), lines(new));
    let is_same = |(a, b): &(&Line<'_>, &Line<'_>)| a.0 == b.0;
    let (ended_old, ended_new) = (ended(&old), ended(&new));
    let first = ended_old.iter().zip(ended_new).take_while(is_same).count();
    let rest = ended_old[first..].iter().rev().zip(ended_new[first..].iter().rev());
    let last = rest.take_while(is_same).count();
    let beside = end_beside(text, place);
    let mut made = String::new();
    for (at, (line, end)) in new.iter().enumerate() {
        made += line;
        let from_end = ended_new.len().saturating_sub(at);
        made += match *end {
            "" => "",
            _ if from_end <= last => ended_old[ended_old.len() - from_end].1,
            _ => ended_old.get(at).or(ended_old.last()).map_or(beside, |it| it.1),
        };
    }
    made
}

/// A line and its end. The last line of a text may have none.
type Line<'a> = (&'a str, &'a str);

/// Splits a text into its lines.
fn lines(text: &str) -> Vec<Line<'_>> {
    let end = |line: &str| match line {
        it if it.ends_with("\r\n") => 2,
        it => usize::from(it.ends_with('\n')),
    };
    text.split_inclusive('\n').map(|it| it.split_at(it.len() - end(it))).collect()
}

/// Returns the lines that have an end.
fn ended<'a, 'b>(lines: &'a [Line<'b>]) -> &'a [Line<'b>] {
    let is_open = lines.last().is_some_and(|it| it.1.is_empty());
    &lines[..lines.len() - usize::from(is_open)]
}

/// Returns the end of the line in which a place ends, or of the line before it.
fn end_beside<'a>(text: &'a str, place: &Range<usize>) -> &'a str {
    let end = |at: usize| if text[..at].ends_with('\r') { "\r\n" } else { "\n" };
    let after = text[place.end..].find('\n').map(|at| end(place.end + at));
    after.or_else(|| text[..place.start].rfind('\n').map(end)).unwrap_or("\n")
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
