//! `init`: makes a small project, which works without changes.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::cli::base::screen::{Ending, Failure, Screen};

/// Makes a project that works without changes, in Rust or without a compiler: a listener, a
/// manifest, a scene and a README.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  pumphouse init trial && cd trial && cargo run
  pumphouse init trial --pumphouse ../pumphouse
  pumphouse init trial --command && cd trial && pumphouse test
  pumphouse init trial --agent && cd trial && pumphouse test --manifest stand-in.yaml")]
pub(crate) struct Init {
    /// The folder to make; it must be new or empty.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// The checkout of Pumphouse that the project uses. [default: the one this program was built
    /// from]
    #[arg(long, value_name = "PATH")]
    pumphouse: Option<PathBuf>,
    #[command(flatten)]
    kind: Kind,
}

/// The kind of project, if not Rust.
#[derive(Clone, Copy, Debug, clap::Args)]
#[group(multiple = false, conflicts_with = "pumphouse")]
struct Kind {
    /// Makes a project without Rust: its listener is a program in any language.
    #[arg(long)]
    command: bool,
    /// Makes a project without Rust: an agent with tools.
    #[arg(long)]
    agent: bool,
}

/// The files of a project, as pairs of path and content, and the command to run next.
type Project = (&'static [(&'static str, &'static str)], &'static str);

impl Kind {
    /// Returns the files of this kind of project, and the command to run next.
    fn project(self) -> Project {
        match (self.command, self.agent) {
            (true, _) => (&COMMAND, "pumphouse test"),
            (_, true) => (&AGENT, "pumphouse test --manifest stand-in.yaml"),
            _ => (&FILES, "cargo run"),
        }
    }

    fn is_rust(self) -> bool {
        !self.command && !self.agent
    }
}

/// The files of a Rust project, as pairs of path and content. In the content, `@NAME@` and
/// `@PUMPHOUSE@` are replaced by the project's name and the path of the checkout.
const FILES: [(&str, &str); 6] = [
    ("Cargo.toml", include_str!("Cargo.toml.txt")),
    ("src/main.rs", include_str!("main.rs.txt")),
    ("organism.yaml", include_str!("organism.yaml.txt")),
    ("scenes/greet.scene", include_str!("greet.scene.txt")),
    ("README.md", include_str!("README.md.txt")),
    (".gitignore", "/target\n/data\n"),
];

/// The files of a project whose listener is a shell script.
const COMMAND: [(&str, &str); 5] = [
    ("organism.yaml", include_str!("command/organism.yaml.txt")),
    ("greet.sh", include_str!("command/greet.sh.txt")),
    ("scenes/greet.scene", include_str!("command/greet.scene.txt")),
    ("README.md", include_str!("command/README.md.txt")),
    (".gitignore", "/data\n"),
];

/// The files of a project with an agent.
const AGENT: [(&str, &str); 7] = [
    ("organism.yaml", include_str!("agent/organism.yaml.txt")),
    ("stand-in.yaml", include_str!("agent/stand-in.yaml.txt")),
    ("replies.txt", include_str!("agent/replies.txt")),
    ("scenes/ask.scene", include_str!("agent/ask.scene.txt")),
    ("work/note.txt", "Water the plants."),
    ("README.md", include_str!("agent/README.md.txt")),
    (".gitignore", "/data\n"),
];

/// The checkout that this program was built from.
const CHECKOUT: &str = env!("CARGO_MANIFEST_DIR");

impl Init {
    pub(crate) fn run(self, to: &mut Screen<'_>) -> Result<Ending, Failure> {
        let folder = &self.folder;
        let checkout = match self.kind.is_rust() {
            true => Some(self.checkout()?),
            false => None,
        };
        if fs::read_dir(folder).is_ok_and(|mut it| it.next().is_some()) {
            let text = "isn't empty; name a folder that isn't there yet";
            return Err(Failure::Untried(format!("{} {text}", folder.display())));
        }
        let made = |path: &Path, it: io::Error| {
            Failure::Untried(format!("{} can't be made: {it}", path.display()))
        };
        fs::create_dir_all(folder).map_err(|it| made(folder, it))?;
        let here = folder.canonicalize().map_err(|it| made(folder, it))?;
        let name = name(&here);
        let (files, next) = self.kind.project();
        for (file, text) in files {
            let mut text = text.replace("@NAME@", &name);
            if let Some(it) = &checkout {
                text = text.replace("@PUMPHOUSE@", &quoted(it));
            }
            let path = folder.join(file);
            let parent = path.parent().unwrap_or(folder);
            fs::create_dir_all(parent).map_err(|it| made(parent, it))?;
            fs::write(&path, text).map_err(|it| made(&path, it))?;
            if path.extension().is_some_and(|it| it == "sh") {
                executable(&path).map_err(|it| made(&path, it))?;
            }
        }
        if let Some(it) = checkout {
            // The lock file pins the versions that Pumphouse was tested with. Without a lock file,
            // Cargo would take the newest versions.
            drop(fs::copy(it.join("Cargo.lock"), folder.join("Cargo.lock")));
        }
        match to.json {
            true => to.object(&json!({ "event": "made", "folder": folder, "name": name }))?,
            false => {
                let is_called = here.file_name().is_some_and(|it| it == name.as_str());
                let called = if is_called { String::new() } else { format!(", as {name}") };
                let (there, shell) = (folder.display(), for_shell(&folder.display().to_string()));
                to.line(&format!("{there} is there{called}; now: cd {shell} && {next}"))?;
            }
        }
        Ok(Ending::Well)
    }

    /// Returns the absolute path of the checkout that a Rust project depends on.
    fn checkout(&self) -> Result<PathBuf, Failure> {
        let given = self.pumphouse.as_deref().unwrap_or(Path::new(CHECKOUT));
        whole(given).map_err(|it| {
            let way = "name a checkout of Pumphouse with --pumphouse PATH";
            Failure::Untried(format!("{} can't be used: {it}; {way}", given.display()))
        })
    }
}

/// Makes a file executable.
#[cfg(unix)]
fn executable(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))
}

#[cfg(not(unix))]
fn executable(_: &Path) -> io::Result<()> {
    Ok(())
}

/// Returns the absolute path of a checkout. Fails if the folder isn't a checkout of Pumphouse.
fn whole(path: &Path) -> io::Result<PathBuf> {
    let path = path.canonicalize()?;
    let text = fs::read_to_string(path.join("Cargo.toml"))?;
    match text.lines().any(|it| it == "name = \"pumphouse\"") {
        true => Ok(path),
        false => Err(io::Error::other("it isn't Pumphouse's")),
    }
}

/// Formats a path as a TOML string, in quotes.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string().replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{text}\"")
}

/// Formats a path as a word of a POSIX shell, in quotes where needed.
fn for_shell(path: &str) -> String {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || "-_./".contains(it);
    match path.chars().all(is_plain) {
        true => path.to_owned(),
        false => format!("'{}'", path.replace('\'', "'\\''")),
    }
}

/// Names that a package can't have: Rust keywords, crates that every program has, folders that
/// Cargo puts beside a built program, and device names of Windows.
const TAKEN: &str = "\
    abstract as async await become box break const continue crate do dyn else enum extern false \
    final fn for gen if impl in let loop macro match mod move mut override priv pub ref return \
    self static struct super trait true try type typeof unsafe unsized use virtual where while \
    yield alloc core proc-macro proc_macro pumphouse std test build deps examples incremental \
    aux con nul prn";

/// Makes a valid Cargo package name from the folder's name.
fn name(folder: &Path) -> String {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    // A name outside ASCII would lose characters, so the project gets a fixed name.
    if !name.is_ascii() {
        return "my-pump".to_owned();
    }
    let fits = |it: char| it.is_ascii_alphanumeric() || matches!(it, '-' | '_');
    let name: String = name.chars().map(|it| if fits(it) { it } else { '-' }).collect();
    let name = name.trim_matches('-').to_owned();
    let is_taken = TAKEN.split_whitespace().any(|it| it.eq_ignore_ascii_case(&name));
    match name.starts_with(|it: char| it.is_ascii_alphabetic()) && !is_taken {
        true => name,
        false => format!("my-{name}").trim_end_matches('-').to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_names_the_project() {
        for (folder, expected) in [
            ("/x/trial", "trial"),
            ("/x/My Trial_2", "My-Trial_2"),
            ("/x/2nd", "my-2nd"),
            ("/x/pumphouse", "my-pumphouse"),
            ("/x/async", "my-async"),
            ("/x/Self", "my-Self"),
            ("/x/examples", "my-examples"),
            ("/x/_", "my-_"),
            ("/x/été", "my-pump"),
            ("/x/日本", "my-pump"),
            ("/", "my"),
        ] {
            assert_eq!(name(Path::new(folder)), expected);
        }
    }

    #[test]
    fn a_shell_takes_a_path_as_it_is() {
        for (path, expected) in [
            ("../a-b/c_1.d", "../a-b/c_1.d"),
            ("my trial", "'my trial'"),
            ("it's $HOME", "'it'\\''s $HOME'"),
            ("été", "'été'"),
        ] {
            assert_eq!(for_shell(path), expected);
        }
    }
}
