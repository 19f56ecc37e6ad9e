//! What a job does when it is not written in Rust: a command, statements, queries whose rows are published, units.
//!
//! A command runs under a [`supervisor`], a process of its own that outlives whatever becomes of the worker, and
//! that lets nothing outlive itself: a retry never meets its predecessor.

pub(crate) mod about;
pub(crate) mod attendant;
pub(crate) mod binds;
mod capture;
pub mod command;
pub mod environment;
pub(crate) mod feed;
pub(crate) mod files;
mod http;
mod log;
mod outcome;
pub(crate) mod pool;
mod printing;
mod protocol;
pub(crate) mod publish;
mod recording;
pub(crate) mod sql;
pub mod supervisor;
pub(crate) mod values;

pub use refrain_core::terminal::harmless;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_moves_no_cursor() {
        assert_eq!(harmless("a\tb\n\u{1b}[2Jc\rd\u{9b}e\u{202e}f\u{7}ü"), "a\tb\n�[2Jc�d�e<U+202E>f�ü");
    }
}
