//! Durations (`1.5s`) and timestamps (RFC 3339), as protobuf's JSON has them.

/// The bound of protobuf on a duration: about ten thousand years.
pub(crate) const MAX_SECONDS: i64 = 315_576_000_000;

/// The days from the year 1 to 1970.
const DAYS_TO_1970: i64 = 719_162;
/// The last day of the year 9999, counted from 1970.
const LAST_DAY: i64 = 2_932_896;
const SECONDS_OF_DAY: i64 = 86_400;

/// Parses a duration such as `-1.5s` into seconds and nanoseconds of the same
/// sign. Returns `None` if the text is not a duration, or is out of the bounds
/// of protobuf.
pub(super) fn parse_duration(text: &str) -> Option<(i64, i32)> {
    let text = text.strip_suffix('s')?;
    let (sign, magnitude) = match text.strip_prefix('-') {
        Some(magnitude) => (-1, magnitude),
        None => (1, text),
    };

    let (whole, fraction) = magnitude.split_once('.').unwrap_or((magnitude, "0"));
    let seconds = parse_digits(whole)?;
    let nanos = parse_nanos(fraction)?;
    (seconds <= MAX_SECONDS).then_some((sign * seconds, sign as i32 * nanos))
}

/// Parses a timestamp such as `2024-02-29T12:00:00.5+01:00` into seconds since
/// 1970 and nanoseconds, which are not negative. Returns `None` if the text is
/// not a timestamp, or its day does not exist.
pub(super) fn parse_timestamp(text: &str) -> Option<(i64, i32)> {
    let (date, zoned_time) = text.split_once('T')?;
    let (time, offset) = split_zone(zoned_time)?;
    let (clock, fraction) = time.split_once('.').unwrap_or((time, "0"));

    let [year, month, day] = parse_three_numbers(date, '-', [4, 2, 2])?;
    let is_month = year >= 1 && (1..=12).contains(&month);
    if !is_month || day < 1 || day > days_in_month(year, month) {
        return None;
    }
    let [hour, minute, second] = parse_three_numbers(clock, ':', [2, 2, 2])?;
    // A leap second, which is number 60, counts as the first second of the next
    // minute.
    if hour > 23 || minute > 59 || second > 60 {
        return None;
    }

    let days = days_since_1970(year, month, day);
    let seconds = ((days * 24 + hour) * 60 + minute) * 60 + second - offset;
    Some((seconds, parse_nanos(fraction)?))
}

/// Splits a time of RFC 3339 into the text before its zone, and the seconds by
/// which the zone is ahead of UTC. Returns `None` if the zone is missing or
/// invalid.
fn split_zone(time: &str) -> Option<(&str, i64)> {
    if let Some(time) = time.strip_suffix('Z') {
        return Some((time, 0));
    }

    const ZONE_LEN: usize = "+00:00".len();
    let zone_start = time.len().checked_sub(ZONE_LEN)?;
    let (before_zone, zone) = time.split_at_checked(zone_start)?;
    Some((before_zone, parse_offset_secs(zone)?))
}

/// Parses the offset of a zone, such as `+02:00`, into seconds. Returns `None`
/// for another form.
fn parse_offset_secs(zone: &str) -> Option<i64> {
    let (sign, clock) = match zone.split_at_checked(1)? {
        ("+", clock) => (1, clock),
        ("-", clock) => (-1, clock),
        _ => return None,
    };
    let (hours, minutes) = clock.split_once(':')?;
    let hours = parse_digits(hours)?;
    let minutes = parse_digits(minutes)?;
    if hours >= 24 || minutes >= 60 {
        return None;
    }
    Some(sign * (hours * 60 + minutes) * 60)
}

/// Parses three numbers with `separator` between them, whose numbers of digits
/// are `lens`. Returns `None` for other texts.
fn parse_three_numbers(text: &str, separator: char, lens: [usize; 3]) -> Option<[i64; 3]> {
    let mut parts = text.split(separator);
    let mut parse_next = |len: usize| {
        let part = parts.next().filter(|part| part.len() == len)?;
        parse_digits(part)
    };
    let numbers = [
        parse_next(lens[0])?,
        parse_next(lens[1])?,
        parse_next(lens[2])?,
    ];
    parts.next().is_none().then_some(numbers)
}

/// Parses a number that is written in digits only, without a sign.
fn parse_digits(text: &str) -> Option<i64> {
    let is_digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    is_digits.then(|| text.parse().ok()).flatten()
}

/// Parses the one to nine digits after the point as nanoseconds.
fn parse_nanos(fraction: &str) -> Option<i32> {
    let number = parse_digits(fraction).filter(|_| fraction.len() <= 9)?;
    let scale = 10_i64.pow(9 - fraction.len() as u32);
    i32::try_from(number * scale).ok()
}

/// Returns whether a year of the Gregorian calendar has 366 days.
fn is_leap(year: i64) -> bool {
    (year % 4 == 0 && year % 100 != 0) || year % 400 == 0
}

/// Returns the number of days in a month, from 1 to 12, of a year.
fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Counts the days from 1970 to a date of the Gregorian calendar; negative for
/// an earlier one.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let years_before = year - 1;
    let leap_days = years_before / 4 - years_before / 100 + years_before / 400;
    let days_of_years = years_before * 365 + leap_days;
    let days_of_months: i64 = (1..month).map(|m| days_in_month(year, m)).sum();
    days_of_years + days_of_months + day - 1 - DAYS_TO_1970
}

/// Prints a duration, such as `-1.5s`. Seconds and nanoseconds must have one
/// sign.
pub(crate) fn print_duration(seconds: i64, nanos: i32) -> String {
    let sign = if seconds < 0 || nanos < 0 { "-" } else { "" };
    let fraction = print_fraction(nanos.unsigned_abs());
    format!("{sign}{}{fraction}s", seconds.unsigned_abs())
}

/// Formats a point in time by RFC 3339, from seconds since 1970 and
/// nanoseconds. A time outside of the years 1 to 9999 gets the nearest day
/// inside.
#[must_use]
pub fn print_timestamp(seconds: i64, nanos: i32) -> String {
    let days = seconds.div_euclid(SECONDS_OF_DAY);
    let clock = seconds.rem_euclid(SECONDS_OF_DAY);
    let (year, month, day) = date_of_day(days);
    let (hour, minute, second) = (clock / 3600, clock / 60 % 60, clock % 60);
    let fraction = print_fraction(nanos.unsigned_abs());
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{fraction}Z")
}

/// Prints nanoseconds as a fraction such as `.5` or `.25`; nothing if they are
/// zero.
fn print_fraction(nanos: u32) -> String {
    let digits = format!(".{nanos:09}");
    let digits = digits.trim_end_matches('0');
    digits.trim_end_matches('.').to_owned()
}

/// Returns year, month and day of a day, counted from 1970. A day outside of
/// the years 1 to 9999, which may be received, becomes the nearest one inside.
fn date_of_day(days: i64) -> (i64, i64, i64) {
    let days = days.clamp(-DAYS_TO_1970, LAST_DAY);

    // 400 years have 146 097 days, which gives the year or one next to it. The
    // loops correct it.
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
            "2024-01-01t00:00:00Z",
            "2024-01-01T00:00:00z",
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
