//! The hosts that a request may reach: public addresses, the hosts that a manifest lists, or both.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::{fmt, io};

use futures_util::future::BoxFuture;
use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::address::is_public;

/// The ports of a host that is listed without a port, and of a host that isn't listed.
const PORTS: [u16; 2] = [80, 443];

/// The hosts and ports that requests may reach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// Public addresses, at the ports 80 and 443.
    Public,
    /// These hosts, at these ports.
    Hosts(BTreeSet<(String, u16)>),
    /// These hosts, at these ports, and public addresses, at the ports 80 and 443.
    HostsAndPublic(BTreeSet<(String, u16)>),
}

impl Reach {
    /// Reads a list of hosts: `example.org`, `127.0.0.1:9000`, `[::1]:9000`.
    pub(super) fn to(hosts: &[String]) -> Result<Reach, String> {
        Ok(Reach::Hosts(listed(hosts)?))
    }

    /// Reads a list of hosts as [`Reach::to`] does, and adds all public addresses.
    pub(super) fn with_public(hosts: &[String]) -> Result<Reach, String> {
        Ok(Reach::HostsAndPublic(listed(hosts)?))
    }

    /// Checks that a URL may be reached. The error is a sentence with the reason. [`Resolver`]
    /// later checks the addresses to which a name resolves.
    pub(super) fn check(&self, url: &Url) -> Result<(), String> {
        let (host, port) = (host_of(url), url.port_or_known_default().unwrap_or_default());
        match self {
            Reach::HostsAndPublic(all) if all.contains(&(host.clone(), port)) => Ok(()),
            // The addresses of a listed name aren't checked, so its other ports are out of reach.
            Reach::HostsAndPublic(all) if all.iter().all(|(it, _)| *it != host) => {
                Reach::Public.check(url)
            }
            Reach::Public if !PORTS.contains(&port) => Err(format!(
                "the port {port} is out of reach: without `hosts` there are the ports 80 and 443"
            )),
            Reach::Public => match host.parse::<IpAddr>() {
                Ok(it) if !is_public(it) => Err(NotPublic(host).to_string()),
                _ => Ok(()),
            },
            Reach::Hosts(all) if all.contains(&(host.clone(), port)) => Ok(()),
            Reach::Hosts(all) | Reach::HostsAndPublic(all) => {
                let listed: Vec<String> = all.iter().map(shown).collect();
                let at = shown(&(host, port));
                Err(format!("{at} is out of reach; there is {}", listed.join(", ")))
            }
        }
    }
}

/// Reads the hosts and ports of a list. An error if a host is invalid, or if the list is empty.
fn listed(hosts: &[String]) -> Result<BTreeSet<(String, u16)>, String> {
    let mut all = BTreeSet::new();
    for host in hosts {
        let wrong = || format!("`{host}` is no host, as in `example.org` or `127.0.0.1:9000`");
        let has_more = host.contains(['/', '@', '?', '#', '*', '\\']) || host.trim() != host;
        let url: Url = format!("http://{host}/").parse().map_err(|_| wrong())?;
        let port = host.rsplit_once(':').map(|(_, port)| port).filter(|it| !it.ends_with(']'));
        let named = port.map(str::parse::<u16>).transpose().map_err(|_| wrong())?;
        if has_more || host_of(&url).is_empty() {
            return Err(wrong());
        }
        let ports: Vec<u16> = named.map_or(PORTS.to_vec(), |it| vec![it]);
        all.extend(ports.into_iter().map(|port| (host_of(&url), port)));
    }
    match all.is_empty() {
        true => Err("`hosts` is empty: list some, as in `hosts: [example.org]`".to_owned()),
        false => Ok(all),
    }
}

fn shown((host, port): &(String, u16)) -> String {
    match host.contains(':') {
        true => format!("[{host}]:{port}"),
        false => format!("{host}:{port}"),
    }
}

/// Returns a URL's host in lower case: an address without brackets, or a name without a final dot.
pub(in super::super) fn host_of(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    let bare = host.strip_prefix('[').and_then(|it| it.strip_suffix(']')).unwrap_or(host);
    bare.strip_suffix('.').unwrap_or(bare).to_ascii_lowercase()
}

/// Resolves names. Addresses that aren't public are left out, unless the name is a listed host.
///
/// A connection is made only to an address that this resolver returned for this connection. So a
/// name that has a public address at first, and a private one later, leads to no private address.
pub(super) struct Resolver {
    reach: Reach,
    lookup: Lookup,
}

/// A function that looks up the addresses of a name.
type Lookup = fn(String) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>>;

impl Resolver {
    /// Makes a resolver that looks names up as the operating system does.
    pub(super) fn of_system(reach: Reach) -> Resolver {
        let lookup: Lookup =
            |name| Box::pin(async move { Ok(tokio::net::lookup_host((name, 0)).await?.collect()) });
        Resolver { reach, lookup }
    }
}

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let name = name.as_str().to_owned();
        let bare = name.strip_suffix('.').unwrap_or(&name).to_ascii_lowercase();
        let is_open = match &self.reach {
            Reach::Public => false,
            Reach::Hosts(_) => true,
            Reach::HostsAndPublic(all) => all.iter().any(|(host, _)| *host == bare),
        };
        let found = (self.lookup)(name.clone());
        Box::pin(async move {
            let mut kept = found.await?;
            kept.retain(|it| is_open || is_public(it.ip()));
            match kept.is_empty() {
                true => Err(NotPublic(name).into()),
                false => Ok(Box::new(kept.into_iter()) as Addrs),
            }
        })
    }
}

/// The error for a host that has no public address.
#[derive(Debug)]
pub(super) struct NotPublic(String);

impl fmt::Display for NotPublic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} has no public address, and others are reached by `hosts` alone", self.0)
    }
}

impl std::error::Error for NotPublic {}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[track_caller]
    fn check(hosts: &[&str], url: &str, expected: &str) {
        let reach = match hosts {
            [] => Reach::Public,
            _ => Reach::to(&hosts.iter().map(ToString::to_string).collect::<Vec<_>>()).unwrap(),
        };
        let checked = reach.check(&url.parse().unwrap());
        let said = checked.err().unwrap_or_else(|| "ok".to_owned());
        assert!(said.contains(expected), "{said}");
    }

    #[test]
    fn without_hosts_there_are_public_addresses_at_the_usual_ports() {
        check(&[], "http://example.org/", "ok");
        check(&[], "https://8.8.8.8/", "ok");
        check(&[], "http://example.org:8080/", "the port 8080 is out of reach");
        for host in ["127.0.0.1", "127.1", "2130706433", "0x7f.1", "017700000001", "127.0.0.1."] {
            check(&[], &format!("http://{host}/"), "127.0.0.1 has no public address");
        }
        check(&[], "http://169.254.169.254/latest", "has no public address");
        check(&[], "http://[::ffff:7f00:1]/", "has no public address");
        check(&[], "http://[64:ff9b::a9fe:a9fe]/", "has no public address");
    }

    #[test]
    fn with_hosts_there_are_those_alone() {
        let hosts = ["Example.org", "127.0.0.1:9000", "[::1]:9000", "b.org:80"];
        for url in ["http://example.org", "https://EXAMPLE.org.", "http://127.0.0.1:9000"] {
            check(&hosts, url, "ok");
        }
        check(&hosts, "http://[::1]:9000/", "ok");
        check(&hosts, "http://example.org:81/", "example.org:81 is out of reach; there is ");
        check(&hosts, "https://b.org/", "b.org:443 is out of reach");
        check(&hosts, "http://127.0.0.1/", "127.0.0.1:80 is out of reach");
        check(&hosts, "http://a.example.org/", "out of reach");
    }

    #[test]
    fn what_is_no_host_is_told() {
        let wrong =
            ["", " a", "a/b", "http://a", "a:", "a:x", "a:70000", "u@a", "*.a.org", "a?b", "::1"];
        for url in wrong {
            let why = Reach::to(&[url.to_owned()]).unwrap_err();
            assert!(why.contains("is no host"), "{url}: {why}");
        }
        assert!(Reach::to(&[]).unwrap_err().contains("`hosts` is empty"));
    }

    #[tokio::test]
    async fn a_name_of_this_machine_is_not_public() {
        let asked = Resolver::of_system(Reach::Public).resolve("localhost".parse().unwrap()).await;
        let why = asked.err().unwrap().to_string();
        assert!(why.starts_with("localhost has no public address"), "{why}");
        let open = Resolver::of_system(Reach::to(&["localhost".to_owned()]).unwrap());
        assert!(open.resolve("localhost".parse().unwrap()).await.is_ok());
    }

    #[tokio::test]
    async fn a_name_that_gets_a_private_address_later_leads_nowhere() {
        static ASKED: AtomicUsize = AtomicUsize::new(0);
        let lookup: Lookup = |_| {
            let addresses = match ASKED.fetch_add(1, Ordering::Relaxed) {
                0 => vec!["8.8.8.8:0", "127.0.0.1:0"],
                1 => vec!["127.0.0.1:0"],
                _ => vec!["169.254.169.254:0", "[::ffff:10.0.0.1]:0", "[fd00::1]:0"],
            };
            Box::pin(async move { Ok(addresses.iter().map(|it| it.parse().unwrap()).collect()) })
        };
        let hosts = ["other.example:80".to_owned()];
        for reach in [Reach::Public, Reach::HostsAndPublic(listed(&hosts).unwrap())] {
            ASKED.store(0, Ordering::Relaxed);
            let resolver = Resolver { reach, lookup };
            let resolve = || resolver.resolve("rebinds.example".parse().unwrap());
            let first: Vec<SocketAddr> = resolve().await.unwrap().collect();
            assert_eq!(first, ["8.8.8.8:0".parse().unwrap()]);
            for _ in 0..2 {
                let why = resolve().await.err().unwrap().to_string();
                assert!(why.starts_with("rebinds.example has no public address"), "{why}");
            }
        }
    }
}
