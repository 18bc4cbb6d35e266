//! Folds: state that is computed from a thread's entries and nothing else.

use std::any::{Any, TypeId, type_name};
use std::fmt::Debug;
use std::sync::Arc;

use crate::listener::Entry;

/// State that is computed from a thread's entries, one after another.
///
/// ```
/// use pumphouse::prelude::*;
///
/// /// How many messages the thread has had.
/// #[derive(Clone, Debug, Default)]
/// struct Count(u64);
///
/// impl Apply for Count {
///     fn apply(&mut self, _: &Entry) {
///         self.0 += 1;
///     }
/// }
/// ```
///
/// A handler takes it as `Fold<Count>`, as of the message it handles. It is kept while the thread
/// is awake and rebuilt from the log when it wakes: the same entries give the same state.
///
/// `pumphouse state` shows it by its `Debug`, and its digest is over that: keep a `BTreeMap` where
/// a `HashMap` would show another order each time.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a fold: implement `Apply` for it",
    note = "a fold is `Clone + Debug + Default` and says with `apply` what one entry changes"
)]
pub trait Apply: Clone + Debug + Default + Send + Sync + 'static {
    /// Applies the next entry.
    fn apply(&mut self, entry: &Entry);
}

/// A fold's state, whatever its type.
pub(crate) type Awake = Arc<dyn Any + Send + Sync>;
/// The id of a fold's type, and its name for people.
pub(crate) type FoldId = (TypeId, &'static str);

/// What the engine needs to keep a fold.
#[derive(Clone, Copy)]
pub(crate) struct FoldOf {
    pub(crate) empty: fn() -> Awake,
    pub(crate) apply: fn(&mut Awake, &Entry),
    pub(crate) show: fn(&Awake) -> String,
}

impl FoldOf {
    pub(crate) fn of<T: Apply>() -> (FoldId, FoldOf) {
        let empty = || Arc::new(T::default()) as Awake;
        (FoldOf::id::<T>(), FoldOf { empty, apply: apply::<T>, show: show::<T> })
    }

    pub(crate) fn id<T: Apply>() -> FoldId {
        (TypeId::of::<T>(), type_name::<T>())
    }
}

/// The state as its `Debug` shows it.
fn show<T: Apply>(awake: &Awake) -> String {
    awake.downcast_ref::<T>().map(|it| format!("{it:#?}")).unwrap_or_default()
}

/// Changes the state in place. If a handler still holds it, a copy is changed.
fn apply<T: Apply>(awake: &mut Awake, entry: &Entry) {
    let held = std::mem::replace(awake, Arc::new(()));
    let mut held: Arc<T> = held.downcast().unwrap_or_default();
    Arc::make_mut(&mut held).apply(entry);
    *awake = held;
}
