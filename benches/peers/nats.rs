//! NATS: messages from a publisher to a subscriber, and messages into a stream in files, which the
//! server acknowledges.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;

use pumphouse_bench::envelope;

use crate::pipeline::Pipeline;
use crate::server::Server;

/// The most messages on their way to the subscriber. The server drops a subscriber that is 64 MiB
/// behind.
const SUBSCRIBER_WINDOW: u64 = 65_536;
/// The most messages into the stream that are not acknowledged yet.
const STREAM_WINDOW: u64 = 4_096;

const STREAM: &str = r#"{"name":"S","subjects":["s.*"],"storage":"file","retention":"limits",
"discard":"old","num_replicas":1,"max_consumers":-1,"max_msgs":-1,"max_bytes":-1,"max_age":0}"#;

/// Measures messages from one publisher to one subscriber, which the server doesn't store. Returns
/// their number per second.
pub(crate) fn core(count: u64) -> io::Result<f64> {
    let server = start()?;
    let (writer, _kept) = connect(&server)?;
    let (mut listener, mut reader) = connect(&server)?;
    listener.write_all(b"SUB t 1\r\nPING\r\n")?;
    while line(&mut reader)? != "PONG" {}
    let put = |block: &mut Vec<u8>, number| publish(block, "t", &envelope("sess-k3v9x2ma", number));
    let take = |reader: &mut BufReader<TcpStream>| message(reader, &mut listener).map(drop);
    Pipeline { writer, reader, window: SUBSCRIBER_WINDOW }.rate(count, put, take)
}

/// Measures messages into a stream of a hundred subjects. The server acknowledges each message once
/// it is written to a file, and syncs the file every two minutes. Returns messages per second.
pub(crate) fn jetstream(count: u64) -> io::Result<f64> {
    let server = start()?;
    let (mut writer, mut reader) = connect(&server)?;
    let mut block = b"SUB _INBOX.p 1\r\n".to_vec();
    publish(&mut block, "$JS.API.STREAM.CREATE.S _INBOX.p", STREAM);
    writer.write_all(&block)?;
    let made = message(&mut reader, &mut writer)?;
    if made.contains("\"error\"") {
        return Err(io::Error::other(format!("the stream isn't made: {made}")));
    }
    let put = |block: &mut Vec<u8>, number| {
        let subject = format!("s.{} _INBOX.p", number % 100);
        publish(block, &subject, &envelope("sess-k3v9x2ma", number));
    };
    let mut pong = writer.try_clone()?;
    let take = |reader: &mut BufReader<TcpStream>| {
        let told = message(reader, &mut pong)?;
        let is_taken = told.contains("\"seq\"");
        is_taken.then_some(()).ok_or_else(|| io::Error::other(format!("it isn't taken: {told}")))
    };
    Pipeline { writer, reader, window: STREAM_WINDOW }.rate(count, put, take)
}

fn start() -> io::Result<Server> {
    Server::start("nats-server", |folder, port| {
        let folder = folder.join("nats").display().to_string();
        let arguments = ["-a", "127.0.0.1", "-p", &port.to_string(), "-js", "-sd", &folder];
        Ok(arguments.map(str::to_owned).to_vec())
    })
}

fn connect(server: &Server) -> io::Result<(TcpStream, BufReader<TcpStream>)> {
    let (mut writer, mut reader) = server.connect()?;
    writer.write_all(b"CONNECT {\"verbose\":false,\"pedantic\":false}\r\nPING\r\n")?;
    while line(&mut reader)? != "PONG" {}
    Ok((writer, reader))
}

/// Appends a message to the bytes to write. `subject` may also have, after a space, the subject for
/// the answer.
fn publish(block: &mut Vec<u8>, subject: &str, body: &str) {
    block.extend_from_slice(format!("PUB {subject} {}\r\n{body}\r\n", body.len()).as_bytes());
}

/// Reads the body of the next message. Answers the server's pings meanwhile.
fn message(reader: &mut BufReader<TcpStream>, writer: &mut TcpStream) -> io::Result<String> {
    loop {
        let line = line(reader)?;
        if line == "PING" {
            writer.write_all(b"PONG\r\n")?;
        }
        if line.starts_with("MSG ") {
            let length = line.rsplit(' ').next().and_then(|it| it.parse::<usize>().ok());
            let mut body = vec![0; length.expect("a message has a length") + 2];
            reader.read_exact(&mut body)?;
            return String::from_utf8(body).map_err(io::Error::other);
        }
    }
}

fn line(reader: &mut BufReader<TcpStream>) -> io::Result<String> {
    let mut line = String::new();
    reader.read_line(&mut line)?;
    match line.trim_end() {
        "" => Err(io::Error::other("NATS closed the connection")),
        error if error.starts_with("-ERR") => Err(io::Error::other(format!("NATS: {error}"))),
        line => Ok(line.to_owned()),
    }
}
