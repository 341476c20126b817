//! Names of resources: opaque names, kept byte for byte, and structured names
//! (`xdstp://`, TP1), kept in one canonical spelling, so that names are
//! compared, ordered and hashed as text.
//!
//! This module does not know which names exist, nor who may subscribe to them.

mod error;
mod glob;
mod percent;
mod selector;
mod xdstp;

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

pub use error::NameError;
pub use glob::Glob;
pub use selector::Selector;
pub use xdstp::XdstpName;

/// The canonical spelling of a resource's name.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(Arc<str>);

impl Name {
    /// Returns the name that a client means by `text`. A well-formed structured
    /// name is put into its canonical spelling (C11); any other text is opaque.
    /// A malformed structured name is opaque, too: nothing is stored under it,
    /// so its subscribers are told that it does not exist.
    #[must_use]
    pub fn new(text: &str) -> Self {
        match XdstpName::parse(text) {
            Ok(name) => Self::from(&name),
            Err(_) => Self::opaque(text),
        }
    }

    /// Makes a name of a text that is known to have no other spelling.
    fn opaque(text: &str) -> Self {
        Self(text.into())
    }

    /// Returns the parts of a structured name; `None` if the name is opaque.
    #[must_use]
    pub fn xdstp(&self) -> Option<XdstpName> {
        XdstpName::parse(&self.0).ok()
    }

    /// Returns the canonical spelling.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Name {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl From<&XdstpName> for Name {
    fn from(name: &XdstpName) -> Self {
        Self(name.to_string().into())
    }
}

impl AsRef<str> for Name {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

/// Looks a name up by a text that is already canonical.
impl Borrow<str> for Name {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn opaque_names_are_kept_byte_for_byte() {
        for text in ["", "*", "a/b?c=1&a=2", "%7e", "xdstp:/a", "é\0", " x "] {
            assert_eq!(Name::new(text).as_str(), text);
            assert_eq!(Name::new(text).xdstp(), None);
        }
    }

    #[test]
    fn c11_structured_names_are_one_whatever_their_spelling() {
        let name = Name::new("xdstp://a/t/x?b=2&a=1");
        assert_eq!(name, Name::from("xdstp://a/t/%78?a=1&b=2"));
        assert_eq!(name.as_str(), "xdstp://a/t/x?a=1&b=2");
        assert_eq!(name.xdstp().unwrap().id(), "x");
    }

    #[test]
    fn a_malformed_structured_name_is_opaque() {
        for text in ["xdstp://", "xdstp://a/t/%zz?b&a", "xdstp://a/t/x#y"] {
            assert_eq!(Name::new(text).as_str(), text);
        }
    }

    #[test]
    fn is_its_text() {
        let name = Name::new("a\"b");
        assert_eq!(name.to_string(), "a\"b");
        assert_eq!(format!("{name:?}"), r#""a\"b""#);
        assert_eq!(AsRef::<str>::as_ref(&name), "a\"b");
        assert!(HashSet::from([name]).contains("a\"b"));
    }
}
