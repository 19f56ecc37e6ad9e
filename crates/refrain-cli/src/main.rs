//! The `refrain` command: parse, act, and turn the outcome into an exit code.
#![forbid(unsafe_code)]

use clap::Parser;

/// Run it again. Nothing happens twice.
///
/// A scheduler, worker and ledger for jobs that will run more than once.
#[derive(Parser)]
#[command(name = "refrain", version, arg_required_else_help = true)]
struct Arguments {}

fn main() {
    let Arguments {} = Arguments::parse();
}
