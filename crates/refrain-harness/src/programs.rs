//! The programs of this crate and the examples of the library, as processes that tests start.

use std::path::PathBuf;

/// The program that cargo built under this name, beside the test program that is running.
pub fn program(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let program = test.ancestors().nth(2).unwrap().join("examples").join(name);
    assert!(program.exists(), "{} is missing: cargo build --workspace --examples", program.display());
    program
}
