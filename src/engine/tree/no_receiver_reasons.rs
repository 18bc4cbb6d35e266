//! Says why a payload has no receiver. Most senders get a fault that is the same for every reason.
//! A sender that may know which listeners there are gets the reason.

use crate::engine::tree::route::{Registered, Routes};
use crate::name::Name;
use crate::schema::nearest;
use crate::wire::{Code, Fault};

/// How many characters of a name a fault shows.
const NAME_MAX: usize = 100;

/// How many names a fault lists.
const NAMES_MAX: usize = 8;

impl Routes {
    /// Returns why a listener's message has no receiver. A listener that doesn't exist and one that
    /// `from` may not address give the same fault.
    pub(crate) fn misaddressed(&self, from: &Registered, to: &str, name: &Name) -> Fault {
        let (own, shown) = (&from.name, short(to));
        if self.may_name(from, to) {
            let text = format!("{own} sent {name} to {shown}, which doesn't take it");
            return Fault::new(Code::Undeliverable, text);
        }
        let reached = self.listeners.iter().filter(|it| from.may_reach(&it.name));
        let mut reached: Vec<&str> = reached.map(|it| &*it.name).collect();
        reached.retain(|it| *it != &**own);
        let advice = match nearest(to, reached.iter().copied()) {
            Some(it) => format!("Did you mean {it}? It is the peer of {own} that is most like it."),
            None if reached.is_empty() => format!("{own} has no peers."),
            None => format!("The peers of {own} are {}.", list(&reached)),
        };
        let text = format!("{own} sent {name} to {shown}, which is none of its peers");
        Fault { advice: Some(advice), ..Fault::new(Code::Undeliverable, text) }
    }

    /// Replaces the fault's message with the reason if the fault says that no listener takes the
    /// payload. Returns any other fault unchanged.
    pub(crate) fn explained(&self, fault: Fault, to: Option<&str>, name: &Name) -> Fault {
        if fault.code != Code::Undeliverable {
            return fault;
        }
        Fault { message: self.reason(to, name), ..fault }
    }

    /// Returns why no listener takes a push, for senders that may know which listeners there are.
    fn reason(&self, to: Option<&str>, name: &Name) -> String {
        let shown = short(&if name.namespace().is_empty() {
            name.local().to_owned()
        } else {
            name.to_string()
        });
        if let Some(to) = to {
            let Some(found) = self.find(to) else {
                let names = self.listeners.iter().map(|it| &*it.name);
                return guessed(format!("no listener is called {}", short(to)), nearest(to, names));
            };
            let takes: Vec<String> =
                self.listeners[found].routes().into_iter().map(ToString::to_string).collect();
            let takes: Vec<&str> = takes.iter().map(String::as_str).collect();
            if self.route(found, name).is_none() && !name.namespace().is_empty() {
                return format!("{to} doesn't take {shown}; it takes {}", list(&takes));
            }
        }
        let known = self.catalog.named(name.local());
        let taken: Vec<String> = known
            .iter()
            .filter(|it| self.receivers(None, it).is_ok())
            .map(ToString::to_string)
            .collect();
        let taken: Vec<&str> = taken.iter().map(String::as_str).collect();
        if name.namespace().is_empty() && taken.len() > 1 {
            return format!("{shown} has no namespace, and may be any of {}", list(&taken));
        }
        if let [other] = taken[..] {
            return guessed(format!("the organism has no payload {shown}"), Some(other));
        }
        if known.contains(name) {
            return format!("no listener takes {shown}");
        }
        let word = self.capabilities.find(&name.to_string()).err().and_then(|it| it.nearest);
        guessed(format!("the organism has no payload {shown}"), word.as_deref())
    }
}

fn guessed(text: String, nearest: Option<&str>) -> String {
    match nearest {
        Some(it) => format!("{text}; did you mean {it}?"),
        None => text,
    }
}

fn short(text: &str) -> String {
    match text.char_indices().nth(NAME_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

fn list(names: &[&str]) -> String {
    let shown = names.iter().take(NAMES_MAX).copied().collect::<Vec<_>>().join(", ");
    match names.len().checked_sub(NAMES_MAX) {
        None | Some(0) => shown,
        Some(more) => format!("{shown} and {more} more"),
    }
}
