//! A schedule around a change of the clocks, tick by tick: what an operator checks before trusting it.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::{Date, DateTime, Time};
use jiff::tz::Offset;

use crate::revision::Revision;
use crate::window::Window;
use crate::zone::{Jump, second_before};
use crate::{Gap, Timetable, duration, window_name};

/// The most ticks that are shown on each side.
const LINES_EACH_SIDE: usize = 12;

/// The most hours that are searched on each side.
const HOURS_EACH_SIDE: i64 = 60;

/// The most windows of a tick that are counted.
const WINDOWS_COUNTED: usize = 1_000;

/// The ticks around a date, centered on a change of the clocks on that date, if there is one.
///
/// ```
/// use refrain_core::{Dst, Grid, Revisions, Schedule, Timetable, Zone, schedule::Preview};
///
/// let nightly = Timetable {
///     schedule: Schedule::parse("30 2 * * *")?,
///     zone: Zone::parse("Europe/Berlin")?,
///     grid: Grid::Day,
///     dst: Dst::default(),
///     start: None,
/// };
/// let revisions = Revisions::first(nightly, "2026-06-09T12:00:00Z".parse()?)?;
/// println!("{}", Preview::around(revisions.current(), jiff::civil::date(2026, 10, 25)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Preview {
    /// The zone's name.
    pub zone: String,
    /// The jumps of the clock in the period shown.
    pub jumps: Vec<Jump>,
    /// The ticks, in order.
    pub lines: Vec<PreviewLine>,
}

/// One tick.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PreviewLine {
    /// The instant of the tick.
    pub tick: Timestamp,
    /// The wall time of the zone at the tick.
    pub wall: DateTime,
    /// The zone's offset from UTC at the tick.
    pub offset: Offset,
    /// The windows it opens.
    pub opens: Opens,
    /// The effect of a jump of the clock on it.
    pub note: Option<String>,
}

/// The windows that a tick opens, by name; the count stops at 1,000.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Opens {
    /// None have ended since the previous tick.
    Nothing,
    /// One, and its real length.
    One(String, Duration),
    /// The first, the last, and the number of windows.
    Several(String, String, usize),
}

impl Preview {
    /// The ticks of a revision around a date.
    pub fn around(revision: &Revision, date: Date) -> Preview {
        let Timetable { zone, .. } = &revision.timetable;
        let mut preview = Preview { zone: zone.name().to_owned(), jumps: Vec::new(), lines: Vec::new() };
        let Some(midnight) = zone.reaches(date.to_datetime(Time::midnight())) else {
            return preview;
        };
        let is_on_date = |jump: &Jump| jump.wall_before().date() == date || jump.wall_after().date() == date;
        let jump = zone.jumps(second_before(midnight)).next().filter(is_on_date);
        let middle = jump.map_or(midnight, |jump| jump.at);
        let hours = |count| middle.checked_add(jiff::SignedDuration::from_hours(count)).unwrap_or(middle);
        let (from, until) = (hours(-HOURS_EACH_SIDE), hours(HOURS_EACH_SIDE));
        preview.jumps = zone.jumps(from).take_while(|jump| jump.at < until).collect();
        let ticks = revision.timetable.ticks();
        let last_before = ticks.at_or_before(second_before(middle));
        let mut earlier: Vec<Timestamp> =
            std::iter::successors(last_before, |tick| ticks.at_or_before(second_before(*tick)))
                .take_while(|tick| *tick >= from)
                .take(LINES_EACH_SIDE)
                .collect();
        earlier.reverse();
        let later = ticks.between(second_before(middle), until).take(LINES_EACH_SIDE);
        preview.lines = earlier.into_iter().chain(later).map(|tick| preview.line(revision, tick)).collect();
        preview
    }

    fn line(&self, revision: &Revision, tick: Timestamp) -> PreviewLine {
        let Timetable { zone, .. } = &revision.timetable;
        let wall = zone.wall(tick);
        let note = self.note(&revision.timetable, tick, wall);
        PreviewLine { tick, wall, offset: zone.stretch(tick).offset, opens: opens(revision, tick), note }
    }

    fn note(&self, timetable: &Timetable, tick: Timestamp, wall: DateTime) -> Option<String> {
        let jump = self.jumps.iter().find(|jump| jump.at == tick && jump.is_gap() || jump.repeats(wall))?;
        if !jump.is_gap() {
            let which = if tick < jump.at { "first" } else { "second" };
            return Some(format!("the {which} of two {}", wall.strftime("%H:%M")));
        }
        let swallowed = timetable.schedule.walls_in(jump.wall_before(), jump.wall_after());
        let swallowed: Vec<String> =
            swallowed.iter().map(|wall| wall.strftime("%H:%M").to_string()).collect();
        let is_caught = timetable.schedule.is_fixed() && timetable.dst.gap == Gap::Next;
        (is_caught && !swallowed.is_empty())
            .then(|| format!("for {}, which does not exist", swallowed.join(", ")))
    }
}

/// The windows that ended after the previous tick and not after this one; the first tick opens all of them.
fn opens(revision: &Revision, tick: Timestamp) -> Opens {
    let Timetable { zone, grid, .. } = &revision.timetable;
    let name = |window: Window| window_name::write(window.start(), *grid, zone);
    let previous = revision.timetable.ticks().at_or_before(second_before(tick));
    let after = previous.filter(|previous| *previous > revision.ticks_after).unwrap_or(revision.from);
    let mut windows = revision.windows(after, tick).map(|(window, _)| window);
    let Some(first) = windows.next().filter(|_| tick > revision.ticks_after) else {
        return Opens::Nothing;
    };
    let (count, last) =
        windows.take(WINDOWS_COUNTED - 1).fold((1, first), |(count, _), window| (count + 1, window));
    match count {
        1 => Opens::One(name(first), first.length()),
        count => Opens::Several(name(first), name(last), count),
    }
}

impl fmt::Display for Opens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Opens::Nothing => f.write_str("nothing"),
            Opens::One(name, length) => write!(f, "{name} ({})", duration::format(*length)),
            Opens::Several(first, _, WINDOWS_COUNTED..) => {
                write!(f, "{WINDOWS_COUNTED} windows or more, from {first}")
            }
            Opens::Several(first, last, count) => write!(f, "{count} windows, {first} to {last}"),
        }
    }
}

impl fmt::Display for Preview {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for jump in &self.jumps {
            let way = if jump.is_gap() { "forward" } else { "back" };
            let (before, after) = (jump.wall_before(), jump.wall_after());
            let form = if before.date() == after.date() { "%H:%M" } else { "%Y-%m-%d %H:%M" };
            let (date, before, after) = (before.date(), before.strftime("%H:%M"), after.strftime(form));
            writeln!(f, "{date} the clock of {} goes {way} from {before} to {after}", self.zone)?;
        }
        for PreviewLine { tick, wall, offset, opens, note } in &self.lines {
            write!(f, "{} {offset}  {tick}  opens {opens}", wall.strftime("%Y-%m-%d %H:%M"))?;
            match note {
                Some(note) => writeln!(f, "  {note}")?,
                None => writeln!(f)?,
            }
        }
        Ok(())
    }
}
