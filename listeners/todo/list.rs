//! The fold of a thread's checklists.

use std::collections::BTreeMap;

use pumphouse::prelude::*;

use super::super::schedule::CurrentThread;
use super::words::{
    OpenTodo, Step, StepsOpen, TodoClosed, TodoNudge, TodoOpen, TodoRegistered, TodoUntil,
};

/// The open checklists of a thread, and the unanswered requests for checklists. A fold.
#[derive(Clone, Debug, Default)]
pub struct Todos {
    open: BTreeMap<u64, Todo>,
    /// The requests without an answer, by their entry numbers.
    asked: BTreeMap<u64, TodoUntil>,
    thread: CurrentThread,
}

/// A checklist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Todo {
    asked: u64,
    condition: String,
    steps: Vec<Step>,
    wait_for: Option<String>,
    from: Option<String>,
    was_raised: bool,
}

impl Apply for Todos {
    fn apply(&mut self, entry: &Entry) {
        if self.thread.enter(entry) {
            // A request that had no answer yet is answered in the original thread alone.
            self.asked.clear();
        }
        if entry.is_refused() {
            return;
        }
        if entry.is::<TodoUntil>() {
            self.asked.extend(entry.decode().map(|it| (entry.seq(), it)));
        } else if let Some(closed) = entry.decode_if::<TodoClosed>() {
            self.open.remove(&closed.id);
        } else if let Some(nudge) = entry.decode_if::<TodoNudge>()
            && let Some(todo) = self.open.get_mut(&nudge.id)
        {
            todo.was_raised = true;
        } else if !self.asked.is_empty()
            && let Some(asked) = entry.reply_to().filter(|it| it.thread == *entry.thread())
            && let Some(item) = self.asked.remove(&asked.seq)
            && let Ok(TodoRegistered { id, .. }) = entry.decode()
        {
            let todo = self.written(id, asked.seq, item);
            self.open.insert(id, todo);
        }
    }
}

impl Todos {
    /// The open checklists with their ids, the oldest first.
    pub fn all(&self) -> impl Iterator<Item = (u64, &Todo)> {
        self.open.iter().map(|(id, it)| (*id, it))
    }

    /// The open checklist with this id.
    #[must_use]
    pub fn get(&self, id: u64) -> Option<&Todo> {
        self.open.get(&id)
    }

    /// The steps that are left to do. None if no step is left.
    #[must_use]
    pub fn left(&self) -> Option<StepsOpen> {
        self.left_after(&[], &[])
    }

    /// The steps that would be left to do after some changes. Each request of `written` replaces
    /// the open list with the same condition, and the lists with the ids `closed` are closed. A
    /// request for a new list adds no steps. None if no step would be left. An agent sends these
    /// steps with its final response.
    #[must_use]
    pub fn left_after(&self, written: &[TodoUntil], closed: &[u64]) -> Option<StepsOpen> {
        let open = self.all().filter(|(id, _)| !closed.contains(id));
        let left = |(id, item): (u64, &Todo)| {
            let anew = written.iter().rev().find(|anew| anew.condition == item.condition);
            let anew = anew.map(|anew| self.written(id, item.asked, anew.clone()));
            let step = anew.as_ref().unwrap_or(item).left().map(str::to_owned).collect();
            OpenTodo { id, condition: item.condition.clone(), step }
        };
        let todo: Vec<OpenTodo> = open.map(left).filter(|it| !it.step.is_empty()).collect();
        (!todo.is_empty()).then_some(StepsOpen { todo })
    }

    /// The id of the checklist with this condition, which may be open or requested.
    pub(super) fn id(&self, condition: &str) -> Option<u64> {
        let open = self.open.iter().map(|(id, it)| (id, &it.condition));
        let asked = self.asked.iter().map(|(id, it)| (id, &it.condition));
        open.chain(asked).find(|(_, it)| *it == condition).map(|(id, _)| *id)
    }

    /// The number of open checklists plus the number of unanswered requests before the entry `seq`.
    pub(super) fn count_before(&self, seq: u64) -> usize {
        self.open.len() + self.asked.range(..seq).count()
    }

    /// Whether the message that a checklist waits for has come. None if `id` belongs to neither an
    /// open checklist nor an unanswered request.
    pub(super) fn was_raised(&self, id: u64) -> Option<bool> {
        let asked = self.asked.contains_key(&id).then_some(false);
        self.open.get(&id).map(|it| it.was_raised).or(asked)
    }

    /// The checklist that the request `until` leads to. A request without `wait_for` keeps the
    /// payload that the open list with this id waits for.
    pub(super) fn written(&self, id: u64, asked: u64, until: TodoUntil) -> Todo {
        let TodoUntil { condition, wait_for, from, step: steps } = until;
        let todo = Todo { asked, condition, steps, wait_for, from, was_raised: false };
        match self.open.get(&id).filter(|_| todo.wait_for.is_none()) {
            Some(Todo { wait_for, from, was_raised, .. }) => Todo {
                wait_for: wait_for.clone(),
                from: from.clone(),
                was_raised: *was_raised,
                ..todo
            },
            None => todo,
        }
    }
}

impl Todo {
    /// The condition that the steps lead to.
    #[must_use]
    pub fn condition(&self) -> &str {
        &self.condition
    }

    /// The steps, in their order.
    #[must_use]
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// The entry number of the request that last wrote the list.
    #[must_use]
    pub fn asked(&self) -> u64 {
        self.asked
    }

    /// Whether the message that the list waits for has come.
    #[must_use]
    pub fn was_raised(&self) -> bool {
        self.was_raised
    }

    /// The texts of the steps that are not done. A list without steps has its condition as the only
    /// step.
    pub fn left(&self) -> impl Iterator<Item = &str> {
        let alone = self.steps.is_empty().then_some(self.condition.as_str());
        let steps = self.steps.iter().filter(|it| !it.is_done()).map(|it| it.text.as_str());
        steps.chain(alone)
    }

    /// The number of steps that are not done. For a list without steps it is 1.
    #[must_use]
    pub fn open(&self) -> u64 {
        self.left().count() as u64
    }

    /// The number of steps. For a list without steps it is 1, since the condition counts as a step.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.steps.len().max(1) as u64
    }

    /// The `todo-open` message that waits in the log while the list is open.
    pub(super) fn waiting(self, id: u64) -> TodoOpen {
        let (open, total) = (self.open(), self.total());
        let awaits = !self.was_raised;
        TodoOpen {
            id,
            asked: self.asked,
            open,
            total,
            condition: self.condition,
            wait_for: self.wait_for.filter(|_| awaits),
            from: self.from.filter(|_| awaits),
        }
    }
}
