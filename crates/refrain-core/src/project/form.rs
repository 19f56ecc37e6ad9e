//! The forms that a text may have to have, each with the parser that knows it.

use crate::project::environment;
use crate::{
    Backoff, Grid, JobName, KeyTemplate, ParseError, ProjectName, Schedule, Template, Zone, duration,
    template,
};

/// What a text has to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Any text that is not empty.
    Plain,
    Schedule,
    Zone,
    Grid,
    Length,
    /// A length of time that is not nothing.
    PositiveLength,
    Backoff,
    KeyTemplate,
    /// A template for one argument of a command.
    Argument,
    /// Statements, or the name of a file of them. What is in them depends on the database.
    Sql,
    ProjectName,
    JobName,
    /// The name of an environment variable.
    Variable,
    /// The address of a database, after the environment was put into it.
    Address,
    /// Where a call goes: a template, after the environment was put into it.
    Link,
    /// A text in the body of a call.
    Body,
    /// A header or another part of a call that may hold a secret.
    Header,
}

impl Form {
    /// What it is, in a sentence.
    pub(crate) fn noun(self) -> &'static str {
        match self {
            Form::Plain => "a string",
            Form::Schedule => "a schedule",
            Form::Zone => "a time zone",
            Form::Grid => "a kind of window",
            Form::Length | Form::PositiveLength => "a length of time",
            Form::Backoff => "a range of waits",
            Form::KeyTemplate => "a key",
            Form::Argument | Form::Body | Form::Header => "a template",
            Form::Sql => "SQL",
            Form::ProjectName | Form::JobName => "a name",
            Form::Variable => "the name of an environment variable",
            Form::Address | Form::Link => "a URL",
        }
    }

    /// Whether `${ENV}` is expanded in it.
    pub(crate) fn is_expanded(self) -> bool {
        matches!(self, Form::Address | Form::Link | Form::Header)
    }

    /// What to do with a value of the environment where it is not expanded.
    pub(crate) fn instead_of_environment(self) -> &'static str {
        match self {
            Form::Argument => {
                "every user of the machine can see arguments: name the variable in env = [\"…\"] and read it in the \
                 program"
            }
            Form::Body => {
                "a secret belongs in `headers`, which take ${NAME}; write anything else here as it is"
            }
            Form::Sql => "values reach SQL as binds only, as in :ds or :scope",
            _ => "write the value itself; only URLs and headers expand environment variables",
        }
    }

    /// Reads the text, and says what is wrong with it.
    pub(crate) fn check(self, text: &str) -> Result<(), ParseError> {
        let empty = || ParseError::whole(self.noun(), text, "it is empty");
        match self {
            Form::Plain | Form::Sql if text.trim().is_empty() => Err(empty()),
            // What a database's address may be is said where the environment was put into it.
            Form::Plain | Form::Sql | Form::Address => Ok(()),
            Form::Schedule => Schedule::parse(text).map(drop),
            Form::Zone => Zone::parse(text).map(drop),
            Form::Grid => Grid::parse(text).map(drop),
            Form::Length => duration::parse(text).map(drop),
            Form::PositiveLength => positive(text),
            Form::Backoff => Backoff::parse(text).map(drop),
            Form::KeyTemplate => KeyTemplate::parse(text).map(drop),
            Form::Argument | Form::Body => Template::parse(text).map(drop),
            Form::Link | Form::Header => Template::parse(&environment::masked(text)).map(drop),
            Form::ProjectName => ProjectName::parse(text).map(drop),
            Form::JobName => JobName::parse(text).map(drop),
            Form::Variable => variable(text),
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
