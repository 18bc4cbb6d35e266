//! Whose turn it is: trees that have something to do, in two lines. Pure.
//!
//! Whoever just came stands in a line of its own and goes first, so that one with a message now and
//! then doesn't wait behind all who always have some. Who has more to do after a turn goes to the
//! end of the other line, and every second turn is that line's, so that neither keeps the other
//! waiting.

use std::collections::VecDeque;

use crate::id::ThreadId;

/// Trees that have something to do.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    came: VecDeque<ThreadId>,
    stayed: VecDeque<ThreadId>,
    /// Whether the next turn is for who stayed.
    is_theirs: bool,
}

impl Turns {
    /// A tree has something to do and had nothing before.
    pub(crate) fn came(&mut self, tree: ThreadId) {
        self.came.push_back(tree);
    }

    /// A tree has more to do after its turn.
    pub(crate) fn stayed(&mut self, tree: ThreadId) {
        self.stayed.push_back(tree);
    }

    /// Whose turn it is.
    pub(crate) fn next(&mut self) -> Option<ThreadId> {
        let (first, second) = match self.is_theirs {
            true => (&mut self.stayed, &mut self.came),
            false => (&mut self.came, &mut self.stayed),
        };
        self.is_theirs = !self.is_theirs;
        first.pop_front().or_else(|| second.pop_front())
    }

    /// How many wait for their turn.
    pub(crate) fn len(&self) -> usize {
        self.came.len() + self.stayed.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Who has a turn, of some that came and some that stayed.
    fn played(came: &[&str], stayed: &[&str]) -> String {
        let mut turns = Turns::default();
        came.iter().for_each(|it| turns.came(ThreadId::new(it)));
        stayed.iter().for_each(|it| turns.stayed(ThreadId::new(it)));
        assert_eq!(turns.len(), came.len() + stayed.len());
        let all: Vec<ThreadId> = std::iter::from_fn(|| turns.next()).collect();
        assert!(turns.is_empty());
        all.iter().map(ThreadId::as_str).collect()
    }

    #[test]
    fn whoever_came_has_the_next_turn_and_every_second_one() {
        assert_eq!(played(&["a"], &["1", "2", "3"]), "a123");
        assert_eq!(played(&["a", "b", "c"], &["1", "2", "3"]), "a1b2c3");
        assert_eq!(played(&["a", "b"], &[]), "ab");
        assert_eq!(played(&[], &["1", "2"]), "12");
    }
}
