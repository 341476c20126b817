//! Conditions, and the cases that they make: which clients fulfil which of
//! them.
//!
//! A resource whose parts have conditions has one variant for each case. Two
//! conditions on two keys make four cases, however many values the keys have.

use super::{ConstraintError, Constraints, Expr};

/// Clients that fulfil the same conditions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// For each condition, whether these clients fulfil it.
    pub holds: Vec<bool>,
    /// The clients of this case.
    pub constraints: Constraints,
}

/// Why cases cannot be computed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CasesError {
    /// There are more than are allowed.
    #[error(
        "{} conditions make more than {limit} cases ({}): use fewer, or make them exclude each other",
        conditions.len(),
        list_first(conditions)
    )]
    TooMany {
        /// Cases allowed.
        limit: usize,
        /// The conditions that were evaluated.
        conditions: Vec<String>,
    },
    /// A constraint is too complex.
    #[error(transparent)]
    Undecided(#[from] ConstraintError),
}

impl Constraints {
    /// Divides the clients that match `self` into cases by some conditions.
    /// Each case has at least one client; no client is in two of them, and
    /// every client that matches is in one.
    ///
    /// # Errors
    ///
    /// If there are more than `limit` cases, or a constraint is too complex.
    pub fn cases_within(&self, conditions: &[Self], limit: usize) -> Result<Vec<Case>, CasesError> {
        let mut cases = Vec::new();
        if !self.is_never() {
            cases.push(Case {
                holds: Vec::new(),
                constraints: self.clone(),
            });
        }

        for (index, condition) in conditions.iter().enumerate() {
            let mut parts = Vec::with_capacity(2 * cases.len());
            for case in cases {
                parts.extend(case.divide(condition)?);
            }
            if parts.len() > limit {
                let evaluated_conditions = conditions[..=index].iter();
                let conditions = evaluated_conditions.map(Self::to_string).collect();
                return Err(CasesError::TooMany { limit, conditions });
            }
            cases = parts;
        }
        Ok(cases)
    }

    /// Returns the constraint of the clients that match all of these
    /// constraints.
    ///
    /// # Errors
    ///
    /// If the result is too complex.
    pub fn all<'a>(
        constraints: impl IntoIterator<Item = &'a Self>,
    ) -> Result<Self, ConstraintError> {
        let constraints = constraints
            .into_iter()
            .map(|constraint| constraint.expr().clone());
        Self::new(&Expr::and(constraints.collect())?)
    }

    /// Returns the constraint of the clients that match at least one of these
    /// constraints.
    ///
    /// # Errors
    ///
    /// If the result is too complex.
    pub fn any<'a>(
        constraints: impl IntoIterator<Item = &'a Self>,
    ) -> Result<Self, ConstraintError> {
        let constraints = constraints
            .into_iter()
            .map(|constraint| constraint.expr().clone());
        Self::new(&Expr::or(constraints.collect())?)
    }
}

/// Joins the first ten conditions, and the number of the others.
fn list_first(conditions: &[String]) -> String {
    const MAX_LISTED: usize = 10;
    let first_conditions = conditions.iter().take(MAX_LISTED).map(String::as_str);
    let text = first_conditions.collect::<Vec<_>>().join("; ");
    match conditions.len().saturating_sub(MAX_LISTED) {
        0 => text,
        remaining_count => format!("{text}; and {remaining_count} more"),
    }
}

impl Case {
    /// Divides the case into the clients that fulfil one more condition and
    /// those that do not. A part without clients is left out.
    fn divide(self, condition: &Constraints) -> Result<Vec<Self>, ConstraintError> {
        let clients = self.constraints.expr();
        let condition = condition.expr();
        let fulfilling = Expr::and(vec![clients.clone(), condition.clone()])?;
        let negation = Expr::not(condition.clone())?;
        let failing = Expr::and(vec![clients.clone(), negation])?;

        let mut parts = Vec::with_capacity(2);
        for (expr, holds) in [(fulfilling, true), (failing, false)] {
            let constraints = Constraints::new(&expr)?;
            if !constraints.is_never() {
                let holds = self.holds.iter().copied().chain([holds]).collect();
                parts.push(Self { holds, constraints });
            }
        }
        Ok(parts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn conditions(texts: &[&str]) -> Vec<Constraints> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    fn shown(texts: &[&str]) -> Vec<String> {
        let cases = Constraints::always()
            .cases_within(&conditions(texts), 64)
            .unwrap();
        let show = |case: Case| format!("{:?} {}", case.holds, case.constraints);
        cases.into_iter().map(show).collect()
    }

    #[test]
    fn tp2_two_conditions_make_four_variants_not_nine() {
        let expected = [
            "[true, true] env=prod AND version=v1",
            "[true, false] env=prod AND NOT version=v1",
            "[false, true] NOT env=prod AND version=v1",
            "[false, false] NOT env=prod AND NOT version=v1",
        ];
        assert_eq!(shown(&["env=prod", "version=v1"]), expected);
    }

    #[test]
    fn what_cannot_be_is_no_case() {
        assert_eq!(shown(&["env=prod", "env=test"]).len(), 3);
        assert_eq!(shown(&["env=prod", "env exists"]).len(), 3);
        assert_eq!(shown(&["env=prod", "env=prod"]).len(), 2);
        assert_eq!(shown(&[]), ["[] always"]);
    }

    #[test]
    fn only_cases_of_some_clients_count() {
        let all = conditions(&["env=prod", "version=v1", "env exists"]);
        let prod: Constraints = "env=prod".parse().unwrap();
        let cases = prod.cases_within(&all, 2).unwrap();
        let shown: Vec<_> = cases.iter().map(|c| c.constraints.to_string()).collect();
        assert_eq!(
            shown,
            ["env=prod AND version=v1", "env=prod AND NOT version=v1"]
        );
        let never: Constraints = "never".parse().unwrap();
        assert_eq!(never.cases_within(&all, 2).unwrap(), []);
        assert_eq!(Constraints::all(&all[..2]).unwrap(), cases[0].constraints);
        assert!(Constraints::all([]).unwrap().is_always());
    }

    #[test]
    fn too_many_are_refused_with_what_makes_them() {
        let texts = ["a=1", "b=1", "c=1", "d=1"];
        let error = Constraints::always()
            .cases_within(&conditions(&texts), 4)
            .unwrap_err();
        assert!(
            matches!(&error, CasesError::TooMany { limit: 4, conditions } if conditions.len() == 3)
        );
        assert_eq!(
            error.to_string(),
            "3 conditions make more than 4 cases (a=1; b=1; c=1): \
             use fewer, or make them exclude each other"
        );
    }

    #[test]
    fn several_constraints_are_one() {
        let parts = conditions(&["env=prod AND version=v1", "env=prod AND NOT version=v1"]);
        assert_eq!(Constraints::any(&parts).unwrap().to_string(), "env=prod");
    }
}
