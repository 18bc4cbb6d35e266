//! The listener `git`: shows a Git repository's state, differences and history, and commits.
//!
//! ```yaml
//! listeners:
//!   - {use: git, settings: {root: work}}
//! ```
//!
//! A repository may come from a stranger. Git usually runs programs that a repository's
//! configuration names, such as hooks, filters and diff drivers. Here, Git reads neither this
//! configuration nor the configurations of the user and the system. Git uses a `.git` folder that
//! the pump makes. This folder borrows the repository's objects and references (`borrow`). The
//! index is the repository's own. Git runs under the same kind of bounds as a
//! [`command`](super::command).

mod borrow;
pub mod words;
mod read;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use pumphouse::clock;
use pumphouse::listener::{Effects, ManifestPath};
use pumphouse::prelude::*;
use serde::Deserialize;
use tokio::sync::Mutex;

use super::command::limits::CommandLimits;
use super::command::{Bounds, Given, Root};
use super::command::{Network, confine, programs, run};
use super::path_tree::{DEPTH, PathTree};
use super::text::{clean, cut, lossy};
use borrow::Borrowed;
use run::{ExitCause, Outcome};
use words::{
    Changes, Commit, Committed, Diff, Difference, FileTree, History, Log, Reason, Refused, Status,
    Tree,
};

/// The listener's default name. The payloads' namespace contains the name in use.
const NAME: &str = "git";
/// The author of commits if the settings name none.
const AUTHOR: &str = "pumphouse <pumphouse@localhost>";
/// The default number of commits that a `log` shows.
const COMMITS: u64 = 20;
/// The maximum number of commits that a `log` shows.
const COMMITS_MAX: u64 = 100;
/// The time limit of a call, as a multiple of the time limit of one run of Git. A commit takes
/// several runs.
const CALL_TIMES: u32 = 4;
/// The maximum number of rounds in which a commit stages changed files. Each round stages one list
/// of files.
const ROUNDS_MAX: u32 = 100;

const SECOND_US: u64 = 1_000_000;

/// The `settings` of `use: git` in a manifest.
#[derive(Clone, Debug, Deserialize)]
#[non_exhaustive]
pub struct Settings {
    /// The folder that contains the repository's `.git` folder.
    pub root: ManifestPath,
    /// The author of commits, as `Name <address>`. The default is
    /// `pumphouse <pumphouse@localhost>`.
    pub author: Option<String>,
    /// The limits of each run of Git.
    #[serde(default)]
    pub limits: CommandLimits,
}

struct Repository {
    root: PathBuf,
    /// The root's path as the settings have it, made absolute.
    given: PathBuf,
    git: String,
    bounds: Bounds,
    author: (String, String),
    /// A lock that is held during a commit, so that no commit contains the files of another call.
    commits: Mutex<()>,
}

/// Makes the listener `git`.
///
/// # Errors
/// If there is no program `git`, if the folder doesn't exist, or if the author isn't of the form
/// `Name <address>`.
pub fn git(settings: &Settings) -> Result<Listener, String> {
    let author = author(settings.author.as_deref().unwrap_or(AUTHOR))?;
    let bounds = Bounds::new(Given {
        root: Root::Named(&settings.root),
        env: borrow::environment(),
        read: Vec::new(),
        write: Vec::new(),
        network: Network::None,
        limits: settings.limits,
    })?;
    let git = programs::searched("git", bounds.search_path())?;
    let bounds = bounds.with_program(&git)?;
    let root = PathBuf::from(&bounds.folder);
    confine::warn(NAME);
    let text = format!(
        "Shows what is changed in a Git repository and its history, and commits.{}",
        confine::note()
    );
    let timeout = settings.limits.listener_time().saturating_mul(CALL_TIMES);
    let given = std::path::absolute(settings.root.path()).unwrap_or_else(|_| root.clone());
    let state = Repository { root, given, git, bounds, author, commits: Mutex::new(()) };
    Ok(Listener::with_state(NAME, Arc::new(state))
        .own_namespace()
        .on(status)
        .on(diff)
        .on(log)
        .on(tree)
        .on(commit)
        .timeout(timeout)
        .describe(text)
        .effects(Effects::Writes)
        .idempotent_for(|it| it.local() != Commit::NAME.local())
        .stateless())
}

/// Splits `Name <address>` into the name and the address.
fn author(text: &str) -> Result<(String, String), String> {
    let parts = text.split_once('<').and_then(|(name, rest)| {
        let address = rest.strip_suffix('>')?;
        Some((name.trim(), address.trim())).filter(|(name, it)| !name.is_empty() && !it.is_empty())
    });
    let is_plain = |it: &str| !it.contains(['<', '>', '\n', '\0']);
    match parts {
        Some((name, it)) if is_plain(name) && is_plain(it) => Ok((name.to_owned(), it.to_owned())),
        _ => Err(format!("`{}` is no author; write it as `Ada <ada@example.org>`", cut(text))),
    }
}

async fn status(State(it): State<Arc<Repository>>, _: Status) -> Result<Changes, Refused> {
    let call = it.begin().borrow()?;
    let words = ["status", "--porcelain=v2", "--branch", "-z", "--no-renames"];
    let words = [&words[..], &["--ignore-submodules=all"]].concat();
    let outcome = call.run(&words, &[], "").await?;
    let (bytes, more) = outcome.out.beginning();
    Ok(read::changes(&bytes, more))
}

async fn diff(State(it): State<Arc<Repository>>, asked: Diff) -> Result<Difference, Refused> {
    let call = it.begin().borrow()?;
    let is_staged = asked.staged.unwrap_or(false);
    let mut words = match &asked.commit {
        Some(_) if is_staged => {
            return Err(bad("a `commit` is shown, or what is `staged`: give one"));
        }
        Some(_) => vec!["show", "--no-show-signature"],
        None => vec!["diff"],
    };
    words.extend(["--no-ext-diff", "--no-textconv", "--no-color", "--ignore-submodules=all"]);
    if is_staged {
        words.push("--cached");
    }
    if let Some(commit) = &asked.commit {
        words.extend(["--end-of-options", revision(commit)?]);
    }
    let path = it.below(asked.path.as_deref());
    let outcome = call.run(&words, &path, "").await?;
    Ok(Difference { text: outcome.out.text(it.bounds.limits.output_bytes_max) })
}

async fn log(State(it): State<Arc<Repository>>, asked: Log) -> Result<History, Refused> {
    let call = it.begin().borrow()?;
    let most = asked.count.unwrap_or(COMMITS);
    if most > COMMITS_MAX {
        return Err(bad(&format!("`count` is at most {COMMITS_MAX}")));
    }
    let most = format!("--max-count={most}");
    let mut words = vec!["log", "-z", "--no-color", "--no-show-signature", read::FORMAT, &most];
    if let Some(commit) = &asked.from {
        words.extend(["--end-of-options", revision(commit)?]);
    }
    let path = it.below(asked.path.as_deref());
    let outcome = call.run(&words, &path, "").await?;
    let commit = read::commits(&outcome.out.beginning().0);
    Ok(History { text: read::log_text(&commit, asked.format.unwrap_or_default()), commit })
}

async fn tree(State(it): State<Arc<Repository>>, asked: Tree) -> Result<FileTree, Refused> {
    let call = it.begin().borrow()?;
    let commit = asked.commit.as_deref().map_or(Ok("HEAD"), revision)?;
    let words = ["ls-tree", "-r", "-z", "--name-only", "--full-tree", commit];
    let path = it.below(asked.path.as_deref());
    let outcome = call.run(&words, &path, "").await?;
    let (bytes, more) = outcome.out.beginning();
    let end = bytes.iter().rposition(|it| *it == 0).unwrap_or(0);
    let names: Vec<String> = bytes[..end].split(|it| *it == 0).map(lossy).collect();
    if let Some(path) = asked.path.filter(|_| names.iter().all(String::is_empty)) {
        return Err(bad(&format!("{commit} has no `{}`", cut(&path))));
    }
    let tree = PathTree::of(names.iter().map(String::as_str));
    let text = tree.text(asked.max_depth.unwrap_or(DEPTH));
    Ok(FileTree { files: tree.files(), more, text })
}

async fn commit(State(it): State<Arc<Repository>>, asked: Commit) -> Result<Committed, Refused> {
    if asked.message.trim().is_empty() {
        return Err(bad("the `message` is empty: say what is different from now on"));
    }
    if asked.message.len() > it.bounds.limits.input_bytes_max {
        return Err(bad("the `message` is too long; the limit is input_bytes_max"));
    }
    let begun = it.begin();
    let _alone = it.commits.lock().await;
    let call = begun.borrow()?;
    let branch = call.borrowed.branch_to_commit_to(&it.root)?.to_owned();
    let path: Vec<&str> = asked.path.iter().flat_map(|path| it.below(Some(path))).collect();
    call.stage(&path).await?;
    let words = ["diff", "--cached", "--quiet", "--no-ext-diff", "--ignore-submodules=all"];
    if call.has_ended_well(&words, &path).await? {
        let place = if path.is_empty() { "" } else { " there" };
        let text = format!("nothing is changed{place}: there is nothing to commit");
        return Err(Refused { reason: Reason::Nothing, text });
    }
    let mut words = vec!["commit", "--quiet", "--no-verify", "--no-gpg-sign", "--file=-"];
    words.extend(["--cleanup=whitespace", "--no-status"]);
    if !path.is_empty() {
        words.push("--only");
    }
    let done = call.run(&words, &path, &asked.message).await;
    done.map_err(|it| match it.reason {
        Reason::Timeout => Refused { reason: Reason::Unknown, ..it },
        _ => it,
    })?;
    let outcome = call.run(&["rev-parse", "--verify", "HEAD"], &[], "").await?;
    let commit = outcome.out.text(it.bounds.limits.output_bytes_max).trim().to_owned();
    Ok(Committed { commit, branch })
}

impl Repository {
    /// The file or folder of a call, from the root. A path may also be absolute and begin with the
    /// root. None for the root itself, which stands for everything.
    fn below<'a>(&self, path: Option<&'a str>) -> Vec<&'a str> {
        let inside = |path: &'a str| {
            let at = Path::new(path);
            let at = at.strip_prefix(&self.root).or_else(|_| at.strip_prefix(&self.given));
            at.ok().and_then(Path::to_str).unwrap_or(path)
        };
        path.into_iter().map(inside).filter(|it| !matches!(*it, "" | "." | "./")).collect()
    }

    /// Begins a call. The call's time limit runs from this moment.
    fn begin(&self) -> Begun<'_> {
        let time_us = Duration::from_secs(self.call_seconds()).as_micros();
        let time_us = u64::try_from(time_us).unwrap_or(u64::MAX);
        Begun { repository: self, until_us: clock::now_us().saturating_add(time_us) }
    }

    /// Returns the time limit for all runs of Git in one call together, in seconds.
    fn call_seconds(&self) -> u64 {
        self.bounds.limits.seconds_max.saturating_mul(CALL_TIMES.into())
    }
}

/// A call whose time limit is running, but whose `.git` isn't borrowed yet.
struct Begun<'a> {
    repository: &'a Repository,
    until_us: u64,
}

impl<'a> Begun<'a> {
    fn borrow(self) -> Result<Call<'a>, Refused> {
        let Begun { repository, until_us } = self;
        Ok(Call { repository, borrowed: Borrowed::new(&repository.root)?, until_us })
    }
}

/// A call that runs Git, with the borrowed `.git` that Git uses.
struct Call<'a> {
    repository: &'a Repository,
    borrowed: Borrowed,
    until_us: u64,
}

impl Call<'_> {
    /// Stages the changed and new files at the given paths. If there are no paths, all such files
    /// are staged. `git add` isn't used, because it runs Git in repositories inside this one, with
    /// the configuration of those repositories.
    async fn stage(&self, path: &[&str]) -> Result<(), Refused> {
        let which = ["--modified", "--deleted", "--others", "--exclude-standard"];
        let words = [&["ls-files", "-z", "--deduplicate"], &which[..]].concat();
        for _ in 0..ROUNDS_MAX {
            let listed = self.run(&words, path, "").await?;
            let (names, is_more) = listed.out.beginning();
            let names = read::files(&names)?;
            if !names.is_empty() {
                let stage = ["update-index", "--add", "--remove", "-z", "--stdin"];
                self.run(&stage, &[], &names).await?;
            }
            if !is_more {
                return Ok(());
            }
        }
        let text = format!("more files are changed than {ROUNDS_MAX} runs of Git take in");
        Err(Refused { reason: Reason::Failed, text })
    }

    async fn outcome(
        &self,
        words: &[&str],
        path: &[&str],
        input: &str,
    ) -> Result<Outcome, Refused> {
        let Repository { root, git, bounds, author: (name, address), .. } = self.repository;
        let given = words.iter().chain(path).map(|it| it.len()).sum::<usize>();
        if given > bounds.limits.input_bytes_max {
            return Err(bad("it is given too much; the limit is input_bytes_max"));
        }
        let mut all = vec!["--no-pager", "--literal-pathspecs"];
        all.extend(words);
        if !matches!(words.first(), Some(&("rev-parse" | "update-index"))) {
            all.push("--");
            all.extend(path);
        }
        let all = all.into_iter().map(str::to_owned).collect();
        let mut bounds = self.borrowed.bounds(bounds, root, name, address);
        let left_us = self.until_us.saturating_sub(clock::now_us());
        if left_us == 0 {
            return Err(self.late());
        }
        // A run gets at most the remaining time of the call, rounded up to whole seconds.
        bounds.limits.seconds_max = bounds.limits.seconds_max.min(left_us.div_ceil(SECOND_US));
        // Commits run one at a time, so no attempt runs beside an earlier one.
        let outcome = run::run(&bounds, git, all, input.to_owned(), None, &|_, _| {}).await;
        outcome.map_err(|run::NotRun { has_begun, text }| {
            let reason = if has_begun { Reason::Unknown } else { Reason::Failed };
            Refused { reason, text }
        })
    }

    /// Runs Git. Any result other than the exit code 0 is a refusal.
    async fn run(&self, words: &[&str], path: &[&str], input: &str) -> Result<Outcome, Refused> {
        let outcome = self.outcome(words, path, input).await?;
        match outcome.ended {
            ExitCause::Code(0) => Ok(outcome),
            ended => Err(self.failed(ended, &outcome)),
        }
    }

    /// Runs Git. Returns true for the exit code 0 and false for 1. Any other result is a refusal.
    async fn has_ended_well(&self, words: &[&str], path: &[&str]) -> Result<bool, Refused> {
        let outcome = self.outcome(words, path, "").await?;
        match outcome.ended {
            ExitCause::Code(code @ (0 | 1)) => Ok(code == 0),
            ended => Err(self.failed(ended, &outcome)),
        }
    }

    /// Makes the refusal of a call that has reached its time limit.
    fn late(&self) -> Refused {
        let (all, one) =
            (self.repository.call_seconds(), self.repository.bounds.limits.seconds_max);
        let text = format!(
            "git was ended: all its runs of a call have {all} s, which is {CALL_TIMES} times the \
             limit seconds_max, {one}"
        );
        Refused { reason: Reason::Timeout, text }
    }

    fn failed(&self, ended: ExitCause, outcome: &Outcome) -> Refused {
        let bounds = &self.repository.bounds;
        let limits = &bounds.limits;
        if ended == ExitCause::OutOfTime && clock::now_us() >= self.until_us {
            return self.late();
        }
        let said = outcome.err.text(limits.error_bytes_max);
        // The answer must not contain the paths of the folders.
        let said = said.replace(&self.borrowed.folder(), ".git");
        let said = said.replace(&bounds.folder, ".");
        let reason = match ended {
            ExitCause::OutOfTime => Reason::Timeout,
            ExitCause::Code(_) => Reason::Failed,
            _ => Reason::Unknown,
        };
        let text = match (ended, said.trim()) {
            (ExitCause::Code(_), it) if !it.is_empty() => it.to_owned(),
            _ => ended.sentence("git", limits),
        };
        Refused { reason, text: clean(&text) }
    }
}

/// Checks that a text is no option, and has only characters that can name a commit. So a path in a
/// commit, such as `HEAD:file`, and a pattern are refused.
fn revision(text: &str) -> Result<&str, Refused> {
    let fits = |it: char| it.is_alphanumeric() || "-_./~^@{}+#".contains(it);
    match !text.is_empty() && !text.starts_with('-') && text.chars().all(fits) {
        true => Ok(text),
        false => Err(bad(&format!("`{}` names no commit; it is such as HEAD~1", cut(text)))),
    }
}

fn bad(text: &str) -> Refused {
    Refused { reason: Reason::BadRequest, text: text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_author_has_a_name_and_an_address() {
        let ada = ("Ada L".to_owned(), "ada@example.org".to_owned());
        assert_eq!(author("Ada L <ada@example.org>"), Ok(ada));
        for signature in ["", "Ada", "<a@b>", "Ada <>", "Ada <a> <b>", "A\n<b>x"] {
            assert!(author(signature).unwrap_err().contains("is no author"), "{signature}");
        }
    }

    #[test]
    fn a_commit_is_named_by_no_option_and_no_path() {
        for name in ["HEAD", "HEAD~1", "main", "v1.0^{}", "feature/über", "8edea02"] {
            assert_eq!(revision(name), Ok(name));
        }
        for text in ["", "-p", "--output=x", "HEAD:secret", ":/text", "a b", "a\nb", "a..*"] {
            assert_eq!(revision(text).unwrap_err().reason, Reason::BadRequest, "{text}");
        }
    }
}
