//! What it means to have the work of a run done once more, and whether that may simply be done.
//!
//! `--again` makes another attempt, which leaves alone what is recorded as done. A redo does it again: each unit, each statement,
//! once. Rows that replace themselves can be written twice without harm. What reaches outside, or adds, is done twice by it,
//! so a person is asked first. A row that was appended cannot be taken back, and a second one beside it is never meant.

use crate::feed::{Apply, FeedCursor};
use crate::project::{Action, JobFile};
use crate::publish::{Mode, Publish};
use crate::{Per, Template};

/// What a redo of a job comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Redo {
    /// Rows or files are written again in place of themselves.
    AtOnce,
    /// Something is done twice: this, in words for a question.
    Asks(String),
    /// It cannot be done again, for this reason.
    Refused(String),
}

impl Redo {
    /// What a redo of this job comes to.
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
                    // A cursor that is kept for ever does not say where a run began.
                    Some(FeedCursor { name, per: Per::Ever }) => Redo::Asks(format!(
                        "only what its source shows after the cursor `{name}` is written once more; to go further \
                         back, put the cursor back first (refrain checkpoint set)"
                    )),
                    _ => Redo::AtOnce,
                },
                Apply::Command { argv, .. } => {
                    Redo::Asks(format!("`{}` is executed once more for each of its units", program(argv)))
                }
                // Without its address, which may hold a secret.
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
        "a row that was appended stays, and a second one beside it would be a row twice\n  \
         mend the row in its table; or let the job publish with mode = \"merge\", which replaces rows"
            .to_owned(),
    )
}

fn program(argv: &[Template]) -> String {
    argv.first().map(ToString::to_string).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::project::{Files, Source, read};

    /// What a redo of a job comes to whose file says this.
    fn redo(says: &str) -> Redo {
        let settings = "[project]\nname = \"shop\"\n[databases]\nshop = \"sqlite:shop.db\"\n";
        let project = Source::new("refrain.toml", settings);
        let jobs =
            [Source::new("jobs/sync.toml", format!("schedule = \"@daily\"\nwindow = \"day\"\n{says}"))];
        let files = Files { project: &project, jobs: &jobs, environment: &|_| None, sibling: &|_| None };
        let project = read(&files).unwrap();
        Redo::of(project.jobs.first().unwrap())
    }

    #[test]
    fn rows_are_replaced_at_once_what_reaches_further_is_asked_about_and_what_was_appended_stays() {
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
