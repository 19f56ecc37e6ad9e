//! A unit that failed too often is parked: the run is partial, and the output names the command
//! that frees the unit.

use crate::support::Desk;

#[tokio::test]
async fn a_run_with_a_parked_unit_names_the_command_that_frees_the_unit() {
    let desk = Desk::shop().await;
    let job = r#"
        queue = true
        retry = { attempts = 1 }
        command = ["./list.sh"]
        output = "units"
        [unit]
        key = "customer:{name}"
        command = ["./book.sh", "{name}"]
    "#;
    desk.write("jobs/book.toml", job);
    desk.write("list.sh", "#!/bin/sh\nprintf '{\"name\":\"acme\"}\\n{\"name\":\"bad\"}\\n'\n");
    desk.write("book.sh", "#!/bin/sh\n[ \"$1\" != bad ]\n");
    desk.refrain("enqueue book --key 1").succeeds(&["queued"]);
    for _ in 0..2 {
        let partial = desk.refrain("run book#1");
        assert_eq!(partial.code, Some(1), "{partial:?}");
        assert!(partial.stderr.contains("which units, and what to type: refrain why book#1"), "{partial:?}");
        assert!(!partial.stderr.contains("tries it again"), "{partial:?}");
    }
    desk.refrain("why book#1").succeeds(&["refrain retry book#1 --unit customer:bad"]);
    desk.write("book.sh", "#!/bin/sh\nexit 0\n");
    desk.refrain("retry book#1 --unit customer:bad").succeeds(&["book#1: done"]);
}
