//! The sockets of programs. Landlock bounds TCP alone: it doesn't know MPTCP, nor what connects or
//! listens without the system calls of that name. So a filter of system calls (seccomp) lets a
//! program without network make sockets of some kinds only, and keeps it from `io_uring`, which
//! makes sockets without these system calls.

#[cfg(target_os = "linux")]
use std::collections::BTreeMap;

#[cfg(target_os = "linux")]
use nix::libc;
use serde::{Deserialize, Serialize};

/// The kinds of sockets that a program may make.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(super) enum Sockets {
    /// All kinds.
    All,
    /// Unix sockets, and those by which the kernel tells the addresses of this machine.
    Local,
    /// None but pairs of Unix sockets that are connected to each other.
    None,
}

/// The bit in the number of a system call by which a program of x86-64 uses pointers of 32 bits.
#[cfg(target_os = "linux")]
const X32: i64 = 0x4000_0000;

/// Bounds the sockets of this process, and of all that it begins. Programs of another architecture,
/// such as those of 32 bits, are ended then at their first system call.
#[cfg(target_os = "linux")]
pub(super) fn bound(sockets: Sockets) -> Result<(), String> {
    let kinds = match sockets {
        Sockets::All => return Ok(()),
        Sockets::Local => vec![libc::AF_UNIX, libc::AF_NETLINK],
        Sockets::None => Vec::new(),
    };
    let of_kinds = || {
        let pairs = vec![other_than(&[libc::AF_UNIX])?];
        let calls = [
            (libc::SYS_socket, if kinds.is_empty() { vec![] } else { vec![other_than(&kinds)?] }),
            (libc::SYS_socketpair, pairs),
        ];
        refuse(calls, libc::EACCES)?;
        let rings =
            [libc::SYS_io_uring_setup, libc::SYS_io_uring_enter, libc::SYS_io_uring_register];
        refuse(rings.map(|it| (it, vec![])), libc::ENOSYS)
    };
    of_kinds().map_err(|error: seccompiler::Error| format!("its sockets aren't bounded: {error}"))
}

#[cfg(not(target_os = "linux"))]
pub(super) fn bound(_: Sockets) -> Result<(), String> {
    Ok(())
}

/// A rule that fits calls whose first argument is none of these families.
#[cfg(target_os = "linux")]
fn other_than(families: &[i32]) -> Result<seccompiler::SeccompRule, seccompiler::Error> {
    use seccompiler::{SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompRule};
    let families = families.iter().map(|it| u64::from(it.unsigned_abs()));
    // The kernel takes the lower half of the argument alone.
    let is_other = |it| SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, it);
    Ok(SeccompRule::new(families.map(is_other).collect::<Result<_, _>>()?)?)
}

/// Makes these system calls fail with an error, each where one of its rules fits, or always if it
/// has none.
#[cfg(target_os = "linux")]
fn refuse<const N: usize>(
    calls: [(i64, Vec<seccompiler::SeccompRule>); N],
    error: i32,
) -> Result<(), seccompiler::Error> {
    use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, apply_filter};
    let mut all: BTreeMap<i64, _> = calls.into();
    if cfg!(target_arch = "x86_64") {
        let more: Vec<_> = all.iter().map(|(call, it)| (call | X32, it.clone())).collect();
        all.extend(more);
    }
    let (usual, refused) = (SeccompAction::Allow, SeccompAction::Errno(error.unsigned_abs()));
    let filter = SeccompFilter::new(all, usual, refused, std::env::consts::ARCH.try_into()?)?;
    apply_filter(&BpfProgram::try_from(filter)?)
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::io::{ErrorKind, Result};
    use std::net::UdpSocket;
    use std::os::unix::net::{UnixDatagram, UnixStream};

    use super::*;

    /// What becomes of a socket of the network, of a Unix socket, and of a pair of these, in a
    /// thread with these bounds. The filter is all that bounds it: there is no Landlock.
    fn made(sockets: Sockets) -> [Option<ErrorKind>; 3] {
        fn end<T>(made: Result<T>) -> Option<ErrorKind> {
            made.err().map(|it| it.kind())
        }
        let thread = std::thread::spawn(move || {
            bound(sockets).unwrap();
            let network = end(UdpSocket::bind("127.0.0.1:0"));
            [network, end(UnixDatagram::unbound()), end(UnixStream::pair())]
        });
        thread.join().unwrap()
    }

    #[test]
    fn sockets_are_bounded_without_landlock_too() {
        let denied = Some(ErrorKind::PermissionDenied);
        assert_eq!(made(Sockets::All), [None; 3]);
        assert_eq!(made(Sockets::Local), [denied, None, None]);
        assert_eq!(made(Sockets::None), [denied, denied, None]);
    }
}
