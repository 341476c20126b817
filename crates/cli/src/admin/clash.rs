//! Resources of a body that contradict the server's: two of one name for one
//! client, or two virtual hosts of one domain. Reported at the place of the
//! body's, with a client that would see both.

use trunkline::checked::{Document, Item};
use trunkline::{ApplyError, Name};
use trunkline_core::params::Params;

use super::error::Detail;
use crate::kinds;

/// Describes a client by the parameters with which it would see both of two
/// resources.
fn describe_client(witness: &Params) -> String {
    match witness.is_empty() {
        true => "a client without parameters".to_owned(),
        false => format!("a client with {witness}"),
    }
}

/// Describes the database's error about a change, at the place of the resource
/// of the body that it refuses. Without such a resource, the error has no place
/// and speaks for itself.
pub(super) fn describe_clash(error: &ApplyError, document: &Document) -> Detail {
    let find = |name: &Name| {
        let mut items = document.items.iter();
        items.find(|item| item.resource.name == *name)
    };
    let (item, message) = match error {
        ApplyError::Domain {
            domain,
            first,
            second,
            witness,
            ..
        } => {
            let (item, mine, theirs) = mine_first(second, first, find);
            let who = match witness.is_empty() {
                true => String::new(),
                false => format!(" for a client with {witness}"),
            };
            let message = format!(
                "virtual hosts {mine:?}, this one, and {theirs:?}, which the server has, both have \
                 the domain {domain:?}{who}; take it out of one"
            );
            (item, message)
        }
        ApplyError::Overlap {
            name,
            first,
            second,
            witness,
        } => return describe_overlap(name, [first, second], witness, document),
        ApplyError::Undecided { name, .. } | ApplyError::NoBody { name } => {
            (find(name), error.to_string())
        }
    };

    match item {
        Some(item) => Detail::at(document, item, message),
        None => Detail::new(error),
    }
}

/// Tells which of two contradictory keys is the body's: the later one, if it
/// has both. Returns the body's resource, if `find` finds one; then the body's
/// key; then the other key, which is the server's.
fn mine_first<'a, 'k, K: ?Sized>(
    later: &'k K,
    earlier: &'k K,
    find: impl Fn(&K) -> Option<&'a Item>,
) -> (Option<&'a Item>, &'k K, &'k K) {
    match find(later) {
        Some(item) => (Some(item), later, earlier),
        None => (find(earlier), earlier, later),
    }
}

/// Describes that a variant of the body overlaps with one of the server, at the
/// place of the former: a client with the parameters of `witness` would see
/// both.
fn describe_overlap(
    name: &Name,
    [first, second]: [&String; 2],
    witness: &Params,
    document: &Document,
) -> Detail {
    let is_variant = |item: &Item, clients: &str| {
        item.resource.name == *name && item.resource.clients().to_string() == clients
    };
    let find = |clients: &String| {
        let mut items = document.items.iter();
        items.find(|item| is_variant(item, clients))
    };
    let (item, mine, theirs) = mine_first(second, first, find);
    let kind = item.map_or("", |item| kinds::short(&item.type_url));

    let message = format!(
        "{} would match two variants of {kind} {name:?}, this one [{mine}] and the one that the \
         server has [{theirs}]; make their constraints exclude each other, delete that one, or \
         apply all of {name:?} without constraints around it",
        describe_client(witness)
    );
    match item {
        Some(item) => Detail::at(document, item, message),
        None => Detail::new(message),
    }
}
