//! Where a resource, or one variant of it, stands among the contents.

use super::Kind;

/// One variant of one resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Place {
    pub(crate) kind: Kind,
    /// Which resource of the type.
    pub(crate) index: usize,
    /// Which variant of it; the first, if there is no other.
    pub(crate) variant: usize,
}

impl Place {
    /// Returns the place of a resource that has no variants.
    #[cfg(test)]
    pub(crate) fn only(kind: Kind, index: usize) -> Self {
        Self {
            kind,
            index,
            variant: 0,
        }
    }
}

/// The mark by which a client tells what a body is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) revision: u32,
    pub(crate) variant: usize,
}

impl Mark {
    /// Writes the mark as it stands in a body.
    pub(crate) fn text(self) -> String {
        match self.variant {
            0 => format!("rev-{}", self.revision),
            some => format!("rev-{}-v{some}", self.revision),
        }
    }

    /// Parses a mark; `None` if the text is not one of the tool's.
    pub(crate) fn parse(words: &[u8]) -> Option<Self> {
        let words = std::str::from_utf8(words).ok()?.strip_prefix("rev-")?;
        let (revision, variant) = words.split_once("-v").unwrap_or((words, "0"));
        Some(Self {
            revision: revision.parse().ok()?,
            variant: variant.parse().ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_read() {
        for (revision, variant, words) in [(7, 0, "rev-7"), (12, 3, "rev-12-v3")] {
            let said = Mark { revision, variant };
            assert_eq!(said.text(), words);
            assert_eq!(Mark::parse(words.as_bytes()), Some(said));
        }
        for other in ["", "rev-", "rev-x", "rev-1-v", "rev-1-v2-v3", "ver-1"] {
            assert_eq!(Mark::parse(other.as_bytes()), None, "{other}");
        }
    }
}
