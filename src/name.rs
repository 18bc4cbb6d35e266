//! Names of payloads. A name is a namespace and a local name. The namespaces that many modules
//! share are constants here.

use std::borrow::Cow;
use std::fmt;

/// The envelope's namespace.
pub const ENVELOPE: &str = "https://xml-pipeline.org/ns/envelope/v1";
/// The namespace of the pump's own payloads, such as `accepted`, `huh` and `thread-spawned`.
pub const CORE: &str = "https://xml-pipeline.org/ns/core/v1";
/// The namespace of payloads about the organism: about its listeners, about their schemas, and
/// about following threads.
pub const META: &str = "https://xml-pipeline.org/ns/meta/v1";
/// The namespace of payloads that agents send, and of payloads about agents' work.
pub const AGENT: &str = "https://xml-pipeline.org/ns/agent/v1";
/// The sender of the pump's own entries. No listener and no identity may have this name.
pub const CORE_NAME: &str = "core";

/// Returns the namespace that is made from a listener's name. Agents, for example, have their
/// payloads in such a namespace.
///
/// ```
/// # extern crate pumphouse_ground as pumphouse;
/// let namespace = pumphouse::name::namespace_of("files");
/// assert_eq!(namespace, "https://xml-pipeline.org/ns/files/v1");
/// ```
#[must_use]
pub fn namespace_of(listener: &str) -> String {
    format!("https://xml-pipeline.org/ns/{listener}/v1")
}

/// The name of a payload: a namespace and a local name. It is shown as `{namespace}local`.
///
/// ```
/// # extern crate pumphouse_ground as pumphouse;
/// use pumphouse::Name;
/// const ADD: Name = Name::of("https://xml-pipeline.org/ns/calculator/v1", "add");
/// assert_eq!(ADD.to_string(), "{https://xml-pipeline.org/ns/calculator/v1}add");
/// ```
///
/// A name is a constant ([`Name::of`]) if a Rust type declares it, and owned ([`Name::new`]) if it
/// is known only at run time.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name {
    namespace: Cow<'static, str>,
    local: Cow<'static, str>,
}

impl Name {
    /// Makes a name that is known at compile time.
    #[must_use]
    pub const fn of(namespace: &'static str, local: &'static str) -> Name {
        Name { namespace: Cow::Borrowed(namespace), local: Cow::Borrowed(local) }
    }

    /// Makes a name that is known only at run time.
    #[must_use]
    pub fn new(namespace: impl Into<String>, local: impl Into<String>) -> Name {
        Name { namespace: Cow::Owned(namespace.into()), local: Cow::Owned(local.into()) }
    }

    /// Returns the namespace, or an empty text if there is none.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Returns the name within its namespace.
    #[must_use]
    pub fn local(&self) -> &str {
        &self.local
    }

    /// Whether the name is `{namespace}local`.
    #[must_use]
    pub fn is(&self, namespace: &str, local: &str) -> bool {
        self.local == local && self.namespace == namespace
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() {
            return f.write_str(&self.local);
        }
        write!(f, "{{{}}}{}", self.namespace, self.local)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
