//! The skeleton of every loop: tick, wait, tick again, until told to stop.
//!
//! A service implements one tick, and says when the next is due; this file defines how loops behave. A wake-up during a tick is not
//! lost, because waiting begins before the tick does. An error never ends a loop: the database may be back in a minute. Each
//! further error is followed by a longer wait, and a wake-up does not shorten it, because a hundred of them would press on a
//! database that is down. A loop stops between two ticks, never inside one; a tick that must end soon has a [`Stop`] of its own.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use refrain_core::random::duration_up_to;
use refrain_core::{Backoff, Random, SystemRandom};
use tokio::sync::futures::Notified;
use tokio::sync::{Notify, watch};

use crate::failpoint;

/// How long a loop waits after errors.
const BACKOFF: Backoff = Backoff { min: Duration::from_millis(500), max: Duration::from_secs(30) };

/// One loop of the engine.
pub(crate) trait Service: Send {
    /// Its name in logs.
    const NAME: &'static str;
    /// The phase that ends it. Services that others need while they finish run until `Stopping`.
    const UNTIL: Phase = Phase::Draining;
    /// The error of a tick.
    type Error: Display + Send;

    /// Looks for work once, does it, and returns when to look again.
    fn tick(&mut self) -> impl Future<Output = Result<Next, Self::Error>> + Send;
}

/// When the next tick of a service is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// At once: there is more work.
    Now,
    /// After about this long, or when woken.
    After(Duration),
    /// There is no work: after the loop's idle time, or when woken.
    Idle,
}

/// Runs a service until it is told to stop.
pub(crate) async fn run<S: Service>(mut service: S, stop: Stop, wake: Wake, idle: Duration) {
    let mut random = SystemRandom::new();
    let mut failures: u32 = 0;
    while stop.phase() < S::UNTIL {
        let woken = wake.woken();
        failpoint::reach(S::NAME);
        match service.tick().await {
            Ok(next) => {
                failures = 0;
                let Some(delay) = next.delay(idle, &mut random) else {
                    tokio::task::yield_now().await;
                    continue;
                };
                tokio::select! {
                    () = stop.reached(S::UNTIL) => {}
                    () = woken => {}
                    () = tokio::time::sleep(delay) => {}
                }
            }
            Err(error) => {
                failures = failures.saturating_add(1);
                let delay = duration_up_to(BACKOFF.longest_wait(failures), &mut random);
                tracing::warn!(service = S::NAME, failures, again_in = ?delay, "{error}");
                tokio::select! {
                    () = stop.reached(S::UNTIL) => {}
                    () = tokio::time::sleep(delay) => {}
                }
            }
        }
    }
}

impl Next {
    /// The wait, a tenth more or less, so that loops which began together do not stay together.
    fn delay(self, idle: Duration, random: &mut impl Random) -> Option<Duration> {
        let wait = match self {
            Next::Now => return None,
            Next::After(delay) => delay,
            Next::Idle => idle,
        };
        Some(wait.saturating_sub(wait / 10).saturating_add(duration_up_to(wait / 5, random)))
    }
}

/// How far the engine has gone in stopping. It never goes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// All due work is done.
    Running,
    /// Nothing new begins; running attempts finish.
    Draining,
    /// Running attempts are interrupted and given back.
    Stopping,
}

/// Tells every holder of a clone when to stop.
#[derive(Debug, Clone)]
pub(crate) struct Stop(watch::Sender<Phase>);

impl Stop {
    pub(crate) fn new() -> Self {
        Self(watch::Sender::new(Phase::Running))
    }

    /// Nothing new is to begin.
    pub(crate) fn drain(&self) {
        self.raise(Phase::Draining);
    }

    /// Running attempts are to be given back.
    pub(crate) fn now(&self) {
        self.raise(Phase::Stopping);
    }

    pub(crate) fn phase(&self) -> Phase {
        *self.0.borrow()
    }

    /// Waits until nothing new may begin.
    pub(crate) async fn draining(&self) {
        self.reached(Phase::Draining).await;
    }

    /// Waits until running attempts must be given back.
    pub(crate) async fn stopping(&self) {
        self.reached(Phase::Stopping).await;
    }

    async fn reached(&self, phase: Phase) {
        // This cannot fail: `self` is the sender.
        let _ = self.0.subscribe().wait_for(|now| *now >= phase).await;
    }

    fn raise(&self, phase: Phase) {
        self.0.send_if_modified(|now| {
            let raised = *now < phase;
            *now = phase.max(*now);
            raised
        });
    }
}

/// Wakes every loop that holds a clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wake(Arc<Notify>);

impl Wake {
    /// There may be work.
    pub(crate) fn wake(&self) {
        self.0.notify_waiters();
    }

    /// Waits for the next wake-up after this call, even if it comes before the future is polled.
    pub(crate) fn woken(&self) -> Notified<'_> {
        self.0.notified()
    }
}

#[cfg(test)]
mod tests {
    use refrain_core::SeededRandom;
    use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
    use tokio::task::JoinHandle;
    use tokio::time::Instant;

    use super::*;

    const IDLE: Duration = Duration::from_secs(100);
    const HOUR: Duration = Duration::from_hours(1);

    type Answer = Result<Next, &'static str>;

    /// Answers by a function of the number of ticks, and reports when each was.
    struct Scripted<F> {
        looks: u32,
        answer: F,
        looked: UnboundedSender<Instant>,
    }

    impl<F: FnMut(u32) -> Answer + Send> Service for Scripted<F> {
        const NAME: &'static str = "scripted";
        type Error = &'static str;

        async fn tick(&mut self) -> Answer {
            self.looks += 1;
            self.looked.send(Instant::now()).unwrap();
            tokio::task::yield_now().await;
            (self.answer)(self.looks)
        }
    }

    struct Story {
        stop: Stop,
        looked: UnboundedReceiver<Instant>,
        task: JoinHandle<()>,
    }

    impl Story {
        fn begin(answer: impl FnMut(u32) -> Answer + Send + 'static) -> Self {
            Self::with(Wake::default(), answer)
        }

        fn with(wake: Wake, answer: impl FnMut(u32) -> Answer + Send + 'static) -> Self {
            let stop = Stop::new();
            let (looks, looked) = mpsc::unbounded_channel();
            let service = Scripted { looks: 0, answer, looked: looks };
            let task = tokio::spawn(run(service, stop.clone(), wake, IDLE));
            Self { stop, looked, task }
        }

        async fn look(&mut self) -> Instant {
            self.looked.recv().await.unwrap()
        }

        /// How long after the last look the next one is.
        async fn waits(&mut self, looks: usize) -> Vec<Duration> {
            let mut last = self.look().await;
            let mut waits = Vec::new();
            for _ in 0..looks {
                let look = self.look().await;
                waits.push(look - last);
                last = look;
            }
            waits
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_service_ticks_again_within_a_tenth_of_its_wait() {
        let mut story = Story::begin(|looks| Ok(if looks % 2 == 0 { Next::Idle } else { Next::After(HOUR) }));
        let waits = story.waits(40).await;
        for (number, wait) in waits.iter().enumerate() {
            let planned = if number % 2 == 0 { HOUR } else { IDLE };
            let slack = Duration::from_millis(1);
            assert!(
                *wait >= planned * 9 / 10 && *wait <= planned * 11 / 10 + slack,
                "{wait:?} for {planned:?}"
            );
        }
        assert!(
            waits.windows(3).any(|three| three[0] != three[2]),
            "loops that began together stay together"
        );
    }

    #[test]
    fn the_whole_tenth_is_used() {
        let mut random = SeededRandom::new(7);
        let delays: Vec<Duration> = (0..1000).filter_map(|_| Next::Idle.delay(IDLE, &mut random)).collect();
        let second = Duration::from_secs(1);
        assert!(delays.iter().min() < Some(&(IDLE * 9 / 10 + second)));
        assert!(delays.iter().max().is_some_and(|longest| *longest + second > IDLE * 11 / 10));
        assert_eq!(Next::Now.delay(IDLE, &mut random), None);
        assert!(Next::After(Duration::MAX).delay(IDLE, &mut random) > Some(HOUR));
    }

    #[tokio::test(start_paused = true)]
    async fn more_work_is_looked_for_at_once_and_no_other_task_starves() {
        let mut story = Story::begin(|_| Ok(Next::Now));
        assert!(story.waits(100).await.iter().all(|wait| *wait < Duration::from_secs(1)));
        story.stop.drain();
        story.task.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_wake_up_ends_every_wait() {
        let wake = Wake::default();
        let mut stories = [0, 1].map(|_| Story::with(wake.clone(), |_| Ok(Next::After(HOUR))));
        let began = Instant::now();
        for story in &mut stories {
            story.look().await;
        }
        // Both wait now: the clock moves only when no task is ready.
        tokio::time::advance(Duration::from_secs(1)).await;
        wake.wake();
        for story in &mut stories {
            assert!(story.look().await - began < Duration::from_secs(2));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_wake_up_during_a_look_is_not_lost() {
        let wake = Wake::default();
        let during = wake.clone();
        let mut story = Story::with(wake, move |looks| {
            if looks == 1 {
                during.wake();
            }
            Ok(Next::After(HOUR))
        });
        let waits = story.waits(2).await;
        assert!(waits[0] < Duration::from_secs(1) && waits[1] > HOUR / 2, "{waits:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn waits_after_errors_grow_and_errors_never_end_the_loop() {
        let mut story =
            Story::begin(|looks| if looks == 40 { Ok(Next::Now) } else { Err("the database is away") });
        let waits = story.waits(60).await;
        for (number, wait) in waits.iter().enumerate().filter(|(number, _)| *number != 39) {
            let failures = if number < 39 { number + 1 } else { number - 39 };
            let longest = BACKOFF.longest_wait(u32::try_from(failures).unwrap());
            assert!(*wait <= longest + Duration::from_millis(1), "{wait:?} after {failures} failures");
        }
        assert!(waits.iter().any(|wait| *wait > BACKOFF.max / 4), "{waits:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn wake_ups_do_not_shorten_the_wait_after_an_error() {
        let wake = Wake::default();
        let during = wake.clone();
        let mut story = Story::with(wake, move |_| {
            during.wake();
            Err("the database is away")
        });
        let waits = story.waits(40).await;
        assert!(waits.iter().sum::<Duration>() > BACKOFF.max, "{waits:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_waiting_loop_stops_at_once_and_a_busy_one_after_its_tick() {
        let mut waiting = Story::begin(|_| Ok(Next::After(HOUR)));
        let began = waiting.look().await;
        let mut failing = Story::begin(|_| Err("the database is away"));
        failing.look().await;
        tokio::time::advance(Duration::from_millis(1)).await;
        waiting.stop.drain();
        failing.stop.now();
        waiting.task.await.unwrap();
        failing.task.await.unwrap();
        assert!(Instant::now() - began < Duration::from_secs(1));

        let (finish, finished) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let stop = Stop::new();
        let task = tokio::spawn(run(
            Finishing { finish: finish.clone(), finished: finished.clone() },
            stop.clone(),
            Wake::default(),
            IDLE,
        ));
        tokio::task::yield_now().await;
        stop.now();
        finish.notify_one();
        task.await.unwrap();
        finished.notified().await;
    }

    struct Finishing {
        finish: Arc<Notify>,
        finished: Arc<Notify>,
    }

    impl Service for Finishing {
        const NAME: &'static str = "finishing";
        type Error = &'static str;

        async fn tick(&mut self) -> Answer {
            self.finish.notified().await;
            self.finished.notify_one();
            Ok(Next::Now)
        }
    }

    struct Heartbeat(UnboundedSender<Phase>, Stop);

    impl Service for Heartbeat {
        const NAME: &'static str = "heartbeat";
        const UNTIL: Phase = Phase::Stopping;
        type Error = &'static str;

        async fn tick(&mut self) -> Answer {
            self.0.send(self.1.phase()).unwrap();
            Ok(Next::Idle)
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_service_that_others_need_runs_while_they_finish() {
        let stop = Stop::new();
        let (beats, mut beat) = mpsc::unbounded_channel();
        let task = tokio::spawn(run(Heartbeat(beats, stop.clone()), stop.clone(), Wake::default(), IDLE));
        assert_eq!(beat.recv().await, Some(Phase::Running));
        stop.drain();
        stop.draining().await;
        assert_eq!(beat.recv().await, Some(Phase::Draining));
        stop.now();
        stop.stopping().await;
        task.await.unwrap();
        assert_eq!(beat.recv().await, None);

        stop.drain();
        assert_eq!(stop.phase(), Phase::Stopping, "it never goes back");
    }
}
