//! Golden files: expected output that is checked in verbatim.

use std::path::Path;

/// Compares a text with the file that has the expected one. `REFRAIN_BLESS=1` rewrites the file instead.
#[track_caller]
pub fn matches(path: &Path, actual: &str) {
    if std::env::var_os("REFRAIN_BLESS").is_some() {
        std::fs::write(path, actual).unwrap();
        return;
    }
    let expected = std::fs::read_to_string(path).unwrap_or_default();
    assert!(actual == expected, "{} differs; REFRAIN_BLESS=1 rewrites it:\n{actual}", path.display());
}
