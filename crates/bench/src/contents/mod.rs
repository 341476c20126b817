//! What the server is given: resources, their revisions, and what was put when.

mod hosts;
mod kind;
mod make;
mod truth;

pub(crate) use hosts::{Form, write as write_hosts};
pub use kind::Kind;
pub use make::Recipe;
pub(crate) use make::same;
pub(crate) use truth::Truth;
