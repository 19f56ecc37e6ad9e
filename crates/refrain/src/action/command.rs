//! Any program as a job.
//!
//! It is executed once for each attempt, under a supervisor. A value reaches it as a whole argument or as a variable of
//! its environment, never through a shell. It may be executed again after a crash, unless it says
//! [`Interrupted::Hold`]: then a mark is in the store before it begins, and goes with the record of its end.

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
use super::command_output::Printing;
use super::environment::{inherited, name_of};
use super::supervisor::milliseconds;
use super::supervisor_client::{Executed, MARK};
use super::supervisor_protocol::{Answer, End, Orders, Why};
use crate::failpoint;
use crate::job::{Definition, Job, JobError};
use crate::leaving::Seen;
use crate::run::Run;
use crate::store::begun_commands;

/// How long a command has between the wish to end and the end, unless it is said otherwise.
pub const GRACE: Duration = Duration::from_secs(5);

/// What is executed in one attempt.
#[derive(Clone, Default)]
pub struct Command {
    /// The program and its arguments, each as it is. A path with a `/` counts from the directory.
    pub argv: Vec<String>,
    /// Variables of its environment; the last of two with one name counts. `REFRAIN_PROJECT` is the directory unless it is
    /// said here.
    pub environment: Vec<(String, String)>,
    /// Names of variables that it gets from the worker, beside those of
    /// [`PASSED_ON`](super::environment::PASSED_ON).
    pub inherit: Vec<String>,
    /// Where it is executed.
    pub directory: PathBuf,
    /// What becomes of the run if it is cut off.
    pub interrupted: Interrupted,
    /// What is taken out of its output.
    pub redactor: Redactor,
}

impl Command {
    /// Refused if it was cut off before, and is not to be executed again by itself.
    pub(super) async fn may_begin(&self, run: &Run) -> Result<(), JobError> {
        if self.interrupted == Interrupted::Hold
            && let Some(attempt) =
                begun_commands::find(&run.surroundings.store, run.row, run.facts.attempt).await?
        {
            return Err(command_failure::held(&name_of(run), attempt.into(), "it was interrupted"));
        }
        Ok(())
    }
}

/// Without the values of its environment: some are secrets.
impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Command").field("argv", &self.argv).finish_non_exhaustive()
    }
}

type Make = dyn Fn(&Run) -> Result<Command, JobError> + Send + Sync;

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
    make: Arc<Make>,
    program: Option<PathBuf>,
    grace: Duration,
}

impl CommandJob {
    /// A job that executes what this makes of each attempt.
    pub fn new(make: impl Fn(&Run) -> Result<Command, JobError> + Send + Sync + 'static) -> CommandJob {
        CommandJob { make: Arc::new(make), program: None, grace: GRACE }
    }

    /// The program that supervises it, a `refrain` for example, instead of this one, whose `main` then need not begin with
    /// [`supervise`](crate::supervise).
    #[must_use]
    pub fn supervisor(self, program: impl Into<PathBuf>) -> CommandJob {
        CommandJob { program: Some(program.into()), ..self }
    }

    /// How long it has between the wish to end and the end. When its worker's lease runs out it has less.
    #[must_use]
    pub fn grace(self, grace: Duration) -> CommandJob {
        CommandJob { grace, ..self }
    }

    /// The job under a name of its own, with the usual policies.
    pub fn definition(self, name: &str) -> Result<Definition, ParseError> {
        Definition::of(self)?.named(name)
    }

    /// Everything from the first look for a supervisor to the last of the output.
    pub(super) async fn attend(
        self,
        run: Run,
        command: Command,
        printing: Printing,
        mut called_off: oneshot::Receiver<()>,
    ) -> Seen {
        let (printed, pipes) = match printing.begin(&command.redactor) {
            Ok(begun) => begun,
            Err(error) => return Some(Err(JobError::of_system("its output cannot be read", &error))),
        };
        let executing = self.execute(&run, &command, pipes, &mut called_off);
        let (executed, last_words) = printed.during(&run, executing).await;
        let (seen, is_known) = match executed {
            Ok(answer) => judged(&run, &command, answer, &last_words),
            Err(never_begun) => (never_begun, true),
        };
        if command.interrupted == Interrupted::Hold && is_known {
            run.leaving.settle();
        }
        seen
    }

    /// Has a supervisor execute it. None: the supervisor died. Whatever this says, nothing is left of the command.
    async fn execute(
        &self,
        run: &Run,
        command: &Command,
        mut pipes: Vec<OwnedFd>,
        called_off: &mut oneshot::Receiver<()>,
    ) -> Result<Option<Answer>, Seen> {
        let supervisors = &run.surroundings.supervisors;
        loop {
            let taken = supervisors.take(self.program.as_deref()).await;
            let mut attendant = taken
                .map_err(|error| Some(Err(JobError::of_system("no supervisor could be started", &error))))?;
            if let Err(never_begun) = mark(run, command).await {
                supervisors.put(attendant, self.program.clone());
                return Err(never_begun);
            }
            let until = run.lease.until();
            let orders = self.orders(command, attendant.mark(), until);
            let executed = attendant.execute(&orders, &mut pipes, (&run.lease, until), called_off).await;
            match executed {
                Executed::Ready(answer) => {
                    supervisors.put(attendant, self.program.clone());
                    return Ok(Some(answer));
                }
                Executed::Over(answer) => {
                    attendant.leave().await;
                    return Ok(Some(answer));
                }
                Executed::Died => {
                    attendant.bury().await;
                    return Ok(None);
                }
                // It was dead before it heard anything: another one has all that this one was to have.
                Executed::Unheard => attendant.bury().await,
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

/// Writes down that a command is about to begin that must not be executed twice.
async fn mark(run: &Run, command: &Command) -> Result<(), Seen> {
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

/// What the supervisor's last word means, and whether it is known what became of the command: it is if the command said so
/// itself, by its exit code, or never began.
fn judged(run: &Run, command: &Command, answer: Option<Answer>, last_words: &str) -> (Seen, bool) {
    let is_held = command.interrupted == Interrupted::Hold;
    let held = |how: &str| Some(Err(command_failure::held(&name_of(run), run.facts.attempt.into(), how)));
    match answer {
        None if is_held => (held("its supervisor was killed, and it with it,"), false),
        None => (Some(Err(JobError::new("its supervisor was killed; the command was ended"))), false),
        Some(Answer::Ended { end, why: Why::Itself }) => {
            let ended = command_failure::ended(end, last_words);
            match (end, ended) {
                // A shell whose child was killed by a signal says so by a code above 128.
                (End::Signal(_) | End::Code(129..=159), Err(error)) if is_held => {
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

impl Job for CommandJob {
    const NAME: &'static str = "command";

    async fn run(&self, run: &mut Run) -> Result<(), JobError> {
        let command = (self.make)(run)?;
        command.may_begin(run).await?;
        let (job, attended) = (self.clone(), run.clone());
        run.leaving.see_through(|called_off| job.attend(attended, command, Printing::Alone, called_off)).await
    }
}

impl fmt::Debug for CommandJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CommandJob").field("program", &self.program).finish_non_exhaustive()
    }
}
