//! Contents on their way to a server: decoded, and checked.
//!
//! ```text
//! a file, a body ── decode ──▶ Document: resources with their places
//!                         └──▶ Finding: place, field, cause, remedy
//! ```
//!
//! | file | concern |
//! |---|---|
//! | `decode`, `binary` | text and binary documents to resources |
//! | `document`, `place` | the resources of a document, and their places |
//! | `index`, `domains`, `slots` | names and domains over all documents; contradictions |
//! | `finding` | mistakes and warnings |

mod binary;
mod decode;
mod document;
mod domains;
mod finding;
mod index;
mod place;
mod slots;

pub use decode::{Decoded, Form, decode};
pub use document::{Document, Item};
pub use finding::{Fault, Finding, MOST_FINDINGS, Unserved};
pub use index::{Clash, Index};
pub use place::{At, Place};
pub use slots::Key;
