//! Redis: entries added to a hundred streams. `sync` says when the append-only file is synced.

use std::io::{self, BufRead as _, BufReader, Write as _};
use std::net::TcpStream;

use pumphouse_bench::envelope;

use crate::pipeline::Pipeline;
use crate::server::Server;

pub(crate) fn stream(count: u64, sync: &str) -> io::Result<f64> {
    let server = Server::start("redis-server", |folder, port| {
        let (folder, port) = (folder.display().to_string(), port.to_string());
        let mut arguments = vec!["--bind", "127.0.0.1", "--port", &port, "--dir", &folder];
        arguments.extend(["--save", "", "--appendonly", "yes", "--appendfsync", sync]);
        Ok(arguments.into_iter().map(str::to_owned).collect())
    })?;
    let (writer, reader) = server.connect()?;
    let put = |block: &mut Vec<u8>, number| {
        let (key, body) = (format!("s{}", number % 100), envelope("sess-k3v9x2ma", number));
        let (key_length, length) = (key.len(), body.len());
        let command = write!(
            block,
            "*5\r\n$4\r\nXADD\r\n${key_length}\r\n{key}\r\n$1\r\n*\r\n$1\r\nm\r\n\
             ${length}\r\n{body}\r\n"
        );
        command.expect("there is room in memory");
    };
    let mut line = Vec::new();
    let take = |reader: &mut BufReader<TcpStream>| {
        // The answer has two lines: the length of the new entry's id, and the id.
        for starts_with in [b"$".as_slice(), b""] {
            line.clear();
            reader.read_until(b'\n', &mut line)?;
            if line.is_empty() || !line.starts_with(starts_with) {
                let said = String::from_utf8_lossy(&line);
                return Err(io::Error::other(format!("Redis: {:?}", said.trim_end())));
            }
        }
        Ok(())
    };
    Pipeline { writer, reader, window: u64::MAX }.rate(count, put, take)
}
