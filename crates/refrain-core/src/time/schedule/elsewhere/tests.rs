//! Tables of schedules in the syntax of other programs, and of the errors for them.

use super::*;

/// The position of the fault, the reason and the proposal.
fn parts(text: &str) -> (&str, String, String) {
    let error = Schedule::parse(text).unwrap_err();
    (&text[error.span()], error.reason().to_owned(), error.advice().unwrap_or_default().to_owned())
}

const ZONE: &str = "the time zone is a key of its own in the job file";
const LINE: &str = "the command of a crontab line is not part of a schedule";
const JENKINS: &str = "`H`, with which Jenkins chooses a time, is not supported";
const RANDOM: &str = "`~`, with which other crons choose a random time, is not supported";
const AMAZON: &str = "`cron(…)` is how AWS writes a schedule";
const COUNTED: &str =
    "leave out the year, and name the weekdays: Quartz and AWS count them from 1 for Sunday, cron from 0";
const YEAR: &str = "a sixth field at the end would be the year, as AWS writes it";

/// A text, the part of it that is underlined, the reason and the advice.
const FOREIGN: &[(&str, &str, &str, &str)] = &[
    (
        "CRON_TZ=America/New_York 0 5 * * *",
        "CRON_TZ=America/New_York",
        ZONE,
        "write timezone = \"America/New_York\" and schedule = \"0 5 * * *\"",
    ),
    ("TZ=UTC 0 0 5 * * *", "TZ=UTC", ZONE, "write timezone = \"UTC\" and schedule = \"0 0 5 * * *\""),
    (
        "tz=Middle-earth/Mordor 0 25 * * *",
        "tz=Middle-earth/Mordor",
        ZONE,
        "write the name of the zone as timezone",
    ),
    ("tz=UTC 0 25 * * *", "tz=UTC", ZONE, "write it as timezone = \"UTC\""),
    (
        "0 5 * * * Europe/Paris",
        "Europe/Paris",
        ZONE,
        "write timezone = \"Europe/Paris\" and schedule = \"0 5 * * *\"",
    ),
    ("\"0 5 * * *\"", "\"0 5 * * *\"", "it has quotes inside its quotes", "write \"0 5 * * *\""),
    (" '@daily' ", "'@daily'", "it has quotes inside its quotes", "write \"@daily\""),
    (
        "0 5 * * * # nightly",
        "# nightly",
        "a comment is not part of a schedule",
        "write \"0 5 * * *\", and the comment in a line of its own",
    ),
    (
        "@daily #x",
        "#x",
        "a comment is not part of a schedule",
        "write \"@daily\", and the comment in a line of its own",
    ),
    ("# 0 5 * * *", "# 0 5 * * *", "a comment is not part of a schedule", ORDER),
    (
        "0 0 * * * root /usr/bin/backup",
        "root /usr/bin/backup",
        LINE,
        "write \"0 0 * * *\", and the command as another key of the job file",
    ),
    (
        "0 0 * * * /usr/bin/backup -v",
        "/usr/bin/backup -v",
        LINE,
        "write \"0 0 * * *\", and the command as another key of the job file",
    ),
    ("0 0 1 * * * ./x", "./x", LINE, "write \"0 0 1 * * *\", and the command as another key of the job file"),
    (
        "0 0 * * * root",
        "root",
        "`root` is not a weekday",
        "if this is a line of a crontab, write \"0 0 * * *\"",
    ),
    (
        "@daily root x",
        "root x",
        "nothing follows a nickname",
        "write \"@daily\"; the command is another key of the job file",
    ),
    ("hourly", "hourly", "a nickname begins with `@`", "write \"@hourly\""),
    (" Daily ", "Daily", "a nickname begins with `@`", "write \"@daily\""),
    ("H/15 * * * *", "H/15", JENKINS, "choose it yourself, as in \"*/15 * * * *\""),
    ("H H * * *", "H", JENKINS, "choose it yourself, as in \"17 3 * * *\""),
    ("H(0-29)/10 * * * *", "H(0-29)/10", JENKINS, "choose it yourself, as in \"0-29/10 * * * *\""),
    ("H,30 * * * *", "H,30", JENKINS, "choose it yourself, as in \"17,30 * * * *\""),
    ("0,H * * * *", "0,H", JENKINS, "choose it yourself, as in \"0,17 * * * *\""),
    ("~ 2 * * *", "~", RANDOM, "choose it yourself, as in \"17 2 * * *\""),
    ("0~59 2~5 * * *", "0~59", RANDOM, "choose it yourself, as in \"17 3 * * *\""),
    ("30~40 2 * * *", "30~40", RANDOM, "choose it yourself, as in \"30 2 * * *\""),
    ("0 12 * * * 2026", "2026", YEAR, "without a year it ticks in every year: \"0 12 * * *\""),
    ("0 12 * * 2 2026-2028", "2026-2028", YEAR, COUNTED),
    ("cron(0 9 ? * MON#1 *)", "cron(0 9 ? * MON#1 *)", AMAZON, "write \"0 9 ? * MON#1\""),
    ("cron(0 9 ? * 2#1 *)", "cron(0 9 ? * 2#1 *)", AMAZON, COUNTED),
    ("cron(0 0 * * *)", "cron(0 0 * * *)", AMAZON, "write \"0 0 * * *\""),
    ("cron(0 0 ? * 2)", "cron(0 0 ? * 2)", AMAZON, COUNTED),
    ("0 18 ? * MON-FRI *", "*", YEAR, "write \"0 18 ? * MON-FRI\""),
    ("0 18 ? * MON-FRI 2026", "2026", YEAR, "without a year it ticks in every year: \"0 18 ? * MON-FRI\""),
    ("0 18 ? * 2-6 *", "*", YEAR, COUNTED),
    (
        "cron(0 12 * * ? *)",
        "cron(0 12 * * ? *)",
        "`cron(…)` is how AWS writes a schedule",
        "write \"0 12 * * ?\"",
    ),
    ("rate(5 minutes)", "rate(5 minutes)", "`rate(…)` is how AWS writes a schedule", "write \"every 5m\""),
    ("rate(7 days)", "rate(7 days)", "`rate(…)` is how AWS writes a schedule", "write \"every 1w\""),
    ("PT15M", "PT15M", "it is a length of time", "write \"every 15m\""),
    ("P1D", "P1D", "it is a length of time", "write \"every 1d\""),
    ("P1DT12H", "P1DT12H", "it is a length of time", "write \"every 1d12h\""),
    ("2H", "2H", "it is a length of time", "write \"every 2h\""),
    ("every 2H", "H", "`H` is not a valid unit of time", "write \"every 2h\""),
    ("@5m", "@5m", "it is not one of the nicknames", "write \"every 5m\""),
    ("02:30", "02:30", "it is a time of day", "write \"30 2 * * *\""),
    (" 2:30:15 ", "2:30:15", "it is a time of day", "write \"15 30 2 * * *\""),
    ("15m", "15m", "it is a length of time", "write \"every 15m\""),
    ("every 15 min", " min", "` min` is not a valid unit of time", "write \"every 15m\""),
    ("every hour", "hour", "a number is missing before `hour`", "write \"@hourly\""),
    ("every5m", "every5m", "a space is missing after `every`", "write \"every 5m\""),
    ("@Every5m", "@Every5m", "a space is missing after `every`", "write \"every 5m\""),
    (
        "every",
        "every",
        "a length is missing after it",
        "write the time between two ticks, as in \"every 15m\"",
    ),
    (
        "every 0s",
        "0s",
        "it would never stop ticking",
        "write the time between two ticks, as in \"every 15m\"",
    ),
];

#[test]
fn schedules_of_other_programs_are_recognised() {
    for (text, part, reason, help) in FOREIGN {
        assert_eq!(parts(text), (*part, (*reason).to_owned(), (*help).to_owned()), "{text}");
    }
    assert!(parts("@reboot").2.contains("catches up"));
    assert!(parts("@quarterly").2.ends_with("@yearly @annually"));
    assert_eq!(parts("25:30").1, "it is neither a cron pattern nor `every` with a length");
    assert_eq!(parts("P1M").1, "it is neither a cron pattern nor `every` with a length");
}

#[test]
fn case_and_spaces_do_not_matter_and_the_text_is_unchanged() {
    for (text, same) in [
        (" every 15m", "every 15m"),
        ("Every 15m", "every 15m"),
        ("every  15m ", "every 15m"),
        ("@EVERY\t15m", "every 15m"),
        (" @daily", "@daily"),
        ("@Daily ", "@daily"),
        ("  0 0 * *  mon ", "0 0 * * MON"),
    ] {
        let (one, other) = (Schedule::parse(text).unwrap(), Schedule::parse(same).unwrap());
        assert_eq!(one.kind, other.kind, "{text}");
        assert_eq!(one.to_string(), text);
    }
}
