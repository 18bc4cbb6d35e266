//! A server of another project: a program from `PATH`, on a free port and in its own folder.

use std::fs::{self, File};
use std::io::{self, BufReader, ErrorKind};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// How long a server may take until it listens.
const PATIENCE: Duration = Duration::from_secs(20);

/// A running server; killed when this value is dropped.
pub(crate) struct Server {
    child: Child,
    port: u16,
    folder: TempDir,
}

impl Server {
    /// Starts a program and waits until it listens. `arguments` makes the program's arguments of
    /// its folder and its port.
    pub(crate) fn start(
        program: &str,
        arguments: impl FnOnce(&Path, u16) -> io::Result<Vec<String>>,
    ) -> io::Result<Server> {
        let folder = tempfile::tempdir()?;
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let said = File::create(folder.path().join("said"))?;
        let mut command = Command::new(program);
        command.args(arguments(folder.path(), port)?).current_dir(folder.path());
        command.stdin(Stdio::null()).stdout(said.try_clone()?).stderr(said);
        let child = command.spawn().map_err(|error| match error.kind() {
            ErrorKind::NotFound => io::Error::other(format!("{program} isn't in PATH")),
            _ => io::Error::other(format!("{program} doesn't start: {error}")),
        })?;
        let mut server = Server { child, port, folder };
        let since = Instant::now();
        while server.connect().is_err() {
            let ended = server.child.try_wait()?;
            if ended.is_some() || since.elapsed() > PATIENCE {
                let said = fs::read_to_string(server.folder.path().join("said"))?;
                let last = said.lines().last().unwrap_or("it says nothing").to_owned();
                return Err(io::Error::other(format!("{program} doesn't listen: {last}")));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(server)
    }

    /// Connects to the server. Returns the connection twice, to write and to read.
    pub(crate) fn connect(&self) -> io::Result<(TcpStream, BufReader<TcpStream>)> {
        let stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.set_nodelay(true)?;
        let reader = BufReader::with_capacity(64 * 1_024, stream.try_clone()?);
        Ok((stream, reader))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The server may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
