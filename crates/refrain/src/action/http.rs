//! Calls to other machines: one request, sent once, and what its answer means.
//!
//! Nothing here ever sends a request a second time: no retries, no redirects, no connection that was used before (one that
//! the other side closes in that moment would leave a doubt that a new one does not). Whether anything was sent is told by
//! where it failed: before there was a connection, nothing was; after that, nobody can say.

use std::error::Error as _;
use std::time::Duration;

use refrain_core::Word;
use refrain_core::call::{Meaning, Request, meaning_of};
use refrain_core::redact::Redactor;
use refrain_core::terminal::acts;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::{Client, Method, Url, redirect, retry};
use rustls::crypto::{CryptoProvider, ring};

use crate::failpoint;
use crate::job::JobError;
use crate::lease::Lease;

mod lease_check;

use lease_check::{LeaseCheck, TooLate};

/// The longest time until there is a connection.
const CONNECT_MAX: Duration = Duration::from_secs(10);
/// So much of an answer is shown to people.
const SHOWN_BYTES_MAX: usize = 500;
/// So much of an answer is read: one that is cut off may keep the other side from finishing, and a secret that is cut in two is
/// not recognised.
const READ_BYTES_MAX: usize = 64 * 1_024;
const NO_ROOTS: &str = " (there are no certificates on this machine, so no https: install ca-certificates)";
const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// What became of a call.
#[derive(Debug)]
pub(super) enum Answer {
    Done,
    /// It was not done, for this reason.
    NotDone(String),
    /// It may have been done.
    InDoubt(String),
    /// Nothing was sent, for the lease of the worker was over: somebody else may be at it.
    TooLate,
}

/// Sends requests.
#[derive(Debug, Clone)]
pub(super) struct Caller {
    client: Client,
    /// Whether the system names nobody whom certificates may come from.
    has_no_roots: bool,
    redactor: Redactor,
    lease: Lease,
}

impl Caller {
    /// The time for a connection is shorter than that for a call: so it is known that nothing was sent.
    pub(super) fn new(redactor: &Redactor, timeout: Duration, lease: &Lease) -> Result<Caller, JobError> {
        if CryptoProvider::get_default().is_none() {
            // Somebody else was faster: then there is one.
            let _ = ring::default_provider().install_default();
        }
        let builder = || {
            Client::builder()
                .user_agent(concat!("refrain/", env!("CARGO_PKG_VERSION")))
                .retry(retry::never())
                .redirect(redirect::Policy::none())
                .pool_max_idle_per_host(0)
                .connect_timeout(CONNECT_MAX.min(timeout / 2))
                .connector_layer(LeaseCheck(lease.clone()))
                .http1_only()
        };
        let trusting_the_system = builder().build();
        let has_no_roots = trusting_the_system.is_err();
        // A machine that trusts nobody can still call those that need no trust.
        let client = trusting_the_system.or_else(|_| builder().tls_certs_only([]).build());
        let client =
            client.map_err(|error| JobError::new(format!("no calls can be made: {}", told(&error))))?;
        Ok(Caller { client, has_no_roots, redactor: redactor.clone(), lease: lease.clone() })
    }

    /// Sends a request, once, under a key by which the other side can tell it from others; and only while the lease of the
    /// worker is good, which is looked at before there is a connection and once more right before the first byte.
    pub(super) async fn call(&self, request: Request, idempotency_key: String) -> Answer {
        let timeout = request.timeout;
        if !failpoint::is_weakened("call.unlooked") && !self.lease.is_good_for(timeout).await {
            return Answer::TooLate;
        }
        let sent = match self.built(request, &idempotency_key) {
            Ok(request) => self.client.execute(request).await,
            Err(message) => return Answer::NotDone(self.hidden(&message)),
        };
        let response = match sent {
            Ok(response) => response,
            Err(error) if TooLate::caused(&error) => return Answer::TooLate,
            Err(error) if error.is_connect() || error.is_builder() => {
                let roots = if self.has_no_roots { NO_ROOTS } else { "" };
                return Answer::NotDone(self.hidden(&format!("nothing was sent: {}{roots}", told(&error))));
            }
            Err(error) if error.is_timeout() => {
                return Answer::InDoubt(format!("there was no answer within {timeout:?}"));
            }
            Err(error) => {
                return Answer::InDoubt(self.hidden(&format!("the answer was lost: {}", told(&error))));
            }
        };
        let status = response.status();
        let meaning = meaning_of(status.as_u16(), response.headers().contains_key(RETRY_AFTER));
        let said = read(response).await;
        if meaning == Meaning::Done {
            return Answer::Done;
        }
        // Hidden in what is left after control characters are taken out, and only then cut: a secret with such characters
        // between its letters would come together again, and half of one is not recognised.
        let message = match self.hidden(&plain(&self.hidden(&said))) {
            said if said.is_empty() => format!("the answer was {status}"),
            said => format!("the answer was {status}: {}", cut(&said)),
        };
        match meaning {
            Meaning::InDoubt => Answer::InDoubt(message),
            Meaning::NotDone | Meaning::Done => Answer::NotDone(message),
        }
    }

    fn built(&self, request: Request, idempotency_key: &str) -> Result<reqwest::Request, String> {
        let url = address(&request.url)?;
        let mut headers = HeaderMap::new();
        let own = [(IDEMPOTENCY_KEY.to_owned(), idempotency_key.to_owned())];
        for (name, value) in own.into_iter().chain(request.headers) {
            let wrong = || {
                format!("the header `{name}` cannot be sent: it has a line break or another such character")
            };
            let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong())?;
            let value = HeaderValue::from_str(&value).map_err(|_| wrong())?;
            headers.insert(name, value);
        }
        let method =
            Method::from_bytes(request.method.name().as_bytes()).map_err(|error| error.to_string())?;
        let mut built = self.client.request(method, url).timeout(request.timeout);
        if let Some(body) = request.body {
            headers.entry(CONTENT_TYPE).or_insert(HeaderValue::from_static("application/json"));
            built = built.body(body);
        }
        built.headers(headers).build().map_err(|error| told(&error))
    }

    /// What may be kept and shown.
    pub(super) fn hidden(&self, message: &str) -> String {
        self.redactor.redact(message).into_owned()
    }
}

/// An address that is taken as it is written: a value such as `..` must not lead to another path.
fn address(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|error| format!("the address cannot be read: {error}"))?;
    let after_host = text.find("://").and_then(|at| text.get(at + 3..)).unwrap_or_default();
    let path = after_host.find('/').and_then(|at| after_host.get(at..)).unwrap_or("/");
    let path = path.split(['?', '#']).next().unwrap_or(path);
    if path
        .split('/')
        .any(|segment| matches!(segment.to_ascii_lowercase().replace("%2e", ".").as_str(), "." | ".."))
    {
        return Err("a part of the address is `.` or `..`, which would lead elsewhere".to_owned());
    }
    Ok(url)
}

/// An error with its causes, without the address: that may hold a secret.
fn told(error: &reqwest::Error) -> String {
    let mut causes = Vec::new();
    let mut cause = error.source();
    while let Some(one) = cause {
        causes.push(one.to_string());
        cause = one.source();
    }
    causes.dedup();
    if causes.is_empty() { "the request was refused".to_owned() } else { causes.join(": ") }
}

/// What is said in an answer. What is lost of it is only missing in a message.
async fn read(mut response: reqwest::Response) -> String {
    let mut bytes = Vec::new();
    while bytes.len() < READ_BYTES_MAX
        && let Ok(Some(chunk)) = response.chunk().await
    {
        bytes.extend_from_slice(&chunk);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// An answer on one line, without what a terminal would act on.
fn plain(said: &str) -> String {
    let words = said.split_whitespace().collect::<Vec<_>>().join(" ");
    words.chars().filter(|letter| !acts(*letter)).collect()
}

/// The beginning of an answer, for people.
fn cut(said: &str) -> &str {
    said.get(..said.floor_char_boundary(SHOWN_BYTES_MAX)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use refrain_core::call::Method as How;
    use tokio::net::{TcpSocket, TcpStream};

    use super::*;
    use crate::lease::since_boot;

    /// A host with so many connections to accept that it neither accepts another one nor refuses it.
    #[tokio::test(start_paused = true)]
    async fn a_call_for_which_there_is_no_connection_in_time_was_not_sent() {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let listener = socket.listen(0).unwrap();
        let address = listener.local_addr().unwrap();
        let _before = TcpStream::connect(address).await.unwrap();
        let (minute, lease) = (Duration::from_mins(1), Lease::new(since_boot() + Duration::from_hours(24)));
        let caller = Caller::new(&Redactor::new(&[]), minute, &lease).unwrap();
        let (url, headers) = (format!("http://{address}/"), Vec::new());
        let request = Request { method: How::Post, url, headers, body: None, timeout: minute };
        let answer = caller.call(request, "key".to_owned()).await;
        assert!(matches!(&answer, Answer::NotDone(said) if said.contains("nothing was sent")), "{answer:?}");
    }

    #[test]
    fn s15_a_value_does_not_lead_to_another_path() {
        for (text, is_sound) in [
            ("https://example.org/a/b", true),
            ("https://example.org", true),
            ("https://example.org/a/...", true),
            ("https://example.org/a?b=..", true),
            ("https://example.org/a/../b", false),
            ("https://example.org/a/%2E%2e", false),
            ("https://example.org/./b", false),
            ("https://[::1", false),
        ] {
            assert_eq!(address(text).is_ok(), is_sound, "{text}");
        }
    }
}
