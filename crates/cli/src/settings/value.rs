//! Values as people write them, in a file or behind a flag: read and shown by
//! the same rules.

use std::path::PathBuf;
use std::time::Duration;

use super::types::{Address, ByteSize, Choice, MemoryLimit};

/// Why a text is not a value.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{found:?} is not {expected}")]
pub(crate) struct BadValue {
    found: String,
    expected: String,
}

impl BadValue {
    /// Makes the error of a text that is no value; `expected` says in words
    /// what one looks like.
    pub(super) fn new(found: &str, expected: impl Into<String>) -> Self {
        Self {
            found: found.to_owned(),
            expected: expected.into(),
        }
    }
}

/// How many values a setting takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arity {
    /// One value.
    One,
    /// Any number of values.
    Many,
    /// `true` or `false`; the flag alone is `true`.
    Switch,
}

/// A field of the settings that text goes into and comes from.
pub(crate) trait Field {
    /// Parses a text and sets the value; where there may be many, adds one.
    fn put(&mut self, text: &str) -> Result<(), BadValue>;

    /// Writes all values, as `put` takes them; none, if there is none.
    fn show(&self) -> Vec<String>;

    /// Returns how many values the field takes.
    fn arity(&self) -> Arity {
        Arity::One
    }

    /// Returns the only values, where they are few; none, where they are not.
    fn choices(&self) -> &'static [&'static str] {
        &[]
    }
}

impl Field for String {
    fn put(&mut self, text: &str) -> Result<(), BadValue> {
        text.clone_into(self);
        Ok(())
    }

    fn show(&self) -> Vec<String> {
        vec![self.clone()]
    }
}

/// Implements [`Field`] for types of one value, which a function parses and
/// `Display` shows.
macro_rules! impl_field {
    ($parse:path: $($value:ty),+) => {$(
        impl Field for $value {
            fn put(&mut self, text: &str) -> Result<(), BadValue> {
                *self = $parse(text)?;
                Ok(())
            }

            fn show(&self) -> Vec<String> {
                vec![self.to_string()]
            }
        }
    )+};
}

impl_field!(str::parse: Address, ByteSize, MemoryLimit);
impl_field!(parse_number: usize, u32);

impl Field for Option<Address> {
    fn put(&mut self, text: &str) -> Result<(), BadValue> {
        *self = Some(text.parse()?);
        Ok(())
    }

    fn show(&self) -> Vec<String> {
        self.iter().map(ToString::to_string).collect()
    }
}

impl Field for Option<PathBuf> {
    fn put(&mut self, text: &str) -> Result<(), BadValue> {
        *self = Some(parse_path(text)?);
        Ok(())
    }

    fn show(&self) -> Vec<String> {
        self.iter().map(|path| path.display().to_string()).collect()
    }
}

impl Field for Vec<PathBuf> {
    fn put(&mut self, text: &str) -> Result<(), BadValue> {
        self.push(parse_path(text)?);
        Ok(())
    }

    fn show(&self) -> Vec<String> {
        self.iter().map(|path| path.display().to_string()).collect()
    }

    fn arity(&self) -> Arity {
        Arity::Many
    }
}

impl Field for Vec<Address> {
    fn put(&mut self, text: &str) -> Result<(), BadValue> {
        self.push(text.parse()?);
        Ok(())
    }

    fn show(&self) -> Vec<String> {
        self.iter().map(ToString::to_string).collect()
    }

    fn arity(&self) -> Arity {
        Arity::Many
    }
}

impl Field for Vec<String> {
    fn put(&mut self, text: &str) -> Result<(), BadValue> {
        self.push(text.to_owned());
        Ok(())
    }

    fn show(&self) -> Vec<String> {
        self.clone()
    }

    fn arity(&self) -> Arity {
        Arity::Many
    }
}

impl Field for bool {
    /// Sets the value, which is `true` or `false` and no other word.
    fn put(&mut self, text: &str) -> Result<(), BadValue> {
        *self = match text {
            "true" => true,
            "false" => false,
            _ => return Err(BadValue::new(text, "true or false")),
        };
        Ok(())
    }

    fn show(&self) -> Vec<String> {
        vec![self.to_string()]
    }

    fn arity(&self) -> Arity {
        Arity::Switch
    }

    fn choices(&self) -> &'static [&'static str] {
        &["true", "false"]
    }
}

impl Field for Duration {
    fn put(&mut self, text: &str) -> Result<(), BadValue> {
        *self = parse_duration(text)?;
        Ok(())
    }

    /// Writes the time in the largest unit of which it is a multiple.
    fn show(&self) -> Vec<String> {
        let millis = self.as_millis();
        let shown = match millis {
            0 => "0s".to_owned(),
            m if m % 3_600_000 == 0 => format!("{}h", m / 3_600_000),
            m if m % 60_000 == 0 => format!("{}m", m / 60_000),
            m if m % 1000 == 0 => format!("{}s", m / 1000),
            m => format!("{m}ms"),
        };
        vec![shown]
    }
}

impl<T: Choice> Field for T {
    /// Sets the value whose word this is; another word is an error, which lists
    /// all.
    fn put(&mut self, text: &str) -> Result<(), BadValue> {
        let choice = T::ALL.iter().find(|value| value.name() == text);
        let bad = || BadValue::new(text, format!("one of {}", T::NAMES.join(", ")));
        *self = *choice.ok_or_else(bad)?;
        Ok(())
    }

    fn show(&self) -> Vec<String> {
        vec![self.name().to_owned()]
    }

    fn choices(&self) -> &'static [&'static str] {
        T::NAMES
    }
}

/// Parses a path, which must not be empty. It need not exist.
fn parse_path(text: &str) -> Result<PathBuf, BadValue> {
    match text {
        "" => Err(BadValue::new(text, "a path")),
        text => Ok(text.into()),
    }
}

/// Parses a number, whose digits may be grouped by underscores.
fn parse_number<T: std::str::FromStr>(text: &str) -> Result<T, BadValue> {
    let plain = text.replace('_', "");
    let bad = |_| BadValue::new(text, "a number, such as 1000");
    plain.parse().map_err(bad)
}

/// The longest time. More than a century is a typo, and would not fit the
/// clocks of some systems.
const LONGEST_SECONDS: f64 = 3.2e9;

/// Parses a number and a unit: `50ms`, `1.5s`, `30m`, `1h`.
///
/// # Errors
/// The text is in another form, or the time is longer than [`LONGEST_SECONDS`].
pub(crate) fn parse_duration(text: &str) -> Result<Duration, BadValue> {
    let bad_value = || BadValue::new(text, "a time, such as 50ms, 5s, 30m or 1h");
    let unit_start = text.find(|c: char| !c.is_ascii_digit() && c != '.');
    let (count, unit) = text.split_at(unit_start.ok_or_else(bad_value)?);
    let unit_seconds = match unit {
        "ms" => 0.001,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return Err(bad_value()),
    };

    let count: f64 = count.parse().map_err(|_| bad_value())?;
    let seconds = count * unit_seconds;
    if seconds > LONGEST_SECONDS {
        return Err(bad_value());
    }
    Duration::try_from_secs_f64(seconds).map_err(|_| bad_value())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_read_back_as_they_are_shown() {
        for text in ["0s", "1ms", "1500ms", "5s", "30m", "2h"] {
            assert_eq!(parse_duration(text).unwrap().show(), [text]);
        }
        assert_eq!(parse_duration("1.5s").unwrap(), Duration::from_millis(1500));
        for text in ["", "5", "s", "-1s", "1d", "1e9h", "99999999h", "1.2.3s"] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn numbers_may_be_grouped() {
        let mut count = 0_usize;
        count.put("100_000").unwrap();
        assert_eq!(count, 100_000);
        assert!(count.put("many").is_err());
    }
}
