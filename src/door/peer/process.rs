//! Processes of this machine: whether one descends from this process, and which one has a socket
//! open.

use std::collections::VecDeque;
use std::fs;
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use nix::errno::Errno;
use nix::sys::socket::{getsockopt, sockopt::PeerPidfd};
use nix::unistd::Uid;
use rustix::process::{Pid, PidfdFlags, pidfd_open, test_kill_process};
use tokio::net::UnixStream;

use super::socket::Owner;
use super::{Peer, warn_once};

/// The maximum number of ancestors that are looked at. Few processes have more than twenty, so a
/// longer line is made to be long.
const ANCESTORS_MAX: usize = 1_000;
/// How often a line of ancestors is read again if it changes meanwhile.
const LOOKS_MAX: u32 = 5;
/// How many processes that connected lately are looked at first.
const RECENT_MAX: usize = 8;

/// Looks at the process that connected to a Unix socket.
pub(super) fn at(stream: &UnixStream) -> Peer {
    let Ok(credentials) = stream.peer_cred() else { return Peer::Unknown };
    let own_user = Uid::current();
    let number = match credentials.pid() {
        // The kernel shows no number of a process outside this process's namespace.
        None | Some(0) => return Peer::OtherNamespace,
        Some(number) => number,
    };
    let handle = match handle(stream, number) {
        Ok(handle) => handle,
        Err(peer) => return peer,
    };
    let Some(seen) = handle.look() else { return Peer::Unknown };
    let peer = match (seen.is_nested, descends(seen.number)) {
        (_, Some(true)) => Peer::Descendant,
        (true, _) => Peer::OtherNamespace,
        (false, Some(false)) => Peer::Other,
        // Another user's processes may be hidden. A program has the pump's user.
        (false, None) if !own_user.is_root() && credentials.uid() != own_user.as_raw() => {
            Peer::Other
        }
        (false, None) => Peer::Unknown,
    };
    // If the process has ended meanwhile, another one may have its number.
    match handle.look().is_some_and(|it| it.number == seen.number) {
        true => peer,
        false => Peer::Unknown,
    }
}

/// The process with a socket of this machine.
pub(super) fn of_socket(owner: Owner) -> Peer {
    let own_user = Uid::current();
    // A program has the pump's user, and can't become another one.
    if !own_user.is_root() && owner.user != own_user.as_raw() {
        return Peer::Other;
    }
    let Some(number) = holder(owner.inode) else { return Peer::Unknown };
    let is_nested = nested(&proc(number, "status"));
    match (descends(number), is_nested) {
        (Some(true), _) => Peer::Descendant,
        (Some(false), Some(false)) => Peer::Other,
        (_, Some(true)) => Peer::OtherNamespace,
        _ => Peer::Unknown,
    }
}

/// A way to tell a process from a later one with the same number.
enum Handle {
    File(OwnedFd),
    /// The kernel has no such file.
    Number(i32),
}

/// What is known of a process.
struct Seen {
    number: i32,
    /// Whether the process is in a PID namespace below this process's.
    is_nested: bool,
}

/// Returns a handle of the process that connected.
///
/// # Errors
/// If the process has ended.
fn handle(stream: &UnixStream, number: i32) -> Result<Handle, Peer> {
    match getsockopt(stream, PeerPidfd) {
        Ok(file) => return Ok(Handle::File(file)),
        Err(Errno::ENOPROTOOPT | Errno::EMFILE | Errno::ENFILE) => {}
        Err(_) => return Err(Peer::Unknown),
    }
    let id = Pid::from_raw(number).ok_or(Peer::OtherNamespace)?;
    match pidfd_open(id, PidfdFlags::empty()) {
        Ok(file) => Ok(Handle::File(file)),
        Err(rustix::io::Errno::SRCH) => Err(Peer::Unknown),
        Err(error) => {
            warn_once(&format_args!("the kernel has no pidfd: {error}"));
            Ok(Handle::Number(number))
        }
    }
}

impl Handle {
    /// Returns what is known of the process, or `None` if it has ended.
    fn look(&self) -> Option<Seen> {
        let status = match self {
            Handle::File(file) => {
                PathBuf::from(format!("/proc/self/fdinfo/{}", file.as_fd().as_raw_fd()))
            }
            Handle::Number(number) => proc(*number, "status"),
        };
        let text = fs::read_to_string(&status).map_err(|error| warn_once(&error)).ok()?;
        let number = field(&text, "Pid:")?.parse().ok().filter(|it| *it > 0)?;
        Some(Seen { number, is_nested: nested(&status)? })
    }
}

/// Whether a process is in a nested PID namespace, by a file that has the line `NSpid`. A kernel
/// without this line has no such namespaces.
fn nested(status: &std::path::Path) -> Option<bool> {
    let text = fs::read_to_string(status).ok()?;
    let numbers = field(&text, "NSpid:").map_or(1, |it| it.split_whitespace().count());
    Some(numbers > 1)
}

fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|it| it.strip_prefix(name)).map(str::trim)
}

fn proc(number: i32, file: &str) -> PathBuf {
    PathBuf::from(format!("/proc/{number}/{file}"))
}

/// A process in a line of ancestors. Two processes with the same number differ in their start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ancestor {
    number: i32,
    session: i32,
    started: u64,
}

/// Whether a process descends from this one, and is in another session. `None` if that can't be
/// told. A program has a session of its own, and neither it nor what it begins gets into this
/// process's session again. So a process in this process's session is no program.
fn descends(number: i32) -> Option<bool> {
    let own = own_number().map_err(|error| warn_once(&error)).ok()?;
    if number == own {
        return Some(false);
    }
    let (_, this) = stat(own).ok()?;
    for _ in 0..LOOKS_MAX {
        let looked = line(number, own).and_then(|first| Ok((first, line(number, own)?)));
        match looked {
            Ok((first, second)) if first == second => {
                if first.first().is_some_and(|it| it.session == this.session) {
                    return Some(false);
                }
                return Some(first.iter().any(|it| it.number == own));
            }
            // A process of the line has ended meanwhile, and its children have another parent.
            Ok(_) | Err(_) => {}
        }
    }
    None
}

/// Returns a process and its ancestors, up to this process or to the first process of all.
fn line(number: i32, own: i32) -> io::Result<Vec<Ancestor>> {
    let (mut line, mut next) = (Vec::<Ancestor>::new(), number);
    while next != 0 {
        let (parent, it) = match stat(next) {
            // The system may hide processes of other users (`hidepid`). Programs stay the pump's
            // user, so such an ancestor isn't below the pump.
            Err(_) if !line.is_empty() && is_of_another_user(next) => break,
            read => read?,
        };
        let is_older = line.last().is_none_or(|child| it.started <= child.started);
        if !is_older || line.len() == ANCESTORS_MAX {
            return Err(io::ErrorKind::InvalidData.into());
        }
        line.push(it);
        if next == own {
            break;
        }
        next = parent;
    }
    Ok(line)
}

/// Whether a process exists that this one may send no signal to.
fn is_of_another_user(number: i32) -> bool {
    let id = Pid::from_raw(number);
    id.is_some_and(|it| test_kill_process(it) == Err(rustix::io::Errno::PERM))
}

/// The number of this process, in the namespace that `/proc` shows.
fn own_number() -> io::Result<i32> {
    let text = fs::read_to_string("/proc/self/stat")?;
    let number = text.split_once(' ').and_then(|(it, _)| it.parse().ok());
    number.ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// Returns the number of a process's parent, and what is known of the process.
fn stat(number: i32) -> io::Result<(i32, Ancestor)> {
    let bytes = fs::read(proc(number, "stat"))?;
    let read = |text: &str| {
        // A process's name may have any characters, even `)`.
        let (_, rest) = text.rsplit_once(')')?;
        let mut fields = rest.split_ascii_whitespace().skip(1);
        let parent = fields.next()?.parse().ok()?;
        let session = fields.nth(1)?.parse().ok()?;
        Some((parent, Ancestor { number, session, started: fields.nth(15)?.parse().ok()? }))
    };
    read(&String::from_utf8_lossy(&bytes)).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// Returns a process that has a socket open.
fn holder(inode: u64) -> Option<i32> {
    static RECENT: Mutex<VecDeque<i32>> = Mutex::new(VecDeque::new());
    let link = PathBuf::from(format!("socket:[{inode}]"));
    let recent = || RECENT.lock().unwrap_or_else(PoisonError::into_inner);
    let first: Vec<i32> = recent().iter().copied().collect();
    let own = own_number().ok()?;
    let numbers = fs::read_dir("/proc").ok()?.flatten();
    let numbers = numbers.filter_map(|it| it.file_name().to_str()?.parse::<i32>().ok());
    let mut numbers: Vec<i32> = numbers.filter(|it| *it != own).collect();
    // A client most often began lately. This process has the most files of all.
    numbers.sort_unstable_by(|a, b| b.cmp(a));
    let found = first.into_iter().chain(numbers).chain([own]).find(|it| has_open(*it, &link))?;
    let mut recent = recent();
    recent.retain(|it| *it != found);
    recent.truncate(RECENT_MAX - 1);
    recent.push_front(found);
    Some(found)
}

fn has_open(number: i32, link: &std::path::Path) -> bool {
    let files = fs::read_dir(proc(number, "fd")).into_iter().flatten().flatten();
    files.into_iter().any(|it| fs::read_link(it.path()).is_ok_and(|it| it == link))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;
    use std::process::{Child, Command, Stdio};

    fn begin(arguments: &[&str]) -> Child {
        let mut command = Command::new(arguments[0]);
        command.args(&arguments[1..]).stdin(Stdio::piped()).stdout(Stdio::piped());
        command.spawn().unwrap()
    }

    #[test]
    fn a_child_descends_and_its_parent_doesnt() {
        let own = own_number().unwrap();
        assert_eq!(descends(own), Some(false));
        assert_eq!(descends(std::os::unix::process::parent_id().cast_signed()), Some(false));
        assert_eq!(descends(1), Some(false));
        let mut child = begin(&["setsid", "sh", "-c", "echo; exec cat"]);
        let number = child.id().cast_signed();
        // The child's line comes once it is in a session of its own.
        let mut line = [0];
        child.stdout.take().unwrap().read_exact(&mut line).unwrap();
        assert_eq!(descends(number), Some(true));
        drop(child.stdin.take());
        child.wait().unwrap();
        assert_eq!(descends(number), None, "a process that is gone can't be told");
    }

    #[test]
    fn a_child_in_the_same_session_is_no_program() {
        let mut child = begin(&["cat"]);
        assert_eq!(descends(child.id().cast_signed()), Some(false));
        drop(child.stdin.take());
        child.wait().unwrap();
    }

    #[test]
    fn a_kernel_without_pidfd_tells_a_process_by_its_number() {
        let own = own_number().unwrap();
        let file = pidfd_open(Pid::from_raw(own).unwrap(), PidfdFlags::empty()).unwrap();
        for handle in [Handle::Number(own), Handle::File(file)] {
            assert_eq!(handle.look().map(|it| it.number), Some(own));
        }
        let mut child = begin(&["true"]);
        child.wait().unwrap();
        assert!(Handle::Number(child.id().cast_signed()).look().is_none());
    }

    #[tokio::test]
    async fn the_process_at_a_unix_socket_is_told() {
        let (one, _other) = UnixStream::pair().unwrap();
        assert_eq!(at(&one), Peer::Other, "this process is its own client");
    }
}
