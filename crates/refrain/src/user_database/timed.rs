//! Dates and moments as values of which PostgreSQL knows the type.
//!
//! Were they texts, `cast($1 as date)` would be worked out again for each row that a statement looks at: what a text means as
//! a date depends on settings, so a plan does not hold its value. For a million rows that takes as long as to stage them.

use jiff::Timestamp;
use jiff::civil::{Date, date};
use sqlx::encode::IsNull;
use sqlx::error::BoxDynError;
use sqlx::postgres::types::Oid;
use sqlx::postgres::{PgArgumentBuffer, PgTypeInfo};
use sqlx::sqlite::{SqliteArgumentsBuffer, SqliteTypeInfo};
use sqlx::{Encode, Postgres, Sqlite, Type};

const DATE: PgTypeInfo = PgTypeInfo::with_oid(Oid(1082));
const TIMESTAMPTZ: PgTypeInfo = PgTypeInfo::with_oid(Oid(1184));

/// From where the server counts days.
const FIRST_DAY: Date = date(2000, 1, 1);
/// From where it counts microseconds.
const FIRST_MICROSECOND: i64 = 946_684_800_000_000;

/// A date or a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Timed {
    Date(Date),
    Moment(Timestamp),
}

impl Type<Postgres> for Timed {
    fn type_info() -> PgTypeInfo {
        TIMESTAMPTZ
    }
}

impl Encode<'_, Postgres> for Timed {
    fn encode_by_ref(&self, buffer: &mut PgArgumentBuffer) -> Result<IsNull, BoxDynError> {
        match self {
            Timed::Date(day) => Encode::<Postgres>::encode((*day - FIRST_DAY).get_days(), buffer),
            Timed::Moment(at) => Encode::<Postgres>::encode(at.as_microsecond() - FIRST_MICROSECOND, buffer),
        }
    }

    fn produces(&self) -> Option<PgTypeInfo> {
        Some(match self {
            Timed::Date(_) => DATE,
            Timed::Moment(_) => TIMESTAMPTZ,
        })
    }
}

/// A file has no such types: it is given texts.
impl Type<Sqlite> for Timed {
    fn type_info() -> SqliteTypeInfo {
        <String as Type<Sqlite>>::type_info()
    }
}

impl Encode<'_, Sqlite> for Timed {
    fn encode_by_ref(&self, buffer: &mut SqliteArgumentsBuffer) -> Result<IsNull, BoxDynError> {
        let text = match self {
            Timed::Date(day) => day.to_string(),
            Timed::Moment(at) => at.to_string(),
        };
        Encode::<Sqlite>::encode(text, buffer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_counts_days_and_microseconds_from_the_year_2000() {
        let of = |value: Timed| {
            let mut buffer = PgArgumentBuffer::default();
            let _not_null = Encode::<Postgres>::encode(value, &mut buffer).unwrap();
            buffer.to_vec()
        };
        for (day, count) in [("2000-01-01", 0_i32), ("1999-12-31", -1), ("2026-06-09", 9_656)] {
            assert_eq!(of(Timed::Date(day.parse().unwrap())), count.to_be_bytes(), "{day}");
        }
        for (at, count) in
            [("2000-01-01T00:00:00.000001Z", 1_i64), ("1970-01-01T00:00:00Z", -FIRST_MICROSECOND)]
        {
            assert_eq!(of(Timed::Moment(at.parse().unwrap())), count.to_be_bytes(), "{at}");
        }
    }
}
