//! Times that another program chooses: Jenkins' `H`, and `~` of the crons of BSD and Fedora. Here the operator chooses.

use super::{fault, is_readable};
use crate::ParseError;

/// Away from the full hour and from midnight, when most schedules tick.
const CHOSEN: [&str; 5] = ["17", "3", "1", "1", "1"];

/// `H/15 * * * *`, `0,H * * * *`, `0~59 * * * *`.
pub(super) fn by_another(text: &str, words: &[&str]) -> Option<ParseError> {
    let has = |word: &&&str, is_so: fn(&str) -> bool| word.split(',').any(is_so);
    let is_line = (5..=6).contains(&words.len());
    let hash = words.iter().find(|word| has(word, is_hash));
    let random = words.iter().find(|word| is_line && has(word, is_random));
    let (first, reason) = match (hash, random) {
        (Some(hash), _) => (hash, "`H`, with which Jenkins chooses a time, is not supported"),
        (None, Some(random)) => {
            (random, "`~`, with which other crons choose a random time, is not supported")
        }
        (None, None) => return None,
    };
    let written = words.iter().zip(CHOSEN).map(|(word, chosen)| {
        let items = word.split(',').map(|item| instead(item, chosen));
        items.collect::<Vec<_>>().join(",")
    });
    let written = written.collect::<Vec<_>>().join(" ");
    let example = if words.len() == 5 && is_readable(&written) { written } else { "17 3 * * *".to_owned() };
    Some(fault(text, first, reason).help(format!("choose it yourself, as in \"{example}\"")))
}

fn is_hash(item: &str) -> bool {
    item.strip_prefix(['H', 'h']).is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '(']))
}

/// `~`, `0~59`, `10~`: any other word with a `~` is a file in a home directory.
fn is_random(item: &str) -> bool {
    item.split_once('~').is_some_and(|ends| {
        <[&str; 2]>::from(ends).iter().all(|end| end.bytes().all(|byte| byte.is_ascii_digit()))
    })
}

/// An item with a time that we propose.
fn instead(item: &str, chosen: &str) -> String {
    if let Some((low, high)) = item.split_once('~').filter(|_| is_random(item)) {
        let number = |text: &str, otherwise: u32| text.parse::<u32>().unwrap_or(otherwise);
        let (low, high) = (number(low, 0), number(high, u32::MAX));
        let choice = number(chosen, low);
        return if (low..=high).contains(&choice) { chosen.to_owned() } else { low.to_string() };
    }
    let Some(rest) = item.get(1..).filter(|_| is_hash(item)) else { return item.to_owned() };
    match rest.strip_prefix('(').and_then(|rest| rest.split_once(')')) {
        Some((range, "")) => range.split('-').next().unwrap_or(chosen).to_owned(),
        Some((range, step)) => format!("{range}{step}"),
        None if rest.is_empty() => chosen.to_owned(),
        None => format!("*{rest}"),
    }
}
