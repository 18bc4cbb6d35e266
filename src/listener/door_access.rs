//! Who may send a listener messages at a door.

use std::fmt;
use std::sync::Arc;

use crate::listener::Effects;

/// Who may send a listener messages at a door. Inside the pump, [`peers`] say who may.
///
/// [`peers`]: crate::listener::Listener::peers
///
/// ```
/// # extern crate pumphouse_core as pumphouse;
/// use pumphouse::listener::{DoorAccess, Effects};
/// use pumphouse::prelude::*;
///
/// # /// A text to send.
/// # #[derive(Payload)]
/// # #[payload(ns = "urn:fax")]
/// # struct Fax { text: String }
/// let fax = || Listener::new("fax").on(async |_: Fax| ()).effects(Effects::Outside);
/// assert_eq!(fax().door_access().to_string(), "operators");
/// let fax = fax().door(DoorAccess::listed(["ada", DoorAccess::OPERATORS]));
/// assert_eq!(fax.door_access().to_string(), "ada, operators");
/// assert!(fax.door_access().admits("ada", false) && !fax.door_access().admits("bob", false));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DoorAccess {
    /// Every identity that the door lets in.
    Everybody,
    /// The identities with these names. The name [`OPERATORS`](DoorAccess::OPERATORS) stands for
    /// all operators.
    Listed(Arc<[String]>),
    /// Nobody: only other listeners send it messages.
    Nobody,
}

impl DoorAccess {
    /// The name that stands for all operators. At a door of an organism without tokens, `console`
    /// counts as an operator.
    pub const OPERATORS: &'static str = "operators";

    /// Admits the identities with these names.
    pub fn listed<N: Into<String>>(names: impl IntoIterator<Item = N>) -> DoorAccess {
        DoorAccess::Listed(names.into_iter().map(Into::into).collect())
    }

    /// Who may call a listener that says nothing of doors. Effects are for operators. A listener
    /// without declared effects, such as an agent or a workflow, is there for its users.
    pub fn by_effects(effects: Option<Effects>) -> DoorAccess {
        match effects {
            None | Some(Effects::None) => DoorAccess::Everybody,
            Some(_) => DoorAccess::listed([DoorAccess::OPERATORS]),
        }
    }

    /// Returns whether an identity may send at a door.
    #[must_use]
    pub fn admits(&self, name: &str, is_operator: bool) -> bool {
        match self {
            DoorAccess::Everybody => true,
            DoorAccess::Nobody => false,
            DoorAccess::Listed(names) => {
                let fits = |it: &String| *it == name || is_operator && *it == Self::OPERATORS;
                names.iter().any(fits)
            }
        }
    }
}

impl fmt::Display for DoorAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DoorAccess::Everybody => f.write_str("everybody"),
            DoorAccess::Nobody => f.write_str("nobody"),
            DoorAccess::Listed(names) => f.write_str(&names.join(", ")),
        }
    }
}
