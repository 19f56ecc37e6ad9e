//! A call whose answer was lost, as a person meets it: who says so, what to look at, what to type.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use crate::support::Desk;

/// Answers each request, but for that of the second invoice; tells which paths it has heard of.
fn books() -> (u16, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (told, heard) = channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = [0; 4096];
            let length = stream.read(&mut request).unwrap();
            let text = String::from_utf8_lossy(request.get(..length).unwrap()).into_owned();
            let path = text.split(' ').nth(1).unwrap_or_default().to_owned();
            if !path.ends_with('2') {
                stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").unwrap();
            }
            if told.send(path).is_err() {
                return;
            }
        }
    });
    (port, heard)
}

#[test]
fn a_call_in_doubt_is_shown_asked_about_and_settled_by_a_person() {
    let (port, heard) = books();
    let job = format!(
        "queue = true\nretry = {{ attempts = 1 }}\ncommand = [\"./list.sh\"]\noutput = \"units\"\n[unit]\n\
         key = \"invoice:{{id}}\"\nhttp = {{ url = \"http://127.0.0.1:{port}/invoices/{{id}}\", json = {{ id = \"{{id}}\" }} }}\n"
    );
    let desk = Desk::of(&[
        ("refrain.toml", "[project]\nname = \"shop\"\n"),
        ("jobs/book.toml", &job),
        ("list.sh", "#!/bin/sh\necho '{\"id\":1}'\necho '{\"id\":2}'\necho '{\"id\":3}'\n"),
    ]);
    let checked = desk.refrain("check");
    assert!(checked.stdout.contains("makes a call (POST) for each of what ./list.sh prints"), "{checked:?}");
    assert!(!checked.stdout.contains("127.0.0.1"), "an address may hold a secret: {checked:?}");

    let ran = desk.refrain("run book#1");
    assert_eq!(ran.code, Some(4), "{ran:?}");
    assert!(ran.stdout.contains("2 processed, 0 skipped, 0 deduplicated, 1 failed"), "{ran:?}");
    let mut paths: Vec<String> = heard.try_iter().collect();
    paths.sort();
    assert_eq!(paths, ["/invoices/1", "/invoices/2", "/invoices/3"]);

    let why = desk.refrain("why book#1");
    assert!(why.stdout.contains("in doubt: invoice:2"), "{why:?}");
    let why = desk.refrain("why invoice:2");
    assert!(
        why.stdout.contains("is in doubt since") && why.stdout.contains("--unit invoice:2 --done"),
        "{why:?}"
    );
    let traced = desk.refrain("trace invoice:2");
    for words in ["parked", "in doubt since ", "in doubt: the answer was lost"] {
        assert!(traced.stdout.contains(words), "{traced:?}");
    }
    for words in ["refrain retry book#1 --unit invoice:2 --done", "refrain retry book#1 --unit invoice:2\n"] {
        assert!(traced.stderr.contains(words), "{traced:?}");
    }
    assert_eq!(desk.refrain("run book#1 --again").code, Some(4), "it is not sent again, and not forgotten");
    assert_eq!(heard.try_iter().count(), 0);

    let refused = desk.refrain("retry book#1 --unit invoice:1 --done");
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("no unit `invoice:1` of book#1 is in doubt"), "{refused:?}");
    let settled = desk.refrain("retry book#1 --unit invoice:2 --done");
    assert_eq!(settled.code, Some(0), "{settled:?}");
    assert!(settled.stderr.contains("`invoice:2` is recorded as done"), "{settled:?}");
    assert_eq!(heard.try_iter().count(), 0);
    assert!(desk.refrain("trace invoice:2").stdout.contains("applied"));
}
