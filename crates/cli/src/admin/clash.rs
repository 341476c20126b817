//! Resources that contradict each other: two of one name for one client, or two
//! virtual hosts of one domain. Reported with both of them, the place of each,
//! and a client that would see both.

use std::collections::HashMap;

use trunkline::{ApplyError, Name};
use trunkline_core::params::Params;

use super::body::{BodyResource, MOST};
use super::error::Detail;
use crate::kinds;

/// Finds resources of one name in a body that contradict each other; reports
/// each at the later one, at most [`MOST`].
pub(super) fn within(resources: &[BodyResource]) -> Vec<Detail> {
    // The last resource of each name, and of each resource the one before it:
    // most names are there once.
    let mut last: HashMap<_, usize> = HashMap::with_capacity(resources.len());
    let mut before: Vec<Option<usize>> = Vec::with_capacity(resources.len());
    let (mut found, mut reported) = (Vec::new(), None);
    for (index, one) in resources.iter().enumerate() {
        let name = (&one.type_url, &one.resource.name);
        before.push(last.insert(name, index));
        let others = std::iter::successors(before[index], |other| before[*other]);
        let others = others.map(|other| &resources[other]);
        // Variants that were made of one resource exclude each other.
        let mut others = others.filter(|other| other.place != one.place);
        // The first of them that has a contradiction reports it for all.
        if found.len() < MOST && reported != Some(&one.place) {
            let clash = others.find_map(|other| contradiction(one, other));
            reported = clash.as_ref().map(|_| &one.place);
            found.extend(clash.map(|message| one.place.detail(message)));
        }
    }
    found
}

/// Tells why two resources of one name cannot both exist; `None` if they can.
fn contradiction(one: &BodyResource, other: &BodyResource) -> Option<String> {
    let kind = kinds::short(&one.type_url);
    let (name, first) = (&one.resource.name, &other.place);
    if one.resource.constraints == other.resource.constraints {
        return Some(format!(
            "{kind} {name:?} is there already, at {first}; remove one or rename it"
        ));
    }
    let (mine, theirs) = (one.resource.clients(), other.resource.clients());
    match mine.overlap(&theirs) {
        Ok(None) => None,
        Ok(Some(witness)) => Some(format!(
            "{} would match two variants of {kind} {name:?}, this one [{mine}] and the one at \
             {first} [{theirs}]; make their constraints exclude each other",
            client(&witness),
        )),
        Err(error) => Some(format!(
            "whether this variant of {name:?} and the one at {first} exclude each other: {error}"
        )),
    }
}

/// Describes a client that would see both of two resources.
fn client(witness: &Params) -> String {
    match witness.is_empty() {
        true => "a client without parameters".to_owned(),
        false => format!("a client with {witness}"),
    }
}

/// Words the database's error about a change, at the place of the resource of
/// the body that it refuses.
pub(super) fn refused(error: &ApplyError, resources: &[BodyResource]) -> Detail {
    let find = |name: &Name| resources.iter().find(|one| one.resource.name == *name);
    let (one, message) = match error {
        ApplyError::Domain {
            domain,
            first,
            second,
            witness,
            ..
        } => {
            let (one, mine, theirs) = mine_first(second, first, find);
            let who = match witness.is_empty() {
                true => String::new(),
                false => format!(" for a client with {witness}"),
            };
            let message = format!(
                "virtual hosts {mine:?}, this one, and {theirs:?}, which the server has, both have \
                 the domain {domain:?}{who}; take it out of one"
            );
            (one, message)
        }
        ApplyError::Overlap {
            name,
            first,
            second,
            witness,
        } => return overlap(name, [first, second], witness, resources),
        ApplyError::Undecided { name, .. } | ApplyError::NoBody { name } => {
            (find(name), error.to_string())
        }
    };
    match one {
        Some(one) => one.place.detail(message),
        None => Detail::new(error),
    }
}

/// Tells apart which of two contradictory keys is the body's: the later one, if
/// it has both. Returns the body's resource, which `find` finds, if there is
/// one; the body's key; and the other key, which is the server's.
fn mine_first<'a, 'k, K: ?Sized>(
    later: &'k K,
    earlier: &'k K,
    find: impl Fn(&K) -> Option<&'a BodyResource>,
) -> (Option<&'a BodyResource>, &'k K, &'k K) {
    match find(later) {
        Some(one) => (Some(one), later, earlier),
        None => (find(earlier), earlier, later),
    }
}

/// Reports a variant of the body that overlaps with one of the server.
fn overlap(
    name: &Name,
    [first, second]: [&String; 2],
    witness: &Params,
    resources: &[BodyResource],
) -> Detail {
    let is = |one: &BodyResource, variant: &str| {
        one.resource.name == *name && one.resource.clients().to_string() == variant
    };
    let find = |variant: &String| resources.iter().find(|one| is(one, variant));
    let (one, mine, theirs) = mine_first(second, first, find);
    let kind = one.map_or("", |one| kinds::short(&one.type_url));
    let message = format!(
        "{} would match two variants of {kind} {name:?}, this one [{mine}] and the one that the \
         server has [{theirs}]; make their constraints exclude each other, delete that one, or \
         apply all of {name:?} without constraints around it",
        client(witness)
    );
    match one {
        Some(one) => one.place.detail(message),
        None => Detail::new(message),
    }
}
