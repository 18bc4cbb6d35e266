//! The programs of calls that run, by the keys of their calls. An action's attempts have one key,
//! and the program of an attempt begins only once that of the attempt before has ended.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

/// The running programs of one listener.
#[derive(Clone, Debug, Default)]
pub(super) struct Attempts(Arc<Mutex<Running>>);

/// For each key of a call: a channel that is open while the call's program runs.
type Running = BTreeMap<String, watch::Receiver<()>>;

/// A program that runs. The next one with the same key begins when this value is dropped.
pub(super) struct Attempt {
    all: Attempts,
    key: String,
    /// Its end is what the next attempt waits for.
    _open: watch::Sender<()>,
}

impl Attempts {
    /// Waits until no program of a call with this key runs. A call without a key waits for none.
    pub(super) async fn begin(&self, key: Option<&str>) -> Option<Attempt> {
        let key = key?;
        loop {
            let before = {
                let mut running = self.running();
                match running.get(key) {
                    Some(before) => before.clone(),
                    None => {
                        let (open, closed) = watch::channel(());
                        running.insert(key.to_owned(), closed);
                        let (all, key) = (self.clone(), key.to_owned());
                        return Some(Attempt { all, key, _open: open });
                    }
                }
            };
            let mut before = before;
            // An error says that the channel is closed, so the program has ended.
            while before.changed().await.is_ok() {}
        }
    }

    fn running(&self) -> MutexGuard<'_, Running> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        self.all.running().remove(&self.key);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[test]
    fn an_attempt_begins_when_the_one_before_has_ended() {
        let all = Attempts::default();
        let first = all.begin(Some("a")).now_or_never().unwrap();
        assert!(first.is_some());
        assert!(all.begin(Some("b")).now_or_never().is_some(), "another call");
        assert!(all.begin(None).now_or_never().is_some(), "a call without a key");
        let mut second = Box::pin(all.begin(Some("a")));
        assert!(second.as_mut().now_or_never().is_none());
        drop(first);
        assert!(second.now_or_never().unwrap().is_some());
        assert!(all.running().is_empty());
    }
}
