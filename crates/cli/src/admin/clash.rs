//! Resources that contradict each other: two of one name for one client, or two
//! virtual hosts of one domain. Reported with both of them, the place of each,
//! and a client that would see both.

use std::collections::HashMap;

use trunkline::{ApplyError, Name};
use trunkline_core::params::{Constraints, Params};

use super::body::{BodyResource, MOST};
use super::error::Detail;
use crate::kinds;

/// Contradictions within a body.
pub(super) fn within(given: &[BodyResource]) -> Vec<Detail> {
    // The last resource of each name, and of each resource the one before it:
    // most names are there once.
    let mut last: HashMap<_, usize> = HashMap::with_capacity(given.len());
    let mut before: Vec<Option<usize>> = Vec::with_capacity(given.len());
    let (mut found, mut told) = (Vec::new(), None);
    for (place, one) in given.iter().enumerate() {
        let name = (&one.type_url, &one.resource.name);
        before.push(last.insert(name, place));
        let others = std::iter::successors(before[place], |other| before[*other]);
        let others = others.map(|other| &given[other]);
        // Variants that were made of one resource exclude each other.
        let mut apart = others.filter(|other| other.place != one.place);
        // One of them reports it.
        if found.len() < MOST && told != Some(&one.place) {
            let clash = apart.find_map(|other| between(one, other));
            told = clash.as_ref().map(|_| &one.place);
            found.extend(clash.map(|message| one.place.wrong(message)));
        }
    }
    found
}

/// Why two resources of one name cannot both exist.
fn between(one: &BodyResource, other: &BodyResource) -> Option<String> {
    let kind = kinds::short(&one.type_url);
    let (name, first) = (&one.resource.name, &other.place);
    let (mine, theirs) = (&one.resource.constraints, &other.resource.constraints);
    if mine == theirs {
        return Some(format!(
            "{kind} {name:?} is there already, at {first}; remove one or rename it"
        ));
    }
    match constraints(mine).overlap(&constraints(theirs)) {
        Ok(None) => None,
        Ok(Some(witness)) => Some(format!(
            "{} would match two variants of {kind} {name:?}, this one [{}] and the one at {first} \
             [{}]; make their constraints exclude each other",
            client(&witness),
            constraints(mine),
            constraints(theirs),
        )),
        Err(error) => Some(format!(
            "whether this variant of {name:?} and the one at {first} exclude each other: {error}"
        )),
    }
}

/// The constraints of a variant; without any, those that match all clients.
fn constraints(of: &Option<Constraints>) -> Constraints {
    of.clone().unwrap_or_else(Constraints::always)
}

fn client(witness: &Params) -> String {
    match witness.is_empty() {
        true => "a client without parameters".to_owned(),
        false => format!("a client with {witness}"),
    }
}

/// The database's error, at the place of the resource that it refuses.
pub(super) fn refused(error: &ApplyError, given: &[BodyResource]) -> Detail {
    let find = |name: &Name| given.iter().find(|one| one.resource.name == *name);
    let (one, message) = match error {
        ApplyError::Domain {
            domain,
            first,
            second,
            witness,
            ..
        } => {
            let (one, own, other) = match (find(second), find(first)) {
                (Some(one), _) => (Some(one), second, first),
                (None, one) => (one, first, second),
            };
            let who = match witness.is_empty() {
                true => String::new(),
                false => format!(" for a client with {witness}"),
            };
            let message = format!(
                "virtual hosts {own:?}, this one, and {other:?}, which the server has, both have \
                 the domain {domain:?}{who}; take it out of one"
            );
            (one, message)
        }
        ApplyError::Overlap {
            name,
            first,
            second,
            witness,
        } => return overlap(name, [first, second], witness, given),
        ApplyError::Undecided { name, .. } | ApplyError::NoBody { name } => {
            (find(name), error.to_string())
        }
    };
    match one {
        Some(one) => one.place.wrong(message),
        None => Detail::new(error),
    }
}

/// A variant of the body that overlaps with one of the server.
fn overlap(
    name: &Name,
    variants: [&String; 2],
    witness: &Params,
    given: &[BodyResource],
) -> Detail {
    let is = |one: &&BodyResource, variant: &str| {
        one.resource.name == *name && constraints(&one.resource.constraints).to_string() == variant
    };
    let [first, second] = variants;
    let find = |variant: &str| given.iter().find(|one| is(one, variant));
    let (one, mine, theirs) = match (find(second), find(first)) {
        (Some(one), _) => (Some(one), second, first),
        (None, one) => (one, first, second),
    };
    let kind = one.map_or("", |one| kinds::short(&one.type_url));
    let message = format!(
        "{} would match two variants of {kind} {name:?}, this one [{mine}] and the one that the \
         server has [{theirs}]; make their constraints exclude each other, delete that one, or \
         apply all of {name:?} without constraints around it",
        client(witness)
    );
    match one {
        Some(one) => one.place.wrong(message),
        None => Detail::new(message),
    }
}
