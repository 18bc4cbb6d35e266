//! The payloads that `git` takes and answers.

use pumphouse::prelude::*;

/// Shows the branch, and which files are changed, staged or unknown to Git.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/git/v1")]
pub struct Status {}

/// The branch, and what is changed.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/git/v1")]
pub struct Changes {
    /// The branch that is checked out, if there is one.
    #[payload(attribute, example = "main")]
    pub branch: Option<String>,
    /// The commit that is checked out, if there is one.
    #[payload(attribute, example = "8edea02f13d4a4e5c6b7a8d9e0f1a2b3c4d5e6f7")]
    pub commit: Option<String>,
    /// Whether more is changed than is shown.
    #[payload(attribute, note)]
    pub more: bool,
    /// The branch and the files, as `git status --short --branch` shows them.
    #[payload(value, example = "## main\n M src/main.rs\n")]
    pub text: String,
    /// The files that are changed.
    pub change: Vec<Change>,
}

/// One file that is changed.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
pub struct Change {
    /// How the staged file differs from the commit.
    #[payload(attribute)]
    pub staged: Option<How>,
    /// How the file differs from the staged one.
    #[payload(attribute)]
    pub unstaged: Option<How>,
    /// The file, from the root.
    #[payload(example = "src/main.rs")]
    pub path: String,
}

/// How a file is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Payload)]
pub enum How {
    /// It is new.
    Added,
    /// Its content is different.
    Modified,
    /// It was deleted.
    Deleted,
    /// It is of another type, such as a link.
    Retyped,
    /// Two sides of a merge changed it.
    Conflict,
    /// Git doesn't know it.
    Untracked,
}

/// Shows a unified diff; by default of the changes that aren't staged.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/git/v1")]
pub struct Diff {
    /// Only this file or folder, from the root.
    #[payload(example = "src")]
    pub path: Option<String>,
    /// Whether to show the staged changes instead.
    #[payload(example = "false")]
    pub staged: Option<bool>,
    /// A commit, whose changes and message are shown instead.
    #[payload(example = "HEAD~1")]
    pub commit: Option<String>,
}

/// A unified diff.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/git/v1")]
pub struct Difference {
    /// The diff; of a long one the beginning and the end.
    #[payload(value, example = "@@ -1 +1 @@\n-a\n+b\n")]
    pub text: String,
}

/// Lists commits, the newest first.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/git/v1")]
pub struct Log {
    /// Only commits of this file or folder, from the root.
    #[payload(example = "src")]
    pub path: Option<String>,
    /// How many commits; default 20, at most 100.
    #[payload(min = 1, example = "5")]
    pub count: Option<u64>,
    /// The commit to begin with; by default the branch's newest.
    #[payload(example = "HEAD~5")]
    pub from: Option<String>,
    /// How a commit is shown; default `medium`.
    #[payload(no_example)]
    pub format: Option<LogForm>,
}

/// How a log shows a commit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Payload)]
#[non_exhaustive]
pub enum LogForm {
    /// On a line with its id, the time, the author and the subject.
    #[default]
    Medium,
    /// On a line with its shortened id and the subject.
    Oneline,
}

/// Commits, the newest first.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/git/v1")]
pub struct History {
    /// A line for each commit.
    #[payload(value, example = "8edea02f13 Sums are right\n")]
    pub text: String,
    /// The commits.
    pub commit: Vec<Entry>,
}

/// One commit.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
pub struct Entry {
    /// Its id.
    #[payload(attribute, example = "8edea02f13d4a4e5c6b7a8d9e0f1a2b3c4d5e6f7")]
    pub id: String,
    /// Its author.
    #[payload(attribute, example = "Ada")]
    pub author: String,
    /// The time at which the author made it, in ISO 8601.
    #[payload(attribute, example = "2026-02-15T10:00:00+00:00")]
    pub time: String,
    /// The first line of its message.
    #[payload(example = "Sums are right")]
    pub subject: String,
}

/// Shows the tree of the files of a commit.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/git/v1")]
pub struct Tree {
    /// The folder, from the root; by default everything.
    #[payload(example = "src")]
    pub path: Option<String>,
    /// The commit; by default the branch's newest.
    #[payload(example = "HEAD~1")]
    pub commit: Option<String>,
    /// How many levels are shown; default 8.
    #[payload(min = 1, example = "3")]
    pub max_depth: Option<u64>,
}

/// The tree of files, by name.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/git/v1")]
pub struct FileTree {
    /// How many files there are, including those that are too deep to be shown.
    #[payload(attribute, example = "2")]
    pub files: u64,
    /// Whether there are more files, because Git's output was cut.
    #[payload(attribute, note)]
    pub more: bool,
    /// A line for each file and folder.
    #[payload(text, value, example = "src/\n  main.rs\n  lib.rs\n")]
    pub text: String,
}

/// Commits files as they are now.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/git/v1")]
pub struct Commit {
    /// The commit message.
    #[payload(example = "Sums are right")]
    pub message: String,
    /// The files and folders, from the root; by default all that is changed or new.
    #[payload(example = "src/main.rs")]
    pub path: Vec<String>,
}

/// A commit was made.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/git/v1")]
pub struct Committed {
    /// Its id.
    #[payload(attribute, value, example = "8edea02f13d4a4e5c6b7a8d9e0f1a2b3c4d5e6f7")]
    pub commit: String,
    /// Its branch.
    #[payload(attribute, note, example = "main")]
    pub branch: String,
}

/// The request was refused, or failed.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/git/v1")]
pub struct Refused {
    /// Why, in a word.
    #[payload(attribute)]
    pub reason: Reason,
    /// Why, and how to correct it.
    #[payload(value, example = "nothing is changed: there is nothing to commit")]
    pub text: String,
}

/// Why a request was refused, or failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Payload)]
pub enum Reason {
    /// There is no repository, or none that Git can work with here.
    NoRepository,
    /// Nothing is changed.
    Nothing,
    /// A merge or a similar operation is in progress, or no branch is checked out.
    Busy,
    /// The request has something that isn't allowed.
    BadRequest,
    /// It took too long.
    Timeout,
    /// Git was ended while it committed: whether there is a commit is unknown.
    Unknown,
    /// Git failed.
    Failed,
}
