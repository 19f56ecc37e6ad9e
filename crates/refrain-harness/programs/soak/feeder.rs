//! Feeds the round: changes in the sources, and requests for the runs that apply them. The feeder is never killed,
//! and remembers every request.

use std::time::Duration;

use refrain::Refrain;
use refrain::core::random::SeededRandom;

use crate::Failure;
use crate::arena::Arena;
use crate::source::{FEEDS, MARKED, Source};
use crate::worker::{self, PACKING};

/// How many runs are always queued.
const ENOUGH: u64 = 12;
const BEAT: Duration = Duration::from_millis(30);

pub(crate) struct Feeder {
    refrain: Refrain,
    /// The jobs with a cursor, then the one with a watermark.
    pub(crate) sources: Vec<Source>,
    /// How often changes were added; also the number of the last order.
    pub(crate) asked: i64,
}

impl Feeder {
    pub(crate) async fn new(arena: &Arena, seed: u64) -> Result<Feeder, Failure> {
        let refrain = worker::open_options(&arena.own, worker::LEASE).await?.open().await?;
        let names = FEEDS.into_iter().chain([MARKED]).enumerate();
        let source = |(nth, name)| {
            Source::create(&arena.own.directory, name, SeededRandom::of_member(seed, 1_000 + nth as u64))
        };
        Ok(Feeder { refrain, sources: names.map(source).collect(), asked: 0 })
    }

    /// Adds changes until it is told to stop.
    pub(crate) async fn feed(mut self, is_over: impl Fn() -> bool) -> Feeder {
        let mut beat = tokio::time::interval(BEAT);
        while !is_over() {
            beat.tick().await;
            if matches!(self.refrain.open_runs().await, Ok(0..ENOUGH)) {
                self.more().await;
            }
        }
        self
    }

    /// Adds a change to each source and requests their runs.
    pub(crate) async fn more(&mut self) {
        self.asked += 1;
        for source in &mut self.sources {
            source.grow(40);
        }
        let number = self.asked;
        let feeds = FEEDS.map(|name| ("feed", format!("{name}-{number}")));
        let others = [
            ("marked", format!("marked-{number}")),
            ("order", (number * 2 - 1).to_string()),
            ("order", (number * 2).to_string()),
            ("steps", format!("steps-{number}")),
        ];
        for (job, key) in feeds.into_iter().chain(others) {
            // A store that is being hurt does not answer; the same key again does no harm.
            while let Err(error) = self.refrain.enqueue(job, &key, &()).await {
                assert!(error.is_transient(), "{error}");
                tokio::time::sleep(BEAT).await;
            }
        }
    }

    /// Whether no work is left.
    pub(crate) async fn is_idle(&self) -> bool {
        loop {
            match self.refrain.open_runs().await {
                Ok(open) => return open == 0,
                Err(error) => assert!(error.is_transient(), "{error}"),
            }
        }
    }

    /// The numbers of all orders.
    pub(crate) fn orders(&self) -> std::ops::RangeInclusive<i64> {
        1..=self.asked * 2
    }

    /// The names of all runs.
    pub(crate) fn runs(&self) -> Vec<String> {
        let of = |number: i64| {
            let feeds = FEEDS.map(|name| format!("feed#{name}-{number}"));
            feeds.into_iter().chain([format!("marked#marked-{number}"), format!("steps#steps-{number}")])
        };
        let orders = self.orders().flat_map(|order| ["order", PACKING].map(|job| format!("{job}#{order}")));
        (1..=self.asked).flat_map(of).chain(orders).collect()
    }
}
