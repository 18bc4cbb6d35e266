//! The events of providers' streams. Models put them here, and sinks take them.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::Notify;

/// The most bytes of events that wait in one queue.
const WAITING_BYTES_MAX: usize = 8 * 1024 * 1024;

/// An event of a provider's stream, as the provider sent it. For a reply that isn't streamed, the
/// event is the whole reply. Keys and the values of headers are hidden in the data.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProviderEvent {
    /// The conversation that the prompt belongs to, if the prompt names one.
    pub conversation: Option<Arc<str>>,
    /// The model's name in the manifest or program.
    pub model: Arc<str>,
    /// The event's data. For the built-in wires it is JSON, or an end mark.
    pub data: Arc<str>,
}

impl ProviderEvent {
    /// An event of a model's provider that belongs to no conversation.
    #[must_use]
    pub fn new(model: impl Into<Arc<str>>, data: impl Into<Arc<str>>) -> ProviderEvent {
        ProviderEvent { conversation: None, model: model.into(), data: data.into() }
    }
}

/// Takes the events of providers from models, and queues them for sinks. All clones
/// share their queues.
///
/// ```
/// # extern crate pumphouse_model as pumphouse;
/// use pumphouse::model::{ProviderEvents, Remote, Wire};
///
/// let events = ProviderEvents::default();
/// let wire = Wire::OpenAiChat;
/// let model = Remote::at(wire, wire.home(), "gpt-4o-mini").events(&events, "small").build()?;
/// let at_most_a_thousand = events.watch(1_000);
/// # let _ = (model, at_most_a_thousand);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// If no sink watches, no event is kept.
#[derive(Clone, Debug, Default)]
pub struct ProviderEvents(Arc<Mutex<Vec<Weak<EventQueue>>>>);

impl ProviderEvents {
    /// Begins to watch. Returns a queue of at most `events_max` events, which gets all events from
    /// now on.
    pub fn watch(&self, events_max: usize) -> Arc<EventQueue> {
        let queue = Arc::new(EventQueue {
            state: Mutex::default(),
            grown: Notify::new(),
            events_max: events_max.max(1),
        });
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|queue| queue.strong_count() > 0);
        all.push(Arc::downgrade(&queue));
        queue
    }

    /// Puts an event into all queues. `event` is called only if there is a queue.
    pub(crate) fn show(&self, event: impl FnOnce() -> ProviderEvent) {
        let queues: Vec<Arc<EventQueue>> = {
            let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            all.iter().filter_map(Weak::upgrade).collect()
        };
        if queues.is_empty() {
            return;
        }
        let event = event();
        queues.iter().for_each(|queue| queue.push(event.clone()));
    }
}

/// The events that wait for one sink. If there are too many, the oldest are dropped.
#[derive(Debug)]
pub struct EventQueue {
    state: Mutex<Queued>,
    grown: Notify,
    events_max: usize,
}

#[derive(Debug, Default)]
struct Queued {
    waiting: VecDeque<ProviderEvent>,
    bytes: usize,
    dropped: DroppedEvents,
}

/// The number of dropped events of each conversation since the last call of `take`.
pub type DroppedEvents = BTreeMap<Option<Arc<str>>, u64>;

impl EventQueue {
    fn push(&self, event: ProviderEvent) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.bytes += event.data.len();
        state.waiting.push_back(event);
        while state.waiting.len() > self.events_max || state.bytes > WAITING_BYTES_MAX {
            let Some(oldest) = state.waiting.pop_front() else { break };
            state.bytes -= oldest.data.len();
            *state.dropped.entry(oldest.conversation).or_default() += 1;
        }
        drop(state);
        self.grown.notify_one();
    }

    /// Takes the waiting events, and the numbers of events dropped since the last call.
    pub fn take(&self) -> (DroppedEvents, VecDeque<ProviderEvent>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.bytes = 0;
        (std::mem::take(&mut state.dropped), std::mem::take(&mut state.waiting))
    }

    /// Waits until an event has come. Returns at once if one has come since the last wait.
    pub async fn grown(&self) {
        self.grown.notified().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(conversation: &str, data: &str) -> ProviderEvent {
        let (conversation, model) = (Some(conversation.into()), "m".into());
        ProviderEvent { conversation, model, data: data.into() }
    }

    fn data(queue: &EventQueue) -> Vec<String> {
        queue.take().1.into_iter().map(|it| it.data.to_string()).collect()
    }

    #[test]
    fn the_oldest_event_is_dropped_and_counted_for_its_conversation() {
        let events = ProviderEvents::default();
        let queue = events.watch(2);
        for (conversation, text) in [("a", "1"), ("b", "2"), ("b", "3"), ("b", "4")] {
            events.show(|| event(conversation, text));
        }
        let (dropped, waiting) = queue.take();
        assert_eq!(dropped, [(Some("a".into()), 1), (Some("b".into()), 1)].into());
        assert_eq!(waiting, [event("b", "3"), event("b", "4")]);
        assert_eq!(queue.take(), Default::default());
    }

    #[test]
    fn events_are_bounded_by_their_bytes_too() {
        let (events, half) = (ProviderEvents::default(), "x".repeat(WAITING_BYTES_MAX / 2));
        let queue = events.watch(100);
        for text in [&half, &half, "y"] {
            events.show(|| event("a", text));
        }
        assert_eq!(data(&queue), [half, "y".to_owned()]);
    }

    #[test]
    fn each_watcher_has_all_that_comes_after_it_began() {
        let events = ProviderEvents::default();
        let first = events.watch(9);
        events.show(|| event("a", "1"));
        let second = events.watch(9);
        events.show(|| event("a", "2"));
        assert_eq!((data(&first), data(&second)), (vec!["1".into(), "2".into()], vec!["2".into()]));
    }

    #[test]
    fn no_event_is_made_where_nobody_watches() {
        let events = ProviderEvents::default();
        drop(events.watch(9));
        events.show(|| unreachable!("nobody watches"));
    }
}
