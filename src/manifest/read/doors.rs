//! The doors of a manifest, and their certificates.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use crate::door::{Tls, Tokens, Unusable};
use crate::manifest::check::joined;
use crate::manifest::contents::Door;
use crate::manifest::mistake::{Mistake, cut};
use crate::manifest::read::{Reader, beside};
use crate::manifest::yaml::Node;

impl Reader<'_> {
    pub(super) fn doors(&self, node: &Node, tokens: Option<&Tokens>) -> Vec<Door> {
        let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
        let mut doors = Vec::new();
        for (number, item) in node.items().iter().enumerate() {
            let path = |key: &str| format!("doors[{number}].{key}");
            let of = |key: &str| item.key(key).and_then(|it| Some((it, it.text()?)));
            if let Some((at, file)) = of("unix") {
                self.once(&mut seen, at, file, &path("unix"));
                doors.push(Door::Unix(beside(self.file, file)));
                self.no_tls(item, number, "a Unix socket speaks no TLS");
            }
            if let Some((at, address)) = of("metrics") {
                let advice = "listen on 127.0.0.1, and let a proxy that asks pass them on; or \
                              write `metrics_to_anyone:`";
                let text = "other machines can reach this address, and metrics ask nobody who \
                            they are";
                if is_exposed(address) {
                    self.wrong(Mistake::new(at.place, text).at(&path("metrics")).advice(advice));
                }
                self.once_bound(&mut seen, at, address, &path("metrics"));
                doors.push(Door::Metrics(address.to_owned()));
                self.no_tls(item, number, "the door for metrics speaks no TLS");
            }
            if let Some((at, address)) = of("metrics_to_anyone") {
                self.once_bound(&mut seen, at, address, &path("metrics_to_anyone"));
                doors.push(Door::MetricsToAnyone(address.to_owned()));
                self.no_tls(item, number, "the door for metrics speaks no TLS");
            }
            let Some((at, address)) = of("tcp") else { continue };
            if tokens.is_none() && is_exposed(address) {
                let text = "other machines can reach this address, and there are no tokens";
                let advice = "add `tokens: {file: tokens.txt}`, or listen on 127.0.0.1";
                self.wrong(Mistake::new(at.place, text).at(&path("tcp")).advice(advice));
            }
            self.once_bound(&mut seen, at, address, &path("tcp"));
            let tls = item.key("tls").and_then(|it| self.tls(it, &path("tls")));
            doors.push(Door::Tcp { address: address.to_owned(), tls });
        }
        doors
    }

    fn no_tls(&self, item: &Node, number: usize, text: &str) {
        if let Some(tls) = item.key("tls") {
            let wrong = Mistake::new(tls.place, text).at(&format!("doors[{number}].tls"));
            self.wrong(wrong.advice("leave it out: nobody else can listen there"));
        }
    }

    /// Adds a mistake if an address repeats. An IP address with port 0 may repeat, because the
    /// system chooses another port each time.
    fn once_bound<'b>(
        &self,
        seen: &mut BTreeMap<&'b str, usize>,
        at: &Node,
        address: &'b str,
        path: &str,
    ) {
        if address.parse::<SocketAddr>().ok().is_none_or(|it| it.port() != 0) {
            self.once(seen, at, address, path);
        }
    }

    fn tls(&self, node: &Node, path: &str) -> Option<Tls> {
        let certificate = self.tls_file(node, "certificate", path, Tls::check_certificate);
        let key = self.tls_file(node, "key", path, Tls::check_key);
        let read = Tls::read(certificate?, key?);
        read.map_err(|it| self.wrong(Mistake::new(node.place, it.to_string()).at(path))).ok()
    }

    /// Returns the path of a certificate or a key, if the file passes `check`.
    fn tls_file(
        &self,
        node: &Node,
        key: &str,
        path: &str,
        check: fn(&Path) -> Result<(), Unusable>,
    ) -> Option<PathBuf> {
        let at = node.key(key).filter(|it| !it.is_null())?;
        let file = beside(self.file, at.text()?);
        let wrong = |it: Unusable| Mistake::new(at.place, it.to_string()).at(&joined(path, key));
        check(&file).map_err(|it| self.wrong(wrong(it))).ok()?;
        Some(file)
    }

    /// Adds a mistake if an address or a path repeats.
    fn once<'b>(
        &self,
        seen: &mut BTreeMap<&'b str, usize>,
        at: &Node,
        address: &'b str,
        path: &str,
    ) {
        let Some(line) = seen.insert(address, at.place.line) else { return };
        let text = format!("line {line} listens on {} already", cut(address));
        self.wrong(Mistake::new(at.place, text).at(path).advice("choose another"));
    }
}

/// Whether other machines can reach an IP address. A host name counts as not exposed, because its
/// IP addresses are known only when the door opens.
fn is_exposed(address: &str) -> bool {
    let parsed = address.parse::<SocketAddr>();
    parsed.is_ok_and(|it| !it.ip().to_canonical().is_loopback())
}
