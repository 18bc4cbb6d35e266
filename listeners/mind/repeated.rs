//! Calls that fail again and again in the same way. An agent that makes no progress is stopped.

use super::super::words::agent::Notice;

/// A call that did not run, in this many turns in a row.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RepeatedFault {
    /// The newest notice about the call.
    pub text: String,
    /// The number of turns in a row.
    pub turns: u32,
    /// The notice without the call's id and without numbers. Faults with the same way are the same.
    way: String,
}

impl RepeatedFault {
    /// The fault that a notice reports. None if the notice isn't about a call.
    pub(super) fn of(notice: &Notice) -> Option<RepeatedFault> {
        let call = notice.call.as_deref()?;
        let mut way = notice.text.replace(call, "");
        way.retain(|it| !it.is_ascii_digit());
        Some(RepeatedFault { text: notice.text.clone(), turns: 1, way })
    }

    /// The fault that is repeated after a turn. `before` is the one before the turn, and `faults`
    /// are those of the turn. None if the turn had none.
    pub(super) fn after(
        before: Option<RepeatedFault>,
        faults: Vec<RepeatedFault>,
    ) -> Option<RepeatedFault> {
        let (turns, way) = before.map_or_else(Default::default, |it| (it.turns, it.way));
        let again = |it: &&RepeatedFault| turns > 0 && it.way == way;
        match faults.iter().find(again) {
            Some(it) => Some(RepeatedFault { turns: turns + 1, ..it.clone() }),
            None => faults.into_iter().next(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(call: &str, text: &str) -> Vec<RepeatedFault> {
        let notice = Notice {
            turn: 1,
            line: None,
            column: None,
            call: Some(call.to_owned()),
            response: None,
            held_back: None,
            text: text.to_owned(),
        };
        RepeatedFault::of(&notice).into_iter().collect()
    }

    #[test]
    fn a_fault_is_the_same_under_another_id_and_with_other_numbers() {
        let first = RepeatedFault::after(None, fault("call_1_1", "call_1_1 was cut at 100 tokens"));
        let again = fault("call_2_1", "call_2_1 was cut at 99 tokens");
        let second = RepeatedFault::after(first, again).unwrap();
        assert_eq!((second.turns, &*second.text), (2, "call_2_1 was cut at 99 tokens"));
        let other = RepeatedFault::after(Some(second.clone()), fault("a", "a has no name"));
        assert_eq!(other.unwrap().turns, 1);
        assert_eq!(RepeatedFault::after(Some(second), Vec::new()), None);
    }
}
