//! Once: any command, at most once for a key.
//!
//! Reserve, execute, record: two commits. The caller's process is registered as a worker in the first and removed in the second, so
//! that any other process can tell whether it is alive. If it dies in between, the key is in doubt once its supervisor has ended the
//! command, and nothing is executed under it before an operator or the policy decides.

use std::path::PathBuf;
use std::time::Duration;

use jiff::Timestamp;
use refrain_core::state::{EffectState, Hold, InDoubtPolicy, SendAnswer};
use refrain_core::{Fingerprint, IdempotencyKey, Key};
use serde::Serialize;
use tokio::sync::oneshot;

use super::Refrain;
use crate::action::command::GRACE;
use crate::effect::admission::admitted;
use crate::effect::answer::recorded;
use crate::effect::command::{CommandEnd, EffectCommand};
use crate::engine::heartbeat::Heartbeat;
use crate::engine::service::Phase;
use crate::error::Error;
use crate::failpoint;
use crate::lease::Lease;
use crate::process::Process;
use crate::store::effect_reservation::{
    EffectRequest, EffectReservation, FactRow, Holder, NotReserved, Reserved, SendEnd, answer,
};
use crate::store::effects::NewEffect;
use crate::store::{Reality, StoreError, instant};
use crate::supervision::protocol::ProcessEnd;

/// The name of effects that `refrain once` executes.
const NAME: &str = "once";

/// A command that is executed at most once for a key.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Once {
    /// The fact that the command makes true.
    pub key: Key,
    /// Raised to have it executed once more for the same fact.
    pub version: u32,
    /// The program and its arguments, passed unchanged.
    pub argv: Vec<String>,
    /// Its working directory.
    pub directory: PathBuf,
    /// What happens if an earlier execution is in doubt.
    pub in_doubt: InDoubtPolicy,
    /// How long the provider remembers the idempotency key that the command passes on.
    pub provider_ttl: Option<Duration>,
    /// Exit codes, besides 75, that mean that nothing was done.
    pub not_done: Vec<i32>,
    /// How long to wait for another caller that executes it now.
    pub wait: Duration,
}

impl Once {
    /// A command under a key, with the defaults of everything else.
    pub fn new(key: Key, argv: Vec<String>, directory: impl Into<PathBuf>) -> Once {
        Once {
            key,
            version: 1,
            argv,
            directory: directory.into(),
            in_doubt: InDoubtPolicy::Hold,
            provider_ttl: None,
            not_done: Vec::new(),
            wait: Duration::from_mins(1),
        }
    }
}

/// How a call of `once` ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "did", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum OnceReport {
    /// The command was executed by this call.
    Executed {
        /// The state of the effect since.
        state: EffectState,
        /// The exit code of the command; none if it did not end by itself.
        exit_code: Option<i32>,
        /// The signal that ended it.
        signal: Option<i32>,
        /// Whether its exit code says that it did nothing. An earlier execution may still have done something.
        did_nothing: bool,
        /// Why it is not confirmed.
        message: Option<String>,
    },
    /// The command could not be started; the key is as free as it was before.
    NotStarted {
        /// Why.
        message: String,
    },
    /// The command was executed by this call, and that could not be recorded: the key will be in doubt.
    Unrecorded {
        /// The exit code of the command; none if it did not end by itself.
        exit_code: Option<i32>,
        /// Why.
        message: String,
    },
    /// Nothing was executed: the key was settled before.
    Deduplicated {
        /// Its state.
        state: EffectState,
        /// The version that is settled.
        version: u32,
        /// Since when.
        since: Timestamp,
    },
    /// Nothing was executed: an earlier execution may have happened, and an operator must decide.
    InDoubt {
        /// The version that is in doubt.
        version: u32,
        /// When that execution began.
        since: Timestamp,
        /// Why nothing decides it.
        #[serde(skip)]
        hold: Hold,
        /// How it ended.
        message: Option<String>,
    },
    /// Nothing was executed: the effect waits for approval.
    Waiting {
        /// Since when.
        since: Timestamp,
    },
    /// Nothing was executed: another caller executes it, and did not end in time.
    Busy {
        /// When that execution began.
        since: Timestamp,
    },
}

impl Refrain {
    /// Executes a command, unless its key is settled or in doubt. The command has the standard streams of this process, inherits its
    /// variables, and ends when [`StopHandle::drain`](crate::StopHandle::drain) is called. The program calls
    /// [`host::supervise`](crate::host::supervise) first in its `main`.
    pub async fn once(&self, once: &Once) -> Result<OnceReport, Error> {
        if self.store().reality == Reality::Simulated {
            return Err(StoreError::SimulatedSend.into());
        }
        let request = self.once_request(once)?;
        let process = Process::this().map_or_else(|_| "unknown".to_owned(), |process| process.to_string());
        let lease = self.engine.settings.lease;
        let holder = Holder::New { process: &process, lease };
        let (reserved, asked) = admitted(&self.engine, &request, holder, once.wait, &self.stop).await?;
        match reserved {
            Reserved::Now(reservation) => self.execute_once(once, &reservation, asked).await,
            Reserved::Not(NotReserved::Settled(row)) => Ok(OnceReport::Deduplicated {
                state: row.state()?,
                version: version_of(&row),
                since: instant(row.changed_at)?,
            }),
            Reserved::Not(NotReserved::InDoubt(row, hold)) => Ok(OnceReport::InDoubt {
                version: version_of(&row),
                since: instant(row.unanswered_at.unwrap_or(row.changed_at))?,
                hold,
                message: row.message,
            }),
            Reserved::Not(NotReserved::NeedsApproval(row)) => {
                Ok(OnceReport::Waiting { since: instant(row.changed_at)? })
            }
            Reserved::Not(NotReserved::Held(row)) => Ok(OnceReport::Busy { since: instant(row.changed_at)? }),
        }
    }

    fn once_request(&self, once: &Once) -> Result<EffectRequest, Error> {
        let version = i32::try_from(once.version).map_err(|_| Error::Version(once.version))?;
        let effect = NewEffect {
            key: once.key.to_string(),
            version,
            name: NAME.to_owned(),
            job: None,
            run: None,
            payload: Some(what_is_executed(&self.store().id, &once.argv)),
        };
        Ok(EffectRequest { effect, policy: once.in_doubt, provider_ttl: once.provider_ttl, asked: NAME })
    }

    async fn execute_once(
        &self,
        once: &Once,
        reservation: &EffectReservation,
        registered: Duration,
    ) -> Result<OnceReport, Error> {
        failpoint::reach("once.reserved");
        let lease = self.engine.settings.lease;
        let heartbeat = match Heartbeat::of(self.store(), reservation.worker, registered, lease) {
            Ok(heartbeat) => heartbeat,
            Err(error) => {
                let message = format!("its worker could not be kept alive: {error}");
                let end = SendEnd::new(SendAnswer::NotSent, None, Some(message.clone()));
                answer(self.store(), reservation, &end).await?;
                return Ok(OnceReport::NotStarted { message });
            }
        };
        let command = self.command_of(once);
        let end = self.execute_until_stopped(&command, &heartbeat.lease).await;
        failpoint::reach("once.ended");
        let meaning = command.meaning(&end);
        let recorded = recorded(self.store(), reservation, &meaning, &heartbeat.lease).await;
        Ok(report(&command, end, &meaning, recorded))
    }

    fn command_of(&self, once: &Once) -> EffectCommand {
        let key = IdempotencyKey::of(&self.engine.project, &once.key, once.version);
        EffectCommand {
            argv: once.argv.clone(),
            directory: once.directory.clone(),
            environment: vec![
                ("REFRAIN_EFFECT_KEY".to_owned(), once.key.to_string()),
                ("REFRAIN_EFFECT_VERSION".to_owned(), once.version.to_string()),
                ("REFRAIN_IDEMPOTENCY_KEY".to_owned(), key.to_string()),
            ],
            not_done: once.not_done.clone(),
            grace: GRACE,
        }
    }

    async fn execute_until_stopped(&self, command: &EffectCommand, lease: &Lease) -> CommandEnd {
        if self.stop.phase() >= Phase::Draining {
            return CommandEnd::NotStarted("this process was told to stop before".to_owned());
        }
        let (cancel, cancelled) = oneshot::channel();
        let executing = command.execute(lease, cancelled);
        tokio::pin!(executing);
        tokio::select! {
            end = &mut executing => end,
            () = self.stop.draining() => {
                drop(cancel);
                executing.await
            }
        }
    }
}

fn report(
    command: &EffectCommand,
    end: CommandEnd,
    meaning: &SendEnd,
    recorded: Result<EffectState, StoreError>,
) -> OnceReport {
    let (exit_code, signal) = match &end {
        CommandEnd::Ended(end) | CommandEnd::Stopped(end) => match end {
            ProcessEnd::Code(code) => (Some(*code), None),
            ProcessEnd::Signal(signal) => (None, Some(*signal)),
        },
        CommandEnd::NotStarted(_) | CommandEnd::TooLate | CommandEnd::CutOff => (None, None),
    };
    match (end, recorded) {
        (CommandEnd::NotStarted(message), _) => OnceReport::NotStarted { message },
        (_, Err(error)) => OnceReport::Unrecorded { exit_code, message: error.to_string() },
        (_, Ok(state)) => OnceReport::Executed {
            state,
            exit_code,
            signal,
            did_nothing: exit_code.is_some_and(|code| command.is_not_done(code)),
            message: meaning.message().map(str::to_owned),
        },
    }
}

fn version_of(row: &FactRow) -> u32 {
    u32::try_from(row.version).unwrap_or_default()
}

/// The program and a fingerprint of all arguments, as JSON. The arguments themselves are not stored: they may hold secrets. The id of
/// the store goes into the fingerprint, so that short secrets cannot be looked up in a table.
fn what_is_executed(store: &str, argv: &[String]) -> String {
    let program = argv.first().map(String::as_str).unwrap_or_default();
    let fingerprint = serde_json::to_string(&(store, argv)).ok();
    let fingerprint = fingerprint.and_then(|text| Fingerprint::of_json(&text).ok());
    let fingerprint = fingerprint.map(|fingerprint| fingerprint.to_string());
    serde_json::json!({ "program": program, "arguments": fingerprint }).to_string()
}
