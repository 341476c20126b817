//! Resources of a body that contradict the server's: two of one name for one
//! client, or two virtual hosts of one domain. Reported at the place of the
//! body's, with a client that would see both.

use trunkline::checked::{Document, Item};
use trunkline::{ApplyError, Name};
use trunkline_core::params::Params;

use super::error::Detail;
use crate::kinds;

/// Describes a client that would see both of two resources.
fn client(witness: &Params) -> String {
    match witness.is_empty() {
        true => "a client without parameters".to_owned(),
        false => format!("a client with {witness}"),
    }
}

/// Words the database's error about a change, at the place of the resource of
/// the body that it refuses.
pub(super) fn refused(error: &ApplyError, document: &Document) -> Detail {
    let find = |name: &Name| document.items.iter().find(|one| one.resource.name == *name);
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
        } => return overlap(name, [first, second], witness, document),
        ApplyError::Undecided { name, .. } | ApplyError::NoBody { name } => {
            (find(name), error.to_string())
        }
    };
    match one {
        Some(one) => Detail::at(document, one, message),
        None => Detail::new(error),
    }
}

/// Tells apart which of two contradictory keys is the body's: the later one, if
/// it has both. Returns the body's resource, which `find` finds, if there is
/// one; the body's key; and the other key, which is the server's.
fn mine_first<'a, 'k, K: ?Sized>(
    later: &'k K,
    earlier: &'k K,
    find: impl Fn(&K) -> Option<&'a Item>,
) -> (Option<&'a Item>, &'k K, &'k K) {
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
    document: &Document,
) -> Detail {
    let is = |one: &Item, variant: &str| {
        one.resource.name == *name && one.resource.clients().to_string() == variant
    };
    let find = |variant: &String| document.items.iter().find(|one| is(one, variant));
    let (one, mine, theirs) = mine_first(second, first, find);
    let kind = one.map_or("", |one| kinds::short(&one.type_url));
    let message = format!(
        "{} would match two variants of {kind} {name:?}, this one [{mine}] and the one that the \
         server has [{theirs}]; make their constraints exclude each other, delete that one, or \
         apply all of {name:?} without constraints around it",
        client(witness)
    );
    match one {
        Some(one) => Detail::at(document, one, message),
        None => Detail::new(message),
    }
}
