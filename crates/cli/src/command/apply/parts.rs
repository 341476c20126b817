//! A file in parts, each a binary file of its own.

use std::io::{Read, Seek};

use bytes::{BufMut, BytesMut};
use prost::Message as _;
use prost::encoding::{WireType, encode_key, encode_varint};
use trunkline_proto::descriptor::types;
use trunkline_proto::discovery::{Any, Resource};
use trunkline_proto::pieces::{Piece, Pieces, PiecesError, Route};

/// Resources of a part: few enough that a server that takes them in keeps no
/// stream waiting for long.
const EACH: usize = 2000;
/// Bytes of a part, give or take a resource.
const EACH_BYTES: usize = 1 << 20;
/// `DiscoveryResponse.resources` and `RouteConfiguration.virtual_hosts`.
const LIST: u32 = 2;

/// Some resources of a file.
#[derive(Debug, Default)]
pub(super) struct Part {
    /// A binary `DiscoveryResponse`.
    pub(super) body: Vec<u8>,
    /// For each resource in it, its index in the file, and the index of its
    /// first virtual host.
    pub(super) origins: Vec<(usize, usize)>,
    /// The number of resources, virtual hosts included.
    pub(super) resources: usize,
}

/// Takes a file apart.
pub(super) struct Parts<R> {
    pieces: Pieces<R>,
    /// The last route configuration; its virtual hosts may take many parts.
    route: Option<Route>,
    each: usize,
}

/// A route configuration with those of its virtual hosts that are in a part.
struct Open {
    index: usize,
    first: usize,
    hosts: BytesMut,
}

impl<R: Read + Seek> Parts<R> {
    pub(super) fn new(source: R) -> Self {
        Self {
            pieces: Pieces::new(source),
            route: None,
            each: EACH,
        }
    }

    /// The next part; none after the last.
    pub(super) fn next(&mut self) -> Result<Option<Part>, PiecesError> {
        let mut part = Part::default();
        let mut open: Option<Open> = None;
        loop {
            let inside = open.as_ref().map(|open| open.hosts.len());
            let bytes = part.body.len() + inside.unwrap_or_default();
            // A route configuration is sent with a virtual host: without one,
            // it would seem to have none.
            if inside != Some(0) && (part.resources >= self.each || bytes >= EACH_BYTES) {
                break;
            }
            let Some((index, piece)) = self.pieces.next()? else {
                break;
            };
            part.resources += 1;
            let open_at = |first| Open {
                index,
                first,
                hosts: BytesMut::new(),
            };
            match piece {
                Piece::Whole(any) => {
                    part.close(open.take(), self.route.as_ref());
                    part.put(index, 0, &any);
                }
                Piece::Route(route) => {
                    part.close(open.take(), self.route.as_ref());
                    self.route = Some(*route);
                    open = Some(open_at(0));
                }
                Piece::Host(host, body) => {
                    let open = open.get_or_insert_with(|| open_at(host));
                    put(&mut open.hosts, &body);
                }
            }
        }
        part.close(open, self.route.as_ref());
        Ok(Some(part).filter(|part| part.resources > 0))
    }
}

impl Part {
    fn put(&mut self, index: usize, first_host: usize, any: &Any) {
        self.origins.push((index, first_host));
        put(&mut self.body, &any.encode_to_vec());
    }

    fn close(&mut self, open: Option<Open>, route: Option<&Route>) {
        let (Some(open), Some(route)) = (open, route) else {
            return;
        };
        // Fields may stand in any order, and two parts of a message are merged.
        let any = Any {
            type_url: route.type_url.clone(),
            value: [&route.rest[..], &open.hosts].concat().into(),
        };
        let any = match &route.wrapper {
            None => any,
            Some(wrapper) => Any {
                type_url: types::RESOURCE.to_owned(),
                value: Resource {
                    resource: Some(any),
                    ..wrapper.clone()
                }
                .encode_to_vec()
                .into(),
            },
        };
        self.put(open.index, open.first, &any);
    }
}

fn put(to: &mut impl BufMut, message: &[u8]) {
    encode_key(LIST, WireType::LengthDelimited, to);
    encode_varint(message.len() as u64, to);
    to.put_slice(message);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;
    use trunkline_proto::discovery::DiscoveryResponse;

    /// All pieces of a file, with their numbers in it.
    fn pieces(bytes: Vec<u8>, origins: &[(usize, usize)]) -> Vec<(usize, Piece)> {
        let mut pieces = Pieces::new(Cursor::new(bytes));
        let mut all = Vec::new();
        while let Some((index, piece)) = pieces.next().unwrap() {
            let (index, hosts) = origins.get(index).copied().unwrap_or((index, 0));
            all.push(match piece {
                Piece::Host(host, body) => (index, Piece::Host(host + hosts, body)),
                other => (index, other),
            });
        }
        all
    }

    fn file() -> Vec<u8> {
        // name: "r", vhds: {}, and five virtual hosts.
        let route: Vec<u8> = (0..5).fold(b"\x0a\x01r\x4a\x00".to_vec(), |mut bytes, n| {
            put(&mut bytes, &[0x0a, 1, b'a' + n]);
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
        let whole = pieces(file(), &[]);
        assert_eq!(whole.len(), 14);
        for each in 1..16 {
            let mut parts = Parts::new(Cursor::new(file()));
            parts.each = each;
            let mut all: Vec<(usize, Piece)> = Vec::new();
            let mut resources = 0;
            while let Some(part) = parts.next().unwrap() {
                assert!(part.resources <= each + 1);
                resources += part.resources;
                // A route configuration is in every part that has some of it.
                let fresh = pieces(part.body, &part.origins).into_iter();
                let fresh: Vec<_> = fresh.filter(|piece| !all.contains(piece)).collect();
                all.extend(fresh);
            }
            assert_eq!((resources, all), (14, whole.clone()), "{each}");
        }
    }
}
