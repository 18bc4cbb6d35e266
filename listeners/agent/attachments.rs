//! The attachments of a thread as a prompt shows them. This module is pure.

use std::collections::BTreeMap;

use pumphouse::model::{Attached, media_type_of, takes};
use pumphouse::prelude::*;
use pumphouse::wire::core::Attachment;

use super::prompt_form::Form;

/// Maximum number of bytes of attachments in a prompt. The newest attachments are shown. Each older
/// attachment is replaced by a line with its type and size.
pub const ATTACHMENT_BYTES: u64 = 8 * 1_024 * 1_024;

/// A part of a prompt: a text, and possibly an image or a document that belongs to it.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub(super) text: String,
    pub(super) attached: Option<Attached>,
}

impl From<String> for Part {
    fn from(text: String) -> Part {
        Part { text, attached: None }
    }
}

/// Maps the entry numbers of a view's attachments to the parts of the prompt that show them.
#[derive(Default)]
pub(super) struct Attachments(BTreeMap<u64, Part>);

impl Attachments {
    /// The attachments in a view that have one of these media types.
    pub(super) fn of(form: Form<'_>, view: &[Entry]) -> Attachments {
        let mut all = Attachments::default();
        if form.attachments.is_empty() {
            return all;
        }
        let mut room = ATTACHMENT_BYTES;
        let found = view.iter().rev().filter(|it| !it.is_refused() && it.is::<Attachment>());
        for entry in found {
            let Some(it) = entry.decode_if::<Attachment>() else { continue };
            let media_type = media_type(&it);
            if takes(form.attachments, &media_type) {
                all.0.insert(entry.seq(), part(form, (entry, &it), &media_type, &mut room));
            }
        }
        all
    }

    /// Removes and returns the part that a prompt shows in place of an entry. None if the entry
    /// isn't an attachment of a type that the model takes.
    pub(super) fn take(&mut self, seq: u64) -> Option<Part> {
        self.0.remove(&seq)
    }
}

/// A media type without its parameters, in lower case.
fn media_type(it: &Attachment) -> String {
    let bare = it.media_type.split(';').next().unwrap_or_default();
    bare.trim().to_ascii_lowercase()
}

/// The part for an attachment. If there is no room for the attachment, or if its bytes are wrong,
/// the part is a line that says so.
fn part(
    form: Form<'_>,
    (entry, it): (&Entry, &Attachment),
    media_type: &str,
    room: &mut u64,
) -> Part {
    let bytes = it.content.len() as u64;
    let text = media_type.starts_with("text/").then(|| std::str::from_utf8(&it.content));
    let why = if !it.is_intact() {
        Some("its digest is not that of its bytes".to_owned())
    } else if bytes == 0 || text.is_some_and(|it| it.is_err()) || !is_as_said(media_type, it) {
        Some(format!("its bytes are no {media_type}"))
    } else if bytes > ATTACHMENT_BYTES {
        Some(format!("it has more than {} bytes", grouped(ATTACHMENT_BYTES)))
    } else if bytes > *room {
        // From here on, older attachments stay out even if they would fit. Thus an attachment that
        // has left the prompts never returns.
        *room = 0;
        Some("newer attachments take its place".to_owned())
    } else {
        *room -= bytes;
        None
    };
    let line = format!("{media_type}, {} bytes, entry {}", grouped(bytes), entry.id());
    match (why, text) {
        (Some(why), _) => form.line(&format!("{line}; not shown: {why}")).into(),
        (None, Some(text)) => {
            let text = form.quoted(text.unwrap_or_default());
            format!("{}\n{text}", form.line(&line)).into()
        }
        (None, None) => {
            let attached = Some(Attached::new(media_type, &it.content));
            Part { text: form.line(&line), attached }
        }
    }
}

/// Whether the bytes begin as their media type requires. True for media types that this function
/// doesn't know. A provider would refuse a prompt with wrong bytes, and every later prompt of the
/// thread as well.
fn is_as_said(media_type: &str, it: &Attachment) -> bool {
    match media_type {
        "image/png" | "image/jpeg" | "image/gif" | "image/webp" | "application/pdf" => {
            media_type_of(&it.content) == Some(media_type)
        }
        _ => true,
    }
}

/// A number with commas between the groups of three digits, as prompts write it.
#[must_use]
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_has_commas_between_its_thousands() {
        let check = |number: u64, expected: &str| assert_eq!(grouped(number), expected);
        check(0, "0");
        check(999, "999");
        check(12_345, "12,345");
        check(8_388_608, "8,388,608");
    }
}
