//! Checks across job files: names that clash, tables that two jobs overwrite.
//!
//! If two jobs conflict, both are left out, because either may be the intended one.

use std::collections::{BTreeSet, HashMap};

use super::document::LocatedText;
use super::job::ReadJob;
use super::problem::{Problem, SourceFile};
use super::suggest;
use crate::JobName;

/// The name of each job, which is that of its file.
pub(crate) fn names(
    jobs: &[SourceFile],
    problems: &mut Vec<Problem>,
    left_out: &mut BTreeSet<String>,
) -> Vec<String> {
    let mut first: HashMap<String, (&str, &str)> = HashMap::new();
    let mut names = Vec::new();
    for SourceFile { path, .. } in jobs {
        let file = path.rsplit(['/', '\\']).next().unwrap_or(path);
        let name = file.strip_suffix(".toml").unwrap_or(file);
        if let Err(error) = JobName::parse(name) {
            let message = format!("`{file}` is not a valid file name: a job is named after its file");
            let problem = Problem::new(path, 0..0, message, error.reason());
            let help = error.advice().map(|advice| advice.replace('`', "").replacen("write ", "", 1));
            let help = help
                .filter(|name| JobName::parse(name).is_ok())
                .map(|name| format!("rename it to {name}.toml"));
            let help = help.or(error.advice().map(str::to_owned));
            problems.push(Problem { help, ..problem });
            left_out.insert(name.to_owned());
        }
        if let Some((other, other_name)) = first.get(&name.to_lowercase()) {
            let message =
                format!("`{other}` and `{path}` would be the same job: names must not differ only in case");
            let problem = Problem::new(path, 0..0, message, "the second of this name");
            problems.push(problem.help("rename one of them"));
            left_out.extend([name.to_owned(), (*other_name).to_owned()]);
        } else {
            first.insert(name.to_lowercase(), (path, name));
        }
        names.push(name.to_owned());
    }
    names
}

/// Checks the references between jobs.
pub(crate) fn check(
    jobs: &[(&String, ReadJob)],
    names: &[String],
    problems: &mut Vec<Problem>,
    left_out: &mut BTreeSet<String>,
) {
    let mut formerly: HashMap<&JobName, &str> = HashMap::new();
    let mut overwritten: HashMap<(&str, &str), &str> = HashMap::new();
    for (job, read) in jobs {
        let before = problems.len();
        for (old, text) in &read.formerly {
            problems.extend(former(job, old, text, names));
            if let Some(other) = formerly.insert(old, job).filter(|other| other != job) {
                left_out.insert(other.to_owned());
                let message = format!("`{other}` was formerly `{old}` too");
                problems.push(
                    text.wrong(message, "only one job can take over its windows")
                        .help("leave it in one of them"),
                );
            }
        }
        for (before, text) in &read.after {
            problems.extend(earlier(job, before, text, names));
        }
        for (database, table, text) in &read.overwrites {
            if let Some(other) = overwritten.insert((database, table), job).filter(|other| other != job) {
                left_out.insert(other.to_owned());
                let message = format!("`{other}` overwrites `{}` of `{database}` too", text.value);
                let help = "let one job write the table, or give each a table of its own";
                problems.push(text.wrong(message, "each job would overwrite the other's rows").help(help));
            }
        }
        if problems.len() > before {
            left_out.insert((*job).clone());
        }
    }
}

fn former(job: &str, old: &JobName, text: &LocatedText, names: &[String]) -> Option<Problem> {
    if old.as_str() == job {
        return Some(
            text.wrong("this is the current name of the job", "the same name")
                .help("write the name it had before"),
        );
    }
    let exists = names.iter().any(|name| name == old.as_str());
    let message = format!("there is a job `{old}`, so this job did not have that name");
    let help = format!("delete the file of `{old}`, or remove `formerly`");
    exists.then(|| text.wrong(message, "the name of another job").help(help))
}

fn earlier(job: &str, before: &JobName, text: &LocatedText, names: &[String]) -> Option<Problem> {
    if before.as_str() == job {
        return Some(text.wrong("a job cannot wait for itself", "this job").help("leave it out"));
    }
    let exists = names.iter().any(|name| name == before.as_str());
    let help = match suggest::nearest(before.as_str(), names.iter().map(String::as_str)) {
        Some(name) => format!("did you mean \"{name}\"?"),
        None => "a job is named after its file".to_owned(),
    };
    (!exists).then(|| text.wrong(format!("there is no job `{before}`"), "unknown job").help(help))
}
