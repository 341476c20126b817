//! The identity of a client, by its certificate.
//!
//! The handshake verified the certificate. This only reads the name in it.

use std::fmt;

use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::server::TlsStream;
use webpki::EndEntityCert;

use crate::identity::Identity;

/// The certificate of a client, accepted by the handshake.
#[derive(Clone, PartialEq, Eq)]
pub struct PeerCertificate {
    der: CertificateDer<'static>,
    identity: Option<Identity>,
}

impl fmt::Debug for PeerCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PeerCertificate")
            .field(&self.identity)
            .finish()
    }
}

impl PeerCertificate {
    /// Returns the certificate that a connection's client sent; `None` if it
    /// sent none.
    #[must_use]
    pub fn of<S>(stream: &TlsStream<S>) -> Option<Self> {
        let (_, connection) = stream.get_ref();
        let leaf = connection.peer_certificates()?.first()?;
        Some(Self::read(leaf.clone().into_owned()))
    }

    /// Reads the identity in a certificate, and keeps both.
    fn read(der: CertificateDer<'static>) -> Self {
        let identity = read_identity(&der);
        Self { der, identity }
    }

    /// Returns the certificate as it was received.
    #[must_use]
    pub fn der(&self) -> &[u8] {
        &self.der
    }

    /// Returns the name of its owner.
    #[must_use]
    pub fn identity(&self) -> Option<&Identity> {
        self.identity.as_ref()
    }
}

/// Returns the name of a certificate's owner: a URI, or else a DNS name, or
/// else the common name. `None` means a certificate without any.
fn read_identity(der: &CertificateDer<'_>) -> Option<Identity> {
    let certificate = EndEntityCert::try_from(der).ok()?;
    if let Some(name) = certificate.valid_uri_names().next() {
        return Some(Identity::Uri(name.to_owned()));
    }
    if let Some(name) = certificate.valid_dns_names().next() {
        return Some(Identity::Dns(name.to_owned()));
    }
    find_common_name(certificate.subject()).map(Identity::CommonName)
}

const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const OID: u8 = 0x06;
/// The ASN.1 strings that are UTF-8 as they stand: UTF8String, PrintableString,
/// IA5String.
const STRINGS: [u8; 3] = [0x0c, 0x13, 0x16];
/// The object identifier 2.5.4.3.
const COMMON_NAME: [u8; 3] = [0x55, 0x04, 0x03];

/// Finds the last common name in a subject, which is the most specific one.
/// Returns `None` if there is none, or if it is empty.
fn find_common_name(mut subject: &[u8]) -> Option<String> {
    let mut name = None;
    while let Some((SET, mut set)) = take_der(&mut subject) {
        while let Some((SEQUENCE, mut pair)) = take_der(&mut set) {
            let key = take_der(&mut pair);
            let (kind, text) = take_der(&mut pair)?;
            if key == Some((OID, &COMMON_NAME)) && STRINGS.contains(&kind) {
                name = std::str::from_utf8(text).ok();
            }
        }
    }
    name.filter(|name| !name.is_empty()).map(str::to_owned)
}

/// Takes the first value off some DER, and returns its tag and contents.
/// Returns `None` if the value is incomplete or longer than 64 KiB.
fn take_der<'a>(input: &mut &'a [u8]) -> Option<(u8, &'a [u8])> {
    let [tag, length, remaining @ ..] = *input else {
        return None;
    };
    let (length, remaining) = match *length {
        short @ ..=0x7f => (usize::from(short), remaining),
        // The length is in the next byte, or in the next two.
        0x81 => (usize::from(*remaining.first()?), remaining.get(1..)?),
        0x82 => {
            let [high, low, remaining @ ..] = remaining else {
                return None;
            };
            (usize::from(u16::from_be_bytes([*high, *low])), remaining)
        }
        _ => return None,
    };
    let (value, tail) = remaining.split_at_checked(length)?;
    *input = tail;
    Some((*tag, value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, DnType, KeyPair, SanType};

    fn name(sans: Vec<SanType>, common: Option<&str>) -> Option<Identity> {
        let mut params = CertificateParams::default();
        params.subject_alt_names = sans;
        params.distinguished_name = rcgen::DistinguishedName::new();
        params
            .distinguished_name
            .push(DnType::OrganizationName, "o");
        if let Some(common) = common {
            params.distinguished_name.push(DnType::CommonName, common);
        }
        let key = KeyPair::generate().unwrap();
        let der = params.self_signed(&key).unwrap().der().clone();
        PeerCertificate::read(der).identity
    }

    #[test]
    fn a_uri_comes_before_a_dns_name_and_that_before_a_common_name() {
        let dns = || SanType::DnsName("a.example".try_into().unwrap());
        let uri = SanType::URI("spiffe://example/a".try_into().unwrap());
        let long = "x".repeat(300);
        assert_eq!(
            name(vec![dns(), uri], Some("a")),
            Some(Identity::Uri("spiffe://example/a".into()))
        );
        assert_eq!(
            name(vec![dns()], Some("a")),
            Some(Identity::Dns("a.example".into()))
        );
        for common in ["a", &long] {
            let expected = Identity::CommonName(common.into());
            assert_eq!(name(vec![], Some(common)), Some(expected));
        }
        assert_eq!(name(vec![], None), None);
    }

    #[test]
    fn what_is_no_subject_has_no_name() {
        for odd in [
            &b""[..],
            b"\x31",
            b"\x31\x05\x30",
            b"\x31\x84\xff\xff\xff\xff",
            b"\x31\x02\x30\x00",
        ] {
            assert_eq!(find_common_name(odd), None);
        }
        let garbage = PeerCertificate::read(vec![1, 2, 3].into());
        assert_eq!(garbage.identity(), None);
    }
}
