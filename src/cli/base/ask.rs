//! Asks a running pump to do something, and shows the pump's answer.

use std::time::Duration;

use crate::cli::base::connect::{Caller, broken};
use crate::cli::base::incoming;
use crate::cli::base::screen::{Ending, Failure, Screen};
use crate::client::{Incoming, Push};
use crate::clock;
use crate::engine::{Port as _, Tokio};
use crate::id::ThreadId;
use crate::wire::Payload;

/// How long a verb waits for an answer.
const WAIT: Duration = Duration::from_secs(30);

impl Caller {
    /// Pushes a payload into the thread to steer, and shows the answer as `ask` does.
    pub(crate) async fn steer<A: Payload>(
        &self,
        thread: &str,
        payload: &impl Payload,
        line: impl FnMut(A) -> String,
        to: &mut Screen<'_>,
    ) -> Result<Ending, Failure> {
        let push = Push::of(payload).map_err(|it| Failure::Untried(it.to_string()))?;
        self.ask(&push.in_thread(&ThreadId::new(thread)), line, to).await
    }

    /// Sends a push, and shows the answer of type `A` as a line. Refusals and failures are shown,
    /// too. Fails if no answer comes within 30 s, or before the connection ends.
    pub(crate) async fn ask<A: Payload>(
        &self,
        push: &Push,
        line: impl FnMut(A) -> String,
        to: &mut Screen<'_>,
    ) -> Result<Ending, Failure> {
        self.ask_within(WAIT, push, line, to).await
    }

    async fn ask_within<A: Payload>(
        &self,
        wait: Duration,
        push: &Push,
        line: impl FnMut(A) -> String,
        to: &mut Screen<'_>,
    ) -> Result<Ending, Failure> {
        let mut answers = Answers { line, ending: None };
        let until = u64::try_from(wait.as_micros()).unwrap_or(u64::MAX);
        let until = clock::now_us().saturating_add(until);
        let why = tokio::select! {
            asked = self.exchange(push, &mut answers, to) => {
                asked?;
                "the connection ended before an answer came; `pumphouse tail` tells".to_owned()
            }
            () = Tokio::current().sleep_until(until) => {
                format!("waited {} s for an answer; `pumphouse tail` tells what came of it",
                    wait.as_secs())
            }
        };
        // An answer that has come counts, even if the time is up before the connection ends.
        answers.ending.ok_or(Failure::Wrong(why))
    }

    async fn exchange<A: Payload, L: FnMut(A) -> String>(
        &self,
        push: &Push,
        answers: &mut Answers<L>,
        to: &mut Screen<'_>,
    ) -> Result<(), Failure> {
        let mut client = self.connect().await?;
        client.push(push);
        client.finish().await.map_err(|it| broken(&it))?;
        while let Some(incoming) = client.recv().await.map_err(|it| broken(&it))? {
            answers.take(&incoming, to)?;
        }
        Ok(())
    }
}

/// How answers are shown, and the ending that follows from the first answer.
struct Answers<L> {
    line: L,
    ending: Option<Ending>,
}

impl<L> Answers<L> {
    fn take<A: Payload>(&mut self, incoming: &Incoming, to: &mut Screen<'_>) -> Result<(), Failure>
    where
        L: FnMut(A) -> String,
    {
        let answer: Option<A> = match incoming {
            Incoming::Message(it) if it.is::<A>() => it.decode().ok(),
            _ => None,
        };
        let is_wrong = incoming::is_wrong(incoming);
        if answer.is_some() || is_wrong {
            let ending = if is_wrong { Ending::Wrong } else { Ending::Well };
            self.ending.get_or_insert(ending);
        }
        match answer {
            _ if to.json => to.object(&incoming::object(incoming))?,
            Some(it) => to.line(&(self.line)(it))?,
            None if is_wrong => to.text(&incoming::refused_lines(incoming, to.style))?,
            None => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::net::TcpListener;

    use clap::Parser as _;

    use super::*;
    use crate::audit::Style;
    use crate::name::{CORE, ENVELOPE};
    use crate::wire::core::ThreadCancelled;

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        caller: Caller,
    }

    #[tokio::test]
    async fn an_answer_counts_where_the_pump_keeps_the_connection_open_behind_it() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let answer = format!(
            "<message xmlns=\"{ENVELOPE}\"><meta><from>core</from><to>console</to>\
             <thread>sess-a</thread><entry xmlns=\"{CORE}\" id=\"sess-a/2\"/></meta>\
             <thread-cancelled xmlns=\"{CORE}\" thread=\"sess-a\" by=\"ada\"/></message>\n"
        );
        let serving = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.write_all(answer.as_bytes()).unwrap();
            stream
        });
        let caller = Line::parse_from(["ask", "--connect", &address]).caller;
        let mut out = Vec::new();
        let style = Style { colour: false, width: 80 };
        let mut screen = Screen { out: &mut out, style, json: false };
        let push = Push::of(&crate::listeners::echo::Echo { text: "a".to_owned() }).unwrap();
        let line = |it: ThreadCancelled| format!("{} is cancelled by {}", it.thread, it.by);
        let wait = Duration::from_secs(1);
        let ended = caller.ask_within(wait, &push, line, &mut screen).await;
        assert_eq!(ended.ok(), Some(Ending::Well));
        assert_eq!(String::from_utf8_lossy(&out), "sess-a is cancelled by ada\n");
        drop(serving.join().unwrap());
    }
}
