//! The bounds of a listener's programs: the files, the network, the time and the memory that they
//! may use. The paths in bounds are absolute. Links in paths from the settings are resolved.

use std::collections::BTreeMap;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use pumphouse::listener::keep_programs_out;
use pumphouse::listener::{Effects, ManifestPath};
use pumphouse::prelude::Listener;
use pumphouse::secret::{Secret, Secrets, of_variables};
use serde::Deserialize;

use super::attempts::Attempts;
use super::limits::CommandLimits;
use super::programs::search_path;
use super::sockets::Sockets;
use super::supervisor_messages::{Confinement, Order};

/// Whether a program may use the network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Network {
    /// The program can neither connect to anything nor listen.
    #[default]
    None,
    /// The program may connect to anything, and listen.
    Any,
}

/// Marks a listener whose programs may use the network.
#[derive(Clone, Copy, Debug)]
pub struct NetworkPrograms {
    /// Whether the settings say that a door of this machine may be open to everybody.
    pub is_beside_open_door: bool,
}

/// The files and folders that a listener's programs may use.
#[derive(Clone, Debug)]
pub struct ProgramPaths {
    bounds: Bounds,
}

impl ProgramPaths {
    /// The paths that the programs may write, each with the setting that says so. The paths have no
    /// links.
    pub fn writable(&self) -> impl Iterator<Item = (&'static str, &Path)> {
        let Bounds { folder, write, .. } = &self.bounds;
        let more = write.iter().filter(move |it| *it != folder).map(|it| ("write", Path::new(it)));
        [("root", Path::new(folder))].into_iter().chain(more)
    }

    /// The paths that the programs may only read, likewise.
    pub fn readable(&self) -> impl Iterator<Item = (&'static str, &Path)> {
        self.bounds.read.iter().map(|it| ("read", Path::new(it)))
    }

    /// Makes the folder in which the programs run, if it is the default one and doesn't exist.
    ///
    /// # Errors
    /// If the folder can't be made.
    pub fn make_root(&self) -> io::Result<()> {
        self.bounds.make_folder()
    }
}

/// Returns the files and folders of the system that every program may read, without links.
#[must_use]
pub fn system_paths() -> Vec<PathBuf> {
    #[cfg(target_os = "linux")]
    let all = super::system_files::readable();
    #[cfg(not(target_os = "linux"))]
    let all = Vec::<PathBuf>::new();
    all.iter().filter_map(|it| it.canonicalize().ok()).collect()
}

/// The time limit of a program that runs as long as the pump needs it, in seconds: 100 years.
const SERVER_SECONDS: u64 = 100 * 365 * 24 * 60 * 60;

/// The name of the folder in which a program runs by default.
const WORK: &str = "work";
/// The mode of that folder if the pump makes it.
const WORK_MODE: u32 = 0o700;

/// The folder in which a program runs.
#[derive(Clone, Copy)]
pub(in super::super) enum Root<'a> {
    /// The folder that the settings name.
    Named(&'a ManifestPath),
    /// The folder `work` beside the manifest. It is made if it doesn't exist. The path is any one
    /// from the manifest, which has the manifest's folder.
    Work(&'a ManifestPath),
    /// The manifest's folder.
    Manifests(&'a ManifestPath),
}

impl<'a> Root<'a> {
    /// The folder that the settings name, or else the folder `work`. `home` is any path from the
    /// manifest.
    pub(in super::super) fn named_or_work(
        named: Option<&'a ManifestPath>,
        home: &'a ManifestPath,
    ) -> Root<'a> {
        named.map_or(Root::Work(home), Root::Named)
    }

    /// Returns the folder's path without links, and whether the pump makes it.
    fn found(self) -> Result<(String, bool), String> {
        let home = |it: &ManifestPath| match it.folder() {
            it if it.as_os_str().is_empty() => found(Path::new(".")),
            it => found(it),
        };
        let (folder, is_made) = match self {
            Root::Named(it) => (found(&it.path())?, false),
            Root::Manifests(it) => (home(it)?, false),
            Root::Work(it) => {
                let folder = format!("{}/{WORK}", home(it)?.trim_end_matches('/'));
                match Path::new(&folder).symlink_metadata().is_ok() {
                    true => (found(Path::new(&folder))?, true),
                    false => return Ok((folder, true)),
                }
            }
        };
        match Path::new(&folder).is_dir() {
            true => Ok((folder, is_made)),
            false => Err(format!("{folder} is no folder")),
        }
    }
}

/// The settings from which bounds are made.
pub(in super::super) struct Given<'a> {
    pub(in super::super) root: Root<'a>,
    pub(in super::super) env: BTreeMap<String, String>,
    pub(in super::super) read: Vec<ManifestPath>,
    pub(in super::super) write: Vec<ManifestPath>,
    pub(in super::super) network: Network,
    pub(in super::super) limits: CommandLimits,
}

/// The bounds of each program of a listener.
#[derive(Clone, Debug)]
pub(in super::super) struct Bounds {
    /// The folder in which the program runs.
    pub(in super::super) folder: String,
    /// Whether the folder is made if it doesn't exist.
    makes_folder: bool,
    environment: BTreeMap<String, String>,
    read: Vec<String>,
    write: Vec<String>,
    sockets: Sockets,
    pub(in super::super) limits: CommandLimits,
    /// The calls whose programs run.
    pub(super) attempts: Attempts,
    secrets: Vec<Secret>,
    /// The secrets that the programs are given. They are hidden in their outputs.
    pub(super) hidden: Secrets,
}

impl Bounds {
    /// Makes bounds from settings, and resolves every path. A program may also write the folder in
    /// which it runs. Returns an error if a path doesn't exist or isn't Unicode, or if the root is
    /// no folder, or if a secret of the environment is too short to be hidden.
    pub(in super::super) fn new(given: Given<'_>) -> Result<Bounds, String> {
        keep_programs_out();
        let (folder, makes_folder) = given.root.found()?;
        let all = |them: &[ManifestPath]| {
            them.iter().map(|it| found(&it.path())).collect::<Result<Vec<String>, String>>()
        };
        let (read, mut write) = (all(&given.read)?, all(&given.write)?);
        write.push(folder.clone());
        let mut environment = given.env;
        let secrets = of_variables(&environment)?;
        let path = search_path(&environment);
        environment.entry("PATH".to_owned()).or_insert(path);
        environment.entry("LANG".to_owned()).or_insert_with(|| "C.UTF-8".to_owned());
        let sockets = match given.network {
            Network::None => Sockets::Local,
            Network::Any => Sockets::All,
        };
        let bounds = Bounds {
            folder,
            makes_folder,
            environment,
            read,
            write,
            sockets,
            ..Bounds::closed(given.limits)
        };
        Ok(bounds.with_secrets(secrets))
    }

    /// Makes bounds without any socket, and with only the files that every program may use. Doors
    /// needn't look for such a program, since it can't connect to any.
    pub(in super::super) fn closed(limits: CommandLimits) -> Bounds {
        let environment = BTreeMap::from([("LANG".to_owned(), "C.UTF-8".to_owned())]);
        Bounds {
            folder: "/".to_owned(),
            makes_folder: false,
            environment,
            read: Vec::new(),
            write: Vec::new(),
            sockets: Sockets::None,
            limits,
            attempts: Attempts::default(),
            secrets: Vec::new(),
            hidden: Secrets::default(),
        }
    }

    /// Returns these bounds with more secrets, which the programs are given as arguments.
    pub(in super::super) fn with_secrets(mut self, more: Vec<Secret>) -> Bounds {
        self.secrets.extend(more);
        self.hidden = Secrets::new(self.secrets.iter().cloned());
        self
    }

    /// Returns the secrets that the programs are given.
    pub(in super::super) fn secrets(&self) -> Vec<Secret> {
        self.secrets.clone()
    }

    /// Returns these bounds, extended so that the program at `path` may be read and executed.
    pub(in super::super) fn with_program(mut self, path: &str) -> Result<Bounds, String> {
        // If the path is a link, both the link and its target are allowed.
        self.read.push(path.to_owned());
        self.read.push(found(Path::new(path))?);
        Ok(self)
    }

    /// Returns these bounds, extended by files and folders that may be read, and by those that may
    /// also be written. The paths are absolute, and needn't exist.
    pub(in super::super) fn with_paths(mut self, read: Vec<String>, write: Vec<String>) -> Bounds {
        self.read.extend(read);
        self.write.extend(write);
        self
    }

    /// Returns these bounds with one more folder that may be written, and with more environment
    /// variables.
    pub(in super::super) fn with_folder(mut self, path: &str, all: &[(&str, &str)]) -> Bounds {
        self.write.push(path.to_owned());
        let all = all.iter().map(|(name, it)| ((*name).to_owned(), (*it).to_owned()));
        self.environment.extend(all);
        self
    }

    /// Returns these bounds with one more environment variable.
    pub(super) fn with_variable(mut self, name: &str, value: String) -> Bounds {
        self.environment.insert(name.to_owned(), value);
        self
    }

    /// Returns the effects of a listener whose programs have these bounds.
    pub(in super::super) fn effects(&self) -> Effects {
        match self.sockets {
            Sockets::All => Effects::Outside,
            Sockets::Local | Sockets::None => Effects::Writes,
        }
    }

    /// Makes the folder in which the program runs, if it is the default one and doesn't exist.
    pub(super) fn make_folder(&self) -> io::Result<()> {
        if !self.makes_folder || Path::new(&self.folder).is_dir() {
            return Ok(());
        }
        match DirBuilder::new().mode(WORK_MODE).create(&self.folder) {
            // Another program's call has made it meanwhile.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            made => made.map_err(|error| io::Error::new(error.kind(), self.unmade(&error))),
        }
    }

    fn unmade(&self, error: &io::Error) -> String {
        format!("{} can't be made: {error}", self.folder)
    }

    /// Returns the listener, with the paths that its programs may use, and marked if they may use
    /// the network.
    pub(in super::super) fn mark(&self, listener: Listener, is_beside_open_door: bool) -> Listener {
        let listener = listener.extension(ProgramPaths { bounds: self.clone() });
        match self.sockets {
            Sockets::All => listener.extension(NetworkPrograms { is_beside_open_door }),
            Sockets::Local | Sockets::None => listener,
        }
    }

    /// Returns the search path of programs.
    pub(in super::super) fn search_path(&self) -> &str {
        self.environment.get("PATH").map_or("", String::as_str)
    }

    /// Makes the order to run a program within these bounds.
    pub(super) fn order(&self, program: &str, arguments: Vec<String>, input: String) -> Order {
        let limits = &self.limits;
        Order {
            program: program.to_owned(),
            arguments,
            folder: self.folder.clone(),
            environment: self.environment.clone(),
            input,
            is_server: false,
            seconds: limits.seconds_max,
            confinement: Confinement {
                read: self.read.clone(),
                write: self.write.clone(),
                sockets: self.sockets,
                is_free: false,
                memory: limits.memory_bytes_max,
                file: limits.file_bytes_max,
                descriptors: limits.descriptors_max,
                supervisor: 0,
            },
        }
    }
}

impl Order {
    /// Changes this order for a program that runs as long as the pump needs it.
    pub(super) fn serving(mut self) -> Order {
        self.is_server = true;
        self.seconds = SERVER_SECONDS;
        self
    }

    /// Changes this order so that Landlock doesn't confine the program.
    pub(super) fn free(mut self) -> Order {
        self.confinement.is_free = true;
        self
    }
}

/// Returns the absolute path, with all links resolved. Returns an error if nothing is at the path,
/// or if the path isn't Unicode.
fn found(path: &Path) -> Result<String, String> {
    let shown = path.display();
    let real = path.canonicalize().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => format!("there is no {shown}; make it first"),
        _ => format!("{shown}: {error}"),
    })?;
    real.into_os_string().into_string().map_err(|_| format!("{shown} has a name that is no text"))
}
