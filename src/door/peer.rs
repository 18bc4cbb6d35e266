//! Looks at the process at the other end of a connection. Programs that the pump's listeners begin
//! descend from the pump, and get no rights from it: a door doesn't let them in.
//!
//! For a Unix socket, the kernel tells which process connected. For TCP, the peer's socket is
//! looked for among the open files of processes on this machine.

#[cfg(target_os = "linux")]
mod socket;
#[cfg(target_os = "linux")]
mod process;

use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::sync::Once;

use socket2::SockRef;
use tokio::sync::{Semaphore, oneshot};

use crate::engine::{Identity, Port, Tokio};
use crate::listener::has_programs;
use crate::wire::{Code, Fault};

/// The maximum number of looks at peers of TCP doors at the same time. A look reads the open files
/// of processes, so a crowd of newcomers mustn't keep all processors busy.
const LOOKS_MAX: usize = 2;

static LOOKS: Semaphore = Semaphore::const_new(LOOKS_MAX);

/// What a door knows of the process that connects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "only Linux tells all of these"))]
pub(super) enum Peer {
    /// The process doesn't descend from this one.
    Other,
    /// The process descends from this one, and is in another session, as a program is.
    Descendant,
    /// The process is in another PID namespace, such as one in another container.
    OtherNamespace,
    /// The process has ended or can't be found.
    Unknown,
}

impl Peer {
    /// Returns the identity of a client that sends no token, or `None` if the client must send one.
    /// `usual` is the identity of the door's clients.
    ///
    /// # Errors
    /// If the process isn't let in.
    pub(super) fn identity(
        self,
        usual: Option<Identity>,
        has_tokens: bool,
    ) -> Result<Option<Identity>, Fault> {
        let needs_token = |what: &str| match has_tokens {
            true => Ok(None),
            false => {
                let text = format!("{what}, so it needs a token, and this door has none");
                let advice = "Connect from a process that the pump can see and that stays there, \
                              or have the operator give the pump tokens.";
                Err(Fault::new(Code::Authentication, text).advised(advice))
            }
        };
        match self {
            Peer::Other => Ok(usual),
            Peer::Descendant => Err(a_program()),
            Peer::OtherNamespace => needs_token("the process is in another PID namespace"),
            Peer::Unknown => needs_token("the process that connected has ended or can't be found"),
        }
    }
}

/// Whether a client has closed its connection and has sent nothing, as one that only looks whether
/// a door is open.
pub(super) fn has_left(socket: &SockRef<'_>) -> bool {
    socket.peek(&mut [MaybeUninit::uninit()]).is_ok_and(|it| it == 0)
}

fn a_program() -> Fault {
    let text = "the pump began this process or an ancestor of it, and lets none of them in";
    let advice = "Write the result to standard output: the listener that began the program passes \
                  it on.";
    Fault::new(Code::Authentication, text).advised(advice)
}

/// Looks at the process that connected to a Unix socket.
#[cfg(unix)]
pub(super) fn of_unix(stream: &tokio::net::UnixStream) -> Peer {
    let is_guarded = has_programs();
    match look_at(stream) {
        // Without programs there is nothing to keep out. A process in another namespace is none of
        // this machine's users, though.
        Peer::Descendant | Peer::Unknown if !is_guarded => Peer::Other,
        peer => peer,
    }
}

#[cfg(target_os = "linux")]
fn look_at(stream: &tokio::net::UnixStream) -> Peer {
    process::at(stream)
}

#[cfg(all(unix, not(target_os = "linux")))]
fn look_at(_: &tokio::net::UnixStream) -> Peer {
    if has_programs() {
        warn_once(&"only Linux tells it");
    }
    Peer::Other
}

/// Looks for the process that connected from `peer` to `own`, the door's end of the connection.
pub(super) async fn of_tcp(peer: SocketAddr, own: SocketAddr) -> Peer {
    if !has_programs() {
        return Peer::Other;
    }
    let Ok(_place) = LOOKS.acquire().await else { return Peer::Unknown };
    let (done, found) = oneshot::channel();
    Tokio::current().spawn_blocking(async move {
        // The connection may have ended meanwhile.
        let _ = done.send(look(peer, own));
    });
    found.await.unwrap_or(Peer::Unknown)
}

#[cfg(target_os = "linux")]
fn look(peer: SocketAddr, own: SocketAddr) -> Peer {
    match socket::owner(peer, own) {
        // No socket of this machine has the address. At a loopback door, the socket was closed.
        Ok(None) if !super::is_local(peer.ip()) && !super::is_local(own.ip()) => Peer::Other,
        Ok(Some(owner)) if owner.inode != 0 => process::of_socket(owner),
        Ok(_) => Peer::Unknown,
        Err(error) => {
            warn_once(&error);
            Peer::Unknown
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn look(_: SocketAddr, _: SocketAddr) -> Peer {
    warn_once(&"only Linux tells it");
    Peer::Other
}

/// Says once, in the traces, that doors can't tell which process connects.
fn warn_once(error: &dyn std::fmt::Display) {
    static WARNED: Once = Once::new();
    WARNED.call_once(|| {
        tracing::warn!(
            %error,
            "doors can't tell which process connects, so clients without a token may be refused"
        );
    });
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_peer_that_cant_be_told_needs_a_token() {
        let who = || Some(Identity { name: "ann".into(), operator: true });
        for has_tokens in [true, false] {
            assert_eq!(Peer::Other.identity(who(), has_tokens).unwrap(), who());
            let fault = Peer::Descendant.identity(who(), has_tokens).unwrap_err();
            assert!(fault.message.contains("the pump began this process"), "{fault:?}");
        }
        for peer in [Peer::OtherNamespace, Peer::Unknown] {
            assert_eq!(peer.identity(who(), true).unwrap(), None);
            let fault = peer.identity(who(), false).unwrap_err();
            assert!(fault.message.contains("it needs a token"), "{fault:?}");
        }
    }

    #[test]
    fn the_process_of_a_tcp_connection_is_found() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = std::net::TcpListener::bind(address) else { continue };
            let own = listener.local_addr().unwrap();
            let client = std::net::TcpStream::connect(own).unwrap();
            let peer = client.local_addr().unwrap();
            // This process is its own client.
            assert_eq!(look(peer, own), Peer::Other, "{address}");
            // Nobody has a socket that was closed, though the door still reads what it sent.
            let accepted = listener.accept().unwrap();
            drop(client);
            assert_eq!(look(peer, own), Peer::Unknown, "{address}");
            drop(accepted);
        }
        // A client from another machine has no socket here, but none comes to a loopback address.
        let at = |text: &str| text.parse::<SocketAddr>().unwrap();
        assert_eq!(look(at("203.0.113.7:9"), at("203.0.113.8:9")), Peer::Other);
        assert_eq!(look(at("203.0.113.7:9"), at("127.0.0.1:9")), Peer::Unknown);
    }
}
