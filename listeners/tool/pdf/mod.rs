//! Extracts the text of a PDF. The parser is a third-party library, and a hostile file may send it
//! into an endless loop. Therefore the parser runs in a separate process of this executable, with
//! bounds on its time and memory. If the kernel has Landlock, this process has no network. It can
//! then read only the system's folders and this executable, and write only to a temporary folder.

#[cfg(feature = "pdf")]
mod reader;

use std::ffi::OsString;
use std::io::{self, Read as _, Write as _};
use std::process::ExitCode;

use pumphouse::schema::{base64, base64_text};
use pumphouse::wire::core::OutputStream;

use super::command::Bounds;
use super::command::limits::CommandLimits;
use super::command::run::{ExitCause, Outcome, run};
use super::text::lossy;

/// The argument with which the executable runs as a reader of PDFs.
const READ: &str = "read-a-pdf";
/// The maximum time in which a PDF is read, in seconds.
pub(super) const PDF_SECONDS_MAX: u64 = 20;
/// The maximum number of bytes of the reader's memory.
pub(super) const PDF_MEMORY_BYTES_MAX: u64 = 512 << 20;
/// The maximum number of bytes of a PDF's text.
pub(super) const PDF_TEXT_BYTES_MAX: usize = 4 << 20;
/// The maximum number of bytes of the reader's message about a PDF that can't be read.
const REASON_BYTES_MAX: usize = 4 << 10;
/// The reader's exit code if it can't read the PDF. Standard error then has the reason.
const UNREAD: u8 = 3;

/// The reason why the text of a PDF isn't available.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NoText {
    /// A limit is exceeded. The variant has the limit's name, and a sentence about it.
    TooMuch(&'static str, String),
    /// The PDF can't be read. The variant has a sentence with the reason.
    Unread(String),
}

/// Extracts the text of a PDF, page by page. The words have the same order as in the file. A glyph
/// without a character is shown as U+FFFD.
pub(super) async fn text(bytes: &[u8]) -> Result<String, NoText> {
    if cfg!(not(feature = "pdf")) {
        return Err(NoText::Unread("this program was built without the feature `pdf`".to_owned()));
    }
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
    let ran = run(&bounds, &program, vec![READ.to_owned()], input, None, &nobody).await;
    let Outcome { ended, out, err } = ran.map_err(|it| NoText::Unread(it.text))?;
    match ended {
        ExitCause::Code(0) => {
            let text = lossy(&out.beginning().0);
            match text.trim().is_empty() {
                true => Err(NoText::Unread("it has no text, such as a scan of paper".to_owned())),
                false => Ok(text),
            }
        }
        ExitCause::Code(code) if code == i32::from(UNREAD) => {
            Err(NoText::Unread(err.text(REASON_BYTES_MAX)))
        }
        ExitCause::Code(_) | ExitCause::Signal(_) => {
            let text = "the reader gave up: the file is broken, or takes more memory than 512 MiB";
            Err(NoText::Unread(text.to_owned()))
        }
        ExitCause::OutOfTime => {
            let text = format!("reading it takes more than {PDF_SECONDS_MAX} s");
            Err(NoText::TooMuch("PDF_SECONDS_MAX", text))
        }
        ExitCause::TooMuchOutput => {
            let text = format!("it has more than {PDF_TEXT_BYTES_MAX} bytes of text");
            Err(NoText::TooMuch("PDF_TEXT_BYTES_MAX", text))
        }
    }
}

/// If this process was started as a reader of PDFs, reads the PDF on standard input and returns the
/// exit code. Otherwise returns `None`.
pub(super) fn child_process(arguments: impl IntoIterator<Item = OsString>) -> Option<ExitCode> {
    if arguments.into_iter().nth(1)? != READ {
        return None;
    }
    Some(match read() {
        Ok(text) => match io::stdout().write_all(text.as_bytes()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        },
        Err(why) => {
            // If standard error can't be written, the message can go nowhere else.
            let _ = io::stderr().write_all(why.as_bytes());
            ExitCode::from(UNREAD)
        }
    })
}

/// Reads the PDF on standard input, which is in Base64, and returns its text.
fn read() -> Result<String, String> {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).map_err(|it| it.to_string())?;
    let bytes = base64(&input).ok_or_else(|| "it came in another form".to_owned())?;
    #[cfg(feature = "pdf")]
    let text = reader::text(&bytes);
    #[cfg(not(feature = "pdf"))]
    let text = Err(format!("nothing here reads its {} bytes", bytes.len()));
    text
}
