//! Measures a server process with thousands of sessions: the memory of live and of sleeping
//! sessions, and how soon a sleeping session answers. A live session is in the server's memory. A
//! sleeping session is in the log only, until the server loads it.

use std::io::{self, Write as _};
use std::path::Path;
use std::sync::Arc;

use pumphouse::clock;
use pumphouse::engine::Builder;
use pumphouse::id::ThreadId;
use pumphouse::listeners::echo::{self, Echo};
use pumphouse::log::{Durability, SqliteLog};
use pumphouse::wire::Fault;

use crate::measure::{Waits, number};
use crate::output::Failure;
use crate::program::{NO_PROC, Program, echo, heard, unserved};
use crate::pump::started;
use crate::row::{Figure, Row};
use crate::sitting::Sitting;

const LIVE: &str = "threads: live sessions, memory more";
const IDLE: &str = "an idle server";
const ASLEEP: &str = "threads: sleeping sessions, memory in all";
const READY: &str = "threads: sleeping sessions, ready after";
const WAKE: &str = "threads: sleeping sessions, one answers";

/// How many sessions are opened at once.
const AT_ONCE: u64 = 64;
/// The least number of sessions that are woken. If fewer sessions are open, all are woken. Every
/// n-th session is woken, so up to twice as many may be woken.
const WOKEN: f64 = 2_000.0;

pub(crate) async fn rows(sitting: &mut Sitting) -> Result<(), Failure> {
    if sitting.wants(LIVE, Some(Durability::Full)) {
        let row = live(sitting, &Program::find()?).map_err(|it| unserved(&it))?;
        sitting.show(&row)?;
    }
    let durability = Some(Durability::Normal);
    if [ASLEEP, READY, WAKE].map(|it| sitting.wants(it, durability)).contains(&true) {
        let program = Program::find()?;
        let folder = sitting.folder().join("sleeping");
        let count = sitting.times(100_000.0);
        let threads = asleep(&folder, count).await?;
        let idle = sitting.folder().join("idle");
        let idle = program.idle(&idle, Durability::Normal).map_err(|it| unserved(&it))?;
        let rows = woken(&program, idle, &folder, &threads).map_err(|it| unserved(&it))?;
        for row in rows.map(|it| it.figure(Figure::Of(count))) {
            if sitting.wants(row.what(), durability) {
                sitting.show(&row)?;
            }
        }
    }
    Ok(())
}

/// Measures how much memory live sessions add to a server.
fn live(sitting: &Sitting, program: &Program) -> io::Result<Row> {
    let awake = "limits:\n  trees_awake_max: 1000000\n";
    let count = sitting.times(10_000.0);
    let running = program.run(&sitting.folder().join("live"), Durability::Full, awake)?;
    running.ask()?;
    let before = running.memory();
    let (mut writer, mut reader) = running.connect()?;
    std::thread::scope(|scope| {
        let opening = scope.spawn(move || {
            (0..count).try_for_each(|_| writer.write_all(echo(None).as_bytes()))?;
            // A session outlives the connection that opened it, so the writer may be dropped later.
            Ok::<_, io::Error>(writer)
        });
        // Each session gets an acknowledgement and an answer.
        (0..2 * count).try_for_each(|_| heard(&mut reader).map(drop))?;
        opening.join().unwrap_or_else(|_| Err(io::Error::other("nothing was opened")))
    })?;
    let (Some(before), Some(after)) = (before, running.memory()) else {
        return Ok(Row::missing(LIVE, NO_PROC.to_owned()));
    };
    let more = number(after.saturating_sub(before));
    let row = Row::new(LIVE, Some(Durability::Full));
    let row = row.figure(Figure::Size(more)).figure(Figure::Of(count));
    let ratio = number(after) / number(before);
    let row = row.beside(IDLE, Figure::Size(number(before)), ratio);
    let most = 512.0 * 1_048_576.0 * number(count) / 10_000.0;
    Ok(row.goal("≤ 512 MiB of 10,000", more <= most))
}

/// Opens `count` sessions in a new log, and shuts the pump down. Returns the sessions to wake:
/// every n-th one, and at least [`WOKEN`]. If fewer were opened, returns all.
async fn asleep(folder: &Path, count: u64) -> Result<Vec<ThreadId>, Failure> {
    let why = |error| Failure::Untried(format!("{} can't be made: {error}", folder.display()));
    std::fs::create_dir_all(folder).map_err(why)?;
    let log = Arc::new(SqliteLog::open(folder.join("pumphouse.db"), Durability::Normal)?);
    let builder = Builder::default().with(echo::echo());
    let pump = started(builder.with(|it: &mut Builder| it.log(log)))?;
    pump.ready().await?;
    #[expect(clippy::cast_sign_loss, clippy::cast_possible_truncation, reason = "a count")]
    let every = (count / WOKEN as u64).max(1);
    let opening = (0..AT_ONCE).map(|first| {
        let pump = &pump;
        async move {
            let mut threads = Vec::new();
            for at in (first..count).step_by(AT_ONCE as usize) {
                let opened = pump.tell(Echo { text: at.to_string() }).await?;
                if at.is_multiple_of(every) {
                    threads.push(opened.thread);
                }
            }
            Ok::<_, Fault>(threads)
        }
    });
    let threads = futures_util::future::try_join_all(opening).await;
    let threads = threads.map_err(|fault| Failure::Wrong(fault.to_string()))?;
    pump.shutdown().await?;
    Ok(threads.concat())
}

/// Starts a server on a log with sleeping sessions. Returns three rows:
///
/// - the server's memory, compared with the memory of an idle server;
/// - the time until the server is ready;
/// - the times until the sessions in `threads` answer.
fn woken(
    program: &Program,
    idle: Option<u64>,
    folder: &Path,
    threads: &[ThreadId],
) -> io::Result<[Row; 3]> {
    let durability = Durability::Normal;
    let since = clock::now_us();
    let running = program.run(folder, durability, "")?;
    running.ask()?;
    let ready_us = number(clock::now_us().saturating_sub(since));
    let asleep = match (idle, running.memory()) {
        (Some(idle), Some(memory)) => {
            let (idle, memory) = (number(idle), number(memory));
            let row = Row::new(ASLEEP, Some(durability)).figure(Figure::Size(memory));
            row.beside(IDLE, Figure::Size(idle), memory / idle)
        }
        _ => Row::missing(ASLEEP, NO_PROC.to_owned()),
    };
    let (mut writer, mut reader) = running.connect()?;
    let waits = threads.iter().map(|thread| {
        let since = clock::now_us();
        writer.write_all(echo(Some(thread.as_str())).as_bytes())?;
        let mut said = heard(&mut reader)?;
        if said.contains("<accepted ") {
            said = heard(&mut reader)?;
        }
        match said.contains("<echo ") {
            true => Ok(clock::now_us().saturating_sub(since)),
            false => Err(io::Error::other(format!("no answer: {}", said.trim_end()))),
        }
    });
    let waits = Waits::of(waits.collect::<io::Result<_>>()?);
    let ready = Row::new(READY, Some(durability)).figure(Figure::Took(ready_us));
    let wake = Row::new(WAKE, Some(durability)).waits(&waits);
    Ok([asleep, ready, wake.goal("p99 < 5 ms", waits.at(99) < 5_000.0)])
}
