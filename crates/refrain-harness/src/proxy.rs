//! A network that fails, between a client and its PostgreSQL.
//!
//! The most important cut loses a reply: the server has done the work, and the client cannot know.
//! It comes in two forms. The server has finished before the cut ([`Proxy::cut_after_forwarding`]),
//! or it is still working and continues ([`Proxy::cut_at_once`], [`Proxy::cut_in_the_middle`]):
//! then a client that looks up the result looks too early. There is also a slow network, and one
//! that swallows all traffic.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::address::ServerUrl;

const LONGEST_PATTERN: usize = 256;

pub struct Proxy {
    address: ServerUrl,
    cuts: Arc<Cuts>,
    connections: Arc<Mutex<JoinSet<()>>>,
    _accepting: JoinSet<()>,
}

/// When a connection is cut, once its pattern was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum When {
    Answered,
    AtOnce,
}

#[derive(Default)]
struct Cuts {
    /// The pattern of the next cut.
    pattern: Mutex<Option<(Vec<u8>, When)>>,
    struck: AtomicUsize,
    /// The connection whose client is cut off, by its port as the server sees it.
    in_the_middle: watch::Sender<Option<u16>>,
    /// The delay of all data from the client to the server.
    delay: Mutex<Duration>,
    /// Whether all data is dropped, in both directions.
    swallows: watch::Sender<bool>,
    /// How many messages were swallowed on their way to the server.
    swallowed: AtomicUsize,
}

impl Proxy {
    /// Starts in front of the server of this URL, for all of its databases.
    pub async fn in_front_of(url: &str) -> Proxy {
        let server = ServerUrl::of(url);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = server.behind(listener.local_addr().unwrap().port());
        let cuts = Arc::new(Cuts::default());
        let connections = Arc::new(Mutex::new(JoinSet::new()));
        let mut accepting = JoinSet::new();
        accepting.spawn(accept(listener, server, cuts.clone(), connections.clone()));
        Proxy { address, cuts, connections, _accepting: accepting }
    }

    pub fn url(&self, database: &str) -> String {
        self.address.url(database)
    }

    /// Once: when a client sends this pattern next, the server gets it, and its reply is lost with the connection.
    ///
    /// A statement with parameters is sent before it is executed; the text to wait for is that of one without, such
    /// as `COMMIT`.
    pub fn cut_after_forwarding(&self, pattern: &[u8]) {
        assert!((1..=LONGEST_PATTERN).contains(&pattern.len()), "{pattern:?} is not a valid pattern");
        *self.cuts.pattern.lock().unwrap() = Some((pattern.to_owned(), When::Answered));
    }

    /// Once: when a client sends this pattern next, the client is cut off before the server replies; the server continues.
    pub fn cut_at_once(&self, pattern: &[u8]) {
        self.cut_after_forwarding(pattern);
        *self.cuts.pattern.lock().unwrap() = Some((pattern.to_owned(), When::AtOnce));
    }

    /// Cuts off the client of the connection with this port at the server, and waits for it. The server continues.
    pub async fn cut_in_the_middle(&self, port: u16) {
        let before = self.cuts();
        self.cuts.in_the_middle.send_replace(Some(port));
        crate::eventually::eventually("the client is cut off", crate::eventually::DEADLINE, async || {
            self.cuts() > before
        })
        .await;
        self.cuts.in_the_middle.send_replace(None);
    }

    /// From here on all data to the server is delayed by this time.
    pub fn delay(&self, length: Duration) {
        *self.cuts.delay.lock().unwrap() = length;
    }

    /// From here on all traffic is dropped silently, in both directions; or all of it passes again.
    pub fn swallow(&self, swallows: bool) {
        self.cuts.swallows.send_replace(swallows);
    }

    /// How many messages to the server were dropped.
    pub fn swallowed(&self) -> usize {
        self.cuts.swallowed.load(Ordering::SeqCst)
    }

    /// Withdraws a cut that has not happened yet.
    pub fn cut_no_more(&self) {
        *self.cuts.pattern.lock().unwrap() = None;
    }

    /// Cuts every connection that is open; later ones pass.
    pub async fn cut_all(&self) {
        let mut open = std::mem::take(&mut *self.connections.lock().unwrap());
        open.abort_all();
        while let Some(ended) = open.join_next().await {
            if ended.is_err_and(|reason| reason.is_cancelled()) {
                self.cuts.struck.fetch_add(1, Ordering::SeqCst);
            }
        }
    }

    /// How many connections were made, since all of them were last cut.
    pub fn connections(&self) -> usize {
        self.connections.lock().unwrap().len()
    }

    /// How many connections were cut.
    pub fn cuts(&self) -> usize {
        self.cuts.struck.load(Ordering::SeqCst)
    }
}

impl Cuts {
    /// When to cut, if the pattern ends in what was sent now; then it is used up.
    fn strikes(&self, before: &[u8], now: &[u8]) -> Option<When> {
        let mut pattern = self.pattern.lock().unwrap();
        pattern
            .take_if(|(pattern, _)| {
                // Earlier data may hold the beginning of the pattern, but not all of it: that was answered.
                let beginning = before.len().saturating_sub(pattern.len() - 1);
                let recent = [before.get(beginning..).unwrap_or_default(), now].concat();
                recent.windows(pattern.len()).any(|window| window == *pattern)
            })
            .map(|(_, when)| when)
    }

    /// Ends when this is the connection whose client is to be cut off.
    async fn meant(&self, port: u16) {
        // The sender lives as long as the proxy, so there is always an answer.
        let _ = self.in_the_middle.subscribe().wait_for(|meant| *meant == Some(port)).await;
    }

    /// Returns when the data may be forwarded.
    async fn passed(&self) {
        let _ = self.swallows.subscribe().wait_for(|swallows| !swallows).await;
    }
}

async fn accept(
    listener: TcpListener,
    server: ServerUrl,
    cuts: Arc<Cuts>,
    connections: Arc<Mutex<JoinSet<()>>>,
) {
    while let Ok((client, _)) = listener.accept().await {
        let (place, cuts) = ((server.host.clone(), server.port), cuts.clone());
        connections.lock().unwrap().spawn(async move {
            // A server that cannot be reached and a connection that breaks look alike to the client: it is closed.
            if let Ok(server) = TcpStream::connect(place).await {
                let _ = carry(client, server, &cuts).await;
            }
        });
    }
}

async fn carry(mut client: TcpStream, mut server: TcpStream, cuts: &Cuts) -> io::Result<()> {
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let port = server.local_addr()?.port();
    let (mut sent, mut answered) = (Vec::with_capacity(1 << 16), Vec::with_capacity(1 << 16));
    let (mut before, mut lost): (Vec<u8>, Option<Vec<u8>>) = (Vec::new(), None);
    loop {
        tokio::select! {
            length = client.read_buf(&mut sent) => {
                if length? == 0 {
                    return Ok(());
                }
                if *cuts.swallows.borrow() {
                    cuts.swallowed.fetch_add(1, Ordering::SeqCst);
                }
                cuts.passed().await;
                let delay = *cuts.delay.lock().unwrap();
                let _ = tokio::time::timeout(delay, std::future::pending::<()>()).await;
                let when = if lost.is_none() { cuts.strikes(&before, &sent) } else { None };
                server.write_all(&sent).await?;
                match when {
                    Some(When::AtOnce) => return go_on(client, server, cuts).await,
                    Some(When::Answered) => lost = Some(Vec::new()),
                    None => {}
                }
                before.append(&mut sent);
                before.drain(..before.len().saturating_sub(LONGEST_PATTERN));
            }
            length = server.read_buf(&mut answered) => {
                let ended = length? == 0;
                cuts.passed().await;
                if let Some(lost) = &mut lost {
                    lost.append(&mut answered);
                    if ended || is_whole(lost) {
                        cuts.struck.fetch_add(1, Ordering::SeqCst);
                        return Ok(());
                    }
                } else if ended {
                    return Ok(());
                } else {
                    client.write_all(&answered).await?;
                    answered.clear();
                }
            }
            () = cuts.meant(port) => return go_on(client, server, cuts).await,
        }
    }
}

/// The client is gone, and the server does not know: it executes the last request, and is closed after its reply.
async fn go_on(client: TcpStream, mut server: TcpStream, cuts: &Cuts) -> io::Result<()> {
    drop(client);
    cuts.struck.fetch_add(1, Ordering::SeqCst);
    let mut answered = Vec::new();
    while server.read_buf(&mut answered).await? > 0 && !is_whole(&answered) {}
    Ok(())
}

/// An answer ends with the message `ReadyForQuery`, which has one byte: whether a transaction is open.
fn is_whole(answer: &[u8]) -> bool {
    matches!(answer, [.., b'Z', 0, 0, 0, 5, b'I' | b'T' | b'E'])
}
