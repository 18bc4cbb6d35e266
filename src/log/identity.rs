//! The fixed values of a log.

use std::fmt;

use uuid::Uuid;

use crate::clock;

/// The fixed values of a log, which tell it from every other log.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Identity {
    /// The number of the log's file format.
    pub format: u32,
    /// The log's UUID.
    pub uuid: Uuid,
    /// The secret that handlers' random numbers are derived from.
    pub key: [u8; 32],
    /// When the log was made, in microseconds since the epoch.
    pub created_us: u64,
}

impl Identity {
    /// The number of the file format that this version reads and writes. Numbers never come back: a
    /// change of the format takes the next.
    pub const FORMAT: u32 = 3;

    /// The identity of a new log, with random numbers and the time of the clock.
    #[must_use]
    pub fn fresh() -> Identity {
        Identity::new(fresh_uuid(), clock::random_bytes(), clock::wall_us())
    }

    /// The identity of a log of this version's format.
    #[must_use]
    pub fn new(uuid: Uuid, key: [u8; 32], created_us: u64) -> Identity {
        Identity { format: Identity::FORMAT, uuid, key, created_us }
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Identity {{ format: {}, uuid: {}, key: … }}", self.format, self.uuid)
    }
}

/// A UUID of version 7, made from the time and the random numbers of `crate::clock`.
pub(super) fn fresh_uuid() -> Uuid {
    let millis = clock::wall_us() / 1_000;
    uuid::Builder::from_unix_timestamp_millis(millis, &clock::random_bytes()).into_uuid()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_is_not_printed() {
        let identity = Identity { key: [201; 32], ..Identity::fresh() };
        let text = format!("{identity:?}");
        assert!(!text.contains("201, 201") && !text.contains("c9c9"), "{text}");
    }
}
