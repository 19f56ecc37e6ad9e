//! The faults of a process, drawn from a seed.

use std::time::Duration;

use refrain::core::random::{Random, SeededRandom, duration_up_to};

use crate::worker::LEASE;

/// The commits at which a process may be killed, or may lose the answer, and how often it may pass there before.
const PLACES: [(&str, u64); 16] = [
    ("unit-apply", 8),
    ("unit-apply", 30),
    ("unit-fail", 2),
    ("unit-blame", 8),
    ("unit-convict", 1),
    ("checkpoint", 4),
    ("fence-raise", 3),
    ("ledger-open", 1),
    ("claims", 4),
    ("claim", 4),
    ("finish", 4),
    ("take-over", 1),
    ("register-worker", 1),
    ("beat", 2),
    ("relay-copy", 4),
    ("relay-forget", 4),
];
/// A process is killed within this time after its work has begun.
const SOON: Duration = Duration::from_millis(120);

/// The fault of one process. In the end it is killed, whatever came before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Killed at a random moment.
    Kill { after: Duration },
    /// Killed before or after a commit.
    KillAt { failpoints: String },
    /// The answer to a commit is lost; then killed at a random moment.
    Lose { failpoints: String, after: Duration },
    /// Stopped past its lease, then continued.
    Stop { after: Duration, length: Duration },
}

impl Fault {
    pub(crate) fn draw(random: &mut SeededRandom) -> Fault {
        let soon = duration_up_to(SOON, random);
        match random.next_u64() % 20 {
            0..11 => Fault::Kill { after: soon },
            11..16 => {
                let when = if random.next_u64().is_multiple_of(3) { "after-commit" } else { "before-commit" };
                Fault::KillAt { failpoints: place(random, when, "return(kill)") }
            }
            16..18 => Fault::Lose { failpoints: place(random, "reply", "1*return(lost)"), after: soon * 2 },
            _ => Fault::Stop { after: soon, length: LEASE * 5 / 4 + duration_up_to(LEASE, random) },
        }
    }

    pub(crate) fn failpoints(&self) -> &str {
        match self {
            Fault::KillAt { failpoints } | Fault::Lose { failpoints, .. } => failpoints,
            Fault::Kill { .. } | Fault::Stop { .. } => "",
        }
    }
}

/// `unit-apply.before-commit=3*off->return(kill)`
fn place(random: &mut SeededRandom, when: &str, what: &str) -> String {
    let draw = random.next_u64();
    let chosen = usize::try_from(draw % PLACES.len() as u64).ok().and_then(|at| PLACES.get(at));
    let (name, passes) = chosen.copied().unwrap_or(("unit-apply", 1));
    format!("{name}.{when}={}*off->{what}", (draw >> 32) % (passes + 1))
}
