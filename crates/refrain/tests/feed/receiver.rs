//! An HTTP server that records every complete request before it answers, or does not answer.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Heard {
    pub(crate) method: String,
    pub(crate) path: String,
    /// The headers by their names in lower case.
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: String,
}

impl Heard {
    /// The last part of the path.
    pub(crate) fn id(&self) -> &str {
        self.path.rsplit('/').next().unwrap()
    }

    pub(crate) fn key(&self) -> &str {
        &self.headers["idempotency-key"]
    }
}

/// What the receiver does after it has read a request.
#[derive(Debug, Clone)]
pub(crate) enum Reply {
    Status(u16, String),
    /// A status, and a `location`.
    Elsewhere(u16, String),
    /// The connection is closed without an answer.
    Cut,
    /// The request is never answered.
    Silence,
    /// The answer is delayed.
    Late(u16),
    /// The answer is sent once this many requests have been read.
    When(usize, u16),
}

/// The delay of a slow machine.
const LATE: std::time::Duration = std::time::Duration::from_secs(8);

type Answer = dyn Fn(&Heard) -> Reply + Send + Sync;

pub(crate) struct Receiver {
    pub(crate) port: u16,
    heard: watch::Sender<Vec<Heard>>,
    answer: Arc<Mutex<Arc<Answer>>>,
    listening: JoinHandle<()>,
}

impl Receiver {
    pub(crate) async fn answering(answer: impl Fn(&Heard) -> Reply + Send + Sync + 'static) -> Receiver {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let heard = watch::Sender::new(Vec::new());
        let answer: Arc<Mutex<Arc<Answer>>> = Arc::new(Mutex::new(Arc::new(answer)));
        let (output, asked) = (heard.clone(), Arc::clone(&answer));
        let listening = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(talk(stream, output.clone(), Arc::clone(&asked)));
            }
        });
        Receiver { port, heard, answer, listening }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Sets the answers from here on.
    pub(crate) fn answers(&self, answer: impl Fn(&Heard) -> Reply + Send + Sync + 'static) {
        *self.answer.lock().unwrap() = Arc::new(answer);
    }

    pub(crate) fn heard(&self) -> Vec<Heard> {
        self.heard.borrow().clone()
    }

    /// The ids of all requests, sorted, with repetitions.
    pub(crate) fn ids(&self) -> Vec<String> {
        let mut ids: Vec<String> = self.heard().iter().map(|heard| heard.id().to_owned()).collect();
        ids.sort();
        ids
    }

    /// Sends a signal that an answer may be waiting for.
    pub(crate) async fn nod(&self) {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).await.unwrap();
        stream.write_all(b"GET /nod HTTP/1.1\r\n\r\n").await.unwrap();
        let _ = stream.read(&mut [0; 64]).await.unwrap();
    }

    /// Waits until this many requests have been read.
    pub(crate) async fn until(&self, count: usize) {
        self.heard.subscribe().wait_for(|heard| heard.len() >= count).await.unwrap();
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

async fn talk(mut stream: TcpStream, output: watch::Sender<Vec<Heard>>, asked: Arc<Mutex<Arc<Answer>>>) {
    let Some(heard) = read(&mut stream).await else { return };
    let answer = Arc::clone(&asked.lock().unwrap());
    output.send_modify(|all| all.push(heard.clone()));
    let (status, more, text) = match answer(&heard) {
        Reply::Status(status, text) => (status, String::new(), text),
        Reply::Elsewhere(status, url) => (status, format!("location: {url}\r\n"), String::new()),
        Reply::Cut => return,
        Reply::Silence => {
            // Until the client closes the connection.
            let _ = stream.read(&mut [0]).await;
            return;
        }
        Reply::Late(status) => {
            let _ = tokio::time::timeout(LATE, std::future::pending::<()>()).await;
            (status, String::new(), String::new())
        }
        Reply::When(count, status) => {
            output.subscribe().wait_for(|heard| heard.len() >= count).await.unwrap();
            (status, String::new(), String::new())
        }
    };
    let length = text.len();
    let reply = format!("HTTP/1.1 {status} Said\r\n{more}content-length: {length}\r\n\r\n{text}");
    let _ = stream.write_all(reply.as_bytes()).await;
}

async fn read(stream: &mut TcpStream) -> Option<Heard> {
    let mut bytes = Vec::new();
    let head = loop {
        let mut buffer = [0; 4096];
        let length = stream.read(&mut buffer).await.ok().filter(|length| *length > 0)?;
        bytes.extend_from_slice(&buffer[..length]);
        if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break at;
        }
    };
    let text = String::from_utf8(bytes[..head].to_vec()).unwrap();
    let mut lines = text.lines();
    let mut first = lines.next()?.split(' ');
    let (method, path) = (first.next()?.to_owned(), first.next()?.to_owned());
    let headers: BTreeMap<String, String> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
        .collect();
    let length: usize = headers.get("content-length").map_or(0, |length| length.parse().unwrap());
    let mut body = bytes[head + 4..].to_vec();
    while body.len() < length {
        let mut buffer = [0; 4096];
        let read = stream.read(&mut buffer).await.ok().filter(|read| *read > 0)?;
        body.extend_from_slice(&buffer[..read]);
    }
    Some(Heard { method, path, headers, body: String::from_utf8(body).unwrap() })
}
