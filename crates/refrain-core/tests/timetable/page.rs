//! The documentation of schedules is true: every line of its tables is tried.

use refrain_core::{Schedule, schedule};

use super::timetable;

/// The lines of all tables of the page that have these two columns, as pairs.
fn table(columns: &str) -> Vec<(String, String)> {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/SCHEDULES.md");
    let page = std::fs::read_to_string(page).unwrap();
    let mut found = Vec::new();
    let mut is_inside = false;
    for line in page.lines() {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        match (is_inside, cells.as_slice()) {
            (false, _) => is_inside = line == columns,
            (true, [text, output]) if text.starts_with('`') => {
                found.push((text.trim_matches('`').to_owned(), (*output).to_owned()));
            }
            (true, _) => is_inside = line.starts_with("|--"),
        }
    }
    found
}

#[test]
fn every_schedule_on_the_page_ticks_as_it_says() {
    let output = table("| schedule | ticks |");
    assert!(output.len() >= 30, "{}", output.len());
    for (text, ticks) in output {
        let described = schedule::describe(&timetable(&text, "UTC", "day"));
        assert_eq!(described.split(" (UTC)").next(), Some(ticks.as_str()), "{text}");
    }
}

#[test]
fn every_schedule_that_the_page_refuses_is_refused_for_that_reason() {
    let output = table("| schedule | why |");
    assert!(output.len() >= 18, "{}", output.len());
    for (text, why) in output {
        assert_eq!(Schedule::parse(&text).unwrap_err().reason(), why, "{text}");
    }
}
