//! The listening socket: connections in, one task each, and an orderly end.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use moraine_commit::{CatalogOptions, StoreUrl};
use pgwire::api::RandomPidSecretKeyGenerator;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use crate::handler::{Connection, Handlers, Shared};
use crate::lakes::Lakes;

/// Connections one server keeps open. A DuckDB process takes a few for each attached lake.
pub const CONNECTIONS_MAX: usize = 1_024;
/// How long running statements may take to end when the server is asked to stop.
pub const DRAIN_SECONDS: u64 = 10;
/// How long a lake stays open that nobody uses, unless told otherwise.
pub const IDLE_CLOSE_SECONDS: u64 = 300;
/// How often lakes that nobody uses are looked for, within the time that they stay open.
const IDLE_LOOKS: u32 = 4;

/// How long a client may take to hear why its connection ends.
const LAST_WORDS_WAIT: Duration = Duration::from_secs(1);

/// How a server is started.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ServerOptions {
    /// The address to listen on; port 0 takes a free one. Loopback only.
    pub listen: SocketAddr,
    /// The place below which all lakes are: the catalog of database `d`, schema `s` at `catalog/d/s`.
    pub root: StoreUrl,
    /// How lakes are opened.
    pub catalog: CatalogOptions,
    /// How long running statements may take to end when the server is asked to stop; [`DRAIN_SECONDS`] unless set.
    pub drain: Duration,
    /// How long a lake stays open that nobody uses; [`IDLE_CLOSE_SECONDS`] unless set, for ever where there is none. The next
    /// use opens it again.
    pub idle_close: Option<Duration>,
}

impl ServerOptions {
    /// Options with all defaults.
    #[must_use]
    pub fn new(listen: SocketAddr, root: StoreUrl) -> ServerOptions {
        let drain = Duration::from_secs(DRAIN_SECONDS);
        ServerOptions {
            listen,
            root,
            catalog: CatalogOptions::default(),
            drain,
            idle_close: Some(Duration::from_secs(IDLE_CLOSE_SECONDS)),
        }
    }
}

/// Why a server did not start, or ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// Anything but loopback needs a password, and there are none yet.
    #[error(
        "{listen} is not a loopback address, and this server knows no passwords: whoever reaches it may do anything; \
         listen on 127.0.0.1 or [::1], and reach it from elsewhere through a tunnel"
    )]
    NotLoopback {
        /// The address asked for.
        listen: SocketAddr,
    },
    /// The address cannot be listened on.
    #[error("cannot listen on {listen}: {source}; choose another address or port, or stop who has it")]
    Listen {
        /// The address asked for.
        listen: SocketAddr,
        /// What the system said.
        source: std::io::Error,
    },
}

/// A server that listens but does not yet accept.
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    shared: Arc<Shared>,
    drain: Duration,
    idle_close: Option<Duration>,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

impl Server {
    /// Takes the address; returns the server and the address it got.
    ///
    /// # Errors
    /// [`ServeError::NotLoopback`], [`ServeError::Listen`].
    pub async fn bind(options: ServerOptions) -> Result<(Server, SocketAddr), ServeError> {
        let listen = options.listen;
        if !listen.ip().is_loopback() {
            return Err(ServeError::NotLoopback { listen });
        }
        let cannot = |source| ServeError::Listen { listen, source };
        let listener = TcpListener::bind(listen).await.map_err(cannot)?;
        let address = listener.local_addr().map_err(cannot)?;
        let shared = Arc::new(Shared {
            lakes: Arc::new(Lakes::new(options.root, options.catalog)),
            cancel: Arc::default(),
            texts: Arc::default(),
            pids: RandomPidSecretKeyGenerator::default(),
        });
        Ok((
            Server {
                listener,
                address,
                shared,
                drain: options.drain,
                idle_close: options.idle_close,
            },
            address,
        ))
    }

    /// The address this server listens on.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `shutdown` ends. Then no connection is accepted any more, sessions that run no statement are told 57P01
    /// and closed, their open transactions given up; running statements, COMMIT among them, get the drain time to end, and
    /// all lakes are closed.
    ///
    /// # Errors
    /// None at present; connections fail alone.
    pub async fn run(self, shutdown: impl Future<Output = ()>) -> Result<(), ServeError> {
        let (stopping, _) = watch::channel(false);
        let mut connections = JoinSet::new();
        let slots = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        tokio::pin!(shutdown);
        let idle_closing = close_idle(Arc::clone(&self.shared.lakes), self.idle_close);
        tokio::pin!(idle_closing);
        loop {
            tokio::select! {
                () = &mut shutdown => break,
                () = &mut idle_closing => {}
                accepted = self.listener.accept() => match accepted {
                    Ok((socket, peer)) => match Arc::clone(&slots).try_acquire_owned() {
                        Ok(slot) => {
                            let shared = Arc::clone(&self.shared);
                            let stopping = stopping.subscribe();
                            connections.spawn(async move {
                                connection(shared, socket, stopping).await;
                                drop(slot);
                            });
                        }
                        Err(_) => {
                            tracing::warn!(%peer, limit = CONNECTIONS_MAX, "connection refused: too many");
                            connections.spawn(refuse(socket));
                        }
                    },
                    Err(error) => {
                        // Out of file descriptors, most likely: accepting again at once would spin.
                        tracing::warn!(%error, "accepting a connection failed");
                        tokio::time::sleep(Duration::from_millis(50)).await;
                    }
                },
                Some(ended) = connections.join_next(), if !connections.is_empty() => log_end(ended),
            }
        }
        drop(self.listener);
        tracing::info!(connections = connections.len(), "stopping");
        let _ = stopping.send(true);
        let drained = tokio::time::timeout(self.drain, async {
            while let Some(ended) = connections.join_next().await {
                log_end(ended);
            }
        });
        if drained.await.is_err() {
            tracing::warn!(
                connections = connections.len(),
                "the drain time is over; closing what is left"
            );
            connections.shutdown().await;
        }
        self.shared.lakes.close().await;
        Ok(())
    }
}

/// Closes lakes that nobody uses, for ever.
async fn close_idle(lakes: Arc<Lakes>, idle: Option<Duration>) {
    let Some(idle) = idle else {
        return std::future::pending().await;
    };
    loop {
        tokio::time::sleep(idle / IDLE_LOOKS).await;
        lakes.close_idle(idle).await;
    }
}

fn log_end(ended: Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended
        && error.is_panic()
    {
        tracing::error!(%error, "a connection panicked");
    }
}

/// Serves one connection to its end, or until the server stops and no statement is running on it.
async fn connection(shared: Arc<Shared>, socket: TcpStream, mut stopping: watch::Receiver<bool>) {
    let Ok((socket, last_words)) = doubled(socket) else {
        tracing::warn!("a connection could not be set up");
        return;
    };
    let connection = Arc::new(Connection::new(shared));
    {
        let served = pgwire::tokio::process_socket(socket, None, Handlers(Arc::clone(&connection)));
        tokio::pin!(served);
        tokio::select! {
            ended = &mut served => return log_io(ended),
            _ = stopping.wait_for(|stopping| *stopping) => {}
        }
        // A statement that is running comes to its end, a COMMIT most of all; a session that waits for its next is closed,
        // and its transaction with it.
        while !connection.is_idle() {
            tokio::select! {
                ended = &mut served => return log_io(ended),
                () = tokio::time::sleep(Duration::from_millis(20)) => {}
            }
        }
    }
    let message = "terminating connection due to administrator command";
    let error = crate::errors::SqlError::new(crate::errors::state::ADMIN_SHUTDOWN, message);
    tell(last_words, error).await;
}

/// A socket, and the same socket for what is said when nobody else writes to it any more.
fn doubled(socket: TcpStream) -> std::io::Result<(TcpStream, TcpStream)> {
    let socket = socket.into_std()?;
    let second = socket.try_clone()?;
    Ok((TcpStream::from_std(socket)?, TcpStream::from_std(second)?))
}

fn log_io(ended: Result<(), std::io::Error>) {
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection broke");
    }
}

/// Tells a client that there is no room, in the one message it will understand before any other.
async fn refuse(socket: TcpStream) {
    let error = crate::errors::SqlError::new(
        crate::errors::state::TOO_MANY_CONNECTIONS,
        format!("this server has {CONNECTIONS_MAX} connections open, as many as it may"),
    );
    tell(socket, error).await;
}

/// Ends a connection with an error.
async fn tell(mut socket: TcpStream, error: crate::errors::SqlError) {
    use pgwire::messages::PgWireBackendMessage;
    use pgwire::messages::response::ErrorResponse;
    let response = PgWireBackendMessage::ErrorResponse(ErrorResponse::from(error.fatal().into_info()));
    let mut bytes = bytes::BytesMut::new();
    if response.encode(&mut bytes).is_ok() {
        // A client that does not read keeps nobody waiting.
        let told = async {
            let _ = socket.write_all(&bytes).await;
            let _ = socket.shutdown().await;
        };
        let _ = tokio::time::timeout(LAST_WORDS_WAIT, told).await;
    }
}

/// Binds and serves; see [`Server::bind`] and [`Server::run`].
///
/// # Errors
/// As those two.
pub async fn serve(options: ServerOptions, shutdown: impl Future<Output = ()>) -> Result<(), ServeError> {
    let (server, _) = Server::bind(options).await?;
    server.run(shutdown).await
}
