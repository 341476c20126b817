//! Structured names (TP1): `xdstp://authority/type/id?context`.
//!
//! Two names are equal when their parts are, whatever the order of their
//! context parameters. So a name is parsed into its decoded parts and written
//! in one spelling (C11). Where TP1 leaves a choice, it is made as Envoy makes
//! it:
//!
//! * a `/` in an id is never encoded, so `a%2Fb` and `a/b` are one id;
//! * context parameters are ordered by their encoded text, `=` included, so
//!   `a.b=1` comes before `a=1`;
//! * a parameter without `=` has an empty value, and an empty parameter is
//!   ignored.
//!
//! Of two parameters with one key the last is kept.

use std::fmt;

use super::NameError;
use super::percent::{self, AUTHORITY, CONTEXT, ID};

/// The scheme of structured names.
pub(super) const SCHEME: &str = "xdstp://";

/// A structured name in its decoded parts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct XdstpName {
    authority: String,
    // Not empty, and never encoded.
    resource_type: String,
    // Not empty.
    id: String,
    // In the order of the encoded text; keys are unique and not empty.
    context: Vec<(String, String)>,
}

impl XdstpName {
    /// Returns the name with these decoded parts. The last of two equal keys
    /// counts (C11).
    ///
    /// # Errors
    ///
    /// When the type, the id or a key is empty, or the type has a wrong
    /// character.
    pub fn new<K, V>(
        authority: &str,
        resource_type: &str,
        id: &str,
        context: impl IntoIterator<Item = (K, V)>,
    ) -> Result<Self, NameError>
    where
        K: Into<String>,
        V: Into<String>,
    {
        check_type(resource_type, 0)?;
        if id.is_empty() {
            return Err(NameError::NoId);
        }

        let context: Vec<(String, String)> = context
            .into_iter()
            .map(|(key, value)| (key.into(), value.into()))
            .collect();
        if context.iter().any(|(key, _)| key.is_empty()) {
            return Err(NameError::NoKey { at: 0 });
        }

        Ok(Self {
            authority: authority.to_owned(),
            resource_type: resource_type.to_owned(),
            id: id.to_owned(),
            context: sort_context(context),
        })
    }

    /// Parses any spelling of a structured name. The name of a collection, a
    /// glob, is parsed too; [`Glob`](super::Glob) tells it from others.
    ///
    /// ```
    /// use trunkline_core::name::XdstpName;
    ///
    /// let name = XdstpName::parse("xdstp://a.example/some.Type/x%2fy?b=2&a=1")?;
    /// assert_eq!(name.id(), "x/y");
    /// assert_eq!(name.to_string(), "xdstp://a.example/some.Type/x/y?a=1&b=2");
    /// # Ok::<(), trunkline_core::name::NameError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// When the text has another scheme, has no type or no id, has a type with
    /// a wrong character, has a context parameter without a key, or has an
    /// escape that is broken or does not decode to UTF-8. A `#` anywhere is
    /// refused: directives are never on the wire. The error says where.
    pub fn parse(text: &str) -> Result<Self, NameError> {
        let remainder = text.strip_prefix(SCHEME).ok_or(NameError::NotXdstp)?;
        if let Some(offset) = text.find('#') {
            return Err(NameError::Directives { at: offset });
        }

        let (remainder, query) = remainder.split_once('?').unwrap_or((remainder, ""));
        let (authority, path) = remainder.split_once('/').ok_or(NameError::NoResourceType)?;
        let (resource_type, id) = path.split_once('/').unwrap_or((path, ""));
        // Offsets in the text, for errors.
        let type_offset = SCHEME.len() + authority.len() + 1;
        let id_offset = type_offset + resource_type.len() + 1;
        let query_offset = text.len() - query.len();

        check_type(resource_type, type_offset)?;
        if id.is_empty() {
            return Err(NameError::NoId);
        }
        Ok(Self {
            authority: percent::decode(authority, SCHEME.len())?.into_owned(),
            resource_type: resource_type.to_owned(),
            id: percent::decode(id, id_offset)?.into_owned(),
            context: parse_context(query, query_offset)?,
        })
    }

    /// Returns the authority; it may be empty (C10).
    #[must_use]
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// Returns the type without `type.googleapis.com/`.
    #[must_use]
    pub fn resource_type(&self) -> &str {
        &self.resource_type
    }

    /// Returns the path below the type.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the context parameters, in the order of their encoded text.
    #[must_use]
    pub fn context(&self) -> &[(String, String)] {
        &self.context
    }

    /// Returns whether this is the name of a collection, not of one resource.
    pub(super) fn is_glob(&self) -> bool {
        self.id == "*" || self.id.ends_with("/*")
    }
}

impl fmt::Display for XdstpName {
    /// Writes the canonical spelling.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::from(SCHEME);
        percent::encode_into(&mut text, &self.authority, AUTHORITY);
        text.push('/');
        text.push_str(&self.resource_type);
        text.push('/');
        percent::encode_into(&mut text, &self.id, ID);
        for (index, (key, value)) in self.context.iter().enumerate() {
            text.push(if index == 0 { '?' } else { '&' });
            percent::encode_into(&mut text, key, CONTEXT);
            text.push('=');
            percent::encode_into(&mut text, value, CONTEXT);
        }
        f.write_str(&text)
    }
}

/// Checks that a type is not empty and has no forbidden character. `offset` is
/// its offset in the whole name, for the error.
fn check_type(resource_type: &str, offset: usize) -> Result<(), NameError> {
    if resource_type.is_empty() {
        return Err(NameError::NoResourceType);
    }
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    match resource_type.bytes().position(|byte| !is_allowed(byte)) {
        Some(nth) => Err(NameError::BadResourceType { at: offset + nth }),
        None => Ok(()),
    }
}

/// Parses context parameters, which follow the `?`, and sorts them. An empty
/// parameter is ignored, and one without a key is an error. `offset` is that of
/// `query` in the whole name, for the error.
fn parse_context(query: &str, mut offset: usize) -> Result<Vec<(String, String)>, NameError> {
    let mut context = Vec::new();
    for param in query.split('&') {
        if !param.is_empty() {
            let (key, value) = param.split_once('=').unwrap_or((param, ""));
            if key.is_empty() {
                return Err(NameError::NoKey { at: offset });
            }
            let value_offset = offset + key.len() + 1;
            let key = percent::decode(key, offset)?.into_owned();
            let value = percent::decode(value, value_offset)?.into_owned();
            context.push((key, value));
        }
        offset += param.len() + 1;
    }
    Ok(sort_context(context))
}

/// Sorts parameters by the encoded key with its `=`, as Envoy does. Only the
/// last of several parameters with one key is kept (C11).
fn sort_context(mut context: Vec<(String, String)>) -> Vec<(String, String)> {
    context.sort_by_cached_key(|(key, _)| {
        let mut encoded_key = String::new();
        percent::encode_into(&mut encoded_key, key, CONTEXT);
        encoded_key.push('=');
        encoded_key
    });

    // The sort keeps the order of equal keys; the last of them is swapped into
    // the place of the first.
    context.dedup_by(|later, earlier| {
        let is_same_key = later.0 == earlier.0;
        if is_same_key {
            std::mem::swap(later, earlier);
        }
        is_same_key
    });
    context
}

#[cfg(test)]
mod tests {
    use super::*;

    fn canonical(text: &str) -> Result<String, NameError> {
        XdstpName::parse(text).map(|name| name.to_string())
    }

    #[test]
    fn c11_one_spelling() {
        for (text, spelling) in [
            ("xdstp://a/t/x", "xdstp://a/t/x"),
            ("xdstp:///t/x", "xdstp:///t/x"),
            ("xdstp://a/t/x?", "xdstp://a/t/x"),
            ("xdstp://a/t/x?b=2&a=1", "xdstp://a/t/x?a=1&b=2"),
            ("xdstp://a/t/x?a=1&b=2&a=3", "xdstp://a/t/x?a=3&b=2"),
            ("xdstp://a/t/x?a=3&a=2&a=1", "xdstp://a/t/x?a=1"),
            ("xdstp://a/t/x?a=1&a.b=2", "xdstp://a/t/x?a.b=2&a=1"),
            ("xdstp://a/t/x?b&a", "xdstp://a/t/x?a=&b="),
            ("xdstp://a/t/x?&b=1&&a=2&", "xdstp://a/t/x?a=2&b=1"),
            ("xdstp://a/t/x?a=b=c", "xdstp://a/t/x?a=b%3Dc"),
            ("xdstp://a/t/x?a=/?:+", "xdstp://a/t/x?a=/?:+"),
            ("xdstp://a%2fb:1/t/x%2fy:z", "xdstp://a%2Fb:1/t/x/y%3Az"),
            ("xdstp://a/t//x/", "xdstp://a/t//x/"),
            ("xdstp://a/t/%7e~%41 é", "xdstp://a/t/%7E%7EA %C3%A9"),
        ] {
            assert_eq!(canonical(text).as_deref(), Ok(spelling), "{text}");
            assert_eq!(canonical(spelling).as_deref(), Ok(spelling));
        }
    }

    #[test]
    fn says_what_is_wrong_and_where() {
        for (text, error) in [
            ("", NameError::NotXdstp),
            ("xdstp:/a/t/x", NameError::NotXdstp),
            ("XDSTP://a/t/x", NameError::NotXdstp),
            ("xdstp://", NameError::NoResourceType),
            ("xdstp://a", NameError::NoResourceType),
            ("xdstp://a/", NameError::NoResourceType),
            ("xdstp://a//x", NameError::NoResourceType),
            ("xdstp://a?b/t/x", NameError::NoResourceType),
            ("xdstp://a/t%41/x", NameError::BadResourceType { at: 11 }),
            ("xdstp://a/t", NameError::NoId),
            ("xdstp://a/t/", NameError::NoId),
            ("xdstp://a/t/?a=1", NameError::NoId),
            ("xdstp://%/t/x", NameError::BadEscape { at: 8 }),
            ("xdstp://a/t/x%", NameError::BadEscape { at: 13 }),
            ("xdstp://a/t/%FF", NameError::NotUtf8 { at: 12 }),
            ("xdstp://a/t/x?=1", NameError::NoKey { at: 14 }),
            ("xdstp://a/t/x?a=1&=1", NameError::NoKey { at: 18 }),
            ("xdstp://a/t/x?a=1&b%=1", NameError::BadEscape { at: 19 }),
            ("xdstp://a/t/x?a=1&b=%", NameError::BadEscape { at: 20 }),
            ("xdstp://a/t/x#alt=y", NameError::Directives { at: 13 }),
        ] {
            assert_eq!(XdstpName::parse(text), Err(error), "{text}");
        }
    }

    #[test]
    fn parts_are_decoded() {
        let name = XdstpName::parse("xdstp://a%23/v3.T_a-b/x%3F/y?k%26=v%3D");
        let name = name.unwrap();
        assert_eq!(name.authority(), "a#");
        assert_eq!(name.resource_type(), "v3.T_a-b");
        assert_eq!(name.id(), "x?/y");
        assert_eq!(name.context(), [("k&".to_owned(), "v=".to_owned())]);
        let same = XdstpName::new("a#", "v3.T_a-b", "x?/y", [("k&", "v=")]);
        assert_eq!(same.as_ref(), Ok(&name));
    }

    #[test]
    fn parts_are_checked() {
        const NONE: [(&str, &str); 0] = [];
        let no_type = XdstpName::new("a", "", "x", NONE);
        assert_eq!(no_type, Err(NameError::NoResourceType));
        let bad_type = XdstpName::new("a", "t/", "x", NONE);
        assert_eq!(bad_type, Err(NameError::BadResourceType { at: 1 }));
        assert_eq!(XdstpName::new("a", "t", "", NONE), Err(NameError::NoId));
        let no_key = XdstpName::new("a", "t", "x", [("k", "v"), ("", "v")]);
        assert_eq!(no_key, Err(NameError::NoKey { at: 0 }));
    }
}
