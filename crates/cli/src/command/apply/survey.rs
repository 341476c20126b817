//! Surveys a whole file before any of it is sent: whether it is valid, how many
//! resources it has, and whether a name is in it twice.

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

/// Reads a whole file, and returns the number of its resources, virtual hosts
/// included. Bodies are not checked, and not kept in memory.
///
/// # Errors
/// The file is not a binary `DiscoveryResponse`, or has a resource twice.
pub(super) fn survey<R: Read + Seek>(source: R, places: &Places) -> Result<usize> {
    let mut pieces = Pieces::new(source);
    let mut keys = Keys::default();
    let mut seen = Seen::default();
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
        let Some(key) = keys.next_key(piece) else {
            continue;
        };
        if let Some(first) = seen.add(&key, number) {
            return Err(repeated_name(places, &key.name, number, first));
        }
    }
    Ok(count)
}

/// Makes the failure about a name that a file has at two places.
fn repeated_name(places: &Places, name: &str, number: Number, first: Number) -> Failure {
    let (place, first) = (places.describe_place(number), places.describe_place(first));
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
    /// The name of the last route configuration, for its virtual hosts.
    route_name: String,
    /// The variant of the last route configuration, which its virtual hosts are
    /// of too.
    route_variant: Option<Vec<u8>>,
}

impl Keys {
    /// Returns the key of the next piece of the file; `None` for a wrapper that
    /// cannot be decoded, because the server reports its mistake. A virtual
    /// host is called `<route configuration>/<host>`, after the last route
    /// configuration.
    fn next_key(&mut self, piece: Piece) -> Option<Key> {
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
                self.route_name = owned(name_of(&route.rest));
                self.route_variant = route.wrapper.as_ref().and_then(variant_of);
                Key {
                    type_url: route.type_url.into(),
                    name: self.route_name.clone(),
                    variant: self.route_variant.clone(),
                }
            }
            Piece::Host(_, body) => {
                // As the server names it: a slash divides the two parts.
                let host = owned(name_of(&body)).replace('/', "%2F");
                Key {
                    type_url: types::VIRTUAL_HOST.into(),
                    name: format!("{}/{host}", self.route_name),
                    variant: self.route_variant.clone(),
                }
            }
        })
    }
}

/// Returns the key of a resource in a wrapper. The name of the wrapper counts,
/// or that of the resource if the wrapper has none.
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
        // Places are narrowed, for there may be a million.
        let narrow = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let place = (narrow(index), host.map_or(NO_HOST, narrow));

        let (index, host) = self.0.insert(hasher.finish(), place)?;
        let host = (host != NO_HOST).then_some(host as usize);
        Some((index as usize, host))
    }
}

/// Returns the encoded constraints of a wrapper; `None` if it has none, so that
/// the resource is for all clients.
fn variant_of(wrapper: &Resource) -> Option<Vec<u8>> {
    let name = wrapper.resource_name.as_ref()?;
    let constraints = name.dynamic_parameter_constraints.as_ref()?;
    Some(constraints.encode_to_vec())
}

fn owned(name: Option<&str>) -> String {
    name.unwrap_or_default().to_owned()
}
