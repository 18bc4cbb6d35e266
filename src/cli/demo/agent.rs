//! `demo agent`: shows one conversation with a scripted agent, and then its log.

use std::path::Path;

use crate::audit;
use crate::cli::base::data;
use crate::cli::base::screen::{Ending, Failure, Screen};
use crate::cli::base::signals::Signals;
use crate::cli::chat::Talk;
use crate::cli::demo::title;
use crate::cli::log::tree;
use crate::client::Client;
use crate::clock;
use crate::door::{Options, Tcp};
use crate::engine::{Builder, Port as _, Tokio};
use crate::id::EntryId;
use crate::listeners;
use crate::log::{Durability, Log as _, SqliteLog};

pub(super) async fn trip(
    folder: &Path,
    signals: &mut Signals,
    to: &mut Screen<'_>,
) -> Result<Ending, Failure> {
    let path = folder.join(data::LOG);
    let log = SqliteLog::open(&path, Durability::Full)?;
    let bound = Tcp::bind("127.0.0.1:0", Options::default()).await;
    let door = bound.map_err(|error| Failure::Untried(error.to_string()))?;
    let address = door.local_addr();
    let sleep = |time: std::time::Duration| async move {
        let us = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        Tokio::current().sleep_until(clock::now_us().saturating_add(us)).await;
    };
    let troupe = listeners::demo::demo(sleep, |_, _| {});
    let builder = Builder::default().with((listeners::standard(), troupe, log, door));
    let plan = builder.build().map_err(|error| Failure::Wrong(error.to_string()))?;
    let pump = plan.start();
    pump.ready().await?;
    let text = format!(
        "A pump listens on {address}. Its researcher is an agent whose mind is a script; its \
         analyst is another; its library takes its time. The question: {}",
        listeners::demo::QUESTION
    );
    title(to, &text)?;
    let client = Client::connect(address).await;
    let client = client.map_err(|error| Failure::Wrong(error.to_string()))?;
    let talk = Talk::new(client, "researcher", to);
    let answer = talk.once(listeners::demo::QUESTION, signals).await?;
    pump.shutdown().await?;
    read(&path, &answer, to).await
}

/// Shows the log after the pump has stopped: the tree of threads, and what led to the answer.
async fn read(path: &Path, answer: &EntryId, to: &mut Screen<'_>) -> Result<Ending, Failure> {
    let log = SqliteLog::open_read_only(path)?;
    title(to, "The pump has stopped. Its threads, as `tree` draws them:")?;
    tree::one(&log, &answer.thread, to).await?;
    title(to, &format!("From the answer back to the socket, as `why {answer}` tells:"))?;
    let steps = audit::why(&log, answer).await?.unwrap_or_default();
    match to.json {
        true => steps.iter().try_for_each(|it| to.object(&audit::json(&it.entry)))?,
        false => to.text(&audit::told(&steps, to.style))?,
    }
    log.close().await?;
    Ok(Ending::Well)
}
