//! How far apart from others a suspect runs.
//!
//! Whoever was under way when a worker died is a suspect, and most of them are innocent. Running each alone to its end
//! would make a crash of fifty long runs into a day of waiting; running them together would never find the
//! one that kills. So suspicion grows by being there when it happens: at first a suspect begins in quiet, with nothing
//! new beside it for a while; one that is there again and again runs strictly alone, and then its crash is its own.

use std::time::Duration;

/// How long nothing new begins beside a suspect.
const QUIET: Duration = Duration::from_secs(30);
/// From this suspicion on it runs strictly alone.
const ALONE_FROM: u32 = 3;

/// How far apart from others a run is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Isolation {
    /// Not at all.
    None,
    /// Nothing new begins beside it for so long.
    Quiet(Duration),
    /// Nothing else is under way, from its beginning to its end.
    Alone,
}

/// How far apart a run of this suspicion is kept.
pub(crate) fn isolation(suspicion: u32) -> Isolation {
    match suspicion {
        0 => Isolation::None,
        ALONE_FROM.. => Isolation::Alone,
        _ => Isolation::Quiet(QUIET),
    }
}

/// Whether a run may begin beside those under way.
pub(crate) fn may_begin(suspicion: u32, under_way: usize) -> bool {
    isolation(suspicion) != Isolation::Alone || under_way == 0
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
