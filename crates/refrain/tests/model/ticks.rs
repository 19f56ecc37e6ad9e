//! How a window gets its run: schedulers read how far windows are opened, insert what is due, and advance.
//!
//! All of that is one transaction, under a lock of the schedule, and the run's key is unique: three guards, and each
//! is shown to be needed. A scheduler may be killed anywhere.

use stateright::{Model, Property};

use crate::check::{self, protocol};

const WINDOWS_MAX: usize = 8;
const SCHEDULERS: usize = 2;

/// A guard that can be removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Guard {
    /// Rows are inserted before the schedule says that they are.
    RowsFirst,
    /// Both commit together.
    OneStep,
    /// A scheduler that reads a schedule locks it until its transaction ends.
    ScheduleLocked,
    /// There is one run for a window.
    RunKey,
}

/// The bounds of the search.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    windows: usize,
}

#[derive(Clone, Copy, Debug)]
struct Ticks {
    bounds: Bounds,
    without: &'static [Guard],
}

/// What a scheduler has read: the windows from here to there are due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Due {
    from: usize,
    to: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Scheduler {
    Idle,
    Looked(Due),
    /// One of the two steps is committed.
    Halfway(Due),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct World {
    /// How many windows have ended.
    ended: usize,
    /// How many windows are opened, according to the schedule.
    covered: usize,
    /// Runs of each window.
    runs: [u8; WINDOWS_MAX],
    schedulers: [Scheduler; SCHEDULERS],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    /// Time passes, and a window ends.
    End,
    Look(usize),
    Commit(usize),
    Crash(usize),
}

impl Ticks {
    fn has(&self, guard: Guard) -> bool {
        !self.without.contains(&guard)
    }

    fn insert(&self, world: &mut World, due: Due) {
        for runs in &mut world.runs[due.from..due.to] {
            *runs = if self.has(Guard::RunKey) { 1 } else { (*runs + 1).min(2) };
        }
    }

    fn commit(&self, world: &mut World, scheduler: Scheduler) -> Scheduler {
        let is_rows_first = self.has(Guard::RowsFirst);
        match scheduler {
            Scheduler::Looked(due) if self.has(Guard::OneStep) => {
                self.insert(world, due);
                world.covered = due.to;
                Scheduler::Idle
            }
            Scheduler::Looked(due) if is_rows_first => {
                self.insert(world, due);
                Scheduler::Halfway(due)
            }
            Scheduler::Halfway(due) if !is_rows_first => {
                self.insert(world, due);
                Scheduler::Idle
            }
            Scheduler::Looked(due) => {
                world.covered = due.to;
                Scheduler::Halfway(due)
            }
            Scheduler::Halfway(due) => {
                world.covered = due.to;
                Scheduler::Idle
            }
            Scheduler::Idle => Scheduler::Idle,
        }
    }
}

impl Model for Ticks {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        vec![World {
            ended: 0,
            covered: 0,
            runs: [0; WINDOWS_MAX],
            schedulers: [Scheduler::Idle; SCHEDULERS],
        }]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        actions.extend((world.ended < self.bounds.windows).then_some(Action::End));
        let holds = |scheduler: &Scheduler| matches!(scheduler, Scheduler::Looked(_));
        let is_locked = self.has(Guard::ScheduleLocked) && world.schedulers.iter().any(holds);
        for (at, scheduler) in world.schedulers.iter().enumerate() {
            match scheduler {
                Scheduler::Idle if !is_locked && world.covered < world.ended => {
                    actions.push(Action::Look(at));
                }
                Scheduler::Idle => {}
                Scheduler::Looked(_) | Scheduler::Halfway(_) => {
                    actions.extend([Action::Commit(at), Action::Crash(at)]);
                }
            }
        }
    }

    fn next_state(&self, before: &World, action: Action) -> Option<World> {
        let mut world = before.clone();
        match action {
            Action::End => world.ended += 1,
            Action::Look(at) => {
                world.schedulers[at] = Scheduler::Looked(Due { from: world.covered, to: world.ended });
            }
            Action::Commit(at) => world.schedulers[at] = self.commit(&mut world, before.schedulers[at]),
            Action::Crash(at) => world.schedulers[at] = Scheduler::Idle,
        }
        world.schedulers.sort_unstable();
        Some(world)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let (always, sometimes) = (Property::<Self>::always, Property::<Self>::sometimes);
        vec![
            always(ONE_RUN, |_, world| world.runs.iter().all(|runs| *runs <= 1)),
            always(NONE_LEFT_OUT, |_, world| {
                let is_half_way = |scheduler: &Scheduler| matches!(scheduler, Scheduler::Halfway(_));
                let is_opened = !world.runs[..world.covered].contains(&0);
                is_opened || world.schedulers.iter().any(is_half_way)
            }),
            sometimes("every window has its run", |model, world| world.covered == model.bounds.windows),
        ]
    }
}

const ONE_RUN: &str = "each window has one run at most";
/// A scheduler between two steps may still open it; after a kill between them, no scheduler does.
const NONE_LEFT_OUT: &str = "each window that is said to be opened has a run";

const BOUNDS: Bounds = Bounds { windows: 3 };

#[test]
fn each_window_is_opened_once() {
    let bounds = check::chosen(BOUNDS, Bounds { windows: WINDOWS_MAX });
    check::holds(Ticks { bounds, without: &[] }, "ticks");
}

protocol! { Ticks:
    a_tick_that_advances_before_it_inserts_leaves_windows_out: [OneStep, RowsFirst] in BOUNDS breaks NONE_LEFT_OUT;
    two_schedulers_open_a_window_twice: [ScheduleLocked, RunKey] in BOUNDS breaks ONE_RUN;
    a_tick_in_two_steps_opens_a_window_twice: [OneStep, RunKey] in BOUNDS breaks ONE_RUN;
    covered_by_the_key_a_schedule_that_is_not_locked: [ScheduleLocked] in BOUNDS holds;
    covered_by_the_key_a_tick_in_two_steps: [OneStep] in BOUNDS holds;
    covered_by_the_lock_a_run_without_a_unique_key: [RunKey] in BOUNDS holds;
    covered_by_the_one_step_an_advance_before_the_rows: [RowsFirst] in BOUNDS holds;
}
