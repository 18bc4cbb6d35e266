//! Reads single settings of a manifest, even if the manifest has mistakes elsewhere. Commands need
//! them to find the log or a door of an organism that another process runs.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};

use crate::address::Address;
use crate::manifest::check::is_address;
use crate::manifest::contents::Manifest;
#[cfg(feature = "otel")]
use crate::manifest::contents::Otel;
use crate::manifest::expand_variables::{Environment, expand};
use crate::manifest::mistake::{Mistake, Mistakes};
use crate::manifest::read::beside;
#[cfg(feature = "otel")]
use crate::manifest::read::otel::settings;
use crate::manifest::yaml;
use crate::manifest::yaml::Node;

const EXAMPLE: &str = "tcp: 127.0.0.1:8765";

impl Manifest {
    /// The folder of the log, if the manifest names one. None if the file isn't YAML, or if
    /// `data` is missing, isn't a text or has a variable that isn't set.
    #[must_use]
    pub fn data_of(
        file: &Path,
        bytes: &[u8],
        environment: &dyn Fn(&str) -> Option<String>,
    ) -> Option<PathBuf> {
        let peek = Peek::at(bytes, environment).ok()?;
        let data = peek.root.key("data")?;
        peek.text(data).ok().map(|it| beside(file, it))
    }

    /// Returns a manifest's name and its settings for OpenTelemetry.
    ///
    /// # Errors
    /// If the file isn't YAML. Also if the endpoint or a header isn't a text, or names a variable
    /// that isn't set.
    #[cfg(feature = "otel")]
    pub fn otel_of(
        file: &Path,
        bytes: &[u8],
        environment: &dyn Fn(&str) -> Option<String>,
    ) -> Result<(Option<String>, Option<Otel>), Mistakes> {
        let wrong = |it| Mistakes::new(&file.display().to_string(), vec![it]);
        let peek = Peek::at(bytes, environment).map_err(wrong)?;
        let name = peek.root.key("name").and_then(|it| peek.text(it).ok()).map(str::to_owned);
        let Some(node) = peek.root.key("otel") else { return Ok((name, None)) };
        let headers = node.key("headers");
        let texts = headers.into_iter().flat_map(|it| it.keys().into_iter().map(|key| it.key(key)));
        for text in texts.chain([node.key("endpoint")]).flatten() {
            peek.text(text).map_err(|it| wrong(it.at("otel")))?;
        }
        Ok((name, settings(node)))
    }

    /// The names of the models of a manifest. Empty if the file isn't YAML.
    pub fn models_of(bytes: &[u8], environment: &dyn Fn(&str) -> Option<String>) -> Vec<String> {
        let Ok(peek) = Peek::at(bytes, environment) else { return Vec::new() };
        let names = peek.root.key("models").map(Node::keys).unwrap_or_default();
        names.into_iter().map(str::to_owned).collect()
    }

    /// The address of a pump of this manifest, for clients on the same machine. It is the address
    /// of the first door that is either a Unix socket or TCP with a port other than 0. None without
    /// the key `doors`.
    ///
    /// ```
    /// # extern crate pumphouse_organism as pumphouse;
    /// use std::path::Path;
    /// # use pumphouse_ground::address::Address;
    /// use pumphouse::manifest::Manifest;
    ///
    /// let read = |text: &str| {
    ///     Manifest::address_of(Path::new("conf/organism.yaml"), text.as_bytes(), &|_| None)
    /// };
    /// let door = read("doors: [{metrics: 127.0.0.1:9464}, {unix: pump.sock}]").unwrap();
    /// assert_eq!(door, Some(Address::Unix("conf/pump.sock".into())));
    /// assert_eq!(read("listeners: [{use: echo}]"), Ok(None));
    /// assert!(read("doors: []").unwrap_err().to_string().contains("organism.yaml:1:8"));
    /// ```
    ///
    /// # Errors
    /// If the file isn't YAML, or if there is no such door. Also if the address of this door, or of
    /// a TCP door before it, isn't a text or has a variable that isn't set. A TCP address must be
    /// HOST:PORT, too.
    pub fn address_of(
        file: &Path,
        bytes: &[u8],
        environment: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Option<Address>, Mistakes> {
        let wrong = |it| Mistakes::new(&file.display().to_string(), vec![it]);
        let peek = Peek::at(bytes, environment).map_err(wrong)?;
        let Some(doors) = peek.root.key("doors") else { return Ok(None) };
        for (number, door) in doors.items().iter().enumerate() {
            let at = |it: Mistake, key: &str| wrong(it.at(&format!("doors[{number}].{key}")));
            if let Some(path) = door.key("unix") {
                let path = peek.text(path).map_err(|it| at(it, "unix"))?;
                return Ok(Some(Address::Unix(beside(file, path))));
            }
            let Some(tcp) = door.key("tcp") else { continue };
            let address = peek.text(tcp).map_err(|it| at(it, "tcp"))?;
            if !is_address(address) {
                let text = format!("this is {}, and no HOST:PORT", tcp.said());
                return Err(at(Mistake::new(tcp.place, text).example(EXAMPLE), "tcp"));
            }
            match (reached(address), door.key("tls")) {
                (None, _) => {}
                (Some(address), None) => return Ok(Some(Address::Tcp(address))),
                (Some(address), Some(_)) => {
                    return Ok(Some(Address::Tls { address, authority: None }));
                }
            }
        }
        let text = "no door here is a Unix socket, or TCP on a port that is known beforehand";
        Err(wrong(Mistake::new(doors.place, text).at("doors")))
    }
}

/// A manifest's values, unchecked.
struct Peek {
    root: Node,
    /// A mistake for each value whose variables can't be filled in.
    unset: Vec<Mistake>,
}

impl Peek {
    fn at(bytes: &[u8], environment: Environment<'_>) -> Result<Peek, Mistake> {
        let mut peek = Peek { root: yaml::read(bytes)?, unset: Vec::new() };
        expand(&mut peek.root, environment, &mut peek.unset);
        Ok(peek)
    }

    /// The text of a scalar, with its variables filled in.
    fn text<'a>(&self, node: &'a Node) -> Result<&'a str, Mistake> {
        let unset = self.unset.iter().find(|it| it.place == node.place);
        let other = || Mistake::new(node.place, format!("this is {}, and no text", node.said()));
        unset.map_or_else(|| node.text().ok_or_else(other), |it| Err(it.clone()))
    }
}

/// The address at which the same machine reaches a door that listens on `address`. None for port 0,
/// because the system then chooses another port each time.
fn reached(address: &str) -> Option<String> {
    let Ok(at) = address.parse::<SocketAddr>() else {
        let is_drawn = address.rsplit_once(':').is_some_and(|(_, port)| port.parse() == Ok(0_u16));
        return (!is_drawn).then(|| address.to_owned());
    };
    let ip = match at.ip() {
        ip if !ip.is_unspecified() => ip,
        ip if ip.is_ipv4() => Ipv4Addr::LOCALHOST.into(),
        _ => Ipv6Addr::LOCALHOST.into(),
    };
    (at.port() != 0).then(|| SocketAddr::new(ip, at.port()).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<Option<String>, String> {
        let environment = |name: &str| (name == "HOST").then(|| "10.0.0.7".to_owned());
        let file = Path::new("organism.yaml");
        let found = Manifest::address_of(file, text.as_bytes(), &environment);
        found.map(|it| it.map(|it| it.to_string())).map_err(|it| it.to_string())
    }

    #[test]
    fn the_first_door_with_a_known_place_is_where_a_pump_is_reached() {
        let check = |doors: &str, expected: &str| {
            assert_eq!(of(&format!("doors: [{doors}]")), Ok(Some(expected.to_owned())));
        };
        check("{tcp: 127.0.0.1:1}, {unix: a}", "127.0.0.1:1");
        check("{unix: a}, {tcp: 127.0.0.1:1}", "unix:a");
        check("{metrics: 127.0.0.1:1}, {tcp: pump.example:2}", "pump.example:2");
        check("{tcp: 127.0.0.1:0}, {tcp: localhost:0}, {unix: /run/a}", "unix:/run/a");
        check("{tcp: 0.0.0.0:1}", "127.0.0.1:1");
        check("{tcp: \"[::]:1\"}", "[::1]:1");
        check("{tcp: \"${HOST}:1\"}, {tcp: \"${NONE}:2\"}", "10.0.0.7:1");
        check("{tcp: pump.example:1, tls: {certificate: no, key: no}}", "tls:pump.example:1");
        assert_eq!(of("limits: nonsense"), Ok(None));
    }

    #[test]
    fn what_keeps_it_from_being_told_has_its_place() {
        let check = |text: &str, expected: &str| {
            let wrong = of(text).unwrap_err();
            assert!(wrong.starts_with(expected), "{wrong}");
        };
        check("doors: [{tcp: \"${NONE}:1\"}]", "organism.yaml:1:15: the variable NONE isn't set");
        check("doors: [{tcp: 8765}]", "organism.yaml:1:15: this is `8765`, and no");
        check("doors: [{tcp: [a]}]", "organism.yaml:1:15: this is a list, and no text");
        check("doors: [{tcp: 127.0.0.1:0}]", "organism.yaml:1:8: no door here");
        check("doors: []\n", "organism.yaml:1:8: no door here");
        check("doors: [", "organism.yaml:2:1: this is no YAML");
    }
}
