//! Takes in resources of files: reads them, takes virtual hosts out of their
//! route configuration, and makes resources that the engine can serve.
//!
//! ```text
//! a resource of a text ───────────────────────────────┐
//! a piece of a binary file ─┬─ plain: one pass ───────┼─▶ Accepted
//!                           └─ else: decode, validate ┘
//! ```

mod accepted;
mod make;
mod restore;
#[cfg(test)]
mod tests;

use bytes::Bytes;
use trunkline_core::resource::TypeUrl;
use trunkline_proto::Path;
use trunkline_proto::descriptor::types;
use trunkline_proto::pieces;
use trunkline_proto::text::{self, Raw, Spot, TextError};
use trunkline_proto::{discovery, quick, vhosts};

pub use self::accepted::{Accepted, Host, Hosted, Parent};
use self::make::Envelope;
pub use self::restore::KeptResource;
use super::accept::AcceptError;
use super::authored::BARE;
use super::hosts::{is_route, malformed};
use super::shared::Shared;

/// An error in a resource of a binary file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Mistake {
    /// It is not of its type, or a field breaks a rule of Envoy.
    #[error(transparent)]
    Text(#[from] Box<TextError>),
    /// It cannot be served.
    #[error("{}: {error}", .spot.path())]
    Accept {
        /// The place of the resource.
        spot: Spot,
        /// The reason.
        error: AcceptError,
    },
}

/// Takes in resources one after the other. Their common strings are kept once.
#[derive(Debug, Default)]
pub struct Intake {
    pub(super) shared: Shared,
}

impl Intake {
    /// Returns the type of virtual hosts.
    #[must_use]
    pub fn vhds(&mut self) -> TypeUrl {
        self.shared.canonical_url(types::VIRTUAL_HOST)
    }

    /// Accepts a resource of a text. The virtual hosts of a route configuration
    /// with `vhds` become resources of their own. Fields are not checked
    /// against Envoy's rules.
    ///
    /// # Errors
    /// If the wrapper does not fit the resource, or it has no name.
    pub fn accept_text(&mut self, parsed: &text::Resource) -> Result<Accepted, AcceptError> {
        let envelope = Envelope::new(&parsed.type_url, &parsed.wrapper)?;
        let split = if is_route(&parsed.type_url) {
            vhosts::split(&parsed.body).map_err(malformed(types::ROUTE_CONFIGURATION))?
        } else {
            None
        };
        let Some(split) = split else {
            return self.accept_decoded(&envelope, &parsed.message, parsed.body.clone());
        };

        let mut accepted = self.accept_encoded(&envelope, split.rest)?;
        for (index, body) in split.hosts.iter().enumerate() {
            let path = parsed.item("virtual_hosts", index);
            let outcome = self.add_host(&mut accepted, index, &path, body);
            outcome.map_err(|source| AcceptError::At {
                path,
                source: Box::new(source),
            })?;
        }
        Ok(accepted)
    }

    /// Adds a virtual host, or its variants, to its route configuration. `path`
    /// is its place in the text.
    fn add_host(
        &mut self,
        route: &mut Accepted,
        index: usize,
        path: &Path,
        body: &Bytes,
    ) -> Result<(), AcceptError> {
        let host_variants = self.accept_host(&route.name, route.clients.as_ref(), body)?;
        let resources = host_variants.resources.into_iter();
        let hosts = resources.map(|resource| Host { index, resource });
        route.hosts.extend(hosts);

        let doubts = host_variants.doubts.into_iter();
        let doubts = doubts.map(|(inner, doubt)| (path.join(&inner), doubt));
        route.doubts.extend(doubts);
        Ok(())
    }

    /// Accepts a route configuration of a binary file without its virtual
    /// hosts. These follow one by one, and [`Self::host_of`] accepts them with
    /// the returned parent.
    ///
    /// # Errors
    /// All its errors.
    pub fn accept_route(
        &mut self,
        file: &str,
        index: usize,
        route: pieces::Route,
    ) -> Result<(Accepted, Parent), Vec<Mistake>> {
        let raw = Raw::of_route(file, index, route).map_err(only_mistake)?;
        let (accepted, spot) = self.accept_raw(file, raw)?;
        let parent = Parent {
            name: accepted.name.clone(),
            written: accepted.written.clone(),
            constraints: accepted.clients.clone(),
            index,
            wrapped: spot.wrapped,
        };
        Ok((accepted, parent))
    }

    /// Accepts a resource of a binary file, and returns it with its place.
    ///
    /// # Errors
    /// All its errors.
    pub fn accept_whole(
        &mut self,
        file: &str,
        index: usize,
        any: discovery::Any,
    ) -> Result<(Accepted, Spot), Vec<Mistake>> {
        self.accept_raw(file, Raw::new(file, index, any).map_err(only_mistake)?)
    }

    /// Validates and accepts a decoded resource of a binary file, and returns
    /// it with its place.
    pub(crate) fn validate_and_accept(
        &mut self,
        spot: Spot,
        resource: &text::Resource,
    ) -> Result<(Accepted, Spot), Vec<Mistake>> {
        check_valid(resource)?;
        let accepted = self.accept_text(resource);
        Ok((accepted.map_err(|error| mistake_at(spot, error))?, spot))
    }

    /// Accepts a virtual host of a route configuration of a binary file. A host
    /// without conditions takes one pass over its bytes; others are decoded and
    /// validated.
    ///
    /// # Errors
    /// All its errors.
    pub fn host_of(
        &mut self,
        file: &str,
        parent: &Parent,
        host: usize,
        body: Bytes,
    ) -> Result<Hosted, Vec<Mistake>> {
        let spot = Spot {
            host: Some(host),
            ..parent.spot()
        };
        let (route, clients) = (&parent.name, parent.constraints.as_ref());

        let host_variants = match quick::look(types::VIRTUAL_HOST, &body) {
            Some(facts) => self.accept_unconditional_host(route, clients, facts, &body),
            None => {
                let raw = Raw {
                    spot,
                    type_url: types::VIRTUAL_HOST.to_owned(),
                    body,
                    wrapper: None,
                };
                let resource = decode_valid(file, raw)?;
                self.accept_decoded_host(route, clients, &resource.message, &resource.body)
            }
        };

        let host_variants = host_variants.map_err(|error| mistake_at(spot, error))?;
        Ok(Hosted {
            resources: host_variants.resources,
            doubts: host_variants.doubts,
            spot,
        })
    }

    /// Accepts a resource of a binary file that is out of its wrapper, and
    /// returns it with its place. A resource without conditions takes one pass
    /// over its bytes; any other is decoded, and then accepted like a resource
    /// of a text file.
    pub(crate) fn accept_raw(
        &mut self,
        file: &str,
        raw: Raw,
    ) -> Result<(Accepted, Spot), Vec<Mistake>> {
        let spot = raw.spot;
        let plain_facts = quick::look(&raw.type_url, &raw.body);
        // A route configuration with virtual hosts has to be taken apart.
        let plain_facts = plain_facts.filter(|facts| facts.vhds.is_none() || !has_hosts(&raw.body));

        let accepted = match plain_facts {
            Some(facts) => {
                // A slice would keep the bytes of the whole file in memory.
                let body = Bytes::copy_from_slice(&raw.body);
                let wrapper = raw.wrapper.as_deref().unwrap_or(&BARE);
                let envelope = Envelope::new(&raw.type_url, wrapper);
                envelope.and_then(|envelope| self.accept_unconditional(&envelope, facts, body))
            }
            None => self.accept_text(&decode_valid(file, raw)?),
        };
        let accepted = accepted.map_err(|error| mistake_at(spot, error))?;
        Ok((accepted, spot))
    }
}

/// Decodes a resource and validates it. The error has the reason why it cannot
/// be decoded, or every rule of Envoy that it breaks.
fn decode_valid(file: &str, raw: Raw) -> Result<text::Resource, Vec<Mistake>> {
    let read = raw.decode(file).map_err(only_mistake)?;
    check_valid(&read)?;
    Ok(read)
}

/// Checks a resource against Envoy's rules. The error has every rule that it
/// breaks.
fn check_valid(resource: &text::Resource) -> Result<(), Vec<Mistake>> {
    let broken_rules = resource.validate();
    if broken_rules.is_empty() {
        return Ok(());
    }
    let mistake = |error| Mistake::Text(Box::new(error));
    Err(broken_rules.into_iter().map(mistake).collect())
}

/// Returns whether virtual hosts have to be taken out of a route configuration.
/// True also if it is malformed, which is reported when it is taken apart.
fn has_hosts(route: &Bytes) -> bool {
    !matches!(vhosts::split(route), Ok(None))
}

/// Returns an error of a text as the only mistake of its resource.
fn only_mistake(error: Box<TextError>) -> Vec<Mistake> {
    vec![Mistake::Text(error)]
}

/// Returns the reason why a resource cannot be served as its only mistake.
fn mistake_at(spot: Spot, error: AcceptError) -> Vec<Mistake> {
    vec![Mistake::Accept { spot, error }]
}
