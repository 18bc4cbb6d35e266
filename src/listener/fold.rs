//! Folds: a listener's state in a thread, computed from the thread's entries and from nothing
//! else. Users implement [`Apply`]; the engine keeps the states through [`FoldOf`].

use std::any::{Any, TypeId, type_name};
use std::fmt::Debug;
use std::sync::Arc;

use crate::listener::Entry;

/// State that is computed from a thread's entries, one entry after another.
///
/// ```
/// # extern crate pumphouse_core as pumphouse;
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
/// A handler takes this state as `Fold<Count>`. The state includes the entries up to the message at
/// hand, or further if the handler takes its [`Queue`](crate::listener::Queue) or its listener is
/// [up to date](crate::Listener::up_to_date). The engine keeps
/// the state while the thread is in memory, and computes it again from the log when the thread is
/// loaded. The same entries must always give the same state.
///
/// `pumphouse state` prints the state with `Debug`, and makes its digest from that text. So use a
/// `BTreeMap` rather than a `HashMap`, which would print in another order each time.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a fold: implement `Apply` for it",
    note = "a fold is `Clone + Debug + Default` and says with `apply` what one entry changes"
)]
pub trait Apply: Clone + Debug + Default + Send + Sync + 'static {
    /// Applies the next entry.
    fn apply(&mut self, entry: &Entry);
}

/// The state of a fold in memory, without its type.
pub(crate) type Awake = Arc<dyn Any + Send + Sync>;
/// The id of a fold's type, and the type's name for error messages.
pub(crate) type FoldId = (TypeId, &'static str);

/// What the engine needs to keep a fold whose type it doesn't know: functions that make, change and
/// show the state.
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
        (TypeId::of::<T>(), shown_name(type_name::<T>()))
    }
}

/// The state as its `Debug` shows it.
fn show<T: Apply>(awake: &Awake) -> String {
    awake.downcast_ref::<T>().map(|it| format!("{it:#?}")).unwrap_or_default()
}

/// Changes the state in place, or a copy of it if a handler still holds the old state.
fn apply<T: Apply>(awake: &mut Awake, entry: &Entry) {
    let held = std::mem::replace(awake, Arc::new(()));
    let mut held: Arc<T> = held.downcast().unwrap_or_default();
    Arc::make_mut(&mut held).apply(entry);
    *awake = held;
}
/// The name of a type without the crate that it is in, where the crate is one of the house: such a
/// type is known by the rest of its path.
fn shown_name(path: &'static str) -> &'static str {
    match path.split_once("::") {
        Some((first, rest)) if first.starts_with("pumphouse") => rest,
        _ => path,
    }
}
