//! The core payloads that a reply may use are those that the core's listeners take.

use std::collections::BTreeSet;

use pumphouse::Payload as _;
use pumphouse::listeners;
use pumphouse::listeners::thread::fork::ForkThread;
use pumphouse::reply::{Kind, Markup};
use pumphouse::wire::budget::RaiseBudget;
use pumphouse::wire::core::{Attachment, RetryListeners};

#[test]
fn a_reply_may_say_all_that_the_cores_listeners_take() {
    let plan = pumphouse::builder().with(listeners::core()).build().unwrap();
    let capabilities = plan.capabilities();
    let taken = capabilities.listeners().iter().flat_map(|it| &it.takes);
    let said: BTreeSet<&str> = taken
        .filter(|it| !capabilities.schema(it).unwrap().reserved)
        // Only an operator is heard with the first two, and only from outside the others come.
        .filter(|it| ![RaiseBudget::NAME, RetryListeners::NAME].contains(it))
        .filter(|it| ![ForkThread::NAME, Attachment::NAME].contains(it))
        .map(|it| it.local())
        .collect();
    let markup = Markup::default();
    assert_eq!(markup.names(Kind::Core).collect::<BTreeSet<_>>(), said);
}
