//! A resource with parts that are for some clients only, and its variants: as
//! few as there are different contents.

#[cfg(test)]
mod tests;

use std::collections::HashMap;

use bytes::Bytes;
use trunkline_core::params::{Case, CasesError, Constraints};
use trunkline_proto::conditions::{self, Condition};
use trunkline_proto::prost_reflect::DynamicMessage;
use trunkline_proto::{Path, canonical, validate};

use super::accept::AcceptError;

/// The maximum of cases that the conditions of one resource may make.
pub(super) const MOST_CASES: usize = 128;
/// The maximum of bytes of all variants of one resource.
const MOST_BYTES: usize = 256 << 20;

/// A condition that is no mistake, but hardly intended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Doubt {
    /// It holds for no client.
    #[error(
        "the condition {condition:?} holds for no client that the resource is for: \
         what it is on is never served"
    )]
    Never {
        /// The condition.
        condition: String,
    },
    /// It holds for every client.
    #[error(
        "the condition {condition:?} holds for every client that the resource is for: \
         leave it out"
    )]
    Always {
        /// The condition.
        condition: String,
    },
    /// A variant that no client matches.
    #[error("the constraints match no client: it is never served")]
    Nobody,
}

/// The variants of a resource.
pub(super) struct Variants {
    /// The clients that the resource is for.
    pub(super) clients: Constraints,
    pub(super) all: Vec<Variant>,
    pub(super) doubts: Vec<(Path, Doubt)>,
}

/// One of the variants: the parts of the resource that its clients get.
pub(super) struct Variant {
    pub(super) message: DynamicMessage,
    pub(super) body: Bytes,
    pub(super) clients: Constraints,
}

/// Makes the variants of a message for the clients of the resource.
/// `conditions` are all those in the message. A condition on the resource as a
/// whole comes first and narrows the clients; the variants are for the clients
/// that it leaves.
pub(super) fn make_variants(
    message: &DynamicMessage,
    conditions: &[Condition],
    clients: &Constraints,
) -> Result<Variants, AcceptError> {
    let mut parts = Parts::default();
    let mut clients = clients.clone();
    for condition in conditions {
        let constraints = parse_condition(condition)?;
        let remaining = Constraints::all([&clients, &constraints]);
        let remaining = remaining.map_err(|error| at_condition(condition, error.into()))?;
        parts.note_doubt(condition, &clients, &remaining);
        if condition.whole {
            clients = remaining;
        } else {
            parts.add_condition(condition, constraints);
        }
    }

    let cases = clients.cases_within(&parts.conditions, MOST_CASES);
    let cases = cases.map_err(|error| match parts.one_too_many(&error) {
        Some(condition) => at_condition(condition, AcceptError::Cases(error)),
        None => AcceptError::Cases(error),
    })?;
    Ok(Variants {
        all: merge_cases(message, &parts, cases)?,
        clients,
        doubts: parts.doubts,
    })
}

/// Parses a condition; the error has its text and its place.
fn parse_condition(condition: &Condition) -> Result<Constraints, AcceptError> {
    condition.text.parse().map_err(|source| {
        let text = condition.text.clone();
        at_condition(condition, AcceptError::Condition { text, source })
    })
}

/// Adds the place of a condition to an error.
fn at_condition(condition: &Condition, error: AcceptError) -> AcceptError {
    AcceptError::At {
        path: condition.path.clone(),
        source: Box::new(error),
    }
}

/// The conditions of the parts of a resource, each once.
#[derive(Default)]
struct Parts<'a> {
    conditions: Vec<Constraints>,
    /// The first spelling of each condition, with its place.
    first_spellings: Vec<&'a Condition>,
    /// The index of each condition.
    indexes: HashMap<Constraints, usize>,
    /// The index by text: one condition may be spelled in several ways.
    by_text: HashMap<&'a str, usize>,
    doubts: Vec<(Path, Doubt)>,
}

impl<'a> Parts<'a> {
    /// Adds the condition of a part. A condition that has been added in another
    /// spelling is not added again: both texts get its index.
    fn add_condition(&mut self, condition: &'a Condition, constraints: Constraints) {
        let next = self.conditions.len();
        let index = *self.indexes.entry(constraints.clone()).or_insert(next);
        if index == next {
            self.conditions.push(constraints);
            self.first_spellings.push(condition);
        }
        self.by_text.insert(&condition.text, index);
    }

    /// Adds a doubt about a condition that holds for none or for all of the
    /// clients; `remaining` are those for which it holds. If there are no
    /// clients, an outer condition has left none and has its own doubt, so this
    /// one gets none.
    fn note_doubt(
        &mut self,
        condition: &Condition,
        clients: &Constraints,
        remaining: &Constraints,
    ) {
        if clients.is_never() {
            return;
        }
        let text = condition.text.clone();
        let doubt = if remaining.is_never() {
            Doubt::Never { condition: text }
        } else if remaining == clients {
            Doubt::Always { condition: text }
        } else {
            return;
        };
        self.doubts.push((condition.path.clone(), doubt));
    }

    /// Returns the first spelling of the condition with which there were too
    /// many cases; `None` for another error.
    fn one_too_many(&self, error: &CasesError) -> Option<&'a Condition> {
        match error {
            CasesError::TooMany { conditions, .. } => self
                .first_spellings
                .get(conditions.len().checked_sub(1)?)
                .copied(),
            CasesError::Undecided(_) => None,
        }
    }
}

/// Makes one variant of all cases in which the same parts remain. A variant
/// that breaks a rule of Envoy is an error, and so are variants of more than
/// [`MOST_BYTES`] in all.
fn merge_cases(
    message: &DynamicMessage,
    parts: &Parts<'_>,
    cases: Vec<Case>,
) -> Result<Vec<Variant>, AcceptError> {
    let mut groups: Vec<CaseGroup> = Vec::new();
    let mut index_by_body: HashMap<Bytes, usize> = HashMap::new();
    let mut bytes = 0;
    for case in cases {
        // A condition that is not of a part, like that of the whole resource,
        // holds in every case.
        let holds = |text: &str| {
            let index = parts.by_text.get(text);
            index.is_none_or(|&index| case.holds[index])
        };
        let message = conditions::keep(message, &holds)?;

        let body = Bytes::from(canonical::encode(&message)?);
        if let Some(&index) = index_by_body.get(&body) {
            groups[index].cases.push(case.constraints);
            continue;
        }

        check_valid(&message, &case.constraints)?;
        bytes += body.len();
        if bytes > MOST_BYTES {
            return Err(AcceptError::VariantsTooLarge { limit: MOST_BYTES });
        }
        index_by_body.insert(body.clone(), groups.len());
        groups.push(CaseGroup {
            message,
            body,
            cases: vec![case.constraints],
        });
    }
    groups.into_iter().map(CaseGroup::into_variant).collect()
}

/// The contents of one or more cases.
struct CaseGroup {
    message: DynamicMessage,
    body: Bytes,
    /// The clients of each case; not empty.
    cases: Vec<Constraints>,
}

impl CaseGroup {
    /// Returns the variant for the clients of any of the cases.
    fn into_variant(self) -> Result<Variant, AcceptError> {
        let clients = match &self.cases[..] {
            [single] => single.clone(),
            several => Constraints::any(several)?,
        };
        Ok(Variant {
            message: self.message,
            body: self.body,
            clients,
        })
    }
}

/// Checks a variant against the validation rules of Envoy, because the parts
/// that its conditions leave out may be required. The error has the first
/// broken rule; other ones usually follow from the same missing part.
fn check_valid(message: &DynamicMessage, clients: &Constraints) -> Result<(), AcceptError> {
    match validate::validate(message).into_iter().next() {
        None => Ok(()),
        Some(violation) => Err(AcceptError::Variant {
            clients: clients.clone(),
            violation: Box::new(violation),
        }),
    }
}
