//! The fold of a thread's checklists.

use std::collections::BTreeMap;

use pumphouse::prelude::*;

use super::words::{
    OpenTodo, Step, StepsOpen, TodoClosed, TodoNudge, TodoOpen, TodoRegistered, TodoUntil,
};

/// The checklists of a thread that are open.
#[derive(Clone, Debug, Default)]
pub struct Todos {
    open: BTreeMap<u64, Todo>,
    /// Those that were asked for and have no answer yet, by their place.
    asked: BTreeMap<u64, TodoUntil>,
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
    /// Each of them, by its id, the oldest first.
    pub fn all(&self) -> impl Iterator<Item = (u64, &Todo)> {
        self.open.iter().map(|(id, it)| (*id, it))
    }

    /// One of them.
    #[must_use]
    pub fn get(&self, id: u64) -> Option<&Todo> {
        self.open.get(&id)
    }

    /// What is left to do, if anything is: whoever gives a final response says it as well.
    #[must_use]
    pub fn left(&self) -> Option<StepsOpen> {
        self.left_after(&[], &[])
    }

    /// What is left to do once these lists were written anew and those were closed.
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

    /// The list that is to come to this.
    pub(super) fn id(&self, condition: &str) -> Option<u64> {
        let open = self.open.iter().map(|(id, it)| (id, &it.condition));
        let asked = self.asked.iter().map(|(id, it)| (id, &it.condition));
        open.chain(asked).find(|(_, it)| *it == condition).map(|(id, _)| *id)
    }

    /// How many there are, with those that were asked for before a place.
    pub(super) fn count_before(&self, seq: u64) -> usize {
        self.open.len() + self.asked.range(..seq).count()
    }

    /// Whether what a list that is open waited for has come.
    pub(super) fn was_raised(&self, id: u64) -> Option<bool> {
        let asked = self.asked.contains_key(&id).then_some(false);
        self.open.get(&id).map(|it| it.was_raised).or(asked)
    }

    /// A list as it is after this: what it waits for stays if nothing else is said.
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
    /// What is to be so in the end.
    #[must_use]
    pub fn condition(&self) -> &str {
        &self.condition
    }

    /// What there is to do.
    #[must_use]
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// The place in the thread of what wrote it last.
    #[must_use]
    pub fn asked(&self) -> u64 {
        self.asked
    }

    /// Whether what it waited for has come.
    #[must_use]
    pub fn was_raised(&self) -> bool {
        self.was_raised
    }

    /// The steps that are not done; where there are no steps, the condition.
    pub fn left(&self) -> impl Iterator<Item = &str> {
        let alone = self.steps.is_empty().then_some(self.condition.as_str());
        let steps = self.steps.iter().filter(|it| !it.done).map(|it| it.text.as_str());
        steps.chain(alone)
    }

    /// How many steps are not done.
    #[must_use]
    pub fn open(&self) -> u64 {
        self.left().count() as u64
    }

    /// How many steps there are.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.steps.len().max(1) as u64
    }

    /// What waits in the log while it is open.
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
