//! Hides secrets in a reply, even if a secret is spread over several pieces.

use std::collections::VecDeque;
use std::mem::{discriminant, take};

use crate::model::piece::{Call, Piece, Stop};
use crate::secret::Secrets;

/// Hides secrets in the pieces of one reply. If the end of a text may be the beginning of a secret,
/// this end is held back until the next piece.
pub(super) struct Veil {
    secrets: Secrets,
    /// The piece that is held back. Its whole text may be the beginning of a secret.
    held: Option<Piece>,
    /// How many bytes of the held text were looked through.
    looked_at: usize,
}

impl Veil {
    pub(super) fn new(secrets: Secrets) -> Veil {
        Veil { secrets, held: None, looked_at: 0 }
    }

    /// Takes the next piece, and adds to `shown` the pieces that can be shown now.
    pub(super) fn pass(&mut self, mut piece: Piece, shown: &mut VecDeque<Piece>) {
        let before = self.held.take();
        self.hide_in(&mut piece);
        let Some(text) = text(&mut piece).map(take) else {
            shown.extend(before.map(|it| self.whole(it)).into_iter().chain([piece]));
            return;
        };
        let before = before.and_then(|mut before| {
            if discriminant(&before) == discriminant(&piece) {
                *text_of(&mut before) += &text;
                return Some(before);
            }
            shown.push_back(self.whole(before));
            None
        });
        if let Some(before) = before {
            piece = before;
            if is_too_soon(text_of(&mut piece).len(), self.looked_at) {
                self.held = Some(piece);
                return;
            }
        } else {
            *text_of(&mut piece) = text;
        }
        let (clear, open) = self.secrets.hide_begun(text_of(&mut piece));
        let (clear, open) = (clear.into_owned(), open.to_owned());
        self.looked_at = open.len();
        if !open.is_empty() {
            let mut held = piece.clone();
            *text_of(&mut held) = open;
            self.held = Some(held);
        }
        if !clear.is_empty() {
            *text_of(&mut piece) = clear;
            shown.push_back(piece);
        }
    }

    /// Returns the piece that is still held back at the end of the reply.
    pub(super) fn rest(&mut self) -> Option<Piece> {
        let held = self.held.take()?;
        Some(self.whole(held))
    }

    /// A piece whose text doesn't go on. A half of a secret may stand in it.
    fn whole(&self, mut piece: Piece) -> Piece {
        let text = text_of(&mut piece);
        *text = self.secrets.hide(text).into_owned();
        piece
    }

    /// Hides secrets in the parts of a piece that come whole.
    fn hide_in(&self, piece: &mut Piece) {
        let hide = |text: &mut String| *text = self.secrets.hide(text).into_owned();
        match piece {
            Piece::Call(Call { id, name, arguments })
            | Piece::ServerCall(Call { id, name, arguments }) => {
                [id, name, arguments].into_iter().for_each(hide);
            }
            Piece::Signed(signed) => hide(&mut signed.json),
            Piece::Stop(Stop::Other(word)) => hide(word),
            _ => {}
        }
    }
}

/// Whether a held text waits for more before it is looked through again. It has grown by a quarter
/// at each look, so that all looks together cost a few looks at the whole text, however small the
/// pieces are.
fn is_too_soon(bytes: usize, looked_at: usize) -> bool {
    bytes < looked_at + looked_at / 4
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
    use crate::model::piece::Signed;
    use crate::model::wire_name::Wire;
    use crate::schema::base64_text;
    use crate::secret::Secret;

    fn shown(pieces: &[Piece]) -> Vec<Piece> {
        let mut veil = Veil::new(Secrets::new(["sk-12345", "no"].map(Secret::new)));
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
    fn what_is_held_has_a_bound_and_is_looked_through_a_few_times_in_all() {
        let key = base64_text(b"sk-12345");
        let (all, most) = (100_000, 512);
        for repeated in ["\n", "\r", "\\n", "&#10;", "&#00000", "%0", "\\\\", "&amp;#"] {
            let mut veil = Veil::new(Secrets::new([Secret::new("sk-12345")]));
            let mut shown = VecDeque::new();
            let (mut held, mut looked_through, mut count) = (0, 0, 0);
            for it in key.chars().take(1).chain(repeated.chars().cycle().take(all)) {
                let bytes = veil.held.as_mut().map_or(0, |it| text_of(it).len()) + it.len_utf8();
                let is_looked_at = veil.held.is_none() || !is_too_soon(bytes, veil.looked_at);
                looked_through += if is_looked_at { bytes } else { 0 };
                held = held.max(bytes);
                veil.pass(Piece::Text(it.to_string()), &mut shown);
                count += shown.drain(..).map(|mut it| text_of(&mut it).len()).sum::<usize>();
            }
            assert!(held <= most && count + most >= all, "{repeated}: {held} held, {count} shown");
            assert!(looked_through <= 8 * all, "{repeated}: {looked_through}");
        }
    }

    #[test]
    fn what_may_begin_a_secret_is_shown_before_a_piece_of_another_kind() {
        let pieces = [
            Piece::Text("a sk-".to_owned()),
            Piece::Reasoning("12345".to_owned()),
            Piece::Call(Call::new("c", "sk-12345", "{\"key\": \"sk-12345\"}")),
            Piece::ServerCall(Call::new("sk-12345", "sk-12345", "{\"key\": \"sk-12345\"}")),
            Piece::Signed(Signed::new(Wire::default(), 0, "{\"signature\":\"sk-12345\"}")),
            Piece::Stop(Stop::Other("sk-12345".to_owned())),
        ];
        let expected = [
            Piece::Text("a ".to_owned()),
            Piece::Text("sk-".to_owned()),
            Piece::Reasoning("12345".to_owned()),
            Piece::Call(Call::new("c", "…", "{\"key\": \"…\"}")),
            Piece::ServerCall(Call::new("…", "…", "{\"key\": \"…\"}")),
            Piece::Signed(Signed::new(Wire::default(), 0, "{\"signature\":\"…\"}")),
            Piece::Stop(Stop::Other("…".to_owned())),
        ];
        assert_eq!(shown(&pieces), expected);
    }
}
