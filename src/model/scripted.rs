//! A model with scripted replies, for tests, demonstrations, and experiments without a bill.

mod file;

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::model::error::{Error, Kind};
use crate::model::interface::{Boxed, Model, Reply};
use crate::model::model_identity::{Details, PriceSource};
use crate::model::play::{Sleeper, play};
use crate::model::price::Price;
use crate::model::prompt::Prompt;
use crate::model::script::Script;
use crate::regular_file;

use file::Written;

pub use file::NoScript;

/// The most bytes of a file with scripted replies: those of thousands of long turns.
const SCRIPT_BYTES_MAX: u64 = 64 << 20;

/// A model with scripted replies.
///
/// ```
/// # extern crate pumphouse_model as pumphouse;
/// use pumphouse::model::{Scripted, Script};
///
/// // Its first reply, its second, and no third.
/// let fixed = Scripted::replies(["<thought>Hm.</thought>", "<response>42</response>"]);
/// // Whatever a function says.
/// let echo = Scripted::new(|prompt, turn| {
///     let last = prompt.messages.last().map_or("", |it| &it.text);
///     format!("<response>{turn}: {last}</response>")
/// });
/// # let _ = (fixed, echo);
/// ```
///
/// The reply of a list or a file depends on the prompt alone, so it is the same after a restart.
/// The reply of a function should depend on the prompt alone, too.
#[derive(Clone)]
pub struct Scripted {
    answer: Arc<Answer>,
    sleeper: Sleeper,
    window: Option<u32>,
    price: Option<Price>,
    attachments: Vec<String>,
    is_structured: bool,
    name: Arc<str>,
}

type Answer = dyn Fn(&Prompt, u64) -> Result<Script, Error> + Send + Sync;

/// What a list of replies does after its last reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a list ends, stays at its end or begins again")]
pub enum Repeat {
    /// The next turn fails with [`Kind::Spent`].
    #[default]
    Never,
    /// The last reply is repeated.
    Last,
    /// The list begins again.
    All,
}

impl Scripted {
    /// Makes a model whose replies come from a function. The function gets the prompt and the
    /// number of the turn in its conversation, [`Prompt::turn`], which counts from 1.
    pub fn new<S: Into<Script>>(
        answer: impl Fn(&Prompt, u64) -> S + Send + Sync + 'static,
    ) -> Scripted {
        Scripted::of("a function", move |prompt, turn| Ok(answer(prompt, turn).into()))
    }

    /// A model that gives these replies, one for each turn, and then fails.
    pub fn replies<S: Into<Script>>(replies: impl IntoIterator<Item = S>) -> Scripted {
        Scripted::repeating(replies, Repeat::Never)
    }

    /// A model that gives these replies, one for each turn, and then continues as `repeat` says.
    pub fn repeating<S: Into<Script>>(
        replies: impl IntoIterator<Item = S>,
        repeat: Repeat,
    ) -> Scripted {
        let replies: Vec<Script> = replies.into_iter().map(Into::into).collect();
        Scripted::of("a list", move |_, turn| nth(&replies, turn, repeat).cloned())
    }

    /// Reads a model's replies from a text. `docs/models.md` describes the form.
    ///
    /// # Errors
    /// The first mistake, with its line.
    pub fn parse(text: &str) -> Result<Scripted, NoScript> {
        let file::Sheet { replies, repeat, window } = file::parse(text)?;
        let (fitting, plain): (Vec<_>, Vec<_>) =
            replies.into_iter().partition(|it| it.when.is_some());
        let answer = move |prompt: &Prompt, turn| {
            let last = prompt.messages.last().map_or("", |it| &it.text);
            let fits = |it: &&Written| it.when.as_ref().is_some_and(|it| last.contains(it));
            let Written { heard, script, .. } = match fitting.iter().find(fits) {
                Some(it) => it.clone(),
                None => nth(&plain, turn, repeat)?.clone(),
            };
            Ok(match heard {
                Some(placeholder) => script.filled(&placeholder, &prompt.heard()),
                None => script,
            })
        };
        Ok(Scripted { window, ..Scripted::of("a text", answer) })
    }

    /// Reads a model's replies from a file.
    ///
    /// # Errors
    /// If the file can't be read. Otherwise, the first mistake in it, with its line.
    pub fn read(file: impl AsRef<Path>) -> Result<Scripted, NoScript> {
        let file = file.as_ref();
        let text = regular_file::text(file, SCRIPT_BYTES_MAX);
        let text = text.map_err(|it| NoScript::unread(file, &it))?;
        let parsed = Scripted::parse(&text).map_err(|it| it.of(file))?;
        // Readers of a thread see the model's name. They should see no path in it.
        let name = file.file_name().unwrap_or(file.as_os_str());
        Ok(parsed.named(name.display().to_string()))
    }

    /// Pauses by this function instead of tokio's clock, for example in a simulator.
    #[must_use]
    pub fn sleeping<F: Future<Output = ()> + Send + 'static>(
        self,
        sleep: impl Fn(Duration) -> F + Send + Sync + 'static,
    ) -> Scripted {
        Scripted { sleeper: Sleeper::new(move |time| Box::pin(sleep(time))), ..self }
    }

    /// Sets the window, in tokens.
    #[must_use]
    pub fn with_window(self, tokens: u32) -> Scripted {
        Scripted { window: Some(tokens), ..self }
    }

    /// Sets the price of the model's tokens.
    #[must_use]
    pub fn with_price(self, price: Price) -> Scripted {
        Scripted { price: Some(price), ..self }
    }

    /// Declares that the model's replies keep to the [format](Prompt::format) of their prompts. The
    /// author of the replies has to make sure of it.
    #[must_use]
    pub fn with_structure(self) -> Scripted {
        Scripted { is_structured: true, ..self }
    }

    /// Sets the media types of attachments that the model takes, such as `image/*`.
    #[must_use]
    pub fn with_attachments<T: Into<String>>(self, types: impl IntoIterator<Item = T>) -> Scripted {
        Scripted { attachments: types.into_iter().map(Into::into).collect(), ..self }
    }

    fn named(self, name: String) -> Scripted {
        Scripted { name: name.into(), ..self }
    }

    fn of(
        name: &str,
        answer: impl Fn(&Prompt, u64) -> Result<Script, Error> + Send + Sync + 'static,
    ) -> Scripted {
        let (answer, sleeper) = (Arc::new(answer), Sleeper::default());
        let (window, price, attachments) = (None, None, Vec::new());
        let (name, is_structured) = (name.into(), false);
        Scripted { answer, sleeper, window, price, attachments, is_structured, name }
    }
}

/// The reply of a turn. `turn` counts from 1.
fn nth<T>(replies: &[T], turn: u64, repeat: Repeat) -> Result<&T, Error> {
    let count = replies.len() as u64;
    let at = turn.saturating_sub(1);
    let at = match repeat {
        Repeat::All if count > 0 => at % count,
        Repeat::Last if count > 0 => at.min(count - 1),
        _ => at,
    };
    let found = usize::try_from(at).ok().and_then(|it| replies.get(it));
    found.ok_or_else(|| {
        let replies = if count == 1 { "reply" } else { "replies" };
        let text = format!("the script has {count} {replies}, and this is turn {turn}");
        Error::new(Kind::Spent, text)
    })
}

impl Model for Scripted {
    fn is_repeatable(&self) -> bool {
        true
    }

    fn turn(&self, prompt: Prompt) -> Boxed<'_, Box<dyn Reply>> {
        Box::pin(
            async move { play((self.answer)(&prompt, prompt.turn())?, self.sleeper.clone()).await },
        )
    }

    fn window(&self) -> Option<u32> {
        self.window
    }

    fn attachments(&self) -> Vec<String> {
        self.attachments.clone()
    }

    fn is_structured(&self) -> bool {
        self.is_structured
    }

    fn price(&self) -> Option<Price> {
        self.price
    }

    fn describe(&self) -> String {
        format!("scripted by {}", self.name)
    }

    fn details(&self) -> Details {
        let price_source = self.price.map(|_| PriceSource::Setting);
        Details { price_source, ..Details::new("scripted", &*self.name) }
    }
}

impl fmt::Debug for Scripted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Scripted").field(&self.name).finish()
    }
}

#[cfg(test)]
mod tests;
