//! A network in which a host dies silently: no connection is refused or reset, but no reply ever
//! comes.
//!
//! A relay carries connections to a PostgreSQL. Told to swallow them, it keeps accepting data of
//! the client and forwards none; the connection stays open on both sides. New connections work, as
//! after an address has moved to another host, unless they are to be swallowed too.
//!
//! It has a thread of its own, because a test that waits for a command blocks its own thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;

use super::address::ServerUrl;

pub struct BlackHole {
    address: ServerUrl,
    state: Arc<State>,
    /// The relay goes on until this is dropped.
    _goes_on: oneshot::Sender<()>,
}

#[derive(Default)]
struct State {
    /// Connections with a number up to this one are swallowed.
    swallowed: watch::Sender<u64>,
    swallows_new: AtomicBool,
    accepted: AtomicU64,
    open: AtomicUsize,
}

impl BlackHole {
    /// Starts in front of the server of this URL, for all of its databases.
    pub fn in_front_of(url: &str) -> BlackHole {
        let server = ServerUrl::of(url);
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = server.behind(listener.local_addr().unwrap().port());
        let state = Arc::new(State::default());
        let (goes_on, ends) = oneshot::channel::<()>();
        let accepted = Arc::clone(&state);
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let listener = TcpListener::from_std(listener).unwrap();
                tokio::select! {
                    () = accept(listener, server, accepted) => {}
                    _ = ends => {}
                }
            });
        });
        BlackHole { address, state, _goes_on: goes_on }
    }

    pub fn url(&self, database: &str) -> String {
        self.address.url(database)
    }

    /// From here on all data on open connections is dropped. Returns how many connections are open.
    pub fn swallow_open(&self) -> usize {
        self.state.swallowed.send_replace(self.state.accepted.load(Ordering::SeqCst));
        self.state.open.load(Ordering::SeqCst)
    }

    /// Drops all data on open connections and on those opened from here on.
    pub fn swallow_all(&self) -> usize {
        self.state.swallows_new.store(true, Ordering::SeqCst);
        self.swallow_open()
    }

    /// New connections work again; swallowed ones stay swallowed.
    pub fn let_new_ones_pass(&self) {
        self.swallow_open();
        self.state.swallows_new.store(false, Ordering::SeqCst);
    }
}

async fn accept(listener: TcpListener, server: ServerUrl, state: Arc<State>) {
    let mut connections = JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        let number = state.accepted.fetch_add(1, Ordering::SeqCst) + 1;
        state.open.fetch_add(1, Ordering::SeqCst);
        let (place, state) = ((server.host.clone(), server.port), Arc::clone(&state));
        connections.spawn(async move {
            let (mut from_client, mut to_client) = client.into_split();
            let server = if state.swallows_new.load(Ordering::SeqCst) {
                None
            } else {
                TcpStream::connect(place).await.ok().map(TcpStream::into_split)
            };
            if let Some((mut from_server, mut to_server)) = server {
                let is_over = tokio::select! {
                    biased;
                    () = is_swallowed(&state, number) => false,
                    _ = tokio::io::copy(&mut from_client, &mut to_server) => true,
                    _ = tokio::io::copy(&mut from_server, &mut to_client) => true,
                };
                // The server's side stays open as well: the server does not know that the client has gone.
                if !is_over {
                    swallow(&mut from_client).await;
                }
                let _ = to_server.shutdown().await;
            } else {
                swallow(&mut from_client).await;
            }
            state.open.fetch_sub(1, Ordering::SeqCst);
        });
    }
}

async fn is_swallowed(state: &State, number: u64) {
    // The sender is in the state, so there is always an answer.
    let _ = state.swallowed.subscribe().wait_for(|last| *last >= number).await;
}

/// Accepts all data and never replies, until the client closes.
async fn swallow(client: &mut tokio::net::tcp::OwnedReadHalf) {
    let mut taken = vec![0; 1 << 16];
    while client.read(&mut taken).await.is_ok_and(|length| length > 0) {}
}
