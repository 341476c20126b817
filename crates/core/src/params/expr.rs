//! Constraint expressions as they stand on the wire (TP2).
//!
//! Every expression is within its limits from its construction on, so that
//! functions over expressions, and their destructor, may recurse. Two spellings
//! of one constraint are two expressions; [`super::Constraints`] has their
//! meaning.

use super::{ConstraintError, Params};

/// A constraint expression of bounded depth and size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expr {
    node: ExprNode,
    // Of the whole tree.
    depth: usize,
    size: usize,
    // Of all keys and values.
    bytes: usize,
}

/// One node of an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExprNode {
    /// The key has this value.
    Value {
        /// The key to test.
        key: Box<str>,
        /// The value to compare with.
        value: Box<str>,
    },
    /// The key has some value.
    Exists {
        /// The key to test.
        key: Box<str>,
    },
    /// All of them hold; an empty list always holds.
    And(Vec<Expr>),
    /// At least one of them holds; an empty list never holds.
    Or(Vec<Expr>),
    /// The expression does not hold.
    Not(Box<Expr>),
}

impl Expr {
    /// Levels of expressions. On the wire a level takes up to two messages, and
    /// protobuf readers stop at a hundred.
    pub const MAX_DEPTH: usize = 32;
    /// Expressions in one expression.
    pub const MAX_SIZE: usize = 4096;

    /// Makes the expression that a key has this value.
    pub fn value(key: impl Into<Box<str>>, value: impl Into<Box<str>>) -> Self {
        let (key, value) = (key.into(), value.into());
        let bytes = key.len() + value.len();
        Self::leaf(ExprNode::Value { key, value }, bytes)
    }

    /// Makes the expression that a key has some value.
    pub fn exists(key: impl Into<Box<str>>) -> Self {
        let key = key.into();
        let bytes = key.len();
        Self::leaf(ExprNode::Exists { key }, bytes)
    }

    /// Makes an expression that always holds.
    #[must_use]
    pub fn always() -> Self {
        Self::leaf(ExprNode::And(Vec::new()), 0)
    }

    /// Makes the expression that all of these hold; with none, it always holds.
    ///
    /// # Errors
    ///
    /// When the result would be too deep or too large; the same for the others.
    pub fn and(members: Vec<Self>) -> Result<Self, ConstraintError> {
        Self::parent(ExprNode::And(members))
    }

    /// Makes the expression that at least one of these holds; with none, it
    /// never holds.
    ///
    /// # Errors
    ///
    /// As for [`Self::and`].
    pub fn or(members: Vec<Self>) -> Result<Self, ConstraintError> {
        Self::parent(ExprNode::Or(members))
    }

    /// Makes the expression that this one does not hold.
    ///
    /// # Errors
    ///
    /// As for [`Self::and`].
    #[allow(clippy::should_implement_trait)] // it can fail
    pub fn not(expr: Self) -> Result<Self, ConstraintError> {
        Self::parent(ExprNode::Not(Box::new(expr)))
    }

    /// Returns the node at the root.
    #[must_use]
    pub fn node(&self) -> &ExprNode {
        &self.node
    }

    /// Returns whether the expression holds for a client, evaluated as written.
    /// [`super::Constraints::matches`] gives the same result, and faster.
    #[must_use]
    pub fn holds(&self, params: &Params) -> bool {
        match &self.node {
            ExprNode::Value { key, value } => params.get(key) == Some(value),
            ExprNode::Exists { key } => params.get(key).is_some(),
            ExprNode::And(list) => list.iter().all(|member| member.holds(params)),
            ExprNode::Or(list) => list.iter().any(|member| member.holds(params)),
            ExprNode::Not(inner) => !inner.holds(params),
        }
    }

    /// Returns the members of an AND or an OR; any other expression is the only
    /// member of a list.
    pub(super) fn into_list(self) -> Vec<Self> {
        match self.node {
            ExprNode::And(list) | ExprNode::Or(list) => list,
            node => vec![Self { node, ..self }],
        }
    }

    /// Returns the only member of a list. Any other list becomes one expression
    /// by `make`, which is [`Self::and`] or [`Self::or`].
    pub(super) fn single_or(
        mut list: Vec<Self>,
        make: fn(Vec<Self>) -> Result<Self, ConstraintError>,
    ) -> Result<Self, ConstraintError> {
        match list.pop() {
            Some(single) if list.is_empty() => Ok(single),
            last => {
                list.extend(last);
                make(list)
            }
        }
    }

    /// Returns the bytes in all keys and values, each as often as it is
    /// written.
    #[must_use]
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Makes an expression without members. `bytes` is the length of its key
    /// and value.
    fn leaf(node: ExprNode, bytes: usize) -> Self {
        Self {
            node,
            depth: 1,
            size: 1,
            bytes,
        }
    }

    /// Makes an expression of others, whose sizes it adds up. Returns an error
    /// if it is too deep or too large.
    fn parent(node: ExprNode) -> Result<Self, ConstraintError> {
        let members = match &node {
            ExprNode::And(list) | ExprNode::Or(list) => list.as_slice(),
            ExprNode::Not(inner) => std::slice::from_ref(&**inner),
            ExprNode::Value { .. } | ExprNode::Exists { .. } => &[],
        };
        let deepest = members.iter().map(|member| member.depth).max();
        let depth = 1 + deepest.unwrap_or(0);
        let size = 1 + members.iter().map(|member| member.size).sum::<usize>();
        let bytes = members.iter().map(|member| member.bytes).sum();

        if depth > Self::MAX_DEPTH {
            let limit = Self::MAX_DEPTH;
            return Err(ConstraintError::TooDeep { limit });
        }
        if size > Self::MAX_SIZE {
            let limit = Self::MAX_SIZE;
            return Err(ConstraintError::TooLarge { limit });
        }
        Ok(Self {
            node,
            depth,
            size,
            bytes,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nested(levels: usize) -> Result<Expr, ConstraintError> {
        (1..levels).try_fold(Expr::exists("k"), |it, _| Expr::not(it))
    }

    #[test]
    fn depth_is_bounded_when_it_is_made() {
        let limit = Expr::MAX_DEPTH;
        assert!(nested(limit).is_ok());
        assert_eq!(nested(limit + 1), Err(ConstraintError::TooDeep { limit }));
        assert_eq!(nested(10_000), Err(ConstraintError::TooDeep { limit }));
        // The deepest of a list counts.
        let deepest = |make: fn(Vec<Expr>) -> Result<Expr, ConstraintError>| {
            make(vec![
                Expr::exists("a"),
                nested(limit).unwrap(),
                Expr::exists("b"),
            ])
        };
        assert_eq!(deepest(Expr::and), Err(ConstraintError::TooDeep { limit }));
        assert_eq!(deepest(Expr::or), Err(ConstraintError::TooDeep { limit }));
    }

    #[test]
    fn size_is_bounded_when_it_is_made() {
        let limit = Expr::MAX_SIZE;
        let list = |count| Expr::or(vec![Expr::exists("k"); count]);
        assert!(list(limit - 1).is_ok());
        assert_eq!(list(limit), Err(ConstraintError::TooLarge { limit }));
        let half = list(limit / 2).unwrap();
        let twice = Expr::and(vec![half.clone(), half]);
        assert_eq!(twice, Err(ConstraintError::TooLarge { limit }));
    }

    #[test]
    fn bytes_are_counted_as_written() {
        let value = Expr::value("key", "value");
        assert_eq!(value.bytes(), 8);
        let both = Expr::and(vec![value.clone(), Expr::not(Expr::exists("ab")).unwrap()]);
        assert_eq!(both.unwrap().bytes(), 10);
    }

    #[test]
    fn has_the_node_that_it_was_made_of() {
        let list = vec![Expr::exists("a"), Expr::value("b", "c")];
        let and = Expr::and(list.clone()).unwrap();
        assert_eq!(and.node(), &ExprNode::And(list.clone()));
        let or = Expr::or(list.clone()).unwrap();
        assert_eq!(or.node(), &ExprNode::Or(list));
    }
}
