//! The errors of clients.

use std::fmt;
use std::io;

use crate::client::KEPT_BYTES_MAX;
use crate::wire::Fault;
use crate::wire::core::{Huh, SystemThreadError};
use crate::xml;

/// Why a client didn't get what it asked for.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The connection ended before an answer came.
    Closed,
    /// The connection can't be made, or broke.
    Io(io::Error),
    /// The pump refused the request or the connection.
    Refused(Box<Huh>),
    /// The pump doesn't know the thread, or the thread belongs to another identity.
    UnknownThread(SystemThreadError),
    /// A message came that pumps don't send.
    Unexpected(String),
    /// Messages of more than [`KEPT_BYTES_MAX`] bytes came, and not what was waited for. A small
    /// message counts for 1 KiB more than it has. A [`Client`](crate::client::Client) ends its
    /// connection then. A [`Resuming`](crate::client::Resuming) has lost nothing: its `recv`
    /// returns what was kept, and the push that had to wait can be tried again.
    Full,
    /// Bytes came that aren't XML, or are beyond the client's limits.
    Xml(xml::Error),
    /// A payload that was to be sent or read doesn't fit its type.
    Invalid(Fault),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Closed => f.write_str("the connection ended before an answer came"),
            Error::Io(error) => write!(f, "{error}"),
            Error::Refused(huh) => write!(f, "{}: {}", huh.code, huh.message),
            Error::UnknownThread(it) => write!(f, "{}: {}", it.unknown_id, it.message),
            Error::Unexpected(what) => write!(f, "a pump doesn't send this: {what}"),
            Error::Full => write!(
                f,
                "messages of more than {KEPT_BYTES_MAX} bytes came before what was waited for"
            ),
            Error::Xml(error) => write!(f, "what came is no XML: {error}"),
            Error::Invalid(fault) => write!(f, "{fault}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Io(error) => Some(error),
            Error::Xml(error) => Some(error),
            Error::Invalid(fault) => Some(fault),
            _ => None,
        }
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Error {
        Error::Io(error)
    }
}

impl From<xml::Error> for Error {
    fn from(error: xml::Error) -> Error {
        Error::Xml(error)
    }
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Error {
        Error::Invalid(fault)
    }
}
