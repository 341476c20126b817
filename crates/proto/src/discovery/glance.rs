//! Reads parts of a message without decoding it: nothing is allocated, and
//! every text is a slice of the received bytes.
//!
//! For callers that need little of much: the name in a body, or the names and
//! versions of a response of megabytes. Invalid protobuf ends the walk; a
//! caller that must know the difference decodes the message.

use super::message::Resource;
use super::number::{any, delta_request, delta_response, resource, response, sotw_request};
use super::scan;

/// The field that names a resource in the body of every type of xDS.
const BODY_NAME: u32 = 1;

/// Walks the length-delimited fields of an encoded message, in order: the
/// number of each, and its bytes. Fields of other wire types are passed over,
/// and the first malformed field ends the walk.
///
/// ```
/// use trunkline_proto::discovery::fields;
///
/// let all: Vec<_> = fields(b"\x0a\x01a\x10\x07\x1a\x00").collect();
/// assert_eq!(all, [(1, &b"a"[..]), (3, &b""[..])]);
/// ```
pub fn fields(mut bytes: &[u8]) -> impl Iterator<Item = (u32, &[u8])> {
    std::iter::from_fn(move || {
        while !bytes.is_empty() {
            if let (number, Some(value)) = scan::take_field(&mut bytes)? {
                return Some((number, value));
            }
        }
        None
    })
}

/// Reads the name in the body of a resource. `None` if it has none, an empty
/// one, or one that is no UTF-8.
///
/// Every type of xDS has its name in field 1, so the body may be of an unknown
/// type. A name is no proof that the rest of the body is good.
#[must_use]
pub fn name_of(body: &[u8]) -> Option<&str> {
    // Of a repeated singular field, the last one counts.
    let names = fields(body).filter(|(number, _)| *number == BODY_NAME);
    let (_, last) = names.last()?;
    let name = std::str::from_utf8(last).ok()?;
    Some(name).filter(|name| !name.is_empty())
}

/// Removes the entries of `initial_resource_versions` from an encoded delta
/// request. Calls `handle_entry` with the bytes of every entry, in order, and returns
/// the request without them. Returns `None` if the bytes are not a message;
/// `handle_entry` may have been called before.
///
/// A client that reconnects lists its whole cache, and the caches of a fleet
/// are equal: the entries need not be decoded to be recognised.
pub fn split_initial_versions(
    mut bytes: &[u8],
    mut handle_entry: impl FnMut(&[u8]),
) -> Option<Vec<u8>> {
    let mut remainder = Vec::new();
    while !bytes.is_empty() {
        let unread = bytes;
        match scan::take_field(&mut bytes)? {
            (delta_request::INITIAL_RESOURCE_VERSIONS, Some(entry)) => handle_entry(entry),
            _ => {
                let field = &unread[..unread.len() - bytes.len()];
                remainder.extend_from_slice(field);
            }
        }
    }
    Some(remainder)
}

/// The parts of a response that can be read at a glance.
#[derive(Debug, Clone, Copy)]
pub struct Glance<'a> {
    bytes: &'a [u8],
    delta: bool,
    /// The type of the bodies.
    pub type_url: &'a str,
    /// The nonce of the response.
    pub nonce: &'a str,
    /// The version of the whole set; delta has one for each resource instead.
    pub version: &'a str,
}

/// One resource at a glance.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Its name: in the wrapper, or else in its body.
    pub name: &'a str,
    /// Its own version; SotW has none unless it is wrapped.
    pub version: &'a str,
    /// The encoded message; none in a heartbeat.
    pub body: Option<&'a [u8]>,
}

impl<'a> Glance<'a> {
    /// Reads the head of a delta response.
    #[must_use]
    pub fn delta(bytes: &'a [u8]) -> Self {
        Self::read_head(bytes, true)
    }

    /// Reads the head of a SotW response.
    #[must_use]
    pub fn sotw(bytes: &'a [u8]) -> Self {
        Self::read_head(bytes, false)
    }

    /// Reads type, nonce and version, which have the same field numbers in both
    /// responses. A text that is missing or not UTF-8 is empty.
    fn read_head(bytes: &'a [u8], delta: bool) -> Self {
        let mut glance = Self {
            bytes,
            delta,
            type_url: "",
            nonce: "",
            version: "",
        };

        for (number, value) in fields(bytes) {
            match number {
                response::VERSION => glance.version = text_or_empty(value),
                response::TYPE_URL => glance.type_url = text_or_empty(value),
                response::NONCE => glance.nonce = text_or_empty(value),
                _ => {}
            }
        }
        glance
    }

    /// Reads the resources of the response one by one, in order. The list ends
    /// at a malformed field.
    pub fn entries(&self) -> impl Iterator<Item = Entry<'a>> + use<'a> {
        let delta = self.delta;
        let resources = fields(self.bytes).filter(|(number, _)| *number == response::RESOURCES);
        resources.map(move |(_, value)| match delta {
            true => read_resource_entry(value),
            false => read_sotw_entry(value),
        })
    }

    /// Reads the names that a delta response removes, in order. A SotW response
    /// lists none: it removes a name by leaving it out.
    pub fn removed(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        let delta = self.delta;
        let is_removed = move |number| delta && number == delta_response::REMOVED_RESOURCES;
        let removals = fields(self.bytes).filter(move |(number, _)| is_removed(*number));
        removals.map(|(_, value)| text_or_empty(value))
    }
}

/// A request that only ACKs a response, as most do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlainAck<'a> {
    /// The encoded node, if it is repeated.
    pub node: Option<&'a [u8]>,
    /// The type.
    pub type_url: &'a str,
    /// The nonce of the response.
    pub nonce: &'a str,
    /// The version that was ACKed; delta has none.
    pub version: &'a str,
}

/// The numbers of the fields of an ACK, which differ between SotW and delta.
struct AckFields {
    node: u32,
    type_url: u32,
    nonce: u32,
    version: Option<u32>,
}

const DELTA_ACK: AckFields = AckFields {
    node: delta_request::NODE,
    type_url: delta_request::TYPE_URL,
    nonce: delta_request::RESPONSE_NONCE,
    version: None,
};

const SOTW_ACK: AckFields = AckFields {
    node: sotw_request::NODE,
    type_url: sotw_request::TYPE_URL,
    nonce: sotw_request::RESPONSE_NONCE,
    version: Some(sotw_request::VERSION),
};

impl<'a> PlainAck<'a> {
    /// Reads a delta request; `None` if it has other fields than an ACK, or no
    /// nonce.
    #[must_use]
    pub fn delta(bytes: &'a [u8]) -> Option<Self> {
        Self::read(bytes, &DELTA_ACK)
    }

    /// Reads a SotW request; `None` if it has other fields than an ACK, or no
    /// nonce.
    #[must_use]
    pub fn sotw(bytes: &'a [u8]) -> Option<Self> {
        Self::read(bytes, &SOTW_ACK)
    }

    /// Reads a request that has only the fields of an ACK, a type and a nonce
    /// among them. Returns `None` for other requests: more fields mean a
    /// subscription or a NACK, and without a nonce it is the first request of
    /// its type.
    fn read(mut bytes: &'a [u8], fields: &AckFields) -> Option<Self> {
        let text = |value| std::str::from_utf8(value).ok();
        let mut ack = Self {
            node: None,
            type_url: "",
            nonce: "",
            version: "",
        };

        while !bytes.is_empty() {
            let (number, value) = scan::take_field(&mut bytes)?;
            match number {
                _ if number == fields.node => ack.node = Some(value?),
                _ if number == fields.type_url => ack.type_url = text(value?)?,
                _ if number == fields.nonce => ack.nonce = text(value?)?,
                _ if Some(number) == fields.version => ack.version = text(value?)?,
                _ => return None,
            }
        }

        let is_ack = !ack.type_url.is_empty() && !ack.nonce.is_empty();
        is_ack.then_some(ack)
    }
}

/// Reads an entry of a SotW response: a body, or the wrapper by which SotW
/// transports a TTL (S58).
fn read_sotw_entry(any: &[u8]) -> Entry<'_> {
    let (type_url, body) = any_parts(any);
    if type_url == Resource::TYPE_URL {
        return read_resource_entry(body);
    }
    Entry {
        name: name_of(body).unwrap_or_default(),
        version: "",
        body: Some(body),
    }
}

/// Reads a `Resource`, which is an entry of a delta response or a wrapper in
/// SotW. A resource without a name has that of its body.
fn read_resource_entry(bytes: &[u8]) -> Entry<'_> {
    let mut entry = Entry::default();
    for (number, value) in fields(bytes) {
        match number {
            resource::VERSION => entry.version = text_or_empty(value),
            resource::BODY => entry.body = Some(any_parts(value).1),
            resource::NAME => entry.name = text_or_empty(value),
            _ => {}
        }
    }
    if entry.name.is_empty() {
        entry.name = entry.body.and_then(name_of).unwrap_or_default();
    }
    entry
}

/// Returns the type and the value of an encoded `Any`. A missing field is
/// empty.
fn any_parts(bytes: &[u8]) -> (&str, &[u8]) {
    let mut type_url = "";
    let mut body = &bytes[..0];
    for (number, value) in fields(bytes) {
        match number {
            any::TYPE_URL => type_url = text_or_empty(value),
            any::VALUE => body = value,
            _ => {}
        }
    }
    (type_url, body)
}

/// Reads bytes as a text, which is empty if they are no UTF-8.
fn text_or_empty(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::super::message::{
        Any, DeltaDiscoveryRequest, DeltaDiscoveryResponse, DiscoveryRequest, DiscoveryResponse,
        Status,
    };
    use super::*;
    use prost::Message as _;

    fn any(type_url: &str, value: &[u8]) -> Any {
        Any {
            type_url: type_url.to_owned(),
            value: value.to_vec().into(),
        }
    }

    #[test]
    fn a_body_is_named_by_its_first_field() {
        assert_eq!(name_of(b"\x10\x01\x0a\x01a"), Some("a"));
        assert_eq!(name_of(b"\x0a\x01a\x0a\x01b"), Some("b"));
        assert_eq!(name_of(b"\x0a\x00"), None);
        assert_eq!(name_of(b"\x0a\x01\xff"), None);
        assert_eq!(name_of(b"\x0a\x09a"), None);
        assert_eq!(name_of(b""), None);
    }

    #[test]
    fn a_delta_response_is_seen() {
        let resource = Resource {
            version: "v1".into(),
            resource: Some(any("t", b"\x0a\x01a")),
            name: "a".into(),
            ..Resource::default()
        };
        let beat = Resource {
            name: "h".into(),
            ..Resource::default()
        };
        let response = DeltaDiscoveryResponse {
            type_url: "t".into(),
            nonce: "7".into(),
            resources: vec![resource, beat],
            removed_resources: vec!["b".into()],
            ..DeltaDiscoveryResponse::default()
        };
        let bytes = response.encode_to_vec();
        let glance = Glance::delta(&bytes);
        assert_eq!((glance.type_url, glance.nonce), ("t", "7"));
        let entries: Vec<_> = glance.entries().collect();
        assert_eq!((entries[0].name, entries[0].version), ("a", "v1"));
        assert_eq!(entries[0].body, Some(&b"\x0a\x01a"[..]));
        assert_eq!((entries[1].name, entries[1].body), ("h", None));
        assert_eq!(glance.removed().collect::<Vec<_>>(), ["b"]);
    }

    #[test]
    fn a_state_of_the_world_response_is_seen_wrapped_or_not() {
        let inner = Resource {
            version: "v1".into(),
            resource: Some(any("t", b"\x0a\x01b")),
            name: "b".into(),
            ..Resource::default()
        };
        let response = DiscoveryResponse {
            version_info: "s".into(),
            resources: vec![
                any("t", b"\x0a\x01a"),
                any(Resource::TYPE_URL, &inner.encode_to_vec()),
            ],
            control_plane: Some(super::super::ControlPlane {
                identifier: "me".into(),
            }),
            ..DiscoveryResponse::default()
        };
        let bytes = response.encode_to_vec();
        let glance = Glance::sotw(&bytes);
        let names: Vec<_> = glance.entries().map(|e| (e.name, e.version)).collect();
        assert_eq!(names, [("a", ""), ("b", "v1")]);
        assert_eq!(glance.version, "s");
        assert_eq!(glance.removed().count(), 0);
    }

    #[test]
    fn an_answer_is_one_if_it_is_nothing_else() {
        let delta = DeltaDiscoveryRequest {
            node: Some("node".into()),
            type_url: "t".into(),
            response_nonce: "7".into(),
            ..DeltaDiscoveryRequest::default()
        };
        let ack = PlainAck {
            node: Some(b"node"),
            type_url: "t",
            nonce: "7",
            version: "",
        };
        assert_eq!(PlainAck::delta(&delta.encode_to_vec()), Some(ack));
        let sotw = DiscoveryRequest {
            version_info: "v".into(),
            type_url: "t".into(),
            response_nonce: "7".into(),
            ..DiscoveryRequest::default()
        };
        let bytes = sotw.encode_to_vec();
        let ack = PlainAck {
            node: None,
            version: "v",
            ..ack
        };
        assert_eq!(PlainAck::sotw(&bytes), Some(ack));
        assert_eq!(PlainAck::sotw(&bytes[..bytes.len() - 1]), None);

        let mut more = delta.clone();
        more.resource_names_subscribe = vec!["a".into()];
        let mut nack = delta.clone();
        nack.error_detail = Some(Status::default());
        let mut first = delta;
        first.response_nonce.clear();
        for other in [more, nack, first] {
            assert_eq!(PlainAck::delta(&other.encode_to_vec()), None);
        }
        assert_eq!(PlainAck::delta(b"\x12\x01\xff\x32\x017"), None);
    }

    #[test]
    fn what_is_broken_ends_the_walk() {
        let glance = Glance::delta(b"\x12\x05ab");
        assert_eq!(glance.entries().count(), 0);
    }
}
