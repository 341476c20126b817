//! Why a client does not match a constraint.

use super::expr::{Expr, ExprNode};
use super::{Constraints, Params};

impl Constraints {
    /// Returns the conditions that a client does not fulfil, in the order in
    /// which the constraints are displayed. An AND is taken apart into its
    /// members; an OR or a NOT is one condition. The list is empty if and only
    /// if the client [matches](Self::matches).
    #[must_use]
    pub fn unmet<'a>(&'a self, params: &Params) -> Vec<&'a Expr> {
        let mut conditions = Vec::new();
        collect_unmet(self.expr(), params, &mut conditions);
        conditions
    }
}

/// Adds an expression to `conditions` if it does not hold. Of an AND, only the
/// members that do not hold are added. The recursion is as deep as the
/// expression, whose depth is limited.
fn collect_unmet<'a>(expr: &'a Expr, params: &Params, conditions: &mut Vec<&'a Expr>) {
    if let ExprNode::And(list) = expr.node() {
        for member in list {
            collect_unmet(member, params, conditions);
        }
    } else if !expr.holds(params) {
        conditions.push(expr);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_hold_is_told_and_nothing_else() {
        let constraints: Constraints = "env=prod AND NOT version=v1 AND (zone=a OR zone=b)"
            .parse()
            .unwrap();
        for (params, expected) in [
            ("env=prod,zone=a", ""),
            ("env=test,zone=a", "env=prod"),
            ("version=v1,zone=b", "env=prod; NOT version=v1"),
            ("env=prod", "zone=a OR zone=b"),
        ] {
            let params: Params = params.parse().unwrap();
            let unmet = constraints.unmet(&params);
            let shown: Vec<String> = unmet.iter().map(ToString::to_string).collect();
            assert_eq!(shown.join("; "), expected, "{params}");
            assert_eq!(unmet.is_empty(), constraints.matches(&params));
        }
    }
}
