//! Extracts the text of a PDF. The parser is a foreign library, and a hostile file may send it into
//! a loop. So it runs in a process of its own: the same executable, without files and network, with
//! bounds on its time and memory.

use std::ffi::OsString;
use std::io::{self, Read as _, Write as _};
use std::process::ExitCode;

use pdf_extract::{Document, PlainTextOutput, output_doc};
use pumphouse::schema::{base64, base64_text};
use pumphouse::wire::core::OutputStream;

use super::command::Bounds;
use super::command::limits::CommandLimits;
use super::command::run::{Ended, Outcome, run};
use super::text::lossy;

/// The argument that makes a reader of PDFs of this executable.
const READ: &str = "read-a-pdf";
/// Seconds that reading a PDF may take.
pub(super) const PDF_SECONDS_MAX: u64 = 20;
/// Bytes of memory that it may take.
pub(super) const PDF_MEMORY_BYTES_MAX: u64 = 512 << 20;
/// Bytes of text that a PDF may have.
pub(super) const PDF_TEXT_BYTES_MAX: usize = 4 << 20;
/// Bytes of the reason why it can't be read.
const REASON_BYTES_MAX: usize = 4 << 10;
/// The exit code of a reader that says why a PDF can't be read.
const UNREAD: u8 = 3;

/// Why a PDF has no text here.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NoText {
    /// Something of it is more than may be; the limit's name, and what it is.
    TooMuch(&'static str, String),
    /// It can't be read, and why.
    Unread(String),
}

/// The text of a PDF: its pages one after another, in the order in which the file has their words.
pub(super) async fn text(bytes: &[u8]) -> Result<String, NoText> {
    let unread = |it: io::Error| NoText::Unread(format!("the reader can't be begun: {it}"));
    let program = std::env::current_exe().map_err(unread)?.to_string_lossy().into_owned();
    let limits = CommandLimits {
        seconds_max: PDF_SECONDS_MAX,
        output_bytes_max: 2 * PDF_TEXT_BYTES_MAX,
        error_bytes_max: REASON_BYTES_MAX,
        written_bytes_max: PDF_TEXT_BYTES_MAX as u64,
        memory_bytes_max: PDF_MEMORY_BYTES_MAX,
        ..CommandLimits::default()
    };
    let bounds = Bounds::closed(limits).with_program(&program).map_err(NoText::Unread)?;
    let nobody = |_: OutputStream, _: &[u8]| {};
    let input = base64_text(bytes);
    let ran = run(&bounds, &program, vec![READ.to_owned()], input, &nobody).await;
    let Outcome { ended, out, err } = ran.map_err(NoText::Unread)?;
    match ended {
        Ended::Code(0) => {
            let text = lossy(&out.beginning().0);
            match text.trim().is_empty() {
                true => Err(NoText::Unread("it has no text, such as a scan of paper".to_owned())),
                false => Ok(text),
            }
        }
        Ended::Code(code) if code == i32::from(UNREAD) => {
            Err(NoText::Unread(err.text(REASON_BYTES_MAX)))
        }
        Ended::Code(_) | Ended::Signal(_) => {
            let text = "the reader gave up: the file is broken, or takes more memory than 512 MiB";
            Err(NoText::Unread(text.to_owned()))
        }
        Ended::OutOfTime => {
            let text = format!("reading it takes more than {PDF_SECONDS_MAX} s");
            Err(NoText::TooMuch("PDF_SECONDS_MAX", text))
        }
        Ended::TooMuchOutput => {
            let text = format!("it has more than {PDF_TEXT_BYTES_MAX} bytes of text");
            Err(NoText::TooMuch("PDF_TEXT_BYTES_MAX", text))
        }
    }
}

/// Where this program was begun as a reader of PDFs: it is one, and that is how it ended.
pub(super) fn begun(arguments: impl IntoIterator<Item = OsString>) -> Option<ExitCode> {
    if arguments.into_iter().nth(1)? != READ {
        return None;
    }
    Some(match read() {
        Ok(text) => match io::stdout().write_all(text.as_bytes()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        },
        Err(why) => {
            // Nobody else hears it.
            let _ = io::stderr().write_all(why.as_bytes());
            ExitCode::from(UNREAD)
        }
    })
}

/// The text of the PDF on the standard input.
fn read() -> Result<String, String> {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).map_err(|it| it.to_string())?;
    let bytes = base64(&input).ok_or_else(|| "it came in another form".to_owned())?;
    let mut file = Document::load_mem(&bytes).map_err(|it| format!("it is no PDF: {it}"))?;
    if file.is_encrypted() {
        // Many are, with no password, to keep readers from printing them.
        file.decrypt("").map_err(|_| "it is encrypted, with a password".to_owned())?;
    }
    let mut text = String::new();
    let mut output = PlainTextOutput::new(&mut text);
    output_doc(&file, &mut output).map_err(|it| format!("its text can't be read: {it}"))?;
    Ok(text)
}
