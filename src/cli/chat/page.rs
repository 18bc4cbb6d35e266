//! Lays out a conversation: turns its events into lines.

use crate::audit::{self, Paint, Style};
use crate::cli::chat::terminal::Terminal;
use crate::listeners::agent::transcript::{Event, EventKind};
use crate::listeners::agent::words::{Interrupt, Stopped};
use serde_json::Value;

/// The frames of the spinner that turns while something runs.
const SPINNER: [char; 10] = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];
/// An agent's messages to these system listeners aren't shown.
const QUIET: [&str; 5] = ["feed", "metadata", "timer", "todo", "view"];
/// How long a frame of the spinner stays, in microseconds.
pub(super) const FRAME_US: u64 = 100_000;
/// How long a model may be silent before a line says so, in microseconds.
const SILENCE_US: u64 = 300_000;

/// What is shown of a conversation with an agent.
pub(super) struct Page {
    terminal: Terminal,
    agent: String,
    is_terminal: bool,
    running: Vec<Running>,
    /// The open checklists as text.
    todos: String,
    /// The text shown so far of the element that is being written.
    shown: String,
    /// The kind of the element that is being written, such as `response`.
    within: String,
    /// The kinds and shown texts of earlier elements whose entries haven't come yet.
    streamed: Vec<(String, String)>,
    /// Whether the rest of the element is held back until the element's entry comes. A reference in
    /// the text causes this.
    is_held: bool,
    /// Lines about ended actions that came while an answer was being written. They are shown below
    /// the answer.
    later: Vec<String>,
    is_over: bool,
    /// The number of the entry with the user's last question, in its thread.
    asked: u64,
    /// Whether the user has stopped waiting for work that was interrupted and hasn't ended yet.
    is_left: bool,
    /// Since when the model has been silent. None once something has come from it.
    silent_since_us: Option<u64>,
    /// When the agent's last turn ended. None once the next turn begins.
    waits_since_us: Option<u64>,
    /// The other asker whose work the agent does before the user's, and since when the user waits
    /// for it.
    behind: Option<(String, u64)>,
}

/// An action that runs.
struct Running {
    call: String,
    id: String,
    label: String,
    since_us: u64,
    time: Option<String>,
    /// The action's last report of its progress.
    progress: String,
}

impl Page {
    pub(super) fn new(agent: &str, style: Style, is_terminal: bool) -> Page {
        Page {
            terminal: Terminal::new(style, is_terminal),
            agent: agent.to_owned(),
            is_terminal,
            running: Vec::new(),
            todos: String::new(),
            shown: String::new(),
            within: String::new(),
            streamed: Vec::new(),
            is_held: false,
            later: Vec::new(),
            is_over: false,
            asked: 0,
            is_left: false,
            silent_since_us: None,
            waits_since_us: None,
            behind: None,
        }
    }

    /// Whether the agent is done with the user's message.
    pub(super) fn is_over(&self) -> bool {
        self.is_over
    }

    /// Notes that the user sends the agent a message.
    pub(super) fn asks(&mut self, now_us: u64) {
        self.is_over = false;
        self.waits_since_us = None;
        self.silent_since_us = Some(now_us);
    }

    /// Sets the number of the entry with the user's last question. Earlier entries belong to
    /// earlier questions.
    pub(super) fn asked(&mut self, seq: u64) {
        self.asked = seq;
    }

    /// Notes that the user no longer waits for the agent, which was interrupted and hasn't stopped
    /// yet.
    pub(super) fn leave(&mut self) {
        self.is_left = true;
    }

    /// Notes that the agent is told to stop the work that the user waits for.
    pub(super) fn interrupts(&mut self) {
        self.is_left = false;
    }

    /// Notes the asker whose work the agent does before the user's. `None` means that no other
    /// asker is known.
    pub(super) fn waits_behind(&mut self, asker: Option<&str>, now_us: u64) {
        let same = self.behind.take().filter(|(it, _)| Some(&**it) == asker);
        self.behind = same.or_else(|| asker.map(|it| (it.to_owned(), now_us)));
    }

    /// Forgets everything that was under way, so that the conversation waits for the user again.
    pub(super) fn ends(&mut self) {
        self.terminal.end();
        self.running.clear();
        (self.is_over, self.is_held) = (true, false);
        self.silent_since_us = None;
        self.shown.clear();
        self.within.clear();
        self.streamed.clear();
        self.release();
    }

    /// Whether an answer is being written: a response, or text that may become one.
    fn is_answering(&self) -> bool {
        matches!(&*self.within, "response" | "text") && !self.shown.is_empty()
    }

    /// Shows the lines that were kept while an answer was written.
    fn release(&mut self) {
        std::mem::take(&mut self.later).iter().for_each(|it| self.terminal.above(it));
    }

    /// Sets the text of the open checklists. The checklists stand in the foot until the agent is
    /// done. After that, [`Page::open`] shows them.
    pub(super) fn todos(&mut self, todos: String) {
        self.todos = todos;
    }

    /// Shows a text on lines of its own, above the line that is being written.
    pub(super) fn note(&mut self, paint: Paint, text: &str) {
        let line = self.terminal.style().paint(paint, &audit::text(text));
        self.terminal.above(&line);
    }

    /// Notes the end of a turn. If the reply broke off, shows the error, unless an interrupt caused
    /// it.
    fn turn_over(&mut self, error: Option<&str>, now_us: u64) {
        self.waits_since_us = Some(now_us);
        if let Some(error) = error.filter(|it| *it != Interrupt::ERROR) {
            self.note(Paint::Wrong, &format!("the reply broke off: {error}"));
        }
    }

    /// Shows that a model failed.
    fn failed(&mut self, model: Option<&str>, text: &str) {
        let model = model.unwrap_or("the model");
        self.note(Paint::Faint, &format!("{model} failed: {text}"));
    }

    /// Takes an event. `asker` is the receiver of the event's message, if the receiver isn't the
    /// user. A final response or a stop for another asker doesn't end the agent's work for the
    /// user.
    pub(super) fn hear(&mut self, event: &Event, asker: Option<&str>, now_us: u64) {
        if event.agent != self.agent || !event.show {
            return;
        }
        self.notes_silence(&event.what, now_us);
        match &event.what {
            EventKind::CognitionOutDelta { within, text, .. } => self.delta(within, text),
            EventKind::CognitionReasoning { text, .. } => {
                self.closes("reasoning", Some(Paint::Faint), text);
            }
            EventKind::ModelFailed { model, text, .. } => self.failed(model.as_deref(), text),
            EventKind::Thought { text, .. } => self.closes("thought", Some(Paint::Faint), text),
            EventKind::Response { text, is_final, .. } => {
                self.closes("response", None, text);
                if *is_final {
                    self.work_over(event, asker);
                    asker
                        .into_iter()
                        .for_each(|it| self.note(Paint::Faint, &format!("↑ for {it}")));
                }
            }
            EventKind::ToolCallStart { call_id, id, tool, input, .. } => {
                self.ends_text();
                let label = label(tool, input);
                let (call, time) = (call_id.clone(), event.time.clone());
                let (id, progress) = (id.clone(), String::new());
                self.running.push(Running { call, id, label, since_us: now_us, time, progress });
            }
            EventKind::ToolCallOutput { call_id, text, .. } => self.wrote(call_id, text),
            EventKind::ToolCallProgress { call_id, done, total, text, .. } => {
                if let Some(run) = self.running.iter_mut().find(|it| it.call == *call_id) {
                    run.progress = progress(*done, *total, text);
                }
            }
            EventKind::ToolCallResult { call_id, tool, status, error, .. } => {
                let at = self.running.iter().position(|it| it.call == *call_id);
                if at.is_none() && status == "cancelled" {
                    // The action was shown as cancelled when the agent was interrupted.
                    return;
                }
                let run = at.map(|at| self.running.remove(at));
                self.came(run.as_ref(), tool, status, error.as_deref(), event.time.as_deref());
            }
            EventKind::CognitionOut { error, .. } => self.turn_over(error.as_deref(), now_us),
            EventKind::Metadata { fields, errors, .. } => self.metadata(fields, errors),
            EventKind::Message { to, name, .. } if !QUIET.contains(&&**to) => {
                let text = format!("→ {to}: <{name}>");
                self.note(Paint::Faint, &text);
            }
            EventKind::CognitionIn { role, from, text }
                if role == "user" && *from == self.agent =>
            {
                self.note(Paint::Faint, text);
            }
            EventKind::Stopped { reason, .. } if reason == Interrupt::WORD => {
                self.show_interrupt(event, asker);
            }
            EventKind::Stopped { reason, text } => {
                self.terminal.end();
                self.work_over(event, asker);
                let told = format!("{} stopped, {reason}: {text}", self.agent);
                self.stopped(&told, way_on(reason), asker);
            }
            _ => {}
        }
    }

    /// Shows that the agent was interrupted, and that its actions ended with that.
    fn show_interrupt(&mut self, event: &Event, asker: Option<&str>) {
        self.terminal.end();
        for it in std::mem::take(&mut self.running) {
            self.came(Some(&it), "", Interrupt::WORD, None, None);
        }
        self.work_over(event, asker);
        self.stopped(Interrupt::WORD, None, asker);
    }

    /// Notes since when the model has been silent.
    fn notes_silence(&mut self, what: &EventKind, now_us: u64) {
        match what {
            EventKind::CognitionIn { .. } | EventKind::Message { .. } => {}
            EventKind::StepStart { .. } => {
                self.release();
                (self.waits_since_us, self.silent_since_us) = (None, Some(now_us));
            }
            _ => self.silent_since_us = None,
        }
    }

    /// Shows the output of a program that an action runs.
    fn wrote(&mut self, call: &str, text: &str) {
        let run = self.running.iter().find(|it| it.call == call);
        let id = run.map(|it| it.id.clone()).unwrap_or_default();
        for line in text.lines() {
            self.note(Paint::Faint, &format!("{id} │ {line}"));
        }
    }

    /// Shows that the agent stopped. Names the asker if it isn't the user. `way_on`, the advice on
    /// how to go on, is shown only if the agent stopped its work for the user.
    fn stopped(&mut self, text: &str, way_on: Option<&str>, asker: Option<&str>) {
        let whom = asker.map(|it| format!(" (for {it})")).unwrap_or_default();
        self.note(Paint::Wrong, &format!("{text}{whom}"));
        way_on.filter(|_| asker.is_none()).into_iter().for_each(|it| self.note(Paint::Faint, it));
    }

    /// Notes that the agent's work for an asker is over. If `asker` is None, the asker is the user.
    /// Then the user's wait ends as well, unless the event belongs to an earlier question.
    fn work_over(&mut self, event: &Event, asker: Option<&str>) {
        if asker.is_some() {
            return;
        }
        let is_later = event.entry.is_none_or(|it| it > self.asked);
        // The stop of an interrupted agent may come after the next question is in the log.
        let was_left = std::mem::take(&mut self.is_left);
        let is_stop = matches!(&event.what, EventKind::Stopped { reason, .. }
            if reason == Interrupt::WORD);
        self.is_over |= is_later && !(was_left && is_stop);
    }

    /// Shows what the agent says about its own state: a line of the fields that it sets, and a line
    /// for each mistake.
    fn metadata(&mut self, fields: &Value, errors: &[String]) {
        let one = |(name, value): (&String, &Value)| match value {
            Value::String(text) => format!("{name}: {text}"),
            value => format!("{name}: {value}"),
        };
        let set: Vec<String> = fields.as_object().into_iter().flatten().map(one).collect();
        let set = Some(set.join(", ")).filter(|it| !it.is_empty());
        let style = self.terminal.style();
        let set = set.iter().map(|it| (Paint::Faint, it));
        for (paint, text) in set.chain(errors.iter().map(|it| (Paint::Wrong, it))) {
            let line = audit::line(text);
            let line = audit::cut(&line, style.width.saturating_sub(10)).into_owned();
            self.terminal.above(&style.paint(paint, &format!("metadata  {line}")));
        }
    }

    /// Shows text while it is written, but only on a terminal, where text can be overwritten. A
    /// response is shown only up to its first reference. In the response's entry, the reference is
    /// replaced by a value.
    fn delta(&mut self, within: &str, text: &str) {
        // Text may come later than the entry that contains it.
        if !self.is_terminal || self.is_over {
            return;
        }
        if self.within != within {
            self.terminal.end();
            let before = std::mem::replace(&mut self.within, within.to_owned());
            let shown = std::mem::take(&mut self.shown);
            if !shown.is_empty() && !self.is_held {
                self.streamed.push((before, shown));
            }
            self.is_held = false;
        }
        let text = if self.shown.is_empty() { text.trim_start() } else { text };
        let upto = if within == "response" { reference(text) } else { None };
        if self.is_held || text.is_empty() {
            return;
        }
        self.is_held = upto.is_some();
        let text = audit::text(&text[..upto.unwrap_or(text.len())]).into_owned();
        // Spaces at the end are shown only once other text follows them.
        let said = self.shown.trim_end().len();
        self.shown.push_str(&text);
        let more = self.shown.trim_end()[said..].to_owned();
        self.terminal.say(paint(within), &more);
    }

    /// Ends the text beside calls where a call begins, so that the call's result stands below it.
    fn ends_text(&mut self) {
        if self.within == "text" && !self.shown.is_empty() {
            self.terminal.end();
            let written = (std::mem::take(&mut self.within), std::mem::take(&mut self.shown));
            self.streamed.push(written);
            self.release();
        }
    }

    /// Takes a complete element. Shows the rest of its text. If the part that was already shown
    /// differs from the element's text, the whole text is shown again.
    ///
    /// The text of a reply may be the agent's response. It was then shown as text.
    fn closes(&mut self, within: &str, paint: Option<Paint>, text: &str) {
        let text = audit::text(text.trim()).into_owned();
        let is_of = |of: &str| of == within || (of, within) == ("text", "response");
        let whole = |(of, shown): &(String, String)| is_of(of) && shown.trim_end() == text;
        if let Some(at) = self.streamed.iter().position(whole) {
            self.streamed.drain(..=at);
            return;
        }
        let is_it = is_of(&self.within);
        let rest = text.strip_prefix(self.shown.trim_end()).filter(|_| is_it);
        match rest {
            Some(rest) => self.terminal.say(paint, rest),
            None => {
                self.terminal.end();
                self.terminal.say(paint, &text);
            }
        }
        self.terminal.end();
        self.shown.clear();
        self.within.clear();
        self.is_held = false;
        self.release();
    }

    /// Shows that an action is done.
    fn came(
        &mut self,
        run: Option<&Running>,
        tool: &str,
        status: &str,
        error: Option<&str>,
        time: Option<&str>,
    ) {
        let style = self.terminal.style();
        let (mark, paint) = match status {
            "ok" => ("✓", Paint::Well),
            _ => ("✗", Paint::Wrong),
        };
        let label = run.map_or(tool, |it| &it.label);
        let took = run.and_then(|it| it.time.as_deref()).zip(time).and_then(took);
        let took = took.map(|it| format!("  {it:.1} s")).unwrap_or_default();
        let why = match error {
            Some(error) => format!("  {status}: {error}"),
            None if status == "ok" => String::new(),
            None => format!("  {status}"),
        };
        let label = audit::cut(label, style.width.saturating_sub(20)).into_owned();
        let told = style.paint(Paint::Faint, &audit::line(&format!("{label}{took}{why}")));
        let line = format!("  {} {told}", style.paint(paint, mark));
        match self.is_answering() {
            true => self.later.push(line),
            false => self.terminal.above(&line),
        }
    }

    /// Returns the text to write to the terminal to bring it up to date.
    pub(super) fn shown(&mut self, now_us: u64) -> String {
        let style = self.terminal.style();
        let turn = usize::try_from(now_us / FRAME_US).unwrap_or(0) % SPINNER.len();
        let turns = |text: &str| {
            let text = audit::cut(text, style.width.saturating_sub(4)).into_owned();
            let text = style.paint(Paint::Faint, &text);
            format!("  {} {text}", style.paint(Paint::Who, &SPINNER[turn].to_string()))
        };
        let mut foot: Vec<String> = Vec::new();
        for it in &self.running {
            let seconds = now_us.saturating_sub(it.since_us) / FRAME_US;
            let label = audit::line(&it.label);
            let label = audit::cut(&label, style.width.saturating_sub(16)).into_owned();
            let time = format!("{}.{} s", seconds / 10, seconds % 10);
            foot.push(turns(&format!("{label}  {time}{}", audit::line(&it.progress))));
        }
        let is_silent = self.behind.is_none() && self.running.is_empty() && !self.is_over;
        let silent_us = self.silent_since_us.map(|it| now_us.saturating_sub(it));
        if let Some(us) = silent_us.filter(|it| is_silent && *it >= SILENCE_US) {
            foot.push(turns(&format!("waiting for the model  {} s", us / 1_000_000)));
        }
        if let Some(text) = self.waits_for(now_us).filter(|_| !self.is_over) {
            let text = audit::cut(&text, style.width).into_owned();
            foot.push(style.paint(Paint::Faint, &text));
        }
        if !self.is_over {
            foot.extend(self.todos.lines().map(|it| audit::cut(it, style.width).into_owned()));
        }
        self.terminal.shown(&foot)
    }

    /// Returns a line that says what the user waits for. This is the agent's work for another
    /// asker, or, after the agent's turn, its actions. Returns None if the user waits for neither.
    fn waits_for(&self, now_us: u64) -> Option<String> {
        let seconds = |since: u64| now_us.saturating_sub(since) / 1_000_000;
        if let Some((asker, since)) = &self.behind {
            let asker = audit::line(asker);
            return Some(format!("waiting for what {asker} asked ({} s)", seconds(*since)));
        }
        let since = self.waits_since_us.filter(|_| !self.running.is_empty())?;
        let ids: Vec<&str> = self.running.iter().map(|it| &*it.id).collect();
        let ids = ids.join(", ");
        Some(format!("waiting for {} ({} s)", audit::line(&ids), seconds(since)))
    }

    /// Shows the open checklists.
    pub(super) fn open(&mut self) {
        let todos = self.todos.clone();
        todos.lines().for_each(|it| self.terminal.above(it));
    }
}

/// Returns advice for a person whose agent stopped for this reason.
fn way_on(reason: &str) -> Option<&'static str> {
    Some(match reason {
        Stopped::BUDGET => "`pumphouse budget THREAD --raise` gives it more; then write again",
        "model" => "what was asked is kept: write again when the model can be asked",
        "turns" => "write again, such as `Go on.`: each message has its own turns",
        "idle" => "ask in other words",
        "context-full" => "begin a new conversation, or have a model with a larger window",
        _ => return None,
    })
}

fn paint(within: &str) -> Option<Paint> {
    (!matches!(within, "response" | "text")).then_some(Paint::Faint)
}

/// Formats a tool and its input as a line.
fn label(tool: &str, input: &Value) -> String {
    let input = input.to_string();
    if input == "{}" { tool.to_owned() } else { format!("{tool} {input}") }
}

/// Formats an action's progress as text that follows the action's label.
fn progress(done: Option<f64>, total: Option<f64>, text: &str) -> String {
    let far = match (done, total) {
        (Some(done), Some(total)) => format!("  {done}/{total}"),
        (Some(done), None) => format!("  {done}"),
        _ => String::new(),
    };
    if text.is_empty() { far } else { format!("{far}  {text}") }
}

/// Returns how long something took, in seconds.
fn took((from, to): (&str, &str)) -> Option<f64> {
    let (from, to): (jiff::Timestamp, jiff::Timestamp) = (from.parse().ok()?, to.parse().ok()?);
    Some((to - from).total(jiff::Unit::Second).ok()?.max(0.0))
}

/// Returns the index of the first `$` that may begin a reference. The `$` of a price such as `$5`
/// begins none.
fn reference(text: &str) -> Option<usize> {
    let begins = |it: char| matches!(it, '{' | '$' | '_') || it.is_alphabetic();
    let mut all = text.match_indices('$').map(|(at, _)| at);
    all.find(|at| text[at + 1..].chars().next().is_none_or(begins))
}

#[cfg(test)]
mod tests;
