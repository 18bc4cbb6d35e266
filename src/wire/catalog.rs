//! Checked payloads, and the catalogue of schemas.

use std::borrow::Cow;

use rustc_hash::FxHashMap;

use crate::name::{CORE, ENVELOPE, Name};
use crate::schema::Schema;
use crate::wire::missing_namespace::{adopt, place_in};
use crate::wire::{Code, Fault, quoted};
use crate::xml::{Element, Writer};

/// The catalogue: every schema that an organism knows, by name.
///
/// The maps use a hash without a random key. This is safe, since clients only look names up, and
/// can't add names that collide.
#[derive(Clone, Default)]
pub struct Catalog {
    schemas: FxHashMap<Name, Cow<'static, Schema>>,
    /// Maps a local name to the full names that have it, for payloads that arrive without a
    /// namespace.
    locals: FxHashMap<String, Vec<Name>>,
    /// The names in the namespace [`CORE`].
    core: Vec<Name>,
}

impl Catalog {
    /// Adds a schema. If the catalogue has a different schema of this name, that schema stays, and
    /// `add` returns the name.
    pub fn add(&mut self, schema: Cow<'static, Schema>) -> Option<Name> {
        if let Some(there) = self.schemas.get(&schema.name) {
            return (!there.is_same(&schema)).then(|| schema.name.clone());
        }
        let names = self.locals.entry(schema.name.local().to_owned()).or_default();
        names.push(schema.name.clone());
        if schema.name.namespace() == CORE {
            self.core.push(schema.name.clone());
        }
        self.schemas.insert(schema.name.clone(), schema);
        None
    }

    /// Returns a catalogue of the schemas with these names, and of all schemas in the namespace
    /// [`CORE`]. Names without a schema are skipped.
    #[must_use]
    pub fn only<'a>(&'a self, names: impl IntoIterator<Item = &'a Name>) -> Catalog {
        let mut catalog = Catalog::default();
        for name in self.core.iter().chain(names) {
            if !catalog.schemas.contains_key(name)
                && let Some(schema) = self.schemas.get(name)
            {
                catalog.add(schema.clone());
            }
        }
        catalog
    }

    /// Returns the schema with this name.
    #[must_use]
    pub fn get(&self, name: &Name) -> Option<&Schema> {
        self.schemas.get(name).map(|it| &**it)
    }

    /// Returns whether a name is reserved: only the pump, and listeners with a grant for it, may
    /// send payloads with a reserved name. In the core namespace, unknown names are reserved, too.
    /// In the envelope's namespace, all names are reserved.
    #[must_use]
    pub fn is_reserved(&self, namespace: &str, local: &str) -> bool {
        let mut names = self.named(local).iter().filter(|it| it.namespace() == namespace);
        let known = names.find_map(|it| self.get(it)).map(|it| it.reserved);
        namespace == ENVELOPE || known.unwrap_or(namespace == CORE)
    }

    /// Returns all schemas, sorted by name.
    #[must_use]
    pub fn all(&self) -> Vec<&Schema> {
        let mut all: Vec<&Schema> = self.schemas.values().map(|it| &**it).collect();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all
    }

    /// Returns all names with this local name.
    #[must_use]
    pub fn named(&self, local: &str) -> &[Name] {
        self.locals.get(local).map_or(&[], Vec::as_slice)
    }

    /// Checks a payload against its schema. A payload with an unknown name passes, since routing
    /// will report that no listener takes it.
    ///
    /// # Errors
    /// Returns `P0007` if the payload has no namespace or doesn't fit its schema. In the second
    /// case, the fault has the path of the mistake.
    pub fn check(&self, element: Element) -> Result<Checked, Fault> {
        let (namespace, local) = (element.namespace(), element.local());
        if namespace.is_empty() {
            let text = format!("<{}> has no namespace", quoted(local));
            return Err(Fault::new(Code::Invalid, text).at(element.place()));
        }
        let name = self.named(local).iter().find(|it| it.namespace() == namespace);
        let name = name.cloned().unwrap_or_else(|| Name::new(namespace, local));
        if let Some(schema) = self.get(&name) {
            schema.check(element.view())?;
        }
        Ok(Checked { name, element })
    }

    /// Puts an element without a namespace into this namespace, and checks the result.
    ///
    /// # Errors
    /// Returns the errors of [`check`](Catalog::check). Their lines and columns are those of the
    /// element as it was sent. Also returns the errors of [`adopt`].
    pub fn check_as(
        &self,
        element: &Element,
        namespace: &str,
        to: Writer,
    ) -> Result<Checked, Fault> {
        let name = Name::new(namespace.to_owned(), element.local().to_owned());
        let adopted = adopt(element, namespace, self.get(&name), to)?;
        self.check(adopted.clone()).map_err(|fault| match (fault.line, fault.column) {
            (Some(line), Some(column)) => fault.at(place_in(element, &adopted, line, column)),
            _ => fault,
        })
    }
}

/// A payload that fits its schema, or whose name has no schema.
#[derive(Clone, Debug)]
pub struct Checked {
    name: Name,
    element: Element,
}

impl Checked {
    /// Wraps a payload that its Rust type encoded. Such a payload fits its schema, so it needs no
    /// check.
    #[must_use]
    pub(crate) fn typed(name: Name, element: Element) -> Checked {
        Checked { name, element }
    }

    /// Returns the payload's name.
    #[must_use]
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// Returns the payload.
    #[must_use]
    pub fn element(&self) -> &Element {
        &self.element
    }

    /// Returns whether the payload's name is reserved in this catalogue.
    #[must_use]
    pub fn is_reserved(&self, catalog: &Catalog) -> bool {
        catalog.is_reserved(self.name.namespace(), self.name.local())
    }
}
