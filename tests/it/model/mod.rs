//! Models, tested from outside the crate.

mod bad;
mod clients;
mod conformance;
mod early;
mod cuts;
pub(crate) mod fake;
mod hostile;
mod openai;
mod prefixes;
mod providers;
mod real;
mod recordings;
mod router;
mod secrets;
mod signed;
pub(crate) mod speaking;
mod sse;
mod structured;
mod too_long;
mod wires;

use pumphouse::model::{Error, Model, Piece, Prompt};

/// All pieces of a turn, and the error that it ends in, if it does.
async fn heard(model: &dyn Model) -> (Vec<Piece>, Option<Error>) {
    let mut pieces = Vec::new();
    let mut reply = match model.turn(Prompt::new("").user("Hi")).await {
        Ok(reply) => reply,
        Err(error) => return (pieces, Some(error)),
    };
    loop {
        match reply.next().await {
            Ok(Some(piece)) => pieces.push(piece),
            Ok(None) => return (pieces, None),
            Err(error) => {
                assert_eq!(reply.next().await, Ok(None), "an error is the last");
                return (pieces, Some(error));
            }
        }
    }
}

/// The text of a reply.
fn text_of(pieces: &[Piece]) -> String {
    let texts = pieces.iter().filter_map(|it| match it {
        Piece::Text(text) => Some(text.as_str()),
        _ => None,
    });
    texts.collect()
}
