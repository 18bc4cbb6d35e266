//! What the user says: lines, from a terminal with a history by the arrow keys, or from a pipe.

use std::io::{self, BufRead as _};
use std::thread;

use rustyline::DefaultEditor;
use rustyline::error::ReadlineError;

use crate::cli::screen::Failure;

/// What the user did.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Input {
    Line(String),
    /// Ctrl-C.
    Interrupt,
    /// Ctrl-D, or the end of a pipe.
    End,
    /// Nothing can be read.
    Broken(String),
}

/// Lines, read one at a time on a thread of its own.
pub(super) struct Lines {
    asks: flume::Sender<()>,
    said: flume::Receiver<Input>,
    is_asked: bool,
}

impl Lines {
    /// From a terminal, behind a prompt, or as they come.
    pub(super) fn open(prompt: Option<String>) -> Result<Lines, Failure> {
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
        Ok(Lines { asks, said, is_asked: false })
    }

    /// The next one. It may be asked for again before it came.
    pub(super) async fn next(&mut self) -> Input {
        if !self.is_asked {
            // An error says that nobody reads any more, and so does what follows.
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
            // A line that isn't remembered is still said.
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
