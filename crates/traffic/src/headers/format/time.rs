//! Times in UTC, by formats such as `%Y-%m-%d`.

use std::fmt::Write as _;
use std::time::Duration;

/// The format where none is given.
const DEFAULT: &str = "%Y-%m-%dT%H:%M:%S.%3fZ";

const SECONDS_OF_DAY: u64 = 86_400;

const MONTHS: [&str; 12] = [
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

const DAYS: [&str; 7] = [
    "Sunday",
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
];

/// A compiled format of a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TimeFormat(Box<[Piece]>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Literal(char),
    /// Digits of the fraction of a second.
    Fraction(usize),
    /// One of the letters of the table in [`write_letter`].
    Letter(char),
}

/// A day of the calendar.
struct Day {
    year: u64,
    /// From 0.
    month: usize,
    /// From 1.
    day: u64,
    /// From 0, which is the first of January.
    day_of_year: u64,
    /// From 0, which is Sunday.
    weekday: usize,
}

impl TimeFormat {
    /// Compiles a format. Without a text, uses the default format.
    ///
    /// # Errors
    /// The format has an unknown conversion.
    pub(super) fn new(format: Option<&str>) -> Result<Self, String> {
        let mut pieces = Vec::new();
        let mut letters = format
            .filter(|text| !text.is_empty())
            .unwrap_or(DEFAULT)
            .chars();
        while let Some(letter) = letters.next() {
            if letter != '%' {
                pieces.push(Piece::Literal(letter));
                continue;
            }

            let unknown_conversion =
                |letter| format!("has a time with %{letter}, which is not known");
            match letters.next() {
                Some('%') => pieces.push(Piece::Literal('%')),
                Some('n') => pieces.push(Piece::Literal('\n')),
                Some('t') => pieces.push(Piece::Literal('\t')),
                Some('f') => pieces.push(Piece::Fraction(9)),
                Some(digit @ '1'..='9') => match letters.next() {
                    Some('f') => pieces.push(Piece::Fraction(digit as usize - '0' as usize)),
                    _ => return Err(unknown_conversion(digit)),
                },
                Some('T') => push_letters(&mut pieces, "H:M:S"),
                Some('R') => push_letters(&mut pieces, "H:M"),
                Some('F') => push_letters(&mut pieces, "Y-m-d"),
                Some('D') => push_letters(&mut pieces, "m/d/y"),
                Some(letter) if KNOWN.contains(letter) => pieces.push(Piece::Letter(letter)),
                Some(letter) => return Err(unknown_conversion(letter)),
                None => return Err("has a time that ends in %".to_owned()),
            }
        }
        Ok(Self(pieces.into()))
    }

    /// Formats a time since 1970.
    pub(super) fn write(&self, time: Duration) -> String {
        let day = Day::from_days(time.as_secs() / SECONDS_OF_DAY);
        let mut output = String::new();
        for piece in &self.0 {
            match piece {
                Piece::Literal(letter) => output.push(*letter),
                Piece::Fraction(digits) => {
                    let nanos = format!("{:09}", time.subsec_nanos());
                    output.push_str(&nanos[..*digits]);
                }
                Piece::Letter(letter) => write_letter(&mut output, *letter, &day, time.as_secs()),
            }
        }
        output
    }
}

/// The letters that [`write_letter`] writes.
const KNOWN: &str = "YmdHMSyjeIpbhBaAsuwCzZ";

/// Adds a conversion for each letter, and the other characters as they are.
fn push_letters(pieces: &mut Vec<Piece>, letters: &str) {
    pieces.extend(
        letters
            .chars()
            .map(|letter| match letter.is_ascii_alphabetic() {
                true => Piece::Letter(letter),
                false => Piece::Literal(letter),
            }),
    );
}

/// Appends the value of one conversion, such as the year for `Y`.
fn write_letter(output: &mut String, letter: char, day: &Day, seconds: u64) {
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    // Writing to a `String` cannot fail.
    let _ = match letter {
        'Y' => write!(output, "{}", day.year),
        'C' => write!(output, "{:02}", day.year / 100),
        'y' => write!(output, "{:02}", day.year % 100),
        'm' => write!(output, "{:02}", day.month + 1),
        'd' => write!(output, "{:02}", day.day),
        'e' => write!(output, "{:2}", day.day),
        'j' => write!(output, "{:03}", day.day_of_year + 1),
        'H' => write!(output, "{hour:02}"),
        'I' => write!(output, "{:02}", (hour + 11) % 12 + 1),
        'p' => write!(output, "{}", if hour < 12 { "AM" } else { "PM" }),
        'M' => write!(output, "{minute:02}"),
        'S' => write!(output, "{second:02}"),
        's' => write!(output, "{seconds}"),
        'B' => write!(output, "{}", MONTHS[day.month]),
        'b' | 'h' => write!(output, "{}", &MONTHS[day.month][..3]),
        'A' => write!(output, "{}", DAYS[day.weekday]),
        'a' => write!(output, "{}", &DAYS[day.weekday][..3]),
        'u' => write!(output, "{}", (day.weekday + 6) % 7 + 1),
        'w' => write!(output, "{}", day.weekday),
        'z' => write!(output, "+0000"),
        _ => write!(output, "UTC"),
    };
}

impl Day {
    /// Returns the day that is `days` days after the first of January 1970, a
    /// Thursday.
    fn from_days(days: u64) -> Self {
        let is_leap = |year: u64| {
            year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
        };
        // The calendar repeats after 400 years, so whole cycles are skipped.
        const CYCLE: u64 = 146_097;
        let (mut year, mut remaining_days) = (1970 + days / CYCLE * 400, days % CYCLE);
        while remaining_days >= 365 + u64::from(is_leap(year)) {
            remaining_days -= 365 + u64::from(is_leap(year));
            year += 1;
        }
        let day_of_year = remaining_days;
        let february = 28 + u64::from(is_leap(year));

        let lengths = [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
        let mut month = 0;
        while remaining_days >= lengths[month] {
            remaining_days -= lengths[month];
            month += 1;
        }
        let weekday = ((days + 4) % 7) as usize;
        Self {
            year,
            month,
            day: remaining_days + 1,
            day_of_year,
            weekday,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_written_by_its_calendar() {
        // seconds, format, text
        let cases = [
            (0, "%F %T %a %j", "1970-01-01 00:00:00 Thu 001"),
            (951_782_400, "%D %A %b %e", "02/29/00 Tuesday Feb 29"),
            (951_868_800, "%F %j", "2000-03-01 061"),
            (4_107_542_399, "%F %T", "2100-02-28 23:59:59"),
            (4_107_542_400, "%F", "2100-03-01"),
            (
                1_704_067_199,
                "%F %I%p %u%w %C%y%%",
                "2023-12-31 11PM 70 2023%",
            ),
            (
                1_704_110_400,
                "%I %p %R %B %h%n%t%Z",
                "12 PM 12:00 January Jan\n\tUTC",
            ),
            (13_574_563_200, "%F", "2400-02-29"),
        ];
        for (seconds, format, expected) in cases {
            let format = TimeFormat::new(Some(format)).expect(format);
            assert_eq!(format.write(Duration::from_secs(seconds)), expected);
        }
        let nanos = TimeFormat::new(Some("%f %6f %1f")).expect("a format");
        assert_eq!(
            nanos.write(Duration::new(1, 23_456_789)),
            "023456789 023456 0"
        );
        for wrong in ["%", "%Q", "%3", "%0f"] {
            assert!(TimeFormat::new(Some(wrong)).is_err(), "{wrong}");
        }
    }
}
