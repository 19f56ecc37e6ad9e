//! The places with the feature `failpoints`.

use std::collections::HashMap;
use std::fs;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::sync::{Mutex, Once, OnceLock};

use rustix::process::{Pid, Signal, getpid, kill_process};

const LOG: &str = "REFRAIN_FAILPOINT_LOG";
const WEAKENED: &str = "REFRAIN_WEAKENED";
const GUARDED: &str = "REFRAIN_GUARDED";

pub(super) fn arm() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // Dropping it would clear all places.
        std::mem::forget(fail::FailScenario::setup());
        replacements();
    });
}

pub(super) fn replacement(statement: &str) -> Option<&'static str> {
    replacements().get(statement).copied()
}

fn configured(place: &str) -> Option<String> {
    fail::fail_point!(place, |word| Some(word.unwrap_or_default()));
    None
}

/// Whether this action is configured here. It does not return if the place kills the process.
pub(super) fn strike(place: &str, word: Option<&str>) -> bool {
    match configured(place).as_deref() {
        None => false,
        Some("kill") => {
            record(place);
            let _ = kill_process(getpid(), Signal::KILL);
            std::process::abort()
        }
        Some("stop") => {
            record(place);
            assert_eq!(kill_process(this_thread(), Signal::STOP), Ok(()), "{place} cannot be stopped at");
            false
        }
        Some(configured) => {
            let expected = word.unwrap_or("kill or stop");
            assert_eq!(Some(configured), word, "{place} understands return({expected})");
            if configured == "lost" {
                record(place);
            }
            true
        }
    }
}

/// The id of the calling thread. A signal to the process may be delivered to any of its threads, and this one would run on for
/// a moment; by its own id it is the first to get it.
fn this_thread() -> Pid {
    let link = fs::read_link("/proc/thread-self").ok();
    let number = link.and_then(|link| link.file_name()?.to_str()?.parse().ok());
    number.and_then(Pid::from_raw).unwrap_or_else(getpid)
}

#[expect(clippy::expect_used, reason = "a kill that is not logged would pass for one that did not happen")]
fn record(place: &str) {
    if let Some(path) = std::env::var_os(LOG) {
        let mut log = fs::OpenOptions::new().append(true).create(true).open(path).expect(LOG);
        log.write_all(format!("{place}\n").as_bytes()).expect(LOG);
    }
}

/// Writes the number of open guarded sections. A written number survives the death of the process.
#[expect(
    clippy::expect_used,
    reason = "a kill that is counted in the wrong place would prove the wrong thing"
)]
pub(super) fn count(step: i8) {
    static OPEN: OnceLock<Option<Mutex<(fs::File, u8)>>> = OnceLock::new();
    let file = |path| fs::OpenOptions::new().write(true).create(true).truncate(true).open(path);
    let open = OPEN.get_or_init(|| {
        let path = std::env::var_os(GUARDED)?;
        Some(Mutex::new((file(path).expect(GUARDED), 0)))
    });
    if let Some(open) = open {
        let mut open = open.lock().expect(GUARDED);
        open.1 = open.1.saturating_add_signed(step);
        open.0.write_all_at(&[open.1], 0).expect(GUARDED);
    }
}

fn replacements() -> &'static HashMap<String, &'static str> {
    static REPLACEMENTS: OnceLock<HashMap<String, &'static str>> = OnceLock::new();
    REPLACEMENTS.get_or_init(|| std::env::var(WEAKENED).map(|list| read_all(&list)).unwrap_or_default())
}

#[expect(clippy::expect_used, reason = "a weakening that is not applied would make its test prove nothing")]
fn read_all(list: &str) -> HashMap<String, &'static str> {
    let entries = list.split(';').filter(|entry| !entry.trim().is_empty());
    let read = entries.map(|entry| {
        let (statement, path) = entry.split_once('=').expect("REFRAIN_WEAKENED is statement=path;…");
        let text = fs::read_to_string(path.trim()).expect("a file of REFRAIN_WEAKENED can be read");
        (statement.trim().to_owned(), &*text.leak())
    });
    read.collect()
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::process::ExitStatusExt;
    use std::process::{Child, Command, Stdio};

    use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
    use tempfile::tempdir;

    use super::super::{Guarded, guarded, is_lost, is_weakened, reach, replacement};
    use super::{GUARDED, LOG, WEAKENED, arm, fs};

    const ROLE: &str = "REFRAIN_FAILPOINT_VICTIM";
    const VICTIM: &str = "failpoint::places::tests::an_unarmed_failpoint_is_passed";

    /// Passes one place three times, and prints that each time: harmless by itself, and the victim of the other tests in a
    /// process of its own.
    #[test]
    fn an_unarmed_failpoint_is_passed() {
        if std::env::var_os(ROLE).is_none() {
            reach("step");
            assert!(!is_lost("reply") && !is_weakened("guard") && replacement("open").is_none());
            return;
        }
        arm();
        arm();
        let (_outer, _reading) = (guarded(), Guarded::default());
        for _ in 0..3 {
            drop(guarded());
            reach("step");
            say(&format!("step lost={} weak={}", is_lost("reply"), is_weakened("guard")));
        }
        say(replacement("open").unwrap_or("as it is"));
    }

    /// Writes to a file: the test harness prints nothing before the end.
    fn say(words: &str) {
        let path = std::env::var_os(ROLE).unwrap();
        let mut said = fs::OpenOptions::new().append(true).create(true).open(path).unwrap();
        writeln!(said, "{words}").unwrap();
    }

    struct Story {
        directory: tempfile::TempDir,
    }

    impl Story {
        fn new() -> Self {
            Self { directory: tempdir().unwrap() }
        }

        fn begin(&self, variables: &[(&str, &str)]) -> Child {
            let mut victim = Command::new(std::env::current_exe().unwrap());
            victim.args(["--exact", VICTIM]).stdout(Stdio::null()).stderr(Stdio::null());
            victim.env(ROLE, self.directory.path().join("said")).env(LOG, self.directory.path().join("log"));
            victim.envs(variables.iter().copied()).spawn().unwrap()
        }

        fn read(&self, name: &str) -> Vec<String> {
            let text = fs::read_to_string(self.directory.path().join(name)).unwrap_or_default();
            text.lines().map(str::to_owned).collect()
        }
    }

    #[test]
    fn a_kill_happens_at_its_turn_and_is_logged() {
        let story = Story::new();
        let status = story.begin(&[("FAILPOINTS", "step=2*off->return(kill)")]).wait().unwrap();
        assert_eq!(status.signal(), Some(Signal::KILL.as_raw()));
        assert_eq!((story.read("said").len(), story.read("log")), (2, vec!["step".to_owned()]));
    }

    #[test]
    fn after_a_kill_the_number_of_open_guarded_sections_can_be_read() {
        for (failpoints, open) in [("step=1*off->return(kill)", 1), ("", 0)] {
            let story = Story::new();
            let path = story.directory.path().join("guarded").display().to_string();
            story.begin(&[("FAILPOINTS", failpoints), (GUARDED, &path)]).wait().unwrap();
            assert_eq!(fs::read(path).unwrap(), [open], "{failpoints:?}");
        }
    }

    #[test]
    fn a_stop_suspends_the_process_at_its_failpoint_until_it_is_continued() {
        let story = Story::new();
        let mut victim = story.begin(&[("FAILPOINTS", "step=1*off->1*return(stop)")]);
        let pid = Pid::from_raw(victim.id().cast_signed()).unwrap();
        let (_, status) = waitpid(Some(pid), WaitOptions::UNTRACED).unwrap().unwrap();
        assert!(status.stopped());
        assert_eq!((story.read("said").len(), story.read("log").len()), (1, 1));

        kill_process(pid, Signal::CONT).unwrap();
        assert!(victim.wait().unwrap().success());
        assert_eq!((story.read("said").len(), story.read("log").len()), (4, 1));
    }

    #[test]
    fn replies_are_lost_guards_weakened_and_statements_replaced() {
        let story = Story::new();
        let path = story.directory.path().join("open.sql");
        fs::write(&path, "select 1").unwrap();
        let status = story
            .begin(&[
                ("FAILPOINTS", "reply=1*off->1*return(lost);guard=return(weak)"),
                (WEAKENED, &format!("open={}; ", path.display())),
            ])
            .wait()
            .unwrap();
        assert!(status.success());
        let said = [
            "step lost=false weak=true",
            "step lost=true weak=true",
            "step lost=false weak=true",
            "select 1",
        ];
        assert_eq!(story.read("said"), said.map(str::to_owned).to_vec());
        assert_eq!(story.read("log"), ["reply"]);
    }

    #[test]
    fn an_action_without_a_meaning_is_not_ignored() {
        for (variable, value) in [
            ("FAILPOINTS", "step=return(kil)"),
            ("FAILPOINTS", "step=return(lost)"),
            ("FAILPOINTS", "reply=return"),
            ("FAILPOINTS", "step"),
            (WEAKENED, "open"),
            (WEAKENED, "open=/no/such/file"),
        ] {
            let story = Story::new();
            assert!(!story.begin(&[(variable, value)]).wait().unwrap().success(), "{variable}={value}");
        }
    }
}
