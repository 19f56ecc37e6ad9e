//! Arguments reach a command literally, and its environment holds only permitted variables.

use std::collections::BTreeSet;
use std::fs;

use crate::workspace::Workspace;

#[tokio::test]
async fn s11_arguments_arrive_literally() {
    let workspace = Workspace::sqlite().await;
    let words = [
        "; touch x",
        "$(touch x)",
        "`touch x`",
        "a\nb",
        "--help",
        "-n",
        "",
        "*",
        "@/etc/passwd",
        "../x",
        "{ds}",
        "\\",
        "'\"",
    ];
    let argv = [&["sh", "-c", r#"printf '%s\0' "$@" > words"#, "sh"][..], &words].concat();
    let (report, _) = workspace.executed(workspace.job("words", &argv)).await;
    assert!(report.is_done(), "{report:?}");
    let arrived = fs::read_to_string(workspace.path("words")).unwrap();
    let arrived: Vec<&str> = arrived.split_terminator('\0').collect();
    assert_eq!(arrived, words);
    let there: Vec<String> = fs::read_dir(workspace.path(""))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(there, ["words"], "nothing was touched");
}

/// What a command may inherit from its worker's environment.
const USUAL: [&str; 8] = ["PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "TZ", "TMPDIR"];

#[tokio::test]
async fn s20_the_environment_is_restricted_and_the_supervisor_is_unreadable() {
    let workspace = Workspace::sqlite().await;
    let may = |name: &str| name.starts_with("REFRAIN_") || name.starts_with("LC_") || USUAL.contains(&name);
    let all = std::env::vars_os().map(|(name, _)| name.into_string().unwrap_or_default());
    assert!(all.into_iter().any(|name| !may(&name)), "the worker has something to hide");
    let script = "cat /proc/$$/environ > own; cat /proc/$PPID/environ > parent; pwd > directory";
    let (report, _) = workspace.executed(workspace.shell(script)).await;
    assert!(report.is_done(), "{report:?}");
    let names = |file: &str| -> BTreeSet<String> {
        let text = fs::read_to_string(workspace.path(file)).unwrap();
        text.split_terminator('\0').map(|one| one.split('=').next().unwrap().to_owned()).collect()
    };
    let own = names("own");
    let foreign: Vec<&String> = own.iter().filter(|name| !may(name)).collect();
    assert!(foreign.is_empty(), "{foreign:?}");
    let message = [
        "PROJECT",
        "JOB",
        "RUN",
        "SCOPE",
        "DS",
        "WINDOW_START",
        "WINDOW_END",
        "ATTEMPT",
        "IDEMPOTENCY_KEY",
        "CURSOR",
        "WATERMARK",
        "PAYLOAD",
    ];
    assert!(message.iter().all(|name| own.contains(&format!("REFRAIN_{name}"))), "{own:?}");
    let parent: Vec<String> = names("parent")
        .into_iter()
        .filter(|name| !name.contains("FAILPOINT") && name != "LD_LIBRARY_PATH")
        .collect();
    assert!(parent.is_empty(), "{parent:?}");
    let directory = fs::canonicalize(workspace.path("")).unwrap();
    assert_eq!(
        fs::read_to_string(workspace.path("directory")).unwrap().trim(),
        directory.display().to_string()
    );
}

#[tokio::test]
async fn the_variables_of_every_attempt_differ_only_in_its_number() {
    let workspace = Workspace::sqlite().await;
    let script =
        r#"echo "$REFRAIN_RUN $REFRAIN_ATTEMPT $REFRAIN_IDEMPOTENCY_KEY $REFRAIN_PAYLOAD" >> said; false"#;
    let refrain = workspace.open([workspace.shell(script)]).await;
    refrain.enqueue_json("shell", "k", Some(r#"{"a":1}"#)).await.unwrap();
    for _ in 0..2 {
        refrain.run("shell#k", refrain::Ask::Once).await.unwrap();
    }
    let message = workspace.lines("said");
    let words: Vec<Vec<&str>> = message.iter().map(|line| line.split(' ').collect()).collect();
    let [first, second] = words.as_slice() else { panic!("{message:?}") };
    assert_eq!((first[0], first[1], first[3]), ("shell#k", "1", r#"{"a":1}"#));
    assert_eq!((second[0], second[1], second[2]), ("shell#k", "2", first[2]));
    assert_eq!(first[2].len(), 36);
}

#[tokio::test]
async fn a_window_has_its_start_end_and_day_in_the_time_zone_of_the_job() {
    use refrain::action::command::{Command, CommandJob};
    use refrain::action::environment::environment_of;
    use refrain::core::{Dst, Grid, Schedule, Timetable, Zone, window_name};

    let workspace = Workspace::sqlite().await;
    let zone = Zone::parse("Asia/Tokyo").unwrap();
    let start = window_name::parse("2020-06-01", &zone).unwrap();
    let (directory, tokyo) = (workspace.path(""), zone.clone());
    let job = CommandJob::new(move |run| {
        let script = r#"echo "$REFRAIN_RUN $REFRAIN_DS $REFRAIN_WINDOW_START $REFRAIN_WINDOW_END" > said"#;
        Ok(Command {
            argv: ["sh", "-c", script].map(str::to_owned).to_vec(),
            environment: environment_of(run, &tokyo),
            directory: directory.clone(),
            ..Command::default()
        })
    });
    let timetable = Timetable {
        schedule: Schedule::parse("0 2 * * *").unwrap(),
        zone,
        grid: Grid::parse("day").unwrap(),
        dst: Dst::default(),
        start: Some(start),
    };
    let job = job.supervisor(crate::workspace::probe()).definition("daily").unwrap().timetable(timetable);
    let refrain = workspace.open([job]).await;
    assert!(refrain.run("daily@2020-06-02", refrain::Ask::Once).await.unwrap().is_done());
    let message = "daily@2020-06-01T15:00:00Z 2020-06-02 2020-06-01T15:00:00Z 2020-06-02T15:00:00Z";
    assert_eq!(workspace.lines("said"), [message]);
}
