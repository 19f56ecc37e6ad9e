//! The protocol as a model, without our code: a model checker tries every interleaving of its steps, within bounds.
//!
//! Tests that kill processes show that the code follows the protocol, at the moments that chance picks. These show
//! that the protocol itself is right, in every order of its steps; and that each of its guards is needed: without it,
//! the checker finds a history that goes wrong, or the table names the other guard that covers it.
//!
//! | model | who acts | what is asked |
//! |---|---|---|
//! | `units.rs` | a source, workers with attempts, relays | each unit once, checkpoints, intents, fences |
//! | `claims.rs` | workers whose claims are committed after the answer was lost | a run that is held is known, and its lease has an owner |
//! | `calls.rs` | attempts that reserve, send and record, and a person who decides | a call is made once or is in doubt |
//! | `effects.rs` | senders of one fact in one version or two, and an operator who decides | a fact is told once or is in doubt, versions in order |
//! | `attempts.rs` | workers, and people who ask for another attempt | one attempt at a time, each under a number of its own |
//! | `ticks.rs` | schedulers | one run for each window, none left out |
//!
//! **Modelled.** The store and one destination, which share no transaction. A transaction is one step, and one whose
//! reply is lost stays in flight, with its locks, until it commits or vanishes. Workers crash, and live on after
//! their lease. The source's entries become visible out of order, and one of them changes. A unit fails, and is tried
//! again from its stored input. Relays race and die between their two steps.
//!
//! **Not modelled.** Time (a lease may expire at any moment), batches of several units and how they are halved,
//! parking, watermarks, publishing, policies that send again automatically, a store that was lost or copied; that
//! PostgreSQL and SQLite do what their locks and constraints promise, which the tests on real databases show. Two
//! units, two contents, two workers, two relays, two runs; faults as `Bounds` say, more with `REFRAIN_FULL=1`. A
//! fault that needs three of anything is not found here.
//!
//! With `--nocapture` each test prints how many states it has seen, and the counterexample.
#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    reason = "in a test a panic is the failure report, and a model is made of small arrays"
)]

mod attempts;
mod calls;
mod check;
mod claims;
mod effects;
mod ticks;
mod units;
