//! Asks the kernel which socket of this machine has an address and a port.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};

/// A socket of this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Owner {
    /// The number of the user who made the socket.
    pub(super) user: u32,
    /// The socket's inode number. 0 if no process has the socket open any more.
    pub(super) inode: u64,
}

/// The domain of sockets that ask the kernel (`AF_NETLINK`).
const NETLINK: i32 = 16;
/// The part of the kernel that tells about sockets (`NETLINK_SOCK_DIAG`).
const SOCK_DIAG: i32 = 4;
/// The type of a request for sockets of one family, and of its answers (`SOCK_DIAG_BY_FAMILY`).
const BY_FAMILY: u16 = 20;
/// The type of an answer that is an error (`NLMSG_ERROR`).
const ERROR: u16 = 2;
/// The flag of a request (`NLM_F_REQUEST`).
const REQUEST: u16 = 1;
/// The number of TCP among the protocols of IP.
const TCP: u8 = 6;
/// The families of addresses (`AF_INET` and `AF_INET6`).
const FAMILIES: (u8, u8) = (2, 10);
/// The error of a socket that doesn't exist (`ENOENT`).
const NO_ENTRY: i32 = -2;
/// The number of bytes of a message's head.
const HEAD: usize = 16;
/// The state of a socket that waits for connections (`TCP_LISTEN`). If no connection has the two
/// addresses, the kernel answers with such a socket at the first address.
const LISTENS: u8 = 10;
/// The places of the state, the user and the inode in an answer, behind its head.
const STATE: usize = 1;
const USER: usize = 64;
const INODE: usize = 68;
/// The kernel answers at once. A kernel that doesn't must not hold the thread up.
const ANSWER_TIME: Duration = Duration::from_secs(1);

/// Returns the socket whose own address is `peer` and whose other end is `door`. `None` if this
/// machine has no such socket.
pub(super) fn owner(peer: SocketAddr, door: SocketAddr) -> io::Result<Option<Owner>> {
    let canonical = |it: SocketAddr| SocketAddr::new(it.ip().to_canonical(), it.port());
    let (peer, door) = (canonical(peer), canonical(door));
    // Some kernels and containers answer no such questions.
    asked(peer, door).or_else(|_| listed(peer, door))
}

/// Asks for one socket.
fn asked(peer: SocketAddr, door: SocketAddr) -> io::Result<Option<Owner>> {
    let (domain, protocol) = (Domain::from(NETLINK), Protocol::from(SOCK_DIAG));
    let mut socket = Socket::new(domain, Type::DGRAM, Some(protocol))?;
    socket.set_read_timeout(Some(ANSWER_TIME))?;
    socket.write_all(&question(peer, door))?;
    let mut answer = [0; 1024];
    let length = socket.read(&mut answer)?;
    let strange = || io::Error::from(io::ErrorKind::InvalidData);
    let number = |at: usize| {
        let bytes = answer[..length].get(at..at + 4).ok_or_else(strange)?;
        Ok::<u32, io::Error>(u32::from_ne_bytes(bytes.try_into().map_err(|_| strange())?))
    };
    match u16::from_ne_bytes([answer[4], answer[5]]) {
        BY_FAMILY if answer[HEAD + STATE] == LISTENS => Ok(None),
        BY_FAMILY => {
            let (user, inode) = (number(HEAD + USER)?, number(HEAD + INODE)?.into());
            Ok(Some(Owner { user, inode }))
        }
        ERROR => match number(HEAD)?.cast_signed() {
            NO_ENTRY => Ok(None),
            other => Err(io::Error::from_raw_os_error(-other)),
        },
        _ => Err(strange()),
    }
}

/// The request: a message's head, and the kernel's `inet_diag_req_v2`.
#[expect(clippy::disallowed_methods, reason = "the kernel has the machine's byte order")]
fn question(peer: SocketAddr, door: SocketAddr) -> Vec<u8> {
    let mut body = Vec::new();
    let family = if peer.is_ipv4() { FAMILIES.0 } else { FAMILIES.1 };
    body.extend([family, TCP, 0, 0]);
    body.extend(u32::MAX.to_ne_bytes());
    body.extend(peer.port().to_be_bytes());
    body.extend(door.port().to_be_bytes());
    for address in [peer.ip(), door.ip()] {
        match address {
            IpAddr::V4(it) => body.extend(it.octets().into_iter().chain([0; 12])),
            IpAddr::V6(it) => body.extend(it.octets()),
        }
    }
    // Any interface, and no cookie of an earlier answer.
    body.extend(0_u32.to_ne_bytes());
    body.extend([u8::MAX; 8]);
    let length = u32::try_from(HEAD + body.len()).unwrap_or(u32::MAX);
    let mut all = length.to_ne_bytes().to_vec();
    all.extend(BY_FAMILY.to_ne_bytes());
    all.extend(REQUEST.to_ne_bytes());
    all.extend([0; 8]);
    all.extend(body);
    all
}

/// Looks for a socket in the kernel's list of all sockets.
fn listed(peer: SocketAddr, door: SocketAddr) -> io::Result<Option<Owner>> {
    let mut list = fs::read_to_string("/proc/net/tcp")?;
    // A machine without IPv6 has no such list.
    list += &fs::read_to_string("/proc/net/tcp6").unwrap_or_default();
    let (peer, door) = (spellings(peer), spellings(door));
    let owner = |line: &str| {
        let mut fields = line.split_ascii_whitespace().skip(1);
        let (own, other) = (fields.next()?, fields.next()?);
        let is_it = peer.iter().any(|it| it == own) && door.iter().any(|it| it == other);
        let (user, inode) = (fields.nth(4)?, fields.nth(1)?);
        is_it.then_some(Owner { user: user.parse().ok()?, inode: inode.parse().ok()? })
    };
    Ok(list.lines().find_map(owner))
}

/// Returns an address and a port as the kernel's lists write them. A list of IPv6 sockets has IPv4
/// addresses, too.
fn spellings(address: SocketAddr) -> Vec<String> {
    let words = |bytes: &[u8]| {
        let word = |it: &[u8]| it.try_into().map_or(0, u32::from_ne_bytes);
        bytes.chunks(4).map(|it| format!("{:08X}", word(it))).collect::<String>()
    };
    let all = match address.ip() {
        IpAddr::V4(it) => vec![words(&it.octets()), words(&it.to_ipv6_mapped().octets())],
        IpAddr::V6(it) => vec![words(&it.octets())],
    };
    all.into_iter().map(|it| format!("{it}:{:04X}", address.port())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn both_ways_tell_the_same_socket() {
        for address in ["127.0.0.1:0", "[::1]:0", "[::ffff:127.0.0.1]:0"] {
            let Ok(listener) = TcpListener::bind(address) else { continue };
            let door = listener.local_addr().unwrap();
            let client = TcpStream::connect(door).unwrap();
            let peer = client.local_addr().unwrap();
            let found = owner(peer, door).unwrap().unwrap();
            assert_ne!(found.inode, 0);
            let (peer, door) = (SocketAddr::new(peer.ip().to_canonical(), peer.port()), door);
            let door = SocketAddr::new(door.ip().to_canonical(), door.port());
            assert_eq!(listed(peer, door).unwrap(), Some(found), "{address}");
            let nobody = SocketAddr::new(peer.ip(), 1);
            assert_eq!(owner(nobody, door).unwrap(), None);
            assert_eq!(listed(nobody, door).unwrap(), None);
        }
    }
}
