//! What the server is given: resources, their revisions, and what was put when.

mod kind;
mod make;
mod truth;

pub use kind::Kind;
pub use make::Recipe;
pub(crate) use make::same;
pub(crate) use truth::Truth;
