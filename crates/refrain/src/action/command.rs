//! A placeholder.
use crate::job::{Definition, Job, JobError};
use crate::run::Run;
use refrain_core::ParseError;
use refrain_core::project::Interrupted;
use refrain_core::redact::Redactor;
use std::path::PathBuf;
pub(crate) struct Command {
    pub(crate) argv: Vec<String>,
    pub(crate) environment: Vec<(String, String)>,
    pub(crate) inherit: Vec<String>,
    pub(crate) directory: PathBuf,
    pub(crate) interrupted: Interrupted,
    pub(crate) redactor: Redactor,
}
struct Commands(Box<dyn Fn(&Run) -> Result<Command, JobError> + Send + Sync>);
impl Job for Commands {
    const NAME: &'static str = "command";
    async fn run(&self, run: &mut Run) -> Result<(), JobError> {
        let c = (self.0)(run)?;
        let _ = (c.inherit, c.interrupted, c.redactor);
        let s = tokio::process::Command::new(&c.argv[0])
            .args(&c.argv[1..])
            .envs(c.environment)
            .current_dir(c.directory)
            .status()
            .await?;
        if s.success() { Ok(()) } else { Err(JobError::new(s.to_string())) }
    }
}
pub(crate) fn definition(
    make: impl Fn(&Run) -> Result<Command, JobError> + Send + Sync + 'static,
) -> Result<Definition, ParseError> {
    Definition::of(Commands(Box::new(make)))
}
