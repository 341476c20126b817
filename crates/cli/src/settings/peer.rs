//! Settings of the Mesh Configuration Protocol: a peer to dial, and
//! collections.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use trunkline::client::{Address, ControlPlane, Pem, Security, TlsOptions};
use trunkline::kind::ALL;
use trunkline_proto::mcp::Collection;

use super::value::{Arity, BadValue, Field};
use crate::kinds;

/// An address to dial: `host:port`, or with `https://` before it for TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Peer {
    text: String,
    address: Address,
    is_secure: bool,
}

impl Peer {
    /// Returns the peer as a control plane. `ca` are the authorities of its
    /// certificate, and `certificate` is shown to it; both are ignored without
    /// TLS.
    pub(crate) fn control_plane(
        &self,
        ca: Option<&PathBuf>,
        certificate: Option<(&PathBuf, &PathBuf)>,
    ) -> ControlPlane {
        let file = |path: &PathBuf| Pem::File(path.clone());
        let mut plane = ControlPlane::plaintext(self.address.clone());
        if self.is_secure {
            plane.security = Security::Tls(TlsOptions {
                ca: ca.map(file),
                certificate: certificate.map(|(cert, key)| (file(cert), file(key))),
                server_name: None,
            });
        }
        plane
    }
}

impl FromStr for Peer {
    type Err = BadValue;

    /// Parses an address with a port. `https://` before it means TLS.
    fn from_str(text: &str) -> Result<Self, BadValue> {
        let (is_secure, authority) = match text.split_once("://") {
            Some(("https", authority)) => (true, authority),
            Some(("http", authority)) => (false, authority),
            _ => (false, text),
        };
        let address = authority.trim_end_matches('/').parse();
        let expected = "an address with a port, such as 127.0.0.1:18010 or https://a.example:443";
        Ok(Self {
            text: text.to_owned(),
            address: address.map_err(|_| BadValue::new(text, expected))?,
            is_secure,
        })
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Field for Option<Peer> {
    fn put(&mut self, text: &str) -> Result<(), BadValue> {
        *self = Some(text.parse()?);
        Ok(())
    }

    fn show(&self) -> Vec<String> {
        self.iter().map(ToString::to_string).collect()
    }
}

/// Collections that a sink asks for; those of Envoy's types, but for secrets,
/// if none is named.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Collections(Vec<String>);

impl Collections {
    /// Returns the names of the collections: those of the settings, or of all
    /// types but secrets if the settings name none.
    pub(crate) fn names(&self) -> Vec<String> {
        match &self.0[..] {
            [] => {
                let types = ALL.iter().filter(|url| **url != trunkline::kind::SDS);
                types.map(|url| Collection::of_type_url(url)).collect()
            }
            names => names.to_vec(),
        }
    }
}

/// Returns the collection that a word means: a collection, a word for a type
/// such as `cds`, or a type URL.
pub(crate) fn parse_collection(word: &str) -> String {
    // A word with a slash is a collection, unless it is a type URL.
    let is_type = !word.contains('/') || word.starts_with("type.googleapis.com/");
    match kinds::parse(word) {
        Ok(type_url) if is_type => Collection::of_type_url(type_url.as_str()),
        _ => word.to_owned(),
    }
}

impl Field for Collections {
    /// Adds the collections of a list with commas. A name without a slash is
    /// not a collection.
    fn put(&mut self, text: &str) -> Result<(), BadValue> {
        let words = text.split(',').map(str::trim);
        for word in words.filter(|word| !word.is_empty()) {
            let name = parse_collection(word);
            if !name.contains('/') {
                let expected =
                    "a collection such as istio/networking/v1/gateways, or a type such as cds";
                return Err(BadValue::new(word, expected));
            }
            self.0.push(name);
        }
        Ok(())
    }

    fn show(&self) -> Vec<String> {
        self.0.clone()
    }

    fn arity(&self) -> Arity {
        Arity::Many
    }
}

/// Keys with values, such as annotations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pairs(pub(crate) Vec<(String, String)>);

/// Reads `KEY=VALUE`.
pub(crate) fn parse_pair(text: &str) -> Result<(String, String), BadValue> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err(BadValue::new(text, "a key and a value, such as env=canary")),
    }
}

impl Field for Pairs {
    fn put(&mut self, text: &str) -> Result<(), BadValue> {
        self.0.push(parse_pair(text)?);
        Ok(())
    }

    fn show(&self) -> Vec<String> {
        let pairs = self.0.iter();
        pairs.map(|(key, value)| format!("{key}={value}")).collect()
    }

    fn arity(&self) -> Arity {
        Arity::Many
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_has_tls_if_its_scheme_says_so() {
        for (text, is_secure) in [
            ("127.0.0.1:1", false),
            ("http://a.example:1", false),
            ("https://a.example:443/", true),
        ] {
            let peer: Peer = text.parse().unwrap();
            assert_eq!(
                (peer.to_string().as_str(), peer.is_secure),
                (text, is_secure)
            );
            let plane = peer.control_plane(None, None);
            assert_eq!(matches!(plane.security, Security::Tls(_)), is_secure);
        }
        for bad in ["", "a", "a:b", "https://"] {
            assert!(bad.parse::<Peer>().is_err(), "{bad}");
        }
    }

    #[test]
    fn collections_are_named_or_meant() {
        let mut some = Collections::default();
        assert!(
            some.names()
                .contains(&"envoy/listener/v3/listeners".to_owned())
        );
        assert!(!some.names().contains(&"envoy/tls/v3/secrets".to_owned()));
        some.put("cds, istio/networking/v1/gateways").unwrap();
        some.put("secrets").unwrap();
        let expected = [
            "envoy/cluster/v3/clusters",
            "istio/networking/v1/gateways",
            "envoy/tls/v3/secrets",
        ];
        assert_eq!(some.names(), expected);
        assert!(some.put("bananas").is_err());
    }
}
