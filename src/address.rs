//! The address of a pump, as people write it.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// The address of a pump's door: `HOST:PORT`, `tls:HOST:PORT` or `unix:PATH`.
///
/// ```
/// # extern crate pumphouse_ground as pumphouse;
/// use pumphouse::address::Address;
///
/// let address: Address = "unix:/run/pump.sock".parse()?;
/// assert_eq!(address, Address::Unix("/run/pump.sock".into()));
/// assert_eq!("pump.example:8765".parse(), Ok(Address::Tcp("pump.example:8765".into())));
/// # Ok::<(), pumphouse::address::NoAddress>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
// Exhaustive, since a client must know how to connect to each.
pub enum Address {
    /// A host's name or IP address, and a port.
    Tcp(String),
    /// A door that speaks TLS.
    Tls {
        /// A host's name or IP address, and a port.
        address: String,
        /// A file with the certificates of trusted issuers. Without one, the issuers that this
        /// system trusts are trusted.
        authority: Option<PathBuf>,
    },
    /// The path of a Unix socket.
    Unix(PathBuf),
}

/// The error of a text that isn't an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoAddress(String);

impl FromStr for Address {
    type Err = NoAddress;

    fn from_str(text: &str) -> Result<Address, NoAddress> {
        let wrong = |why: &str| Err(NoAddress(format!("{text:?}: {why}")));
        if let Some(path) = text.strip_prefix("unix:") {
            return match path {
                "" => wrong("a path follows unix:"),
                path => Ok(Address::Unix(path.into())),
            };
        }
        let (address, is_tls) = match text.strip_prefix("tls:") {
            Some(address) => (address.to_owned(), true),
            None => (text.to_owned(), false),
        };
        let parts = address.rsplit_once(':').filter(|(host, _)| !host.is_empty());
        match parts.map(|(_, port)| is_port(port)) {
            Some(true) if is_tls => Ok(Address::Tls { address, authority: None }),
            Some(true) => Ok(Address::Tcp(address)),
            Some(false) => wrong("after the last ':' stands a port, from 1 to 65535"),
            None if text.contains('/') => wrong("a socket's path is written unix:PATH"),
            None => wrong("an address is HOST:PORT, tls:HOST:PORT or unix:PATH"),
        }
    }
}

/// Whether a text is a port to connect to.
fn is_port(text: &str) -> bool {
    text.bytes().all(|it| it.is_ascii_digit()) && text.parse::<u16>().is_ok_and(|it| it > 0)
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Tcp(address) => f.write_str(address),
            Address::Tls { address, .. } => write!(f, "tls:{address}"),
            Address::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

impl fmt::Display for NoAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NoAddress {}

impl Address {
    /// Trusts the issuers whose certificates are in a file. Addresses of other kinds than TLS don't
    /// change.
    #[must_use]
    pub fn trusting(self, authority: impl Into<PathBuf>) -> Address {
        match self {
            Address::Tls { address, .. } => {
                Address::Tls { address, authority: Some(authority.into()) }
            }
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_as_it_is_written() {
        for text in ["127.0.0.1:8765", "[::1]:1", "unix:a b/c:d", "tls:pump.example:65535"] {
            assert_eq!(text.parse::<Address>().unwrap().to_string(), text);
        }
        let check = |text: &str, expected: &str| {
            let wrong = text.parse::<Address>().unwrap_err().to_string();
            assert!(wrong.contains(expected), "{wrong}");
        };
        check("localhost", "HOST:PORT");
        check("/run/pump.sock", "unix:PATH");
        check("unix:", "a path follows");
        for port in ["http", "", "+80", "0", "65536"] {
            check(&format!("localhost:{port}"), "a port, from 1 to 65535");
        }
        check(":80", "HOST:PORT");
    }
}
