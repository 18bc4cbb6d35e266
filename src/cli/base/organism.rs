//! The organism to serve or check: the program's builder and the manifest. Flags replace some
//! values of the manifest.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use crate::bounded_yaml;
use crate::cli::base::screen::Failure;
use crate::client::Address;
use crate::door::Tokens;
use crate::engine::{Builder, Complaints, Plan};
use crate::listener::{Capabilities, Described};
use crate::listeners;
use crate::listeners::models::WithModels;
use crate::listeners::tool::command::NetworkPrograms;
use crate::log::Durability;
use crate::manifest::{self, Context, DATA, Door, Manifest, Mistake, Mistakes, Overrides, Places};
use crate::model::Models;
use crate::sink::{Return, Sink};
use crate::trigger_source::TriggerSource;

/// The default address to listen on, and to connect to.
const LISTEN: &str = "127.0.0.1:8765";

/// Everything that a start needs, except open files and sockets.
pub(crate) struct Organism {
    pub(crate) builder: Builder,
    /// The path of the manifest, if there is one.
    pub(crate) file: Option<PathBuf>,
    pub(crate) name: Option<String>,
    pub(crate) data: PathBuf,
    pub(crate) durability: Durability,
    pub(crate) tokens: Tokens,
    pub(crate) doors: Vec<Door>,
    /// Where spans for OpenTelemetry are sent, if the manifest says so.
    pub(crate) otel: Option<manifest::Otel>,
    /// The sinks of entries and live payloads.
    pub(crate) sinks: Vec<Sink>,
    /// The source that notifies triggers of entries and times.
    pub(crate) trigger_source: TriggerSource,
    /// Sinks of the type `return`, which only a program that embeds the pump can read.
    pub(crate) returns: Vec<Return>,
    /// Probable mistakes in files that the manifest names.
    pub(crate) warnings: Vec<Mistakes>,
    /// Where the manifest and its files declare each listener. None without a manifest.
    pub(crate) places: Option<Places>,
    /// The provider files of models.
    pub(crate) providers: Vec<PathBuf>,
    /// The folder for agents' files, and the feeds that these files list.
    pub(crate) context: Context,
}

/// Why there is no organism.
pub(crate) enum Unread {
    /// The manifest is wrong.
    Mistakes(Mistakes),
    /// The manifest can't be read, the named manifest doesn't exist, or the program's own builder
    /// is wrong.
    Failure(Failure),
}

impl From<Unread> for Failure {
    fn from(unread: Unread) -> Failure {
        match unread {
            Unread::Mistakes(all) => Failure::Untried(told(&all)),
            Unread::Failure(it) => it,
        }
    }
}

/// Makes an error from a builder's complaints, with places in the manifest if there is one.
pub(crate) fn complained(all: &Complaints, places: Option<&Places>) -> Unread {
    match places {
        Some(places) => Unread::Mistakes(places.find(all)),
        None => Unread::Failure(Failure::Untried(all.to_string())),
    }
}

/// Checks that the triggers fit the payloads of the organism. Only a manifest has triggers.
pub(crate) fn check_triggers(
    source: &TriggerSource,
    all: &Capabilities,
    places: Option<&Places>,
) -> Result<(), Unread> {
    let wrong = source.wrong_triggers(all);
    if wrong.is_empty() {
        return Ok(());
    }
    Err(Unread::Mistakes(places.cloned().unwrap_or_default().find_triggers(&wrong)))
}

/// Checks that no listener's programs may connect to a door that lets everybody of this machine in
/// without a token, unless the listener's settings allow it.
pub(crate) fn check_open_doors(
    plan: &Plan,
    doors: &[Door],
    tokens: &Tokens,
    places: Option<&Places>,
) -> Result<(), Unread> {
    let open = doors.iter().find_map(|it| match it {
        Door::Tcp { address, .. } if tokens.is_empty() => Some(address),
        _ => None,
    });
    let Some(address) = open else { return Ok(()) };
    let is_wrong = |it: &&Described| {
        it.extension::<NetworkPrograms>().is_some_and(|it| !it.is_beside_open_door)
    };
    let names = plan.listeners().iter().filter(is_wrong).map(|it| it.name.clone());
    let wrong = names.map(|name| {
        let text = format!(
            "the programs of `{name}` may use the network, and the door at {address} lets \
             everybody of this machine in without a token"
        );
        (name, text)
    });
    let wrong: Vec<(String, String)> = wrong.collect();
    if wrong.is_empty() {
        return Ok(());
    }
    let advice = "add `tokens:`, leave `network: any` out, or write `beside_open_door: true` into \
                  the settings";
    let Some(places) = places else {
        let all: Vec<&str> = wrong.iter().map(|(_, text)| text.as_str()).collect();
        return Err(Unread::Failure(Failure::Untried(format!("{}; {advice}", all.join("; ")))));
    };
    Err(Unread::Mistakes(places.find_listeners(&wrong, advice)))
}

/// Formats all mistakes for people.
pub(crate) fn told(all: &Mistakes) -> String {
    let count = all.all().len();
    let mistakes = if count == 1 { "mistake" } else { "mistakes" };
    let mut files: Vec<&str> = all.all().iter().map(|it| all.file_of(it)).collect();
    files.dedup();
    format!("{count} {mistakes} in {}\n{all}", files.join(" and "))
}

impl Organism {
    /// Reads the named manifest, or the one in the current folder, if there is one. Nothing is
    /// started. If `data` is given, the log is in that folder.
    pub(crate) fn read(
        file: Option<&Path>,
        builder: Builder,
        data: Option<&Path>,
    ) -> Result<Organism, Unread> {
        let overrides = Overrides { data, ..Overrides::default() };
        Organism::read_with(file, builder, |_: &mut Builder| {}, overrides)
    }

    /// Reads as [`Organism::read`] does, but starts MCP servers and asks them for their tools.
    pub(crate) fn read_live(
        file: Option<&Path>,
        builder: Builder,
        data: Option<&Path>,
    ) -> Result<Organism, Unread> {
        let overrides = Overrides { data, ..Overrides::default() };
        Organism::read_with(file, builder, listeners::live_factories, overrides)
    }

    /// Reads as [`Organism::read_live`] does, and waits for the answer of each MCP server.
    pub(crate) fn read_asking(
        file: Option<&Path>,
        builder: Builder,
        data: Option<&Path>,
    ) -> Result<Organism, Unread> {
        let overrides = Overrides { data, ..Overrides::default() };
        Organism::read_with(file, builder, listeners::asking_factories, overrides)
    }

    /// Reads as [`Organism::read_live`] does. `model` holds the name of an agent, and the name of
    /// the model that replaces the agent's own.
    pub(crate) fn read_live_with_model(
        file: &Path,
        builder: Builder,
        model: Option<(&str, &str)>,
    ) -> Result<Organism, Unread> {
        let overrides = Overrides { model, ..Overrides::default() };
        Organism::read_with(Some(file), builder, listeners::live_factories, overrides)
    }

    /// Reads as [`Organism::read_live`] does, and records the tools that each MCP server has now.
    /// The new tools replace the recorded ones.
    pub(crate) fn read_accepting(
        file: Option<&Path>,
        builder: Builder,
    ) -> Result<Organism, Unread> {
        let overrides = Overrides::default();
        Organism::read_with(file, builder, listeners::accepting_factories, overrides)
    }

    /// Reads the manifest, if there is one. `factories` are added before those of the house staff.
    /// Of several factories with the same name, the first one is used.
    fn read_with(
        file: Option<&Path>,
        builder: Builder,
        factories: fn(&mut Builder),
        overrides: Overrides<'_>,
    ) -> Result<Organism, Unread> {
        let nobody = builder.listeners().next().is_none();
        let is_bare = nobody && builder.factories().is_empty();
        let mut staff = listeners::staff();
        staff.retain(|one| builder.listeners().all(|it| it != one.name()));
        let builder = builder.with((factories, listeners::factories, staff));
        let file = file.map(Path::to_owned).or_else(|| here().map(Path::to_owned));
        let read = |file: &PathBuf| manifest(file, &builder, is_bare, overrides);
        let mut manifest = file.as_ref().map(read).transpose()?;
        let says = manifest.as_ref();
        let mut staff = Vec::new();
        if nobody && says.is_none_or(|it| it.listeners.is_none()) {
            staff = listeners::usual();
            // The key `meta` of a manifest adds a `describe` of its own, which replaces the usual
            // one.
            let is_told = says.is_some_and(|it| it.meta.is_some());
            staff.retain(|it| !is_told || it.name() != listeners::describe::NAME);
        }
        let usual = || vec![Door::Tcp { address: LISTEN.to_owned(), tls: None }];
        Ok(Organism {
            file,
            name: says.and_then(|it| it.name.clone()),
            data: overrides
                .data
                .map(Path::to_owned)
                .or_else(|| says.and_then(|it| it.data.clone()))
                .unwrap_or_else(|| DATA.into()),
            durability: says.and_then(|it| it.durability).unwrap_or_default(),
            tokens: says.and_then(|it| it.tokens.clone()).unwrap_or_default(),
            doors: says.and_then(|it| it.doors.clone()).unwrap_or_else(usual),
            otel: says.and_then(|it| it.otel.clone()),
            sinks: says.map(Manifest::all_sinks).unwrap_or_default(),
            trigger_source: says.map(|it| it.trigger_source.clone()).unwrap_or_default(),
            returns: says.map(Manifest::all_returns).unwrap_or_default(),
            warnings: says.map(|it| it.warnings.clone()).unwrap_or_default(),
            places: says.map(|it| it.places.clone()),
            providers: says.iter().flat_map(|it| &it.providers).map(|it| it.file.clone()).collect(),
            context: says.map(|it| it.context.clone()).unwrap_or_default(),
            builder: builder.with((manifest.take(), staff)),
        })
    }
}

/// Reads a manifest. `builder` must already have every factory that the manifest may name.
fn manifest(
    file: &Path,
    builder: &Builder,
    is_bare: bool,
    overrides: Overrides<'_>,
) -> Result<Manifest, Unread> {
    let bytes = bytes_of(file).map_err(|error| {
        let way = "name another, or make one with `pumphouse init DIR`";
        let text = format!("{} can't be read: {error}; {way}", file.display());
        Unread::Failure(Failure::Untried(text))
    })?;
    let read = Manifest::read_with(file, &bytes, &variable, builder, overrides);
    read.map_err(|all| match is_bare && file.with_file_name("Cargo.toml").exists() {
        true => Unread::Mistakes(all.advise(of_a_program)),
        false => Unread::Mistakes(all),
    })
}

/// Returns the models of each of these manifests, and the models of the program itself.
pub(crate) fn models(files: &[PathBuf], builder: Builder) -> Result<(Vec<Models>, Models), Unread> {
    let is_bare = builder.listeners().next().is_none() && builder.factories().is_empty();
    let builder = builder.with(listeners::factories);
    let of_file =
        |file: &PathBuf| Ok(manifest(file, &builder, is_bare, Overrides::default())?.models);
    let all: Result<Vec<Models>, Unread> = files.iter().map(of_file).collect();
    Ok((all?, builder.models().clone()))
}

/// Returns advice for an unknown `use:`. The project in this folder may have a listener of that
/// name in its own program.
fn of_a_program(mistake: &Mistake) -> Option<String> {
    let text = "the listeners of the project here are known to `cargo run -- check`";
    mistake.path.ends_with("].use").then(|| text.to_owned())
}

/// Returns a builder with everything that `run` would serve in the current folder. MCP servers
/// aren't asked; their tools are the recorded ones.
pub(crate) fn served(builder: Builder) -> Result<Builder, Failure> {
    Ok(Organism::read(None, builder, None)?.builder)
}

/// Returns the folder of the log for verbs without --data: the one that the manifest in the current
/// folder names, or the default.
pub(crate) fn data() -> PathBuf {
    let says = here().and_then(|file| {
        let bytes = bytes_of(file).ok()?;
        Manifest::data_of(file, &bytes, &variable)
    });
    says.unwrap_or_else(|| DATA.into())
}

/// Returns the pump's name in the manifest of the current folder, and where its spans for
/// OpenTelemetry are sent.
#[cfg(feature = "otel")]
pub(crate) fn otel() -> Result<(Option<String>, Option<manifest::Otel>), Failure> {
    let Some(file) = here() else { return Ok((None, None)) };
    let bytes = bytes_of(file)
        .map_err(|error| Failure::Untried(format!("{} can't be read: {error}", file.display())))?;
    let says = Manifest::otel_of(file, &bytes, &variable);
    says.map_err(|all| Unread::Mistakes(all).into())
}

/// Returns the address of the pump to connect to by default: a door of the manifest in the current
/// folder. The address is 127.0.0.1:8765 if there is no manifest, or if the manifest has no key
/// `doors`.
pub(crate) fn address() -> Result<Address, Failure> {
    let usual = || Address::Tcp(LISTEN.to_owned());
    let Some(file) = here() else { return Ok(usual()) };
    let untold = |why: String| {
        let text = "where the pump listens can't be told; say it with --connect ADDR";
        Failure::Untried(format!("{text}\n{why}"))
    };
    let bytes = bytes_of(file).map_err(|error| untold(format!("{}: {error}", file.display())))?;
    let says = Manifest::address_of(file, &bytes, &variable);
    Ok(says.map_err(|all| untold(all.to_string()))?.unwrap_or_else(usual))
}

/// Returns the path of the manifest in the current folder, if there is one.
pub(crate) fn here() -> Option<&'static Path> {
    let path = Path::new(manifest::FILE);
    path.exists().then_some(path)
}

/// Reads a file, but at most one byte more than a manifest may have. The additional byte shows that
/// the file is too large.
pub(crate) fn bytes_of(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let most = u64::try_from(bounded_yaml::BYTES_MAX).unwrap_or(u64::MAX);
    File::open(path)?.take(most + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Returns the value of an environment variable. Returns None if the variable isn't set, or its
/// value isn't UTF-8.
#[expect(clippy::disallowed_methods, reason = "the command line reads the environment")]
pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}
