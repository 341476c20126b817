//! Surveys a whole file before any of it is sent: whether it is valid, how many
//! resources it has, and whether a name is in it twice. A mistake that only the
//! server finds is found after earlier parts were applied.

use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{Read, Seek};

use prost::Message as _;
use trunkline_proto::descriptor::{full_name, types};
use trunkline_proto::discovery::{Resource, name_of};
use trunkline_proto::pieces::{Piece, Pieces, PiecesError};

use super::places::{Number, Places};
use crate::failure::{Failure, Result};

/// Counts the resources of a file, virtual hosts included.
///
/// # Errors
/// The file is not a binary `DiscoveryResponse`, or has a resource twice.
pub(super) fn survey<R: Read + Seek>(source: R, places: &Places) -> Result<usize> {
    let mut pieces = Pieces::new(source);
    let (mut keys, mut seen) = (Keys::default(), Seen::default());
    let not_binary = |error: PiecesError| {
        let file = &places.file;
        Failure::wrong(format!(
            "{file}: is not a binary DiscoveryResponse: {error}; nothing was changed"
        ))
    };
    let mut count = 0;
    while let Some((index, piece)) = pieces.next().map_err(not_binary)? {
        count += 1;
        let number = match &piece {
            Piece::Host(host, _) => (index, Some(*host)),
            Piece::Whole(_) | Piece::Route(_) => (index, None),
        };
        let Some(key) = keys.key(piece) else {
            continue;
        };
        if let Some(first) = seen.add(&key, number) {
            return Err(twice(places, &key.name, number, first));
        }
    }
    Ok(count)
}

/// Reports a name that a file has at two places.
fn twice(places: &Places, name: &str, number: Number, first: Number) -> Failure {
    let (place, first) = (places.name(number), places.name(first));
    Failure::wrong(format!(
        "{place}: {name:?} is there already, at {first}; remove one or rename it; \
         nothing was changed"
    ))
}

/// The identity of a resource: a file may have each once.
struct Key {
    type_url: Cow<'static, str>,
    name: String,
    /// Its constraints, encoded.
    variant: Option<Vec<u8>>,
}

/// Makes keys of the pieces of a file, in their order.
#[derive(Default)]
struct Keys {
    /// The name and the variant of the last route configuration, for its
    /// virtual hosts.
    route: (String, Option<Vec<u8>>),
}

impl Keys {
    /// Returns the key of a piece; `None` for a wrapper that cannot be decoded,
    /// because the server reports its mistake.
    fn key(&mut self, piece: Piece) -> Option<Key> {
        Some(match piece {
            Piece::Whole(any) if full_name(&any.type_url) == full_name(types::RESOURCE) => {
                wrapped_key(Resource::decode(any.value).ok()?)
            }
            Piece::Whole(any) => Key {
                name: owned(name_of(&any.value)),
                type_url: any.type_url.into(),
                variant: None,
            },
            Piece::Route(route) => {
                let variant = route.wrapper.as_ref().and_then(variant_of);
                self.route = (owned(name_of(&route.rest)), variant.clone());
                Key {
                    type_url: route.type_url.into(),
                    name: self.route.0.clone(),
                    variant,
                }
            }
            Piece::Host(_, body) => {
                let (route, variant) = &self.route;
                let host = owned(name_of(&body)).replace('/', "%2F");
                Key {
                    type_url: types::VIRTUAL_HOST.into(),
                    name: format!("{route}/{host}"),
                    variant: variant.clone(),
                }
            }
        })
    }
}

/// Returns the key of a resource in a wrapper, whose name counts if it has one.
fn wrapped_key(wrapper: Resource) -> Key {
    let variant = variant_of(&wrapper);
    let (type_url, inner_name) = match wrapper.resource {
        Some(any) => (any.type_url, owned(name_of(&any.value))),
        None => Default::default(),
    };
    Key {
        type_url: type_url.into(),
        name: match wrapper.name.is_empty() {
            true => inner_name,
            false => wrapper.name,
        },
        variant,
    }
}

/// The places of the keys so far, by the hashes of these, for there may be a
/// million.
#[derive(Default)]
struct Seen(HashMap<u64, (u32, u32)>);

/// Stands for the host of a resource that is not a virtual host.
const NO_HOST: u32 = u32::MAX;

impl Seen {
    /// Adds a key; returns its first place, if it was added before. A resource
    /// without a name is not added: the server reports that mistake.
    fn add(&mut self, key: &Key, (index, host): Number) -> Option<Number> {
        if key.name.is_empty() {
            return None;
        }
        let mut hasher = DefaultHasher::new();
        (full_name(&key.type_url), &key.name, &key.variant).hash(&mut hasher);
        let small = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let place = (small(index), host.map_or(NO_HOST, small));
        let (index, host) = self.0.insert(hasher.finish(), place)?;
        let host = (host != NO_HOST).then_some(host as usize);
        Some((index as usize, host))
    }
}

/// Returns the encoded constraints of a wrapper, if it has some.
fn variant_of(wrapper: &Resource) -> Option<Vec<u8>> {
    let name = wrapper.resource_name.as_ref()?;
    let constraints = name.dynamic_parameter_constraints.as_ref()?;
    Some(constraints.encode_to_vec())
}

fn owned(name: Option<&str>) -> String {
    name.unwrap_or_default().to_owned()
}
