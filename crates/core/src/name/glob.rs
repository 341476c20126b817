//! Collections by pattern (TP1): `xdstp://authority/type/dir/*?context`.
//!
//! A glob collects the resources one level below its directory that have
//! exactly its context parameters, in any order (S63). TP1 says that they share
//! a directory, and not how deep they may be; Envoy finds the glob of a
//! resource by replacing the last component of its id, and ignores a deeper
//! member. So a name belongs to one glob, and [`Glob::of`] finds it.

use std::fmt;
use std::sync::Arc;

use super::{Name, NameError, XdstpName};

/// A glob collection in its canonical spelling.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Glob(Arc<str>);

impl Glob {
    /// Reads any spelling of a glob.
    ///
    /// # Errors
    ///
    /// When the text is not a structured name, or does not end in `/*`.
    pub fn parse(text: &str) -> Result<Self, NameError> {
        Self::from_xdstp(&XdstpName::parse(text)?).ok_or(NameError::NotGlob)
    }

    /// Makes the glob of a structured name; `None` if it is none.
    pub(super) fn from_xdstp(name: &XdstpName) -> Option<Self> {
        name.is_glob().then(|| Self(name.to_string().into()))
    }

    /// Returns the one glob that collects `name`; `None` for an opaque name, or
    /// for a name that is itself a glob.
    #[must_use]
    pub fn of(name: &Name) -> Option<Self> {
        name.xdstp().filter(|parts| !parts.is_glob())?;
        let (dir, _, context) = split_parts(name.as_str());
        Some(Self(format!("{dir}*{context}").into()))
    }

    /// Returns whether the glob collects `name` (S63).
    ///
    /// ```
    /// use trunkline_core::name::{Glob, Name};
    ///
    /// let glob = Glob::parse("xdstp://a/some.Type/fleet/*?env=prod&az=1")?;
    /// assert!(glob.matches(&Name::new("xdstp://a/some.Type/fleet/c1?az=1&env=prod")));
    /// assert!(!glob.matches(&Name::new("xdstp://a/some.Type/fleet/c1")));
    /// assert!(!glob.matches(&Name::new("xdstp://a/some.Type/fleet/b/c1?az=1&env=prod")));
    /// # Ok::<(), trunkline_core::name::NameError>(())
    /// ```
    #[must_use]
    pub fn matches(&self, name: &Name) -> bool {
        let (dir, _, context) = split_parts(&self.0);
        let (name_dir, leaf, name_context) = split_parts(name.as_str());
        let looks_like_member = dir == name_dir && context == name_context && leaf != "*";
        // The parse comes last, as it is expensive: it tells a member from a
        // malformed name that only looks like one.
        looks_like_member && name.xdstp().is_some()
    }

    /// Returns the canonical spelling.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Splits a canonical name: the directory with its last `/`, the last
/// component, and the context with its `?`. The first `?` begins the context.
fn split_parts(text: &str) -> (&str, &str, &str) {
    let (path, context) = text.split_at(text.find('?').unwrap_or(text.len()));
    let (dir, leaf) = path.split_at(path.rfind('/').map_or(0, |slash| slash + 1));
    (dir, leaf, context)
}

impl fmt::Display for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s63_a_glob_has_one_spelling() {
        let glob = Glob::parse("xdstp://a/t/x/%2A?b=2&a=1").unwrap();
        assert_eq!(glob.as_str(), "xdstp://a/t/x/*?a=1&b=2");
        assert_eq!(glob.to_string(), glob.as_str());
        assert_eq!(format!("{glob:?}"), r#""xdstp://a/t/x/*?a=1&b=2""#);
        assert_eq!(Ok(glob), Glob::parse("xdstp://a/t/x/*?a=1&b=2"));
    }

    #[test]
    fn only_a_last_component_of_one_star_is_a_glob() {
        for text in ["xdstp://a/t/x", "xdstp://a/t/x*", "xdstp://a/t/*/x"] {
            assert_eq!(Glob::parse(text), Err(NameError::NotGlob), "{text}");
        }
        assert_eq!(Glob::parse("*"), Err(NameError::NotXdstp));
        assert_eq!(Glob::parse("x/*"), Err(NameError::NotXdstp));
        assert!(Glob::parse("xdstp://a/t/*").is_ok());
    }

    #[test]
    fn s63_members_are_one_level_below_with_equal_context() {
        for (glob, name, expected) in [
            ("xdstp://a/t/*", "xdstp://a/t/x", true),
            ("xdstp://a/t/*", "xdstp://a/t/x/y", false),
            ("xdstp://a/t/x/*", "xdstp://a/t/x/y", true),
            ("xdstp://a/t/x/*", "xdstp://a/t/x/y/z", false),
            ("xdstp://a/t/x/*", "xdstp://a/t/x", false),
            ("xdstp://a/t/x/*", "xdstp://a/t/x/", true),
            ("xdstp://a/t/x/*", "xdstp://b/t/x/y", false),
            ("xdstp://a/t/x/*", "xdstp://a/u/x/y", false),
            ("xdstp://a/t/x/*", "xdstp://a/t/x/y?k=v", false),
            ("xdstp://a/t/x/*?k=v", "xdstp://a/t/x/y", false),
            ("xdstp://a/t/x/*?k=v", "xdstp://a/t/x/y?k=w", false),
            ("xdstp://a/t/x/*?k=v&l=w", "xdstp://a/t/x/y?l=w&k=v", true),
            ("xdstp://a/t/x/*?k=/", "xdstp://a/t/x/y?k=/", true),
            // A glob or a malformed name is not a member.
            ("xdstp://a/t/x/*", "xdstp://a/t/x/*", false),
            ("xdstp://a/t/x/*", "xdstp://a/t/x/%zz", false),
            ("xdstp://a/t/x/*", "xdstp://a/t/x/y#z", false),
            ("xdstp://a/t/*", "y", false),
        ] {
            let (glob, name) = (Glob::parse(glob).unwrap(), Name::new(name));
            assert_eq!(glob.matches(&name), expected, "{glob} {name}");
            assert_eq!(Glob::of(&name) == Some(glob), expected, "{name}");
        }
    }
}
