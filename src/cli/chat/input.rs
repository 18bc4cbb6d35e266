//! Reads the user's lines: from a terminal, where the arrow keys recall earlier lines, or from a
//! pipe.

use std::io::{self, BufRead as _};
use std::thread;

use rustyline::DefaultEditor;
use rustyline::error::ReadlineError;

use crate::cli::base::screen::Failure;

/// An input of the user, or the failure to read one.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Input {
    Line(String),
    /// Ctrl-C.
    Interrupt,
    /// Ctrl-D, or the end of a pipe.
    End,
    /// Reading failed, for this reason.
    Broken(String),
}

/// Reads lines on an OS thread of its own. The thread reads a line only when the next input is
/// requested.
pub(super) struct Lines {
    asks: flume::Sender<()>,
    said: flume::Receiver<Input>,
    is_asked: bool,
    /// The settings of the terminal before any line was read. They are restored in the end, since a
    /// read that never ends would leave the terminal in raw mode.
    #[cfg(unix)]
    settings: Option<rustix::termios::Termios>,
}

#[cfg(unix)]
impl Drop for Lines {
    fn drop(&mut self) {
        if let Some(settings) = &self.settings {
            let now = rustix::termios::OptionalActions::Now;
            // The program ends anyway, so there is nobody to tell about an error.
            let _ = rustix::termios::tcsetattr(io::stdin(), now, settings);
        }
    }
}

impl Lines {
    /// Starts the reading thread. With a prompt, the thread reads from the terminal, otherwise from
    /// the standard input.
    pub(super) fn open(prompt: Option<String>) -> Result<Lines, Failure> {
        #[cfg(unix)]
        let settings = prompt.as_ref().and_then(|_| rustix::termios::tcgetattr(io::stdin()).ok());
        let editor = match prompt {
            Some(prompt) => {
                let editor = DefaultEditor::new();
                let editor = editor
                    .map_err(|it| Failure::Untried(format!("the terminal can't be read: {it}")))?;
                Some((editor, prompt))
            }
            None => None,
        };
        let ((asks, asked), (says, said)) = (flume::bounded(1), flume::bounded(1));
        let reading = move || read(editor, &asked, &says);
        let spawned = thread::Builder::new().name("chat".to_owned()).spawn(reading);
        spawned.map_err(|it| Failure::Untried(format!("no thread to read by: {it}")))?;
        Ok(Lines {
            asks,
            said,
            is_asked: false,
            #[cfg(unix)]
            settings,
        })
    }

    /// Returns the next input. If this future is dropped before it is ready, the next call returns
    /// the input that this call waited for.
    pub(super) async fn next(&mut self) -> Input {
        if !self.is_asked {
            // An error means that the reading thread has ended. Then `recv_async` fails as well.
            let _ = self.asks.try_send(());
            self.is_asked = true;
        }
        let said = self.said.recv_async().await.unwrap_or(Input::End);
        self.is_asked = false;
        said
    }
}

fn read(
    mut editor: Option<(DefaultEditor, String)>,
    asked: &flume::Receiver<()>,
    says: &flume::Sender<Input>,
) {
    while asked.recv().is_ok() {
        let input = match &mut editor {
            Some((editor, prompt)) => edited(editor, prompt),
            None => piped(),
        };
        if says.send(input).is_err() {
            return;
        }
    }
}

fn edited(editor: &mut DefaultEditor, prompt: &str) -> Input {
    match editor.readline(prompt) {
        Ok(line) => {
            // If the history doesn't take the line, the line still counts.
            let _ = editor.add_history_entry(&line);
            Input::Line(line)
        }
        Err(ReadlineError::Interrupted) => Input::Interrupt,
        Err(ReadlineError::Eof) => Input::End,
        Err(error) => Input::Broken(error.to_string()),
    }
}

fn piped() -> Input {
    let mut line = String::new();
    match io::stdin().lock().read_line(&mut line) {
        Ok(0) => Input::End,
        Ok(_) => Input::Line(line.trim_end_matches(['\r', '\n']).to_owned()),
        Err(error) => Input::Broken(error.to_string()),
    }
}
