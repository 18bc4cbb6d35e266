//! Bounds of what a client keeps and how long it tries.

use std::time::Duration;

use pumphouse_ground::limits::XmlLimits;

/// The most bytes of messages that a client keeps while it waits for something else: four of the
/// largest messages.
pub const KEPT_BYTES_MAX: usize = 64 << 20;
/// How many bytes a kept message counts for beside its own: about what a small one takes in memory.
pub(super) const MESSAGE_BYTES: usize = 1_024;
/// The most answers that `Client::found` remembers: a program asks for the last few.
pub(super) const FOUND_MAX: usize = 64;
/// The size of the read buffer: what a socket mostly has at once.
pub(super) const READ_BYTES: usize = 64 << 10;
/// The limits for a message of a pump: those of the payloads that listeners emit, and room for the
/// envelope around a payload.
pub(super) const LIMITS: XmlLimits = XmlLimits {
    message_bytes_max: XmlLimits::INSIDE.message_bytes_max + 64 * 1024,
    depth_max: XmlLimits::INSIDE.depth_max + 8,
    nodes_max: XmlLimits::INSIDE.nodes_max + 1_024,
    bindings_max: XmlLimits::INSIDE.bindings_max + 8,
    ..XmlLimits::INSIDE
};
/// How many pushes may be unanswered. A further push has to wait, since each is kept until it is
/// answered.
pub(super) const UNANSWERED_MAX: usize = 1_024;
/// How long the client waits after a failed attempt to connect, in microseconds: at first, and at
/// most.
pub(super) const PAUSE_US: (u64, u64) = (5_000, 1_000_000);
/// How long the client tries to connect before it gives up, unless the caller sets another time: a
/// pump starts again in less.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);
