//! Where the clients of one store meet their daemon: a socket that only its user may use, and the lock
//! of the daemon that listens there.
//!
//! The place is `$XDG_RUNTIME_DIR/reminderd/`, else the store's own directory, closed to others. It
//! holds, by a name that belongs to the store:
//!
//! | file | what it is |
//! |---|---|
//! | `NAME.sock` | the socket; one that nobody listens on is left over from a crash |
//! | `NAME.tcp` | instead of it, where a socket cannot be: a port of the loopback and its secret |
//! | `NAME.lock` | locked by the daemon that listens, or is about to |
//! | `NAME.start` | locked by the client that starts one |
//!
//! The system lets go of a lock when its process ends, however it ends, so none is ever stale.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::net::Ipv4Addr;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use rustix::process::geteuid;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream, unix::UCred};

use super::handshake::Secret;
use crate::store;

/// Where the clients of one store meet their daemon.
#[derive(Clone, Debug)]
pub struct Endpoint {
    directory: PathBuf,
    name: String,
}

/// The right to listen at an endpoint. It ends with the process, or when it is dropped.
#[derive(Debug)]
pub struct Claim {
    endpoint: Endpoint,
    /// Kept open, and with it locked.
    _lock: File,
}

/// A listening socket.
#[derive(Debug)]
pub enum Listener {
    /// One that only its user may use.
    Unix(UnixListener),
    /// One on the loopback, with a secret that only its user can read.
    Tcp(TcpListener, Secret),
}

/// One end of a connection.
pub struct Stream {
    /// What the other end says.
    pub input: Box<dyn AsyncRead + Send + Unpin>,
    /// What it is told.
    pub output: Box<dyn AsyncWrite + Send + Unpin>,
    /// What both ends have to know, where the system does not say who is at the other one.
    pub secret: Option<Secret>,
}

/// A port of the loopback and what has to be known to use it.
#[derive(Debug, Serialize, Deserialize)]
struct Port {
    port: u16,
    secret: Secret,
}

impl Endpoint {
    /// The endpoint of the store in a directory, or of daemons without one. Makes its place where it
    /// is not there, and closes it to others.
    pub fn of(state: Option<&Path>) -> io::Result<Self> {
        let endpoint = Self::named(state)?;
        store::prepare(&endpoint.directory)?;
        if fs::metadata(&endpoint.directory)?.uid() != geteuid().as_raw() {
            let message = format!("{} belongs to another user", endpoint.directory.display());
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, message));
        }
        Ok(endpoint)
    }

    /// The same, for who only looks whether a daemon is there: makes nothing.
    pub fn named(state: Option<&Path>) -> io::Result<Self> {
        let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
        let runtime = runtime.filter(|path| path.is_absolute() && path.is_dir());
        let directory = match (runtime, state) {
            (Some(runtime), _) => runtime.join("reminderd"),
            (None, Some(state)) => state.to_owned(),
            (None, None) => store::default_directory().ok_or_else(|| {
                io::Error::other("none of XDG_RUNTIME_DIR, XDG_STATE_HOME and HOME says where")
            })?,
        };
        let name = match state {
            Some(state) => {
                let hash = blake3::hash(state.as_os_str().as_encoded_bytes());
                hash.to_hex()[..16].to_owned()
            }
            None => "ephemeral".to_owned(),
        };
        Ok(Self { directory, name })
    }

    /// The socket.
    pub fn socket(&self) -> PathBuf {
        self.file("sock")
    }

    fn port_file(&self) -> PathBuf {
        self.file("tcp")
    }

    fn file(&self, extension: &str) -> PathBuf {
        self.directory.join(format!("{}.{extension}", self.name))
    }

    /// The right to listen, unless another daemon has it.
    pub fn claim(&self) -> io::Result<Option<Claim>> {
        let lock = self.lock("lock")?;
        Ok(lock.map(|lock| Claim { endpoint: self.clone(), _lock: lock }))
    }

    /// The right to start a daemon, until it is dropped, unless another client has it.
    pub fn starter(&self) -> io::Result<Option<File>> {
        self.lock("start")
    }

    fn lock(&self, extension: &str) -> io::Result<Option<File>> {
        let path = self.file(extension);
        let file =
            OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(file)),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Connects to the daemon; `None` when nobody listens. The descriptor is the socket's too.
    pub async fn dial(&self) -> io::Result<Option<(Stream, OwnedFd)>> {
        match UnixStream::connect(self.socket()).await {
            Ok(socket) => {
                if !is_own_user(&socket.peer_cred()?) {
                    let message = "another user's process listens where the daemon should";
                    return Err(io::Error::new(io::ErrorKind::PermissionDenied, message));
                }
                let descriptor = socket.as_fd().try_clone_to_owned()?;
                return Ok(Some((unix(socket), descriptor)));
            }
            Err(error) if is_nobody(&error) => {}
            Err(error) => return Err(error),
        }
        let port = match fs::read(self.port_file()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            port => port?,
        };
        let Ok(Port { port, secret }) = serde_json::from_slice(&port) else { return Ok(None) };
        match TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await {
            Ok(socket) => {
                let descriptor = socket.as_fd().try_clone_to_owned()?;
                Ok(Some((tcp(socket, secret)?, descriptor)))
            }
            Err(error) if is_nobody(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Whether nobody listens, or the path is too long for a socket.
fn is_nobody(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused | io::ErrorKind::InvalidInput
    )
}

impl Claim {
    /// Listens: on the socket, or on the loopback where `tcp` asks for that or the socket's path is
    /// longer than the system allows. What a crash left over is removed.
    pub fn listen(&self, tcp: bool) -> io::Result<Listener> {
        self.withdraw();
        if !tcp {
            match UnixListener::bind(self.endpoint.socket()) {
                Ok(listener) => {
                    let mode = fs::Permissions::from_mode(0o600);
                    fs::set_permissions(self.endpoint.socket(), mode)?;
                    return Ok(Listener::Unix(listener));
                }
                Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                    tracing::warn!("{error}: listening on the loopback instead");
                }
                Err(error) => return Err(error),
            }
        }
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let secret = Secret::random()?;
        let port = Port { port: listener.local_addr()?.port(), secret: secret.clone() };
        // Whoever reads it reads all of it.
        let path = self.endpoint.port_file();
        let mut file = tempfile::NamedTempFile::new_in(&self.endpoint.directory)?;
        file.write_all(&serde_json::to_vec(&port)?)?;
        file.persist(path).map_err(|error| error.error)?;
        Ok(Listener::Tcp(TcpListener::from_std(listener)?, secret))
    }

    /// Nobody finds the daemon here any more.
    pub fn withdraw(&self) {
        for path in [self.endpoint.socket(), self.endpoint.port_file()] {
            match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    tracing::warn!(%error, path = %path.display(), "it could not be removed");
                }
                _ => {}
            }
        }
    }
}

impl Listener {
    /// The next connection; `None` for one of another user, which is closed unread.
    pub async fn accept(&self) -> io::Result<Option<Stream>> {
        match self {
            Self::Unix(listener) => {
                let (socket, _) = listener.accept().await?;
                let credentials = socket.peer_cred()?;
                if is_own_user(&credentials) {
                    return Ok(Some(unix(socket)));
                }
                tracing::warn!(user = credentials.uid(), "another user was refused");
                Ok(None)
            }
            Self::Tcp(listener, secret) => {
                let (socket, _) = listener.accept().await?;
                tcp(socket, secret.clone()).map(Some)
            }
        }
    }

    /// Where it listens, for people.
    pub fn place(&self, endpoint: &Endpoint) -> PathBuf {
        match self {
            Self::Unix(_) => endpoint.socket(),
            Self::Tcp(..) => endpoint.port_file(),
        }
    }
}

fn is_own_user(credentials: &UCred) -> bool {
    credentials.uid() == geteuid().as_raw()
}

fn unix(socket: UnixStream) -> Stream {
    let (input, output) = socket.into_split();
    Stream { input: Box::new(input), output: Box::new(output), secret: None }
}

fn tcp(socket: TcpStream, secret: Secret) -> io::Result<Stream> {
    socket.set_nodelay(true)?;
    let (input, output) = socket.into_split();
    Ok(Stream { input: Box::new(input), output: Box::new(output), secret: Some(secret) })
}

impl std::fmt::Debug for Stream {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Stream").field("secret", &self.secret).finish_non_exhaustive()
    }
}
