//! The idle supervisors of a worker, which are reused: starting one costs more than most commands.
//!
//! A supervisor comes here only after it has reported that no process of its command is left, and it has one command at a time.
//! There are never more of them than commands ran at once, because one is started only when none is idle.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::task::spawn_blocking;

use super::client::SupervisorProcess;

/// How long a supervisor stays idle before it is stopped.
const IDLE: Duration = Duration::from_secs(30);

/// Idle supervisors, the one that has been idle longest first.
#[derive(Default)]
pub(crate) struct Supervisors(Mutex<Vec<IdleSupervisor>>);

struct IdleSupervisor {
    supervisor: SupervisorProcess,
    program: Option<PathBuf>,
    since: Instant,
}

impl Supervisors {
    /// An idle supervisor of this program, or a new one, which replaces an idle one of another program.
    pub(crate) async fn take(&self, program: Option<&Path>) -> io::Result<SupervisorProcess> {
        let (found, other) = {
            let mut waiting = self.waiting();
            let same = waiting.iter().rposition(|one| one.program.as_deref() == program);
            let other = (same.is_none() && !waiting.is_empty()).then(|| waiting.remove(0));
            (same.map(|at| waiting.remove(at)), other)
        };
        if let Some(found) = found {
            return Ok(found.supervisor);
        }
        if let Some(other) = other {
            other.supervisor.stop().await;
        }
        SupervisorProcess::start(program).await
    }

    /// Keeps a supervisor for its next command.
    pub(crate) fn put(&self, supervisor: SupervisorProcess, program: Option<PathBuf>) {
        self.waiting().push(IdleSupervisor { supervisor, program, since: Instant::now() });
    }

    /// Stops the supervisors that have been idle for long.
    pub(crate) fn stop_idle(&self) {
        let mut waiting = self.waiting();
        let gone = waiting.iter().take_while(|one| one.since.elapsed() >= IDLE).count();
        if gone > 0 {
            let gone = waiting.drain(..gone).collect();
            spawn_blocking(|| end(gone));
        }
    }

    /// Stops all idle supervisors, and waits for their end.
    pub(crate) async fn stop_all(&self) {
        let gone = std::mem::take(&mut *self.waiting());
        if !gone.is_empty() {
            let _ = spawn_blocking(|| end(gone)).await;
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Vec<IdleSupervisor>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn end(gone: Vec<IdleSupervisor>) {
    for one in gone {
        one.supervisor.stop_blocking();
    }
}

impl Drop for Supervisors {
    fn drop(&mut self) {
        let gone = std::mem::take(&mut *self.waiting());
        if !gone.is_empty() {
            let _ = std::thread::Builder::new().spawn(|| end(gone));
        }
    }
}

impl fmt::Debug for Supervisors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Supervisors").field("waiting", &self.waiting().len()).finish()
    }
}
