//! What happens when the work of a finished run is done once more, and whether the operator must confirm it.
//!
//! `--again` makes another attempt, which leaves alone everything that is recorded as done. A redo does it again: each
//! unit and each statement, once. Rows that replace themselves can be written twice without harm. Actions that reach
//! outside or add rows happen twice, so the operator confirms them first. An appended row cannot be taken back, and a
//! second copy of it is never intended.

use crate::feed::{Apply, FeedCursor};
use crate::project::{Action, JobFile};
use crate::publish::{Mode, Publish};
use crate::{Per, Template};

/// The consequence of redoing a job.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Redo {
    /// Rows or files are replaced by themselves: no confirmation is needed.
    AtOnce,
    /// Something happens twice; the text says what, for a question to the operator.
    Asks(String),
    /// The work cannot be done again; the text says why.
    Refused(String),
}

impl Redo {
    /// The consequence of redoing this job.
    pub fn of(job: &JobFile) -> Redo {
        match &job.action {
            Action::Command(argv) => Redo::Asks(format!("`{}` is executed once more", program(argv))),
            Action::Sql(statements) => {
                let statements = match statements.len() {
                    1 => "its statement is".to_owned(),
                    count => format!("its {count} statements are"),
                };
                Redo::Asks(format!("{statements} executed once more, and rows that they add are added twice"))
            }
            Action::Publish(steps) => {
                let appends = |publish: &Publish| matches!(publish, Publish::Table(publish) if publish.mode == Mode::AppendOnce);
                if steps.iter().any(|step| appends(&step.publish)) { appended() } else { Redo::AtOnce }
            }
            Action::Units(feed) => match &feed.apply {
                Apply::Publish(publish) if publish.mode == Mode::AppendOnce => appended(),
                Apply::Publish(_) => match &feed.cursor {
                    // The position of a permanent cursor says nothing about where a given run began.
                    Some(FeedCursor { name, per: Per::Ever }) => Redo::Asks(format!(
                        "only what its source shows after the cursor `{name}` is written once more; to go further \
                         back, put the cursor back first (refrain checkpoint set)"
                    )),
                    _ => Redo::AtOnce,
                },
                Apply::Command { argv, .. } => {
                    Redo::Asks(format!("`{}` is executed once more for each of its units", program(argv)))
                }
                // Without the URL, which may hold a secret.
                Apply::Http { call, .. } => Redo::Asks(format!(
                    "a call ({}) is made once more for each of its units, under a new idempotency key",
                    call.method
                )),
            },
        }
    }
}

fn appended() -> Redo {
    Redo::Refused(
        "an appended row stays, and doing it again would add a duplicate\n  \
         correct the row in its table; or let the job publish with mode = \"merge\", which replaces rows"
            .to_owned(),
    )
}

fn program(argv: &[Template]) -> String {
    argv.first().map(ToString::to_string).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::project::{Files, SourceFile, read};

    /// The consequence of redoing the job of this file.
    fn redo(says: &str) -> Redo {
        let settings = "[project]\nname = \"shop\"\n[databases]\nshop = \"sqlite:shop.db\"\n";
        let project = SourceFile::new("refrain.toml", settings);
        let jobs =
            [SourceFile::new("jobs/sync.toml", format!("schedule = \"@daily\"\nwindow = \"day\"\n{says}"))];
        let files = Files { project: &project, jobs: &jobs, environment: &|_| None, sibling: &|_| None };
        let project = read(&files).unwrap();
        Redo::of(project.jobs.first().unwrap())
    }

    #[test]
    fn replacing_needs_no_confirmation_reaching_outside_does_and_appending_is_refused() {
        let query = "database = \"shop\"\nquery = \"select :ds as ds, 1 as n\"\n[publish]\ntable = \"t\"\n";
        let units = "command = [\"./list\"]\noutput = \"units\"\n[unit]\nkey = \"invoice:{id}\"\n";
        let into = "[publish]\ndatabase = \"shop\"\ntable = \"t\"\n";
        let table = [
            (format!("{query}mode = \"overwrite\"\nowns = \"ds = :ds\"\n"), "at once"),
            (format!("{query}mode = \"merge\"\nkey = [\"ds\"]\n"), "at once"),
            (format!("{query}mode = \"append-once\"\nkey = [\"ds\"]\n"), "refused"),
            (format!("{units}{into}mode = \"merge\"\nkey = [\"id\"]\n"), "at once"),
            (
                format!("{units}[cursor]\nper = \"window\"\n{into}mode = \"merge\"\nkey = [\"id\"]\n"),
                "at once",
            ),
            (
                format!("{units}[cursor]\n{into}mode = \"merge\"\nkey = [\"id\"]\n"),
                "only what its source shows after the cursor `cursor` is written once more; to go further back, put the cursor back first (refrain checkpoint set)",
            ),
            (format!("{units}{into}mode = \"append-once\"\n"), "refused"),
            (
                format!("{units}command = [\"./book.sh\", \"{{id}}\"]\n"),
                "`./book.sh` is executed once more for each of its units",
            ),
            (
                format!("{units}http = {{ url = \"https://books.test/{{id}}\", json = {{}} }}\n"),
                "a call (POST) is made once more for each of its units, under a new idempotency key",
            ),
            ("command = [\"./export.sh\", \"{ds}\"]\n".to_owned(), "`./export.sh` is executed once more"),
            (
                "database = \"shop\"\nsql = \"delete from t where ds = :ds; insert into t values (:ds)\"\n"
                    .to_owned(),
                "its 2 statements are executed once more, and rows that they add are added twice",
            ),
        ];
        for (says, expected) in table {
            match redo(&says) {
                Redo::AtOnce => assert_eq!("at once", expected, "{says}"),
                Redo::Asks(what) => assert_eq!(what, expected, "{says}"),
                Redo::Refused(why) => {
                    assert!(expected == "refused" && why.contains("merge"), "{says}: {why}");
                }
            }
        }
    }
}
