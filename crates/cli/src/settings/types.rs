//! Types of settings that Rust does not have.

use std::fmt;
use std::str::FromStr;

use super::value::BadValue;

/// A host and a port, such as `127.0.0.1:18000` or `[::1]:0`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address(String);

impl Address {
    /// Makes an address of a text that is known to be valid.
    pub(super) fn known(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// Makes the address of loopback with whatever port is free.
    pub(crate) fn any_port() -> Self {
        Self::known("127.0.0.1:0")
    }

    /// Returns the address as it is written.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Address {
    type Err = BadValue;

    /// Parses a host and a port. The host is not resolved.
    fn from_str(text: &str) -> Result<Self, BadValue> {
        let bad_value = || BadValue::new(text, "an address with a port, such as 127.0.0.1:18000");
        let (host, port) = text.rsplit_once(':').ok_or_else(bad_value)?;
        let port: Result<u16, _> = port.parse();
        if host.is_empty() || port.is_err() {
            return Err(bad_value());
        }
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A number of bytes: `4096`, `64KiB`, `3MiB`, `1GiB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ByteSize(pub(crate) usize);

/// The units of sizes, from the largest to the smallest.
const UNITS: [(&str, usize); 3] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];

impl FromStr for ByteSize {
    type Err = BadValue;

    /// Parses a number of bytes, or of one of [`UNITS`]. Underscores may group
    /// the digits.
    fn from_str(text: &str) -> Result<Self, BadValue> {
        let bad_value = || BadValue::new(text, "a number of bytes, such as 4096, 64KiB or 3MiB");
        let with_unit = UNITS.iter().find_map(|(unit, unit_bytes)| {
            let count = text.strip_suffix(unit)?;
            Some((count, *unit_bytes))
        });
        let (count, unit_bytes) = with_unit.unwrap_or((text, 1));
        let count: usize = count.replace('_', "").parse().map_err(|_| bad_value())?;
        count
            .checked_mul(unit_bytes)
            .map(Self)
            .ok_or_else(bad_value)
    }
}

impl fmt::Display for ByteSize {
    /// Writes the size in the largest unit of which it is a multiple.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_whole = |(_, unit_bytes): &&(&str, usize)| {
            self.0 >= *unit_bytes && self.0.is_multiple_of(*unit_bytes)
        };
        match UNITS.iter().find(is_whole) {
            Some((unit, unit_bytes)) => write!(f, "{}{unit}", self.0 / unit_bytes),
            None => write!(f, "{}", self.0),
        }
    }
}

/// A setting with few words for values.
pub(crate) trait Choice: Copy + 'static {
    /// All values.
    const ALL: &'static [Self];
    /// Their words, in the same order.
    const NAMES: &'static [&'static str];

    /// Returns the word of a value.
    fn name(self) -> &'static str;
}

macro_rules! choice {
    ($(#[$doc:meta])* $type:ident { $($(#[$of:meta])* $name:ident = $word:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
        pub(crate) enum $type { $($(#[$of])* #[value(name = $word)] $name,)* }

        impl Choice for $type {
            const ALL: &'static [Self] = &[$(Self::$name),*];
            const NAMES: &'static [&'static str] = &[$($word),*];

            fn name(self) -> &'static str {
                match self { $(Self::$name => $word,)* }
            }
        }
    };
}

choice!(
    /// The treatment of a dangling reference.
    OnDangling {
        /// A warning.
        Warn = "warn",
        /// A mistake: the change is refused.
        Error = "error",
    }
);

choice!(
    /// Whether a source of MCP is asked over xDS.
    OverXds {
        /// By the protocol itself.
        No = "no",
        /// In state of the world, as Istio does.
        Sotw = "sotw",
        /// By delta.
        Delta = "delta",
    }
);

choice!(
    /// The format of the log.
    LogFormat {
        /// For people.
        Text = "text",
        /// For programs: one object in a line.
        Json = "json",
    }
);

choice!(
    /// The level of the log.
    LogLevel {
        /// Failures that need an operator.
        Error = "error",
        /// And problems that may need an operator.
        Warn = "warn",
        /// And events of the server and its contents.
        Info = "info",
        /// And events of streams.
        Debug = "debug",
        /// Everything.
        Trace = "trace",
    }
);

/// The memory limit of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MemoryLimit {
    /// That of the process's cgroup, if it has one.
    Cgroup,
    /// So many bytes; none is no limit.
    Bytes(ByteSize),
}

impl MemoryLimit {
    /// Returns the limit in bytes. Returns `None` if there is no limit.
    pub(crate) fn bytes(self) -> Option<u64> {
        match self {
            Self::Cgroup => trunkline::memory::cgroup_limit(),
            Self::Bytes(ByteSize(0)) => None,
            Self::Bytes(ByteSize(bytes)) => Some(bytes as u64),
        }
    }
}

impl fmt::Display for MemoryLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cgroup => f.write_str("cgroup"),
            Self::Bytes(bytes) => bytes.fmt(f),
        }
    }
}

impl FromStr for MemoryLimit {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        let expected = || BadValue::new(text, "`cgroup` or a size such as 512MiB or 2GiB");
        match text {
            "cgroup" => Ok(Self::Cgroup),
            _ => text.parse().map(Self::Bytes).map_err(|_| expected()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_read_back_as_they_are_shown() {
        for text in ["0", "4096B", "1000", "4KiB", "3MiB", "1GiB", "5MiB"] {
            match text.parse::<ByteSize>() {
                Ok(size) => assert_eq!(size.to_string(), text),
                Err(_) => assert_eq!(text, "4096B"),
            }
        }
        assert_eq!("4096".parse::<ByteSize>().unwrap().to_string(), "4KiB");
        assert!("99999999999999999999GiB".parse::<ByteSize>().is_err());
    }

    #[test]
    fn a_memory_limit_is_that_of_the_cgroup_or_a_size() {
        for text in ["cgroup", "0", "512MiB"] {
            let limit: MemoryLimit = text.parse().unwrap();
            assert_eq!(limit.to_string(), text);
        }
        let bytes = |text: &str| text.parse::<MemoryLimit>().unwrap().bytes();
        assert_eq!((bytes("0"), bytes("1KiB")), (None, Some(1024)));
        let error = "most".parse::<MemoryLimit>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "\"most\" is not `cgroup` or a size such as 512MiB or 2GiB"
        );
    }

    #[test]
    fn an_address_has_a_port() {
        for good in ["127.0.0.1:0", "[::1]:18000", "localhost:1"] {
            assert!(good.parse::<Address>().is_ok(), "{good}");
        }
        for bad in ["127.0.0.1", ":80", "a:b", "a:70000", ""] {
            assert!(bad.parse::<Address>().is_err(), "{bad}");
        }
    }
}
