//! The `refrain` command.

use clap::Parser;

/// Run it again. Nothing happens twice.
#[derive(Parser)]
#[command(name = "refrain", version, arg_required_else_help = true)]
struct Arguments {}

fn main() {
    let Arguments {} = Arguments::parse();
}
