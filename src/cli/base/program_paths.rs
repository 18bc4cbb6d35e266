//! What programs of `command` and `shell` must not reach by their files: the log, secrets, and what
//! governs the pump. `check`, `run`, `chat` and `eval` refuse settings that would show it to them.

use std::ffi::OsString;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};

use crate::cli::base::organism::{Organism, Unread};
use crate::cli::base::screen::Failure;
use crate::engine::Plan;
use crate::listener::Described;
use crate::listeners::tool::command::{ProgramPaths, system_paths};
use crate::listeners::tool::listener_files::ListenerFiles;
use crate::listeners::tool::mcp;
use crate::manifest::{Door, Places};

/// The maximum number of links that are followed on the way to a file. The kernel has the same
/// bound.
const LINKS_MAX: usize = 40;

/// A file or folder that programs must not use.
struct Kept {
    what: &'static str,
    path: PathBuf,
    /// Whether programs must not read it either.
    is_secret: bool,
}

/// The files and folders of an organism that its programs must not use.
pub(crate) struct KeptPaths(Vec<Kept>);

impl KeptPaths {
    /// Those that the manifest and the options name. Listeners add theirs.
    pub(crate) fn of(organism: &Organism) -> KeptPaths {
        let secret = |what, path: &Path| Kept { what, path: path.to_owned(), is_secret: true };
        let governs = |what, path: PathBuf| Kept { what, path, is_secret: false };
        let mut all = vec![secret("the data folder", &organism.data)];
        all.extend(organism.tokens.file().map(|it| secret("the tokens", it)));
        for door in &organism.doors {
            all.extend(door.tls().map(|it| secret("the key of a TLS door", it.key_file())));
            if let Door::Unix(path) = door {
                all.push(secret("the socket of a door", path));
            }
        }
        if let Some(file) = &organism.file {
            all.push(governs("the manifest", file.clone()));
            all.push(governs("the recorded MCP tools", file.with_file_name(mcp::record::FILE)));
        }
        let files = organism.places.as_ref().map(Places::files).unwrap_or_default();
        all.extend(files.into_iter().map(|it| governs("a file of the manifest", it)));
        let providers = organism.providers.iter().cloned();
        all.extend(providers.map(|it| governs("a provider file", it)));
        let context = &organism.context;
        let feeds = context.feeds.keys().map(|it| context.folder.join(it).join("feeds.json"));
        all.extend(feeds.map(|it| governs("the feeds of an agent", it)));
        KeptPaths(all)
    }

    /// Checks that no program may use one of these paths, or one that a listener keeps for itself.
    pub(crate) fn check(mut self, plan: &Plan, places: Option<&Places>) -> Result<(), Unread> {
        for listener in plan.listeners() {
            let Some(files) = listener.extension::<ListenerFiles>() else { continue };
            let kept = |it: &PathBuf, what, is_secret| Kept { what, path: it.clone(), is_secret };
            self.0.extend(files.secret.iter().map(|it| kept(it, "credentials", true)));
            self.0.extend(files.own.iter().map(|it| kept(it, "the file of a listener", false)));
        }
        let kept: Vec<(&Kept, Vec<PathBuf>)> =
            self.0.iter().map(|it| (it, ways(&it.path))).collect();
        let wrong: Vec<(String, String)> =
            plan.listeners().iter().flat_map(|it| wrong(it, &kept)).collect();
        if wrong.is_empty() {
            return Ok(());
        }
        let advice = "give programs a folder of their own, such as `root: work`, and keep what is \
                      the pump's elsewhere";
        let Some(places) = places else {
            let all: Vec<&str> = wrong.iter().map(|(_, text)| text.as_str()).collect();
            return Err(Unread::Failure(Failure::Untried(format!("{}; {advice}", all.join("; ")))));
        };
        Err(Unread::Mistakes(places.find_listeners(&wrong, advice)))
    }
}

/// Makes the default folders of programs.
pub(crate) fn make_roots(plan: &Plan) -> Result<(), Failure> {
    let mut all = plan.listeners().iter().filter_map(|it| it.extension::<ProgramPaths>());
    let made = all.try_for_each(ProgramPaths::make_root);
    made.map_err(|error| Failure::Untried(format!("{error}; name another folder with `root`")))
}

/// Returns what is wrong with the paths of a listener's programs: for each of these paths, the
/// listener's name and a sentence.
fn wrong(listener: &Described, kept: &[(&Kept, Vec<PathBuf>)]) -> Vec<(String, String)> {
    let Some(paths) = listener.extension::<ProgramPaths>() else { return Vec::new() };
    let name = &listener.name;
    let by =
        |setting: &str, may: &str| format!("by `{setting}`, the programs of `{name}` may {may}");
    let all = || kept.iter().map(|(it, ways)| (*it, &ways[..]));
    // A link that leads to a secret shows nothing of it.
    let secrets = || all().filter(|(it, _)| it.is_secret).map(|(it, ways)| (it, &ways[..1]));
    let written = paths.writable().filter_map(|(setting, path)| {
        Some((by(setting, "write"), path.to_owned(), told(path, all())?))
    });
    let read = paths.readable().filter_map(|(setting, path)| {
        Some((by(setting, "read"), path.to_owned(), told(path, secrets())?))
    });
    let system = system_paths().into_iter().filter_map(|path| {
        let found = told(&path, secrets())?;
        Some((format!("the programs of `{name}`, as all, may read"), path, found))
    });
    let wrong = written.chain(read).chain(system);
    let text = |(may, path, found): (String, PathBuf, String)| {
        (name.clone(), format!("{may} {}, which {found}", path.display()))
    };
    wrong.map(text).collect()
}

/// Says what of the kept paths is in a path, or which of them the path is in.
fn told<'a>(path: &Path, kept: impl Iterator<Item = (&'a Kept, &'a [PathBuf])>) -> Option<String> {
    let (mut held, mut around) = (Vec::new(), None);
    for (it, ways) in kept {
        let shown = format!("{} ({})", it.what, it.path.display());
        match ways {
            _ if ways.iter().any(|way| is_in(way, path)) => held.push(shown),
            [real, ..] if is_in(path, real) => around = Some(shown),
            _ => {}
        }
    }
    match around {
        Some(around) => Some(format!("is in {around}")),
        None if held.is_empty() => None,
        None => Some(format!("holds {}", held.join(", "))),
    }
}

/// Whether a path is another one or below it. The same folder may have two paths, such as those of
/// a bind mount.
fn is_in(path: &Path, above: &Path) -> bool {
    let identity = |it: &Path| it.metadata().ok().map(|it| (it.dev(), it.ino()));
    let of_above = identity(above);
    let is_above = |it: &Path| it == above || of_above.is_some() && identity(it) == of_above;
    path.ancestors().any(is_above)
}

/// Returns the path without links, and then each link on the way to it. A program that may replace
/// one of these links decides to which file the path leads.
fn ways(path: &Path) -> Vec<PathBuf> {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let parts = |path: &Path| -> Vec<OsString> {
        let parts = path.components().filter(|it| !matches!(it, Component::CurDir));
        parts.rev().map(|it| it.as_os_str().to_owned()).collect()
    };
    let (mut real, mut links, mut rest) = (PathBuf::new(), Vec::new(), parts(&path));
    while let Some(part) = rest.pop() {
        if part == ".." {
            real.pop();
            continue;
        }
        let next = real.join(&part);
        match next.read_link() {
            Ok(target) if links.len() < LINKS_MAX => {
                rest.extend(parts(&target));
                links.push(next);
            }
            _ => real = next,
        }
    }
    [real].into_iter().chain(links).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn each_link_on_the_way_to_a_file_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().canonicalize().unwrap().join(name);
        std::fs::create_dir_all(at("a/b")).unwrap();
        std::fs::write(at("a/b/file"), "").unwrap();
        symlink(at("a/b"), at("absolute")).unwrap();
        symlink("../a/./b/file", at("a/relative")).unwrap();
        symlink("relative", at("a/twice")).unwrap();
        symlink("again", at("again")).unwrap();
        let check = |path: &str, expected: &[&str]| {
            let expected: Vec<PathBuf> = expected.iter().map(|it| at(it)).collect();
            assert_eq!(ways(&at(path)), expected, "{path}");
        };
        check("a/b/file", &["a/b/file"]);
        check("a/../a/./b/new/file", &["a/b/new/file"]);
        check("absolute/file", &["a/b/file", "absolute"]);
        check("absolute/../twice", &["a/b/file", "absolute", "a/twice", "a/relative"]);
        assert_eq!(ways(&at("again")).len(), LINKS_MAX + 1);
    }
}
