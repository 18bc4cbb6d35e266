//! Connections that send nothing, and new connections that are timed beside them.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::time::Instant;

use crate::crowd::envelope;

/// How many new connections are timed.
const NEWCOMERS: usize = 100;

/// The connections that send nothing.
pub(crate) struct Silent {
    _streams: Vec<TcpStream>,
}

impl Silent {
    pub(crate) fn come(address: &str, count: usize) -> Silent {
        let connect = |_| TcpStream::connect(address).expect("`ulimit -n` allows as many");
        Silent { _streams: (0..count).map(connect).collect() }
    }
}

/// Opens new connections one after another. Returns how long each one took from connecting to its
/// first answer, in microseconds. All stay open until the last one is timed.
pub(crate) fn newcomers(address: &str) -> Vec<f64> {
    let mut all = Vec::new();
    let waits = (0..NEWCOMERS).map(|number| {
        let began = Instant::now();
        let mut stream = TcpStream::connect(address).expect("the pump listens");
        stream.write_all(envelope(None, number as u64).as_bytes()).expect("the pump reads");
        let mut line = String::new();
        BufReader::new(&stream).read_line(&mut line).expect("an answer comes");
        assert!(line.contains("<accepted "), "newcomer {number} heard {line:?}");
        all.push(stream);
        began.elapsed().as_secs_f64() * 1e6
    });
    waits.collect()
}
