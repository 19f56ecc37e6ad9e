//! A schedule around a change of the clocks, tick by tick: what a person wants to see before trusting it.

use std::fmt;

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::Offset;
use jiff::{Span, Timestamp};

use crate::timetable::Timetable;
use crate::window::Window;
use crate::zone::Jump;
use crate::{Grid, duration, window_name};

/// At most this many ticks are shown on each side of the date.
const LINES_EACH_SIDE: usize = 12;

/// The ticks around a date.
///
/// ```
/// use refrain_core::{Dst, Grid, Schedule, Timetable, Zone, schedule::Preview};
///
/// let nightly = Timetable {
///     schedule: Schedule::parse("30 2 * * *")?,
///     zone: Zone::parse("Europe/Berlin")?,
///     grid: Grid::Day,
///     dst: Dst::default(),
///     start: None,
/// };
/// println!("{}", Preview::around(&nightly, jiff::civil::date(2026, 10, 25)));
/// # Ok::<(), refrain_core::ParseError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preview {
    /// The zone's name.
    pub zone: String,
    /// The jumps of the clock in the days that are shown.
    pub jumps: Vec<Jump>,
    /// The ticks, in order.
    pub lines: Vec<PreviewLine>,
}

/// One tick.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreviewLine {
    /// When it comes.
    pub tick: Timestamp,
    /// What the zone's clock shows then.
    pub wall: DateTime,
    /// The zone's offset from UTC then.
    pub offset: Offset,
    /// The windows it opens, by name, with their real lengths.
    pub opens: Vec<(String, std::time::Duration)>,
    /// What a jump of the clock did to it.
    pub note: Option<String>,
}

impl Preview {
    /// Looks from two days before a date to two days after it.
    pub fn around(timetable: &Timetable, date: Date) -> Preview {
        let zone = &timetable.zone;
        let midnight = |days: i64| {
            let date = date.saturating_add(Span::new().days(days));
            zone.reaches(date.to_datetime(Time::midnight()))
        };
        let mut preview = Preview { zone: zone.name().to_owned(), jumps: Vec::new(), lines: Vec::new() };
        let (Some(from), Some(middle), Some(until)) = (midnight(-2), midnight(0), midnight(3)) else {
            return preview;
        };
        preview.jumps = zone.jumps(from).take_while(|jump| jump.at < until).collect();
        let ticks = timetable.ticks();
        let mut earlier = Vec::new();
        let mut at = middle;
        while let Some(tick) =
            ticks.at_or_before(at).filter(|tick| *tick > from && earlier.len() < LINES_EACH_SIDE)
        {
            earlier.push(tick);
            let Ok(before) = tick.checked_sub(jiff::SignedDuration::from_secs(1)) else { break };
            at = before;
        }
        let later = ticks.between(middle, until).take(LINES_EACH_SIDE);
        preview.lines =
            earlier.into_iter().rev().chain(later).map(|tick| preview.line(timetable, tick)).collect();
        preview
    }

    fn line(&self, timetable: &Timetable, tick: Timestamp) -> PreviewLine {
        let stretch = timetable.zone.stretch(tick);
        let wall = timetable.zone.wall(tick);
        let opens = opens(timetable, tick)
            .into_iter()
            .map(|window| {
                (window_name::write(window.start(), timetable.grid, &timetable.zone), window.length())
            })
            .collect();
        PreviewLine { tick, wall, offset: stretch.offset, opens, note: self.note(timetable, tick, wall) }
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
        (timetable.schedule.is_fixed() && !swallowed.is_empty())
            .then(|| format!("for {}, which does not exist", swallowed.join(", ")))
    }
}

fn opens(timetable: &Timetable, tick: Timestamp) -> Vec<Window> {
    let before = tick.checked_sub(jiff::SignedDuration::from_secs(1)).ok();
    let Some(previous) = before.and_then(|before| timetable.ticks().at_or_before(before)) else {
        return Vec::new();
    };
    match timetable.grid {
        Grid::Tick => Window::new(previous, tick).into_iter().collect(),
        grid => grid.windows(&timetable.zone, previous, tick).collect(),
    }
}

impl fmt::Display for Preview {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for jump in &self.jumps {
            let way = if jump.is_gap() { "forward" } else { "back" };
            let (before, after) = (jump.wall_before(), jump.wall_after());
            let (date, before, after) = (before.date(), before.strftime("%H:%M"), after.strftime("%H:%M"));
            writeln!(f, "{date} the clock of {} goes {way} from {before} to {after}", self.zone)?;
        }
        for line in &self.lines {
            let opens: Vec<String> = line
                .opens
                .iter()
                .map(|(name, length)| format!("{name} ({})", duration::format(*length)))
                .collect();
            let opens = if opens.is_empty() { "nothing".to_owned() } else { opens.join(", ") };
            let wall = line.wall.strftime("%Y-%m-%d %H:%M");
            write!(f, "{wall} {}  {}  opens {opens}", line.offset, line.tick)?;
            match &line.note {
                Some(note) => writeln!(f, "  {note}")?,
                None => writeln!(f)?,
            }
        }
        Ok(())
    }
}
