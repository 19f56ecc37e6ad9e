//! How a suspect is isolated from other runs.
//!
//! Every run that a worker held when it died is a suspect, and most of them are innocent. Running each alone to its end would turn
//! a crash of fifty long runs into a day of waiting; running them together would never find the one that kills. So suspicion grows
//! with each crash: at first no other run begins beside a suspect for a while; a suspect of several crashes runs strictly alone,
//! and then the next crash is its own.

use std::time::Duration;

/// How long no other run begins beside a suspect.
const QUIET: Duration = Duration::from_secs(30);
/// From this suspicion on a run runs strictly alone.
const ALONE_FROM: u32 = 3;

/// How a run is isolated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Isolation {
    /// Not at all.
    None,
    /// No other run begins beside it for so long.
    Quiet(Duration),
    /// No other run is running, from its beginning to its end.
    Alone,
}

/// How a run of this suspicion is isolated.
pub(crate) fn isolation(suspicion: u32) -> Isolation {
    match suspicion {
        0 => Isolation::None,
        ALONE_FROM.. => Isolation::Alone,
        _ => Isolation::Quiet(QUIET),
    }
}

/// Whether a run may begin beside those that are running.
pub(crate) fn may_begin(suspicion: u32, running: usize) -> bool {
    isolation(suspicion) != Isolation::Alone || running == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suspicion_grows_from_quiet_to_alone() {
        let table = [
            (0, Isolation::None, true),
            (1, Isolation::Quiet(QUIET), true),
            (2, Isolation::Quiet(QUIET), true),
            (3, Isolation::Alone, false),
            (9, Isolation::Alone, false),
        ];
        for (suspicion, expected, beside_others) in table {
            assert_eq!(isolation(suspicion), expected);
            assert_eq!(may_begin(suspicion, 4), beside_others, "{suspicion}");
            assert!(may_begin(suspicion, 0));
        }
    }
}
