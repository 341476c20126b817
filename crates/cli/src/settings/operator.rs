//! Names of operators in their certificates: `spiffe://example/ops/*`,
//! `dns:ops.example`, `cn:ops`.

use std::fmt;
use std::str::FromStr;

use trunkline::Identity;
use trunkline::node::Pattern;

use super::value::{Arity, BadValue, Field};

/// The names of one kind that a pattern matches. The kind is a part of it: an
/// authority that verifies names of one kind may not verify those of another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OperatorName {
    kind: Kind,
    pattern: Pattern,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Uri,
    Dns,
    CommonName,
}

impl OperatorName {
    /// Returns whether a client has this name: its identity is of the same
    /// kind, and matches the pattern.
    pub(crate) fn matches(&self, identity: &Identity) -> bool {
        let kind = match identity {
            Identity::Uri(_) => Kind::Uri,
            Identity::Dns(_) => Kind::Dns,
            Identity::CommonName(_) => Kind::CommonName,
            _ => return false,
        };
        kind == self.kind && self.pattern.matches(identity.as_str())
    }
}

impl FromStr for OperatorName {
    type Err = BadValue;

    /// Parses the name in a certificate. The word before the colon says which
    /// kind of name it is; a URI has no such word.
    fn from_str(text: &str) -> Result<Self, BadValue> {
        let bad_value = || {
            let expected =
                "the name in a certificate: spiffe://..., or another URI, dns:NAME or cn:NAME";
            BadValue::new(text, expected)
        };
        let (kind, name) = match text.split_once(':') {
            Some(("dns", name)) => (Kind::Dns, name),
            Some(("cn", name)) => (Kind::CommonName, name),
            Some((_, path)) if path.starts_with("//") => (Kind::Uri, text),
            _ => return Err(bad_value()),
        };
        let pattern = name.parse().map_err(|_| bad_value())?;
        Ok(Self { kind, pattern })
    }
}

impl fmt::Display for OperatorName {
    /// Writes the name in the form that [`Self::from_str`] parses.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            Kind::Uri => "",
            Kind::Dns => "dns:",
            Kind::CommonName => "cn:",
        };
        write!(f, "{kind}{}", self.pattern)
    }
}

impl Field for Vec<OperatorName> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_of_a_kind() {
        let uri = |name: &str| Identity::Uri(name.to_owned());
        let dns = |name: &str| Identity::Dns(name.to_owned());
        let common = |name: &str| Identity::CommonName(name.to_owned());
        for (name, who, expected) in [
            ("spiffe://example/ops", uri("spiffe://example/ops"), true),
            (
                "spiffe://example/ops/*",
                uri("spiffe://example/ops/a"),
                true,
            ),
            ("spiffe://example/ops/*", uri("spiffe://evil/ops/a"), false),
            ("dns:ops.example", dns("ops.example"), true),
            ("dns:ops.example", common("ops.example"), false),
            ("dns:*.example", dns("ops.example"), true),
            ("cn:ops", common("ops"), true),
            ("cn:ops", uri("ops"), false),
            ("cn:token", Identity::Token, false),
        ] {
            let parsed: OperatorName = name.parse().unwrap();
            assert_eq!(parsed.to_string(), name);
            assert_eq!(parsed.matches(&who), expected, "{name} {who:?}");
        }
        for bad in ["", "ops.example", "dns:", "cn:", "urn:x"] {
            assert!(bad.parse::<OperatorName>().is_err(), "{bad}");
        }
    }
}
