//! Converts files to text. The ending of the file's name decides the conversion. An XML file is
//! converted as a MediaWiki dump only if `<mediawiki` stands near its beginning.

use std::io::Read as _;

use cap_std::fs::{File, Metadata};
use pumphouse::limits::XmlLimits;
use pumphouse::xml::{self, Profile, View, writable};

use super::super::pdf::{self, NoText};
use super::super::web::html_text;

/// The number of bytes within which the root element of a MediaWiki dump must begin.
const HEAD_BYTES: usize = 1_024;

/// A document as text.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Document {
    pub(super) text: String,
    /// Whether the text is only the beginning of the file's text.
    pub(super) is_cut: bool,
}

/// The content of a file.
pub(super) enum Read {
    Document(Document),
    /// The bytes of a PDF, whose text another process extracts.
    Pdf(Vec<u8>),
}

/// Reads a file as text of about `text_bytes_max` bytes at most. Of a PDF, the bytes are returned.
/// If the file can't be included, for example because it has more than `file_bytes_max` bytes, the
/// error says why, in a few words.
pub(super) fn read(
    name: &str,
    (file, metadata): (File, Metadata),
    (file_bytes_max, text_bytes_max): (usize, usize),
) -> Result<Read, String> {
    let ending = name.rsplit_once('.').map(|(_, it)| it.to_ascii_lowercase());
    let ending = ending.as_deref().unwrap_or_default();
    if metadata.len() > file_bytes_max as u64 {
        return Err("file_bytes_max".to_owned());
    }
    let mut bytes = Vec::new();
    let taken = file.take(file_bytes_max as u64).read_to_end(&mut bytes);
    taken.map_err(|_| "it can't be read".to_owned())?;
    if ending == "pdf" {
        return Ok(Read::Pdf(bytes));
    }
    let document = match ending {
        "xml" if is_wiki(&bytes) => wiki(&bytes, text_bytes_max)?,
        "html" | "htm" | "xhtml" => {
            let html = String::from_utf8_lossy(&bytes);
            let text = html_text(&html, name, text_bytes_max);
            Document { is_cut: text.len() >= text_bytes_max, text }
        }
        _ => plain(bytes, text_bytes_max)?,
    };
    let text = writable(&document.text);
    Ok(Read::Document(Document { text, ..document }))
}

/// Extracts the text of a PDF.
pub(super) async fn pdf(bytes: &[u8]) -> Result<Document, String> {
    match pdf::text(bytes).await {
        Ok(text) => Ok(Document { text: writable(&text), is_cut: false }),
        Err(NoText::TooMuch(limit, _)) => Err(limit.to_owned()),
        Err(NoText::Unread(_)) => Err("no PDF with text".to_owned()),
    }
}

fn plain(bytes: Vec<u8>, most: usize) -> Result<Document, String> {
    let no_text = || "no text".to_owned();
    if bytes.contains(&0) {
        return Err(no_text());
    }
    let mut text = String::from_utf8(bytes).map_err(|_| no_text())?;
    let is_cut = text.len() > most;
    text.truncate(text.floor_char_boundary(most));
    Ok(Document { text, is_cut })
}

fn is_wiki(bytes: &[u8]) -> bool {
    String::from_utf8_lossy(&bytes[..bytes.len().min(HEAD_BYTES)]).contains("<mediawiki")
}

/// Returns the pages of a MediaWiki dump, each below a heading with its title. Of each page, only
/// the first revision in the dump is included.
fn wiki(bytes: &[u8], most: usize) -> Result<Document, String> {
    let dump = xml::read(bytes, Profile::Document, &XmlLimits::FILE);
    let dump = dump.map_err(|error| format!("no XML: {error}"))?;
    let mut document = Document::default();
    for page in dump.elements().filter(|it| it.local() == "page") {
        let title = child(page, "title").map(|it| it.text()).unwrap_or_default();
        let text = child(page, "revision").and_then(|it| child(it, "text"));
        let text = text.map(|it| it.text()).unwrap_or_default();
        document.text += &format!("### {}\n\n{}\n\n", title.trim(), text.trim());
        if document.text.len() > most {
            document.text.truncate(document.text.floor_char_boundary(most));
            document.is_cut = true;
            break;
        }
    }
    Ok(document)
}

fn child<'a>(element: View<'a>, local: &str) -> Option<View<'a>> {
    element.elements().find(|it| it.local() == local)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DUMP: &str = "<mediawiki xmlns=\"http://www.mediawiki.org/xml/export-0.11/\">\
        <siteinfo><sitename>Tea</sitename></siteinfo>\
        <page><title>Green</title><revision><id>1</id><text>Tea &amp; &lt;b&gt;water.</text>\
        </revision><revision><text>Older.</text></revision></page>\
        <page><title>Black</title><revision><text>Milk?</text></revision></page></mediawiki>";

    #[test]
    fn a_wiki_dump_has_its_pages_below_their_titles() {
        assert!(is_wiki(DUMP.as_bytes()) && !is_wiki(b"<note>tea</note>"));
        let expected = "### Green\n\nTea & <b>water.\n\n### Black\n\nMilk?\n\n";
        let document = wiki(DUMP.as_bytes(), 1_000).unwrap();
        assert_eq!(document, Document { text: expected.to_owned(), is_cut: false });
    }

    #[test]
    fn a_wiki_dump_is_cut_and_one_that_is_broken_is_left_out() {
        let document = wiki(DUMP.as_bytes(), 12).unwrap();
        assert_eq!((&*document.text, document.is_cut), ("### Green\n\nT", true));
        let half = &DUMP[..DUMP.find("Milk").unwrap()];
        assert!(wiki(half.as_bytes(), 1_000).unwrap_err().starts_with("no XML: "));
    }

    #[test]
    fn what_is_no_text_is_left_out() {
        assert!(plain(b"a\0b".to_vec(), 10).is_err() && plain(b"\xff".to_vec(), 10).is_err());
        let cut = plain("éé".as_bytes().to_vec(), 3).unwrap();
        assert_eq!((&*cut.text, cut.is_cut), ("é", true));
    }
}
