//! The virtual host of a host: exact, then the longest suffix wildcard, then
//! the longest prefix wildcard, then `*` (34; facts 1.1).

use std::borrow::Cow;
use std::sync::Arc;

use super::virtual_host::VirtualHost;
use crate::persistent::PersistentMap;

/// All domains of a table. A copy is cheap, and a domain is added or removed at
/// a cost that does not depend on how many there are.
#[derive(Debug, Clone, Default)]
pub(super) struct Domains {
    exact: PersistentMap<Arc<VirtualHost>>,
    suffixes: Wildcards,
    prefixes: Wildcards,
    any: Option<Arc<VirtualHost>>,
}

/// Wildcards of one kind, by the text beside the `*`.
#[derive(Debug, Clone, Default)]
struct Wildcards {
    hosts: PersistentMap<Arc<VirtualHost>>,
    /// The lengths of these texts and how many have each, longest first.
    lengths: Vec<(usize, usize)>,
}

/// What a domain is.
enum Domain<'d> {
    Any,
    Suffix(&'d str),
    Prefix(&'d str),
    Exact(&'d str),
}

impl<'d> Domain<'d> {
    /// Parses a domain. A `*` in front makes it a suffix wildcard, even if the
    /// domain ends in a `*` too.
    fn parse(domain: &'d str) -> Self {
        match (domain.strip_prefix('*'), domain.strip_suffix('*')) {
            (Some(""), _) => Self::Any,
            (Some(suffix), _) => Self::Suffix(suffix),
            (None, Some(prefix)) => Self::Prefix(prefix),
            (None, None) => Self::Exact(domain),
        }
    }
}

impl Domains {
    /// Adds a domain in lower case. Returns `false` and changes nothing if
    /// another virtual host has the domain.
    pub(super) fn add(&mut self, domain: &str, host: &Arc<VirtualHost>) -> bool {
        if self.holder(domain).is_some() {
            return false;
        }
        let host = Arc::clone(host);
        match Domain::parse(domain) {
            Domain::Any => self.any = Some(host),
            Domain::Suffix(suffix) => self.suffixes.add(suffix, host),
            Domain::Prefix(prefix) => self.prefixes.add(prefix, host),
            Domain::Exact(name) => {
                self.exact.insert(name, host);
            }
        }
        true
    }

    /// Removes a domain. Does nothing if no virtual host has it.
    pub(super) fn remove(&mut self, domain: &str) {
        match Domain::parse(domain) {
            Domain::Any => self.any = None,
            Domain::Suffix(suffix) => self.suffixes.remove(suffix),
            Domain::Prefix(prefix) => self.prefixes.remove(prefix),
            Domain::Exact(name) => {
                self.exact.remove(name);
            }
        }
    }

    /// Returns the virtual host that has exactly this domain in its list.
    pub(super) fn holder(&self, domain: &str) -> Option<&Arc<VirtualHost>> {
        match Domain::parse(domain) {
            Domain::Any => self.any.as_ref(),
            Domain::Suffix(suffix) => self.suffixes.hosts.get(suffix.as_bytes()),
            Domain::Prefix(prefix) => self.prefixes.hosts.get(prefix.as_bytes()),
            Domain::Exact(name) => self.exact.get(name.as_bytes()),
        }
    }

    /// Finds the virtual host for a host in any case: by an exact domain, else
    /// by the longest suffix, the longest prefix, or `*`.
    pub(super) fn find_host(&self, host: &str) -> Option<&Arc<VirtualHost>> {
        let has_only_any = self.exact.len() == 0
            && self.suffixes.lengths.is_empty()
            && self.prefixes.lengths.is_empty();
        if has_only_any {
            return self.any.as_ref();
        }

        let mut buffer = [0; 256];
        let lower_host = to_lower(host, &mut buffer);
        self.exact
            .get(&lower_host)
            .or_else(|| {
                self.suffixes.find(&lower_host, |length| {
                    &lower_host[lower_host.len() - length..]
                })
            })
            .or_else(|| {
                self.prefixes
                    .find(&lower_host, |length| &lower_host[..length])
            })
            .or(self.any.as_ref())
    }
}

impl Wildcards {
    /// Adds a wildcard that nobody has yet, by the text beside its `*`.
    fn add(&mut self, text: &str, host: Arc<VirtualHost>) {
        self.hosts.insert(text, host);
        match self.position(text.len()) {
            Ok(position) => self.lengths[position].1 += 1,
            Err(position) => self.lengths.insert(position, (text.len(), 1)),
        }
    }

    /// Removes the host of a wildcard, and its length if no other wildcard has
    /// the same.
    fn remove(&mut self, text: &str) {
        if self.hosts.remove(text).is_none() {
            return;
        }
        if let Ok(position) = self.position(text.len()) {
            self.lengths[position].1 -= 1;
            if self.lengths[position].1 == 0 {
                self.lengths.remove(position);
            }
        }
    }

    /// Returns the position of a length among the others, or where it belongs.
    fn position(&self, length: usize) -> Result<usize, usize> {
        self.lengths
            .binary_search_by(|(other, _)| length.cmp(other))
    }

    /// Finds the wildcard with the longest text that matches. `part` returns the
    /// part of the host of so many bytes on the side of the text. The `*` stands
    /// for at least one character, so a text as long as the host does not match.
    fn find<'h>(&self, host: &[u8], part: impl Fn(usize) -> &'h [u8]) -> Option<&Arc<VirtualHost>> {
        let lengths = self.lengths.iter().map(|(length, _)| *length);
        let mut shorter = lengths.filter(|length| *length < host.len());
        shorter.find_map(|length| self.hosts.get(part(length)))
    }
}

/// Converts a host to lower case, in `buffer` if it fits, so that only a long
/// host needs an allocation.
fn to_lower<'h>(host: &'h str, buffer: &'h mut [u8; 256]) -> Cow<'h, [u8]> {
    // All of it is looked at: without a way out several bytes are one step.
    let has_upper = host
        .bytes()
        .fold(false, |has, byte| has | byte.is_ascii_uppercase());
    if !has_upper {
        return Cow::Borrowed(host.as_bytes());
    }
    match buffer.get_mut(..host.len()) {
        Some(copy) => {
            copy.copy_from_slice(host.as_bytes());
            copy.make_ascii_lowercase();
            Cow::Borrowed(copy)
        }
        None => Cow::Owned(host.as_bytes().to_ascii_lowercase()),
    }
}

#[cfg(test)]
mod tests {
    use trunkline_proto::envoy::envoy::config::route::v3::{
        RouteConfiguration, VirtualHost as Message,
    };

    use super::super::table::RouteTable;
    use super::*;

    /// Lengths without a wildcard would be looked up for every request.
    #[test]
    fn d53_lengths_go_with_their_last_wildcard() {
        let message = RouteConfiguration {
            virtual_hosts: vec![Message {
                name: "v".to_owned(),
                domains: vec!["v".to_owned()],
                ..Message::default()
            }],
            ..RouteConfiguration::default()
        };
        let table = RouteTable::compile(&message).expect("a table");
        let host = &table.virtual_hosts()[0];
        let mut domains = Domains::default();
        for domain in ["*.b.com", "*.a.com", "*.long.com", "a.*"] {
            assert!(domains.add(domain, host));
        }
        assert_eq!(domains.suffixes.lengths, [(9, 1), (6, 2)]);
        assert_eq!(domains.prefixes.lengths, [(2, 1)]);
        domains.remove("*.a.com");
        domains.remove("*.a.com");
        assert_eq!(domains.suffixes.lengths, [(9, 1), (6, 1)]);
        assert!(domains.find_host("x.b.com").is_some());
        domains.remove("*.b.com");
        domains.remove("a.*");
        assert_eq!(domains.suffixes.lengths, [(9, 1)]);
        assert!(domains.prefixes.lengths.is_empty());
        assert!(domains.find_host("x.b.com").is_none());
    }
}
