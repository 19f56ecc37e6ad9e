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

#[test]
fn a_unit_and_a_held_command_are_settled_by_the_names_that_effects_lists() {
    let (port, heard) = books(&['2']);
    let job = r#"
        queue = true
        retry = { attempts = 1 }
        command = ["./two.sh"]
        output = "units"
        unit = { key = "invoice:{id}", http = { url = "http://127.0.0.1:PORT/invoices/{id}" } }
    "#;
    let held = r#"
        queue = true
        interrupted = "hold"
        command = ["sh", "-c", "kill -9 $$"]
    "#;
    let desk = Desk::of(&[
        ("refrain.toml", "[project]\nname = \"shop\"\n"),
        ("jobs/book.toml", &job.replace("PORT", &port.to_string())),
        ("two.sh", "#!/bin/sh\nprintf '{\"id\":%s}\\n' 1 2\n"),
        ("jobs/held.toml", held),
    ]);
    assert_eq!(desk.refrain("run book#1").code, Some(4));
    assert_eq!(desk.refrain("run held#1").code, Some(4));
    let listed = desk.refrain("effects");
    listed.succeeds(&["book#1 unit invoice:2", "held#1  its command was cut off"]);

    desk.refrain("effects abandon book#1 unit invoice:2")
        .refuses(2, &["`abandon` makes no sense for a unit"]);
    desk.refrain("effects resend held#1")
        .refuses(2, &["makes no sense for the command of a run", "refrain retry held#1"]);
    desk.refrain("effects confirm book#1 unit invoice:1")
        .refuses(2, &["no unit `invoice:1` of book#1 is in doubt"]);
    desk.refrain("effects confirm book#9").refuses(2, &["there is no effect `book#9`"]);

    let settled = desk.refrain("effects confirm book#1 unit invoice:2");
    settled.succeeds(&["book#1 unit invoice:2: recorded as done"]);
    assert!(settled.stderr.contains("refrain retry book#1"), "{settled:?}");
    desk.refrain("effects confirm held#1").succeeds(&["held#1: its command is recorded as done"]);
    desk.refrain("retry book#1").succeeds(&["done"]);
    assert_eq!(heard.try_iter().count(), 2, "nothing is sent again");
    let empty = desk.refrain("effects");
    assert!(empty.stdout.is_empty() && empty.stderr.contains("nothing waits for a decision"), "{empty:?}");
}
