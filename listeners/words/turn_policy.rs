//! Reads from a `cognition_in` how the actions of its turn are handled, without decoding the other
//! fields if possible.

use std::borrow::Cow;

use pumphouse::prelude::*;
use pumphouse::wire::value::Text as _;

use super::agent::{CognitionIn, Dispatch, Limited};

/// How the actions of a turn are handled.
#[derive(Clone, Debug, PartialEq)]
pub(in super::super) struct TurnPolicy {
    pub(in super::super) turn: u64,
    pub(in super::super) dispatch: Dispatch,
    pub(in super::super) action_limits: Option<Limited>,
}

impl TurnPolicy {
    /// Reads the policy from a `cognition_in`. None if the `cognition_in` can't be decoded.
    pub(in super::super) fn of(begun: &Element) -> Option<TurnPolicy> {
        if begun.elements().next().is_some() {
            let CognitionIn { turn, dispatch, action_limits, .. } =
                CognitionIn::decode(begun).ok()?;
            return Some(TurnPolicy { turn, dispatch, action_limits });
        }
        // Most `cognition_in`s have only attributes. Reading two of these is cheaper than
        // decoding all.
        Some(TurnPolicy {
            turn: begun.attribute("turn")?.parse().ok()?,
            dispatch: Dispatch::parse(Cow::Borrowed(begun.attribute("dispatch")?))?,
            action_limits: None,
        })
    }
}

/// Reads the number in an attribute of an entry's payload. None if there is no such attribute, or
/// if it isn't a number.
pub(in super::super) fn number(entry: &Entry, attribute: &str) -> Option<u64> {
    entry.attribute(attribute)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begun() -> CognitionIn {
        CognitionIn {
            turn: 3,
            model: "local".to_owned(),
            until: 7,
            rendering: 1,
            mark: "#7f3a9c".to_owned(),
            rules: 1,
            asker: Some("console".to_owned()),
            is_last: None,
            waiting: None,
            digest: "ab".to_owned(),
            tokens_estimated: None,
            bytes: 9,
            dispatch: Dispatch::AfterResponse,
            action_limits: None,
            max_tokens: Some(8),
            temperature: None,
            result_bytes_max: None,
            attachments: Vec::new(),
            skipped: Vec::new(),
        }
    }

    #[track_caller]
    fn check(begun: &CognitionIn) {
        let CognitionIn { turn, dispatch, action_limits, .. } = begun.clone();
        let expected = TurnPolicy { turn, dispatch, action_limits };
        assert_eq!(TurnPolicy::of(&begun.encode().unwrap()), Some(expected));
    }

    #[test]
    fn a_turn_goes_as_its_beginning_says() {
        check(&begun());
        check(&CognitionIn { dispatch: Dispatch::Immediate, ..begun() });
        let limits = Limited { at_once: Some(2), ..Limited::default() };
        check(&CognitionIn { action_limits: Some(limits), ..begun() });
        check(&CognitionIn { attachments: vec!["image/*".to_owned()], ..begun() });
    }
}
