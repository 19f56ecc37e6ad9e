//! The commands as users and programs meet them: real processes, real files, a real server.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "in a test a panic is the failure report")]

mod addresses;
mod black_hole;
mod broken;
mod descriptors;
mod doubts;
mod effects;
mod empty_store;
mod every_command;
mod files;
mod full_disk;
mod hostile;
mod hostile_files;
mod hostile_output;
mod hostile_rows;
mod hostile_words;
mod interruption;
mod looks;
mod once;
mod overlap;
mod parked;
mod people;
mod places;
mod rights;
mod scopes;
mod secrets;
mod serving;
mod support;
mod transcripts;
mod upgrades;
mod waiting;
mod wrong_files;
