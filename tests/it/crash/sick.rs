//! Sick machines: a full disk that has room again later, a disk that fails, and a process without
//! file descriptors. Nothing is acknowledged that isn't in the log, and the pump recovers where it
//! can.

use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use pumphouse::clock;
use pumphouse::log::{Durability, Log, SqliteLog};

use super::check::wait;
use super::effects::{Place, Process};

/// How long an answer may take that is to come.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long who waits for room is waited for, before another is asked.
const SHORT: Duration = Duration::from_millis(100);
/// Descriptors of a process that has few, and connections that want one each.
const DESCRIPTORS: usize = 48;
const CROWD: usize = 60;

/// What was pushed, and what came of it.
type Told = (String, Answer);

/// What came of a push.
#[derive(Clone, Debug, PartialEq)]
enum Answer {
    /// It is in the log, as this entry.
    Accepted(String),
    /// It isn't, by the fault of this number.
    Refused(String),
}

/// A connection that pushes one text after another.
struct Line {
    stream: TcpStream,
    answers: BufReader<TcpStream>,
    /// What has come of an answer that isn't whole yet.
    half: String,
}

impl Answer {
    fn is_accepted(&self) -> bool {
        matches!(self, Answer::Accepted(_))
    }

    fn is(&self, code: &str) -> bool {
        matches!(self, Answer::Refused(it) if it == code)
    }
}

impl Line {
    fn to(address: &str) -> Line {
        let stream = TcpStream::connect(address).unwrap();
        let answers = BufReader::new(stream.try_clone().unwrap());
        Line { stream, answers, half: String::new() }
    }

    fn send(&mut self, text: &str) {
        self.stream.write_all(payload(text).as_bytes()).unwrap();
    }

    fn answer(&mut self) -> Answer {
        self.answer_within(PATIENCE).expect("an answer")
    }

    /// The next answer, if there is one in time.
    fn answer_within(&mut self, time: Duration) -> Option<Answer> {
        self.stream.set_read_timeout(Some(time)).unwrap();
        loop {
            match self.answers.read_line(&mut self.half) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => return None,
                other => assert!(other.unwrap() > 0, "the connection is gone"),
            }
            let line = std::mem::take(&mut self.half);
            let value = |rest: &str, name: &str| {
                let (_, rest) = rest.split_once(&format!("{name}=\"")).unwrap();
                rest.split('"').next().unwrap().to_owned()
            };
            if let Some((_, it)) = line.split_once("<accepted ") {
                let entry = format!("{}/{}", value(it, "thread"), value(it, "seq"));
                return Some(Answer::Accepted(entry));
            }
            if let Some((_, it)) = line.split_once("<huh ") {
                return Some(Answer::Refused(value(it, "code")));
            }
        }
    }

    fn ask(&mut self, text: &str) -> Answer {
        self.send(text);
        self.answer()
    }
}

fn payload(text: &str) -> String {
    format!("<echo xmlns=\"https://xml-pipeline.org/ns/echo/v1\"><text>{text}</text></echo>\n")
}

/// Pushes so many texts of a name.
fn ask(line: &mut Line, name: &str, count: usize) -> Vec<Told> {
    let texts = (0..count).map(|it| format!("{name} {it}"));
    texts.map(|text| (text.clone(), line.ask(&text))).collect()
}

/// What was acknowledged is there and as it was sent; of what was refused by a full disk nothing.
fn check(place: &Place, told: &[Told]) {
    let log = SqliteLog::open(&place.log, Durability::Full).unwrap();
    let report = wait(log.verify(None));
    assert!(report.is_sound(), "{report:#?}");
    let all = wait(log.tail(0, usize::MAX));
    let sent = |text: &str| {
        let body = payload(text);
        let pushed = all.iter().filter(|it| it.reply_to.is_none());
        pushed.filter(|it| *it.body == *body.trim_end().as_bytes()).collect::<Vec<_>>()
    };
    for (text, answer) in told {
        let there = sent(text);
        match answer {
            Answer::Accepted(entry) => {
                let ids: Vec<String> = there.iter().map(|it| it.id.to_string()).collect();
                assert_eq!(ids, [entry.as_str()], "{text} was acknowledged");
            }
            Answer::Refused(code) if code == "P0018" => assert_eq!(there.len(), 0, "{text}"),
            Answer::Refused(_) => assert!(there.len() <= 1, "{text}"),
        }
    }
}

/// A small disk in memory; it is let go when it is dropped.
struct Small(PathBuf);

impl Small {
    fn mount(folder: &Path) -> Option<Small> {
        let at = folder.join("small");
        std::fs::create_dir_all(&at).unwrap();
        let mut mount = Command::new("mount");
        let ran = mount.args(["-t", "tmpfs", "-o", "size=8m", "tmpfs"]).arg(&at).output();
        if !ran.is_ok_and(|it| it.status.success()) {
            crate::skipped("no tmpfs may be mounted");
            return None;
        }
        Some(Small(at))
    }

    /// Takes all the room there is.
    fn fill(&self) {
        let mut ballast = File::create(self.0.join("ballast")).unwrap();
        while ballast.write_all(&[0; 1 << 16]).is_ok() {}
        while ballast.write_all(&[0; 1 << 10]).is_ok() {}
    }

    fn make_room(&self) {
        std::fs::remove_file(self.0.join("ballast")).unwrap();
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        drop(Command::new("umount").arg("--lazy").arg(&self.0).status());
    }
}

#[test]
fn a_full_disk_refuses_and_goes_on_when_there_is_room() {
    let folder = tempfile::tempdir().unwrap();
    let Some(disk) = Small::mount(folder.path()) else { return };
    let place = Place::new(&disk.0, folder.path());
    let (mut process, address) = started(&mut place.command("full", None));
    let mut line = Line::to(&address);
    let mut told = ask(&mut line, "before", 20);
    disk.fill();
    let held = refused(&address, &mut told);
    assert!(line.ask("meanwhile").is("P0018"));
    disk.make_room();
    // What waited for room is kept now, with no word from anybody.
    for (mut line, text) in held {
        let answer = line.answer();
        assert!(answer.is_accepted(), "{text}: {answer:?}");
        told.push((text, answer));
    }
    told.extend(ask(&mut line, "after", 20));
    disk.fill();
    drop(refused(&address, &mut told));
    process.kill();
    disk.make_room();
    let (process, address) = started(&mut place.command("full", None));
    told.extend(ask(&mut Line::to(&address), "again", 20));
    process.stop();
    let accepted = told.iter().filter(|it| it.1.is_accepted()).count();
    assert!(accepted >= 60, "{accepted} of {} were accepted", told.len());
    check(&place, &told);
}

/// Pushes over one connection after another until a full disk refuses; who waits for room.
fn refused(address: &str, told: &mut Vec<Told>) -> Vec<(Line, String)> {
    let mut held = Vec::new();
    for number in 0..1_000 {
        let (mut line, text) = (Line::to(address), format!("{number} {}", clock::random()));
        line.send(&text);
        match line.answer_within(SHORT) {
            None => held.push((line, text)),
            Some(answer) if answer.is("P0018") => return held,
            Some(answer) => told.push((text, answer)),
        }
    }
    panic!("a full disk refuses nothing");
}

#[test]
fn a_disk_without_room_for_some_writes_is_waited_for() {
    let inject = "inject=pwrite64:error=ENOSPC:when=150..152";
    let folder = tempfile::tempdir().unwrap();
    let place = Place::new(folder.path(), folder.path());
    let Some(mut command) = place.traced("full", &disturbing(inject)) else { return };
    let (process, address) = started(&mut command);
    let told = ask(&mut Line::to(&address), "text", 60);
    assert!(told.iter().all(|it| it.1.is_accepted()), "{told:?}");
    process.stop();
    check(&place, &told);
}

#[test]
fn a_failed_sync_ends_acknowledgements_for_good() {
    // One failure; whatever is synced after it would succeed.
    ends("inject=fdatasync:error=EIO:when=20");
}

#[test]
fn a_failed_write_ends_acknowledgements_for_good() {
    ends("inject=pwrite64:error=EIO:when=200");
}

fn started(command: &mut Command) -> (Process, String) {
    let mut process = Process::spawn(command);
    let (address, _) = process.ready().expect("it starts");
    (process, address)
}

/// A pump that something fails once: what it acknowledges until then is kept, and from then on it
/// acknowledges nothing, whoever comes; after a restart it does.
fn ends(inject: &str) {
    let folder = tempfile::tempdir().unwrap();
    let place = Place::new(folder.path(), folder.path());
    let Some(mut command) = place.traced("full", &disturbing(inject)) else { return };
    let (process, address) = started(&mut command);
    let mut told = ask(&mut Line::to(&address), "text", 100);
    let first = told.iter().position(|it| !it.1.is_accepted()).expect("one that fails");
    assert!(first > 0, "nothing was accepted before");
    told.extend(ask(&mut Line::to(&address), "late", 3));
    let rest = &told[first..];
    assert!(rest.iter().all(|it| it.1.is("P0019")), "{rest:?}");
    // It says at its end as well that the log isn't what it should be.
    process.stop_somehow();
    let (process, address) = started(&mut place.command("full", None));
    let again = ask(&mut Line::to(&address), "again", 10);
    assert!(again.iter().all(|it| it.1.is_accepted()), "{again:?}");
    process.stop();
    told.extend(again);
    check(&place, &told);
}

#[test]
fn a_failed_sync_at_the_end_is_told_and_the_rest_is_left_to_the_next_start() {
    let folder = tempfile::tempdir().unwrap();
    let place = Place::new(folder.path(), folder.path());
    // The log is made, so that its file is synced next when it is closed.
    started(&mut place.command("full", None)).0.stop();
    let file = place.log.to_str().unwrap();
    let failing = "inject=fdatasync:error=EIO:when=1";
    let inject = ["-o", "/dev/null", "-P", file, "-e", "trace=fdatasync", "-e", failing];
    let Some(mut command) = place.traced("full", &inject) else { return };
    let (process, address) = started(&mut command);
    let mut told = ask(&mut Line::to(&address), "text", 20);
    assert!(told.iter().all(|it| it.1.is_accepted()), "{told:?}");
    process.stop_somehow();
    let rest = || std::fs::metadata(format!("{file}-wal")).map_or(0, |it| it.len());
    assert!(rest() > 0, "what isn't safe elsewhere is gone");
    let is_marked = || Path::new(&format!("{file}-failed")).exists();
    assert!(is_marked());
    let (process, address) = started(&mut place.command("full", None));
    assert!(!is_marked(), "it wasn't looked at");
    told.extend(ask(&mut Line::to(&address), "again", 10));
    process.stop();
    assert_eq!(rest(), 0);
    check(&place, &told);
}

/// What strace is told.
fn disturbing(inject: &str) -> [&str; 6] {
    ["-o", "/dev/null", "-e", "trace=fdatasync,fsync,pwrite64", "-e", inject]
}

#[test]
fn a_process_without_descriptors_serves_whom_it_has() {
    let folder = tempfile::tempdir().unwrap();
    let place = Place::new(folder.path(), folder.path());
    let pump = place.command("full", None);
    let mut command = Command::new("sh");
    command.arg("-c").arg(format!("ulimit -n {DESCRIPTORS} && exec \"$@\"")).arg("sh");
    command.arg(pump.get_program()).args(pump.get_args());
    let (process, address) = started(&mut command);
    let mut line = Line::to(&address);
    let mut told = ask(&mut line, "before", 10);
    let mut crowd: Vec<Line> = (0..CROWD).map(|_| Line::to(&address)).collect();
    let texts = (0..CROWD).map(|it| format!("crowd {it}"));
    let texts: Vec<String> = texts.collect();
    crowd.iter_mut().zip(&texts).for_each(|(line, text)| line.send(text));
    // The last to come has to wait; the first is served as ever.
    told.extend(ask(&mut line, "meanwhile", 10));
    assert_eq!(crowd[CROWD - 1].answer_within(SHORT), None, "there are descriptors enough");
    // As others leave, everybody is let in and answered.
    for (mut line, text) in crowd.into_iter().zip(texts) {
        let answer = line.answer();
        told.push((text, answer));
    }
    told.extend(ask(&mut line, "after", 10));
    assert!(told.iter().all(|it| it.1.is_accepted()), "{told:?}");
    process.stop();
    check(&place, &told);
}
