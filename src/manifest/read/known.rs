//! The names that advice on a mistake may suggest.

use crate::engine::Factory;
use crate::manifest::key_table::AGENT;
use crate::manifest::mistake::Mistake;
use crate::manifest::read::Reader;

/// The names that advice may suggest.
pub(super) struct Known<'a> {
    pub(super) names: Vec<&'a str>,
    /// The kinds of the listeners that have other names than their kinds, and these names.
    pub(super) kinds: Vec<(&'a str, &'a str)>,
}

impl Reader<'_> {
    /// The kinds that `use:` may name.
    pub(super) fn kinds(&self) -> impl Iterator<Item = &str> + Clone {
        self.builder.factories().iter().map(Factory::name).chain([AGENT])
    }

    /// Adds the way on to the mistake of a name that no listener has. If the name, or its part
    /// before a dot, is a kind of listener, that is the names of the listeners of this kind, or
    /// else the line to add. Of any other name, it is the names that there are.
    pub(super) fn to_add(&self, mistake: Mistake, name: &str, known: &Known<'_>) -> Mistake {
        let is_meant = |it: &&str| {
            let rest = name.strip_prefix(it).filter(|_| *it != AGENT);
            rest.is_some_and(|it| it.is_empty() || it.starts_with('.'))
        };
        if let Some(kind) = self.kinds().filter(is_meant).max_by_key(|it| it.len()) {
            let payload = &name[kind.len()..];
            let of_kind = known.kinds.iter().filter(|it| it.0 == kind);
            let named: Vec<String> = of_kind.map(|it| format!("`{}{payload}`", it.1)).collect();
            return mistake.advice(match named.is_empty() {
                true => format!("add `- use: {kind}` to `listeners`"),
                false => format!("the manifest's {kind} has another name: {}", named.join(", ")),
            });
        }
        let mistake = mistake.or_nearest(name, known.names.iter().copied());
        mistake.advice(format!("there is {}", known.names.join(", ")))
    }
}
