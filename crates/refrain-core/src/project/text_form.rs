//! The forms of strings in job files, each with its parser.

use crate::project::environment;
use crate::{
    Backoff, Grid, JobName, KeyTemplate, ParseError, ProjectName, Schedule, Template, Zone, duration,
    template,
};

/// The required form of a string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextForm {
    /// Any string that is not empty.
    Plain,
    Schedule,
    Zone,
    Grid,
    Length,
    /// A length of time that is longer than zero.
    PositiveLength,
    Backoff,
    KeyTemplate,
    /// A template for one argument of a command.
    Argument,
    /// Statements, or the name of a file with statements. Their content depends on the database.
    Sql,
    ProjectName,
    JobName,
    /// The name of an environment variable.
    Variable,
    /// The URL of a database, with environment variables filled in.
    Address,
    /// The URL of a call: a template, with environment variables filled in.
    Link,
    /// A string in the body of a call.
    Body,
    /// A header or another part of a call that may hold a secret.
    Header,
}

impl TextForm {
    /// What it is, in a sentence.
    pub(crate) fn noun(self) -> &'static str {
        match self {
            TextForm::Plain => "a string",
            TextForm::Schedule => "a schedule",
            TextForm::Zone => "a time zone",
            TextForm::Grid => "a kind of window",
            TextForm::Length | TextForm::PositiveLength => "a length of time",
            TextForm::Backoff => "a range of waits",
            TextForm::KeyTemplate => "a key",
            TextForm::Argument | TextForm::Body | TextForm::Header => "a template",
            TextForm::Sql => "SQL",
            TextForm::ProjectName | TextForm::JobName => "a name",
            TextForm::Variable => "the name of an environment variable",
            TextForm::Address | TextForm::Link => "a URL",
        }
    }

    /// Whether `${ENV}` is expanded in it.
    pub(crate) fn is_expanded(self) -> bool {
        matches!(self, TextForm::Address | TextForm::Link | TextForm::Header)
    }

    /// What to do with a value of the environment where it is not expanded.
    pub(crate) fn instead_of_environment(self) -> &'static str {
        match self {
            TextForm::Argument => {
                "every user of the machine can see arguments: name the variable in env = [\"…\"] and read it in the \
                 program"
            }
            TextForm::Body => {
                "a secret belongs in `headers`, which take ${NAME}; write anything else here as it is"
            }
            TextForm::Sql => "values reach SQL as binds only, as in :ds or :scope",
            _ => "write the value itself; only URLs and headers expand environment variables",
        }
    }

    /// Parses the string, and reports what is wrong with it.
    pub(crate) fn check(self, text: &str) -> Result<(), ParseError> {
        let empty = || ParseError::whole(self.noun(), text, "it is empty");
        match self {
            TextForm::Plain | TextForm::Sql if text.trim().is_empty() => Err(empty()),
            // The URL of a database is checked once the environment is filled in.
            TextForm::Plain | TextForm::Sql | TextForm::Address => Ok(()),
            TextForm::Schedule => Schedule::parse(text).map(drop),
            TextForm::Zone => Zone::parse(text).map(drop),
            TextForm::Grid => Grid::parse(text).map(drop),
            TextForm::Length => duration::parse(text).map(drop),
            TextForm::PositiveLength => positive(text),
            TextForm::Backoff => Backoff::parse(text).map(drop),
            TextForm::KeyTemplate => KeyTemplate::parse(text).map(drop),
            TextForm::Argument | TextForm::Body => Template::parse(text).map(drop),
            TextForm::Link | TextForm::Header => Template::parse(&environment::masked(text)).map(drop),
            TextForm::ProjectName => ProjectName::parse(text).map(drop),
            TextForm::JobName => JobName::parse(text).map(drop),
            TextForm::Variable => variable(text),
        }
    }
}

fn positive(text: &str) -> Result<(), ParseError> {
    match duration::parse(text)? {
        length if length.is_zero() => {
            Err(ParseError::whole("length of time", text, "it must be longer than zero")
                .help("write how long it may take at most, as in \"30m\""))
        }
        _ => Ok(()),
    }
}

fn variable(name: &str) -> Result<(), ParseError> {
    let wrong = |reason: &str| ParseError::whole("environment variable", name, reason);
    if !template::is_identifier(name) {
        let help = "write its name alone, as in [\"API_TOKEN\"]; the value comes from the environment";
        return Err(wrong("a name is letters, digits and `_`").help(help));
    }
    if name.starts_with("REFRAIN_") {
        return Err(wrong("this is set for every command").help("leave it out"));
    }
    Ok(())
}
