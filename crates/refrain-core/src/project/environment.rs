//! `${NAME}` in URLs and headers: the only way in which the files of a project refer to secrets.
//!
//! Every value that is filled in this way counts as a secret from then on, and so does the password of a URL, even if it is
//! written in the file.

use std::ffi::OsString;
use std::ops::Range;

use super::document::{Entries, Value};
use crate::redact::{HIDDEN, Secret};
use crate::template::is_identifier;

/// Variables that are not secret: hiding every `/home` makes a log useless.
const PLAIN_VARIABLES: [&str; 12] =
    ["PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "PWD", "TMPDIR", "TERM"];

/// A reference to the environment: `${NAME}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reference {
    /// Its bytes, from `$` to `}`.
    pub(crate) span: Range<usize>,
    /// The name, not validated.
    pub(crate) name: String,
}

impl Reference {
    /// Whether it is a valid name of a variable.
    pub(crate) fn is_name(&self) -> bool {
        is_identifier(&self.name)
    }
}

/// All references to the environment in a text.
pub(crate) fn references(text: &str) -> Vec<Reference> {
    let mut references = Vec::new();
    let mut at = 0;
    while let Some(found) = text.get(at..).and_then(|rest| rest.find("${")) {
        let start = at + found;
        let inner = text.get(start + 2..).unwrap_or_default();
        let length = inner.find('}').unwrap_or(inner.len());
        let end = (start + 2 + length + 1).min(text.len());
        references
            .push(Reference { span: start..end, name: inner.get(..length).unwrap_or_default().to_owned() });
        at = end;
    }
    references
}

/// The text with a placeholder of the same length for each reference.
pub(crate) fn masked(text: &str) -> String {
    replaced(text, |reference| "_".repeat(reference.span.len()))
}

/// The text with all references filled in, and the values. A variable that is not set or not UTF-8 becomes empty: the
/// first pass has reported it.
pub(crate) fn expand(text: &str, environment: &dyn Fn(&str) -> Option<OsString>) -> (String, Vec<Secret>) {
    let mut secrets = Vec::new();
    let expanded = replaced(text, |reference| {
        let value = environment(&reference.name).unwrap_or_default();
        secrets.push(secret(&value));
        value.into_string().unwrap_or_default()
    });
    (expanded, secrets)
}

fn replaced(text: &str, mut replace: impl FnMut(&Reference) -> String) -> String {
    let mut result = String::new();
    let mut copied = 0;
    for reference in references(text) {
        result.push_str(text.get(copied..reference.span.start).unwrap_or_default());
        result.push_str(&replace(&reference));
        copied = reference.span.end;
    }
    result.push_str(text.get(copied..).unwrap_or_default());
    result
}

/// The values that a job passes on to its command: usually they are passed on because they are secret.
pub(crate) fn passed_on(job: &Entries<'_>, environment: &dyn Fn(&str) -> Option<OsString>) -> Vec<Secret> {
    let names = job.get("env").and_then(Value::list).unwrap_or_default().into_iter().filter_map(Value::text);
    let hidden = names.filter(|name| !PLAIN_VARIABLES.contains(&name.value.as_str()));
    let values = hidden.filter_map(|name| environment(&name.value));
    values.filter(|value| value != "true" && value != "false").map(|value| secret(&value)).collect()
}

fn secret(value: &OsString) -> Secret {
    Secret::new(value.as_encoded_bytes())
}

/// The positions of the passwords of a URL: before the host, or in the query parameters.
fn password_spans(url: &str) -> Vec<Range<usize>> {
    let parameters = url.match_indices("password=").map(|(at, name)| {
        let from = at + name.len();
        let value = url.get(from..).unwrap_or_default();
        from..from + value.find(['&', '#']).unwrap_or(value.len())
    });
    password_of_user(url).into_iter().chain(parameters).filter(|span| !span.is_empty()).collect()
}

fn password_of_user(url: &str) -> Option<Range<usize>> {
    let authority = url.find("://")? + 3;
    let rest = url.get(authority..)?;
    let host = rest.get(..rest.find(['/', '?', '#']).unwrap_or(rest.len()))?;
    let user = host.get(..host.rfind('@')?)?;
    let from = authority + user.find(':')? + 1;
    Some(from..authority + user.len())
}

/// The passwords of a URL in both forms in which they may be printed: encoded and decoded.
pub fn passwords(url: &str) -> Vec<Secret> {
    let written = password_spans(url).into_iter().filter_map(|span| url.get(span));
    written.flat_map(|password| [password.to_owned(), decoded(password)]).map(Secret::new).collect()
}

/// Whether a URL contains a literal password, not a reference to the environment.
pub(crate) fn has_plain_password(written: &str) -> bool {
    let passwords = password_spans(written).into_iter().filter_map(|span| written.get(span));
    passwords.into_iter().any(|password| !password.starts_with("${"))
}

/// The URL as written, without passwords.
pub(crate) fn without_passwords(written: &str) -> String {
    let mut url = written.to_owned();
    for span in password_spans(written).into_iter().rev() {
        if !written.get(span.clone()).unwrap_or_default().starts_with("${") {
            url.replace_range(span, HIDDEN);
        }
    }
    url
}

fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let hex = rest.strip_prefix('%').and_then(|rest| u8::from_str_radix(rest.get(..2)?, 16).ok());
        match hex {
            Some(byte) => bytes.push(byte),
            None => bytes.extend(first.to_string().as_bytes()),
        }
        rest = rest.get(if hex.is_some() { 3 } else { first.len_utf8() }..).unwrap_or_default();
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_password_of_an_address_is_found_in_both_of_its_forms() {
        for (url, written, read) in [
            ("postgres://me:p%40ss@db/shop", "p%40ss", "p@ss"),
            ("postgres://me:a:b@db:5432/shop?x=y@z", "a:b", "a:b"),
            ("postgres://me:a@b@db/shop", "a@b", "a@b"),
            ("postgres://db/shop?user=me&password=p%40ss&x=y", "p%40ss", "p@ss"),
        ] {
            let passwords = passwords(url);
            assert!(
                passwords.contains(&Secret::new(written)) && passwords.contains(&Secret::new(read)),
                "{url}"
            );
            assert!(!without_passwords(url).contains(written), "{url}");
        }
        for url in
            ["sqlite:shop.db", "postgres://db/shop", "postgres://me@db/shop", "postgres://me:@db", "x:%zz@é"]
        {
            assert_eq!(without_passwords(url), url);
        }
        assert_eq!(
            without_passwords("postgres://me:${PASSWORD}@db/shop"),
            "postgres://me:${PASSWORD}@db/shop"
        );
    }

    #[test]
    fn a_value_from_the_environment_is_a_secret() {
        let environment = |name: &str| (name == "HOST").then(|| "db.internal".into());
        let (text, secrets) = expand("postgres://${HOST}/shop?${GONE}", &environment);
        assert_eq!(text, "postgres://db.internal/shop?");
        assert!(secrets.contains(&Secret::new("db.internal")));
        assert_eq!(masked("a${HOST}b"), "a_______b");
        assert_eq!(references("${").len(), 1, "a reference that is not closed is one");
    }
}
