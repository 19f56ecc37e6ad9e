//! The health endpoint of `serve`: is the process alive, and is it ready?
//!
//! Every user of this machine may connect, so a request must cost next to nothing: it is answered without the store, few
//! connections are accepted at a time, and each is closed after a short time. Further connections wait in the backlog and
//! take no file descriptor from the jobs.

use std::fmt::Write as _;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONNECTION;
use axum::response::IntoResponse;
use axum::routing::get;
use axum::serve::Listener;
use refrain::Refrain;
use refrain::admin::Unwell;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Sleep, sleep};

use crate::exit::CliError;
use crate::left_out::LeftOut;

/// The most connections at a time.
const ROOM: usize = 32;
/// How long a connection may last.
const MOMENT: Duration = Duration::from_secs(2);
/// How long to wait after a failed accept, for want of file descriptors.
const AGAIN: Duration = Duration::from_secs(1);

/// Listens on a loopback address. An endpoint that other machines can reach would need authentication.
pub(crate) async fn listen(address: SocketAddr) -> Result<TcpListener, CliError> {
    if !address.ip().is_loopback() {
        return Err(CliError::Refused(format!(
            "{address} can be reached from other machines\n  listen on 127.0.0.1, and put a proxy with authentication in front of it"
        )));
    }
    TcpListener::bind(address).await.map_err(|error| {
        CliError::Refused(format!(
            "cannot listen on {address}: {error}\n  use another port: refrain serve --listen 127.0.0.1:7718"
        ))
    })
}

/// Answers until it is dropped.
pub(crate) async fn answer(listener: TcpListener, refrain: Refrain, left_out: LeftOut) {
    let routes = Router::new()
        .route("/healthz", get(alive))
        .route("/readyz", get(ready_to_work))
        .with_state((refrain, left_out));
    let door = Door { listener, room: Arc::new(Semaphore::new(ROOM)) };
    if let Err(error) = axum::serve(door, routes).await {
        tracing::warn!(%error, "the health endpoint has failed");
    }
}

async fn alive(State((refrain, _)): State<(Refrain, LeftOut)>) -> impl IntoResponse {
    response(refrain.is_alive(), "alive\n")
}

/// An invalid job file or an unreachable database does not make the other jobs unready; each is named.
async fn ready_to_work(State((refrain, left_out)): State<(Refrain, LeftOut)>) -> impl IntoResponse {
    let mut ready = format!("ready\n{left_out}");
    for name in refrain.databases_away() {
        let _ = writeln!(ready, "database unreachable, nothing is relayed from it: {name}");
    }
    response(refrain.is_ready(), &ready)
}

fn response(answer: Result<(), Unwell>, well: &str) -> impl IntoResponse + use<> {
    let (status, text) = match answer {
        Ok(()) => (StatusCode::OK, well.to_owned()),
        Err(unwell) => (StatusCode::SERVICE_UNAVAILABLE, format!("{unwell}\n")),
    };
    (status, [(CONNECTION, "close")], text)
}

/// Accepts a connection when there is room for it.
struct Door {
    listener: TcpListener,
    room: Arc<Semaphore>,
}

impl Listener for Door {
    type Io = Visitor;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Visitor, SocketAddr) {
        loop {
            // It fails only if the semaphore is closed, which never happens.
            let room = Arc::clone(&self.room).acquire_owned().await.ok();
            match self.listener.accept().await {
                Ok((stream, address)) => {
                    return (Visitor { stream, until: Box::pin(sleep(MOMENT)), _room: room }, address);
                }
                Err(error) => {
                    tracing::debug!(%error, "no connection can be accepted");
                    sleep(AGAIN).await;
                }
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// A connection that ends when its time is over.
struct Visitor {
    stream: TcpStream,
    until: Pin<Box<Sleep>>,
    _room: Option<OwnedSemaphorePermit>,
}

impl Visitor {
    fn is_over(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        match self.until.as_mut().poll(context) {
            Poll::Ready(()) => Err(io::ErrorKind::TimedOut.into()),
            Poll::Pending => Ok(()),
        }
    }
}

impl AsyncRead for Visitor {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.is_over(context)?;
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Visitor {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.is_over(context)?;
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.is_over(context)?;
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.is_over(context)?;
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
