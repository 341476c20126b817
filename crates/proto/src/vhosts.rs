//! Virtual hosts on the wire: taken out of a route configuration, and renamed.
//!
//! Both work on encoded bytes, without descriptors, because a route
//! configuration may have a million of them. Unknown fields are kept, and
//! canonical bytes stay canonical.

use bytes::Bytes;
use prost::DecodeError;
use prost::encoding::{self as wire, DecodeContext, WireType};

/// The name of a `RouteConfiguration` and of a `VirtualHost`.
const NAME: u32 = 1;
/// `RouteConfiguration.virtual_hosts`.
pub(crate) const VIRTUAL_HOSTS: u32 = 2;
/// `RouteConfiguration.vhds`.
pub(crate) const VHDS: u32 = 9;

/// A route configuration with VHDS, and the virtual hosts that are written in
/// it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Split {
    /// The route configuration without virtual hosts.
    pub rest: Bytes,
    /// The virtual hosts in their order, each a slice of the route
    /// configuration.
    pub hosts: Vec<Bytes>,
}

/// Separates the virtual hosts from an encoded `RouteConfiguration` that uses
/// VHDS. Returns `None` without `vhds`, since a client then expects them inside
/// the configuration; and without virtual hosts.
///
/// ```
/// use bytes::Bytes;
/// use trunkline_proto::vhosts;
///
/// // name: "r", virtual_hosts: [{name: "v"}], vhds: {}
/// let route = Bytes::from_static(b"\x0a\x01r\x12\x03\x0a\x01v\x4a\x00");
/// let split = vhosts::split(&route).unwrap().unwrap();
/// assert_eq!(split.rest, &b"\x0a\x01r\x4a\x00"[..]);
/// assert_eq!(vhosts::rename(&split.hosts[0], "r/v").unwrap(), b"\x0a\x03r/v");
/// ```
///
/// # Errors
/// The bytes are no message.
pub fn split(route: &Bytes) -> Result<Option<Split>, DecodeError> {
    let mut hosts = Vec::new();
    let mut remainder = Vec::new();
    let mut has_vhds = false;

    for field in fields(route) {
        let field = field?;
        if field.is(VIRTUAL_HOSTS) {
            hosts.push(route.slice_ref(field.value));
        } else {
            has_vhds |= field.number == VHDS;
            remainder.extend_from_slice(field.encoded);
        }
    }

    if !has_vhds || hosts.is_empty() {
        return Ok(None);
    }
    let remainder = remainder.into();
    Ok(Some(Split {
        rest: remainder,
        hosts,
    }))
}

/// Encodes a `VirtualHost` with another name, which comes first. The other
/// fields keep their bytes and their order.
///
/// # Errors
/// The bytes are no message.
pub fn rename(host: &[u8], name: &str) -> Result<Vec<u8>, DecodeError> {
    // No other name may stay, since the last value of a repeated singular field
    // counts. An error passes the filter, and is returned below.
    let is_name = |field: &Field<'_>| field.is(NAME);
    let other_fields = || fields(host).filter(move |field| !field.as_ref().is_ok_and(is_name));
    let other_lens = other_fields().map(|field| Ok(field?.encoded.len()));
    let others_len = other_lens.sum::<Result<usize, DecodeError>>()?;

    // The capacity is exact, since there may be a million virtual hosts.
    let mut renamed = Vec::with_capacity(name_field_len(name) + others_len);
    put_name_field(&mut renamed, name);
    for field in other_fields() {
        renamed.extend_from_slice(field?.encoded);
    }
    Ok(renamed)
}

/// Writes the field of a name; an empty name is no field.
fn put_name_field(buf: &mut Vec<u8>, name: &str) {
    if !name.is_empty() {
        wire::encode_key(NAME, WireType::LengthDelimited, buf);
        wire::encode_varint(name.len() as u64, buf);
        buf.extend_from_slice(name.as_bytes());
    }
}

/// Returns the number of bytes that [`put_name_field`] writes.
fn name_field_len(name: &str) -> usize {
    match name.len() {
        0 => 0,
        len => wire::key_len(NAME) + wire::encoded_len_varint(len as u64) + len,
    }
}

/// A field of a message.
pub(crate) struct Field<'a> {
    pub(crate) number: u32,
    pub(crate) wire_type: WireType,
    /// Its value, if it is length-delimited.
    pub(crate) value: &'a [u8],
    /// The field with its key.
    encoded: &'a [u8],
}

impl Field<'_> {
    /// Returns whether the field is length-delimited and has this number.
    fn is(&self, number: u32) -> bool {
        self.number == number && self.wire_type == WireType::LengthDelimited
    }
}

/// Walks the fields of an encoded message in order. A malformed field is an
/// error, and the last item.
pub(crate) fn fields(bytes: &[u8]) -> impl Iterator<Item = Result<Field<'_>, DecodeError>> {
    let mut unread = bytes;
    std::iter::from_fn(move || {
        if unread.is_empty() {
            return None;
        }
        let field = take_field(&mut unread);
        if field.is_err() {
            unread = &[];
        }
        Some(field)
    })
}

/// Removes the first field from `unread`, which must not be empty. The value of
/// a field that is not length-delimited is empty.
fn take_field<'a>(unread: &mut &'a [u8]) -> Result<Field<'a>, DecodeError> {
    let field_start = *unread;
    let (number, wire_type) = wire::decode_key(unread)?;
    let value_start = *unread;
    wire::skip_field(wire_type, number, unread, DecodeContext::default())?;

    let mut value = &value_start[..value_start.len() - unread.len()];
    match wire_type {
        // The length is before the value. `skip_field` has checked it.
        WireType::LengthDelimited => {
            wire::decode_varint(&mut value)?;
        }
        _ => value = &[],
    }

    Ok(Field {
        number,
        wire_type,
        value,
        encoded: &field_start[..field_start.len() - unread.len()],
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::envoy::envoy::config::core::v3::ConfigSource;
    use crate::envoy::envoy::config::route::v3::{RouteConfiguration, Vhds, VirtualHost};
    use proptest::prelude::*;
    use prost::Message;

    /// An unknown field of each wire type, a group included.
    fn unknown() -> impl Strategy<Value = Vec<u8>> {
        prop::sample::select(vec![
            &b"\xa0\x3f\x05"[..],
            b"\xa1\x3f12345678",
            b"\xa2\x3f\x02ab",
            b"\xa3\x3f\x08\x01\xa4\x3f",
            b"\xa5\x3f1234",
            b"",
        ])
        .prop_map(<[u8]>::to_vec)
    }

    fn host() -> impl Strategy<Value = VirtualHost> {
        (".{0,20}", prop::collection::vec("[a-z.*]{0,9}", 0..3)).prop_map(|(name, domains)| {
            VirtualHost {
                name,
                domains,
                include_request_attempt_count: true,
                ..VirtualHost::default()
            }
        })
    }

    fn route() -> impl Strategy<Value = RouteConfiguration> {
        let hosts = prop::collection::vec(host(), 0..5);
        (".{0,9}", hosts, any::<bool>()).prop_map(|(name, virtual_hosts, vhds)| {
            RouteConfiguration {
                name,
                virtual_hosts,
                vhds: vhds.then(|| Vhds {
                    config_source: Some(ConfigSource::default()),
                }),
                most_specific_header_mutations_wins: true,
                ..RouteConfiguration::default()
            }
        })
    }

    proptest! {
        #[test]
        fn a_renamed_host_is_the_host_with_another_name(
            host in host(),
            name in ".{0,200}",
            before in unknown(),
            after in unknown(),
        ) {
            let bytes = [before.clone(), host.encode_to_vec(), after.clone()].concat();
            let renamed = rename(&bytes, &name).unwrap();
            let expected = VirtualHost { name, ..host };
            prop_assert_eq!(VirtualHost::decode(&renamed[..]).unwrap(), expected.clone());
            prop_assert_eq!(renamed.capacity(), renamed.len());
            let unknown = before.len() + after.len();
            prop_assert_eq!(renamed.len(), expected.encoded_len() + unknown);
            if before.is_empty() {
                prop_assert_eq!(renamed, [expected.encode_to_vec(), after].concat());
            }
        }

        #[test]
        fn a_split_route_is_the_route_without_its_hosts(
            route in route(),
            before in unknown(),
            after in unknown(),
        ) {
            let bytes = Bytes::from([before.clone(), route.encode_to_vec(), after.clone()].concat());
            let split = split(&bytes).unwrap();
            let hosts = route.virtual_hosts.clone();
            prop_assert_eq!(split.is_some(), route.vhds.is_some() && !hosts.is_empty());
            if let Some(split) = split {
                let decoded = split.hosts.iter().map(|host| VirtualHost::decode(&host[..]).unwrap());
                prop_assert_eq!(decoded.collect::<Vec<_>>(), hosts);
                let expected = RouteConfiguration { virtual_hosts: Vec::new(), ..route };
                prop_assert_eq!(split.rest, [before, expected.encode_to_vec(), after].concat());
            }
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            let _ = rename(&bytes, "x");
            let _ = split(&bytes.into());
        }
    }

    #[test]
    fn a_name_that_stands_twice_is_replaced_twice() {
        assert_eq!(
            rename(b"\x0a\x01a\x12\x01d\x0a\x01b", "c").unwrap(),
            b"\x0a\x01c\x12\x01d"
        );
    }

    #[test]
    fn what_ends_inside_a_field_is_refused() {
        for bytes in [&b"\x0a\x05a"[..], b"\x12", b"\x0b\x08", b"\x00"] {
            assert!(rename(bytes, "x").is_err(), "{bytes:?}");
            assert!(split(&Bytes::copy_from_slice(bytes)).is_err(), "{bytes:?}");
        }
    }

    /// The numbers of fields are written in this file by hand.
    #[test]
    fn fields_have_the_numbers_that_envoy_gave_them() {
        use crate::descriptor::{message, types};
        let number = |url, field| {
            let of: prost_reflect::MessageDescriptor = message(url).unwrap();
            of.get_field_by_name(field).unwrap().number()
        };
        assert_eq!(number(types::ROUTE_CONFIGURATION, "name"), NAME);
        assert_eq!(number(types::VIRTUAL_HOST, "name"), NAME);
        assert_eq!(
            number(types::ROUTE_CONFIGURATION, "virtual_hosts"),
            VIRTUAL_HOSTS
        );
        assert_eq!(number(types::ROUTE_CONFIGURATION, "vhds"), VHDS);
    }
}
