//! How inspected text or bytes are fed to a parser: whole or in chunks.

use std::str::FromStr;

/// The sizes of chunks, in characters or bytes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Chunks {
    Whole,
    Of(usize),
    Random(u64),
}

impl FromStr for Chunks {
    type Err = String;

    fn from_str(text: &str) -> Result<Chunks, String> {
        let chunks = match text.split_once(':') {
            None if text == "whole" => Some(Chunks::Whole),
            None => text.parse().ok().filter(|it| *it > 0).map(Chunks::Of),
            Some(("random", seed)) => seed.parse().ok().map(Chunks::Random),
            Some(_) => None,
        };
        chunks.ok_or_else(|| "say whole, a number, or random:SEED".to_owned())
    }
}

impl Chunks {
    /// Returns the size of the next chunk.
    pub(super) fn next(&mut self) -> usize {
        match self {
            Chunks::Whole => usize::MAX,
            Chunks::Of(count) => *count,
            Chunks::Random(state) => {
                // SplitMix64 is small, and gives the same numbers on every machine.
                *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
                let it = (*state ^ (*state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
                let it = (it ^ (it >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
                let it = it ^ (it >> 31);
                // On average, one chunk in eight has up to 1,024 characters or bytes. All others
                // have up to 16.
                usize::try_from(if it & 7 == 0 { it >> 8 & 0x3FF } else { it >> 8 & 0xF })
                    .map_or(1, |it| it + 1)
            }
        }
    }
}
