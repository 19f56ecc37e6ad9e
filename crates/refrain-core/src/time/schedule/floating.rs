//! Days that differ from month to month: `L`, `15W`, `MON#1`, `5L`.

use super::calendar::Floating;
use super::field::{FieldReader, is_digits};
use super::pattern_fault::{PatternFault, Remedy};

impl FieldReader<'_> {
    /// `L`, `L-3`, `LW`, `L-3W` and `15W`.
    pub(super) fn floating_day(&self, item: &str) -> Result<Option<Floating>, PatternFault> {
        let upper = item.to_ascii_uppercase();
        let (body, is_nearest) = match upper.strip_suffix('W') {
            Some(body) => (body, true),
            None => (upper.as_str(), false),
        };
        if let Some(before) = body.strip_prefix('L') {
            let before = match before.strip_prefix('-') {
                None if before.is_empty() => 0,
                Some(days) if is_digits(days) => {
                    let Some(days) = days.parse::<i8>().ok().filter(|days| *days <= 30) else {
                        let reason = format!("days before the last one are `L-1` to `L-30`, not `L-{days}`");
                        return Err(self.fault(item, reason, Remedy::None));
                    };
                    days
                }
                _ => {
                    let reason = "`L` is the last day of a month, and `L-3` the third before it";
                    return Err(self.fault(item, reason, Remedy::None));
                }
            };
            let floating =
                if is_nearest { Floating::NearestBeforeLast(before) } else { Floating::BeforeLast(before) };
            return Ok(Some(floating));
        }
        if let Some(range) = upper.strip_suffix("-L") {
            let reason =
                "a range of days ends on a number: there is no tick on days that a month does not have";
            let remedy = if is_digits(range) { Remedy::Instead(format!("{range}-31")) } else { Remedy::None };
            return Err(self.fault(item, reason, remedy));
        }
        if !is_nearest {
            return Ok(None);
        }
        let day = item.get(..item.len() - 1).unwrap_or_default();
        if day.is_empty() || day.contains(['-', '/']) {
            let reason = "`W` follows one day: `15W` is the working day nearest to the 15th";
            return Err(self.fault(item, reason, Remedy::None));
        }
        Ok(Some(Floating::Nearest(self.value(day)?)))
    }

    /// `MON#1` and `5L`.
    pub(super) fn floating_weekday(&self, item: &str) -> Result<Option<Floating>, PatternFault> {
        let last = "`L` follows a weekday: `5L` is the last Friday of a month";
        if let Some((day, nth)) = item.split_once('#') {
            if day.is_empty() || day.contains('-') {
                let reason = "`#` follows one weekday: `MON#2` is the second Monday of a month";
                return Err(self.fault(item, reason, Remedy::None));
            }
            let weekday = self.field.normal(self.value(day)?);
            return match nth.parse() {
                Ok(count @ 1..=5) if is_digits(nth) => Ok(Some(Floating::Nth(weekday, count))),
                _ if nth.eq_ignore_ascii_case("L") => {
                    Err(self.fault(item, last, Remedy::Instead(format!("{day}L"))))
                }
                _ => {
                    let reason = format!("a month has weekdays #1 to #5, not `#{nth}`");
                    Err(self.fault(item, reason, Remedy::None))
                }
            };
        }
        let (Some(head), Some(tail)) = (item.strip_suffix(['L', 'l']), item.get(1..)) else {
            return match item.strip_prefix(['L', 'l']) {
                Some(day) if self.value(day).is_ok() => {
                    Err(self.fault(item, last, Remedy::Instead(format!("{day}L"))))
                }
                _ => Ok(None),
            };
        };
        if tail.is_empty() || head.contains('-') {
            return Err(self.fault(item, last, Remedy::None));
        }
        Ok(Some(Floating::LastOf(self.field.normal(self.value(head)?))))
    }
}
