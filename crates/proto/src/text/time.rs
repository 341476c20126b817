//! Durations (`1.5s`) and timestamps (RFC 3339), as protobuf's JSON has them.

/// The bound of protobuf: about ten thousand years.
const MAX_SECONDS: i64 = 315_576_000_000;

/// Seconds and nanoseconds of `-1.5s`.
pub(super) fn parse_duration(text: &str) -> Option<(i64, i32)> {
    let text = text.strip_suffix('s')?;
    let (sign, text) = match text.strip_prefix('-') {
        Some(text) => (-1, text),
        None => (1, text),
    };
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let seconds: i64 = digits(whole)?;
    let nanos = nanos(fraction)?;
    (seconds <= MAX_SECONDS).then_some((sign * seconds, sign as i32 * nanos))
}

/// Seconds since 1970 and nanoseconds of `2024-02-29T12:00:00.5+01:00`.
pub(super) fn parse_timestamp(text: &str) -> Option<(i64, i32)> {
    let (date, time) = text.split_once(['T', 't'])?;
    let (time, offset) = offset(time)?;
    let (clock, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let [year, month, day] = three(date, '-', [4, 2, 2])?;
    let [hour, minute, second] = three(clock, ':', [2, 2, 2])?;
    if year < 1 || !(1..=12).contains(&month) || day < 1 || day > days_in(year, month) {
        return None;
    }
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let days = days_since_1970(year, month, day);
    let seconds = ((days * 24 + hour) * 60 + minute) * 60 + second - offset;
    Some((seconds, nanos(fraction)?))
}

/// The time without its zone, and the zone's seconds east of UTC.
fn offset(time: &str) -> Option<(&str, i64)> {
    if let Some(time) = time.strip_suffix(['Z', 'z']) {
        return Some((time, 0));
    }
    let (time, zone) = time.split_at_checked(time.len().checked_sub(6)?)?;
    let (sign, zone) = match zone.split_at_checked(1)? {
        ("+", zone) => (1, zone),
        ("-", zone) => (-1, zone),
        _ => return None,
    };
    let (hours, minutes) = zone.split_once(':')?;
    let (hours, minutes) = (digits(hours)?, digits(minutes)?);
    (hours < 24 && minutes < 60).then_some((time, sign * (hours * 60 + minutes) * 60))
}

fn three(text: &str, by: char, lens: [usize; 3]) -> Option<[i64; 3]> {
    let mut parts = text.split(by);
    let mut next = |len: usize| digits(parts.next().filter(|p| p.len() == len)?);
    let numbers = [next(lens[0])?, next(lens[1])?, next(lens[2])?];
    parts.next().is_none().then_some(numbers)
}

fn digits(text: &str) -> Option<i64> {
    let all = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    all.then(|| text.parse().ok()).flatten()
}

/// One to nine digits after the point.
fn nanos(fraction: &str) -> Option<i32> {
    let number = digits(fraction).filter(|_| fraction.len() <= 9)?;
    let scale = 10_i64.pow(9 - fraction.len() as u32);
    i32::try_from(number * scale).ok()
}

fn leap(year: i64) -> bool {
    (year % 4 == 0 && year % 100 != 0) || year % 400 == 0
}

fn days_in(year: i64, month: i64) -> i64 {
    match month {
        2 if leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let before = year - 1;
    let years = before * 365 + before / 4 - before / 100 + before / 400;
    let months: i64 = (1..month).map(|m| days_in(year, m)).sum();
    // 719 162 days lie before 1970.
    years + months + day - 1 - 719_162
}

/// A duration as text.
pub(crate) fn print_duration(seconds: i64, nanos: i32) -> String {
    let sign = if seconds < 0 || nanos < 0 { "-" } else { "" };
    let fraction = fraction(nanos.unsigned_abs());
    format!("{sign}{}{fraction}s", seconds.unsigned_abs())
}

/// A point in time as text (RFC 3339), by seconds since 1970 and nanoseconds.
#[must_use]
pub fn print_timestamp(seconds: i64, nanos: i32) -> String {
    let (days, clock) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let (year, month, day) = date(days);
    let (hour, minute, second) = (clock / 3600, clock / 60 % 60, clock % 60);
    let fraction = fraction(nanos.unsigned_abs());
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{fraction}Z")
}

/// `.5`, `.25`, …, or nothing.
fn fraction(nanos: u32) -> String {
    let digits = format!(".{nanos:09}");
    let digits = digits.trim_end_matches('0');
    digits.trim_end_matches('.').to_owned()
}

/// Year, month and day of a day counted from 1970: a guess at the year, and
/// then the months one by one.
fn date(days: i64) -> (i64, i64, i64) {
    // 400 years have 146 097 days. A received value may be out of the range of
    // timestamps.
    let days = days.clamp(-719_162, 2_932_896);
    let mut year = 1970 + days * 400 / 146_097;
    while days_since_1970(year, 1, 1) > days {
        year -= 1;
    }
    while days_since_1970(year + 1, 1, 1) <= days {
        year += 1;
    }
    let mut month = 1;
    while month < 12 && days_since_1970(year, month + 1, 1) <= days {
        month += 1;
    }
    let day = days - days_since_1970(year, month, 1) + 1;
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        assert_eq!(parse_duration("1s"), Some((1, 0)));
        assert_eq!(parse_duration("-1.5s"), Some((-1, -500_000_000)));
        assert_eq!(parse_duration("0.000000001s"), Some((0, 1)));
        for bad in [
            "1",
            "s",
            "1.s",
            "+1s",
            "1.0000000001s",
            "315576000001s",
            "1ms",
            "é",
        ] {
            assert_eq!(parse_duration(bad), None, "{bad}");
        }
    }

    #[test]
    fn timestamps() {
        assert_eq!(parse_timestamp("1970-01-01T00:00:00Z"), Some((0, 0)));
        assert_eq!(
            parse_timestamp("2024-02-29T12:00:00.5+01:00"),
            Some((1_709_204_400, 500_000_000))
        );
        assert_eq!(
            parse_timestamp("0001-01-01T00:00:00Z"),
            Some((-62_135_596_800, 0))
        );
        for bad in [
            "2023-02-29T00:00:00Z",
            "2024-01-01",
            "2024-01-01T24:00:00Z",
            "é",
            "2024-1-1T00:00:00Z",
        ] {
            assert_eq!(parse_timestamp(bad), None, "{bad}");
        }
    }

    #[test]
    fn what_is_printed_reads_back() {
        for text in ["1s", "-1.5s", "0.000000001s", "-0.25s", "0s"] {
            let (seconds, nanos) = parse_duration(text).unwrap();
            assert_eq!(print_duration(seconds, nanos), text);
        }
        for text in [
            "0001-01-01T00:00:00Z",
            "1969-12-31T23:59:59.5Z",
            "2000-02-29T00:00:00Z",
            "2023-12-31T23:59:59.000000001Z",
            "9999-12-31T23:59:59Z",
        ] {
            let (seconds, nanos) = parse_timestamp(text).unwrap();
            assert_eq!(print_timestamp(seconds, nanos), text);
        }
    }
}
