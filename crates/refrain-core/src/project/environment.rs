//! `${NAME}` in addresses and headers: the one way by which a project's files refer to secrets.
//!
//! Every value that is put into a text this way is a secret from then on, and so is the password of an address,
//! also if somebody wrote it into the file.

use std::ffi::OsString;
use std::ops::Range;

use super::document::{Entries, Value};
use crate::redact::{HIDDEN, Secret};
use crate::template::is_identifier;

/// Variables that tell nothing: a log in which every `/home` is hidden helps nobody.
const PLAIN_VARIABLES: [&str; 12] =
    ["PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "PWD", "TMPDIR", "TERM"];

/// A place where the environment is named: `${NAME}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reference {
    /// The bytes, from `$` to `}`.
    pub(crate) span: Range<usize>,
    /// The name, which may be anything.
    pub(crate) name: String,
}

impl Reference {
    /// Whether it can be the name of a variable.
    pub(crate) fn is_name(&self) -> bool {
        is_identifier(&self.name)
    }
}

/// All places of a text where the environment is named.
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

/// The text with something of the same length where the environment is named.
pub(crate) fn masked(text: &str) -> String {
    replaced(text, |reference| "_".repeat(reference.span.len()))
}

/// The text with the environment put into it, and what was put into it. A variable that is not set, or
/// is no text, gives nothing: that has been said.
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

/// The values that a job passes on to its command: most often they are passed on because they are secret.
pub(crate) fn passed_on(job: &Entries<'_>, environment: &dyn Fn(&str) -> Option<OsString>) -> Vec<Secret> {
    let names = job.get("env").and_then(Value::list).unwrap_or_default().into_iter().filter_map(Value::text);
    let hidden = names.filter(|name| !PLAIN_VARIABLES.contains(&name.value.as_str()));
    let values = hidden.filter_map(|name| environment(&name.value));
    values.filter(|value| value != "true" && value != "false").map(|value| secret(&value)).collect()
}

fn secret(value: &OsString) -> Secret {
    Secret::new(value.as_encoded_bytes())
}

/// Where the passwords of an address stand: before the host, or among the parameters.
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

/// The passwords of an address as they may be printed: as it is written, and decoded.
pub fn passwords(url: &str) -> Vec<Secret> {
    let written = password_spans(url).into_iter().filter_map(|span| url.get(span));
    written.flat_map(|password| [password.to_owned(), decoded(password)]).map(Secret::new).collect()
}

/// Whether a password is written in an address, and not taken from the environment.
pub(crate) fn has_plain_password(written: &str) -> bool {
    let passwords = password_spans(written).into_iter().filter_map(|span| written.get(span));
    passwords.into_iter().any(|password| !password.starts_with("${"))
}

/// An address as a person may see it: as it is written, without its passwords.
pub(crate) fn shown(written: &str) -> String {
    let mut shown = written.to_owned();
    for span in password_spans(written).into_iter().rev() {
        if !written.get(span.clone()).unwrap_or_default().starts_with("${") {
            shown.replace_range(span, HIDDEN);
        }
    }
    shown
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
            assert!(!shown(url).contains(written), "{url}");
        }
        for url in
            ["sqlite:shop.db", "postgres://db/shop", "postgres://me@db/shop", "postgres://me:@db", "x:%zz@é"]
        {
            assert_eq!(shown(url), url);
        }
        assert_eq!(shown("postgres://me:${PASSWORD}@db/shop"), "postgres://me:${PASSWORD}@db/shop");
    }

    #[test]
    fn what_was_put_into_a_text_is_a_secret() {
        let environment = |name: &str| (name == "HOST").then(|| "db.internal".into());
        let (text, secrets) = expand("postgres://${HOST}/shop?${GONE}", &environment);
        assert_eq!(text, "postgres://db.internal/shop?");
        assert!(secrets.contains(&Secret::new("db.internal")));
        assert_eq!(masked("a${HOST}b"), "a_______b");
        assert_eq!(references("${").len(), 1, "a reference that is not closed is one");
    }
}
