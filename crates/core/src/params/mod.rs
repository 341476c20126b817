//! Dynamic parameters and constraints (TP2): what clients say of themselves,
//! and which of them a variant of a resource is for.
//!
//! ```text
//! wire or text ── Expr ── build ──▶ diagram ── express ──▶ Expr ── wire or text
//!                                   │     │
//!                        matches(Params)  overlap ──▶ a client that both match
//! ```
//!
//! Constraints are decided exactly or refused; nothing is approximated. What a
//! peer can make this module do is bounded by the limits of [`Params`], [`Expr`]
//! and [`Constraints`]. Which variants exist is not known here.

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
pub use table::{ParamsId, ParamsTable};
