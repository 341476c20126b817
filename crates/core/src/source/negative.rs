//! The forms of negative answers and removals: the one table of S35 and S74.

use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};

use crate::hosts::put_varint;
use crate::kind::{Kind, NegativeForm};
use crate::message::Mode;
use crate::name::Name;
use crate::resource::{Resource, Version};

/// The client implementation whose behaviour is assumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// Envoy, as observed on the wire.
    Envoy,
    /// gRPC and others, as specified.
    Standard,
}

/// Returns the form of a negative answer; `is_held` is whether the client may
/// hold the resource.
pub(crate) fn negative_form(
    kind: &Kind,
    dialect: Dialect,
    mode: Mode,
    is_held: bool,
) -> NegativeForm {
    let form = match (mode, dialect) {
        (Mode::Delta, Dialect::Envoy) => kind.envoy_negative,
        (Mode::Delta, Dialect::Standard) => NegativeForm::Removed,
        (Mode::Sotw, Dialect::Envoy) => kind.envoy_negative_in_sotw,
        // A whole set says it by leaving the name out (S38); otherwise SotW has
        // no clean way (S39).
        (Mode::Sotw, Dialect::Standard) => NegativeForm::Silence,
    };

    match form {
        // A virtual host that Envoy holds is removed by name; one that it waits
        // for needs the other form.
        NegativeForm::Bodyless if is_held => NegativeForm::Removed,
        // A client that holds one does not wait, and keeps it whatever it is
        // sent (S57).
        NegativeForm::Unreadable if is_held => NegativeForm::Silence,
        form => form,
    }
}

/// Makes a resource with its name in field 1 and no other field: an empty
/// assignment or route configuration.
pub(crate) fn empty_body(name: &Name) -> Arc<Resource> {
    Arc::new(Resource::new(name.clone(), name_only(name).freeze()))
}

/// Makes a resource that cannot be decoded, because an invalid field follows
/// its name. An empty body would not do: an Envoy that requested a validation
/// context would trust everyone by an empty secret.
pub(crate) fn unreadable(name: &Name) -> Arc<Resource> {
    let mut body = name_only(name);
    body.put_u8(0x07);
    Arc::new(Resource::new(name.clone(), body.freeze()))
}

/// Makes a cluster that Envoy refuses to create, so that it keeps its own: the
/// cluster is of type EDS and has no source of endpoints (S82). A cluster with
/// nothing but a name would replace Envoy's.
pub(crate) fn invalid_cluster(name: &Name) -> Arc<Resource> {
    let mut body = name_only(name);
    body.put_slice(&[0x10, 0x03]);
    Arc::new(Resource::new(name.clone(), body.freeze()))
}

/// Encodes a message with a name in field 1, to which the caller may append
/// fields.
fn name_only(name: &Name) -> BytesMut {
    let text = name.as_str().as_bytes();
    let mut body = BytesMut::with_capacity(text.len() + 7);
    body.put_u8(0x0a);
    put_varint(&mut body, text.len() as u64);
    body.put_slice(text);
    body
}

/// Makes a resource without a body that has the requested name as an alias, and
/// as its own name, too, unless that is taken.
///
/// Its version has a number that the client was not sent before. Envoy takes a
/// resource without a body at a version that it knows for a heartbeat, and a
/// request for the name would wait for ever.
pub(crate) fn bodyless(name: Name, requested_name: &Name, number: u64) -> Arc<Resource> {
    Arc::new(Resource {
        aliases: Box::new([requested_name.clone()]),
        version: Version::new(format!("-{number:x}")),
        body: None,
        ..Resource::new(name, Bytes::new())
    })
}

/// Returns whether a version is that of a resource without a body.
pub(crate) fn is_negative_version(version: &Version) -> bool {
    negative_number(version).is_some()
}

/// Returns the number of a resource without a body, by its version; `None` if
/// it is the version of a body. Other servers give them no version.
pub(crate) fn negative_number(version: &Version) -> Option<u64> {
    match version.as_str() {
        "" => Some(0),
        text => u64::from_str_radix(text.strip_prefix('-')?, 16).ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind;

    fn form(url: &str, dialect: Dialect, mode: Mode, held: bool) -> NegativeForm {
        negative_form(&Kind::of(&url.into()), dialect, mode, held)
    }

    #[test]
    fn s35_the_table_of_negatives_for_envoy() {
        use NegativeForm::{Bodyless, EmptyBody, Removed, Silence, Unreadable};
        let table = [
            (kind::CDS, Removed, Silence),
            (kind::LDS, Removed, Silence),
            (kind::EDS, EmptyBody, EmptyBody),
            (kind::RDS, EmptyBody, EmptyBody),
            (kind::SDS, Removed, Unreadable),
            (kind::RTDS, Removed, EmptyBody),
            (kind::ECDS, Unreadable, Unreadable),
            (kind::VHDS, Bodyless, Silence),
            ("unknown", Removed, Silence),
        ];
        for (url, delta, sotw) in table {
            assert_eq!(
                form(url, Dialect::Envoy, Mode::Delta, false),
                delta,
                "{url}"
            );
            assert_eq!(form(url, Dialect::Envoy, Mode::Sotw, false), sotw, "{url}");
        }
    }

    #[test]
    fn s35_other_clients_get_the_specification() {
        for url in kind::ALL {
            for held in [false, true] {
                assert_eq!(
                    form(url, Dialect::Standard, Mode::Delta, held),
                    NegativeForm::Removed
                );
                assert_eq!(
                    form(url, Dialect::Standard, Mode::Sotw, held),
                    NegativeForm::Silence
                );
            }
        }
    }

    #[test]
    fn s74_what_envoy_holds_is_withdrawn_by_its_empty_form() {
        for url in [kind::EDS, kind::RDS] {
            assert_eq!(
                form(url, Dialect::Envoy, Mode::Delta, true),
                NegativeForm::EmptyBody
            );
            assert_eq!(
                form(url, Dialect::Envoy, Mode::Sotw, true),
                NegativeForm::EmptyBody
            );
        }
        assert_eq!(
            form(kind::VHDS, Dialect::Envoy, Mode::Delta, true),
            NegativeForm::Removed
        );
        assert_eq!(
            form(kind::RTDS, Dialect::Envoy, Mode::Sotw, true),
            NegativeForm::EmptyBody
        );
    }

    #[test]
    fn what_has_no_body_is_known_by_its_version() {
        let name = Name::new("r/a");
        let versions = [1, 2, u64::MAX].map(|n| bodyless(name.clone(), &name, n).version.clone());
        let numbers = versions.each_ref().map(negative_number);
        assert_eq!(numbers, [Some(1), Some(2), Some(u64::MAX)]);
        assert_eq!(negative_number(&Version::new("")), Some(0));
        for other in [
            Version::of_body(b"x"),
            Version::new("-"),
            Version::new("-x"),
        ] {
            assert!(!is_negative_version(&other), "{other}");
        }
    }

    #[test]
    fn s57_what_envoy_holds_and_would_keep_is_not_spoken_of() {
        let table = [
            (kind::ECDS, Mode::Delta),
            (kind::ECDS, Mode::Sotw),
            (kind::SDS, Mode::Sotw),
        ];
        for (url, mode) in table {
            assert_eq!(form(url, Dialect::Envoy, mode, true), NegativeForm::Silence);
        }
    }

    #[test]
    fn an_empty_body_is_a_message_with_its_name() {
        let short = empty_body(&Name::new("c1"));
        assert_eq!(short.body.as_deref(), Some(&b"\x0a\x02c1"[..]));
        let longer = empty_body(&Name::new(&"x".repeat(200)));
        assert_eq!(&longer.body.as_ref().unwrap()[..3], [0x0a, 0xc8, 0x01]);
        let long = empty_body(&Name::new(&"x".repeat(300)));
        assert_eq!(&long.body.as_ref().unwrap()[..3], [0x0a, 0xac, 0x02]);
        assert_eq!(long.body.as_ref().unwrap().len(), 303);
    }
    /// Field 0 is not valid in any protobuf implementation.
    #[test]
    fn an_unreadable_body_ends_in_what_is_no_field() {
        let negative = unreadable(&Name::new("s1"));
        assert_eq!(negative.body.as_deref(), Some(&b"\x0a\x02s1\x07"[..]));
    }
}
