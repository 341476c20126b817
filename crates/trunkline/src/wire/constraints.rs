//! Constraints (TP2) as messages and as expressions.

#[cfg(feature = "server")]
use trunkline_core::name::Name;
use trunkline_core::params::{ConstraintError, Constraints, Expr, ExprNode};
use trunkline_proto::discovery::{
    Constraint, ConstraintList, DynamicParameterConstraints, Exists, ResourceName,
    SingleConstraint, constraint,
};
use trunkline_proto::text;

/// Why a message of constraints cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConstraintReadError {
    /// A parameter without a test.
    #[error("the constraint on {key:?} has neither a value nor `exists`")]
    NoTest {
        /// The parameter.
        key: String,
    },
    /// The expression is too large to decide.
    #[error(transparent)]
    Limit(#[from] ConstraintError),
}

/// Returns text options with which constraints may be written as people say
/// them: `env=prod AND NOT version=v1`.
#[must_use]
pub fn text_options() -> text::Options {
    text::Options {
        readable: Some(text::Readable(parse_words)),
        ..text::Options::default()
    }
}

/// Reads constraints that are written as people say them, as a message; the
/// error is for the author of the text.
fn parse_words(words: &str) -> Result<DynamicParameterConstraints, String> {
    let constraints: Result<Constraints, ConstraintError> = words.parse();
    let constraints =
        constraints.map_err(|error| format!("the text {words:?} is no constraint: {error}"))?;
    Ok(write_constraints(constraints.expr()))
}

/// Converts an expression into a message.
#[must_use]
pub fn write_constraints(expr: &Expr) -> DynamicParameterConstraints {
    let list = |exprs: &[Expr]| ConstraintList {
        constraints: exprs.iter().map(write_constraints).collect(),
    };
    let single = |key: &str, test| {
        Constraint::Single(SingleConstraint {
            key: key.to_owned(),
            test: Some(test),
        })
    };

    let constraint = match expr.node() {
        ExprNode::Value { key, value } => single(key, constraint::Test::Value(value.to_string())),
        ExprNode::Exists { key } => single(key, constraint::Test::Exists(Exists {})),
        ExprNode::And(exprs) => Constraint::And(list(exprs)),
        ExprNode::Or(exprs) => Constraint::Or(list(exprs)),
        ExprNode::Not(expr) => Constraint::Not(Box::new(write_constraints(expr))),
    };
    DynamicParameterConstraints {
        r#type: Some(constraint),
    }
}

/// Writes the name of a variant, with the constraints that tell it apart.
#[cfg(feature = "server")]
pub(super) fn write_resource_name(name: &Name, constraints: Option<&Constraints>) -> ResourceName {
    ResourceName {
        name: name.to_string(),
        dynamic_parameter_constraints: constraints.map(|c| write_constraints(c.expr())),
    }
}

/// Parses the constraints in the name of a variant. Returns `None` if there are
/// none, or if they match all clients, which means the same.
pub(super) fn read_variant_constraints(
    name: Option<&ResourceName>,
) -> Result<Option<Constraints>, ConstraintReadError> {
    let message = name.and_then(|name| name.dynamic_parameter_constraints.as_ref());
    let Some(message) = message else {
        return Ok(None);
    };
    let constraints = Constraints::new(&read_constraints(message)?)?;
    Ok(Some(constraints).filter(|constraints| !constraints.is_always()))
}

/// Parses a message as an expression. An empty message constrains nothing.
///
/// # Errors
/// If the message is incomplete, or too large to decide.
pub fn read_constraints(
    message: &DynamicParameterConstraints,
) -> Result<Expr, ConstraintReadError> {
    let read_list = |list: &ConstraintList| -> Result<Vec<Expr>, ConstraintReadError> {
        list.constraints.iter().map(read_constraints).collect()
    };
    Ok(match &message.r#type {
        None => Expr::always(),
        Some(Constraint::Single(single)) => read_single(single)?,
        Some(Constraint::And(list)) => Expr::and(read_list(list)?)?,
        Some(Constraint::Or(list)) => Expr::or(read_list(list)?)?,
        Some(Constraint::Not(inner)) => Expr::not(read_constraints(inner)?)?,
    })
}

/// Parses the constraint on one parameter: its value, or that it exists. A
/// constraint without a test is an error.
fn read_single(single: &SingleConstraint) -> Result<Expr, ConstraintReadError> {
    let key = single.key.as_str();
    match &single.test {
        Some(constraint::Test::Value(value)) => Ok(Expr::value(key, value.as_str())),
        Some(constraint::Test::Exists(Exists {})) => Ok(Expr::exists(key)),
        None => Err(ConstraintReadError::NoTest {
            key: key.to_owned(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        for text in [
            "env=prod",
            "env exists",
            "NOT env exists",
            "env=prod AND NOT (version=v1 OR zone exists)",
        ] {
            let expr: Expr = text.parse().unwrap();
            assert_eq!(
                read_constraints(&write_constraints(&expr)).unwrap(),
                expr,
                "{text}"
            );
            let constraints: Constraints = text.parse().unwrap();
            let again = Constraints::new(
                &read_constraints(&write_constraints(constraints.expr())).unwrap(),
            )
            .unwrap();
            assert_eq!(again, constraints, "{text}");
        }
    }

    #[test]
    fn nothing_said_is_nothing_constrained() {
        let silent = DynamicParameterConstraints { r#type: None };
        let read = Constraints::new(&read_constraints(&silent).unwrap()).unwrap();
        assert!(read.is_always());
    }

    #[test]
    fn a_test_is_needed_and_depth_is_bounded() {
        let single = SingleConstraint {
            key: "env".into(),
            test: None,
        };
        let message = DynamicParameterConstraints {
            r#type: Some(Constraint::Single(single)),
        };
        assert_eq!(
            read_constraints(&message),
            Err(ConstraintReadError::NoTest { key: "env".into() })
        );
        let deep = (0..Expr::MAX_DEPTH).fold(write_constraints(&Expr::exists("k")), |it, _| {
            let not = Constraint::Not(Box::new(it));
            DynamicParameterConstraints { r#type: Some(not) }
        });
        assert!(matches!(
            read_constraints(&deep),
            Err(ConstraintReadError::Limit(_))
        ));
    }
}
