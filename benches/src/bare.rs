//! A server that sends back each line that it gets. With the durability `full`, it writes the line
//! to a file first. Its answer times show what the same rate of pushes costs without a pump.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::thread::JoinHandle;

use pumphouse::log::Durability;

use crate::floors::{self, BLOCK, BLOCKS};

/// The size of the read buffer, in bytes: 16 blocks.
const ROOM: usize = 16 * BLOCK.len();

/// A running server, which serves one connection.
pub(crate) struct Bare {
    pub(crate) address: SocketAddr,
    thread: JoinHandle<io::Result<()>>,
}

impl Bare {
    /// Starts the server on a free port. With `full`, the server writes the lines to a file, in
    /// whole blocks, and syncs the file before it sends the lines back.
    pub(crate) fn start(folder: &Path, durability: Durability) -> io::Result<Bare> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let file = match durability {
            Durability::Full => Some(floors::file(&folder.join("bare"))?),
            Durability::Normal | Durability::Memory => None,
        };
        let thread = std::thread::spawn(move || serve(&listener.accept()?.0, file));
        Ok(Bare { address, thread })
    }

    /// Waits until the client has closed its connection. Returns the error that ended the server,
    /// if any.
    pub(crate) fn end(self) -> io::Result<()> {
        self.thread.join().unwrap_or_else(|_| Err(io::Error::other("the bare server failed")))
    }
}

/// Sends every line back. If there is a file, lines that were read together share one sync of it.
fn serve(mut stream: &TcpStream, mut file: Option<File>) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let (mut text, mut held, mut block) = (vec![0; ROOM], 0, 0);
    loop {
        let read = stream.read(&mut text[held..])?;
        if read == 0 {
            return Ok(());
        }
        held += read;
        let Some(last) = memchr::memrchr(b'\n', &text[..held]) else { continue };
        let whole = last + 1;
        if let Some(file) = &mut file {
            let blocks = whole.div_ceil(BLOCK.len());
            block += blocks;
            if block > BLOCKS {
                file.rewind()?;
                block = blocks;
            }
            file.write_all(&text[..blocks * BLOCK.len()])?;
            file.sync_data()?;
        }
        stream.write_all(&text[..whole])?;
        text.copy_within(whole..held, 0);
        held -= whole;
    }
}
