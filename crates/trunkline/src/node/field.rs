//! Fields of a node that a rule can read.

use std::fmt;
use std::str::FromStr;

use super::error::RuleError;

/// One field of a node: `id`, `cluster`, `locality.zone`, `metadata.KEY` and
/// the like.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Field {
    /// The id of the node.
    Id,
    /// The cluster of the node itself.
    Cluster,
    /// The region in which it runs.
    Region,
    /// The zone in the region.
    Zone,
    /// The sub-zone in the zone.
    SubZone,
    /// The name of its program.
    UserAgent,
    /// The server's address that it connected to, as `IP:PORT`.
    Listener,
    /// A value in its metadata.
    Metadata(MetadataPath),
}

const METADATA: &str = "metadata.";

impl FromStr for Field {
    type Err = RuleError;

    /// Parses the name of a field as it stands in rules.
    fn from_str(text: &str) -> Result<Self, RuleError> {
        match text {
            "id" => Ok(Self::Id),
            "cluster" => Ok(Self::Cluster),
            "locality.region" => Ok(Self::Region),
            "locality.zone" => Ok(Self::Zone),
            "locality.sub_zone" => Ok(Self::SubZone),
            "user_agent" => Ok(Self::UserAgent),
            "listener" => Ok(Self::Listener),
            _ => match text.strip_prefix(METADATA) {
                Some(path) => path.parse().map(Self::Metadata),
                None => Err(RuleError::Field {
                    found: text.to_owned(),
                }),
            },
        }
    }
}

impl fmt::Display for Field {
    /// Writes the name of the field as it stands in rules.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Id => f.write_str("id"),
            Self::Cluster => f.write_str("cluster"),
            Self::Region => f.write_str("locality.region"),
            Self::Zone => f.write_str("locality.zone"),
            Self::SubZone => f.write_str("locality.sub_zone"),
            Self::UserAgent => f.write_str("user_agent"),
            Self::Listener => f.write_str("listener"),
            Self::Metadata(path) => write!(f, "{METADATA}{path}"),
        }
    }
}

/// Keys that lead to a value in a node's metadata: `NAMESPACE`, `a.b`,
/// `LABELS.'app.example.com/name'`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MetadataPath(Vec<String>);

impl MetadataPath {
    /// The maximum of keys in a path.
    pub const MAX_KEYS: usize = 16;
}

impl AsRef<[String]> for MetadataPath {
    fn as_ref(&self) -> &[String] {
        &self.0
    }
}

impl FromStr for MetadataPath {
    type Err = RuleError;

    /// Parses the keys of a path, which has one at least.
    fn from_str(text: &str) -> Result<Self, RuleError> {
        let no_path = || RuleError::Path {
            found: text.to_owned(),
        };

        let mut keys = Vec::new();
        let mut remaining_path = Some(text);
        while let Some(path) = remaining_path {
            let (key, tail) = split_first_key(path).ok_or_else(no_path)?;
            keys.push(key.to_owned());
            remaining_path = tail;
        }

        if keys.len() > Self::MAX_KEYS {
            return Err(RuleError::Deep {
                found: text.to_owned(),
                max: Self::MAX_KEYS,
            });
        }
        Ok(Self(keys))
    }
}

/// Splits the first key off a path. Returns the key without its quotes, and the
/// text after the dot that follows it. Returns `None` if there is no key, if a
/// quote is not closed, or if the key is followed by anything but a dot.
fn split_first_key(path: &str) -> Option<(&str, Option<&str>)> {
    let quote = path
        .chars()
        .next()
        .filter(|char| matches!(char, '\'' | '"'));
    let (key, suffix) = match quote {
        Some(quote) => path[1..].split_once(quote)?,
        None => path.split_at(path.find('.').unwrap_or(path.len())),
    };
    let remaining_path = match suffix {
        "" => None,
        suffix => Some(suffix.strip_prefix('.')?),
    };
    (!key.is_empty()).then_some((key, remaining_path))
}

impl fmt::Display for MetadataPath {
    /// Writes the keys with dots between them, in quotes where they need them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, key) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str(".")?;
            }
            if key.contains('\'') {
                write!(f, "\"{key}\"")?;
            } else if key.contains(['.', '"']) {
                write!(f, "'{key}'")?;
            } else {
                f.write_str(key)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_read_back_as_they_are_shown() {
        for text in [
            "id",
            "cluster",
            "locality.region",
            "locality.zone",
            "locality.sub_zone",
            "user_agent",
            "listener",
            "metadata.NAMESPACE",
            "metadata.a.b",
            "metadata.labels.'app.example.com/name'",
            "metadata.\"it's\".x",
        ] {
            let field: Field = text.parse().unwrap();
            assert_eq!(field.to_string(), text);
        }
        let quoted: MetadataPath = "'a.b'.c".parse().unwrap();
        assert_eq!(quoted.as_ref(), ["a.b", "c"]);
    }

    #[test]
    fn a_slip_is_told() {
        for text in ["", "Id", "locality", "metadata", "zone"] {
            let error = text.parse::<Field>().unwrap_err();
            assert!(matches!(error, RuleError::Field { .. }), "{text}");
        }
        for text in ["", ".", "a.", ".a", "a..b", "'a", "'a'b", "''"] {
            let error = text.parse::<MetadataPath>().unwrap_err();
            assert!(matches!(error, RuleError::Path { .. }), "{text}");
        }
        let deep = vec!["a"; MetadataPath::MAX_KEYS + 1].join(".");
        let error = deep.parse::<MetadataPath>().unwrap_err();
        assert!(matches!(error, RuleError::Deep { max: 16, .. }));
    }
}
