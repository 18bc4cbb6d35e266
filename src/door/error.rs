//! The errors of doors that can't be opened.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use crate::door::client_tokens;

/// Why a door can't be opened.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The address can't be resolved, or the system doesn't let the door listen there.
    Address(io::Error),
    /// Other machines could reach the door, and clients would need no token.
    Exposed(SocketAddr),
    /// Other machines could reach the door, which shows metrics and asks for no tokens.
    Shown(SocketAddr),
    /// A Unix socket can't be made at the path.
    Socket {
        /// The path.
        path: PathBuf,
        /// The system's error, or why the path is refused.
        error: io::Error,
    },
    /// The list of tokens can't be used.
    Tokens(client_tokens::Wrong),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Address(error) => write!(f, "the address can't be listened on: {error}"),
            Error::Exposed(address) => write!(
                f,
                "{address} is within reach of other machines, and there are no tokens: listen on \
                 127.0.0.1, or give a file with a line NAME:TOKEN for each who may come in"
            ),
            Error::Shown(address) => write!(
                f,
                "{address} is within reach of other machines, and metrics ask nobody who they \
                 are: listen on 127.0.0.1, and let a proxy that asks pass them on; or say that \
                 anyone may see them"
            ),
            Error::Socket { path, error } => {
                write!(f, "{} can't be listened on: {error}", path.display())
            }
            Error::Tokens(wrong) => write!(f, "{wrong}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Address(error) | Error::Socket { error, .. } => Some(error),
            Error::Tokens(wrong) => Some(wrong),
            Error::Exposed(_) | Error::Shown(_) => None,
        }
    }
}

impl From<client_tokens::Wrong> for Error {
    fn from(wrong: client_tokens::Wrong) -> Error {
        Error::Tokens(wrong)
    }
}
