//! A temporary `.git` folder, which the pump makes. It links to a repository's data, but to no file
//! that names programs to run. Git doesn't read the configuration, the hooks and the attribute file
//! in the repository's own `.git`. Only a few harmless settings are copied from this configuration.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::Path;

use super::super::command::Bounds;
use super::super::command::scratch::{Scratch, clear_once};
use super::super::files::limits::FileLimits;
use super::super::files::root::Root;
use super::super::text::cut;
use super::{Reason, Refused};

/// The maximum number of bytes of a repository's configuration.
const CONFIGURATION_BYTES_MAX: usize = 1 << 20;
/// The parts of a repository's `.git` that hold data. The borrowed `.git` links to them.
const LENT: [&str; 6] = ["objects", "refs", "packed-refs", "logs", "shallow", "info/exclude"];
/// Files and folders in `.git`. One of them exists while a merge, a rebase or a similar operation
/// is in progress. A commit at that time would end the operation wrongly.
const UNDER_WAY: [&str; 6] =
    ["MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "rebase-merge", "rebase-apply", "BISECT_LOG"];
/// The settings that are copied from a repository's configuration. They say only how files are
/// stored.
const TAKEN: [&str; 7] = [
    "core.repositoryformatversion",
    "core.filemode",
    "core.ignorecase",
    "core.symlinks",
    "core.autocrlf",
    "core.eol",
    "extensions.objectformat",
];
/// The other settings of the borrowed `.git`.
const OWN: &str = "\
[core]
\tbare = false
\thooksPath = /dev/null
\tfsmonitor = false
\tattributesFile = /dev/null
\tquotePath = false
[gc]
\tauto = 0
[maintenance]
\tauto = false
[commit]
\tgpgSign = false
[advice]
\taddEmbeddedRepo = false
[protocol]
\tallow = never
";

/// Returns the environment variables that Git gets for every repository.
pub(super) fn environment() -> BTreeMap<String, String> {
    let all = [
        ("GIT_CONFIG_NOSYSTEM", "1"),
        ("GIT_CONFIG_GLOBAL", "/dev/null"),
        ("GIT_ATTR_NOSYSTEM", "1"),
        ("GIT_TERMINAL_PROMPT", "0"),
        ("GIT_EDITOR", "false"),
        ("GIT_PAGER", "cat"),
        ("GIT_ASKPASS", "false"),
        ("GIT_ALLOW_PROTOCOL", "none"),
        ("GIT_NO_LAZY_FETCH", "1"),
        ("GIT_NO_REPLACE_OBJECTS", "1"),
        ("GIT_OPTIONAL_LOCKS", "0"),
    ];
    all.into_iter().map(|(name, it)| (name.to_owned(), it.to_owned())).collect()
}

/// A borrowed `.git` for a few runs of Git. The folder is removed when this value is dropped.
pub(super) struct Borrowed {
    folder: Scratch,
    head: String,
}

impl Borrowed {
    /// Makes a `.git` that borrows from the repository in the folder `root`.
    pub(super) fn new(root: &Path) -> Result<Borrowed, Refused> {
        let there = root.join(".git");
        // A link, or a file instead of a folder, could lead to a place outside the repository.
        for path in [&there, &there.join("objects"), &there.join("refs")] {
            if !path.symlink_metadata().is_ok_and(|it| it.is_dir()) {
                let shown = path.strip_prefix(root).unwrap_or(path).display();
                return Err(none(format!("there is no folder `{shown}` below the root")));
            }
        }
        let failed = |error: io::Error| none(format!("the repository can't be read: {error}"));
        let limits =
            FileLimits { file_bytes_max: CONFIGURATION_BYTES_MAX, ..FileLimits::default() };
        let files = Root::open(root, limits).map_err(failed)?;
        let text = |path: &str| files.text(path).map(|it| it.0).map_err(|it| none(it.text));
        let head = text(".git/HEAD")?.trim_end().to_owned();
        let is_id =
            (40..=64).contains(&head.len()) && head.bytes().all(|it| it.is_ascii_hexdigit());
        if !is_id && branch(&head).is_none() {
            return Err(none(format!("`.git/HEAD` says nothing of use: {}", cut(&head))));
        }
        let taken = taken(&text(".git/config")?);
        clear_once();
        let folder = Scratch::new().map_err(failed)?;
        let borrowed = Borrowed { folder, head };
        borrowed.fill(&there, &taken).map_err(failed)?;
        Ok(borrowed)
    }

    fn fill(&self, there: &Path, taken: &str) -> io::Result<()> {
        let own = self.folder.path();
        fs::create_dir(own.join("info"))?;
        for name in LENT {
            let from = there.join(name);
            if from.symlink_metadata().is_ok_and(|it| it.is_dir() || it.is_file()) {
                symlink(from, own.join(name))?;
            }
        }
        fs::write(own.join("HEAD"), format!("{}\n", self.head))?;
        fs::write(own.join("config"), format!("{OWN}{taken}"))
    }

    /// Returns the path of the borrowed `.git`.
    pub(super) fn folder(&self) -> String {
        self.folder.path().display().to_string()
    }

    /// Returns the bounds of a run of Git that uses the borrowed `.git`.
    pub(super) fn bounds(&self, bounds: &Bounds, root: &Path, name: &str, mail: &str) -> Bounds {
        let own = self.folder();
        let index = root.join(".git").join("index").display().to_string();
        let root = root.display().to_string();
        // `PATH` leads nowhere, so Git can start no program by its name, not even Git itself. A
        // second Git process would read the configuration of repositories inside this one.
        let nowhere = format!("{own}/none");
        let variables = [
            ("PATH", nowhere.as_str()),
            ("GIT_EXEC_PATH", &nowhere),
            ("GIT_DIR", &own),
            ("GIT_WORK_TREE", &root),
            ("GIT_INDEX_FILE", &index),
            ("HOME", &own),
            ("XDG_CONFIG_HOME", &own),
            ("GIT_AUTHOR_NAME", name),
            ("GIT_AUTHOR_EMAIL", mail),
            ("GIT_COMMITTER_NAME", name),
            ("GIT_COMMITTER_EMAIL", mail),
        ];
        bounds.clone().with_folder(&own, &variables)
    }

    /// Returns the branch to which a commit would go. Refuses while a merge or a similar operation
    /// is in progress, or if no branch is checked out.
    pub(super) fn branch_to_commit_to(&self, root: &Path) -> Result<&str, Refused> {
        let busy = |text: String| Refused { reason: Reason::Busy, text };
        let is_there = |it: &&&str| root.join(".git").join(it).symlink_metadata().is_ok();
        if let Some(name) = UNDER_WAY.iter().find(is_there) {
            let text = "something is under way that a commit here would end wrongly";
            return Err(busy(format!("{text}: there is a `.git/{name}`")));
        }
        let none = || busy("no branch is checked out; a commit would be lost".to_owned());
        branch(&self.head).ok_or_else(none)
    }
}

fn none(text: String) -> Refused {
    Refused { reason: Reason::NoRepository, text }
}

/// Returns the branch that a HEAD names, or `None` if the HEAD names no branch.
fn branch(head: &str) -> Option<&str> {
    let name = head.strip_prefix("ref:")?.trim().strip_prefix("refs/heads/")?;
    let is_plain = |it: char| !it.is_control() && it != ' ';
    let is_one =
        !name.is_empty() && name.split('/').all(|it| !it.is_empty() && !it.starts_with('.'));
    (is_one && name.chars().all(is_plain)).then_some(name)
}

/// Returns the settings that are copied from a repository's configuration. Only values of letters
/// and digits are copied, so that no value can begin another setting. All other lines are ignored.
fn taken(text: &str) -> String {
    let (mut section, mut all) = (String::new(), String::new());
    for line in text.lines().map(str::trim) {
        if let Some(inner) = line.strip_prefix('[').and_then(|it| it.strip_suffix(']')) {
            section = inner.trim().to_ascii_lowercase();
            continue;
        }
        let (key, value) = line.split_once('=').unwrap_or((line, "true"));
        let (key, value) = (key.trim().to_ascii_lowercase(), value.trim());
        let is_word = !value.is_empty() && value.bytes().all(|it| it.is_ascii_alphanumeric());
        if is_word && TAKEN.contains(&format!("{section}.{key}").as_str()) {
            all.push_str(&format!("[{section}]\n\t{key} = {value}\n"));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_configuration_nothing_is_taken_that_could_run() {
        let text = "[core]\n\trepositoryformatversion = 1\n\tfsmonitor = ./evil\n\tfileMode=false\n\
                    [core \"x\"]\n\teol = lf\n[filter \"x\"]\n\tclean = evil\n[Extensions]\n\
                    objectFormat = sha256\npartialClone = origin\n[core]\nautocrlf = a\\nb\n\
                    eol = lf # no\n[include]\n\tpath = evil\n[core]\nsymlinks\n";
        let expected = "[core]\n\trepositoryformatversion = 1\n[core]\n\tfilemode = false\n\
                        [extensions]\n\tobjectformat = sha256\n[core]\n\tsymlinks = true\n";
        assert_eq!(taken(text), expected);
    }

    #[test]
    fn a_head_names_a_branch_and_no_file_elsewhere() {
        assert_eq!(branch("ref: refs/heads/main"), Some("main"));
        assert_eq!(branch("ref: refs/heads/a/b"), Some("a/b"));
        for head in ["", "main", "ref: refs/tags/x", "ref: refs/heads/", "ref: refs/heads/../../x"]
        {
            assert_eq!(branch(head), None, "{head}");
        }
    }
}
