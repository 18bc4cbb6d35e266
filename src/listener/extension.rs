//! [`Extensions`]: values of any type that a listener declares about itself, for the handlers of
//! other listeners.

use std::any::{Any, TypeId};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::listener::Listener;

impl<S> Listener<S> {
    /// Adds a value of a type of your own to the listener's description. The handlers of all
    /// listeners can read the value with
    /// [`Described::extension`](crate::listener::Described::extension). A second value of the same
    /// type replaces the first one.
    ///
    /// ```
    /// # extern crate pumphouse_core as pumphouse;
    /// use pumphouse::prelude::*;
    ///
    /// struct Team(&'static str);
    ///
    /// let sums = Listener::new("sums").on(async |_: Done| ()).extension(Team("finance"));
    /// let plan = pumphouse::builder().with(sums).build()?;
    /// let team = plan.capabilities().listener("sums").and_then(|it| it.extension::<Team>());
    /// assert_eq!(team.map(|it| it.0), Some("finance"));
    /// # Ok::<(), pumphouse::engine::Complaints>(())
    /// ```
    #[must_use]
    pub fn extension<T: Any + Send + Sync>(mut self, value: T) -> Listener<S> {
        self.spec.extensions.insert(value);
        self
    }
}

/// The values that a listener declares about itself, at most one of each type.
#[derive(Clone, Default)]
pub(crate) struct Extensions(BTreeMap<TypeId, Arc<dyn Any + Send + Sync>>);

impl Extensions {
    pub(crate) fn insert<T: Any + Send + Sync>(&mut self, value: T) {
        self.0.insert(TypeId::of::<T>(), Arc::new(value));
    }

    pub(crate) fn get<T: Any + Send + Sync>(&self) -> Option<&T> {
        self.0.get(&TypeId::of::<T>())?.downcast_ref()
    }
}

impl fmt::Debug for Extensions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} extensions", self.0.len())
    }
}

impl PartialEq for Extensions {
    fn eq(&self, other: &Extensions) -> bool {
        let mut pairs = self.0.iter().zip(&other.0);
        self.0.len() == other.0.len()
            && pairs.all(|(one, other)| one.0 == other.0 && Arc::ptr_eq(one.1, other.1))
    }
}

impl Eq for Extensions {}
