//! Runs a conversation: sends the user's lines, and shows what the agent does.

use std::collections::BTreeSet;
use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};

use crate::audit::{Paint, ascii, pretty};
use crate::cli::base::connect::broken;
use crate::cli::base::screen::{Ending, Failure, Screen};
use crate::cli::base::signals::{Signals, TERMINATE};
use crate::cli::base::transcript;
use crate::cli::chat::attach;
use crate::cli::chat::command::{ChatLine, Command, HELP};
use crate::cli::chat::input::{Input, Lines};
use crate::cli::chat::page::{FRAME_US, Page};
use crate::cli::log::show::overview;
use crate::cli::log::why;
use crate::cli::spending::sum::UsageSum;
use crate::cli::spending::usage;
use crate::client::{self, Client, Incoming, Message, Push, Shown};
use crate::clock;
use crate::engine::{Port as _, Tokio};
use crate::id::{EntryId, ThreadId};
use crate::listener::{Apply as _, Entry};
use crate::listeners::agent;
use crate::listeners::agent::attachments::grouped;
use crate::listeners::agent::transcript::{Event, EventKind, Transcript};
use crate::listeners::agent::words::{Interrupt, Response, Stopped};
use crate::listeners::todo::list::Todos;
use crate::listeners::todo::words::StepsOpen;
use crate::log::State;
use crate::wire::core::{Huh, ThreadSpawned};

/// A conversation under way.
pub(crate) struct Talk<'a, 'b> {
    client: Client,
    agent: String,
    to: &'a mut Screen<'b>,
    page: Page,
    /// The thread, once it is open.
    thread: Option<ThreadId>,
    /// The transcript of the thread's entries so far.
    transcript: Transcript,
    todos: Todos,
    ending: Ending,
    /// The entry of the last final response to the user.
    answer: Option<EntryId>,
    /// The last question, and its entry.
    question: Option<(String, EntryId)>,
    /// The folder of the log, if it is known.
    data: Option<PathBuf>,
    /// Whether a line may be a command. Lines from a pipe are always messages.
    takes_commands: bool,
    /// The user's identity, once the first question is in the log.
    me: Option<String>,
    /// The number of the last question's entry.
    asked: u64,
    /// The asker whose work the agent is doing.
    asker: Option<String>,
    /// The media types of attachments that the agent's model takes, if that is known.
    taken: Option<Vec<String>>,
    /// The entries of attachments.
    attached: Vec<EntryId>,
    /// The model usage of agents in the thread and below it since the last question.
    used: UsageSum,
    /// The threads that were opened below this one since the last question.
    below: BTreeSet<ThreadId>,
}

/// How the wait for an answer ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wait {
    /// The agent is done.
    Over,
    /// The user stopped waiting.
    Left,
    /// The program was asked to end.
    Ended,
}

impl<'a, 'b> Talk<'a, 'b> {
    /// Makes a conversation with an agent of the pump that the client is connected to.
    pub(crate) fn new(client: Client, agent: &str, to: &'a mut Screen<'b>) -> Talk<'a, 'b> {
        let is_terminal = io::stdout().is_terminal() && !to.json;
        Talk {
            client,
            agent: agent.to_owned(),
            page: Page::new(agent, to.style, is_terminal),
            to,
            thread: None,
            transcript: Transcript::default(),
            todos: Todos::default(),
            ending: Ending::Well,
            answer: None,
            question: None,
            data: None,
            takes_commands: false,
            me: None,
            asked: 0,
            asker: None,
            taken: None,
            attached: Vec::new(),
            used: UsageSum::within(0..u64::MAX),
            below: BTreeSet::new(),
        }
    }

    /// Sets the folder of the log, from which `/why` and `/budget` read.
    pub(super) fn with_log(self, data: &Path) -> Talk<'a, 'b> {
        Talk { data: Some(data.to_owned()), ..self }
    }

    /// Sets the media types of attachments that the agent's model takes, if they are known.
    pub(super) fn taking(self, types: Option<Vec<String>>) -> Talk<'a, 'b> {
        Talk { taken: types, ..self }
    }

    /// Takes lines that begin with `/` as commands.
    pub(super) fn with_commands(self) -> Talk<'a, 'b> {
        Talk { takes_commands: true, ..self }
    }

    /// Asks one question, and returns the entry of the final response.
    pub(crate) async fn once(
        mut self,
        text: &str,
        signals: &mut Signals,
    ) -> Result<EntryId, Failure> {
        self.ask(text, None, signals).await?;
        self.draw()?;
        self.answer.ok_or_else(|| Failure::Wrong("there is no answer".to_owned()))
    }

    /// Resumes a thread, without showing its entries so far.
    pub(super) async fn resume(&mut self, thread: &ThreadId) -> Result<(), Failure> {
        self.follow(thread, u64::MAX).await
    }

    /// Follows a thread, and reads its entries so far. Only entries from the number `shown_from` on
    /// are shown.
    async fn follow(&mut self, thread: &ThreadId, shown_from: u64) -> Result<(), Failure> {
        (self.transcript, self.todos) = Default::default();
        let follow = self.client.follow_live(thread, 0).await.map_err(|it| broken(&it))?;
        let (mut follow, mut read) = (follow, Vec::new());
        while !follow.has_caught_up() {
            let next = follow.next().await.map_err(|it| broken(&it))?;
            read.extend(Some(next.ok_or_else(ended)?));
        }
        self.thread = Some(thread.clone());
        for message in &read {
            let is_new = message.entry.as_ref().is_some_and(|it| it.seq >= shown_from);
            let events = self.learn(message);
            if is_new {
                self.show(&events, message.to.as_deref())?;
            }
        }
        Ok(())
    }

    /// Talks until the user leaves. Fails if the connection ends.
    pub(super) async fn run(mut self, mut lines: Lines) -> Result<Ending, Failure> {
        let mut signals = Signals::listen()?;
        let mut is_warned = false;
        loop {
            self.draw()?;
            let input = tokio::select! {
                input = lines.next() => input,
                signal = signals.next() => {
                    if signal == TERMINATE { Input::End } else { Input::Interrupt }
                }
            };
            match input {
                Input::Line(line) if line.trim().is_empty() => {}
                Input::Line(line) => match self.says(&line, &mut signals).await? {
                    Wait::Ended => break,
                    wait => {
                        is_warned = wait == Wait::Left;
                        continue;
                    }
                },
                Input::Interrupt if !is_warned => {
                    self.page.note(Paint::Faint, "Ctrl-C again, or Ctrl-D, leaves");
                    is_warned = true;
                    continue;
                }
                Input::Interrupt | Input::End => break,
                Input::Broken(why) => return Err(Failure::Untried(why)),
            }
            is_warned = false;
        }
        if let Some(thread) = self.thread.as_ref().filter(|_| !self.to.json) {
            let text = format!("{thread} has it all: `pumphouse show {thread}`");
            self.page.note(Paint::Faint, &text);
        }
        self.draw()?;
        Ok(self.ending)
    }

    /// Sends a message or runs a command.
    async fn says(&mut self, line: &str, signals: &mut Signals) -> Result<Wait, Failure> {
        let said =
            if self.takes_commands { ChatLine::parse(line) } else { ChatLine::Message(line) };
        let command = match said {
            ChatLine::Message(text) => return self.ask(text, None, signals).await,
            ChatLine::Command(it) => it,
        };
        let (again, before) = match (command, self.question.clone()) {
            (Command::Again, Some((text, before))) => (text, before),
            (Command::Edit(text), Some((_, before))) => (text, before),
            (Command::Again | Command::Edit(_), None) => {
                self.page.note(Paint::Wrong, "there is no question yet");
                return Ok(Wait::Over);
            }
            (Command::Help, _) => {
                HELP.lines().for_each(|it| self.page.note(Paint::Faint, it));
                return Ok(Wait::Over);
            }
            (Command::Attach(file), _) => {
                if let Err(why) = self.attach(Path::new(&file)).await? {
                    self.page.note(Paint::Wrong, &why);
                }
                return Ok(Wait::Over);
            }
            (Command::Why, _) => return self.reads(LogReport::Why).await,
            (Command::Budget, _) => return self.reads(LogReport::Budget).await,
            (Command::Unknown(line), _) => {
                let text = format!("there is no command `{line}`; /help tells which there are");
                self.page.note(Paint::Wrong, &text);
                return Ok(Wait::Over);
            }
        };
        self.ask(&again, Some(&before), signals).await
    }

    /// Sends a file into the thread, or into a new one if there is none. The inner error says why
    /// the file can't be sent.
    pub(super) async fn attach(&mut self, file: &Path) -> Result<Result<(), String>, Failure> {
        let attachment = match attach::read(file, self.taken.as_deref()) {
            Ok(attachment) => attachment,
            Err(why) => return Ok(Err(why)),
        };
        let push = Push::of(&attachment).map_err(|it| Failure::Wrong(it.to_string()))?;
        let push = match &self.thread {
            Some(thread) => push.in_thread(thread),
            None => push,
        };
        let accepted = match self.client.tell(&push).await {
            Ok(accepted) => accepted,
            Err(error) => return Ok(Err(error.to_string())),
        };
        let thread = ThreadId::new(&accepted.thread);
        self.attached.push(EntryId { thread: thread.clone(), seq: accepted.seq });
        if self.thread.is_none() {
            self.follow(&thread, accepted.seq).await?;
        }
        if !self.to.json {
            let (kind, bytes) = (&attachment.media_type, attachment.content.len());
            let bytes = grouped(bytes as u64);
            let text = format!("attached {}: {kind}, {bytes} bytes", file.display());
            self.page.note(Paint::Faint, &text);
        }
        Ok(Ok(()))
    }

    /// Shows a report of the log.
    async fn reads(&mut self, what: LogReport) -> Result<Wait, Failure> {
        self.draw()?;
        let told = match (what, &self.data, &self.thread, &self.answer) {
            (LogReport::Why, Some(data), _, Some(answer)) => {
                why::tell(answer, data, self.to).await.map(drop)
            }
            (LogReport::Budget, Some(data), Some(thread), _) => {
                usage::tell(thread, data, self.to).await
            }
            (LogReport::Why, None, _, Some(answer)) => {
                let text = format!("`pumphouse why {answer}` tells it where the pump runs");
                Err(Failure::Wrong(text))
            }
            (LogReport::Budget, None, Some(thread), _) => {
                let text = format!("`pumphouse budget {thread}` tells it where the pump runs");
                Err(Failure::Wrong(text))
            }
            _ => Err(Failure::Wrong("there is no answer yet".to_owned())),
        };
        match told {
            Err(Failure::Wrong(why) | Failure::Untried(why)) => self.page.note(Paint::Wrong, &why),
            Err(Failure::Pipe) => return Err(Failure::Pipe),
            Ok(()) => {}
        }
        Ok(Wait::Over)
    }

    /// Asks a question, and shows what the agent does. `instead` is the entry of an earlier
    /// question that this question replaces. The new question goes into a fork, which shares the
    /// thread's entries before the replaced question. If the replaced question was the thread's
    /// first entry, the new question opens a session.
    async fn ask(
        &mut self,
        text: &str,
        instead: Option<&EntryId>,
        signals: &mut Signals,
    ) -> Result<Wait, Failure> {
        let element = agent::ask(&self.agent, text);
        let element = match element {
            Ok(element) => element,
            Err(fault) => {
                self.page.note(Paint::Wrong, &fault.to_string());
                return Ok(Wait::Over);
            }
        };
        let push = Push::element(element);
        let fork = instead.filter(|it| it.seq > 1);
        let fork = fork.map(|it| EntryId { thread: it.thread.clone(), seq: it.seq - 1 });
        let (push, is_new) = match (&fork, &self.thread) {
            (Some(fork), _) => (push.fork_at(fork), true),
            (None, Some(thread)) if instead.is_none() => (push.in_thread(thread), false),
            _ => (push, true),
        };
        self.page.asks(clock::now_us());
        self.used = UsageSum::within(0..u64::MAX);
        self.below.clear();
        let accepted = match self.client.tell(&push).await {
            Ok(accepted) => accepted,
            Err(error) => {
                self.page.ends();
                self.page.note(Paint::Wrong, &error.to_string());
                self.ending = Ending::Wrong;
                return Ok(Wait::Over);
            }
        };
        self.asked = accepted.seq;
        self.page.asked(accepted.seq);
        let thread = ThreadId::new(&accepted.thread);
        self.question =
            Some((text.to_owned(), EntryId { thread: thread.clone(), seq: accepted.seq }));
        if instead.is_some() {
            let from = fork.map(|it| format!(", which goes on from {it}")).unwrap_or_default();
            self.page.note(Paint::Faint, &format!("this is {thread}{from}"));
        }
        if is_new {
            self.follow(&thread, accepted.seq).await?;
        }
        self.hears(signals).await
    }

    /// Shows what the agent does until it is done. The first Ctrl-C interrupts the agent. A second
    /// Ctrl-C ends the wait, and the method returns false.
    async fn hears(&mut self, signals: &mut Signals) -> Result<Wait, Failure> {
        let mut is_stopping = false;
        while !self.page.is_over() {
            self.draw()?;
            let frame = Tokio::current().sleep_until(clock::now_us().saturating_add(FRAME_US));
            tokio::select! {
                incoming = self.client.recv() => {
                    let incoming = incoming.map_err(|it| broken(&it))?;
                    self.take(&incoming.ok_or_else(ended)?)?;
                }
                signal = signals.next() => {
                    let ends = signal == TERMINATE;
                    if ends && self.data.is_some() {
                        self.interrupt().await?;
                        self.ended("SIGTERM: it was interrupted");
                        return Ok(Wait::Ended);
                    }
                    if ends || std::mem::replace(&mut is_stopping, true) {
                        self.ended("it goes on without you");
                        self.page.leave();
                        return Ok(if ends { Wait::Ended } else { Wait::Left });
                    }
                    self.interrupt().await?;
                }
                () = frame => {}
            }
        }
        self.page.open();
        if self.takes_commands {
            self.costs().await?;
        }
        Ok(Wait::Over)
    }

    /// Shows what the answer took of models, in this thread and in the threads that were opened for
    /// it.
    async fn costs(&mut self) -> Result<(), Failure> {
        let mut unread = 0;
        while let Some(thread) = self.below.pop_first() {
            let mut follow = match self.client.follow(&thread, 0).await {
                Ok(follow) => follow,
                Err(client::Error::Refused(_) | client::Error::UnknownThread(_)) => {
                    unread += 1;
                    continue;
                }
                Err(error) => return Err(broken(&error)),
            };
            let mut read = Vec::new();
            while !follow.has_caught_up() {
                let next = follow.next().await.map_err(|it| broken(&it))?;
                read.extend(next.as_ref().and_then(transcript::entry));
            }
            follow.end().await.map_err(|it| broken(&it))?;
            for entry in &read {
                self.used.take(entry);
                self.below.extend(opened(entry));
            }
        }
        let used = std::mem::replace(&mut self.used, UsageSum::within(0..u64::MAX)).all();
        let unread = match unread {
            0 => String::new(),
            _ => format!("; {unread} threads below this one can't be read, and aren't in it"),
        };
        if let Some(line) = usage::line(&used) {
            self.page.note(Paint::Faint, &format!("{line}{unread}"));
        }
        Ok(())
    }

    fn take(&mut self, incoming: &Incoming) -> Result<(), Failure> {
        let message = match incoming {
            Incoming::Message(message) => message,
            Incoming::Refused { huh, .. } => {
                self.ended(&said(huh));
                return Ok(());
            }
            _ => return Ok(()),
        };
        if message.is::<StepsOpen>() {
            // The page shows open checklists by itself.
            return Ok(());
        }
        let of_attached = message.cause.as_ref().is_some_and(|it| self.attached.contains(it));
        if of_attached && message.shown == Shown::Sent {
            // This answer says only that the attachment has arrived.
            return Ok(());
        }
        if message.shown != Shown::Sent {
            if self.thread.is_some() && message.thread != self.thread {
                // The message is in a thread that the user left by asking a question anew.
                return Ok(());
            }
            let events = self.learn(message);
            self.show(&events, message.to.as_deref())?;
        } else if message.is::<Huh>() {
            let huh = message.decode::<Huh>().map_err(|it| Failure::Wrong(it.to_string()))?;
            match self.is_earlier(message) {
                true => self.page.note(Paint::Wrong, &said(&huh)),
                false => self.ended(&said(&huh)),
            }
        } else if !message.is::<Response>() && !message.is::<Stopped>() {
            // Any other payload is shown as it is. The payload ends the wait for the agent, unless
            // its entry is before the last question's.
            let text = pretty(&message.payload.canonical(), self.to.style);
            if !self.is_earlier(message) {
                self.page.ends();
            }
            self.page.note(Paint::Strong, text.trim_end());
        }
        Ok(())
    }

    /// Whether a message's entry is before the user's last question in the thread.
    fn is_earlier(&self, message: &Message) -> bool {
        let entry = message.entry.as_ref();
        entry.is_some_and(|it| self.thread.as_ref() == Some(&it.thread) && it.seq < self.asked)
    }

    /// Ends the wait for an answer, and shows why.
    fn ended(&mut self, why: &str) {
        self.page.ends();
        self.page.note(Paint::Wrong, why);
        self.ending = Ending::Wrong;
    }

    /// Adds a message of the thread to the transcript, and returns the message's events.
    fn learn(&mut self, message: &Message) -> Vec<Event> {
        if let Some(entry) = transcript::entry(message) {
            self.todos.apply(&entry);
            if entry.seq() > self.asked {
                self.used.take(&entry);
                self.below.extend(opened(&entry));
            }
            let todos = overview::checklists(&self.todos, State::Open, self.to.style);
            self.page.todos(todos);
        }
        if message.entry.as_ref().is_some_and(|it| it.seq == self.asked) {
            self.me = Some(message.from.clone());
        }
        let events = transcript::hear(&mut self.transcript, message);
        for event in events.iter().filter(|it| it.agent == self.agent) {
            match &event.what {
                EventKind::StepStart { asker, .. } => self.asker.clone_from(asker),
                EventKind::Response { is_final: true, .. } | EventKind::Stopped { .. } => {
                    self.asker = None;
                }
                _ => {}
            }
        }
        let behind = self.asker.as_deref().filter(|it| self.me.as_deref() != Some(it));
        let behind = behind.filter(|_| self.me.is_some());
        self.page.waits_behind(behind, clock::now_us());
        events
    }

    /// Shows the events of a message. `to` is the listener or the identity that the message is for.
    fn show(&mut self, events: &[Event], to: Option<&str>) -> Result<(), Failure> {
        // The user's identity isn't known until the user's first question is in the log. Before
        // that, every message counts as one for the user.
        let other = to.filter(|it| self.me.as_deref().is_some_and(|me| me != *it));
        let other = other.map(str::to_owned);
        for event in events {
            if self.to.json && event.show {
                let line = serde_json::to_string(event).map_err(io::Error::from)?;
                self.to.line(&ascii(&line))?;
            }
            if let (EventKind::Response { is_final: true, .. }, Some(seq), None) =
                (&event.what, event.entry, &other)
            {
                self.answer = Some(EntryId { thread: ThreadId::new(&event.thread), seq });
            }
            self.page.hear(event, other.as_deref(), clock::now_us());
        }
        Ok(())
    }

    fn draw(&mut self) -> Result<(), Failure> {
        let shown = self.page.shown(clock::now_us());
        if !self.to.json {
            self.to.text(&shown)?;
        }
        Ok(self.to.flush()?)
    }

    /// Asks the agent to stop its work in the thread.
    async fn interrupt(&mut self) -> Result<(), Failure> {
        let Some(thread) = &self.thread else { return Ok(()) };
        let push = Push::of(&Interrupt { reason: Some("Ctrl-C".to_owned()) });
        let push = push.map_err(|it| Failure::Wrong(it.to_string()))?;
        self.page.interrupts();
        let told = self.client.tell(&push.in_thread(thread).to(&self.agent)).await;
        if let Err(error) = told {
            self.ended(&error.to_string());
        }
        Ok(())
    }
}

/// A report that is read from the log.
#[derive(Clone, Copy)]
enum LogReport {
    /// What led to the last answer.
    Why,
    /// The model usage of agents.
    Budget,
}

/// Formats a fault for people: what is wrong, what to do, and the code to look up.
fn said(huh: &Huh) -> String {
    format!("{} {} ({})", huh.message, huh.advice, huh.code)
}

/// Returns the thread whose opening the entry reports.
fn opened(entry: &Entry) -> Option<ThreadId> {
    let spawned = entry.decode_if::<ThreadSpawned>().filter(|_| entry.is_from_core())?;
    Some(ThreadId::new(&spawned.assigned_id))
}

fn ended() -> Failure {
    Failure::Wrong("the pump ended the connection".to_owned())
}
