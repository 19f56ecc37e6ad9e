//! A call with a lost answer, as the operator meets it: who reports it, what to check, what to
//! type.

use crate::support::Desk;
use crate::support::books::books;

#[test]
fn a_call_in_doubt_is_shown_and_settled_by_the_operator() {
    let (port, heard) = books(&['2']);
    let job = format!(
        r#"
            queue = true
            retry = {{ attempts = 1 }}
            command = ["./list.sh"]
            output = "units"
            [unit]
            key = "invoice:{{id}}"
            http = {{ url = "http://127.0.0.1:{port}/invoices/{{id}}", json = {{ id = "{{id}}" }} }}
        "#
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
    for words in ["parked", "in doubt since ", "in doubt: the response was lost"] {
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
