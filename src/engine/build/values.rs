//! Values that a builder keeps for factories, each by its type.

use std::any::{Any, TypeId};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Values for factories, at most one of each type. [`Factory::with`](super::factory::Factory::with)
/// asks for one of them.
///
/// ```
/// # extern crate pumphouse_core as pumphouse;
/// use pumphouse::engine::Values;
///
/// let mut values = Values::default();
/// values.put(7_u8);
/// values.put(8_u8);
/// assert_eq!((values.get::<u8>(), values.get::<u16>()), (Some(&8), None));
/// ```
#[derive(Clone, Default)]
pub struct Values(BTreeMap<TypeId, Arc<dyn Any + Send + Sync>>);

impl Values {
    /// Keeps a value in place of the one of the same type.
    pub fn put<T: Any + Send + Sync>(&mut self, value: T) {
        self.0.insert(TypeId::of::<T>(), Arc::new(value));
    }

    /// The value of a type.
    #[must_use]
    pub fn get<T: Any + Send + Sync>(&self) -> Option<&T> {
        self.0.get(&TypeId::of::<T>())?.downcast_ref()
    }
}

impl fmt::Debug for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Values({})", self.0.len())
    }
}
