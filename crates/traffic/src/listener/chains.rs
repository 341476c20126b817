//! The filter chains of a listener, compiled.

use trunkline_proto::acceptance::{Place, Problem};
use trunkline_proto::envoy::envoy::config::core::v3::CidrRange;
use trunkline_proto::envoy::envoy::config::listener::v3::{
    FilterChainMatch, Listener, filter_chain_match::ConnectionSourceType,
};

use super::connection::Incoming;
use super::steps::{Node, ORDER, Want};
use crate::address::Range;
use crate::findings::Findings;

/// The filter chains of a listener.
#[derive(Debug, Clone)]
pub struct FilterChains {
    /// The first one is the root.
    nodes: Vec<Node>,
    has_default: bool,
}

/// The chain of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FoundChain {
    /// The one at this place in `filter_chains`.
    Listed(usize),
    /// `default_filter_chain`.
    Default,
}

impl FilterChains {
    /// Compiles the matches of a listener. What cannot be compiled is a
    /// finding; so are two chains that the same connections would take.
    pub fn compile(message: &Listener) -> Result<Self, Findings> {
        let mut findings = Findings::default();
        let place = Place::ROOT;
        let matcher = message.filter_chain_matcher.is_some();
        findings.unsupported(&place.field("filter_chain_matcher"), matcher);
        let mut chains = Self {
            nodes: vec![Node::default()],
            has_default: message.default_filter_chain.is_some(),
        };

        for (index, chain) in message.filter_chains.iter().enumerate() {
            let place = place.item("filter_chains", index);
            let place = place.field("filter_chain_match");
            let empty = FilterChainMatch::default();
            let expected = chain.filter_chain_match.as_ref().unwrap_or(&empty);
            let wants = read_wants(expected, &place, &mut findings);
            if let Some(other) = chains.add(0, &wants, index) {
                let problem = Problem::Duplicate {
                    what: "what it matches".to_owned(),
                    first: format!("the chain {other}"),
                };
                findings.add(&place, problem);
            }
        }
        findings.finish(chains)
    }

    /// Finds the chain of a connection. Without one, the connection is closed.
    #[must_use]
    pub fn find(&self, incoming: &Incoming<'_>) -> Option<FoundChain> {
        let mut steps = ORDER.iter();
        let node = steps.try_fold(0, |node, step| self.nodes[node].follow(*step, incoming));
        let otherwise = || self.has_default.then_some(FoundChain::Default);
        node.map(FoundChain::Listed).or_else(otherwise)
    }

    /// Adds a chain below a node, under each combination of what is wanted of
    /// the fields that are left. Returns the
    /// first chain that is under one of them already; `None` if there is none.
    fn add(&mut self, node: usize, wants: &[Vec<Want>], chain: usize) -> Option<usize> {
        let (first_want, other_wants) = wants.split_first()?;
        let mut first_chain = None;
        for want in first_want {
            let next = self.nodes[node].get(want);
            let target = match (next, other_wants.is_empty()) {
                (Some(next), true) => Some(next),
                (None, true) => {
                    self.nodes[node].put(want, chain);
                    None
                }
                (Some(next), false) => self.add(next, other_wants, chain),
                (None, false) => {
                    let new_node = self.nodes.len();
                    self.nodes.push(Node::default());
                    self.nodes[node].put(want, new_node);
                    self.add(new_node, other_wants, chain)
                }
            };
            first_chain = first_chain.or(target);
        }
        first_chain
    }
}

/// Reads what a match wants of each field, in the order of [`ORDER`]. Each list has
/// at least one entry.
fn read_wants(
    message: &FilterChainMatch,
    place: &Place<'_>,
    findings: &mut Findings,
) -> [Vec<Want>; 9] {
    let suffix = !message.address_suffix.is_empty();
    findings.unsupported(&place.field("address_suffix"), suffix);
    findings.unsupported(&place.field("suffix_len"), message.suffix_len.is_some());

    let mut ranges = |field, list: &[CidrRange]| {
        let wants = crate::route::compile_each(field, list, place, |range, place| {
            let range = Range::compile(range).map(Want::Range);
            if range.is_none() {
                findings.add(place, Problem::Other("is no range of addresses".to_owned()));
            }
            range
        });
        or_anything(wants.into_vec())
    };

    let destination = ranges("prefix_ranges", &message.prefix_ranges);
    let direct = ranges(
        "direct_source_prefix_ranges",
        &message.direct_source_prefix_ranges,
    );
    let source = ranges("source_prefix_ranges", &message.source_prefix_ranges);

    let port = message.destination_port.as_ref();
    let port = port.map(|port| port_of(port.value, &place.field("destination_port"), findings));
    let source_ports = crate::route::compile_each(
        "source_ports",
        &message.source_ports,
        place,
        |port, place| Some(port_of(*port, place, findings)),
    );

    let names = crate::route::compile_each(
        "server_names",
        &message.server_names,
        place,
        |name, place| server_name(name, place, findings),
    );

    let text = |text: &String| Want::Text(text.as_str().into());
    let transport = Some(&message.transport_protocol).filter(|name| !name.is_empty());
    let kind = match message.source_type() {
        ConnectionSourceType::Any => Want::Anything,
        ConnectionSourceType::SameIpOrLoopback => Want::Local,
        ConnectionSourceType::External => Want::External,
    };

    [
        or_anything(port.into_iter().collect()),
        destination,
        or_anything(names.into_vec()),
        or_anything(transport.map(text).into_iter().collect()),
        or_anything(message.application_protocols.iter().map(text).collect()),
        direct,
        vec![kind],
        source,
        or_anything(source_ports.into_vec()),
    ]
}

/// Returns the wants, or that anything will do if there are none.
fn or_anything(wants: Vec<Want>) -> Vec<Want> {
    match wants.is_empty() {
        true => vec![Want::Anything],
        false => wants,
    }
}

/// Reads a port. One that is no port is a finding.
fn port_of(port: u32, place: &Place<'_>, findings: &mut Findings) -> Want {
    match u16::try_from(port) {
        Ok(port) if port > 0 => Want::Port(port),
        _ => {
            findings.add(place, Problem::Other(format!("{port} is no port")));
            Want::Anything
        }
    }
}

/// Reads a server name. `*.a.com` is kept as the suffix `.a.com`.
fn server_name(name: &str, place: &Place<'_>, findings: &mut Findings) -> Option<Want> {
    let lower = name.to_ascii_lowercase();
    let text = match lower.strip_prefix('*') {
        Some(suffix) if suffix.starts_with('.') => suffix,
        _ => &lower,
    };
    if text.contains('*') {
        let problem = format!("{name:?} has a wildcard that is not the whole first label");
        findings.add(place, Problem::Other(problem));
        return None;
    }
    match text {
        "" => Some(Want::Anything),
        text => Some(Want::Text(text.into())),
    }
}
