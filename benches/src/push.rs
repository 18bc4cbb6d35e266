//! Measures pushes over one connection. The client doesn't wait between pushes, and the listener
//! returns nothing.

use pumphouse::clock;
use pumphouse::id::ThreadId;
use pumphouse::listener::Listener;
use pumphouse_bench::envelope;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::measure::rate;
use crate::output::Failure;
use crate::pump::{Served, Sink};
use crate::row::{Figure, Row};
use crate::sitting::{DURABILITIES, Sitting};

const PUSH: &str = "push, one connection, pipelined";

/// How many bytes are written at once, roughly.
const BLOCK: usize = 32 * 1_024;

pub(crate) async fn rows(sitting: &mut Sitting) -> Result<(), Failure> {
    for durability in DURABILITIES {
        if sitting.wants(PUSH, Some(durability)) {
            let sink = Listener::new("sink").on(async |_: Sink| {}).inline().pure();
            let served = Served::start(sitting.folder(), "push", durability, sink).await?;
            let per_second = pushed(&served, sitting.times(300_000.0)).await?;
            served.stop().await?;
            let row = Row::new(PUSH, Some(durability)).figure(Figure::PerSecond(per_second));
            sitting.show(&row)?;
        }
    }
    Ok(())
}

/// Returns the pushes per second, from the first write to the last acknowledgement.
async fn pushed(served: &Served, count: u64) -> Result<f64, Failure> {
    let threads = served.threads().await?;
    let socket = TcpStream::connect(served.address).await?;
    socket.set_nodelay(true)?;
    let (mut reader, mut writer) = socket.into_split();
    let since = clock::now_us();
    let write = async {
        let mut block = String::new();
        for (number, thread) in (0..count).zip(threads.iter().map(ThreadId::as_str).cycle()) {
            block.push_str(&envelope(thread, number));
            if block.len() > BLOCK {
                writer.write_all(block.as_bytes()).await?;
                block.clear();
            }
        }
        writer.write_all(block.as_bytes()).await
    };
    let read = async {
        let (mut answers, mut buffer) = (0, vec![0; 64 * 1_024]);
        while answers < count {
            let read = reader.read(&mut buffer).await?;
            if read == 0 {
                return Err(std::io::Error::other("the connection was closed"));
            }
            answers += memchr::memchr_iter(b'\n', &buffer[..read]).count() as u64;
        }
        Ok(())
    };
    tokio::try_join!(write, read)?;
    Ok(rate(count, since))
}
