//! A network that fails, between a client and its PostgreSQL.
//!
//! The cut that matters most loses an answer: the server has done what it was told, and the client cannot know.
//! So the proxy first lets the server finish, and only then cuts.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::address::Address;

const LONGEST_PATTERN: usize = 256;

pub struct Proxy {
    address: Address,
    cuts: Arc<Cuts>,
    connections: Arc<Mutex<JoinSet<()>>>,
    _accepting: JoinSet<()>,
}

#[derive(Default)]
struct Cuts {
    /// What the next one waits for.
    pattern: Mutex<Option<Vec<u8>>>,
    struck: AtomicUsize,
}

impl Proxy {
    /// In front of the server of this URL, for each of its databases.
    pub async fn in_front_of(url: &str) -> Proxy {
        let server = Address::of(url);
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

    /// Once: the next time that a client sends this, the server gets it, and its answer is lost with the connection.
    ///
    /// A statement with parameters is sent before it is executed; the text to wait for is that of one without, such
    /// as `COMMIT`.
    pub fn cut_after_forwarding(&self, pattern: &[u8]) {
        assert!((1..=LONGEST_PATTERN).contains(&pattern.len()), "{pattern:?} is no pattern");
        *self.cuts.pattern.lock().unwrap() = Some(pattern.to_owned());
    }

    /// Takes back a cut that has not struck yet.
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

    /// How many connections were cut.
    pub fn cuts(&self) -> usize {
        self.cuts.struck.load(Ordering::SeqCst)
    }
}

impl Cuts {
    /// Whether the pattern ends in what was sent now; then it is used up.
    fn strikes(&self, before: &[u8], now: &[u8]) -> bool {
        let mut pattern = self.pattern.lock().unwrap();
        let found = pattern.as_ref().is_some_and(|pattern| {
            // What was sent before may begin the pattern, but not be all of it: that has been answered.
            let beginning = before.len().saturating_sub(pattern.len() - 1);
            let recent = [before.get(beginning..).unwrap_or_default(), now].concat();
            recent.windows(pattern.len()).any(|window| window == pattern)
        });
        if found {
            *pattern = None;
        }
        found
    }
}

async fn accept(
    listener: TcpListener,
    server: Address,
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
    let (mut sent, mut answered) = (Vec::with_capacity(1 << 16), Vec::with_capacity(1 << 16));
    let (mut before, mut lost): (Vec<u8>, Option<Vec<u8>>) = (Vec::new(), None);
    loop {
        tokio::select! {
            length = client.read_buf(&mut sent) => {
                if length? == 0 {
                    return Ok(());
                }
                if lost.is_none() && cuts.strikes(&before, &sent) {
                    lost = Some(Vec::new());
                }
                server.write_all(&sent).await?;
                before.append(&mut sent);
                before.drain(..before.len().saturating_sub(LONGEST_PATTERN));
            }
            length = server.read_buf(&mut answered) => {
                let ended = length? == 0;
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
        }
    }
}

/// An answer ends with the message `ReadyForQuery`, which has one byte: whether a transaction is open.
fn is_whole(answer: &[u8]) -> bool {
    matches!(answer, [.., b'Z', 0, 0, 0, 5, b'I' | b'T' | b'E'])
}
