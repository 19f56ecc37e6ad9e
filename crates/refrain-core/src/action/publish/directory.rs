//! The directory that a run publishes its files into.
//!
//! The template is the operator's and may lead anywhere. The values are data: a scope called `../..` must not choose a
//! directory, so a value is one path component or a part of one. Names that begin with a dot are reserved for the
//! staging behind the visible files.

use super::FilesPublish;
use crate::template::TemplateError;
use crate::values::Values;

/// Why a run has no directory to publish into.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DirectoryError {
    /// A value is missing.
    #[error(transparent)]
    Template(#[from] TemplateError),
    /// A value would lead to another directory.
    #[error(
        "{{{name}}} in `path` is {value:?}, which {why}\n  a value is one part of a directory name: leave such rows out, or give them another value"
    )]
    Value {
        /// The name in the template.
        name: String,
        /// The value.
        value: String,
        /// What is wrong with the value.
        why: &'static str,
    },
    /// The template does not name a directory.
    #[error(
        "`path` is {path:?}, which {why}\n  name a directory that holds only this run's files: \"out/dt={{ds}}\""
    )]
    Path {
        /// The path with all values filled in.
        path: String,
        /// What is wrong with the path.
        why: &'static str,
    },
}

impl FilesPublish {
    /// The directory of a run, relative to the project, without a trailing `/`.
    ///
    /// ```
    /// use refrain_core::publish::{FileFormat, FilesPublish};
    /// use refrain_core::{Template, Values};
    ///
    /// let publish = FilesPublish { path: Template::parse("out/org={scope}/")?, format: FileFormat::Csv };
    /// let of = |scope: &str| publish.directory(&Values { scope: Some(scope.to_owned()), ..Values::default() });
    /// assert_eq!(of("acme").as_deref(), Ok("out/org=acme"));
    /// assert!(of("../..").is_err());
    /// # Ok::<(), refrain_core::ParseError>(())
    /// ```
    pub fn directory(&self, values: &Values) -> Result<String, DirectoryError> {
        for name in self.path.names() {
            if let Some(value) = values.text(name)
                && let Some(why) = unfit(&value)
            {
                return Err(DirectoryError::Value { name: name.to_owned(), value, why });
            }
        }
        let path = self.path.render(values)?;
        let path = path.trim_end_matches('/').to_owned();
        match unfit_path(&path) {
            None => Ok(path),
            Some(why) => Err(DirectoryError::Path { path, why }),
        }
    }
}

/// Why a path cannot be the directory of a run, whatever values are filled in.
pub(crate) fn unfit_path(path: &str) -> Option<&'static str> {
    match path.trim_end_matches('/').rsplit('/').next().unwrap_or_default() {
        "" => Some("names nothing"),
        _ if path.contains('\0') => Some("contains a NUL character"),
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
        return Some("contains a path separator");
    }
    value.contains(char::is_control).then_some("contains a control character")
}

#[cfg(test)]
mod tests {
    use super::super::FileFormat;
    use super::*;
    use crate::Template;
    use proptest::prelude::*;
    use serde_json::json;

    fn directory(path: &str, value: &str) -> Result<String, DirectoryError> {
        let publish = FilesPublish { path: Template::parse(path).unwrap(), format: FileFormat::Csv };
        publish.directory(&Values { payload: Some(json!({ "v": value })), ..Values::default() })
    }

    #[test]
    fn the_operators_template_may_lead_anywhere_but_must_end_in_a_name() {
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
            assert_eq!(directory(path, "a").ok().as_deref(), expected, "{path}");
        }
    }

    #[test]
    fn s10_a_value_is_one_path_component() {
        for value in ["", ".", "..", "../x", "a/b", "/etc", "a\\b", "a\0b", "a\nb", ".refrain.lock"] {
            let error = directory("out/{payload.v}", value).unwrap_err();
            assert!(matches!(error, DirectoryError::Value { .. }), "{value:?}: {error}");
        }
        for value in ["a.b", "ü", "a b", "-rf", "~", "$(id)", "2026-06-09T12:00:00Z", "a..b"] {
            assert_eq!(directory("out/{payload.v}", value), Ok(format!("out/{value}")));
        }
    }

    proptest! {
        #[test]
        fn s10_no_value_leads_out_of_its_directory(value in "\\PC*|[./\\\\a]{0,8}") {
            if let Ok(directory) = directory("out/{payload.v}/x", &value) {
                prop_assert_eq!(directory.split('/').count(), 3);
                prop_assert!(directory.split('/').all(|name| name != ".." && name != "." && !name.is_empty()));
            }
        }
    }
}
