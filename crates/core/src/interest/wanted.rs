//! One thing that can be asked for, and which names it reaches.
//!
//! The only place that reads `*` and globs out of a string. Not the owner of
//! names: their spelling is settled before they come here.

use crate::message::Locator;
use crate::name::Name;

/// One thing that can be asked for. Sorts as it is listed on the wire: `*`,
/// globs, names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Wanted {
    /// The whole type.
    Wildcard,
    /// The members of one `xdstp://` directory (TP1).
    Glob(Name),
    /// One resource.
    Name(Name),
}

impl Wanted {
    /// Reads what stands on the wire. The empty string is a name like any
    /// other (S27).
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let name = Name::new(text);
        match text {
            "*" => Self::Wildcard,
            _ if glob_over(&name).as_ref() == Some(&name) => Self::Glob(name),
            _ => Self::Name(name),
        }
    }

    /// What stands on the wire.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Wildcard => "*",
            Self::Glob(name) | Self::Name(name) => name.as_str(),
        }
    }
}

impl From<&Wanted> for Locator {
    fn from(wanted: &Wanted) -> Self {
        wanted.as_str().into()
    }
}

/// The one glob that reaches this name: its last segment gives way to `*`, its
/// parameters stay, since members carry the same ones. Opaque names have none.
pub(super) fn glob_over(name: &Name) -> Option<Name> {
    let text = name.as_str();
    let rest = text.strip_prefix("xdstp://")?;
    let path = &rest[..rest.find(['?', '#']).unwrap_or(rest.len())];
    // Authority and type are not part of the directory.
    path.splitn(3, '/').nth(2)?;
    let slash = text.len() - rest.len() + path.rfind('/')?;
    let tail = text.len() - rest.len() + path.len();
    Some(Name::new(&format!("{}/*{}", &text[..slash], &text[tail..])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_read_as_what_it_asks_for() {
        let name = |text| Wanted::Name(Name::new(text));
        let glob = |text| Wanted::Glob(Name::new(text));
        for (text, wanted) in [
            ("*", Wanted::Wildcard),
            ("", name("")),
            ("a/*", name("a/*")),
            ("xdstp://a/T/*", glob("xdstp://a/T/*")),
            ("xdstp://a/T/d/*?k=v", glob("xdstp://a/T/d/*?k=v")),
            ("xdstp://a/T/d/*x", name("xdstp://a/T/d/*x")),
            ("xdstp://a/*", name("xdstp://a/*")),
            ("xdstp:///T/*", glob("xdstp:///T/*")),
        ] {
            assert_eq!(Wanted::parse(text), wanted);
            assert_eq!(Wanted::parse(text).as_str(), text);
            assert_eq!(Locator::from(&wanted), text.into());
        }
    }

    #[test]
    fn a_name_lies_under_one_glob() {
        for (name, glob) in [
            ("xdstp://a/T/x", Some("xdstp://a/T/*")),
            ("xdstp://a/T/d/x?k=a/b", Some("xdstp://a/T/d/*?k=a/b")),
            ("xdstp://a/T/d/x#e/f", Some("xdstp://a/T/d/*#e/f")),
            ("xdstp://a/T", None),
            ("a/b/c/d", None),
        ] {
            assert_eq!(glob_over(&Name::new(name)), glob.map(Name::new), "{name}");
        }
    }
}
