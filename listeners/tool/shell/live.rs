//! Shows the output of a running program to followers. A line is shown when it is complete, or in
//! pieces if it is very long. Control characters are replaced, so that the output can't control a
//! terminal; a carriage return begins a new line. Only the first `SHOWN_BYTES_MAX` bytes are shown.

use std::sync::{Mutex, PoisonError};

use pumphouse::wire::core::{OutputStream, ProgramOutput};

use super::super::text::{lossy, shown};

/// The maximum number of bytes of standard output and standard error together that are shown while
/// a program runs.
const SHOWN_BYTES_MAX: usize = 256 * 1024;
/// A line of at least this many bytes is shown in pieces.
const LINE_BYTES_MAX: usize = 8 * 1024;

/// Passes a program's output on to `tell`.
pub(super) struct LiveOutput<F> {
    tell: F,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The incomplete last lines of standard output and standard error.
    out: Vec<u8>,
    err: Vec<u8>,
    shown_bytes: usize,
}

impl<F: Fn(ProgramOutput)> LiveOutput<F> {
    pub(super) fn new(tell: F) -> LiveOutput<F> {
        LiveOutput { tell, state: Mutex::default() }
    }

    /// Receives the next bytes of an output, and shows the lines that are now complete.
    pub(super) fn hear(&self, stream: OutputStream, piece: &[u8]) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.shown_bytes >= SHOWN_BYTES_MAX {
            return;
        }
        let line = state.line(stream);
        line.extend_from_slice(piece);
        let whole = match memchr::memrchr(b'\n', line) {
            Some(at) => at + 1,
            None if line.len() >= LINE_BYTES_MAX => line.len(),
            None => return,
        };
        let lines: Vec<u8> = line.drain(..whole).collect();
        self.show(&mut state, stream, &lines);
    }

    /// Shows the incomplete last lines at the program's end.
    pub(super) fn end(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        for stream in [OutputStream::Out, OutputStream::Err] {
            let rest = std::mem::take(state.line(stream));
            if !rest.is_empty() && state.shown_bytes < SHOWN_BYTES_MAX {
                self.show(&mut state, stream, &rest);
            }
        }
    }

    fn show(&self, state: &mut State, stream: OutputStream, bytes: &[u8]) {
        let room = SHOWN_BYTES_MAX - state.shown_bytes;
        let text = lossy(&bytes[..bytes.len().min(room)]);
        let text = shown(&text.replace("\r\n", "\n").replace('\r', "\n"));
        (self.tell)(ProgramOutput { stream, text });
        state.shown_bytes += bytes.len();
        if state.shown_bytes >= SHOWN_BYTES_MAX {
            let text = "[… what follows is in its result …]\n".to_owned();
            (self.tell)(ProgramOutput { stream, text });
        }
    }
}

impl State {
    fn line(&mut self, stream: OutputStream) -> &mut Vec<u8> {
        match stream {
            OutputStream::Out => &mut self.out,
            OutputStream::Err => &mut self.err,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the texts that followers see if a program writes these pieces to standard output.
    fn told(pieces: &[&[u8]]) -> Vec<String> {
        let all = Mutex::new(Vec::new());
        let live = LiveOutput::new(|it: ProgramOutput| all.lock().unwrap().push(it.text));
        pieces.iter().for_each(|it| live.hear(OutputStream::Out, it));
        live.end();
        drop(live);
        all.into_inner().unwrap()
    }

    #[test]
    fn lines_are_shown_when_they_are_whole() {
        assert_eq!(told(&[b"on", b"e\ntwo\nth", b"ree"]), ["one\ntwo\n", "three"]);
        assert_eq!(told(&["\u{e9}".as_bytes()[..1].as_ref(), b"\xa9\n"]), ["\u{e9}\n"]);
        assert_eq!(told(&[b"", b""]), [""; 0]);
    }

    #[test]
    fn the_outputs_have_lines_of_their_own() {
        let all = Mutex::new(Vec::new());
        let live = LiveOutput::new(|it: ProgramOutput| all.lock().unwrap().push(it));
        live.hear(OutputStream::Out, b"compi");
        live.hear(OutputStream::Err, b"error\n");
        live.hear(OutputStream::Out, b"ling\n");
        let all: Vec<_> = all.lock().unwrap().drain(..).map(|it| (it.stream, it.text)).collect();
        let (out, err) = (OutputStream::Out, OutputStream::Err);
        assert_eq!(all, [(err, "error\n".to_owned()), (out, "compiling\n".to_owned())]);
    }

    #[test]
    fn no_terminal_obeys_what_is_told() {
        assert_eq!(told(&[b"\x1b[2Jgone\n"]), ["\u{fffd}[2Jgone\n"]);
        assert_eq!(told(&[b"\xc2\x9b2J\x7f\n"]), ["\u{fffd}2J\u{fffd}\n"]);
        assert_eq!(told(&[b"10 %\r20 %\r\n\tdone\n"]), ["10 %\n20 %\n\tdone\n"]);
    }

    #[test]
    fn a_line_without_an_end_and_an_output_without_one_are_shown_in_bounds() {
        let long = vec![b'a'; LINE_BYTES_MAX];
        assert_eq!(told(&[&long, b"b\n"]).len(), 2);
        let all = told(&vec![&long[..]; 100]);
        let bytes: usize = all.iter().map(String::len).sum();
        assert!(bytes <= SHOWN_BYTES_MAX + 100, "{bytes}");
        assert_eq!(all.last().unwrap(), "[… what follows is in its result …]\n");
    }
}
