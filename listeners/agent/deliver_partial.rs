//! Delivers partial responses that name results of their own turn. Each is delivered while the
//! model still writes, once its values are there. If that doesn't happen, it waits for the end of
//! the turn, like any other response that waits.

use std::borrow::Cow;

use pumphouse::listener::Answer;
use pumphouse::prelude::*;

use super::super::action::filling::are_known;
use super::super::action::value::alone;
use super::super::action::variables::{self, Lookup, Piece, Reference};
use super::super::action::words::{ActionResult, METADATA};
use super::generation::OngoingGeneration;
use super::partial::WaitingPartial;
use super::words::Response;

impl OngoingGeneration<'_> {
    /// Takes the results that have come for actions of this turn.
    fn take_results(&mut self) {
        for entry in self.context.arrivals.kept() {
            if let Some(result) = entry.decode_if::<ActionResult>()
                && result.turn == Some(self.turn)
            {
                self.partials.results.entry(result.id.clone()).or_insert(result);
            }
        }
    }

    /// The text of a partial response, if all that it waits for is done and each of its references
    /// has a value.
    fn text_by_now(&self, partial: &WaitingPartial) -> Option<String> {
        let (partials, mind) = (&self.partials, &self.context.mind);
        if !mind.pending.is_empty() || !partials.is_past_syncs(partial.after) {
            return None;
        }
        let pieces = variables::in_prose(&partial.text);
        // A field of metadata has the value that it had at the response's place in the reply.
        let means_field = !partials.has(METADATA) && !mind.knows(METADATA);
        let is_field = |it: &Reference<'_>| {
            let field = it.metadata_field().filter(|_| means_field);
            field.is_some_and(|it| partial.metadata.contains_key(it))
        };
        let others: Vec<&str> = variables::references(&pieces)
            .filter(|it| partials.value(it.name).is_none() && !is_field(it))
            .map(|it| it.name)
            .collect();
        if !mind.is_free(&others, false) {
            return None;
        }
        let own = |name: &str| {
            let value = partials.value(name)?;
            Some(value.map_or(Lookup::Unknown, |it| Lookup::Value(Cow::Owned(alone(it)))))
        };
        let of_results = variables::references(&pieces);
        let of_results: Vec<Reference<'_>> =
            of_results.filter(|it| partials.result_named(it.name).is_some()).collect();
        let is_of_payload = of_results.iter().any(|it| self.is_of_payload(it));
        let of_results: Vec<Piece<'_>> = of_results.into_iter().map(Piece::Reference).collect();
        let lookup = |name: &str| own(name).unwrap_or(Lookup::Unknown);
        let are_known = !is_of_payload && are_known(&of_results, lookup);
        are_known
            .then(|| self.context.partial(self.turn, &partial.text, partial.metadata.clone(), &own))
    }

    /// Whether a path of a reference may lead into a field of the answer's payload beside its
    /// value. The result of an action has the value alone.
    fn is_of_payload(&self, it: &Reference<'_>) -> bool {
        let steps = variables::steps(it.path).unwrap_or_default();
        let result = self.partials.result_named(it.name).flatten();
        let answer = result.and_then(|it| it.answer.as_deref());
        let (Some(first), Some(answer)) = (steps.first(), answer) else { return false };
        let schemas = self.context.capabilities.schemas();
        let schema = schemas.iter().find(|it| it.name.to_string() == answer);
        schema.is_some_and(|it| {
            let fields = || it.shape.fields();
            fields().any(|it| it.is_value) && fields().any(|it| &*it.name == *first)
        })
    }

    /// Delivers a partial response at once if its values are there. Otherwise it is returned.
    pub(super) async fn deliver_by_now(
        &mut self,
        partial: WaitingPartial,
        from: usize,
    ) -> Result<Option<WaitingPartial>, Fault> {
        self.take_results();
        let is_first =
            self.spoken.deeds.waiting_responses == 0 && self.context.mind.pending.is_empty();
        let text = match &self.recorded_waits {
            _ if !is_first => None,
            Some(waits) => {
                let is_delivered = !waits.contains(&(from as u64));
                is_delivered.then(|| self.earlier.next()).flatten().map(|it| it.text)
            }
            None => self.text_by_now(&partial),
        };
        let Some(text) = text else { return Ok(Some(partial)) };
        let (turn, at) = (self.turn, None);
        self.send_partial(Response { is_final: false, turn, was_held: false, at, text }).await?;
        Ok(None)
    }

    /// Delivers the partial responses that waited for results which are there by now. `at` is the
    /// number of bytes of the reply so far.
    pub(super) async fn deliver_waiting(&mut self, at: usize) -> Result<(), Fault> {
        self.take_results();
        while let Some(partial) = self.partials.waiting.front() {
            let at = at as u64;
            let is_due = |it: &Response| it.at.is_some_and(|due| due <= at);
            let (text, at) = match &self.recorded_waits {
                Some(_) => match self.earlier.next_if(is_due) {
                    Some(recorded) => (recorded.text, recorded.at),
                    None => break,
                },
                None => match self.text_by_now(partial) {
                    Some(text) => (text, Some(at)),
                    None => break,
                },
            };
            self.partials.waiting.pop_front();
            self.spoken.deeds.waiting_responses -= 1;
            let turn = self.turn;
            self.send_partial(Response { is_final: false, turn, was_held: true, at, text }).await?;
        }
        Ok(())
    }

    /// Sends a partial response to the askers of the work.
    pub(super) async fn send_partial(&self, response: Response) -> Result<(), Fault> {
        let asked = self.context.mind.answered_by(self.context.until());
        let asked = self.context.entries(&asked).await?;
        self.context.out.partial.send(Answer::partial(asked, response)).await
    }
}
