//! Parses the output of Git.

use super::super::text::lossy;
use super::words::{Change, Changes, Entry, How, LogForm, Reason, Refused};

/// The format in which `log` writes a commit: fields that each end with a NUL. No field can contain
/// a NUL.
pub(super) const FORMAT: &str = "--format=tformat:%H%x00%<(80,trunc)%an%x00%aI%x00%<(200,trunc)%s";
/// The number of fields that a commit has in [`FORMAT`].
const FIELDS: usize = 4;
/// The maximum number of files that a status shows.
const CHANGES_MAX: usize = 500;

/// Parses the output of `status --porcelain=v2 -z`. If the output was cut, the last record is
/// incomplete and is left out.
pub(super) fn changes(bytes: &[u8], is_cut: bool) -> Changes {
    let end = bytes.iter().rposition(|it| *it == 0).unwrap_or(0);
    let mut all = Changes {
        branch: None,
        commit: None,
        more: is_cut,
        text: String::new(),
        change: Vec::new(),
    };
    for record in bytes[..end].split(|it| *it == 0).map(lossy) {
        let known = |it: &str| Some(it.to_owned()).filter(|it| !it.starts_with('('));
        if let Some(oid) = record.strip_prefix("# branch.oid ") {
            all.commit = known(oid);
        } else if let Some(head) = record.strip_prefix("# branch.head ") {
            all.branch = known(head);
        } else if let Some(change) = change(&record) {
            all.more |= all.change.len() == CHANGES_MAX;
            if all.change.len() < CHANGES_MAX {
                all.change.push(change);
            }
        }
    }
    all.text = status_text(&all);
    all
}

/// The text of a status, as `git status --short --branch` has it.
fn status_text(Changes { branch, commit, change, .. }: &Changes) -> String {
    let mut text = match (branch, commit) {
        (Some(branch), Some(_)) => format!("## {branch}\n"),
        (Some(branch), None) => format!("## No commits yet on {branch}\n"),
        (None, _) => "## HEAD (no branch)\n".to_owned(),
    };
    for Change { staged, unstaged, path } in change {
        let letters = match unstaged {
            Some(How::Untracked) => "??".to_owned(),
            _ => [letter(*staged), letter(*unstaged)].iter().collect(),
        };
        text += &format!("{letters} {path}\n");
    }
    if change.is_empty() {
        text += "nothing is changed\n";
    }
    text
}

fn letter(how: Option<How>) -> char {
    match how {
        None => ' ',
        Some(How::Added) => 'A',
        Some(How::Modified) => 'M',
        Some(How::Deleted) => 'D',
        Some(How::Retyped) => 'T',
        Some(How::Conflict) => 'U',
        Some(How::Untracked) => '?',
    }
}

/// The number of characters of a shortened id.
const SHORT_ID: usize = 10;

/// The text of a log.
pub(super) fn log_text(commits: &[Entry], form: LogForm) -> String {
    let short = |id: &str| id.chars().take(SHORT_ID).collect::<String>();
    let line = |Entry { id, author, time, subject }: &Entry| match form {
        LogForm::Medium => format!("{id} {time} {author}: {subject}\n"),
        LogForm::Oneline => format!("{} {subject}\n", short(id)),
    };
    match commits {
        [] => "There are no commits.\n".to_owned(),
        commits => commits.iter().map(line).collect(),
    }
}

fn change(record: &str) -> Option<Change> {
    let (kind, rest) = record.split_once(' ')?;
    // The number of fields before the path.
    let fields = match kind {
        "?" => {
            let (staged, unstaged) = (None, Some(How::Untracked));
            return Some(Change { staged, unstaged, path: rest.to_owned() });
        }
        "1" => 7,
        "u" => 9,
        _ => return None,
    };
    let mut parts = rest.splitn(fields + 1, ' ');
    let letters = parts.next()?;
    let path = parts.nth(fields - 1)?.to_owned();
    let (staged, unstaged) = match kind {
        "u" => (Some(How::Conflict), Some(How::Conflict)),
        _ => {
            let mut letters = letters.chars().map(how);
            (letters.next()?, letters.next()?)
        }
    };
    Some(Change { staged, unstaged, path })
}

fn how(letter: char) -> Option<How> {
    match letter {
        'A' => Some(How::Added),
        'M' => Some(How::Modified),
        'D' => Some(How::Deleted),
        'T' => Some(How::Retyped),
        _ => None,
    }
}

/// Returns the names of files in the output of `ls-files -z`, each followed by a NUL. Repositories
/// inside this one and an incomplete last name are left out.
pub(super) fn files(bytes: &[u8]) -> Result<String, Refused> {
    let end = bytes.iter().rposition(|it| *it == 0).unwrap_or(0);
    let mut all = String::new();
    for name in bytes[..end].split(|it| *it == 0).filter(|it| !it.is_empty()) {
        let Ok(name) = std::str::from_utf8(name) else {
            let text = format!("`{}` has a name that is no text", lossy(name));
            return Err(Refused { reason: Reason::Failed, text });
        };
        if !name.ends_with('/') {
            all.push_str(name);
            all.push('\0');
        }
    }
    Ok(all)
}

/// Parses the output of `log` in [`FORMAT`].
pub(super) fn commits(bytes: &[u8]) -> Vec<Entry> {
    let fields: Vec<String> = bytes.split(|it| *it == 0).map(lossy).collect();
    let all = fields.chunks_exact(FIELDS).map(|commit| Entry {
        id: commit[0].trim().to_owned(),
        author: commit[1].trim().to_owned(),
        time: commit[2].clone(),
        subject: commit[3].trim().to_owned(),
    });
    all.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(of: &[u8], is_cut: bool) -> String {
        let Changes { branch, commit, more, change, .. } = changes(of, is_cut);
        let each = change.iter().map(|it| (it.staged, it.unstaged, it.path.as_str()));
        format!("{branch:?} {commit:?} {more} {:?}", each.collect::<Vec<_>>())
    }

    #[test]
    fn a_status_names_the_branch_and_each_file_once() {
        let all = "# branch.oid abc\0# branch.head main\0\
                   1 A. N... 000000 100644 100644 0 1 a b.txt\0\
                   1 .M N... 100644 100644 100644 1 1 c\nd\0\
                   u UU N... 1 2 3 4 5 6 7 both.txt\0? new/\0";
        let expected = "Some(\"main\") Some(\"abc\") false \
                        [(Some(Added), None, \"a b.txt\"), (None, Some(Modified), \"c\\nd\"), \
                        (Some(Conflict), Some(Conflict), \"both.txt\"), \
                        (None, Some(Untracked), \"new/\")]";
        assert_eq!(said(all.as_bytes(), false), expected);
        let fresh = "# branch.oid (initial)\0# branch.head (detached)\0";
        assert_eq!(said(fresh.as_bytes(), false), "None None false []");
        assert_eq!(said(b"? a\0? b", true), "None None true [(None, Some(Untracked), \"a\")]");
        assert_eq!(said(b"", false), "None None false []");
    }

    #[test]
    fn a_status_and_a_log_are_texts_as_people_know_them() {
        let all = "# branch.oid abc\0# branch.head main\0\
                   1 A. N... 000000 100644 100644 0 1 a b.txt\0\
                   1 .M N... 100644 100644 100644 1 1 c\0u UU N... 1 2 3 4 5 6 7 both\0? new/\0";
        let text = "## main\nA  a b.txt\n M c\nUU both\n?? new/\n";
        assert_eq!(changes(all.as_bytes(), false).text, text);
        let fresh = b"# branch.oid (initial)\0# branch.head main\0";
        assert_eq!(changes(fresh, false).text, "## No commits yet on main\nnothing is changed\n");
        let log = commits(b"8edea02f13d4a4e5\0Ada\x002026-02-15\0Sums are right\0");
        assert_eq!(log_text(&log, LogForm::Oneline), "8edea02f13 Sums are right\n");
        let line = "8edea02f13d4a4e5 2026-02-15 Ada: Sums are right\n";
        assert_eq!(log_text(&log, LogForm::Medium), line);
    }

    #[test]
    fn a_list_of_files_ends_with_the_last_whole_name() {
        assert_eq!(files(b"a\0b c\0inside/\0cu"), Ok("a\0b c\0".to_owned()));
        assert_eq!(files(b""), Ok(String::new()));
        assert!(files(b"\xff\0").unwrap_err().text.contains("is no text"));
    }

    #[test]
    fn a_log_is_read_by_its_fields() {
        let all = commits(b"1\0Ada  \x001970\0First  \x002\0Bob\x001971\0\x1b[1m\0");
        let all: Vec<_> = all.iter().map(|it| (&*it.id, &*it.author, &*it.subject)).collect();
        assert_eq!(all, [("1", "Ada", "First"), ("2", "Bob", "\u{fffd}[1m")]);
        assert!(commits(b"").is_empty());
    }
}
