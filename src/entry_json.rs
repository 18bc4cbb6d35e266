//! An entry of the log as JSON.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::log::Entry;
use crate::wire::{is_failure, iso_time};

/// An entry as an object. The payload is text, exactly as in the log. If the payload is encrypted
/// or isn't UTF-8, `payload_hex` has its bytes.
#[must_use]
pub fn json(entry: &Entry) -> Value {
    let id = entry.id.to_string();
    let text = |bytes: &[u8]| std::str::from_utf8(bytes).map(str::to_owned);
    let body = text(&entry.body).ok().filter(|_| entry.key.is_none());
    let flags: Vec<String> = entry.flags.to_string().split(' ').map(str::to_owned).collect();
    let flags = flags.into_iter().filter(|it| !it.is_empty()).collect::<Vec<_>>();
    let mut object = json!({
        "position": entry.position,
        "entry": id,
        "thread": entry.id.thread.as_str(),
        "seq": entry.id.seq,
        "time": iso_time(entry.at_us),
        "from": &*entry.from,
        "to": entry.to.as_deref(),
        "namespace": entry.name.namespace(),
        "name": entry.name.local(),
        "cause": entry.cause.as_ref().map(ToString::to_string),
        "reply_to": entry.reply_to.as_ref().map(ToString::to_string),
        "flags": flags,
        "failed": is_failure(&entry.name, entry.flags, &entry.body),
        "receivers": entry.receivers,
        "client_id": entry.client_id.as_deref(),
        "meta": entry.meta.as_ref().and_then(|it| text(it).ok()),
        "payload": body,
        "digest": hex(&entry.digest),
    });
    if let Some(key) = entry.key {
        object["key"] = key.into();
    }
    if body.is_none() {
        object["payload_hex"] = hex(&entry.body).into();
    }
    object.sort_all_objects();
    object
}

/// Bytes in hexadecimal, with two digits for each byte.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut out, it| {
        // Writing to a string can't fail.
        write!(out, "{it:02x}").unwrap_or_default();
        out
    })
}
