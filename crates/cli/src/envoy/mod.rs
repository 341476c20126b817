//! A real Envoy beside this program: where it is installed, and what it says of
//! resources.
//!
//! | file | concern |
//! |---|---|
//! | `find` | the Envoy that a flag names, or that is installed |
//! | `part` | a resource, cut off from every server, as a part of a bootstrap |
//! | `bootstrap` | a bootstrap of some parts |
//! | `program` | `envoy --mode validate`, within a time |
//! | `words` | why Envoy rejects a bootstrap, out of its log |
//! | `views` | which resources clients get together |
//! | `judge` | the resources that Envoy rejects, found one by one |

mod bootstrap;
mod find;
mod judge;
mod part;
mod program;
mod views;
mod words;

pub(crate) use self::find::find_envoy;
pub(crate) use self::judge::{Judgement, judge};
