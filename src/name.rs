//! The name of a payload: a namespace and a local name, and the namespaces that Pumphouse owns.

use std::borrow::Cow;
use std::fmt;

/// The envelope's namespace.
pub const ENVELOPE: &str = "https://xml-pipeline.org/ns/envelope/v1";
/// What the pump itself says: `accepted`, `huh`, `thread-spawned` and the other reserved payloads.
pub const CORE: &str = "https://xml-pipeline.org/ns/core/v1";
/// What is said about the organism: its listeners, their schemas, following.
pub const META: &str = "https://xml-pipeline.org/ns/meta/v1";
/// What agents and models say.
pub const AGENT: &str = "https://xml-pipeline.org/ns/agent/v1";

/// The namespace of what a listener of this name owns, where its payloads go by its name.
///
/// ```
/// let namespace = pumphouse::name::namespace_of("files");
/// assert_eq!(namespace, "https://xml-pipeline.org/ns/files/v1");
/// ```
#[must_use]
pub fn namespace_of(listener: &str) -> String {
    format!("https://xml-pipeline.org/ns/{listener}/v1")
}

/// `{namespace}local`.
///
/// ```
/// use pumphouse::Name;
/// const ADD: Name = Name::of("https://xml-pipeline.org/ns/calculator/v1", "add");
/// assert_eq!(ADD.to_string(), "{https://xml-pipeline.org/ns/calculator/v1}add");
/// ```
///
/// A constant where a type says it, owned where only run time knows it.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name {
    namespace: Cow<'static, str>,
    local: Cow<'static, str>,
}

impl Name {
    /// A name that a type knows.
    #[must_use]
    pub const fn of(namespace: &'static str, local: &'static str) -> Name {
        Name { namespace: Cow::Borrowed(namespace), local: Cow::Borrowed(local) }
    }

    /// A name that only run time knows.
    #[must_use]
    pub fn new(namespace: impl Into<String>, local: impl Into<String>) -> Name {
        Name { namespace: Cow::Owned(namespace.into()), local: Cow::Owned(local.into()) }
    }

    /// The namespace, empty where there is none.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The name within its namespace.
    #[must_use]
    pub fn local(&self) -> &str {
        &self.local
    }

    /// Whether this is `{namespace}local`.
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
