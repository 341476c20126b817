//! Constraints on dynamic parameters, as messages (TP2, S62).
//!
//! Only the shape lives here. The meaning (match, overlap, normal form) is the
//! business of `trunkline-core`. The type is recursive, so the sender chooses
//! how deep it goes: [`Limits::constraint_depth`](super::Limits) refuses more
//! with a typed error. Below that, `prost` itself stops at 100 levels of any
//! message.

/// One expression: a test of one parameter, or a combination of expressions.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct DynamicParameterConstraints {
    /// Absent means that nothing is constrained.
    #[prost(oneof = "Constraint", tags = "1, 2, 3, 4")]
    pub r#type: Option<Constraint>,
}

/// The four kinds of expression.
#[derive(Clone, PartialEq, Eq, prost::Oneof)]
pub enum Constraint {
    /// A test of one parameter.
    #[prost(message, tag = "1")]
    Single(SingleConstraint),
    /// At least one of them.
    #[prost(message, tag = "2")]
    Or(ConstraintList),
    /// All of them.
    #[prost(message, tag = "3")]
    And(ConstraintList),
    /// Not this one.
    #[prost(message, boxed, tag = "4")]
    Not(Box<DynamicParameterConstraints>),
}

/// A list of expressions.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ConstraintList {
    /// The members.
    #[prost(message, repeated, tag = "1")]
    pub constraints: Vec<DynamicParameterConstraints>,
}

/// A test of one parameter.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct SingleConstraint {
    /// The parameter.
    #[prost(string, tag = "1")]
    pub key: String,
    /// The test.
    #[prost(oneof = "constraint::Test", tags = "2, 3")]
    pub test: Option<constraint::Test>,
}

/// The tests of [`SingleConstraint`].
pub mod constraint {
    use super::Exists;

    /// The test of a parameter's value.
    #[derive(Clone, PartialEq, Eq, prost::Oneof)]
    pub enum Test {
        /// It has exactly this value.
        #[prost(string, tag = "2")]
        Value(String),
        /// It is set.
        #[prost(message, tag = "3")]
        Exists(Exists),
    }
}

/// The empty message of the test "is set".
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct Exists {}
