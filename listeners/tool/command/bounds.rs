//! The bounds of a listener's programs: the files, the network, the time and the memory that they
//! may use. The paths in bounds are absolute. Links in paths from the settings are resolved.

use std::collections::BTreeMap;
use std::path::Path;

use pumphouse::door::keep_programs_out;
use pumphouse::listener::{Beside, Effects};
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

/// The time limit of a program that runs as long as the pump needs it, in seconds: 100 years.
const SERVER_SECONDS: u64 = 100 * 365 * 24 * 60 * 60;

/// The settings from which bounds are made.
pub(in super::super) struct Given<'a> {
    /// Any path from the manifest. It is used only to find the manifest's folder, which is the
    /// default of `root`.
    pub(in super::super) home: &'a Beside,
    pub(in super::super) root: Option<&'a Beside>,
    pub(in super::super) env: BTreeMap<String, String>,
    pub(in super::super) read: Vec<Beside>,
    pub(in super::super) write: Vec<Beside>,
    pub(in super::super) network: Network,
    pub(in super::super) limits: CommandLimits,
}

/// The bounds of each program of a listener.
#[derive(Clone, Debug)]
pub(in super::super) struct Bounds {
    /// The folder in which the program runs.
    pub(in super::super) folder: String,
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
        let home = match given.home.folder() {
            it if it.as_os_str().is_empty() => Path::new("."),
            it => it,
        };
        let folder = match given.root {
            Some(it) => found(&it.path())?,
            None => found(home)?,
        };
        if !Path::new(&folder).is_dir() {
            return Err(format!("{folder} is no folder"));
        }
        let all = |them: &[Beside]| {
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
        let limits = given.limits;
        let attempts = Attempts::default();
        let hidden = Secrets::new(secrets.iter().cloned());
        Ok(Bounds { folder, environment, read, write, sockets, limits, attempts, secrets, hidden })
    }

    /// Makes bounds without any socket, and with only the files that every program may use. Doors
    /// needn't look for such a program, since it can't connect to any.
    pub(in super::super) fn closed(limits: CommandLimits) -> Bounds {
        let environment = BTreeMap::from([("LANG".to_owned(), "C.UTF-8".to_owned())]);
        let (read, write, sockets) = (Vec::new(), Vec::new(), Sockets::None);
        let (folder, attempts) = ("/".to_owned(), Attempts::default());
        let (secrets, hidden) = Default::default();
        Bounds { folder, environment, read, write, sockets, limits, attempts, secrets, hidden }
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

    /// Returns the listener, marked if its programs may use the network.
    pub(in super::super) fn mark(&self, listener: Listener, is_beside_open_door: bool) -> Listener {
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
        std::io::ErrorKind::NotFound => format!("there is no {shown}; make it first"),
        _ => format!("{shown}: {error}"),
    })?;
    real.into_os_string().into_string().map_err(|_| format!("{shown} has a name that is no text"))
}
