//! How "it does not exist" and "it is gone" are said: the one table of S35 and S74.

use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};

use crate::kind::{Absent, Kind};
use crate::message::Mode;
use crate::name::Name;
use crate::resource::{Resource, Version};

/// Whose habits a peer has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// Envoy, as it was seen on the wire.
    Envoy,
    /// gRPC and others: the specification.
    Standard,
}

/// How to say that a name does not exist; `held` is whether the peer may hold it.
pub(crate) fn absent(kind: &Kind, dialect: Dialect, mode: Mode, held: bool) -> Absent {
    match (mode, dialect, kind.envoy_absent) {
        (Mode::Sotw, Dialect::Envoy, Absent::EmptyBody) => Absent::EmptyBody,
        // A whole set says it itself (S38); elsewhere there is no clean way (S39).
        (Mode::Sotw, _, _) => Absent::Silence,
        (Mode::Delta, Dialect::Standard, _) => Absent::Removed,
        // A virtual host that Envoy holds goes by its name; one that it waits
        // for needs the other form.
        (Mode::Delta, Dialect::Envoy, Absent::Bodyless) if held => Absent::Removed,
        (Mode::Delta, Dialect::Envoy, form) => form,
    }
}

/// A resource that has its name in field 1 and nothing else: how an empty
/// assignment and an empty route configuration look.
pub(crate) fn empty_body(name: &Name) -> Arc<Resource> {
    let text = name.as_str().as_bytes();
    let mut body = BytesMut::with_capacity(text.len() + 6);
    body.put_u8(0x0a);
    let mut length = text.len();
    while length >= 0x80 {
        body.put_u8(length as u8 | 0x80);
        length >>= 7;
    }
    body.put_u8(length as u8);
    body.put_slice(text);
    Arc::new(Resource::new(name.clone(), body.freeze()))
}

/// A resource without a body that has the name that was asked for as alias. It
/// has that as its own name, too, unless something else is called so.
///
/// Its version has a number that the peer was not told before. Envoy takes what
/// has no body and the version that it knows for a heartbeat, and who waits for
/// the name would wait for ever.
pub(crate) fn bodyless(own: Name, asked: &Name, number: u64) -> Arc<Resource> {
    Arc::new(Resource {
        aliases: Box::new([asked.clone()]),
        version: Version::new(format!("-{number:x}")),
        body: None,
        ..Resource::new(own, Bytes::new())
    })
}

/// Whether a version is that of a resource without a body.
pub(crate) fn is_negative(version: &Version) -> bool {
    negative_number(version).is_some()
}

/// The number of a resource without a body, by its version; `None` if it is the
/// version of a body. Other servers give them no version.
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

    fn form(url: &str, dialect: Dialect, mode: Mode, held: bool) -> Absent {
        absent(&Kind::of(&url.into()), dialect, mode, held)
    }

    #[test]
    fn s35_the_table_of_negatives_for_envoy() {
        use Absent::{Bodyless, EmptyBody, Removed, Silence};
        let table = [
            (kind::CDS, Removed, Silence),
            (kind::LDS, Removed, Silence),
            (kind::EDS, EmptyBody, EmptyBody),
            (kind::RDS, EmptyBody, EmptyBody),
            (kind::SDS, Removed, Silence),
            (kind::RTDS, Removed, Silence),
            (kind::ECDS, Silence, Silence),
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
                    Absent::Removed
                );
                assert_eq!(
                    form(url, Dialect::Standard, Mode::Sotw, held),
                    Absent::Silence
                );
            }
        }
    }

    #[test]
    fn s74_what_envoy_holds_is_withdrawn_by_its_empty_form() {
        for url in [kind::EDS, kind::RDS] {
            assert_eq!(
                form(url, Dialect::Envoy, Mode::Delta, true),
                Absent::EmptyBody
            );
            assert_eq!(
                form(url, Dialect::Envoy, Mode::Sotw, true),
                Absent::EmptyBody
            );
        }
        assert_eq!(
            form(kind::VHDS, Dialect::Envoy, Mode::Delta, true),
            Absent::Removed
        );
        assert_eq!(
            form(kind::ECDS, Dialect::Envoy, Mode::Delta, true),
            Absent::Silence
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
            assert!(!is_negative(&other), "{other}");
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
}
