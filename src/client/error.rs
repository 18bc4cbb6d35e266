//! Errors of clients.

use std::fmt;
use std::io;

use crate::wire::Fault;
use crate::wire::core::{Huh, SystemThreadError};
use crate::xml;

/// Why a client doesn't get what it asked for.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The connection ended first.
    Closed,
    /// The connection can't be had, or broke.
    Io(io::Error),
    /// The pump refused it.
    Refused(Box<Huh>),
    /// The pump doesn't know the thread, or it is another's.
    UnknownThread(SystemThreadError),
    /// What came is not what a pump sends.
    Unexpected(String),
    /// What came is no XML.
    Xml(xml::Error),
    /// What was to be sent or read is not what its type says.
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
