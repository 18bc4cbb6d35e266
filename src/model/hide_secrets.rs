//! Hides secrets in a reply, even if a secret is spread over several pieces.

use std::collections::VecDeque;
use std::mem::{discriminant, take};

use super::secret::Secret;
use super::{Call, Piece};

/// Hides secrets in the pieces of one reply. If the end of a text may be the beginning of a secret,
/// this end is held back until the next piece.
pub(super) struct Veil {
    secrets: Vec<Secret>,
    /// The piece that is held back. Its whole text may be the beginning of a secret.
    held: Option<Piece>,
}

impl Veil {
    pub(super) fn new(secrets: impl Iterator<Item = Secret>) -> Veil {
        Veil { secrets: secrets.collect(), held: None }
    }

    /// Takes the next piece, and adds to `shown` the pieces that can be shown now.
    pub(super) fn pass(&mut self, mut piece: Piece, shown: &mut VecDeque<Piece>) {
        let before = self.held.take();
        if let Piece::Call(call) | Piece::ServerCall(call) = &mut piece {
            let Call { name, arguments, .. } = call;
            (*name, *arguments) = (self.hide(name), self.hide(arguments));
        }
        let Some(text) = text(&mut piece) else {
            shown.extend(before.into_iter().chain([piece]));
            return;
        };
        let mut whole = take(text);
        if let Some(mut before) = before {
            if discriminant(&before) == discriminant(&piece) {
                whole.insert_str(0, text_of(&mut before));
            } else {
                shown.push_back(before);
            }
        }
        let mut whole = self.hide(&whole);
        let rest = whole.split_off(whole.len() - self.open(&whole));
        let mut held = piece.clone();
        if !rest.is_empty() {
            *text_of(&mut held) = rest;
            self.held = Some(held);
        }
        if !whole.is_empty() {
            *text_of(&mut piece) = whole;
            shown.push_back(piece);
        }
    }

    /// Returns the piece that is still held back at the end of the reply.
    pub(super) fn rest(&mut self) -> Option<Piece> {
        self.held.take()
    }

    fn hide(&self, text: &str) -> String {
        self.secrets.iter().fold(text.to_owned(), |text, it| it.hidden_in(&text))
    }

    /// How many bytes at the end of a text may be the beginning of a secret.
    fn open(&self, text: &str) -> usize {
        self.secrets.iter().map(|it| it.begun_in(text)).max().unwrap_or(0)
    }
}

/// The text of a piece of text, reasoning or a refusal. None for other pieces.
fn text(piece: &mut Piece) -> Option<&mut String> {
    match piece {
        Piece::Text(it) | Piece::Reasoning(it) | Piece::Refusal(it) => Some(it),
        _ => None,
    }
}

fn text_of(piece: &mut Piece) -> &mut String {
    #[expect(clippy::expect_used, reason = "only pieces with a text are held and cut")]
    text(piece).expect("a piece with a text")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(pieces: &[Piece]) -> Vec<Piece> {
        let mut veil = Veil::new([Secret::new("sk-12345"), Secret::new("no")].into_iter());
        let mut shown = VecDeque::new();
        pieces.iter().for_each(|it| veil.pass(it.clone(), &mut shown));
        shown.extend(veil.rest());
        shown.into()
    }

    fn said(pieces: &[&str]) -> String {
        let pieces: Vec<Piece> = pieces.iter().map(|it| Piece::Text((*it).to_owned())).collect();
        let texts = shown(&pieces).into_iter().map(|mut it| take(text_of(&mut it)));
        texts.collect()
    }

    #[test]
    fn a_secret_is_hidden_wherever_a_reply_is_cut_into_pieces() {
        let whole = "the key is sk-12345, sk-123 isn't, sk-sk-12345 s";
        for cut in 1..whole.len() {
            for second in cut..whole.len() {
                let pieces = [&whole[..cut], &whole[cut..second], &whole[second..]];
                assert_eq!(said(&pieces), "the key is …, sk-123 isn't, sk-… s", "{pieces:?}");
            }
        }
        assert_eq!(said(&["no no"]), "no no", "a word of two letters is everybody's");
    }

    #[test]
    fn what_may_begin_a_secret_is_shown_before_a_piece_of_another_kind() {
        let pieces = [
            Piece::Text("a sk-".to_owned()),
            Piece::Reasoning("12345".to_owned()),
            Piece::Call(Call::new("c", "sk-12345", "{\"key\": \"sk-12345\"}")),
            Piece::ServerCall(Call::new("s", "sk-12345", "{\"key\": \"sk-12345\"}")),
        ];
        let expected = [
            Piece::Text("a ".to_owned()),
            Piece::Text("sk-".to_owned()),
            Piece::Reasoning("12345".to_owned()),
            Piece::Call(Call::new("c", "…", "{\"key\": \"…\"}")),
            Piece::ServerCall(Call::new("s", "…", "{\"key\": \"…\"}")),
        ];
        assert_eq!(shown(&pieces), expected);
    }
}
