//! Constraints by meaning: the clients that a variant is for.
//!
//! However a constraint was written, it is one value here, with one expression
//! and one text. So it can be part of a resource's identity (TP2): two sources
//! that spell it differently mean the same variant.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;
use std::sync::{Arc, LazyLock};

use super::diagram::{Diagram, Id, MAX_BRANCHES};
use super::expr::Expr;
use super::{ConstraintError, Keys, Params, build, express, overlap};

/// The clients that a variant is for; cheap to clone.
///
/// ```
/// use trunkline_core::params::{Constraints, Params};
///
/// let old: Constraints = "env=prod AND NOT version exists".parse()?;
/// let new: Constraints = "version=v1 AND env=prod".parse()?;
/// assert_eq!(old.overlap(&new)?, None);
/// assert!(new.matches(&Params::new([("env", "prod"), ("version", "v1"), ("zone", "a")])?));
/// assert_eq!(new.to_string(), "env=prod AND version=v1");
///
/// let all_of_prod: Constraints = "env=prod".parse()?;
/// let both = all_of_prod.overlap(&new)?.map(|client| client.to_string());
/// assert_eq!(both.as_deref(), Some("env=prod,version=v1"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Constraints(Arc<Inner>);

struct Inner {
    diagram: Diagram,
    // Derived from `diagram`, and read back to it.
    expr: Expr,
}

impl Constraints {
    /// Keys that one constraint may test.
    pub const MAX_KEYS: usize = 64;
    /// Bytes of its keys and values, each as often as it is written.
    pub(crate) const MAX_BYTES: usize = 1 << 16;

    /// Makes the constraint of an expression.
    ///
    /// # Errors
    ///
    /// When a limit is exceeded. An expression whose canonical form alone
    /// exceeds a limit gives [`ConstraintError::TooComplex`].
    pub fn new(expr: &Expr) -> Result<Self, ConstraintError> {
        let diagram = build_checked(expr)?;
        let limit = MAX_BRANCHES;
        let too_complex = |_| ConstraintError::TooComplex { limit };
        let canonical = express::write_expr(&diagram).map_err(too_complex)?;
        // The canonical form is what is sent, so the next process must be able
        // to read it.
        let read_back = build_checked(&canonical).map_err(too_complex)?;
        debug_assert_eq!(read_back, diagram);
        Ok(Self(Arc::new(Inner {
            diagram,
            expr: canonical,
        })))
    }

    /// Returns the constraint that all clients match.
    #[must_use]
    pub fn always() -> Self {
        static ALWAYS: LazyLock<Constraints> = LazyLock::new(|| {
            let diagram = Diagram {
                keys: Keys::default(),
                values: Box::default(),
                nodes: Box::default(),
                root: Id::YES,
            };
            let expr = Expr::always();
            Constraints(Arc::new(Inner { diagram, expr }))
        });
        ALWAYS.clone()
    }

    /// Returns whether all clients match.
    #[must_use]
    pub fn is_always(&self) -> bool {
        self.0.diagram.root == Id::YES
    }

    /// Returns whether no client can match.
    #[must_use]
    pub fn is_never(&self) -> bool {
        self.0.diagram.root == Id::NO
    }

    /// Returns whether a client matches. Parameters that are not tested do not
    /// matter (S62).
    #[must_use]
    pub fn matches(&self, params: &Params) -> bool {
        self.0.diagram.matches(params)
    }

    /// Returns the keys that matter: a client's other parameters change
    /// nothing.
    #[must_use]
    pub fn keys(&self) -> &Keys {
        &self.0.diagram.keys
    }

    /// Finds a client that matches both, if there is one: then the two are
    /// ambiguous as variants of one resource (S62).
    ///
    /// # Errors
    ///
    /// [`ConstraintError::TooComplex`] when deciding would cost too much.
    pub fn overlap(&self, other: &Self) -> Result<Option<Params>, ConstraintError> {
        overlap::find_witness(&self.0.diagram, &other.0.diagram)
    }

    /// Returns the diagram of the constraint.
    pub(super) fn diagram(&self) -> &Diagram {
        &self.0.diagram
    }

    /// Returns the canonical expression, the same in every process.
    #[must_use]
    pub fn expr(&self) -> &Expr {
        &self.0.expr
    }
}

/// Builds the diagram of an expression. Fails if its keys and values exceed the
/// limit of bytes, or if the diagram exceeds a limit.
fn build_checked(expr: &Expr) -> Result<Diagram, ConstraintError> {
    if expr.bytes() > Constraints::MAX_BYTES {
        let limit = Constraints::MAX_BYTES;
        return Err(ConstraintError::TooManyBytes { limit });
    }
    build::build_diagram(expr)
}

impl PartialEq for Constraints {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0.diagram == other.0.diagram
    }
}

impl Eq for Constraints {}

impl PartialOrd for Constraints {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Constraints {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.diagram.cmp(&other.0.diagram)
    }
}

impl Hash for Constraints {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.diagram.hash(state);
    }
}

impl fmt::Display for Constraints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.expr.fmt(f)
    }
}

impl fmt::Debug for Constraints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Constraints {
    type Err = ConstraintError;

    fn from_str(text: &str) -> Result<Self, ConstraintError> {
        Self::new(&text.parse()?)
    }
}

#[cfg(test)]
mod tests;
