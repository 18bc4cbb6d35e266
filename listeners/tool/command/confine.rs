//! The launcher: a process that gives up the rights that the program must not have, and is then
//! replaced by the program.
//!
//! Landlock is the part of the Linux kernel that limits a process's use of files, sockets and
//! signals. On a kernel without Landlock, a program may use every file that the pump may use. The
//! description of a listener then contains the warning that [`note`] returns. The network doesn't
//! depend on Landlock: see `sockets.rs`.

use std::ffi::OsString;
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
#[cfg(target_os = "linux")]
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use rustix::process::{Resource, Rlimit, setrlimit, setsid};

use super::orphans::mark_program;
use super::sockets;
#[cfg(target_os = "linux")]
use super::sockets::Sockets;
use super::supervisor_messages::Confinement;
#[cfg(target_os = "linux")]
use super::system_files;

/// The exit code if the program can't be started or confined. Shells use the same code if they
/// can't find a program.
const NOT_BEGUN: u8 = 127;

/// Returns a warning for the description of a listener if the system doesn't confine its programs
/// as it should. The warning is empty if it does.
#[must_use]
pub fn note() -> &'static str {
    note_of(kernel())
}

/// Returns a warning for the description of a listener whose programs have all rights of the pump's
/// user, if the system doesn't keep them from sending signals. Otherwise the result is empty.
pub(in super::super) fn signals_note() -> &'static str {
    match kernel() {
        Kernel::All => "",
        _ => {
            " This system doesn't keep the program from ending other processes of the pump's user, \
             the pump and the program's supervisor among them."
        }
    }
}

/// Writes a warning to the traces if the system doesn't confine the programs of a listener as it
/// should.
pub(in super::super) fn warn(listener: &str) {
    let note = note();
    if !note.is_empty() {
        tracing::warn!(listener, "{}", note.trim());
    }
}

/// What the system can keep a program from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kernel {
    /// It isn't Linux.
    Nothing,
    /// Linux without Landlock.
    Sockets,
    /// Landlock before Linux 6.12.
    Files,
    /// Files, sockets and signals.
    All,
}

/// Returns the text of [`note`] for a system.
pub(super) fn note_of(kernel: Kernel) -> &'static str {
    match kernel {
        Kernel::All => "",
        Kernel::Files => {
            " The Landlock of this system doesn't know signals: the program may end other \
             processes of the pump's user, the pump and the program's supervisor among them."
        }
        Kernel::Sockets => {
            " This system has no Landlock: the program may read and write whatever the pump may, \
             and end its processes."
        }
        Kernel::Nothing => {
            " This system has no Landlock: the program may read and write whatever the pump may, \
             end its processes, and use the network."
        }
    }
}

/// Confines this process and replaces it by the program. The arguments are the confinement in JSON,
/// the program's path and the program's own arguments. This function returns only if a step fails.
pub(super) fn launch(mut arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let order = arguments.next().and_then(|it| it.into_string().ok());
    let order = order.and_then(|it| serde_json::from_str::<Confinement>(&it).ok());
    let (Some(order), Some(program)) = (order, arguments.next()) else {
        return not_begun("a launcher is begun by its supervisor");
    };
    if let Err(why) = confine(&order) {
        return not_begun(&why);
    }
    let error = Command::new(&program).args(arguments).exec();
    not_begun(&format!("{}: {error}", Path::new(&program).display()))
}

fn not_begun(why: &str) -> ExitCode {
    // If standard error can't be written, the message can go nowhere else.
    let _ = writeln!(std::io::stderr(), "pumphouse: {why}");
    ExitCode::from(NOT_BEGUN)
}

/// Confines this process. The limits also hold for the program that this process becomes, and for
/// all processes that the program starts.
fn confine(order: &Confinement) -> Result<(), String> {
    let said = |what: &'static str| move |error| format!("{what}: {error}");
    // In a new session, the program has no terminal.
    setsid().map_err(said("no session"))?;
    bind_to(order.supervisor)?;
    let all = [
        (Resource::Core, 0),
        (Resource::Data, order.memory),
        (Resource::Fsize, order.file),
        (Resource::Nofile, order.descriptors),
    ];
    for (resource, most) in all {
        let limit = Rlimit { current: Some(most), maximum: Some(most) };
        setrlimit(resource, limit).map_err(said("no limit"))?;
    }
    mark_program().map_err(|error| format!("no mark: {error}"))?;
    if order.is_free {
        return scope_signals();
    }
    landlock(order)?;
    sockets::bound(order.sockets)
}

/// Tells the kernel to kill this process when the supervisor ends.
#[cfg(target_os = "linux")]
fn bind_to(supervisor: i32) -> Result<(), String> {
    use rustix::process::{Signal, getppid, set_parent_process_death_signal};
    let bound = set_parent_process_death_signal(Some(Signal::KILL));
    bound.map_err(|error| format!("not bound to the supervisor: {error}"))?;
    // If the supervisor ended before the signal was set, the kernel doesn't send the signal. So
    // this process checks that its parent is still the supervisor.
    match getppid().is_some_and(|it| it.as_raw_nonzero().get() == supervisor) {
        true => Ok(()),
        false => Err("the supervisor is gone".to_owned()),
    }
}

#[cfg(not(target_os = "linux"))]
fn bind_to(_: i32) -> Result<(), String> {
    Ok(())
}

fn kernel() -> Kernel {
    match knows_files_and_signals() {
        _ if cfg!(not(target_os = "linux")) => Kernel::Nothing,
        (true, true) => Kernel::All,
        (true, false) => Kernel::Files,
        (false, _) => Kernel::Sockets,
    }
}

#[cfg(target_os = "linux")]
fn knows_files_and_signals() -> (bool, bool) {
    use landlock::{
        ABI, Access as _, AccessFs, CompatLevel, Compatible as _, Ruleset, RulesetAttr as _, Scope,
    };
    let hard = || Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    let files = hard().handle_access(AccessFs::from_all(ABI::V1)).and_then(Ruleset::create);
    let signals = hard().scope(Scope::Signal).and_then(Ruleset::create);
    (files.is_ok(), signals.is_ok())
}

#[cfg(not(target_os = "linux"))]
fn knows_files_and_signals() -> (bool, bool) {
    (false, false)
}

#[cfg(target_os = "linux")]
fn landlock(order: &Confinement) -> Result<(), String> {
    use landlock::{
        ABI, Access as _, AccessFs, AccessNet, Ruleset, RulesetAttr as _, RulesetCreatedAttr as _,
        Scope, path_beneath_rules,
    };
    let abi = ABI::V10;
    let confined = || {
        let rules = Ruleset::default().handle_access(AccessFs::from_all(abi))?;
        let rules = rules.scope(Scope::AbstractUnixSocket)?.scope(Scope::Signal)?;
        let rules = match order.sockets {
            Sockets::All => rules,
            Sockets::Local | Sockets::None => rules.handle_access(AccessNet::from_all(abi))?,
        };
        let read = system_files::readable().into_iter().chain(order.read.iter().map(PathBuf::from));
        let devices = system_files::DEVICES.iter().map(PathBuf::from);
        let write = devices.chain(order.write.iter().map(PathBuf::from));
        // A path that doesn't exist gets no rule.
        rules
            .create()?
            .add_rules(path_beneath_rules(read, AccessFs::from_read(abi)))?
            .add_rules(path_beneath_rules(write, AccessFs::from_all(abi)))?
            .restrict_self()
    };
    confined().map(drop).map_err(|error: landlock::RulesetError| format!("not confined: {error}"))
}

/// Keeps this process from sending signals to processes that it doesn't begin. It can't kill its
/// supervisor then. A kernel that doesn't know this bound leaves it out.
#[cfg(target_os = "linux")]
fn scope_signals() -> Result<(), String> {
    use landlock::{Ruleset, RulesetAttr as _, Scope};
    let scoped = Ruleset::default().scope(Scope::Signal).and_then(Ruleset::create);
    let scoped = scoped.and_then(landlock::RulesetCreated::restrict_self);
    scoped.map(drop).map_err(|error| format!("not confined: {error}"))
}

#[cfg(not(target_os = "linux"))]
fn scope_signals() -> Result<(), String> {
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn landlock(_: &Confinement) -> Result<(), String> {
    Ok(())
}
