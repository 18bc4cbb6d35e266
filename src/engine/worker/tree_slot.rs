//! A worker's slot for a tree: in memory with its event queue, or loading.

use std::collections::VecDeque;
use std::hash::{BuildHasher, DefaultHasher, Hasher};

use crate::engine::common::inbox::Mail;
use crate::engine::tree::event::Event;
use crate::engine::tree::step::Tree;
use crate::engine::worker::log_lanes::LastBatches;
use crate::engine::worker::usage::Usage;

/// A hash with a random key, so that no client can choose ids that collide.
pub(crate) struct KeyedHash(u64);

impl KeyedHash {
    pub(crate) fn new(key: u64) -> KeyedHash {
        KeyedHash(key)
    }
}

impl BuildHasher for KeyedHash {
    type Hasher = DefaultHasher;

    fn build_hasher(&self) -> DefaultHasher {
        let mut hasher = DefaultHasher::new();
        hasher.write_u64(self.0);
        hasher
    }
}

/// A tree, or the mail that waits while the tree is loaded.
pub(crate) enum TreeSlot {
    Waking(Vec<Mail>),
    Awake(Box<AwakeTree>),
}

/// A tree in memory.
pub(crate) struct AwakeTree {
    pub(crate) tree: Tree,
    pub(crate) queue: VecDeque<Event>,
    pub(crate) is_ready: bool,
    /// Whether the tree is in `Worker::resting`. Only resting trees are unloaded.
    pub(crate) is_resting: bool,
    /// The last batches that the tree is part of.
    pub(crate) last_batches: LastBatches,
    pub(crate) usage: Usage,
}

impl AwakeTree {
    pub(crate) fn new(tree: Tree) -> AwakeTree {
        AwakeTree {
            tree,
            queue: VecDeque::new(),
            is_ready: false,
            is_resting: false,
            last_batches: LastBatches::default(),
            usage: Usage::default(),
        }
    }
}
