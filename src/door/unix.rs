//! A door that listens on a Unix socket. A client that may open the socket has its user's name as
//! its identity, and is an operator.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net as std_net;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nix::unistd::{Uid, User};
use socket2::SockRef;
use tokio::net::{UnixListener, UnixStream};

use crate::clock;
use crate::door::acceptor;
use crate::door::acceptor::{Opened, Source};
use crate::door::client_tokens::Tokens;
use crate::door::client_tokens::is_name;
use crate::door::error::Error;
use crate::door::peer;
use crate::door::peer::Peer;
use crate::door::tcp::Options;
use crate::engine::{Builder, Door, Identity, Plugin, Port, Pump, Tokio};
use crate::listener::Boxed;

/// A door on a Unix socket, for programs on this machine.
///
/// The socket has mode 0600 from the moment that it appears at its path, so only this user and root
/// can connect. The file's permissions guard the door: a client has its user's name as its identity
/// and is an operator. A client that begins with `<authenticate>` has its token's identity instead.
///
/// ```
/// # extern crate pumphouse_door as pumphouse;
/// use pumphouse::door::{Options, Unix};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("pump.sock");
/// let door = Unix::at(&path, Options::default()).await?;
/// let pump = pumphouse::builder().with(door).build()?.start();
/// # pump.shutdown().await?;
/// assert!(!path.exists(), "the file goes when the door closes");
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Unix {
    listener: UnixListener,
    file: Socket,
    tokens: Tokens,
}

impl Unix {
    /// Listens at a path. A socket at which no process listens is replaced. If the path's folder
    /// doesn't exist, it is made, with mode 0700.
    ///
    /// # Errors
    /// If a process listens there already, if another kind of file is there, if the path is too
    /// long for a socket, or if the folder can't be made or written to.
    pub async fn at(path: impl AsRef<Path>, options: Options) -> Result<Unix, Error> {
        let path = path.as_ref();
        let wrong = |error| Error::Socket { path: path.to_owned(), error };
        check_length(path).map_err(wrong)?;
        make_folder(path).map_err(wrong)?;
        let place = Nest::beside(path).map_err(wrong)?;
        clear(path, &place).await.map_err(wrong)?;
        // The socket is made in a private folder and gets its permissions there. Only then is it
        // linked to its path.
        let made = place.0.join("s");
        let listener = std_net::UnixListener::bind(&made).map_err(wrong)?;
        fs::set_permissions(&made, fs::Permissions::from_mode(0o600)).map_err(wrong)?;
        fs::hard_link(&made, path).map_err(wrong)?;
        let file = Socket::of(path).map_err(wrong)?;
        listener.set_nonblocking(true).map_err(wrong)?;
        let listener = UnixListener::from_std(listener).map_err(wrong)?;
        Ok(Unix { listener, file, tokens: options.tokens })
    }

    /// The path that the door listens at.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.file.path
    }
}

/// Checks that the path is short enough for a socket.
fn check_length(path: &Path) -> io::Result<()> {
    let fits = std_net::SocketAddr::from_pathname(path);
    fits.map(drop).map_err(|_| {
        let text = "its path is too long: one of a socket has room for some hundred bytes";
        io::Error::new(io::ErrorKind::InvalidFilename, text)
    })
}

/// Makes the folder of a socket, if there is none. Only this user and root may enter it.
fn make_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|it| !it.as_os_str().is_empty());
    match folder.map(|it| fs::DirBuilder::new().mode(0o700).create(it)) {
        Some(Err(error)) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

/// Removes a socket at which no process listens. The socket is first moved into the private folder,
/// and is tried again there. So if two pumps start at the same time, neither removes the other's
/// socket.
async fn clear(path: &Path, place: &Nest) -> io::Result<()> {
    let there = match fs::symlink_metadata(path) {
        Ok(there) => there,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    if !there.file_type().is_socket() {
        let text = "what stands there is no socket, and is left as it is";
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, text));
    }
    let in_use = || io::Error::new(io::ErrorKind::AddrInUse, "somebody listens there already");
    if answers(path).await {
        return Err(in_use());
    }
    let aside = place.0.join("old");
    match fs::rename(path, &aside) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    }
    if answers(&aside).await {
        fs::hard_link(&aside, path)?;
        return Err(in_use());
    }
    Ok(())
}

/// Whether a process listens at a path. A process that is too busy to answer counts, too.
async fn answers(path: &Path) -> bool {
    match UnixStream::connect(path).await {
        Ok(_) => true,
        Err(error) => {
            use io::ErrorKind::{ConnectionRefused, NotFound};
            !matches!(error.kind(), ConnectionRefused | NotFound)
        }
    }
}

/// A private folder beside a path. Dropping this value removes it.
struct Nest(PathBuf);

impl Nest {
    fn beside(path: &Path) -> io::Result<Nest> {
        let parent = path.parent().filter(|it| !it.as_os_str().is_empty());
        // The name is short, since a socket's path may have only about a hundred bytes.
        let name = format!(".{:08x}", clock::random() >> 32);
        let nest = parent.unwrap_or(Path::new(".")).join(name);
        fs::DirBuilder::new().mode(0o700).create(&nest)?;
        Ok(Nest(nest))
    }
}

impl Drop for Nest {
    fn drop(&mut self) {
        // If this fails, the folder stays. It is empty or holds an unused socket.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The file of a socket. Dropping this value removes the file, if the path still leads to the same
/// file.
#[derive(Debug)]
struct Socket {
    path: PathBuf,
    inode: (u64, u64),
}

impl Socket {
    fn of(path: &Path) -> io::Result<Socket> {
        Ok(Socket { path: path.to_owned(), inode: inode(path)? })
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        if inode(&self.path).is_ok_and(|it| it == self.inode) {
            // If this fails, the next door at this path replaces the file.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Identifies a file by its device and inode number. A link isn't followed.
fn inode(path: &Path) -> io::Result<(u64, u64)> {
    fs::symlink_metadata(path).map(|it| (it.dev(), it.ino()))
}

impl Plugin for Unix {
    fn install(self, builder: &mut Builder) {
        builder.door(self);
    }
}

impl Door for Unix {
    fn serve(self: Box<Self>, pump: Pump) -> Boxed<'static, ()> {
        let Unix { listener, file, tokens } = *self;
        Box::pin(acceptor::serve(
            Listening { listener, file, tokens: tokens.clone() },
            tokens,
            pump,
        ))
    }

    fn identities(&self) -> Vec<Arc<str>> {
        let own = name_of(Uid::current());
        std::iter::once(own).chain(self.tokens.identities()).collect()
    }

    fn has_tokens(&self) -> bool {
        !self.tokens.is_empty()
    }
}

/// Accepts connections at the socket.
struct Listening {
    listener: UnixListener,
    file: Socket,
    tokens: Tokens,
}

impl Source for Listening {
    type Accepted = UnixStream;
    type Stream = UnixStream;

    fn place(&self) -> String {
        self.file.path.display().to_string()
    }

    async fn accept(&self) -> io::Result<(UnixStream, String)> {
        let (stream, _) = self.listener.accept().await?;
        let peer = stream.peer_cred().map(|it| format!("uid {}", it.uid()));
        Ok((stream, peer.unwrap_or_default()))
    }

    async fn open(&self, stream: UnixStream) -> io::Result<Opened<Listening>> {
        let uid = Uid::from_raw(stream.peer_cred()?.uid());
        let process = peer::of_unix(&stream);
        if process == Peer::Unknown && peer::has_left(&SockRef::from(&stream)) {
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        // The lookup runs on a thread of its own, since users' names may come from another machine.
        let (done, found) = tokio::sync::oneshot::channel();
        Tokio::current().spawn_blocking(async move { drop(done.send(name_of(uid))) });
        let name = found.await.map_err(io::Error::other)?;
        let who = Some(Identity { name, operator: true });
        let who = process.identity(who, !self.tokens.is_empty());
        Ok(Opened { stream, who, peer: None })
    }
}

/// Returns the user's name if it may be an identity's name. Otherwise, returns the user's number,
/// such as `uid-1000`.
fn name_of(uid: Uid) -> Arc<str> {
    let user = User::from_uid(uid).ok().flatten();
    let name = user.map(|it| it.name).filter(|it| is_name(it).is_ok());
    name.unwrap_or_else(|| format!("uid-{uid}")).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::symlink_metadata(path).unwrap().mode() & 0o777
    }

    #[tokio::test]
    async fn a_socket_is_private_and_goes_with_its_door() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pump.sock");
        let door = Unix::at(&path, Options::default()).await.unwrap();
        assert_eq!((mode(&path), door.path()), (0o600, &*path));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        drop(door);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[tokio::test]
    async fn only_a_socket_where_nobody_answers_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pump.sock");
        let door = Unix::at(&path, Options::default()).await.unwrap();
        let second = Unix::at(&path, Options::default()).await.unwrap_err();
        assert!(second.to_string().contains("somebody listens there already"), "{second}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        // A process that was killed leaves its file behind.
        let Unix { listener, file, .. } = door;
        std::mem::forget(file);
        drop(listener);
        let door = Unix::at(&path, Options::default()).await.unwrap();
        assert!(answers(&path).await);
        // A file that another process put there meanwhile stays.
        fs::remove_file(&path).unwrap();
        fs::write(&path, "mine").unwrap();
        drop(door);
        let wrong = Unix::at(&path, Options::default()).await.unwrap_err();
        assert!(wrong.to_string().contains("no socket"), "{wrong}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
    }

    #[tokio::test]
    async fn a_path_that_doesnt_fit_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let long = folder.path().join("x".repeat(100));
        let wrong = Unix::at(&long, Options::default()).await.unwrap_err();
        assert!(wrong.to_string().contains("bytes"), "{wrong}");
        let nowhere = folder.path().join("none/none/pump.sock");
        let wrong = Unix::at(&nowhere, Options::default()).await.unwrap_err();
        assert!(wrong.to_string().contains("none/pump.sock"), "{wrong}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[tokio::test]
    async fn a_folder_that_the_door_makes_is_the_users_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run/pump.sock");
        let door = Unix::at(&path, Options::default()).await.unwrap();
        assert_eq!((mode(&folder.path().join("run")), mode(&path)), (0o700, 0o600));
        drop(door);
        // A folder that is there keeps its mode.
        fs::set_permissions(folder.path().join("run"), fs::Permissions::from_mode(0o755)).unwrap();
        Unix::at(&path, Options::default()).await.unwrap();
        assert_eq!(mode(&folder.path().join("run")), 0o755);
    }

    #[test]
    fn a_user_without_a_fit_name_is_a_number() {
        assert_eq!(&*name_of(Uid::from_raw(3_999_999_999)), "uid-3999999999");
        assert!(is_name(&name_of(Uid::current())).is_ok());
    }
}
