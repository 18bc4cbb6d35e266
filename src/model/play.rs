//! Plays a scripted reply as if a model were writing it now.

use std::collections::VecDeque;
use std::fmt;
use std::future::pending;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use crate::model::error::Error;
use crate::model::interface::{Boxed, Reply};
use crate::model::piece::Piece;
use crate::model::script::{End, Script};

/// A future that is done after a pause.
pub(super) type Pause = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Makes pauses, by tokio's clock or a simulator's.
#[derive(Clone)]
pub(super) struct Sleeper(Arc<dyn Fn(Duration) -> Pause + Send + Sync>);

impl Sleeper {
    pub(super) fn new(sleep: impl Fn(Duration) -> Pause + Send + Sync + 'static) -> Sleeper {
        Sleeper(Arc::new(sleep))
    }

    pub(super) fn pause(&self, time: Duration) -> Pause {
        (self.0)(time)
    }
}

impl Default for Sleeper {
    #[expect(clippy::disallowed_methods, reason = "it stands for a model, which takes its time")]
    fn default() -> Sleeper {
        Sleeper::new(|time| Box::pin(tokio::time::sleep(time)))
    }
}

impl fmt::Debug for Sleeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sleeper")
    }
}

/// Starts to play a reply. The future completes when the first piece has come.
pub(super) async fn play(script: Script, sleeper: Sleeper) -> Result<Box<dyn Reply>, Error> {
    let mut play = Play::new(script, sleeper);
    if let Some(first) = play.step().await? {
        play.steps.push_front(Step::Piece(first));
    }
    Ok(Box::new(play))
}

/// A reply that is being played.
struct Play {
    /// The steps that are left.
    steps: VecDeque<Step>,
    sleeper: Sleeper,
    /// The current pause. It is kept here because the future of `step` may be dropped meanwhile.
    pause: Option<Pause>,
}

/// A step of a reply.
enum Step {
    Pause(Duration),
    Piece(Piece),
    Error(Error),
    Never,
}

impl Play {
    fn new(script: Script, sleeper: Sleeper) -> Play {
        let Script { pieces, chunk, after, every, usage, end } = script;
        let mut left = match end {
            End::Stop(_) => usize::MAX,
            End::Error(at, _) | End::Never(at) => at,
        };
        let mut steps = VecDeque::from([Step::Pause(after)]);
        'all: for piece in pieces {
            for piece in cut(piece, chunk) {
                if left == 0 {
                    break 'all;
                }
                if steps.len() > 1 {
                    steps.push_back(Step::Pause(every));
                }
                steps.push_back(Step::Piece(shortened(piece, &mut left)));
            }
        }
        match end {
            End::Error(_, error) => steps.push_back(Step::Error(error)),
            End::Never(_) => steps.push_back(Step::Never),
            End::Stop(stop) => {
                steps.extend(usage.map(|it| Step::Piece(Piece::Usage(it))));
                steps.push_back(Step::Piece(Piece::Stop(stop)));
            }
        }
        Play { steps, sleeper, pause: None }
    }

    async fn step(&mut self) -> Result<Option<Piece>, Error> {
        loop {
            if let Some(pause) = &mut self.pause {
                pause.await;
                self.pause = None;
            }
            match self.steps.pop_front() {
                Some(Step::Pause(Duration::ZERO)) => {}
                Some(Step::Pause(time)) => self.pause = Some(self.sleeper.pause(time)),
                Some(Step::Piece(piece)) => return Ok(Some(piece)),
                Some(Step::Error(error)) => return Err(error),
                Some(Step::Never) => {
                    self.steps.push_front(Step::Never);
                    return pending().await;
                }
                None => return Ok(None),
            }
        }
    }
}

impl Reply for Play {
    fn next(&mut self) -> Boxed<'_, Option<Piece>> {
        Box::pin(self.step())
    }
}

impl fmt::Debug for Play {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Play").field("steps", &self.steps.len()).finish()
    }
}

/// Cuts a piece's text into pieces of at most `characters` characters. Pieces without a text stay
/// whole. If `characters` is 0, all pieces stay whole.
fn cut(piece: Piece, characters: usize) -> Vec<Piece> {
    let cut = |text: String, make: fn(String) -> Piece| {
        let all: Vec<char> = text.chars().collect();
        all.chunks(characters).map(|it| make(it.iter().collect())).collect()
    };
    match piece {
        Piece::Text(text) if characters > 0 => cut(text, Piece::Text),
        Piece::Reasoning(text) if characters > 0 => cut(text, Piece::Reasoning),
        Piece::Refusal(text) if characters > 0 => cut(text, Piece::Refusal),
        piece => vec![piece],
    }
}

/// Cuts a text to at most `left` characters, and subtracts the number of kept characters from
/// `left`.
fn shortened(mut piece: Piece, left: &mut usize) -> Piece {
    if let Piece::Text(it) | Piece::Reasoning(it) | Piece::Refusal(it) = &mut piece {
        if let Some((end, _)) = it.char_indices().nth(*left) {
            it.truncate(end);
        }
        *left -= it.chars().count();
    }
    piece
}
