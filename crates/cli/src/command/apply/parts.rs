//! A file in parts, each a binary file of its own.

use std::io::{Read, Seek};

use bytes::{BufMut, BytesMut};
use prost::Message as _;
use prost::encoding::{WireType, encode_key, encode_varint};
use trunkline_proto::discovery::Any;
use trunkline_proto::pieces::{Piece, Pieces, PiecesError, Route};

use crate::command::encode::wrap;

/// The maximum of resources in a part: few enough that a server that takes them
/// in keeps no stream waiting for long.
const MOST_RESOURCES: usize = 2000;
/// The maximum of bytes in a part; its last resource may exceed it.
const MOST_BYTES: usize = 1 << 20;

/// The number of `DiscoveryResponse.resources`.
const RESOURCES: u32 = 2;
/// The number of `RouteConfiguration.virtual_hosts`.
const VIRTUAL_HOSTS: u32 = 2;

/// Some resources of a file.
#[derive(Debug, Default)]
pub(super) struct Part {
    /// A binary `DiscoveryResponse`.
    pub(super) body: Vec<u8>,
    /// The origin of the first resource in it.
    pub(super) first: Origin,
    /// The number of resources, virtual hosts included.
    pub(super) resources: usize,
}

/// The origin of a resource of a part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Origin {
    /// The index of the resource in the file.
    pub(super) resource: usize,
    /// The index in the file of the first virtual host that the part has of it.
    /// It is 0 unless the resource is a continued route configuration.
    pub(super) first_host: usize,
}

/// Splits a file into parts.
pub(super) struct Parts<R> {
    pieces: Pieces<R>,
    /// The last route configuration; its virtual hosts may take many parts.
    route: Option<Route>,
    most_resources: usize,
}

/// A route configuration with those of its virtual hosts that are in a part so
/// far.
struct OpenRoute {
    origin: Origin,
    /// A list of `RouteConfiguration.virtual_hosts`.
    hosts: BytesMut,
}

impl OpenRoute {
    /// Opens a route configuration in a part. It has no virtual hosts yet.
    /// `resource` is its index in the file, and `first_host` that of the first
    /// virtual host which the part adds.
    fn new(resource: usize, first_host: usize) -> Self {
        Self {
            origin: Origin {
                resource,
                first_host,
            },
            hosts: BytesMut::new(),
        }
    }
}

impl<R: Read + Seek> Parts<R> {
    /// Splits a binary file from where it stands. Nothing is read yet.
    pub(super) fn new(source: R) -> Self {
        Self {
            pieces: Pieces::new(source),
            route: None,
            most_resources: MOST_RESOURCES,
        }
    }

    /// Returns the next part, which ends where it is full; `None` after the end
    /// of the file. If the virtual hosts of a route configuration take several
    /// parts, each part has the configuration with its own hosts.
    pub(super) fn next_part(&mut self) -> Result<Option<Part>, PiecesError> {
        let mut part = Part::default();
        let mut open_route: Option<OpenRoute> = None;
        while !self.is_full(&part, open_route.as_ref()) {
            let Some((index, piece)) = self.pieces.next()? else {
                break;
            };

            part.resources += 1;
            match piece {
                Piece::Whole(any) => {
                    part.close_route(open_route.take(), self.route.as_ref());
                    let origin = Origin {
                        resource: index,
                        first_host: 0,
                    };
                    part.push(origin, &any);
                }
                Piece::Route(route) => {
                    part.close_route(open_route.take(), self.route.as_ref());
                    self.route = Some(*route);
                    open_route = Some(OpenRoute::new(index, 0));
                }
                Piece::Host(host, body) => {
                    // The first host of a part may continue a route
                    // configuration of the part before.
                    let route = open_route.get_or_insert_with(|| OpenRoute::new(index, host));
                    put_message(&mut route.hosts, VIRTUAL_HOSTS, &body);
                }
            }
        }

        part.close_route(open_route, self.route.as_ref());
        Ok(Some(part).filter(|part| part.resources > 0))
    }

    /// Returns whether a part takes no further piece: it has enough resources
    /// or bytes. A route configuration is sent with at least one virtual host,
    /// because without any it would seem to have none.
    fn is_full(&self, part: &Part, open: Option<&OpenRoute>) -> bool {
        let host_bytes = open.map(|open| open.hosts.len());
        let bytes = part.body.len() + host_bytes.unwrap_or_default();
        let waits_for_host = host_bytes == Some(0);
        let has_enough = part.resources >= self.most_resources || bytes >= MOST_BYTES;
        has_enough && !waits_for_host
    }
}

impl Part {
    /// Adds a resource to the body.
    fn push(&mut self, origin: Origin, any: &Any) {
        if self.body.is_empty() {
            self.first = origin;
        }
        put_message(&mut self.body, RESOURCES, &any.encode_to_vec());
    }

    /// Adds the open route configuration to the body, with the virtual hosts
    /// that it has so far. `route` is the configuration itself, the last one
    /// that was read. Does nothing if none is open.
    fn close_route(&mut self, open_route: Option<OpenRoute>, route: Option<&Route>) {
        let (Some(open_route), Some(route)) = (open_route, route) else {
            return;
        };

        // Protobuf fields may stand in any order, so the hosts follow the others.
        let any = Any {
            type_url: route.type_url.clone(),
            value: [&route.rest[..], &open_route.hosts].concat().into(),
        };
        let any = match &route.wrapper {
            None => any,
            Some(wrapper) => wrap(any, wrapper),
        };
        self.push(open_route.origin, &any);
    }
}

/// Appends one item of a repeated field of messages to an encoded message: its
/// number and wire type, its length, and its bytes.
fn put_message(output: &mut impl BufMut, field: u32, message: &[u8]) {
    encode_key(field, WireType::LengthDelimited, output);
    encode_varint(message.len() as u64, output);
    output.put_slice(message);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;
    use trunkline_proto::descriptor::types;
    use trunkline_proto::discovery::{DiscoveryResponse, Resource};

    /// Returns all pieces of a part, with their numbers in the file.
    fn pieces(bytes: Vec<u8>, first: Origin) -> Vec<(usize, Piece)> {
        let mut pieces = Pieces::new(Cursor::new(bytes));
        let mut all = Vec::new();
        while let Some((index, piece)) = pieces.next().unwrap() {
            all.push(match piece {
                Piece::Host(host, body) if index == 0 => {
                    (first.resource, Piece::Host(first.first_host + host, body))
                }
                other => (first.resource + index, other),
            });
        }
        all
    }

    fn file() -> Vec<u8> {
        // name: "r", vhds: {}, and five virtual hosts.
        let route: Vec<u8> = (0..5).fold(b"\x0a\x01r\x4a\x00".to_vec(), |mut bytes, n| {
            put_message(&mut bytes, VIRTUAL_HOSTS, &[0x0a, 1, b'a' + n]);
            bytes
        });
        let any = |type_url: &str, value: Vec<u8>| Any {
            type_url: type_url.to_owned(),
            value: value.into(),
        };
        let wrapper = Resource {
            name: "r".into(),
            resource: Some(any(types::ROUTE_CONFIGURATION, route.clone())),
            ..Resource::default()
        };
        DiscoveryResponse {
            resources: vec![
                any(types::CLUSTER, b"\x0a\x01c".to_vec()),
                any(types::ROUTE_CONFIGURATION, route),
                any(types::RESOURCE, wrapper.encode_to_vec()),
                any(types::CLUSTER, b"\x0a\x01d".to_vec()),
            ],
            ..DiscoveryResponse::default()
        }
        .encode_to_vec()
    }

    #[test]
    fn parts_are_the_whole_whatever_their_size() {
        let whole = pieces(file(), Origin::default());
        assert_eq!(whole.len(), 14);
        for each in 1..16 {
            let mut parts = Parts::new(Cursor::new(file()));
            parts.most_resources = each;
            let mut all: Vec<(usize, Piece)> = Vec::new();
            let mut resources = 0;
            while let Some(part) = parts.next_part().unwrap() {
                assert!(part.resources <= each + 1);
                resources += part.resources;
                // A route configuration is in every part that has some of it.
                let fresh = pieces(part.body, part.first).into_iter();
                let fresh: Vec<_> = fresh.filter(|piece| !all.contains(piece)).collect();
                all.extend(fresh);
            }
            assert_eq!((resources, all), (14, whole.clone()), "{each}");
        }
    }
}
