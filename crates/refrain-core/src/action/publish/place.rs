//! Which directory a run's files go into.
//!
//! What the template says is the operator's word and may lead anywhere. What is filled in is data: a scope called `../..`
//! must not choose a directory, so a value is one name, or a part of one. Names that begin with a dot are kept for what is
//! behind the visible ones.

use super::FilesPublish;
use crate::template::TemplateError;
use crate::values::Values;

/// Why a run has no directory of its own.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlaceError {
    /// A value is missing.
    #[error(transparent)]
    Template(#[from] TemplateError),
    /// A value would lead elsewhere.
    #[error(
        "{{{name}}} in `path` is {value:?}, which {why}\n  a value is part of a name of a directory: leave such rows out, or give them another name"
    )]
    Value {
        /// The name.
        name: String,
        /// Its value.
        value: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The template names no directory.
    #[error(
        "`path` is {path:?}, which {why}\n  name a directory in which only this run's files are: \"out/dt={{ds}}\""
    )]
    Path {
        /// What it came to.
        path: String,
        /// What is wrong with it.
        why: &'static str,
    },
}

impl FilesPublish {
    /// The directory of a run, from the project's own, without a `/` at its end.
    ///
    /// ```
    /// use refrain_core::publish::{FileFormat, FilesPublish};
    /// use refrain_core::{Template, Values};
    ///
    /// let publish = FilesPublish { path: Template::parse("out/org={scope}/")?, format: FileFormat::Csv };
    /// let of = |scope: &str| publish.place(&Values { scope: Some(scope.to_owned()), ..Values::default() });
    /// assert_eq!(of("acme").as_deref(), Ok("out/org=acme"));
    /// assert!(of("../..").is_err());
    /// # Ok::<(), refrain_core::ParseError>(())
    /// ```
    pub fn place(&self, values: &Values) -> Result<String, PlaceError> {
        for name in self.path.names() {
            if let Some(value) = values.text(name)
                && let Some(why) = unfit(&value)
            {
                return Err(PlaceError::Value { name: name.to_owned(), value, why });
            }
        }
        let path = self.path.render(values)?;
        let path = path.trim_end_matches('/').to_owned();
        match unfit_path(&path) {
            None => Ok(path),
            Some(why) => Err(PlaceError::Path { path, why }),
        }
    }
}

/// Why a path names no directory of a run, whatever is filled in.
pub(crate) fn unfit_path(path: &str) -> Option<&'static str> {
    match path.trim_end_matches('/').rsplit('/').next().unwrap_or_default() {
        "" => Some("names nothing"),
        _ if path.contains('\0') => Some("holds a NUL"),
        last if last.starts_with('.') => Some("ends in a name that begins with a dot"),
        _ => None,
    }
}

/// Why a value cannot be part of a name.
fn unfit(value: &str) -> Option<&'static str> {
    if value.is_empty() {
        return Some("is empty");
    }
    if value.starts_with('.') {
        return Some("begins with a dot");
    }
    if value.contains(['/', '\\']) {
        return Some("holds a separator of directories");
    }
    value.contains(char::is_control).then_some("holds a control character")
}

#[cfg(test)]
mod tests {
    use super::super::FileFormat;
    use super::*;
    use crate::Template;
    use proptest::prelude::*;
    use serde_json::json;

    fn place(path: &str, value: &str) -> Result<String, PlaceError> {
        let publish = FilesPublish { path: Template::parse(path).unwrap(), format: FileFormat::Csv };
        publish.place(&Values { payload: Some(json!({ "v": value })), ..Values::default() })
    }

    #[test]
    fn what_the_operator_wrote_may_lead_anywhere_but_must_end_in_a_name() {
        for (path, expected) in [
            ("out/dt={payload.v}/", Some("out/dt=a")),
            ("../exports/{payload.v}", Some("../exports/a")),
            ("/srv/exports/{payload.v}//", Some("/srv/exports/a")),
            (".hidden/{payload.v}", Some(".hidden/a")),
            ("", None),
            ("/", None),
            ("out/..", None),
            ("out/.", None),
            ("out/.{payload.v}", None),
            ("out/{payload.other}", None),
        ] {
            assert_eq!(place(path, "a").ok().as_deref(), expected, "{path}");
        }
    }

    #[test]
    fn s10_a_value_is_one_name() {
        for value in ["", ".", "..", "../x", "a/b", "/etc", "a\\b", "a\0b", "a\nb", ".refrain.lock"] {
            let error = place("out/{payload.v}", value).unwrap_err();
            assert!(matches!(error, PlaceError::Value { .. }), "{value:?}: {error}");
        }
        for value in ["a.b", "ü", "a b", "-rf", "~", "$(id)", "2026-06-09T12:00:00Z", "a..b"] {
            assert_eq!(place("out/{payload.v}", value), Ok(format!("out/{value}")));
        }
    }

    proptest! {
        #[test]
        fn s10_no_value_leads_out_of_its_directory(value in "\\PC*|[./\\\\a]{0,8}") {
            if let Ok(place) = place("out/{payload.v}/x", &value) {
                prop_assert_eq!(place.split('/').count(), 3);
                prop_assert!(place.split('/').all(|name| name != ".." && name != "." && !name.is_empty()));
            }
        }
    }
}
