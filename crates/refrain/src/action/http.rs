//! One HTTP request, sent at most once, and what its response means.
//!
//! Nothing here sends a request a second time: no retries, no redirects, no reused connections (a connection that the server
//! closes at that moment would leave a doubt that a new one does not). Where a request failed tells whether it was sent: not
//! before there was a connection; after that it is in doubt. Anything that must not be sent twice uses this, and nothing else.

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
use crate::lease::Lease;
use crate::run::JobError;

mod lease_check;

use lease_check::{LeaseCheck, LeaseExpired};

/// The longest time to wait for a connection.
const CONNECT_MAX: Duration = Duration::from_secs(10);
/// How much of a response is shown in messages.
const SHOWN_BYTES_MAX: usize = 500;
/// How much of a response is read. More than is shown: a server that cannot send its response may not finish the work, and
/// half of a secret is not recognised as one.
const READ_BYTES_MAX: usize = 64 * 1_024;
const NO_ROOTS: &str = " (this machine has no CA certificates, which https needs: install ca-certificates)";
const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// What is known about a request after it was sent, or not.
#[derive(Debug)]
pub(super) enum HttpOutcome {
    /// The receiver confirmed it.
    Done,
    /// The receiver did not do it, for this reason.
    NotDone(String),
    /// The receiver may have done it.
    InDoubt(String),
    /// Nothing was sent, because the lease of the worker has expired: another worker may have taken over.
    LeaseExpired,
}

/// Sends requests while the lease of the worker is valid.
#[derive(Debug, Clone)]
pub(super) struct HttpCaller {
    client: Client,
    /// Whether this machine has no CA certificates.
    has_no_roots: bool,
    redactor: Redactor,
    lease: Lease,
}

impl HttpCaller {
    /// The time to connect is limited to less than the time for the call, so that a failure to connect is known to have sent
    /// nothing.
    pub(super) fn new(redactor: &Redactor, timeout: Duration, lease: &Lease) -> Result<HttpCaller, JobError> {
        if CryptoProvider::get_default().is_none() {
            // If another thread was faster, its provider is used.
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
        let client = builder().build();
        let has_no_roots = client.as_ref().is_err_and(is_without_roots);
        // Plain HTTP needs no certificates.
        let client = if has_no_roots { builder().tls_certs_only([]).build() } else { client };
        let client = client.map_err(|error| {
            JobError::new(format!("the HTTP client cannot be set up: {}", described(&error)))
        })?;
        Ok(HttpCaller { client, has_no_roots, redactor: redactor.clone(), lease: lease.clone() })
    }

    /// Sends a request once, with an idempotency key, and only while the lease of the worker is valid. The lease is checked
    /// before connecting and again right before the first byte.
    pub(super) async fn call(&self, request: Request, idempotency_key: String) -> HttpOutcome {
        let timeout = request.timeout;
        if !failpoint::is_weakened("call.unlooked") && !self.lease.is_good_for(timeout).await {
            return HttpOutcome::LeaseExpired;
        }
        let sent = match self.build(request, &idempotency_key) {
            Ok(request) => self.client.execute(request).await,
            Err(message) => return HttpOutcome::NotDone(self.redacted(&message)),
        };
        let response = match sent {
            Ok(response) => response,
            Err(error) if LeaseExpired::caused(&error) => return HttpOutcome::LeaseExpired,
            Err(error) if error.is_connect() || error.is_builder() => {
                let roots = if self.has_no_roots { NO_ROOTS } else { "" };
                return HttpOutcome::NotDone(
                    self.redacted(&format!("nothing was sent: {}{roots}", described(&error))),
                );
            }
            Err(error) if error.is_timeout() => {
                return HttpOutcome::InDoubt(format!("no response within {timeout:?}"));
            }
            Err(error) => {
                return HttpOutcome::InDoubt(
                    self.redacted(&format!("the response was lost: {}", described(&error))),
                );
            }
        };
        let status = response.status();
        let meaning = meaning_of(status.as_u16(), response.headers().contains_key(RETRY_AFTER));
        let body = read_body(response).await;
        if meaning == Meaning::Done {
            return HttpOutcome::Done;
        }
        // Redacted again after control characters were removed, and only then shortened: removing characters can put a secret
        // together, and half of a secret is not recognised.
        let message = match self.redacted(&one_line(&self.redacted(&body))) {
            body if body.is_empty() => format!("the response was {status}"),
            body => format!("the response was {status}: {}", shortened(&body)),
        };
        match meaning {
            Meaning::InDoubt => HttpOutcome::InDoubt(message),
            Meaning::NotDone | Meaning::Done => HttpOutcome::NotDone(message),
        }
    }

    fn build(&self, request: Request, idempotency_key: &str) -> Result<reqwest::Request, String> {
        let url = parsed_url(&request.url)?;
        let mut headers = HeaderMap::new();
        let own = [(IDEMPOTENCY_KEY.to_owned(), idempotency_key.to_owned())];
        for (name, value) in own.into_iter().chain(request.headers) {
            let wrong = || {
                format!("the header `{name}` contains a line break or another character that cannot be sent")
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
        built.headers(headers).build().map_err(|error| described(&error))
    }

    /// A message without secrets.
    pub(super) fn redacted(&self, message: &str) -> String {
        self.redactor.redact(message).into_owned()
    }
}

/// A URL that is used as it is written: a unit's value such as `..` must not lead to another path.
fn parsed_url(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|error| format!("the URL is not valid: {error}"))?;
    let after_host = text.find("://").and_then(|at| text.get(at + 3..)).unwrap_or_default();
    let path = after_host.find('/').and_then(|at| after_host.get(at..)).unwrap_or("/");
    let path = path.split(['?', '#']).next().unwrap_or(path);
    if path
        .split('/')
        .any(|segment| matches!(segment.to_ascii_lowercase().replace("%2e", ".").as_str(), "." | ".."))
    {
        return Err("the URL contains the path segment `.` or `..`, which leads to another path".to_owned());
    }
    Ok(url)
}

/// Whether a client could not be built because the machine has no CA certificates. `rustls` has no variant of its own for it.
fn is_without_roots(error: &reqwest::Error) -> bool {
    let cause = error.source().and_then(|cause| cause.downcast_ref::<rustls::Error>());
    matches!(cause, Some(rustls::Error::General(text)) if text.starts_with("No CA certificates"))
}

/// The causes of an error, without the URL: it may contain a secret.
fn described(error: &reqwest::Error) -> String {
    let mut causes = Vec::new();
    let mut cause = error.source();
    while let Some(one) = cause {
        causes.push(one.to_string());
        cause = one.source();
    }
    causes.dedup();
    if causes.is_empty() { "the request was refused".to_owned() } else { causes.join(": ") }
}

/// The beginning of a response body. It is only shown, so a failure to read it is not an error.
async fn read_body(mut response: reqwest::Response) -> String {
    let mut bytes = Vec::new();
    while bytes.len() < READ_BYTES_MAX
        && let Ok(Some(chunk)) = response.chunk().await
    {
        bytes.extend_from_slice(&chunk);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A text on one line, without characters that a terminal would act on.
fn one_line(text: &str) -> String {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    words.chars().filter(|letter| !acts(*letter)).collect()
}

/// The beginning of a text, to show in a message.
fn shortened(text: &str) -> &str {
    text.get(..text.floor_char_boundary(SHOWN_BYTES_MAX)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use refrain_core::call::Method as How;
    use refrain_core::redact::Secret;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::{TcpSocket, TcpStream};

    use super::*;
    use crate::lease::since_boot;

    /// The backlog of the host is full, so it neither accepts a connection nor refuses it.
    #[tokio::test(start_paused = true)]
    async fn a_request_that_gets_no_connection_in_time_was_not_sent() {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let listener = socket.listen(0).unwrap();
        let address = listener.local_addr().unwrap();
        let _before = TcpStream::connect(address).await.unwrap();
        let (minute, lease) = (Duration::from_mins(1), Lease::new(since_boot() + Duration::from_hours(24)));
        let caller = HttpCaller::new(&Redactor::new(&[]), minute, &lease).unwrap();
        let (url, headers) = (format!("http://{address}/"), Vec::new());
        let request = Request { method: How::Post, url, headers, body: None, timeout: minute };
        let answer = caller.call(request, "key".to_owned()).await;
        assert!(
            matches!(&answer, HttpOutcome::NotDone(said) if said.contains("nothing was sent")),
            "{answer:?}"
        );
    }

    /// What is told about a response with this body, which the server sends once.
    async fn told(secret: &str, body: &str) -> String {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let response = format!("HTTP/1.1 400 Bad Request\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        let answering = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = [0; 4_096];
            assert!(stream.read(&mut request).await.unwrap() > 0);
            stream.write_all(response.as_bytes()).await.unwrap();
        });
        let (minute, lease) = (Duration::from_mins(1), Lease::new(since_boot() + Duration::from_hours(24)));
        let caller = HttpCaller::new(&Redactor::new(&[Secret::new(secret)]), minute, &lease).unwrap();
        let (url, headers) = (format!("http://{address}/"), Vec::new());
        let request = Request { method: How::Post, url, headers, body: None, timeout: minute };
        let HttpOutcome::NotDone(said) = caller.call(request, "key".to_owned()).await else { panic!() };
        answering.await.unwrap();
        said
    }

    #[tokio::test]
    async fn s16_a_secret_in_a_response_is_hidden_however_it_is_written() {
        let filler = "x".repeat(SHOWN_BYTES_MAX - 4);
        for (secret, body) in [
            ("hunter2-hunter2", "no: hunter2-hunter2".to_owned()),
            ("hunter2-hunter2", "no: hunter2\u{1}-hun\u{202e}ter2".to_owned()),
            ("two  words of  it", "no: two  words of  it".to_owned()),
            ("hunter2-hunter2", format!("{filler}hunter2-hunter2")),
        ] {
            let said = told(secret, &body).await;
            for part in ["hunt", "words"] {
                assert!(!said.contains(part), "{body:?} is told as {said:?}");
            }
        }
    }

    #[test]
    fn only_a_client_without_ca_certificates_counts_as_one() {
        let error = Client::builder().user_agent("a\nb").build().unwrap_err();
        assert!(!is_without_roots(&error), "{error:?}");
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
            assert_eq!(parsed_url(text).is_ok(), is_sound, "{text}");
        }
    }
}
