//! Payloads of a reply: the agent's calls, and the payloads that end its work.

use pumphouse::prelude::*;
use serde_json::Map;

use super::super::todo::words::{TodoComplete, TodoUntil};
use super::abilities::AWAIT;
use super::answer_format::open_name;
use super::generation::{Attempted, FinalAnswer, LAST, OngoingGeneration};
use super::words::ResponseWaits;

impl OngoingGeneration<'_> {
    pub(super) async fn payload(
        &mut self,
        local: String,
        element: Result<Element, String>,
        is_core: bool,
        place: (usize, usize),
    ) -> Result<(), Fault> {
        if is_core && local == AWAIT {
            return self.awaits(element.ok().as_ref()).await;
        }
        self.spoken.deeds.attempt(Attempted::Deed);
        let element = match element {
            Ok(element) => element,
            Err(why) => {
                let text = format!("<{local}> was not sent: {why}");
                return self.refuses(local, text, None).await;
            }
        };
        let settings = &self.context.agent().settings;
        if settings.final_payloads.contains(&local) {
            return self.finale(&local, &element, place).await;
        }
        let Some((taker, name)) = self.taker(&local, &element, is_core) else {
            let text = format!("<{local}> was not sent: nobody takes it");
            return self.refuses(local, text, None).await;
        };
        let is_checklist = name == TodoUntil::NAME || name == TodoComplete::NAME;
        if self.is_last && !is_checklist {
            return self.refuses(local, LAST.to_owned(), None).await;
        }
        match self.context.capabilities.understand(&element, &name) {
            Ok(element) => {
                if name == TodoUntil::NAME {
                    self.spoken.deeds.todos.extend(TodoUntil::read(element.view()));
                } else if name == TodoComplete::NAME {
                    let closed = TodoComplete::read(element.view());
                    self.spoken.deeds.closed.extend(closed.map(|it| it.id));
                }
                if !is_checklist {
                    self.spoken.deeds.calls += 1;
                }
                self.context.out.say.send(To(taker, element)).await
            }
            Err(fault) => self.misunderstood(&local, &fault).await,
        }
    }

    /// Takes an `<await>`: the agent's next turn begins once all that is under way is done or, with
    /// `on`, once these actions are.
    async fn awaits(&mut self, element: Option<&Element>) -> Result<(), Fault> {
        let on = element.and_then(|it| it.attribute("on")).unwrap_or_default().to_owned();
        let mind = &self.context.mind;
        let is_unknown = |it: &&str| !self.partials.has(it) && !mind.knows(it);
        let unknown: Vec<&str> = names_awaited(&on).filter(is_unknown).collect();
        let runs = self.spoken.deeds.calls > 0 || mind.under_way().next().is_some();
        let text = match (&unknown[..], runs) {
            ([], true) => {
                self.spoken.deeds.attempt(Attempted::Deed);
                self.spoken.deeds.awaits = Some(on);
                return Ok(());
            }
            (_, false) => "<await> waits for nothing: nothing of yours runs.".to_owned(),
            (all, true) => {
                format!("<await> waits for nothing: nothing is called {}.", all.join(", "))
            }
        };
        self.notice(text, None).await
    }

    /// Whether a payload is valid and has a receiver. If a payload stands where markup counts as
    /// text, there is a notice about it only if it is sound.
    pub(super) fn is_sound(&self, local: &str, element: &Element, is_core: bool) -> bool {
        let taker = self.taker(local, element, is_core);
        taker.is_some_and(|(_, name)| self.context.capabilities.understand(element, &name).is_ok())
    }

    async fn misunderstood(&mut self, local: &str, fault: &Fault) -> Result<(), Fault> {
        let advice = fault.advice.as_deref().map(|it| format!(". {it}")).unwrap_or_default();
        let text = format!("<{local}> was not sent: {}{advice}", fault.message);
        self.refuses(local, text, None).await
    }

    /// Takes a payload that ends the agent's work. An invalid payload is refused.
    pub(super) async fn finale(
        &mut self,
        local: &str,
        element: &Element,
        place: (usize, usize),
    ) -> Result<(), Fault> {
        let capabilities = &self.context.capabilities;
        let Some(name) = open_name(capabilities, local) else {
            let text = format!("<{local}> was not sent: nobody knows it");
            return self.refuses(local, text, None).await;
        };
        match capabilities.understand(element, name) {
            Ok(element) => {
                let is_free = self.context.mind.is_free(&[], true)
                    && self.spoken.deeds.waiting_responses == 0
                    && self.spoken.deeds.calls == 0;
                if !is_free {
                    let waits = ResponseWaits {
                        turn: self.turn,
                        is_final: true,
                        payload: Some(local.to_owned()),
                        from: place.0 as u64,
                        to: place.1 as u64,
                        on: Vec::new(),
                        metadata: None,
                    };
                    self.waits(waits).await?;
                }
                let (text, metadata, waits) = (String::new(), Map::new(), !is_free);
                let finale = Some(element);
                self.spoken.deeds.answer = Some(FinalAnswer { text, metadata, finale, waits });
                Ok(())
            }
            Err(fault) => self.misunderstood(local, &fault).await,
        }
    }

    /// The listener that takes a payload which the agent wrote, and the payload's full name. None
    /// if there is no such listener.
    fn taker(&self, local: &str, element: &Element, is_core: bool) -> Option<(String, Name)> {
        let all = &self.context.capabilities;
        let own = all.listener(&self.context.agent().name)?;
        all.named(local).iter().find_map(|name| {
            let is_cores = name.namespace() == "https://xml-pipeline.org/ns/core/v1";
            // Only the pump sends reserved payloads.
            let is_reserved = all.schema(name).is_some_and(|it| it.reserved);
            let is_meant = [name.namespace(), ""].contains(&element.namespace());
            if is_cores != is_core || is_reserved || !is_meant {
                return None;
            }
            let taker = all.takers(name).find(|it| own.knows(it))?;
            Some((taker.name.clone(), name.clone()))
        })
    }
}

/// The names that an `<await>` lists.
fn names_awaited(on: &str) -> impl Iterator<Item = &str> {
    on.split([',', ' ', '\n', '\t']).filter(|it| !it.is_empty())
}
