//! Reads parts of a message without decoding it: nothing is allocated, and
//! every text is a slice of the received bytes.
//!
//! For callers that need little of much: the name in a body, or the names and
//! versions of a response of megabytes. Invalid protobuf ends the walk; a
//! caller that must know the difference decodes the message.

use super::message::Resource;
use super::scan;

/// The length-delimited fields of an encoded message, in order: the number of
/// each, and its bytes.
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
            if let (number, Some(value)) = scan::next(&mut bytes)? {
                return Some((number, value));
            }
        }
        None
    })
}

/// The name in the body of a resource, if it has one.
///
/// Every type of xDS has it in its first field, so the body may be of an
/// unknown type. It is no proof that the rest of the body is good.
#[must_use]
pub fn name_of(body: &[u8]) -> Option<&str> {
    // Of a repeated singular field, the last one counts.
    let last = fields(body).filter(|(number, _)| *number == 1).last();
    let name = std::str::from_utf8(last?.1).ok()?;
    Some(name).filter(|name| !name.is_empty())
}

/// The number of `initial_resource_versions` in a delta request.
const INITIAL_VERSIONS: u32 = 5;

/// Takes the entries of `initial_resource_versions` out of an encoded delta
/// request: `each` is given the bytes of each, and the rest is returned. `None`
/// if the bytes are no message.
///
/// A client that reconnects lists its whole cache, and the caches of a fleet are
/// equal: the entries need not be decoded to be recognised.
pub fn split_initial_versions(mut bytes: &[u8], mut each: impl FnMut(&[u8])) -> Option<Vec<u8>> {
    let mut rest = Vec::new();
    while !bytes.is_empty() {
        let before = bytes;
        match scan::next(&mut bytes)? {
            (INITIAL_VERSIONS, Some(entry)) => each(entry),
            _ => rest.extend_from_slice(&before[..before.len() - bytes.len()]),
        }
    }
    Some(rest)
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
    /// Of a delta response.
    #[must_use]
    pub fn delta(bytes: &'a [u8]) -> Self {
        Self::at(bytes, true)
    }

    /// Of a SotW response.
    #[must_use]
    pub fn sotw(bytes: &'a [u8]) -> Self {
        Self::at(bytes, false)
    }

    fn at(bytes: &'a [u8], delta: bool) -> Self {
        let mut glance = Self {
            bytes,
            delta,
            type_url: "",
            nonce: "",
            version: "",
        };
        for (number, value) in fields(bytes) {
            match number {
                1 => glance.version = text(value),
                4 => glance.type_url = text(value),
                5 => glance.nonce = text(value),
                _ => {}
            }
        }
        glance
    }

    /// Its resources, in order.
    pub fn entries(&self) -> impl Iterator<Item = Entry<'a>> + use<'a> {
        let delta = self.delta;
        let resources = fields(self.bytes).filter(|(number, _)| *number == 2);
        resources.map(move |(_, value)| match delta {
            true => wrapped(value),
            false => bare(value),
        })
    }

    /// The names that it removes.
    pub fn removed(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        let delta = self.delta;
        let removed = fields(self.bytes).filter(move |(number, _)| delta && *number == 6);
        removed.map(|(_, value)| text(value))
    }
}

/// A request that only acknowledges a response, as most do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer<'a> {
    /// The encoded node, if it is repeated.
    pub node: Option<&'a [u8]>,
    /// The type.
    pub type_url: &'a str,
    /// The nonce of the response.
    pub nonce: &'a str,
    /// The version that was ACKed; delta has none.
    pub version: &'a str,
}

impl<'a> Answer<'a> {
    /// Of a delta request; `None` if it has other fields, or no nonce.
    #[must_use]
    pub fn delta(bytes: &'a [u8]) -> Option<Self> {
        Self::read(bytes, [1, 2, 6, 0])
    }

    /// Of a SotW request; `None` if it has other fields, or no nonce.
    #[must_use]
    pub fn sotw(bytes: &'a [u8]) -> Option<Self> {
        Self::read(bytes, [2, 4, 5, 1])
    }

    fn read(mut bytes: &'a [u8], [node, url, nonce, version]: [u32; 4]) -> Option<Self> {
        let text = |value| std::str::from_utf8(value).ok();
        let mut answer = Self {
            node: None,
            type_url: "",
            nonce: "",
            version: "",
        };
        while !bytes.is_empty() {
            let (number, value) = scan::next(&mut bytes)?;
            match number {
                _ if number == node => answer.node = Some(value?),
                _ if number == url => answer.type_url = text(value?)?,
                _ if number == nonce => answer.nonce = text(value?)?,
                _ if number == version => answer.version = text(value?)?,
                _ => return None,
            }
        }
        Some(answer).filter(|a| !a.type_url.is_empty() && !a.nonce.is_empty())
    }
}

/// An `Any` of a SotW response.
fn bare(any: &[u8]) -> Entry<'_> {
    let (url, body) = open(any);
    if url == Resource::TYPE_URL {
        return wrapped(body);
    }
    Entry {
        name: name_of(body).unwrap_or_default(),
        version: "",
        body: Some(body),
    }
}

/// A `Resource`.
fn wrapped(resource: &[u8]) -> Entry<'_> {
    let mut entry = Entry::default();
    for (number, value) in fields(resource) {
        match number {
            1 => entry.version = text(value),
            2 => entry.body = Some(open(value).1),
            3 => entry.name = text(value),
            _ => {}
        }
    }
    if entry.name.is_empty() {
        entry.name = entry.body.and_then(name_of).unwrap_or_default();
    }
    entry
}

/// The type and the value of an `Any`.
fn open(any: &[u8]) -> (&str, &[u8]) {
    let mut opened: (&str, &[u8]) = ("", &[]);
    for (number, value) in fields(any) {
        match number {
            1 => opened.0 = text(value),
            2 => opened.1 = value,
            _ => {}
        }
    }
    opened
}

fn text(bytes: &[u8]) -> &str {
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
        let answer = Answer {
            node: Some(b"node"),
            type_url: "t",
            nonce: "7",
            version: "",
        };
        assert_eq!(Answer::delta(&delta.encode_to_vec()), Some(answer));
        let sotw = DiscoveryRequest {
            version_info: "v".into(),
            type_url: "t".into(),
            response_nonce: "7".into(),
            ..DiscoveryRequest::default()
        };
        let bytes = sotw.encode_to_vec();
        let answer = Answer {
            node: None,
            version: "v",
            ..answer
        };
        assert_eq!(Answer::sotw(&bytes), Some(answer));
        assert_eq!(Answer::sotw(&bytes[..bytes.len() - 1]), None);

        let mut more = delta.clone();
        more.resource_names_subscribe = vec!["a".into()];
        let mut nack = delta.clone();
        nack.error_detail = Some(Status::default());
        let mut first = delta;
        first.response_nonce.clear();
        for other in [more, nack, first] {
            assert_eq!(Answer::delta(&other.encode_to_vec()), None);
        }
        assert_eq!(Answer::delta(b"\x12\x01\xff\x32\x017"), None);
    }

    #[test]
    fn what_is_broken_ends_the_walk() {
        let glance = Glance::delta(b"\x12\x05ab");
        assert_eq!(glance.entries().count(), 0);
    }
}
