//! Runs any program as a job.
//!
//! A command is executed once per attempt, under a supervisor. Values reach it as whole arguments or as environment
//! variables, never through a shell. After a crash it may be executed again, unless it is [`Interrupted::Hold`]: then a mark
//! is stored before it begins, and removed together with the record of its end.

use std::fmt;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use refrain_core::ParseError;
pub use refrain_core::project::Interrupted;
use refrain_core::redact::Redactor;
use tokio::sync::oneshot;

use super::command_failure;
use super::command_output::CommandOutput;
use super::environment::inherited;
use crate::failpoint;
use crate::job::{Definition, Job};
use crate::run::awaited_task::TaskResult;
use crate::run::{JobError, Run};
use crate::store::begun_commands;
use crate::supervision::client::{Executed, MARK};
use crate::supervision::protocol::{Answer, EndReason, Orders, ProcessEnd};
use crate::supervision::supervisor::milliseconds;

/// How long a command has to end after it was asked to, by default.
pub const GRACE: Duration = Duration::from_secs(5);

/// The command of one attempt.
#[derive(Clone, Default)]
pub struct Command {
    /// The program and its arguments, passed unchanged. A path with a `/` is relative to `directory`.
    pub argv: Vec<String>,
    /// Its environment variables; of two with one name the last counts. `REFRAIN_PROJECT` is `directory` unless it is set
    /// here.
    pub environment: Vec<(String, String)>,
    /// Names of variables that it inherits from the worker, in addition to
    /// [`PASSED_ON`](super::environment::PASSED_ON).
    pub inherit: Vec<String>,
    /// Its working directory.
    pub directory: PathBuf,
    /// What happens to the run if the command is interrupted.
    pub interrupted: Interrupted,
    /// Removes secrets from its output.
    pub redactor: Redactor,
}

impl Command {
    /// Fails if an earlier attempt was interrupted and the command must not be executed again automatically.
    pub(super) async fn may_begin(&self, run: &Run) -> Result<(), JobError> {
        if self.interrupted == Interrupted::Hold
            && let Some(attempt) =
                begun_commands::find(&run.surroundings.store, run.row, run.facts.attempt).await?
        {
            return Err(command_failure::held(&run.name(), attempt.into(), "it was interrupted"));
        }
        Ok(())
    }
}

/// Leaves out the environment: some values are secrets.
impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Command").field("argv", &self.argv).finish_non_exhaustive()
    }
}

type MakeCommand = dyn Fn(&Run) -> Result<Command, JobError> + Send + Sync;

/// A job that executes a command.
///
/// ```
/// use refrain::action::command::{Command, CommandJob};
/// use refrain::action::environment::environment_of;
/// use refrain::core::Zone;
///
/// let export = CommandJob::new(|run| {
///     Ok(Command {
///         argv: vec!["./export.sh".to_owned(), run.key().to_owned()],
///         environment: environment_of(run, &Zone::utc()),
///         directory: "/srv/shop".into(),
///         ..Command::default()
///     })
/// });
/// let job = export.definition("export")?;
/// # Ok::<(), refrain::core::ParseError>(())
/// ```
#[derive(Clone)]
pub struct CommandJob {
    command: Arc<MakeCommand>,
    runner: CommandRunner,
}

impl CommandJob {
    /// A job whose command is made for each attempt by this function.
    pub fn new(command: impl Fn(&Run) -> Result<Command, JobError> + Send + Sync + 'static) -> CommandJob {
        CommandJob { command: Arc::new(command), runner: CommandRunner::default() }
    }

    /// The program that supervises the command, for example `refrain`. By default this is the current program, whose `main`
    /// must begin with [`supervise`](crate::host::supervise).
    #[must_use]
    pub fn supervisor(mut self, program: impl Into<PathBuf>) -> CommandJob {
        self.runner.supervisor = Some(program.into());
        self
    }

    /// How long the command has to end after it was asked to. It has less when the lease of its worker runs out.
    #[must_use]
    pub fn grace(mut self, grace: Duration) -> CommandJob {
        self.runner.grace = grace;
        self
    }

    /// The job under a name of its own, with the usual policies.
    pub fn definition(self, name: &str) -> Result<Definition, ParseError> {
        Definition::of(self)?.named(name)
    }
}

impl Job for CommandJob {
    const NAME: &'static str = "command";

    async fn run(&self, run: &mut Run) -> Result<(), JobError> {
        let command = (self.command)(run)?;
        self.runner.run(run, command).await
    }
}

impl fmt::Debug for CommandJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CommandJob").field("runner", &self.runner).finish_non_exhaustive()
    }
}

/// Executes commands under a supervisor.
#[derive(Debug, Clone)]
pub(super) struct CommandRunner {
    /// The program that supervises; none for the current program.
    supervisor: Option<PathBuf>,
    grace: Duration,
}

impl Default for CommandRunner {
    fn default() -> CommandRunner {
        CommandRunner { supervisor: None, grace: GRACE }
    }
}

impl CommandRunner {
    /// Executes the only command of an attempt, and awaits its end even if the caller is dropped.
    pub(super) async fn run(&self, run: &Run, command: Command) -> Result<(), JobError> {
        command.may_begin(run).await?;
        let (runner, attempt) = (self.clone(), run.clone());
        let attend = |cancelled| runner.attend(attempt, command, CommandOutput::Alone, cancelled);
        run.awaited.run_awaited(attend).await
    }

    /// Starts a command, stores its output, and waits until it has ended.
    pub(super) async fn attend(
        self,
        run: Run,
        command: Command,
        output: CommandOutput,
        mut cancelled: oneshot::Receiver<()>,
    ) -> TaskResult {
        let (reader, pipes) = match output.begin(&command.redactor) {
            Ok(begun) => begun,
            Err(error) => return Some(Err(JobError::of_system("its output cannot be read", &error))),
        };
        let executing = self.execute(&run, &command, pipes, &mut cancelled);
        let (executed, last_words) = reader.during(&run, executing).await;
        let (seen, is_known) = match executed {
            Ok(answer) => interpreted(&run, &command, answer, &last_words),
            Err(never_begun) => (never_begun, true),
        };
        if command.interrupted == Interrupted::Hold && is_known {
            run.awaited.mark_end_known();
        }
        seen
    }

    /// Has a supervisor execute a command. `None`: the supervisor died. In every case no process of the command is left.
    async fn execute(
        &self,
        run: &Run,
        command: &Command,
        mut pipes: Vec<OwnedFd>,
        cancelled: &mut oneshot::Receiver<()>,
    ) -> Result<Option<Answer>, TaskResult> {
        let supervisors = &run.surroundings.supervisors;
        loop {
            let taken = supervisors.take(self.supervisor.as_deref()).await;
            let mut supervisor = taken
                .map_err(|error| Some(Err(JobError::of_system("no supervisor could be started", &error))))?;
            if let Err(never_begun) = mark(run, command).await {
                supervisors.put(supervisor, self.supervisor.clone());
                return Err(never_begun);
            }
            let until = run.lease.until();
            let orders = self.orders(command, supervisor.mark(), until);
            let executed = supervisor.execute(&orders, &mut pipes, (&run.lease, until), cancelled).await;
            match executed {
                Executed::Ready(answer) => {
                    supervisors.put(supervisor, self.supervisor.clone());
                    return Ok(Some(answer));
                }
                Executed::Over(answer) => {
                    supervisor.stop().await;
                    return Ok(Some(answer));
                }
                Executed::Died => {
                    supervisor.kill_all().await;
                    return Ok(None);
                }
                // It was dead before it received the command: another supervisor is given the same.
                Executed::Unheard => supervisor.kill_all().await,
            }
        }
    }

    fn orders(&self, command: &Command, mark: &str, until: Duration) -> Orders {
        let project = ("REFRAIN_PROJECT".to_owned(), command.directory.display().to_string());
        let mark = (MARK.to_owned(), mark.to_owned());
        let (texts, inherited) = inherited(&command.inherit);
        let said = std::iter::once(project).chain(command.environment.iter().cloned()).chain([mark]);
        Orders {
            argv: command.argv.clone(),
            inherited,
            environment: texts.into_iter().chain(said).collect(),
            directory: command.directory.clone().into_os_string(),
            grace: milliseconds(self.grace),
            until: milliseconds(until),
        }
    }
}

/// Stores that a command is about to begin that must not be executed twice.
async fn mark(run: &Run, command: &Command) -> Result<(), TaskResult> {
    if command.interrupted != Interrupted::Hold || failpoint::is_weakened("begun.unmarked") {
        return Ok(());
    }
    failpoint::reach("begun.before-mark");
    match begun_commands::mark(&run.surroundings.store, &run.held).await {
        Ok(true) => Ok(()),
        Ok(false) => Err(None),
        Err(error) => Err(Some(Err(error.into()))),
    }
}

/// What the supervisor's answer means for the run, and whether the end of the command is known: it is if the command ended
/// by itself with an exit code, or was never started.
fn interpreted(run: &Run, command: &Command, answer: Option<Answer>, last_words: &str) -> (TaskResult, bool) {
    let is_held = command.interrupted == Interrupted::Hold;
    let held = |how: &str| Some(Err(command_failure::held(&run.name(), run.facts.attempt.into(), how)));
    match answer {
        None if is_held => (held("its supervisor was killed, and the command with it,"), false),
        None => (Some(Err(JobError::new("its supervisor was killed, so the command was ended"))), false),
        Some(Answer::Ended { end, why: EndReason::Itself }) => {
            let ended = command_failure::ended(end, last_words);
            match (end, ended) {
                // A shell whose child was killed by a signal exits with a code above 128.
                (ProcessEnd::Signal(_) | ProcessEnd::Code(129..=159), Err(error)) if is_held => {
                    (held(&error.to_string()), false)
                }
                (_, ended) => (Some(ended), true),
            }
        }
        Some(Answer::Ended { .. }) => (None, false),
        Some(Answer::NotStarted { fault, errno, said }) => {
            let program = command.argv.first().map(String::as_str).unwrap_or_default();
            let directory = command.directory.display().to_string();
            (Some(Err(command_failure::not_started(program, &directory, fault, errno, &said))), true)
        }
        Some(Answer::TooLate | Answer::Ready) => (None, true),
    }
}
