//! Applies the beginning and the end of turns and of work to a mind, and keeps the waiting
//! responses.

use std::mem::take;

use pumphouse::model;
use pumphouse::prelude::*;
use pumphouse::wire::Json;
use serde_json::{Map, Value};

use super::super::words::action::{Action, Mode, OnError, Status};
use super::super::words::agent::{CognitionIn, CognitionOut, Interrupt, Notice, ResponseWaits};
use super::what_next::{RATE_LIMITS_MAX, Stop};
use super::{
    ActionRecord, Awaited, HeldBack, LastTurn, Mind, OpenTurn, PendingResponse, Queued,
    RepeatedFault, Work,
};

impl Mind {
    pub(super) fn begin_turn(&mut self, entry: &Entry, cognition: &CognitionIn) {
        self.turns = self.turns.max(cognition.turn);
        self.measure.begin(&cognition.model, cognition.tokens_estimated);
        self.turn = Some(OpenTurn { at: entry.seq(), is_last: cognition.is_last == Some(true) });
        (self.written, self.faults, self.partial) = (Vec::new(), Vec::new(), None);
        let shown = self.shown(cognition.until);
        self.take_shown(&shown);
        for acting in self.actions.values_mut() {
            let is_seen = acting.ended.is_some_and(|(_, at)| at <= cognition.until);
            if is_seen && acting.shown.is_none() {
                acting.shown = Some(self.turns);
            }
        }
        let (current, named) =
            (self.work.as_ref().map(|it| it.id), self.named().collect::<Vec<_>>());
        self.actions
            .retain(|seq, it| it.shown.is_none() || it.work == current || named.contains(seq));
        (self.asked, self.has_feeds) = (None, false);
        (self.slept, self.last, self.awaited) = (false, LastTurn::default(), None);
    }

    /// The entry numbers of the queued things that a turn shows if it shows the thread up to the
    /// entry `until`.
    fn shown(&self, until: u64) -> Vec<u64> {
        let upto = self.queue.range(..=until).filter(|(_, it)| self.shows(it));
        upto.map(|(at, _)| *at).collect()
    }

    /// Removes the things that a turn shows from the queue. The work at hand will answer the
    /// messages among these things.
    fn take_shown(&mut self, shown: &[u64]) {
        if shown.iter().any(|at| self.queue.get(at).is_some_and(|it| self.is_news(it))) {
            self.idle = 0;
        }
        for at in shown {
            if let Some(Queued::Ask(_)) = self.queue.remove(at)
                && let Some(work) = &mut self.work
            {
                self.repeated = None;
                work.asked.push(*at);
            }
        }
    }

    pub(super) fn add_action(&mut self, seq: u64, action: &Action) {
        let acting = ActionRecord {
            id: action.id.clone(),
            turn: action.turn.unwrap_or(0),
            work: self.work.as_ref().map(|it| it.id),
            mode: action.mode,
            skips: action.on_error == Some(OnError::Skip),
            ended: None,
            shown: None,
            is_taken_back: false,
        };
        // A call that didn't run has a record, too, whose result is the notice itself. It is no
        // action, so its id stays free.
        let is_action = |at: u64, of: &ActionRecord| of.ended.is_none_or(|(_, ended)| ended != at);
        let mut all = self.actions.iter();
        let is_again =
            all.any(|(at, of)| of.id == acting.id && of.turn == acting.turn && is_action(*at, of));
        self.actions.insert(seq, acting);
        self.last.began = true;
        if is_again {
            // The listener `action` refuses this call, since an earlier action of the turn has the
            // name.
            return;
        }
        self.names.add(seq, action);
        // A response that was written earlier in this turn may refer to the name. If no action had
        // the name then, the response means this action.
        for (name, meant) in self.written.iter_mut().flat_map(|it| &mut it.names) {
            if meant.is_none() {
                *meant = self.names.meant(name).filter(|it| *it == seq);
            }
        }
    }

    pub(super) fn add_response(&mut self, seq: u64, response_waits: ResponseWaits) {
        let names = response_waits.on.into_iter().map(|name| {
            let meant = self.names.meant(&name);
            (name, meant)
        });
        self.written.push(PendingResponse {
            at: seq,
            turn: response_waits.turn,
            is_final: response_waits.is_final,
            is_last: self.turn.as_ref().is_some_and(|it| it.is_last),
            is_early: false,
            text: String::new(),
            payload: response_waits.payload,
            metadata: match response_waits.metadata {
                Some(Json(Value::Object(metadata))) => metadata,
                _ => Map::new(),
            },
            work: self.work.as_ref().map_or(0, |it| it.id),
            place: (response_waits.from, response_waits.to),
            names: names.collect(),
        });
    }

    /// Records that a part of the reply didn't run, or that its response wasn't delivered.
    pub(super) fn add_notice(&mut self, seq: u64, notice: Notice) {
        if notice.response.is_some() {
            match notice.held_back {
                Some(text) => self.hold_back(notice.turn, text),
                None => self.withdraw_held(),
            }
        } else if let Some(fault) = RepeatedFault::of(&notice)
            && let Some(id) = notice.call
        {
            self.faults.push(fault);
            let acting = ActionRecord {
                id,
                turn: notice.turn,
                work: self.work.as_ref().map(|it| it.id),
                mode: Mode::Sync,
                skips: false,
                ended: Some((Status::Failed, seq)),
                shown: None,
                is_taken_back: false,
            };
            self.actions.insert(seq, acting);
            self.last.mistake = true;
        }
    }

    pub(in super::super) fn end_turn(&mut self, cognition: &CognitionOut) {
        let turn = self.turn.take();
        let is_full = cognition.stop == CognitionOut::FULL;
        let is_cut = is_full || cognition.stop == CognitionOut::STOPPED;
        if let Some(tokens) = cognition.tokens_in {
            self.measure.count(tokens);
        }
        if cognition.error.is_none() {
            self.cleared = None;
        }
        self.last.is_over = true;
        self.last.is_cut = is_cut;
        self.last.is_filtered = cognition.stop == model::Stop::Filtered.as_str();
        self.last.failed =
            cognition.error.is_some() && !is_cut && cognition.stop != Interrupt::WORD;
        self.last.mistake |= cognition.is_partial && !self.last.failed;
        self.last.began |= cognition.wrote_root == Some(true);
        self.error = cognition.error.clone().unwrap_or_default();
        self.last.is_limited = cognition.waits_ms.is_some() && self.last.failed;
        self.waits = if self.last.is_limited { self.waits + 1 } else { 0 };
        // Waiting for a rate limit is neither a turn nor a failure, unless it doesn't end.
        let only_waits = self.last.is_limited && self.waits <= RATE_LIMITS_MAX;
        self.uncounted += u64::from(is_cut || only_waits);
        let is_last = turn.as_ref().is_some_and(|it| it.is_last);
        self.last.is_last = is_last && !is_cut && !only_waits;
        self.failures = match self.last.failed {
            true => self.failures + u32::from(!only_waits),
            false => 0,
        };
        let partial = self.partial.take();
        self.cut_texts.extend(partial.filter(|_| cognition.went_out == Some(true)));
        let faults = take(&mut self.faults);
        if self.last.began {
            self.repeated = None;
        } else if !(is_cut || self.last.failed && faults.is_empty()) {
            self.repeated = RepeatedFault::after(self.repeated.take(), faults);
        }
        self.is_refused = self.last.failed && cognition.refused == Some(true);
        self.idle = if cognition.is_idle { self.idle + 1 } else { 0 };
        let written = take(&mut self.written);
        for mut waiting in written.into_iter().filter(|_| !is_cut) {
            let place = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
            let text = cognition.text.get(place(waiting.place.0)..place(waiting.place.1));
            waiting.text = text.unwrap_or_default().trim().to_owned();
            waiting.is_early = self.is_early(&waiting);
            self.pending.push_back(waiting);
        }
        self.awaited = cognition.awaits.as_deref().map(|on| self.awaited_by(on));
        let LastTurn { began, mistake, failed, is_cut, .. } = self.last;
        let is_quiet = !(began || mistake || failed || is_cut);
        self.slept = self.last.is_limited
            || is_quiet && self.held().is_none() && self.under_way().next().is_some();
    }

    /// What the names of an `<await>` mean. Without names, the agent waits for everything.
    fn awaited_by(&self, on: &str) -> Awaited {
        let names = on.split([',', ' ', '\n', '\t']).filter(|it| !it.is_empty());
        let meant: Vec<Option<u64>> = names.map(|it| self.names.meant(it)).collect();
        match &meant[..] {
            [] => Awaited::All,
            _ => Awaited::Actions(meant.into_iter().flatten().collect()),
        }
    }

    /// Whether actions of the response's turn are unfinished, other than `fire_and_forget` ones.
    fn is_early(&self, pending_response: &PendingResponse) -> bool {
        let of_turn = self.actions.values().filter(|action| action.turn == pending_response.turn);
        let mut open = of_turn.filter(|action| action.ended.is_none());
        open.any(|action| {
            action.mode != Mode::FireAndForget && action.work == Some(pending_response.work)
        })
    }

    /// Records that a response was delivered. A final response ends the work. A partial response
    /// that had to wait is removed from the front of the waiting responses.
    pub(in super::super) fn close_response(&mut self, is_final: bool, was_waiting: bool) {
        if is_final {
            self.close();
        } else if was_waiting && self.turn.is_some() && !self.written.is_empty() {
            // The response was delivered before its turn ended.
            self.written.remove(0);
        } else if was_waiting {
            self.pending.pop_front();
        }
    }

    /// Records that the waiting final response was withdrawn.
    pub(in super::super) fn withdraw_held(&mut self) {
        self.pending.pop_back();
        self.last.mistake = true;
    }

    /// Records that a final response was held back because references in it lead to nothing.
    pub(in super::super) fn hold_back(&mut self, turn: u64, text: String) {
        if let Some(work) = &mut self.work {
            work.held_back = Some(HeldBack { turn, text });
        }
        self.withdraw_held();
    }

    /// Ends the agent's work without a final response.
    pub(in super::super) fn stop_work(&mut self, stop: Stop, until: u64) {
        let is_told = stop == Stop::Interrupted && self.interrupts.iter().all(|it| *it > until);
        if is_told {
            // The interrupt has ended the work already. This `agent-stopped` only answers the
            // interrupt's sender.
            return;
        }
        let taken = self.taken_by(stop, until);
        for seq in taken.asks.iter().chain(&taken.ticks) {
            self.queue.remove(seq);
        }
        for timer in &taken.timers {
            self.outstanding.remove(timer);
            if let Some(timer) = self.timers.get_mut(timer) {
                timer.is_cleared = stop == Stop::Interrupted;
            }
        }
        if stop == Stop::Interrupted {
            let ended = self.work.as_ref().map(|it| it.id);
            let of = |timer: &u64| self.timers.get(timer).map(|it| it.work);
            // Drops all queued ticks of the ended work, also those that came after the interrupt.
            // The rest of this function would miss the tick of a timer that ticked only once.
            let is_of = |it: &Queued| matches!(it, Queued::Tick(it) if of(it) == ended);
            self.queue.retain(|_, it| !is_of(it));
            self.interrupts.retain(|it| *it > until);
        }
        self.turn = None;
        self.cleared = None;
        self.written.clear();
        self.close();
    }

    /// Records that all interrupts are answered. They came while the agent had no work.
    pub(in super::super) fn clear_interrupts(&mut self) {
        self.interrupts.clear();
    }

    /// Records the messages that a turn has shown, but not the turn's calls and responses. A
    /// handler uses this before `end_turn`, for a turn whose entries this mind hasn't applied.
    pub(in super::super) fn record_silent_turn(&mut self, turn: u64, until: u64, is_last: bool) {
        self.turns = turn;
        let shown: Vec<u64> = self.shown(until);
        self.take_shown(&shown);
        (self.slept, self.last) =
            (false, LastTurn { is_over: true, is_last, ..LastTurn::default() });
    }

    /// Ends the work at hand, and begins the next one if something waits.
    pub(super) fn close(&mut self) {
        self.work = None;
        self.pending.clear();
        self.cut_texts.clear();
        (self.asked, self.has_feeds) = (None, false);
        self.begin_next();
    }

    /// Begins the next work with the oldest waiting message or tick.
    pub(super) fn begin_next(&mut self) {
        if self.work.is_some() {
            return;
        }
        (self.last, self.idle, self.failures) = (LastTurn::default(), 0, 0);
        (self.is_refused, self.slept) = (false, false);
        (self.waits, self.awaited, self.repeated) = (0, None, None);
        let next = self.queue.iter().find_map(|(seq, it)| match it {
            Queued::Ask(asker) => Some((*seq, asker.clone(), None)),
            Queued::Tick(timer) => {
                let timer = self.timers.get(timer)?;
                Some((*seq, timer.asker.clone(), Some(timer.origin)))
            }
            Queued::Result(..) | Queued::Other(_) => None,
        });
        self.work = next.map(|(id, asker, origin)| {
            let (asked, held_back) = (Vec::new(), None);
            Work { id, asker, asked, origin, held_back }
        });
        self.before = self.turns_counted();
    }
}
