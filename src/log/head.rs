//! The head of a log: its last commit.

use std::fmt;
use std::str::FromStr;

/// A commit's number and the hash of the chain up to this commit. As text: `1234:hex…`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Head {
    /// The commit's number. Commit 0 is written when the log is made.
    pub number: u64,
    /// A BLAKE3 hash that covers this commit and all commits before it.
    pub chain: [u8; 32],
}

impl fmt::Display for Head {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.number, blake3::Hash::from_bytes(self.chain).to_hex())
    }
}

impl fmt::Debug for Head {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The error of a text that isn't a head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoHead;

impl fmt::Display for NoHead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a head is a commit's number, a colon and 64 hexadecimal digits")
    }
}

impl std::error::Error for NoHead {}

impl FromStr for Head {
    type Err = NoHead;

    fn from_str(text: &str) -> Result<Head, NoHead> {
        let (number, chain) = text.split_once(':').ok_or(NoHead)?;
        if !number.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(NoHead);
        }
        let number = number.parse().map_err(|_| NoHead)?;
        let chain = blake3::Hash::from_hex(chain).map_err(|_| NoHead)?;
        Ok(Head { number, chain: chain.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_read_exactly() {
        let good = format!("7:{}", "ab".repeat(32));
        assert_eq!(good.parse::<Head>().unwrap().to_string(), good);
        for bad in ["", "7", ":", "7:", "7:ab", "+7:", "-1:"] {
            let long = format!("{bad}{}", "ab".repeat(32));
            assert_eq!(bad.parse::<Head>(), Err(NoHead), "{bad}");
            assert!(long.parse::<Head>().is_err() || bad == "7:", "{long}");
        }
    }
}
