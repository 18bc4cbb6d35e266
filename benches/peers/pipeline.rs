//! Messages written without waiting for their answers, as far as a window allows.

use std::io::{self, BufReader, Write as _};
use std::net::{Shutdown, TcpStream};
use std::sync::{Condvar, Mutex};
use std::time::Instant;

/// Bytes that are gathered before they are written.
const BLOCK: usize = 32 * 1_024;

/// A connection to write to, one to read from, and how many messages may be unanswered at once.
pub(crate) struct Pipeline {
    pub(crate) writer: TcpStream,
    pub(crate) reader: BufReader<TcpStream>,
    pub(crate) window: u64,
}

impl Pipeline {
    /// Sends `count` messages. Returns how many per second came through, up to the last one. `put`
    /// appends a message to the bytes to write, and `take` reads the answer to one message.
    pub(crate) fn rate(
        mut self,
        count: u64,
        put: impl Fn(&mut Vec<u8>, u64) + Send,
        mut take: impl FnMut(&mut BufReader<TcpStream>) -> io::Result<()>,
    ) -> io::Result<f64> {
        let (taken, more, window) = (Mutex::new(0_u64), Condvar::new(), self.window);
        let written = self.writer.try_clone()?;
        let since = Instant::now();
        std::thread::scope(|scope| {
            let (taken, more, writer) = (&taken, &more, &mut self.writer);
            let writing = scope.spawn(move || {
                let mut block = Vec::new();
                for number in 0..count {
                    put(&mut block, number);
                    if block.len() >= BLOCK || number + 1 == count {
                        writer.write_all(&block)?;
                        block.clear();
                        let is_full = |taken: &mut u64| number >= taken.saturating_add(window);
                        let locked = taken.lock().expect("no panic");
                        drop(more.wait_while(locked, is_full).expect("no panic"));
                    }
                }
                Ok::<_, io::Error>(())
            });
            let taking = (0..count).try_for_each(|_| {
                take(&mut self.reader)?;
                *taken.lock().expect("no panic") += 1;
                more.notify_one();
                Ok(())
            });
            if taking.is_err() {
                // Reading failed: the writer must neither write nor wait any longer.
                let _ = written.shutdown(Shutdown::Both);
                *taken.lock().expect("no panic") = u64::MAX;
                more.notify_one();
            }
            let written = writing.join().expect("no panic");
            taking.and(written)
        })?;
        Ok(count as f64 / since.elapsed().as_secs_f64())
    }
}
