//! The payload of a run as a value of the job.
//!
//! A payload is JSON text in the store, so that every language can enqueue and read it; a program sees its own types. A run
//! without a payload is read as `null`, the reverse of [`Refrain::enqueue`](crate::Refrain::enqueue), which stores nothing for it:
//! `Option<T>` says that a payload may be missing.

use serde::de::DeserializeOwned;

use super::Run;

/// A payload that is not a value of the type that the job reads: where, and what was expected.
///
/// The next attempt may read it: with a release of the program whose type fits.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the payload of {run} is not a valid {expected}: {at}{reason}")]
pub struct PayloadError {
    run: String,
    expected: &'static str,
    /// The path of the value, with a separator; empty if it is the whole payload.
    at: String,
    reason: String,
}

impl Run {
    /// The payload that the caller enqueued with the key. Without one it is read as `null`, so an `Option` is `None`.
    ///
    /// ```
    /// use refrain::{Job, JobError, Run};
    ///
    /// #[derive(serde::Deserialize)]
    /// struct Signup {
    ///     email: String,
    /// }
    ///
    /// struct Welcome;
    ///
    /// impl Job for Welcome {
    ///     const NAME: &'static str = "welcome";
    ///
    ///     async fn run(&self, run: &mut Run) -> Result<(), JobError> {
    ///         let Signup { email } = run.payload()?;
    ///         println!("welcome, {email}");
    ///         Ok(())
    ///     }
    /// }
    /// ```
    pub fn payload<T: DeserializeOwned>(&self) -> Result<T, PayloadError> {
        let Some(json) = self.payload_json() else {
            let missing = |_| self.misfit::<T>(String::new(), "it was enqueued without one".to_owned());
            return serde_json::from_value(serde_json::Value::Null).map_err(missing);
        };
        let mut text = serde_json::Deserializer::from_str(json);
        serde_path_to_error::deserialize(&mut text).map_err(|error| {
            let path = error.path();
            let is_whole = path.iter().next().is_none();
            let at = if is_whole { String::new() } else { format!("`{path}`: ") };
            self.misfit::<T>(at, error.into_inner().to_string())
        })
    }

    /// The payload as the JSON text that is stored; none if the key was enqueued without one.
    pub fn payload_json(&self) -> Option<&str> {
        self.payload.as_deref()
    }

    fn misfit<T>(&self, at: String, reason: String) -> PayloadError {
        PayloadError { run: self.name(), expected: std::any::type_name::<T>(), at, reason }
    }
}
