//! Which names have a value in which job.

use crate::values::{NAMES, PAYLOAD};

use super::suggest;

/// The properties of a job's runs that decide which names its templates and statements may use.
#[derive(Debug, Clone, Copy, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is one independent fact about a job")]
pub(crate) struct Names {
    pub(crate) windows: bool,
    pub(crate) scopes: bool,
    /// Whether the statement is the query that finds the scopes.
    pub(crate) finds_scopes: bool,
    pub(crate) payload: bool,
    pub(crate) watermark: bool,
    pub(crate) cursor: bool,
    /// Whether fields of a unit or columns of a query, whose names are unknown here, are available.
    pub(crate) fields: bool,
}

/// Where a name is written: `{ds}` in a template, `:ds` in a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Written {
    InBraces,
    AfterColon,
}

/// Why a name has no value, and what to do.
pub(crate) struct NoValue {
    pub(crate) message: String,
    pub(crate) label: String,
    pub(crate) help: String,
}

impl Written {
    pub(crate) fn show(self, name: &str) -> String {
        match self {
            Written::InBraces => format!("{{{name}}}"),
            Written::AfterColon => format!(":{name}"),
        }
    }
}

impl Names {
    pub(crate) fn refuse(self, name: &str, written: Written) -> Option<NoValue> {
        let show = |name: &str| written.show(name);
        let first = name.split('.').next().unwrap_or(name);
        let no_value = format!("`{}` has no value in this job", show(name));
        let (label, help) = match first {
            PAYLOAD if !self.payload => {
                ("only queued runs have a payload", "write queue = true instead of `schedule`".to_owned())
            }
            PAYLOAD => return None,
            _ if name != first && NAMES.contains(&first) => {
                ("it has no fields", format!("write {}", show(first)))
            }
            "ds" | "window_start" | "window_end" if !self.windows => {
                let payload = show("payload.date");
                (
                    "a queued run has no window",
                    format!("enqueue it with the date in its payload, and write {payload}"),
                )
            }
            "scope" if self.finds_scopes => ("this query finds the scopes", "leave it out".to_owned()),
            "scope" if !self.scopes => {
                ("this job has no scopes", "add scopes = \"select id from …\", or leave it out".to_owned())
            }
            "watermark" if !self.watermark => ("this job has no watermark", "add [watermark]".to_owned()),
            "cursor" if !self.cursor => ("this job has no cursor", "add [cursor]".to_owned()),
            _ if NAMES.contains(&first) => return None,
            _ if is_clock(first) => {
                let names = ["ds", "window_start", "window_end"].map(show);
                let names = suggest::list(names.iter().map(String::as_str), "");
                return Some(NoValue {
                    message: no_value,
                    label: format!("`{first}` is not available"),
                    help: format!("a repeated run must do the same: use {names}"),
                });
            }
            _ if self.fields => return None,
            _ => {
                let help = match suggest::nearest(first, NAMES) {
                    Some(known) => format!("did you mean {}?", show(known)),
                    None => format!("available: {}", self.known().map(show).collect::<Vec<_>>().join(", ")),
                };
                ("no such name", help)
            }
        };
        Some(NoValue { message: no_value, label: label.to_owned(), help })
    }

    /// The names that have a value.
    fn known(self) -> impl Iterator<Item = &'static str> {
        let has = move |name: &&str| match *name {
            "ds" | "window_start" | "window_end" => self.windows,
            "scope" => self.scopes,
            "watermark" => self.watermark,
            "cursor" => self.cursor,
            PAYLOAD => self.payload,
            _ => true,
        };
        NAMES.into_iter().filter(has).map(|name| if name == PAYLOAD { "payload.…" } else { name })
    }
}

fn is_clock(name: &str) -> bool {
    let plain = name.replace('_', "").to_lowercase();
    ["now", "today", "yesterday", "timestamp", "date", "time", "currenttimestamp", "currentdate"]
        .contains(&plain.as_str())
}
