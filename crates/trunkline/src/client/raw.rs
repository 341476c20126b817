//! A resource as bytes, for those who do not know its type.

/// A resource of any type: see [`Loaded::resource`](super::Loaded::resource)
/// for its bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Raw;
