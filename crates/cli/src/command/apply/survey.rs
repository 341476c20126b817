//! Surveys a whole file before any of it is sent: whether it is valid, how many
//! resources it has, and whether a name is in it twice. A mistake that only the
//! server finds is found after earlier parts were applied.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{Read, Seek};

use prost::Message as _;
use trunkline_proto::descriptor::{full_name, types};
use trunkline_proto::discovery::{Resource, name_of};
use trunkline_proto::pieces::{Piece, Pieces};

use super::places::{Number, Places};
use crate::failure::{Failure, Result};

/// The number of resources, virtual hosts included.
pub(super) fn survey<R: Read + Seek>(source: R, places: &Places) -> Result<usize> {
    let mut pieces = Pieces::new(source);
    let mut seen = Seen::default();
    let wrong = |error: &dyn std::fmt::Display| {
        let file = &places.file;
        Failure::wrong(format!(
            "{file}: is not a binary DiscoveryResponse: {error}; nothing was changed"
        ))
    };
    let mut route = (String::new(), None);
    let mut count = 0;
    while let Some((index, piece)) = pieces.next().map_err(|error| wrong(&error))? {
        count += 1;
        let (number, twice) = match piece {
            Piece::Whole(any) => {
                let number = (index, None);
                let (type_url, name, variant) = match is(&any.type_url, types::RESOURCE) {
                    false => (any.type_url, owned(name_of(&any.value)), None),
                    true => match Resource::decode(any.value) {
                        Ok(wrapper) => wrapped(wrapper),
                        // The server reports its mistake.
                        Err(_) => continue,
                    },
                };
                (number, seen.add(&type_url, &name, &variant, number))
            }
            Piece::Route(found) => {
                let number = (index, None);
                let variant = found.wrapper.as_ref().and_then(variant_of);
                route = (owned(name_of(&found.rest)), variant);
                let (name, variant) = &route;
                (number, seen.add(&found.type_url, name, variant, number))
            }
            Piece::Host(host, body) => {
                let number = (index, Some(host));
                let (of, variant) = &route;
                let name = owned(name_of(&body)).replace('/', "%2F");
                let name = format!("{of}/{name}");
                let twice = seen.add(types::VIRTUAL_HOST, &name, variant, number);
                (number, twice)
            }
        };
        if let Some((name, first)) = twice {
            let (place, first) = (places.name(number), places.name(first));
            return Err(Failure::wrong(format!(
                "{place}: {name:?} is there already, at {first}; remove one or rename it; \
                 nothing was changed"
            )));
        }
    }
    Ok(count)
}

/// The names so far; by their hashes, for there may be a million.
#[derive(Default)]
struct Seen(HashMap<u64, (u32, u32)>);

impl Seen {
    /// Adds a name; returns its first place, if it is there twice.
    fn add(
        &mut self,
        type_url: &str,
        name: &str,
        variant: &Option<Vec<u8>>,
        (index, host): Number,
    ) -> Option<(String, Number)> {
        if name.is_empty() {
            return None;
        }
        let mut hasher = DefaultHasher::new();
        (full_name(type_url), name, variant).hash(&mut hasher);
        let small = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let place = (small(index), host.map_or(u32::MAX, small));
        let (index, host) = self.0.insert(hasher.finish(), place)?;
        let host = (host != u32::MAX).then_some(host as usize);
        Some((name.to_owned(), (index as usize, host)))
    }
}

fn wrapped(wrapper: Resource) -> (String, String, Option<Vec<u8>>) {
    let variant = variant_of(&wrapper);
    let (type_url, inside) = match wrapper.resource {
        Some(any) => (any.type_url, owned(name_of(&any.value))),
        None => Default::default(),
    };
    let name = match wrapper.name.is_empty() {
        true => inside,
        false => wrapper.name,
    };
    (type_url, name, variant)
}

fn variant_of(wrapper: &Resource) -> Option<Vec<u8>> {
    let name = wrapper.resource_name.as_ref()?;
    let constraints = name.dynamic_parameter_constraints.as_ref()?;
    Some(constraints.encode_to_vec())
}

fn is(type_url: &str, of: &str) -> bool {
    full_name(type_url) == full_name(of)
}

fn owned(name: Option<&str>) -> String {
    name.unwrap_or_default().to_owned()
}
