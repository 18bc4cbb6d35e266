//! Clients that send large messages and never read the answers.

use std::io::{ErrorKind, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::crowd::large;

/// Bytes of text in each message.
const TEXT_BYTES: usize = 1_000_000;
/// The pause when no socket takes any bytes.
const REST: Duration = Duration::from_millis(10);

/// The clients that never read.
pub(crate) struct Unread {
    clients: Vec<Sender>,
}

/// How much the clients sent, and how many of them were cut off.
#[derive(Debug, Default)]
pub(crate) struct Sent {
    pub(crate) mib: u64,
    /// Clients whose connection the pump closed.
    pub(crate) cut: usize,
}

struct Sender {
    stream: TcpStream,
    /// Bytes of the current message that were sent so far.
    at: usize,
    is_cut: bool,
}

impl Unread {
    pub(crate) fn come(address: &str, count: usize) -> Unread {
        let clients = (0..count).map(|_| {
            let stream = TcpStream::connect(address).expect("the pump listens");
            stream.set_nonblocking(true).expect("a socket");
            Sender { stream, at: 0, is_cut: false }
        });
        Unread { clients: clients.collect() }
    }

    /// Sends for `time`, as much as the sockets take.
    pub(crate) fn send(&mut self, time: Duration) -> Sent {
        let (message, began) = (large(TEXT_BYTES), Instant::now());
        let mut bytes = 0;
        while began.elapsed() < time {
            let mut taken = 0;
            for it in self.clients.iter_mut().filter(|it| !it.is_cut) {
                taken += it.send(message.as_bytes());
            }
            bytes += taken;
            if taken == 0 {
                std::thread::sleep(REST);
            }
        }
        let cut = self.clients.iter().filter(|it| it.is_cut).count();
        Sent { mib: bytes as u64 >> 20, cut }
    }
}

impl Sender {
    fn send(&mut self, message: &[u8]) -> usize {
        match self.stream.write(&message[self.at..]) {
            Ok(bytes) => {
                self.at = (self.at + bytes) % message.len();
                bytes
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => 0,
            Err(_) => {
                self.is_cut = true;
                0
            }
        }
    }
}
