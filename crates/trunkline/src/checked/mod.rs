//! Contents on their way to a server: decoded, checked, and settled with each
//! other.
//!
//! ```text
//! a file, a body ── decode ──▶ Document: resources with their places
//!                         └──▶ Finding: place, field, cause, remedy
//!
//! edits of an origin ── settle ──▶ changes: one transaction
//!       with all of ContentSet └──▶ rejections, warnings
//! ```
//!
//! | file | concern |
//! |---|---|
//! | `decode`, `binary` | text and binary documents to resources |
//! | `secrets` | the files that secrets name; certificates with their keys |
//! | `document`, `place` | the resources of a document, and their places |
//! | `set`, `settle` | all contents; which edits can be accepted together |
//! | `edit`, `plan`, `unit`, `origins` | what is written as one, what it replaces, and whose it is |
//! | `index`, `domains`, `slots` | names and domains of all items; contradictions |
//! | `references`, `locate`, `effort` | dangling references, their places, and the names that are meant |
//! | `coverage` | values that no variant serves |
//! | `rows` | contents as a store keeps them |
//! | `diff` | the difference between what edits remove and what they add |
//! | `guard` | changes that remove so much that they are held |
//! | `finding`, `order` | mistakes and warnings, and their order |

mod binary;
mod coverage;
mod decode;
mod diff;
mod document;
mod domains;
mod edit;
mod effort;
mod finding;
mod guard;
mod index;
mod locate;
mod order;
mod origins;
mod place;
mod plan;
mod references;
mod rows;
mod secrets;
mod set;
mod settle;
mod slots;
#[cfg(test)]
mod tests;
mod unit;
mod warnings;

pub use decode::{
    Decoded, FirstOfPart, Form, decode, decode_with_files, find_contradictions, warm_up,
};
pub use document::{Document, Item};
pub use edit::{Edit, Removal, ResourceEdit};
pub use finding::{Fault, Finding, MOST_FINDINGS, Unserved};
pub use guard::Guard;
pub use locate::{has_references, locate_references};
pub use order::sort_findings;
pub use place::{At, Place};
pub(crate) use rows::{AcceptedChanges, Keeping};
pub use rows::{Row, RowChange, RowEdit, RowKey};
pub use secrets::{SecretFault, SecretFiles};
pub use set::{ContentSet, Dangling, Effect, Proposal, Rejection, Settlement};
