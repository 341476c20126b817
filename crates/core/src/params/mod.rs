//! Dynamic parameters and constraints (TP2): the parameters of clients, and the
//! constraints that say which clients a variant of a resource is for.
//!
//! ```text
//! wire or text ── Expr ── build ──▶ diagram ── express ──▶ Expr ── wire or text
//!                                   │     │
//!                        matches(Params)  overlap ──▶ a client that both match
//! ```
//!
//! Constraints are decided exactly or refused; nothing is approximated. The
//! limits of [`Params`], [`Expr`] and [`Constraints`] bound the work that a
//! client can cause here. This module does not know which variants exist.

mod build;
mod cases;
mod constraints;
mod coverage;
mod diagram;
mod error;
mod expr;
mod express;
mod keys;
mod overlap;
mod parse;
mod set;
mod table;
mod text;
mod unmet;

pub use cases::{Case, CasesError};
pub use constraints::Constraints;
pub use error::{ConstraintError, ParamsError};
pub use expr::{Expr, ExprNode};
pub use keys::Keys;
pub use set::Params;
pub use table::ParamsId;
pub(crate) use table::ParamsTable;
