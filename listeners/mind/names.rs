//! Finds the action that a name in an agent's references means.

use super::super::words::action::Action;
use super::Names;

impl Names {
    /// Registers the names of an action.
    pub(super) fn add(&mut self, seq: u64, action: &Action) {
        self.ids.insert(action.id.clone(), seq);
        if let Some(key) = &action.output_key {
            self.keys.insert(key.clone(), seq);
        }
        let target = action.name.split_once('.').map_or(&*action.name, |(listener, _)| listener);
        match self.targets.get_mut(target) {
            Some(one) => *one = None,
            None => drop(self.targets.insert(target.to_owned(), Some(seq))),
        }
    }

    /// Returns the action that a name currently refers to. None if it refers to no action.
    pub(super) fn meant(&self, name: &str) -> Option<u64> {
        let by_name = self.keys.get(name).or_else(|| self.ids.get(name)).copied();
        let by_target = || self.targets.get(name).copied().flatten();
        by_name.or_else(|| if self.feeds.contains(name) { None } else { by_target() })
    }
}
