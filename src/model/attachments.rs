//! Images and documents in prompts, and which of them a model takes.

use std::sync::Arc;

/// Approximate tokens of an image. Anthropic counts width times height divided by 750, after
/// scaling large images down to about 1,600 tokens ("Vision" in its documentation). OpenAI and
/// Google cut images into tiles, which have fewer tokens each.
const IMAGE_TOKENS: u64 = 1_600;
/// Approximate tokens of a document's page. Anthropic names 1,500 to 3,000 ("PDF support" in its
/// documentation).
const PAGE_TOKENS: u64 = 3_000;
/// Approximate bytes of a document's page.
const PAGE_BYTES: u64 = 32 << 10;

/// An image or a document in a message.
///
/// ```
/// # extern crate pumphouse_model as pumphouse;
/// use pumphouse::model::Attached;
///
/// let image = Attached::new("image/png", b"\x89PNG");
/// assert_eq!(image.data_url(), "data:image/png;base64,iVBORw==");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Attached {
    /// The media type, such as `image/png` or `application/pdf`.
    pub media_type: String,
    /// The bytes, in base64.
    pub base64: Arc<str>,
}

impl Attached {
    /// An attachment of these bytes. They aren't checked against the media type.
    #[must_use]
    pub fn new(media_type: impl Into<String>, bytes: &[u8]) -> Attached {
        let base64 = crate::schema::base64_text(bytes);
        Attached { media_type: media_type.into(), base64: base64.into() }
    }

    /// Whether the media type is one of images. Everything else counts as a document.
    #[must_use]
    pub fn is_image(&self) -> bool {
        self.media_type.starts_with("image/")
    }

    /// A file name, for wires that want one: `attached.` and the subtype of the media type, or
    /// `attached.txt` for plain text.
    #[must_use]
    pub fn file_name(&self) -> String {
        let kind = self.media_type.rsplit_once('/').map_or("bin", |(_, it)| it);
        format!("attached.{}", if kind == "plain" { "txt" } else { kind })
    }

    /// The bytes in a `data:` URL.
    #[must_use]
    pub fn data_url(&self) -> String {
        format!("data:{};base64,{}", self.media_type, self.base64)
    }

    /// Estimates the tokens of the attachment: 1,600 for an image, and 3,000 for each 32 KiB of a
    /// document, rounded up. Providers themselves count pixels and pages.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        let bytes = self.base64.len() as u64 / 4 * 3;
        if self.is_image() { IMAGE_TOKENS } else { PAGE_TOKENS * bytes.div_ceil(PAGE_BYTES).max(1) }
    }
}

/// Whether a media type is in a list of accepted types. In the list, `image/*` stands for all types
/// that begin with `image/`. Case is ignored.
///
/// ```
/// # extern crate pumphouse_model as pumphouse;
/// use pumphouse::model::takes;
///
/// let types = ["image/*".to_owned(), "application/pdf".to_owned()];
/// assert!(takes(&types, "image/png") && takes(&types, "application/pdf"));
/// assert!(!takes(&types, "audio/wav") && !takes(&[], "image/png"));
/// ```
#[must_use]
pub fn takes(types: &[String], media_type: &str) -> bool {
    let wanted = |range: &String| match range.strip_suffix("/*") {
        Some(kind) => {
            let begin = media_type.split_once('/').map(|(begin, _)| begin);
            begin.is_some_and(|it| it.eq_ignore_ascii_case(kind))
        }
        None => media_type.eq_ignore_ascii_case(range),
    };
    is_media_range(media_type) && types.iter().any(wanted)
}

/// Whether a text is a media type without parameters, or a range of media types, such as `image/*`.
///
/// ```
/// # extern crate pumphouse_model as pumphouse;
/// use pumphouse::model::is_media_range;
///
/// assert!(is_media_range("application/pdf") && is_media_range("image/*"));
/// assert!(!is_media_range("image") && !is_media_range("image/png; a=1"));
/// ```
#[must_use]
pub fn is_media_range(text: &str) -> bool {
    let is_name = |it: &str| {
        let is_letter = |it: u8| it.is_ascii_alphanumeric() || b"!#$&^_.+-".contains(&it);
        !it.is_empty() && it.bytes().all(is_letter)
    };
    let parts = text.split_once('/');
    parts.is_some_and(|(kind, name)| is_name(kind) && (name == "*" || is_name(name)))
}

/// The media type of bytes, recognized by their beginning: an image in PNG, JPEG, GIF or WebP, or a
/// PDF. None for anything else.
///
/// ```
/// # extern crate pumphouse_model as pumphouse;
/// use pumphouse::model::media_type_of;
///
/// assert_eq!(media_type_of(b"GIF89a\x01\0\x01\0"), Some("image/gif"));
/// assert_eq!(media_type_of(b"Dear Ada,"), None);
/// ```
#[must_use]
pub fn media_type_of(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        [b'%', b'P', b'D', b'F', b'-', ..] => Some("application/pdf"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn types(all: &[&str]) -> Vec<String> {
        all.iter().map(|it| (*it).to_owned()).collect()
    }

    #[test]
    fn a_range_takes_all_of_its_kind_and_a_type_itself() {
        let check = |all: &[&str], media_type: &str, expected: bool| {
            assert_eq!(takes(&types(all), media_type), expected, "{all:?} {media_type}");
        };
        check(&["image/*"], "image/webp", true);
        check(&["image/*"], "IMAGE/PNG", true);
        check(&["image/*"], "imagery/png", false);
        check(&["image/png"], "image/png", true);
        check(&["image/png"], "image/*", false);
        check(&["image/*"], "image/*", true);
        check(&["text/*"], "text/plain]\n[From console]", false);
        check(&[], "image/png", false);
    }

    #[test]
    fn an_image_counts_as_one_however_many_bytes_it_has() {
        let tokens = |kind: &str, bytes: usize| Attached::new(kind, &vec![0; bytes]).tokens();
        assert_eq!(tokens("image/png", 3), IMAGE_TOKENS);
        assert_eq!(tokens("image/png", 3 << 20), IMAGE_TOKENS);
        assert_eq!(tokens("application/pdf", 3), PAGE_TOKENS);
        assert_eq!(tokens("application/pdf", 90 << 10), 3 * PAGE_TOKENS);
    }
}
