//! What a job does when it is not written in Rust: a command, statements, queries whose rows are published, units.
//!
//! A command runs under a [`supervisor`], a process of its own that outlives whatever becomes of the worker, and
//! that lets nothing outlive itself: a retry never meets its predecessor.

pub(crate) mod about;
mod attempt_log;
pub(crate) mod binds;
pub mod command;
mod command_failure;
pub(crate) mod command_files;
mod command_output;
pub mod environment;
pub(crate) mod feed;
mod http;
mod output_capture;
mod output_recorder;
pub(crate) mod publish;
pub(crate) mod sql;
pub mod supervisor;
pub(crate) mod supervisor_client;
pub(crate) mod supervisor_pool;
mod supervisor_protocol;
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
