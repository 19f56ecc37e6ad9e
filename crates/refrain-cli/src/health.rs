//! Two questions that a machine asks of a process that serves: does it live, and can it work?
//!
//! Everybody on this machine may ask, so a question must cost next to nothing: the answer is known without asking the store,
//! few are let in at a time, and each has a moment to ask and is then shown out. Those who are not let in wait at the door and
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
use refrain::{Refrain, Unwell};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Sleep, sleep};

use crate::exit::Fault;
use crate::left_out::LeftOut;

/// How many may ask at a time.
const ROOM: usize = 32;
/// How long a question and its answer may take.
const MOMENT: Duration = Duration::from_secs(2);
/// How long to wait when nobody can be let in, for want of descriptors.
const AGAIN: Duration = Duration::from_secs(1);

/// Where it listens. Only this machine may ask: what is reachable from elsewhere needs more than this.
pub(crate) async fn listen(address: SocketAddr) -> Result<TcpListener, Fault> {
    if !address.ip().is_loopback() {
        return Err(Fault::Refused(format!(
            "{address} can be reached from other machines\n  listen on 127.0.0.1, and let a proxy in front of it ask who comes"
        )));
    }
    TcpListener::bind(address).await.map_err(|error| {
        Fault::Refused(format!(
            "{address} cannot be listened on: {error}\n  another port: refrain serve --listen 127.0.0.1:7718"
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
        tracing::warn!(%error, "health is not answered any more");
    }
}

async fn alive(State((refrain, _)): State<(Refrain, LeftOut)>) -> impl IntoResponse {
    told(refrain.is_alive(), "alive\n")
}

/// A job that is left out, or a database that does not answer, does not make the others unready; each is named.
async fn ready_to_work(State((refrain, left_out)): State<(Refrain, LeftOut)>) -> impl IntoResponse {
    let mut ready = format!("ready\n{left_out}");
    for name in refrain.databases_away() {
        let _ = writeln!(ready, "nothing is relayed from it, for it does not answer: {name}");
    }
    told(refrain.is_ready(), &ready)
}

fn told(answer: Result<(), Unwell>, well: &str) -> impl IntoResponse + use<> {
    let (status, text) = match answer {
        Ok(()) => (StatusCode::OK, well.to_owned()),
        Err(unwell) => (StatusCode::SERVICE_UNAVAILABLE, format!("{unwell}\n")),
    };
    (status, [(CONNECTION, "close")], text)
}

/// Lets in as many as there is room for.
struct Door {
    listener: TcpListener,
    room: Arc<Semaphore>,
}

impl Listener for Door {
    type Io = Visitor;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Visitor, SocketAddr) {
        loop {
            // It fails only if the room is closed, which nobody does.
            let room = Arc::clone(&self.room).acquire_owned().await.ok();
            match self.listener.accept().await {
                Ok((stream, address)) => {
                    return (Visitor { stream, until: Box::pin(sleep(MOMENT)), _room: room }, address);
                }
                Err(error) => {
                    tracing::debug!(%error, "nobody can be let in");
                    sleep(AGAIN).await;
                }
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// A connection that ends when its moment is over.
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
