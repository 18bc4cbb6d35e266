//! How an agent's prompts show its feeds: the form of a feed's block, and the maximum sizes.
//!
//! ```
//! # extern crate pumphouse_listeners as pumphouse;
//! use pumphouse::listeners::feed::injection::{BlockForm, Injection};
//! use pumphouse::listeners::feed::Feeds;
//!
//! // --- BEGIN FEED: fleet-alerts (from claw-api, refreshed 2026-03-19T14:32:00Z) ---
//! let as_in_the_adr = Injection { form: Some(BlockForm::Markers), ..Injection::default() };
//! let feeds = Feeds::default().injected(as_in_the_adr)?;
//! # let _ = feeds;
//! # Ok::<(), pumphouse::listeners::feed::definition::WrongFeed>(())
//! ```

use pumphouse::limits::FeedLimits;
use pumphouse::prelude::*;

/// How an agent's prompts show its feeds. A field that isn't set has its default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Payload)]
pub struct Injection {
    /// The form of a feed's block; default `xml`.
    #[payload(attribute)]
    pub form: Option<BlockForm>,
    /// Whether the form `markers` shows when a feed was refreshed; default true.
    #[payload(attribute)]
    pub refreshed: Option<bool>,
    /// How many bytes of one feed are shown; default 32 KiB.
    #[payload(attribute, example = "32768")]
    pub feed_bytes_max: Option<u64>,
    /// How many bytes the feeds in a prompt may have together; default 64 KiB.
    #[payload(attribute, example = "65536")]
    pub feeds_bytes_max: Option<u64>,
}

/// The smallest `feeds_bytes_max` that is allowed. It leaves room for the line before the feeds,
/// and for the first and the last line of a block.
const ALL_BYTES_LEAST: usize = 256;

/// The form of a feed's block in a prompt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Payload)]
#[non_exhaustive]
pub enum BlockForm {
    /// `<context_feed id="…">`, as in the *Streaming Execution Protocol*.
    #[default]
    Xml,
    /// `--- BEGIN FEED: … ---`, as in ADR-013.
    Markers,
}

impl Injection {
    /// Whether a prompt shows when each feed was refreshed.
    pub(in super::super) fn shows_times(&self) -> bool {
        self.form == Some(BlockForm::Markers) && self.refreshed != Some(false)
    }

    pub(in super::super) fn feed_bytes(&self) -> usize {
        bytes(self.feed_bytes_max, FeedLimits::default().feed_bytes_max)
    }

    pub(super) fn feeds_bytes(&self) -> usize {
        bytes(self.feeds_bytes_max, FeedLimits::default().feeds_bytes_max)
    }

    /// Fails if a limit is too small to show any content, if `feed_bytes_max` is set and larger
    /// than `feeds_bytes_max`, or if `refreshed` is set for a form that shows no times.
    pub(super) fn check(&self) -> Result<(), String> {
        let (one, all) = (self.feed_bytes(), self.feeds_bytes());
        if one == 0 || all < ALL_BYTES_LEAST {
            return Err(format!(
                "feed_bytes_max is at least 1, and feeds_bytes_max {ALL_BYTES_LEAST}; \
                 `enabled: false` shows nothing"
            ));
        }
        if self.feed_bytes_max.is_some() && one > all {
            return Err(format!(
                "feed_bytes_max is {one}, and feeds_bytes_max {all}: no feed of that size would be \
                 shown"
            ));
        }
        if self.refreshed.is_some() && self.form != Some(BlockForm::Markers) {
            return Err("`refreshed` is for `form: markers`: no other form shows times".to_owned());
        }
        Ok(())
    }
}

fn bytes(set: Option<u64>, default: usize) -> usize {
    set.map_or(default, |it| usize::try_from(it).unwrap_or(usize::MAX))
}
