//! One field of a cron pattern: its text becomes a set of values, or a fault with a position.
//!
//! A typing error must be noticed, so everything that could be one is refused (`1,,2`, a step longer than its field, a range
//! that runs backwards), and if the meaning is clear the fault carries the text to write instead. The parts of a text are
//! slices of it, which is how a fault knows its position.

use super::calendar::FieldValues;
use super::pattern_fault::{PatternFault, Remedy, place};

/// One field of a pattern: its name and the values it accepts.
pub(super) struct Field {
    /// The name of one value.
    pub(super) name: &'static str,
    pub(super) low: i8,
    pub(super) high: i8,
    /// The names of the values, from the lowest; their first three letters are accepted.
    pub(super) names: &'static [&'static str],
    floats: Floats,
}

/// The days a field accepts that differ from month to month.
#[derive(PartialEq)]
pub(super) enum Floats {
    None,
    Days,
    Weekdays,
}

pub(super) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
pub(super) const WEEKDAYS: [&str; 7] =
    ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/// All fields in order; a pattern of five has no seconds.
pub(super) const FIELDS: [Field; 6] = [
    Field { name: "second", low: 0, high: 59, names: &[], floats: Floats::None },
    Field { name: "minute", low: 0, high: 59, names: &[], floats: Floats::None },
    Field { name: "hour", low: 0, high: 23, names: &[], floats: Floats::None },
    Field { name: "day", low: 1, high: 31, names: &[], floats: Floats::Days },
    Field { name: "month", low: 1, high: 12, names: &MONTHS, floats: Floats::None },
    Field { name: "weekday", low: 0, high: 7, names: &WEEKDAYS, floats: Floats::Weekdays },
];

/// Reads one field of a text.
pub(super) struct FieldReader<'t> {
    pub(super) field: &'t Field,
    text: &'t str,
    values: FieldValues,
}

impl Field {
    /// The number of different values; a week has seven days although Sunday is 0 and 7.
    pub(super) fn size(&self) -> i8 {
        if self.floats == Floats::Weekdays { 7 } else { self.high - self.low + 1 }
    }

    /// Whether the set has all values of this field.
    pub(super) fn is_full(&self, values: &FieldValues) -> bool {
        i8::try_from(values.set.count()) == Ok(self.size())
    }

    fn is_of_days(&self) -> bool {
        self.floats != Floats::None
    }

    /// A number as the set stores it.
    pub(super) fn normal(&self, value: i8) -> i8 {
        if self.floats == Floats::Weekdays { value % 7 } else { value }
    }

    /// The values of `word`, a part of `text`.
    pub(super) fn read(&self, text: &str, word: &str) -> Result<FieldValues, PatternFault> {
        let is_any = word == "?" && self.is_of_days();
        let values = FieldValues {
            is_open: is_any || self.is_of_days() && word.starts_with('*'),
            ..FieldValues::default()
        };
        let mut reader = FieldReader { field: self, text, values };
        if is_any {
            reader.insert((self.low, self.high), 1);
            return Ok(reader.values);
        }
        for item in word.split(',') {
            reader.item(word, item)?;
        }
        let step = word.strip_prefix("*/").and_then(|step| step.parse().ok());
        Ok(FieldValues { step, ..reader.values })
    }
}

impl FieldReader<'_> {
    pub(super) fn fault(&self, part: &str, reason: impl Into<String>, remedy: Remedy) -> PatternFault {
        PatternFault { span: place(self.text, part), reason: reason.into(), remedy }
    }

    fn insert(&mut self, (first, last): (i8, i8), step: usize) {
        for value in (first..=last).step_by(step) {
            self.values.set.insert(self.field.normal(value));
        }
    }

    fn item(&mut self, word: &str, item: &str) -> Result<(), PatternFault> {
        if item.is_empty() {
            return Err(self.empty_item(word, item));
        }
        if item.contains('?') {
            let reason = if self.field.is_of_days() {
                "`?` must be alone in its field".to_owned()
            } else {
                format!("`?` stands for any day or weekday, not for {}", self.field.any())
            };
            let step = item.strip_prefix("?/").filter(|step| is_digits(step));
            let remedy = match step {
                Some(step) => Remedy::Instead(format!("*/{step}")),
                None if item == "?" && !self.field.is_of_days() => Remedy::Instead("*".to_owned()),
                None => Remedy::None,
            };
            return Err(self.fault(item, reason, remedy));
        }
        let floating = match self.field.floats {
            Floats::None => None,
            Floats::Days => self.floating_day(item)?,
            Floats::Weekdays => self.floating_weekday(item)?,
        };
        if let Some(floating) = floating {
            self.values.floating.push(floating);
            return Ok(());
        }
        match item.split_once('/') {
            Some((range, step)) => self.steps(item, range, step),
            None if item == "*" => {
                self.insert((self.field.low, self.field.high), 1);
                Ok(())
            }
            None => {
                let range = self.range(item)?;
                self.insert(range, 1);
                Ok(())
            }
        }
    }

    fn empty_item(&self, word: &str, item: &str) -> PatternFault {
        let (field, at) = (place(self.text, word), place(self.text, item).start);
        let span = at.saturating_sub(1).max(field.start)..(at + 1).min(field.end);
        let reason = format!("an item of the {} list is empty", self.field.name);
        let instead = if span.len() == 2 { "," } else { "" };
        PatternFault { span, reason, remedy: Remedy::Instead(instead.to_owned()) }
    }

    fn steps(&mut self, item: &str, range: &str, step: &str) -> Result<(), PatternFault> {
        let Field { name, low, high, .. } = self.field;
        let longest = u32::try_from(self.field.size() - 1).unwrap_or(0);
        if range.is_empty() {
            let is_step = is_digits(step) && step.parse().is_ok_and(|count| (1..=longest).contains(&count));
            let remedy = if is_step { Remedy::Instead(format!("*/{step}")) } else { Remedy::None };
            return Err(self.fault(item, "a range is missing before the `/`", remedy));
        }
        let unreadable = |reason: String| Err(self.fault(item, reason, Remedy::None));
        if step.is_empty() {
            return unreadable(format!("a number of {name}s is missing after the `/`"));
        }
        if step.contains('/') {
            return unreadable("an item has one step, not two".to_owned());
        }
        if !is_digits(step) {
            return unreadable(format!("`{step}` is not a number of {name}s to step by"));
        }
        let count = step.parse::<u32>().unwrap_or(u32::MAX);
        let is_single = range != "*" && !range.contains('-');
        let (first, last) = match range {
            "*" => (*low, if self.field.floats == Floats::Weekdays { 6 } else { *high }),
            _ if is_single => (self.value(range)?, *high),
            _ => self.stepped_range(item, range, count)?,
        };
        if !(1..=longest).contains(&count) {
            let reason = format!("{} can step by 1 to {longest}, not by {step}", self.field.any());
            let remedy =
                if count == 0 { Remedy::None } else { Remedy::LongStep(count, self.field.write(first)) };
            return Err(self.fault(item, reason, remedy));
        }
        self.insert((first, last), usize::try_from(count).unwrap_or(1));
        Ok(())
    }

    /// The ends of `5` or `1-5`, or of a range that runs backwards.
    fn ends(&self, range: &str) -> Result<(i8, i8), PatternFault> {
        let Some((low, high)) = range.split_once('-') else {
            let value = self.value(range)?;
            return Ok((value, value));
        };
        let any = self.field.any();
        let missing = match (low.is_empty(), high.is_empty()) {
            (true, true) => Some(format!("{any} is missing on both sides of the `-`")),
            (true, false) => Some(format!("{any} is missing before the `-`")),
            (false, true) => Some(format!("{any} is missing after the `-`")),
            (false, false) => high.contains('-').then(|| "a range has two ends, not more".to_owned()),
        };
        if let Some(reason) = missing {
            return Err(self.fault(range, reason, Remedy::None));
        }
        let (first, last) = (self.value(low)?, self.value(high)?);
        // A range may end on Sunday, which then is 7.
        let ends_on_sunday = high.eq_ignore_ascii_case("SUN") && first > 0;
        Ok((first, if ends_on_sunday { 7 } else { last }))
    }

    fn range(&self, range: &str) -> Result<(i8, i8), PatternFault> {
        let (first, last) = self.ends(range)?;
        if first <= last {
            return Ok((first, last));
        }
        let remedy = Remedy::Instead(self.around(range, first, last));
        Err(self.fault(range, format!("the range {range} runs backwards"), remedy))
    }

    /// `22-2/2` is `22,0,2`. For days that is impossible, since months differ.
    fn stepped_range(&self, item: &str, range: &str, step: u32) -> Result<(i8, i8), PatternFault> {
        let (first, last) = self.ends(range)?;
        if first <= last {
            return Ok((first, last));
        }
        let (size, low) = (self.field.size(), self.field.low);
        let values = (first..=last + size).step_by(usize::try_from(step).unwrap_or(usize::MAX).max(1));
        let values = values.map(|value| (low + (value - low) % size).to_string());
        let remedy = match self.field.floats {
            Floats::Days => Remedy::None,
            _ => Remedy::Instead(values.collect::<Vec<_>>().join(",")),
        };
        Err(self.fault(item, format!("the range {range} runs backwards"), remedy))
    }

    /// A range that goes past the end of the field, as one or two that do not.
    fn around(&self, range: &str, first: i8, last: i8) -> String {
        let is_named = !range.starts_with(|first: char| first.is_ascii_digit());
        let write = |value: i8| if is_named { self.field.write(value) } else { value.to_string() };
        let between = |from: i8, until: i8| {
            if from == until { write(from) } else { format!("{}-{}", write(from), write(until)) }
        };
        match (self.field.floats == Floats::Weekdays, first, last) {
            (true, 7, _) => between(0, last),
            (true, _, 0) => between(first, 7),
            (true, ..) => format!("{},{}", between(first, 7), between(1, last)),
            _ => format!("{},{}", between(first, self.field.high), between(self.field.low, last)),
        }
    }

    pub(super) fn value(&self, text: &str) -> Result<i8, PatternFault> {
        let Field { name, low, high, .. } = self.field;
        if let Some(value) = self.field.named(|full| short(full).eq_ignore_ascii_case(text)) {
            return Ok(value);
        }
        if is_digits(text) {
            return match text.parse() {
                Ok(value) if (*low..=*high).contains(&value) => Ok(value),
                _ => Err(self.fault(text, format!("{name} {text} is outside {low}–{high}"), Remedy::None)),
            };
        }
        let reason = format!("`{text}` is not {}", self.field.any());
        let is_long = |full: &str| {
            text.len() > 3 && full.get(..text.len()).is_some_and(|part| part.eq_ignore_ascii_case(text))
        };
        let remedy = match self.field.named(is_long) {
            Some(value) => Remedy::Instead(self.field.write(value)),
            None if FIELDS
                .iter()
                .any(|field| field.named(|full| short(full).eq_ignore_ascii_case(text)).is_some()) =>
            {
                Remedy::Order
            }
            None => Remedy::None,
        };
        Err(self.fault(text, reason, remedy))
    }
}

impl Field {
    pub(super) fn any(&self) -> String {
        if self.name == "hour" { "an hour".to_owned() } else { format!("a {}", self.name) }
    }

    fn named(&self, is_meant: impl Fn(&str) -> bool) -> Option<i8> {
        let at = self.names.iter().position(|full| is_meant(full))?;
        Some(i8::try_from(at).ok()? + self.low)
    }

    /// A value as people write it in this field.
    fn write(&self, value: i8) -> String {
        let at = usize::try_from(self.normal(value) - self.low).unwrap_or(usize::MAX);
        self.names.get(at).map_or_else(|| value.to_string(), |full| short(full).to_ascii_uppercase())
    }
}

fn short(name: &str) -> &str {
    name.get(..3).unwrap_or(name)
}

pub(super) fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}
