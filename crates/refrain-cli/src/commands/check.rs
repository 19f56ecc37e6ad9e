//! `refrain check`: lists every problem in the files, or what each job does.
//!
//! The problems are found by the two passes of `project.rs` of the core: its `key_check.rs` checks keys, types and words, and one file
//! below `project/job/` for each part of a job checks how they fit together.

use std::fmt;

use clap::Args;
use refrain::core::Template;
use refrain::core::feed::{Apply, FeedSource};
use refrain::core::project::{Action, JobFile};
use refrain::core::publish::Publish;
use refrain::core::schedule::describe;
use refrain::project::PROJECT_FILE;
use serde::Serialize;

use crate::context::Context;
use crate::exit::{CliError, Exit};
use crate::output::harmless;

#[derive(Args)]
#[command(
    after_help = "Examples:\n  refrain check\n  refrain check --json\n\nIt opens no database and runs nothing."
)]
pub(crate) struct Arguments {}

#[derive(Serialize)]
struct Checked {
    project: String,
    jobs: Vec<Job>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

#[derive(Serialize)]
struct Job {
    name: String,
    file: String,
    when: String,
    does: String,
}

impl Job {
    fn of(job: &JobFile) -> Job {
        let when = match &job.timetable {
            Some(timetable) => describe(timetable),
            None => "when it is enqueued".to_owned(),
        };
        let does = match &job.action {
            Action::Command(words) => match &job.files {
                None => format!("runs {}", typed(words)),
                Some(files) => format!("runs {}, whose files go into {}", typed(words), files.path),
            },
            Action::Sql(statements) => match statements.len() {
                1 => "executes 1 statement".to_owned(),
                count => format!("executes {count} statements"),
            },
            Action::Publish(steps) => {
                let places: Vec<String> = steps.iter().map(|step| place(&step.publish)).collect();
                format!("publishes {}", places.join(", then "))
            }
            Action::Units(feed) => {
                let source = match &feed.source {
                    FeedSource::Command(words) => format!("what {} prints", typed(words)),
                    FeedSource::Query(_) => "the rows of a query".to_owned(),
                };
                match &feed.apply {
                    Apply::Publish(publish) => {
                        format!("takes {source} as units into {} ({})", publish.table, publish.mode)
                    }
                    Apply::Command { argv, .. } => format!("runs {} for each of {source}", typed(argv)),
                    // Without the URL: it may hold a secret.
                    Apply::Http { call, .. } => {
                        format!("makes a call ({}) for each of {source}", call.method)
                    }
                }
            }
        };
        Job { name: job.name.to_string(), file: job.path.clone(), when, does: harmless(&does) }
    }
}

fn typed(words: &[Template]) -> String {
    words.iter().map(|word| quoted(&word.to_string())).collect::<Vec<_>>().join(" ")
}

fn place(publish: &Publish) -> String {
    match publish {
        Publish::Table(publish) => format!("into {} ({})", publish.table, publish.mode),
        Publish::Files(files) => format!("into files in {} ({})", files.path, files.format),
    }
}

impl fmt::Display for Checked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Job { name, when, does, .. } in &self.jobs {
            writeln!(f, "{name}\n  {when}\n  {does}")?;
        }
        match self.jobs.len() {
            1 => write!(f, "{}: 1 job, no problems", self.project),
            jobs => write!(f, "{}: {jobs} jobs, no problems", self.project),
        }
    }
}

/// A word, quoted for a shell.
fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || "-_./:=,@%+{}".contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

fn plain_password(place: &str) -> String {
    format!(
        "{PROJECT_FILE} holds the password of {place}: every reader of the file can see it\n  \
         write ${{PASSWORD}} instead, and set that variable where Refrain runs"
    )
}

pub(crate) fn check(context: &Context, _: &Arguments) -> Result<Exit, CliError> {
    let project = context.whole_project()?;
    let jobs: Vec<Job> = project.jobs().iter().map(Job::of).collect();
    let is_scheduled = |job: &&JobFile| job.timetable.is_some();
    let first = project.jobs().iter().find(is_scheduled).or(project.jobs().first());
    let first = first.map(|job| (job.name.to_string(), job.timetable.is_some()));
    let warnings: Vec<String> = project.plain_passwords().iter().map(|place| plain_password(place)).collect();
    context.output.result(&Checked {
        project: project.name().to_string(),
        jobs,
        warnings: warnings.clone(),
    })?;
    for warning in warnings {
        context.output.say(format_args!("warning: {warning}"));
    }
    match first {
        Some((job, true)) => {
            context.output.say(format_args!("next: refrain run {job}, or refrain next {job}"));
        }
        Some((job, false)) => context.output.say(format_args!("next: refrain enqueue {job} --key KEY")),
        None => context.output.say("next: write a job, as in jobs/hello.toml of `refrain init`"),
    }
    Ok(Exit::Done)
}
