//! One domain of a virtual host, and the hosts that it matches.

use std::fmt;

/// A domain as Envoy reads it. A `*` that is not at one of the ends is an
/// ordinary character.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Domain<'a> {
    /// One host.
    Exact(&'a str),
    /// `*.foo.com`: every longer host that ends like this.
    Suffix(&'a str),
    /// `foo.*`: every longer host that begins like this.
    Prefix(&'a str),
    /// `*`: every host.
    Any,
}

impl<'a> Domain<'a> {
    /// Parses a domain, which may be any text. A text with `*` at both ends is
    /// a suffix.
    #[must_use]
    pub fn of(text: &'a str) -> Self {
        if text == "*" {
            Self::Any
        } else if let Some(suffix) = text.strip_prefix('*') {
            Self::Suffix(suffix)
        } else if let Some(prefix) = text.strip_suffix('*') {
            Self::Prefix(prefix)
        } else {
            Self::Exact(text)
        }
    }

    /// Returns whether the domain can match more than one host.
    #[must_use]
    pub(crate) fn is_wildcard(self) -> bool {
        !matches!(self, Self::Exact(_))
    }

    /// Returns whether the domain is a prefix.
    #[must_use]
    pub(crate) fn is_prefix(self) -> bool {
        matches!(self, Self::Prefix(_))
    }

    /// Returns whether the domain matches a host, which is in lower case. A
    /// wildcard stands for at least one character.
    #[must_use]
    pub(crate) fn matches(self, host: &str) -> bool {
        match self {
            Self::Exact(text) => text == host,
            Self::Suffix(text) => host.len() > text.len() && host.ends_with(text),
            Self::Prefix(text) => host.len() > text.len() && host.starts_with(text),
            Self::Any => true,
        }
    }
}

impl fmt::Display for Domain<'_> {
    /// Writes the text that [`Domain::of`] reads.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact(text) => write!(f, "{text}"),
            Self::Suffix(text) => write!(f, "*{text}"),
            Self::Prefix(text) => write!(f, "{text}*"),
            Self::Any => write!(f, "*"),
        }
    }
}

/// The domains of one virtual host, in lower case. They are one string, since
/// there may be a million virtual hosts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Domains(Box<str>);

impl Domains {
    /// Makes a list of domains, in this order and in lower case. They are kept
    /// as lines: a line break in one would make two of it.
    pub fn new(domains: impl IntoIterator<Item = impl AsRef<str>>) -> Self {
        let mut text = String::new();
        for domain in domains {
            if !text.is_empty() {
                text.push('\n');
            }
            text.extend(
                domain
                    .as_ref()
                    .chars()
                    .map(|char| char.to_ascii_lowercase()),
            );
        }
        Self(text.into())
    }

    /// Returns whether there are no domains.
    #[must_use]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns all domains, in the author's order.
    pub fn iter(&self) -> impl Iterator<Item = Domain<'_>> + Clone {
        self.0.lines().map(Domain::of)
    }

    /// Returns the domains that match one host each.
    pub(crate) fn exact(&self) -> impl Iterator<Item = &str> + Clone {
        self.iter().filter_map(|domain| match domain {
            Domain::Exact(text) => Some(text),
            _ => None,
        })
    }

    /// Returns whether one of the domains can match more than one host.
    #[must_use]
    pub(crate) fn have_wildcards(&self) -> bool {
        self.0.contains('*') && self.iter().any(Domain::is_wildcard)
    }

    /// Returns whether this is one of the domains.
    #[must_use]
    pub fn contains(&self, domain: Domain<'_>) -> bool {
        self.iter().any(|other| other == domain)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn domains_are_read_as_envoy_reads_them() {
        let table = [
            ("foo.com", Domain::Exact("foo.com")),
            ("a.*.com", Domain::Exact("a.*.com")),
            ("*", Domain::Any),
            ("*.foo.com", Domain::Suffix(".foo.com")),
            ("*-bar.foo.com", Domain::Suffix("-bar.foo.com")),
            ("*.foo.*", Domain::Suffix(".foo.*")),
            ("foo.*", Domain::Prefix("foo.")),
            ("q.com:*", Domain::Prefix("q.com:")),
        ];
        for (text, domain) in table {
            assert_eq!(Domain::of(text), domain);
            assert_eq!(domain.to_string(), text);
        }
    }

    #[test]
    fn a_wildcard_stands_for_something() {
        assert!(Domain::of("*.foo.com").matches("a.foo.com"));
        assert!(!Domain::of("*.foo.com").matches(".foo.com"));
        assert!(!Domain::of("*.foo.com").matches("foo.com"));
        assert!(Domain::of("foo.*").matches("foo.com"));
        assert!(!Domain::of("foo.*").matches("foo."));
        assert!(Domain::of("q.com:*").matches("q.com:8080"));
        assert!(Domain::Any.matches(""));
        assert!(!Domain::of("q.com").matches("q.com:8080"));
    }

    #[test]
    fn domains_are_kept_in_lower_case_and_in_order() {
        let domains = Domains::new(["UP.com", "*.b", "a"]);
        assert!(domains.have_wildcards());
        assert!(domains.contains(Domain::Suffix(".b")));
        assert_eq!(domains.exact().collect::<Vec<_>>(), ["up.com", "a"]);
        assert_eq!(domains.iter().count(), 3);
        assert!(!Domains::new(["a.*.b"]).have_wildcards());
        assert!(Domains::new([""; 0]).is_empty());
        assert_eq!(Domains::default().iter().count(), 0);
    }
}
