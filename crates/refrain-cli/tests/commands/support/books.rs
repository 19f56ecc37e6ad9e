//! An HTTP server on loopback that books an invoice per call, and does not answer some of the
//! calls.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};
use std::thread;

/// Answers each request except those whose path ends with one of these. Returns its port and a channel with the path
/// of each request.
pub(crate) fn books(unanswered: &'static [char]) -> (u16, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (printed, heard) = channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = [0; 4096];
            let length = stream.read(&mut request).unwrap();
            let text = String::from_utf8_lossy(request.get(..length).unwrap()).into_owned();
            let path = text.split(' ').nth(1).unwrap_or_default().to_owned();
            // Sent before the answer: a caller may ask for the paths as soon as it has its answer.
            let is_answered = !path.ends_with(unanswered);
            if printed.send(path).is_err() {
                return;
            }
            if is_answered {
                stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").unwrap();
            }
        }
    });
    (port, heard)
}
