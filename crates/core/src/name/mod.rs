//! Names of resources as peers write them.

use std::fmt;
use std::sync::Arc;

/// The canonical spelling of a resource's name.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(Arc<str>);

impl Name {
    /// Takes a name that is already canonical.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self(text.into())
    }

    /// The canonical spelling.
    #[must_use]
    pub fn as_str(&self) -> &str {
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

/// stub
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Glob(Name);
impl Glob {
    /// stub
    #[must_use]
    pub fn matches(&self, _n: &Name) -> bool {
        false
    }
    /// stub
    #[must_use]
    pub fn of(_n: &Name) -> Option<Glob> {
        None
    }
}
/// stub
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ask {
    /// stub
    Wildcard,
    /// stub
    Glob(Glob),
    /// stub
    Name(Name),
}
/// stub
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("x")]
pub struct NameError;
impl Ask {
    /// stub
    pub fn parse(t: &str, max: usize) -> Result<Ask, NameError> {
        if t.is_empty() || t.len() > max {
            return Err(NameError);
        }
        Ok(if t == "*" {
            Ask::Wildcard
        } else {
            Ask::Name(Name::new(t))
        })
    }
}
