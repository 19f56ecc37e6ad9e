//! "Did you mean": the known name that is most similar to the given one.

/// The most typing errors between the given and the intended name.
const SLIPS_MAX: usize = 2;

/// Words of other tools, and our words for the same thing.
const ELSEWHERE: [(&str, &str); 22] = [
    ("cron", "schedule"),
    ("interval", "schedule"),
    ("every", "schedule"),
    ("tz", "timezone"),
    ("zone", "timezone"),
    ("run", "command"),
    ("cmd", "command"),
    ("exec", "command"),
    ("script", "command"),
    ("args", "command"),
    ("environment", "env"),
    ("retries", "retry"),
    ("attempts", "retry"),
    ("max-attempts", "retry"),
    ("backoff", "retry"),
    ("overlap", "while-running"),
    ("depends-on", "after"),
    ("start-date", "start"),
    ("db", "database"),
    ("query-file", "sql"),
    ("max-active-runs", "concurrency"),
    ("parallelism", "concurrency"),
];

/// The name that was probably intended.
pub(crate) fn nearest<'n>(written: &str, names: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    let plain = |name: &str| name.replace('_', "-").to_lowercase();
    let written = plain(written);
    let elsewhere = ELSEWHERE.iter().find(|(theirs, _)| *theirs == written).map(|(_, ours)| *ours);
    let slips = |name: &str| match elsewhere {
        Some(ours) if ours == name => 0,
        _ => strsim::osa_distance(&written, &plain(name)),
    };
    let allowed = SLIPS_MAX.min((written.chars().count() + 1) / 3);
    names
        .into_iter()
        .map(|name| (slips(name), name))
        .filter(|(slips, _)| *slips <= allowed)
        .min()
        .map(|(_, name)| name)
}

/// `"a", "b" or "c"`.
pub(crate) fn list<'n>(names: impl IntoIterator<Item = &'n str>, quote: &str) -> String {
    let quoted: Vec<String> = names.into_iter().map(|name| format!("{quote}{name}{quote}")).collect();
    match quoted.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
        None => "none".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typing_error_is_recognised_and_no_guess_is_made() {
        let names = ["schedule", "catch-up", "timezone", "retry", "env"];
        for (written, meant) in [
            ("shedule", Some("schedule")),
            ("catchup", Some("catch-up")),
            ("catch_up", Some("catch-up")),
            ("Timezone", Some("timezone")),
            ("cron", Some("schedule")),
            ("colour", None),
            ("tray", None),
            ("ev", Some("env")),
            ("x", None),
        ] {
            assert_eq!(nearest(written, names), meant, "{written}");
        }
        assert_eq!(list(["a", "b", "c"], "\""), "\"a\", \"b\" or \"c\"");
    }
}
