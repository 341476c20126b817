//! The contents of the server: resources, their revisions, and when each was
//! put.

mod hosts;
mod kind;
mod make;
mod place;
mod truth;
mod variants;

pub(crate) use hosts::{Form, write as write_hosts};
pub use kind::Kind;
pub(crate) use make::{Recipe, same};
pub(crate) use place::{Mark, Place};
pub(crate) use truth::Truth;
pub(crate) use variants::{KEY, Variants, category_name, params};
