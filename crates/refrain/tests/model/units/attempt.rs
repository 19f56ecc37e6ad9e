//! One attempt of a run, step by step, as its worker sees it. What it has read may be outdated; the transaction that
//! writes decides what it may write.

use super::destination::Write;
use super::{Content, Guard, Number, Place, Position, UNITS, Units, World};

/// The next step of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Act {
    Begin,
    ReadCheckpoint,
    ReadPage,
    /// Only if the limit of the checkpoint is read after the page.
    ReadHorizon,
    /// Only if the fence is raised after reading.
    RaiseLate,
    WorkOff,
    /// The reply of a commit was lost.
    InDoubt,
    /// The handler has refused the unit, and its transaction is rolled back.
    Failing,
    /// Only if ledger and rows, or rows and intents, do not commit together.
    WriteRows,
    WriteIntent,
    /// The fence or the lease belongs to a newer attempt.
    Refused,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Attempt {
    pub(crate) run: usize,
    pub(crate) number: Number,
    pub(crate) act: Act,
    /// The checkpoint, as it was read.
    pub(crate) from: Position,
    /// The units that were visible after the checkpoint, as they were read.
    pub(crate) page: [Content; UNITS],
    /// Where the checkpoint may go when all of the page is settled.
    pub(crate) to: Position,
    /// The first unit of the page that is not processed.
    pub(crate) next: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Raise,
    ReadCheckpoint,
    ReadPage,
    ReadHorizon,
    /// The ledger has it already, as a read without a lock shows.
    Deduplicate,
    Apply,
    /// Like `Apply`, but the connection is cut before the reply: the commit happens later, or never.
    LoseReply,
    ReadLedger,
    WriteRows,
    WriteIntent,
    Fail,
    RecordFailure,
    /// Applies a failed unit from its stored input.
    Retry(usize),
    Advance,
    Finish,
    End,
    Crash,
}

impl Attempt {
    pub(crate) fn claimed(run: usize, number: Number) -> Self {
        Self { run, number, act: Act::Begin, from: 0, page: [0; UNITS], to: 0, next: 0 }
    }

    fn at(run: usize, number: Number, act: Act) -> Self {
        Self { act, ..Self::claimed(run, number) }
    }

    /// The current unit.
    fn unit(&self) -> Option<usize> {
        (self.next..UNITS).find(|unit| self.page[*unit] > 0)
    }

    fn write(&self) -> Option<Write> {
        let unit = self.unit()?;
        Some(Write { number: self.number, unit, content: self.page[unit] })
    }

    /// Moves to the next unit of the page.
    fn proceed(self) -> Self {
        let next = self.unit().map_or(UNITS, |unit| unit + 1);
        let next = Self { next, ..self }.unit().unwrap_or(UNITS);
        Self { next, act: Act::WorkOff, ..self }
    }

    fn then(self, act: Act) -> Self {
        Self { act, ..self }
    }

    fn refused(self) -> Self {
        Self::at(self.run, self.number, Act::Refused)
    }
}

impl Units {
    /// The possible steps of the attempt in this world.
    pub(crate) fn steps(&self, world: &World, attempt: &Attempt) -> Vec<Step> {
        let mut steps = match attempt.act {
            Act::Begin if !self.has(Guard::RaisedBeforeReading) => vec![Step::ReadCheckpoint],
            Act::Begin | Act::RaiseLate if self.is_fence_held(world, attempt.run) => vec![],
            Act::Begin | Act::RaiseLate => vec![Step::Raise],
            Act::ReadCheckpoint => {
                let is_failed = |unit: &usize| world.destination.ledger[*unit].failed > 0;
                let may_retry = |unit: &usize| is_failed(unit) && !world.destination.is_key_locked(*unit);
                (0..UNITS).filter(may_retry).map(Step::Retry).chain([Step::ReadCheckpoint]).collect()
            }
            Act::ReadPage => vec![Step::ReadPage],
            Act::ReadHorizon => vec![Step::ReadHorizon],
            Act::WorkOff => self.steps_of_work(world, attempt),
            Act::InDoubt => vec![Step::ReadLedger],
            Act::Failing if attempt.write().is_some_and(|one| world.destination.is_key_locked(one.unit)) => {
                vec![]
            }
            Act::Failing => vec![Step::RecordFailure],
            Act::WriteRows => vec![Step::WriteRows],
            Act::WriteIntent => vec![Step::WriteIntent],
            Act::Refused => vec![Step::End],
        };
        if world.spent.crashes < self.bounds.crashes && attempt.act != Act::Refused {
            steps.push(Step::Crash);
        }
        steps
    }

    fn steps_of_work(&self, world: &World, attempt: &Attempt) -> Vec<Step> {
        let mut steps = match attempt.write() {
            Some(write) => self.steps_of_unit(world, attempt, write),
            None if attempt.to == attempt.from => vec![Step::Finish],
            None => vec![],
        };
        let is_ready = attempt.unit().is_none() || !self.has(Guard::SettledFirst);
        if is_ready && attempt.to > attempt.from {
            steps.push(Step::Advance);
        }
        steps
    }

    fn steps_of_unit(&self, world: &World, attempt: &Attempt, write: Write) -> Vec<Step> {
        if self.is_deduplicated(world.destination.ledger[write.unit], write.content) {
            return vec![Step::Deduplicate];
        }
        if world.destination.is_key_locked(write.unit) {
            return vec![];
        }
        let is_alone = world.destination.in_flight[attempt.run].is_none();
        let may_lose = is_alone && world.spent.lost_replies < self.bounds.lost_replies;
        let may_fail = world.spent.failures < self.bounds.failures;
        let lose = may_lose.then_some(Step::LoseReply);
        [Step::Apply].into_iter().chain(lose).chain(may_fail.then_some(Step::Fail)).collect()
    }

    /// Takes the step; returns none if the attempt ends with it.
    pub(crate) fn after_step(&self, world: &mut World, attempt: Attempt, step: Step) -> Option<Attempt> {
        let afresh = Attempt::at(attempt.run, attempt.number, Act::ReadCheckpoint);
        Some(match step {
            Step::Raise if !self.raise(world, &attempt) => attempt.refused(),
            Step::Raise if attempt.act == Act::RaiseLate => attempt.then(Act::WorkOff),
            Step::Raise => attempt.then(Act::ReadCheckpoint),
            Step::ReadCheckpoint => {
                Attempt { from: world.destination.checkpoint, ..attempt.then(Act::ReadPage) }
            }
            Step::ReadPage => self.read_page(world, attempt),
            Step::ReadHorizon => {
                Attempt { to: world.horizon().max(attempt.from), ..attempt.then(Act::WorkOff) }
            }
            Step::Apply | Step::LoseReply | Step::RecordFailure | Step::Retry(_)
                if !self.passes(world, &attempt, Guard::FenceOfApply) =>
            {
                attempt.refused()
            }
            Step::Apply => {
                self.apply(world, attempt.run, attempt.write()?);
                self.after_apply(attempt)
            }
            Step::LoseReply => {
                world.spent.lost_replies += 1;
                world.destination.in_flight[attempt.run] = attempt.write();
                attempt.then(Act::InDoubt)
            }
            Step::ReadLedger if self.has(Guard::DoubtResolved) => attempt.then(Act::WorkOff),
            Step::ReadLedger | Step::Deduplicate => attempt.proceed(),
            Step::WriteRows => {
                self.write_rows(world, attempt.write()?);
                attempt.proceed()
            }
            Step::WriteIntent => {
                let write = attempt.write()?;
                world.destination.intents[write.unit][super::destination::index(write.content)] = true;
                attempt.proceed()
            }
            Step::Fail => {
                world.spent.failures += 1;
                attempt.then(Act::Failing)
            }
            Step::RecordFailure => {
                self.fail(world, attempt.run, attempt.write()?);
                attempt.proceed()
            }
            Step::Retry(unit) => {
                let content = world.destination.ledger[unit].failed;
                self.apply(world, attempt.run, Write { number: attempt.number, unit, content });
                attempt
            }
            Step::Advance if !self.passes(world, &attempt, Guard::FenceOfCheckpoint) => attempt.refused(),
            Step::Advance => {
                self.advance(world, &attempt);
                afresh
            }
            Step::Finish => return self.finish(world, attempt),
            Step::End => return None,
            Step::Crash => {
                world.spent.crashes += 1;
                return None;
            }
        })
    }

    fn read_page(&self, world: &World, attempt: Attempt) -> Attempt {
        let mut page = world.source;
        page[..attempt.from].fill(0);
        let visible = world.source.iter().rposition(|content| *content > 0).map_or(0, |last| last + 1);
        let to = if self.has(Guard::Horizon) { world.horizon() } else { visible };
        let is_raised =
            self.has(Guard::RaisedBeforeReading) || world.destination.begun[attempt.run] >= attempt.number;
        let act = match is_raised {
            false => Act::RaiseLate,
            true if self.has(Guard::HorizonOfPage) => Act::WorkOff,
            true => Act::ReadHorizon,
        };
        let read = Attempt { page, to: to.max(attempt.from), next: 0, act, ..attempt };
        Attempt { next: read.unit().unwrap_or(UNITS), ..read }
    }

    /// Writes next what was not in the unit's commit.
    fn after_apply(&self, attempt: Attempt) -> Attempt {
        if !self.has(Guard::LedgerWithRows) {
            attempt.then(Act::WriteRows)
        } else if !self.has(Guard::IntentWithRows) {
            attempt.then(Act::WriteIntent)
        } else {
            attempt.proceed()
        }
    }

    /// In the store: only the attempt that holds the lease ends the run.
    fn finish(&self, world: &mut World, attempt: Attempt) -> Option<Attempt> {
        let run = world.runs[attempt.run];
        let is_its_own = run.place == Place::Leased && run.number == attempt.number;
        if self.has(Guard::FenceOfFinish) && !is_its_own {
            return Some(attempt.refused());
        }
        let others = world.workers.iter().flatten().copied();
        let knowing =
            others.filter(|other| other.run == attempt.run && other.number == run.number).chain([attempt]);
        let is_unsettled = |unit: usize| !world.destination.ledger[unit].is_settled();
        world.faults.ended_with_units_unsettled |=
            knowing.flat_map(|one| (0..UNITS).filter(move |unit| one.page[*unit] > 0)).any(is_unsettled);
        world.runs[attempt.run].place = Place::Done;
        None
    }
}
