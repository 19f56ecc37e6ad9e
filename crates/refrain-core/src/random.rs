//! Random numbers are an input, so that a test, or a second look at a run, draws the same numbers.
//!
//! It spreads retries in time and tells claims of one attempt apart, and nothing else. Keys and ids are
//! derived, never drawn; tokens and secrets need the operating system's generator and must never be made here.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

/// A source of numbers that look random.
pub trait Random {
    /// The next number, each of the 2⁶⁴ as likely as the others.
    fn next_u64(&mut self) -> u64;
}

/// Splitmix64: the same seed gives the same numbers on every machine and in every release.
///
/// Eight lines whose output never changes; the generator of a crate may change between versions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeededRandom(u64);

impl SeededRandom {
    /// The sequence that belongs to `seed`.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The sequence for the `nth` member of a family, such as the third attempt of a run.
    pub fn of_member(seed: u64, nth: u64) -> Self {
        Self(seed ^ Self(nth).next_u64())
    }
}

impl Random for SeededRandom {
    fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

/// A sequence that differs from process to process.
///
/// The seed is what the standard library draws from the system to protect its hash maps: distinct for each process and
/// each call, which is all that jitter needs. It is *not* secret: 64 bits, and one number is enough to compute the next.
#[derive(Debug, Clone)]
pub struct SystemRandom(SeededRandom);

impl SystemRandom {
    /// A source with a seed of its own.
    pub fn new() -> Self {
        Self(SeededRandom::new(RandomState::new().build_hasher().finish()))
    }
}

impl Default for SystemRandom {
    fn default() -> Self {
        Self::new()
    }
}

impl Random for SystemRandom {
    fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }
}

/// A duration from zero to `cap`, both included, each nanosecond equally likely.
///
/// The draw is scaled by a multiplication instead of taken modulo the cap; for a cap of an hour no duration is favoured by
/// more than one part in four million. A cap beyond 584 years counts as 584 years.
///
/// ```
/// use refrain_core::random::{SeededRandom, duration_up_to};
/// use std::time::Duration;
///
/// let cap = Duration::from_secs(30);
/// assert!(duration_up_to(cap, &mut SeededRandom::new(7)) <= cap);
/// ```
pub fn duration_up_to(cap: Duration, random: &mut impl Random) -> Duration {
    let nanoseconds = u64::try_from(cap.as_nanos()).unwrap_or(u64::MAX);
    let scaled = (u128::from(random.next_u64()) * (u128::from(nanoseconds) + 1)) >> 64;
    Duration::from_nanos(u64::try_from(scaled).unwrap_or(nanoseconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_of_a_seed_never_change() {
        // The reference implementation's first numbers for the seed 1234567.
        let mut random = SeededRandom::new(1_234_567);
        let drawn = [random.next_u64(), random.next_u64(), random.next_u64()];
        assert_eq!(drawn, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    #[test]
    fn members_of_a_family_draw_apart() {
        let first = SeededRandom::of_member(7, 1).next_u64();
        assert_ne!(first, SeededRandom::of_member(7, 2).next_u64());
        assert_ne!(first, SeededRandom::of_member(8, 1).next_u64());
        assert_eq!(first, SeededRandom::of_member(7, 1).next_u64());
    }

    #[test]
    fn two_processes_draw_different_numbers() {
        assert_ne!(SystemRandom::new().next_u64(), SystemRandom::new().next_u64());
    }

    #[test]
    fn both_ends_of_a_duration_are_drawn_and_nothing_beyond() {
        struct Fixed(u64);
        impl Random for Fixed {
            fn next_u64(&mut self) -> u64 {
                self.0
            }
        }
        let hour = Duration::from_hours(1);
        for (cap, draw, expected) in [
            (hour, 0, Duration::ZERO),
            (hour, u64::MAX, hour),
            (hour, u64::MAX / 2, hour / 2),
            (Duration::ZERO, u64::MAX, Duration::ZERO),
            (Duration::from_nanos(1), u64::MAX / 2, Duration::ZERO),
            (Duration::from_nanos(1), u64::MAX / 2 + 1, Duration::from_nanos(1)),
            (Duration::MAX, u64::MAX, Duration::from_nanos(u64::MAX)),
        ] {
            assert_eq!(duration_up_to(cap, &mut Fixed(draw)), expected, "{cap:?} {draw}");
        }
    }
}
