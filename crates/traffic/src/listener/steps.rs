//! The steps by which a filter chain is found: a tree whose levels are the
//! fields of a match, in Envoy's order.

use std::collections::HashMap;
use std::net::SocketAddr;

use super::connection::Incoming;
use crate::address::Range;

/// The fields of a match, the most telling one first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Port,
    Destination,
    ServerName,
    Transport,
    Application,
    DirectSource,
    SourceKind,
    Source,
    SourcePort,
}

/// The order of the fields.
pub(super) const ORDER: [Step; 9] = [
    Step::Port,
    Step::Destination,
    Step::ServerName,
    Step::Transport,
    Step::Application,
    Step::DirectSource,
    Step::SourceKind,
    Step::Source,
    Step::SourcePort,
];

/// What a match wants of one field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Want {
    Anything,
    Port(u16),
    Range(Range),
    /// A server name, a suffix of one that begins with a dot, or a protocol.
    Text(Box<str>),
    Local,
    External,
}

/// One place in the tree: what is wanted of a field, and where that leads.
/// Below the last field it is the index of a chain.
#[derive(Debug, Clone, Default)]
pub(super) struct Node {
    anything: Option<usize>,
    ports: HashMap<u16, usize>,
    ranges: HashMap<Range, usize>,
    /// The lengths of the ranges, the longest first.
    lengths: Vec<u8>,
    texts: HashMap<Box<str>, usize>,
    local: Option<usize>,
    external: Option<usize>,
}

impl Node {
    /// Returns where this very want leads; `None` if nobody added it.
    pub(super) fn get(&self, want: &Want) -> Option<usize> {
        match want {
            Want::Anything => self.anything,
            Want::Port(port) => self.ports.get(port).copied(),
            Want::Range(range) => self.ranges.get(range).copied(),
            Want::Text(text) => self.texts.get(text).copied(),
            Want::Local => self.local,
            Want::External => self.external,
        }
    }

    /// Adds a want, which leads to `target`: a node, or below the last field a
    /// chain.
    pub(super) fn put(&mut self, want: &Want, target: usize) {
        match want {
            Want::Anything => self.anything = Some(target),
            Want::Port(port) => {
                self.ports.insert(*port, target);
            }
            Want::Range(range) => {
                self.ranges.insert(*range, target);
                let lengths = &mut self.lengths;
                lengths.push(range.length());
                lengths.sort_unstable_by(|left, right| right.cmp(left));
                lengths.dedup();
            }
            Want::Text(text) => {
                self.texts.insert(text.clone(), target);
            }
            Want::Local => self.local = Some(target),
            Want::External => self.external = Some(target),
        }
    }

    /// Returns where a connection goes from here: by the most specific want
    /// that it meets. Returns `None` if it meets none. The caller does not go back to
    /// fields that were passed.
    pub(super) fn follow(&self, step: Step, incoming: &Incoming<'_>) -> Option<usize> {
        let specific_target = match step {
            Step::Port => self.port(incoming.destination),
            Step::Destination => self.range(incoming.destination),
            Step::ServerName => self.server_name(incoming.server_name),
            Step::Transport => self.texts.get(incoming.transport_protocol).copied(),
            Step::Application => {
                let mut protocols = incoming.application_protocols.iter();
                protocols.find_map(|protocol| self.texts.get(*protocol).copied())
            }
            Step::DirectSource => self.range(incoming.direct_source),
            Step::SourceKind => match incoming.is_local() {
                true => self.local,
                false => self.external,
            },
            Step::Source => self.range(incoming.source),
            Step::SourcePort => self.port(incoming.source),
        };
        specific_target.or(self.anything)
    }

    /// Returns where the port of an address leads.
    fn port(&self, address: Option<SocketAddr>) -> Option<usize> {
        self.ports.get(&address?.port()).copied()
    }

    /// Returns where the longest range that has an address leads.
    fn range(&self, address: Option<SocketAddr>) -> Option<usize> {
        let address = address?.ip();
        let mut lengths = self.lengths.iter();
        lengths.find_map(|length| self.ranges.get(&Range::of(address, *length)).copied())
    }

    /// Returns where a server name leads: the whole name, or else its longest
    /// suffix that is wanted.
    fn server_name(&self, name: &str) -> Option<usize> {
        if self.texts.is_empty() || name.is_empty() {
            return None;
        }
        let exact = self.texts.get(name).copied();
        let mut dots = memchr::memchr_iter(b'.', name.as_bytes());
        exact.or_else(|| dots.find_map(|dot| self.texts.get(&name[dot..]).copied()))
    }
}
