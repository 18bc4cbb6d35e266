//! Reads the text of a PDF by the crate `pdf_extract`, and counts the glyphs that nobody can read.

use pdf_extract::{
    Document, MediaBox, OutputDev, OutputError, PlainTextOutput, Transform, output_doc_page,
};

/// A PDF is refused if more than one glyph of this many has no character. A few pictures among the
/// letters are common, but of a font without characters nothing can be read.
const GLYPHS_PER_UNREADABLE: usize = 5;

/// Returns the text of a PDF.
pub(super) fn text(bytes: &[u8]) -> Result<String, String> {
    // Many PDFs are encrypted with an empty password, only to keep viewers from printing them.
    // Those are decrypted as they are loaded.
    let file = Document::load_mem(bytes).map_err(|it| format!("it is no PDF: {it}"))?;
    if file.trailer.has(b"Encrypt") {
        return Err("it is encrypted, and wants a password".to_owned());
    }
    let (mut all, mut glyphs) = (String::new(), Glyphs::default());
    for number in file.get_pages().into_keys() {
        let mut page = String::new();
        let mut output = PageOutput { text: PlainTextOutput::new(&mut page), glyphs: &mut glyphs };
        let read = output_doc_page(&file, &mut output, number);
        read.map_err(|it| format!("its text can't be read: {it}"))?;
        if !all.is_empty() && !all.ends_with('\n') {
            all.push('\n');
        }
        all += &page;
    }
    if glyphs.unreadable * GLYPHS_PER_UNREADABLE > glyphs.all {
        return Err(format!(
            "{} of its {} glyphs have no character, so its text is unreadable; it has to be read \
             from its picture",
            glyphs.unreadable, glyphs.all
        ));
    }
    Ok(all)
}

/// How many glyphs a PDF has, and how many of them have no character.
#[derive(Default)]
struct Glyphs {
    all: usize,
    unreadable: usize,
}

/// Takes the text of a page, and counts its glyphs.
struct PageOutput<'a> {
    text: PlainTextOutput<&'a mut String>,
    glyphs: &'a mut Glyphs,
}

impl OutputDev for PageOutput<'_> {
    fn begin_page(
        &mut self,
        number: u32,
        media_box: &MediaBox,
        art_box: Option<(f64, f64, f64, f64)>,
    ) -> Result<(), OutputError> {
        self.text.begin_page(number, media_box, art_box)
    }

    fn end_page(&mut self) -> Result<(), OutputError> {
        self.text.end_page()
    }

    fn output_character(
        &mut self,
        place: &Transform,
        width: f64,
        spacing: f64,
        font_size: f64,
        text: &str,
    ) -> Result<(), OutputError> {
        self.glyphs.all += 1;
        let is_readable = !text.is_empty() && !text.chars().any(is_no_character);
        self.glyphs.unreadable += usize::from(!is_readable);
        let text = if is_readable { text } else { "\u{fffd}" };
        self.text.output_character(place, width, spacing, font_size, text)
    }

    fn begin_word(&mut self) -> Result<(), OutputError> {
        self.text.begin_word()
    }

    fn end_word(&mut self) -> Result<(), OutputError> {
        self.text.end_word()
    }

    fn end_line(&mut self) -> Result<(), OutputError> {
        self.text.end_line()
    }
}

/// Whether a glyph's text says that nobody knows its character: a control character, one for
/// private use, or none at all.
fn is_no_character(letter: char) -> bool {
    let is_space = matches!(letter, '\t' | '\n' | '\r');
    letter.is_control() && !is_space || matches!(letter, '\u{e000}'..='\u{f8ff}' | '\u{fffd}')
}
