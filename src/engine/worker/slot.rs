//! What a worker keeps of a tree beside it.

use std::collections::VecDeque;
use std::hash::{BuildHasher, DefaultHasher, Hasher};

use crate::engine::common::inbox::Mail;
use crate::engine::tree::event::Event;
use crate::engine::tree::step::Tree;
use crate::engine::worker::lanes::Last;
use crate::engine::worker::usage::Taken;

/// A hash that nobody can aim at, from a key that the port draws.
pub(crate) struct Keyed(u64);

impl Keyed {
    pub(crate) fn new(key: u64) -> Keyed {
        Keyed(key)
    }
}

impl BuildHasher for Keyed {
    type Hasher = DefaultHasher;

    fn build_hasher(&self) -> DefaultHasher {
        let mut hasher = DefaultHasher::new();
        hasher.write_u64(self.0);
        hasher
    }
}

/// A tree, or the mail that waits until it is awake.
pub(crate) enum Slot {
    Waking(Vec<Mail>),
    Awake(Box<Held>),
}

/// A tree that is awake.
pub(crate) struct Held {
    pub(crate) tree: Tree,
    pub(crate) queue: VecDeque<Event>,
    pub(crate) is_ready: bool,
    /// Whether it is among those that may be let go.
    pub(crate) rests: bool,
    /// The last batches it is part of.
    pub(crate) last: Last,
    pub(crate) taken: Taken,
}

impl Held {
    pub(crate) fn new(tree: Tree) -> Held {
        let (queue, last, taken) = (VecDeque::new(), Last::default(), Taken::default());
        Held { tree, queue, is_ready: false, rests: false, last, taken }
    }
}
