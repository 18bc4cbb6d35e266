//! Numbers of every width.

use pumphouse::Payload;

/// Numbers of every width.
#[derive(Payload)]
#[payload(ns = "urn:shapes", rename = "numbers")]
pub(super) struct Root {
    pub(super) a: i8,
    pub(super) b: i16,
    pub(super) c: i32,
    pub(super) d: i64,
    pub(super) e: i128,
    pub(super) f: u8,
    pub(super) g: u16,
    pub(super) h: u32,
    pub(super) i: u64,
    pub(super) j: u128,
    pub(super) k: f32,
    pub(super) l: f64,
    pub(super) m: bool,
    pub(super) n: char,
}
