//! The supervisors of a worker that wait for their next command: to start one costs more than most commands.
//!
//! Only one that has said that nothing is left of its command comes here, and each has one command at a time. There are never
//! more of them than commands were under way at once, for one is started only when none waits.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::task::spawn_blocking;

use super::supervisor_client::Attendant;

/// How long one waits for a command before it is let go.
const IDLE: Duration = Duration::from_secs(30);

/// Supervisors that wait, the one that has waited longest first.
#[derive(Default)]
pub(crate) struct Supervisors(Mutex<Vec<Waiting>>);

struct Waiting {
    attendant: Attendant,
    program: Option<PathBuf>,
    since: Instant,
}

impl Supervisors {
    /// One that waits, if there is one; else a new one, in the place of one that waits and is another program.
    pub(super) async fn take(&self, program: Option<&Path>) -> io::Result<Attendant> {
        let (found, other) = {
            let mut waiting = self.waiting();
            let same = waiting.iter().rposition(|one| one.program.as_deref() == program);
            let other = (same.is_none() && !waiting.is_empty()).then(|| waiting.remove(0));
            (same.map(|at| waiting.remove(at)), other)
        };
        if let Some(found) = found {
            return Ok(found.attendant);
        }
        if let Some(other) = other {
            other.attendant.leave().await;
        }
        Attendant::start(program).await
    }

    /// Lets one wait for its next command.
    pub(super) fn put(&self, attendant: Attendant, program: Option<PathBuf>) {
        self.waiting().push(Waiting { attendant, program, since: Instant::now() });
    }

    /// Lets go those that have waited for long.
    pub(crate) fn rest(&self) {
        let mut waiting = self.waiting();
        let gone = waiting.iter().take_while(|one| one.since.elapsed() >= IDLE).count();
        if gone > 0 {
            let gone = waiting.drain(..gone).collect();
            spawn_blocking(|| end(gone));
        }
    }

    /// Lets all of them go, and waits until they have.
    pub(crate) async fn close(&self) {
        let gone = std::mem::take(&mut *self.waiting());
        if !gone.is_empty() {
            let _ = spawn_blocking(|| end(gone)).await;
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Vec<Waiting>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn end(gone: Vec<Waiting>) {
    for one in gone {
        one.attendant.end();
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
