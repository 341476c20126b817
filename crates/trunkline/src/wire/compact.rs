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

pub(super) struct Variant {
    pub(super) message: DynamicMessage,
    pub(super) body: Bytes,
    pub(super) clients: Constraints,
}

/// The variants of a message with these conditions, for these clients.
pub(super) fn variants(
    message: &DynamicMessage,
    found: &[Condition],
    own: &Constraints,
) -> Result<Variants, AcceptError> {
    let mut parts = Parts::default();
    let mut clients = own.clone();
    // The resource itself comes first, and its parts are for its clients.
    for condition in found {
        let read = read(condition)?;
        let both = Constraints::all([&clients, &read]);
        let both = both.map_err(|error| at(condition, error.into()))?;
        parts.doubt(condition, &clients, &both);
        match condition.whole {
            true => clients = both,
            false => parts.add(condition, read),
        }
    }
    let cases = clients
        .cases_within(&parts.conditions, MOST_CASES)
        .map_err(|error| match parts.last(&error) {
            Some(condition) => at(condition, AcceptError::Cases(error)),
            None => AcceptError::Cases(error),
        })?;
    Ok(Variants {
        all: distinct(message, &parts, cases)?,
        clients,
        doubts: parts.doubts,
    })
}

fn read(condition: &Condition) -> Result<Constraints, AcceptError> {
    condition.text.parse().map_err(|source| {
        let text = condition.text.clone();
        at(condition, AcceptError::Condition { text, source })
    })
}

fn at(condition: &Condition, error: AcceptError) -> AcceptError {
    AcceptError::At {
        path: condition.path.clone(),
        source: Box::new(error),
    }
}

/// The conditions of the parts of a resource, each once.
#[derive(Default)]
struct Parts<'a> {
    conditions: Vec<Constraints>,
    /// The place where each was first seen.
    first: Vec<&'a Condition>,
    known: HashMap<Constraints, usize>,
    /// By text: one condition may be spelled in several ways.
    places: HashMap<&'a str, usize>,
    doubts: Vec<(Path, Doubt)>,
}

impl<'a> Parts<'a> {
    fn add(&mut self, condition: &'a Condition, read: Constraints) {
        let next = self.conditions.len();
        let place = *self.known.entry(read.clone()).or_insert(next);
        if place == next {
            self.conditions.push(read);
            self.first.push(condition);
        }
        self.places.insert(&condition.text, place);
    }

    fn doubt(&mut self, condition: &Condition, clients: &Constraints, both: &Constraints) {
        let text = || condition.text.clone();
        let doubt = match both {
            // A part of a resource for nobody is not reported.
            _ if clients.is_never() => return,
            both if both.is_never() => Doubt::Never { condition: text() },
            both if both == clients => Doubt::Always { condition: text() },
            _ => return,
        };
        self.doubts.push((condition.path.clone(), doubt));
    }

    /// The condition with which there were too many cases.
    fn last(&self, error: &CasesError) -> Option<&'a Condition> {
        match error {
            CasesError::TooMany { conditions, .. } => {
                self.first.get(conditions.len().checked_sub(1)?).copied()
            }
            CasesError::Undecided(_) => None,
        }
    }
}

/// The contents of each case; cases of equal contents are merged.
fn distinct(
    message: &DynamicMessage,
    parts: &Parts<'_>,
    cases: Vec<Case>,
) -> Result<Vec<Variant>, AcceptError> {
    let mut all: Vec<(DynamicMessage, Bytes, Vec<Constraints>)> = Vec::new();
    let mut known: HashMap<Bytes, usize> = HashMap::new();
    let mut bytes = 0;
    for case in cases {
        let holds = |text: &str| {
            parts
                .places
                .get(text)
                .is_none_or(|&place| case.holds[place])
        };
        let kept = conditions::keep(message, &holds)?;
        let body = Bytes::from(canonical::encode(&kept)?);
        if let Some(&same) = known.get(&body) {
            all[same].2.push(case.constraints);
            continue;
        }
        check(&kept, &case.constraints)?;
        bytes += body.len();
        if bytes > MOST_BYTES {
            return Err(AcceptError::VariantsTooLarge { limit: MOST_BYTES });
        }
        known.insert(body.clone(), all.len());
        all.push((kept, body, vec![case.constraints]));
    }
    let one = |(message, body, cases): (DynamicMessage, Bytes, Vec<Constraints>)| {
        let clients = match &cases[..] {
            [only] => only.clone(),
            several => Constraints::any(several)?,
        };
        Ok(Variant {
            message,
            body,
            clients,
        })
    };
    all.into_iter().map(one).collect()
}

/// A resource without some of its parts may be one that Envoy refuses.
fn check(message: &DynamicMessage, clients: &Constraints) -> Result<(), AcceptError> {
    match validate::validate(message).into_iter().next() {
        None => Ok(()),
        Some(violation) => Err(AcceptError::Variant {
            clients: clients.clone(),
            violation: Box::new(violation),
        }),
    }
}
