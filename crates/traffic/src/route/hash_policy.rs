//! Hash policies: the hash of a request that ring hash and maglev use (50).

use std::net::IpAddr;

use trunkline_proto::acceptance::{Place, Problem};
use trunkline_proto::envoy::envoy::config::route::v3::route_action::{
    HashPolicy as Message, hash_policy::PolicySpecifier,
};

use super::query::{cookie, parameter};
use crate::findings::Findings;
use crate::hash::{combine, xxh64, xxh64_seeded};
use crate::pattern::Substitution;
use crate::request::Request;

/// One part of the hash.
#[derive(Debug, Clone)]
pub(crate) struct HashPolicy {
    source: Source,
    is_terminal: bool,
}

#[derive(Debug, Clone)]
enum Source {
    Header(Box<str>, Option<Box<Substitution>>),
    Cookie(Box<str>, Generated),
    Address,
    QueryParameter(Box<str>),
}

/// Whether a cookie that is missing is made, so that later requests of the
/// client have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Generated {
    Yes,
    No,
}

impl HashPolicy {
    /// Compiles a hash policy. Returns `None` if its source is missing, not
    /// supported or switched off.
    pub(super) fn compile(
        message: &Message,
        place: &Place<'_>,
        findings: &mut Findings,
    ) -> Option<Self> {
        let source = match &message.policy_specifier {
            Some(PolicySpecifier::Header(header)) => {
                let header_place = place.field("header");
                let rewrite = header.regex_rewrite.as_ref().and_then(|rewrite| {
                    Substitution::compile(rewrite, &header_place.field("regex_rewrite"), findings)
                });
                let name = header.header_name.to_ascii_lowercase();
                Source::Header(name.into(), rewrite.map(Box::new))
            }
            Some(PolicySpecifier::Cookie(cookie)) => {
                let generated = match cookie.ttl.is_some() {
                    true => Generated::Yes,
                    false => Generated::No,
                };
                Source::Cookie(cookie.name.as_str().into(), generated)
            }

            Some(PolicySpecifier::ConnectionProperties(properties)) => {
                // As in Envoy, a policy that hashes nothing is none.
                if !properties.source_ip {
                    return None;
                }
                Source::Address
            }
            Some(PolicySpecifier::QueryParameter(parameter)) => {
                Source::QueryParameter(parameter.name.as_str().into())
            }

            Some(PolicySpecifier::FilterState(_)) => {
                findings.add(&place.field("filter_state"), Problem::Unsupported);
                return None;
            }
            None => {
                findings.add(place, Problem::Missing);
                return None;
            }
        };

        Some(Self {
            source,
            is_terminal: message.terminal,
        })
    }

    /// Returns the hash of a request by this policy. Returns `None` if the
    /// request does not have the hashed value.
    fn hash(&self, request: &Request<'_>, peer: Option<IpAddr>) -> Option<u64> {
        match &self.source {
            Source::Header(name, rewrite) => hash_header(request, name, rewrite.as_deref()),
            Source::Cookie(name, _) => cookie(request.headers, name).map(xxh64),
            Source::Address => peer.map(|address| xxh64(address.to_string().as_bytes())),
            Source::QueryParameter(name) => {
                let value = request.query().and_then(|query| parameter(query, name));
                value.map(|value| xxh64(value.as_bytes()))
            }
        }
    }

    /// Returns the name of the cookie that the proxy has to make for this
    /// request, because the request does not have it; `None` if there is nothing
    /// to make.
    pub(crate) fn missing_cookie(&self, request: &Request<'_>) -> Option<&str> {
        match &self.source {
            Source::Cookie(name, Generated::Yes) if cookie(request.headers, name).is_none() => {
                Some(name)
            }
            _ => None,
        }
    }
}

/// Returns the hash of a request by a list of policies. Returns `None` if no
/// policy applies; the balancer then takes a random number.
pub(crate) fn hash(
    policies: &[HashPolicy],
    request: &Request<'_>,
    peer: Option<IpAddr>,
) -> Option<u64> {
    let mut combined = None;
    for policy in policies {
        if let Some(policy_hash) = policy.hash(request, peer) {
            combined = Some(combine(combined, policy_hash));
        }
        if policy.is_terminal && combined.is_some() {
            break;
        }
    }
    combined
}

/// Returns the hash of all values of a header, which are sorted; each is hashed
/// with the hash before it as the seed. Returns `None` if the request does not
/// have the header.
fn hash_header(request: &Request<'_>, name: &str, rewrite: Option<&Substitution>) -> Option<u64> {
    let hash_value = |value: &[u8], seed| match (rewrite, str::from_utf8(value)) {
        (Some(rewrite), Ok(text)) => xxh64_seeded(rewrite.apply(text).as_bytes(), seed),
        _ => xxh64_seeded(value, seed),
    };

    if let Some(value) = request.pseudo(name) {
        return Some(hash_value(value.as_bytes(), 0));
    }

    let mut values = request.headers.all(name);
    let first_value = values.next()?;
    if values.next().is_none() {
        return Some(hash_value(first_value, 0));
    }

    let mut sorted_values: Vec<&[u8]> = request.headers.all(name).collect();
    sorted_values.sort_unstable();
    Some(
        sorted_values
            .iter()
            .fold(0, |seed, value| hash_value(value, seed)),
    )
}
