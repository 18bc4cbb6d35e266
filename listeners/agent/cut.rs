//! Turns that a stop cut: what there was of them, and how they go on.

use pumphouse::prelude::*;

use super::super::action::words::Action;
use super::hand::Turning;
use super::speak::{Spoken, recalled};
use super::turn::Came;
use super::words::{CognitionIn, CognitionOut, Response, Thought};

/// A turn that an earlier attempt began.
pub(super) struct Begun {
    turn: u64,
    /// What its model was shown: up to which entry.
    until: u64,
    /// What it sent.
    sent: Vec<Entry>,
}

impl Turning {
    /// The turn that an earlier attempt at this message began, if one did.
    pub(super) async fn begun(&self) -> Result<Option<Begun>, Fault> {
        if self.attempt.0 <= 1 {
            return Ok(None);
        }
        let sent = self.sent.sent().await?;
        let begun = sent.iter().find_map(|it| it.decode_if::<CognitionIn>());
        Ok(begun.map(|CognitionIn { turn, until, .. }| Begun { turn, until, sent }))
    }

    /// Goes on with it. What the model had said to its end is read again, and not asked for; a
    /// model that says the same to the same prompt is asked again; of any other there is what it
    /// had said, since it would say something else, and do it twice.
    pub(super) async fn takes_up(&self, it: Begun) -> Result<Came, Fault> {
        let Begun { turn, until, sent } = it;
        if let Some(over) = sent.iter().find_map(|it| it.decode_if::<CognitionOut>()) {
            let told = self.mindful.told(&self.capabilities);
            return self.goes_on(turn, until, recalled(self, over, told)).await;
        }
        let is_wanted = self.interrupted_at().is_none();
        match is_wanted && self.agent().model.is_repeatable() {
            true => self.speaks(turn, until, &sent).await,
            false => self.ends(turn, until, cut(&sent)).await,
        }
    }
}

/// What there is of a reply that wasn't written to its end.
fn cut(sent: &[Entry]) -> Spoken {
    let error = Some("the pump stopped while the model wrote".to_owned());
    let stop = "stopped".to_owned();
    let mut spoken = Spoken { error, stop, truncated: true, did: true, ..Spoken::default() };
    for entry in sent {
        if let Some(it) = entry.decode_if::<Thought>() {
            spoken.text += &format!("<thought>{}</thought>\n", it.text);
        } else if let Some(it) = entry.decode_if::<Response>() {
            spoken.text += &format!("<response final=\"false\">{}</response>\n", it.text);
        } else if let Some(action) = entry.decode_if::<Action>() {
            spoken.begins(&action);
            spoken.text += &format!("{}\n", String::from_utf8_lossy(entry.body()));
        }
    }
    spoken
}
