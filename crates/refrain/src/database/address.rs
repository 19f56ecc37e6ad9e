//! The URL of a database: `sqlite:PATH` or `postgres://USER:PASSWORD@HOST/DATABASE`.
//!
//! A password must not reach a log, a terminal or a panic, however the URL was mistyped. So an error never holds the
//! original text, but a copy that is redacted by its characters alone, before anything is parsed; and a URL is
//! displayed from its parsed parts. Unknown options are refused here because the driver would log them with their
//! values, and half of a password with an `&` in it looks like an option.

use std::fmt;
use std::path::PathBuf;

use refrain_core::ParseError;
use sqlx::postgres::{PgConnectOptions, PgSslMode};

const WHAT: &str = "database URL";
const HIDDEN: &str = "***";
const FORMS: &str = "write sqlite:PATH or postgres://USER:PASSWORD@HOST/DATABASE";
const SQLITE_FORM: &str = "write the path of a file, as in sqlite:.refrain/refrain.db";

/// The options that the driver accepts after `?` in a PostgreSQL URL, besides `options[NAME]`.
const OPTIONS: [&str; 18] = [
    "application_name",
    "dbname",
    "host",
    "hostaddr",
    "options",
    "password",
    "port",
    "ssl-ca",
    "ssl-cert",
    "ssl-key",
    "ssl-mode",
    "ssl-root-cert",
    "sslcert",
    "sslkey",
    "sslmode",
    "sslrootcert",
    "statement-cache-capacity",
    "user",
];

/// A parsed database URL.
#[derive(Clone)]
pub(crate) enum Address {
    /// A file. The path is as it was written: relative to the folder that the reader of the URL chooses.
    Sqlite {
        /// The path of the file.
        path: PathBuf,
    },
    /// A server.
    Postgres {
        /// The options to connect with. `Debug` prints their password: never format it.
        options: Box<PgConnectOptions>,
        /// The URL without the password, for display.
        shown: String,
    },
}

impl Address {
    /// Parses a URL.
    pub(crate) fn parse(text: &str) -> Result<Address, ParseError> {
        match text.split_once(':') {
            Some(("sqlite", rest)) => sqlite(text, rest.strip_prefix("//").unwrap_or(rest)),
            Some(("postgres" | "postgresql", rest)) if rest.starts_with("//") => postgres(text),
            Some(("postgres" | "postgresql", _)) => {
                Err(fault(text, "`//` is missing after the colon").help(FORMS))
            }
            Some((scheme, _)) if is_scheme(scheme) => {
                let reason = format!("`{scheme}` is not a supported database");
                Err(at(text, scheme, reason).help(FORMS))
            }
            _ => Err(fault(text, "it has no scheme").help(FORMS)),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite { path } => write!(f, "sqlite:{}", path.display()),
            Self::Postgres { shown, .. } => f.write_str(shown),
        }
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({self})")
    }
}

fn sqlite(text: &str, path: &str) -> Result<Address, ParseError> {
    if path.is_empty() {
        return Err(fault(text, "the path is missing").help(SQLITE_FORM));
    }
    if path.starts_with(":memory:") {
        return Err(at(text, ":memory:", "a database in memory is lost with its process").help(SQLITE_FORM));
    }
    if path.contains('?') {
        return Err(at(text, "?", "a SQLite URL takes no options").help("remove everything from `?` on"));
    }
    Ok(Address::Sqlite { path: path.into() })
}

fn postgres(text: &str) -> Result<Address, ParseError> {
    if text.contains('#') {
        return Err(
            fault(text, "everything after `#` would be lost").help("in a password write %23 instead of `#`")
        );
    }
    if text.matches('@').count() > 1 {
        return Err(fault(text, "it has more than one `@`, so the host is ambiguous")
            .help("in names and passwords write %40 instead of `@`"));
    }
    let parts = Parts::of(text);
    // The option is reported by its number, because its name may be a part of a password.
    if let Some(before) = parts.options().position(|(name, _)| !is_option(name)) {
        let reason = format!("option {} after the `?` has an unknown name", before + 1);
        let known = OPTIONS.join(", ");
        return Err(
            fault(text, reason).help(format!("known options: {known}; in a password write %26 for `&`"))
        );
    }
    if parts.user.is_empty() && !parts.options().any(|(name, value)| name == "user" && !value.is_empty()) {
        return Err(fault(text, "it has no user").help(FORMS));
    }
    let options: PgConnectOptions = text.parse().map_err(|error| match error {
        sqlx::Error::Configuration(reason) => fault(text, reason.to_string()).help(FORMS),
        _ => fault(text, "the driver cannot read it").help(FORMS),
    })?;
    let is_said = parts.options().any(|(name, _)| matches!(name, "sslmode" | "ssl-mode"));
    let options = if is_said { options } else { encrypted(options, std::env::var_os("PGSSLMODE").is_some()) };
    Ok(Address::Postgres { shown: shown(&options), options: Box::new(options) })
}

/// Unless the URL says otherwise, a password leaves this machine under TLS only: by default the driver would try TLS
/// first and send the password in the clear to a server that declines.
fn encrypted(options: PgConnectOptions, is_said: bool) -> PgConnectOptions {
    // The driver keeps the brackets of an IPv6 address.
    let host = options.get_host().trim_start_matches('[').trim_end_matches(']');
    let is_loopback =
        host.parse().map_or(host == "localhost", |address: std::net::IpAddr| address.is_loopback());
    let is_here = options.get_socket().is_some() || host.starts_with('/') || host.is_empty() || is_loopback;
    if is_here || is_said { options } else { options.ssl_mode(PgSslMode::Require) }
}

fn shown(options: &PgConnectOptions) -> String {
    let host = match options.get_socket() {
        Some(socket) => socket.display().to_string(),
        None => options.get_host().to_owned(),
    };
    let database = options.get_database().unwrap_or(options.get_username());
    format!("postgres://{}@{host}:{}/{database}", options.get_username(), options.get_port())
}

fn is_option(name: &str) -> bool {
    OPTIONS.contains(&name) || (name.starts_with("options[") && name.ends_with(']'))
}

/// The parts of `postgres://USER:PASSWORD@HOST/DATABASE?NAME=VALUE&…` that are checked before the driver sees the
/// URL.
struct Parts<'t> {
    user: &'t str,
    query: &'t str,
}

impl<'t> Parts<'t> {
    fn of(text: &'t str) -> Self {
        let (before, query) = text.split_once('?').unwrap_or((text, ""));
        let authority = before.split_once("//").map_or("", |(_, rest)| rest).split('/').next().unwrap_or("");
        let user = authority.rsplit_once('@').map_or("", |(login, _)| login.split(':').next().unwrap_or(""));
        Parts { user, query }
    }

    fn options(&self) -> impl Iterator<Item = (&'t str, &'t str)> {
        options(self.query)
    }
}

fn options(query: &str) -> impl Iterator<Item = (&str, &str)> {
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")))
}

/// A redacted copy. It hides too much rather than too little: in a mistyped URL, a password can contain any of the
/// characters that separate its parts.
fn without_password(text: &str) -> String {
    if text.starts_with("sqlite:") && !text.contains('@') {
        return text.to_owned();
    }
    let Some((scheme, rest)) = text.split_once("://").filter(|(scheme, _)| is_scheme(scheme)) else {
        let divider = text.find([':', '@', '=', '?']);
        let harmless = divider.and_then(|at| text.get(..=at));
        return harmless.map_or_else(|| text.to_owned(), |harmless| format!("{harmless}{HIDDEN}"));
    };
    let (before, query) = rest.split_once('?').map_or((rest, None), |(before, query)| (before, Some(query)));
    let (user, login) = before.split_once(':').unwrap_or((before, ""));
    let shown = match (query, login.rsplit_once('@')) {
        _ if query.is_some_and(|query| query.contains('@')) => return format!("{scheme}://{user}:{HIDDEN}"),
        (_, Some((_, host))) => format!("{user}:{HIDDEN}@{host}"),
        (_, None) if before == user || user.contains('@') => before.to_owned(),
        (_, None) => format!("{user}:{HIDDEN}"),
    };
    format!("{scheme}://{shown}{}", query.map(shown_query).unwrap_or_default())
}

/// The names of options without their values, up to a password or to the first unknown name: the rest may be a part
/// of a password with an `&` in it.
fn shown_query(query: &str) -> String {
    let mut shown: Vec<&str> = Vec::new();
    for (name, _) in options(query).take_while(|(name, _)| is_option(name)) {
        shown.push(name);
        if name == "password" {
            break;
        }
    }
    shown.push(HIDDEN);
    format!("?{}", shown.join("&"))
}

fn is_scheme(word: &str) -> bool {
    !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || "+.-".contains(c))
}

fn fault(text: &str, reason: impl Into<String>) -> ParseError {
    ParseError::whole(WHAT, &without_password(text), reason)
}

/// The caret points at `part`, if `part` is visible.
fn at(text: &str, part: &str, reason: impl Into<String>) -> ParseError {
    let shown = without_password(text);
    let span = shown.rfind(part).map_or(0..shown.len(), |start| start..start + part.len());
    ParseError::new(WHAT, &shown, span, reason)
}

#[cfg(test)]
mod tests;
