//! The result of a round, as a line of a table.

use crate::arena::Kind;
use crate::oracle::Findings;
use crate::round::Harm;

/// This percentage of kills must hit a guarded section: a kill of an idle process proves nothing.
const INSIDE_MIN: usize = 30;
/// With fewer kills than this, the percentage depends on chance.
const ENOUGH: usize = 100;
/// The most findings of a kind that are shown.
const SHOWN: usize = 20;

pub(crate) struct Report {
    pub(crate) kind: Kind,
    pub(crate) seed: u64,
    pub(crate) kills: usize,
    pub(crate) inside: usize,
    pub(crate) zombies: usize,
    pub(crate) harm: Harm,
    pub(crate) replies: usize,
    pub(crate) units: usize,
    pub(crate) findings: Findings,
    pub(crate) seconds: u64,
}

impl Report {
    fn share(&self) -> usize {
        self.inside * 100 / self.kills.max(1)
    }

    fn has_struck(&self) -> bool {
        self.kills < ENOUGH || self.share() >= INSIDE_MIN
    }

    pub(crate) fn is_sound(&self) -> bool {
        self.findings.is_empty() && self.has_struck()
    }

    /// Prints the findings.
    pub(crate) fn print(&self) {
        let Findings { duplicates, lost, wrong } = &self.findings;
        for (word, found) in [("duplicate", duplicates), ("lost", lost), ("wrong", wrong)] {
            for finding in found.iter().take(SHOWN) {
                eprintln!("{}: {word}: {finding}", self.kind);
            }
        }
        if !self.has_struck() {
            eprintln!(
                "{}: only {} % of the kills struck inside of a guarded section",
                self.kind,
                self.share()
            );
        }
    }

    fn cells(&self) -> [String; 15] {
        let Findings { duplicates, lost, wrong } = &self.findings;
        let Harm { terminations, crashes, partitions, delays } = self.harm;
        [
            self.kind.to_string(),
            self.seed.to_string(),
            self.kills.to_string(),
            format!("{} ({} %)", self.inside, self.share()),
            self.zombies.to_string(),
            terminations.to_string(),
            crashes.to_string(),
            partitions.to_string(),
            delays.to_string(),
            self.replies.to_string(),
            self.units.to_string(),
            duplicates.len().to_string(),
            lost.len().to_string(),
            wrong.len().to_string(),
            self.seconds.to_string(),
        ]
    }
}

const HEAD: [&str; 15] = [
    "database",
    "seed",
    "kills",
    "inside guarded sections",
    "zombies",
    "connections ended",
    "server crashes",
    "partitions",
    "slow times",
    "lost replies",
    "units",
    "duplicates",
    "lost",
    "wrong",
    "seconds",
];

/// The table of all rounds.
pub(crate) fn print(reports: &[Report]) {
    println!("| {} |", HEAD.join(" | "));
    println!("|{}", "---|".repeat(HEAD.len()));
    for report in reports {
        println!("| {} |", report.cells().join(" | "));
    }
}
