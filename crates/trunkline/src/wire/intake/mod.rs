//! Resources that come in by the file: read, taken apart where virtual hosts
//! are written inside of their route configuration, and made into what the
//! rules can serve.
//!
//! ```text
//! a resource of a text ───────────────────────────────┐
//! a piece of a binary file ─┬─ plain: one pass ───────┼─▶ Accepted
//!                           └─ else: decode, validate ┘
//! ```

#[cfg(test)]
mod tests;

use std::sync::Arc;

use bytes::Bytes;
use trunkline_core::change::Change;
use trunkline_core::name::Name;
use trunkline_core::params::Constraints;
use trunkline_core::resource::{Resource, TypeUrl};
use trunkline_proto::descriptor::types;
use trunkline_proto::facts::{self, Facts};
use trunkline_proto::pieces;
use trunkline_proto::text::{self, Raw, Spot, TextError};
use trunkline_proto::{discovery, quick, vhosts};

use super::accept::AcceptError;
use super::hosts::{self, inside, is_route, malformed};
use super::shared::Shared;

/// What a resource of a file becomes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// Its type, in the spelling that clients use.
    pub type_url: TypeUrl,
    /// The resource itself.
    pub resource: Resource,
    /// The virtual hosts that were written in it and are resources of their
    /// own: those of a route configuration that has `vhds`, in their order.
    pub hosts: Vec<Resource>,
}

impl Accepted {
    /// What has to change for a server to have it.
    pub fn changes(self) -> impl Iterator<Item = Change> {
        let own = Change::Upsert(self.type_url, Arc::new(self.resource));
        let vhds = TypeUrl::new(types::VIRTUAL_HOST);
        let hosts = self.hosts.into_iter();
        std::iter::once(own)
            .chain(hosts.map(move |host| Change::Upsert(vhds.clone(), Arc::new(host))))
    }
}

/// The route configuration that virtual hosts are written in.
#[derive(Clone, Debug)]
pub struct Parent {
    name: Name,
    constraints: Option<Constraints>,
    index: usize,
    wrapped: bool,
}

impl Parent {
    /// Where it is.
    #[must_use]
    pub fn spot(&self) -> Spot {
        Spot {
            index: self.index,
            wrapped: self.wrapped,
            host: None,
        }
    }
}

/// Something wrong with a resource of a binary file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Mistake {
    /// It is not what its type says, or a field breaks a rule of Envoy.
    #[error(transparent)]
    Text(#[from] Box<TextError>),
    /// It cannot be served.
    #[error("{}: {error}", .spot.path())]
    Accept {
        /// Which one.
        spot: Spot,
        /// Why.
        error: AcceptError,
    },
}

/// Takes resources in, one after the other. What they have in common is kept
/// once.
#[derive(Debug, Default)]
pub struct Intake {
    pub(super) shared: Shared,
}

impl Intake {
    /// The type of virtual hosts.
    #[must_use]
    pub fn vhds(&mut self) -> TypeUrl {
        self.shared.url(types::VIRTUAL_HOST)
    }

    /// A resource of a text. Its fields are not checked against Envoy's rules.
    ///
    /// # Errors
    /// If what is around the resource does not fit it, or it has no name.
    pub fn text(&mut self, read: &text::Resource) -> Result<Accepted, AcceptError> {
        let split = match is_route(&read.type_url) {
            true => vhosts::split(&read.body).map_err(malformed(types::ROUTE_CONFIGURATION))?,
            false => None,
        };
        let Some(split) = split else {
            let facts = facts::of_message(&read.message)?;
            let (url, body) = (&read.type_url, read.body.clone());
            let resource = self.authored(url, facts, body, Some(&read.wrapper))?;
            return Ok(self.accepted(url, resource));
        };
        let facts = facts_of(types::ROUTE_CONFIGURATION, &split.rest)?;
        let (url, wrapper) = (&read.type_url, Some(&read.wrapper));
        let resource = self.authored(url, facts, split.rest, wrapper)?;
        let mut accepted = self.accepted(url, resource);
        for (index, host) in split.hosts.iter().enumerate() {
            let wrong = |source| AcceptError::Host {
                index,
                source: Box::new(source),
            };
            let facts = facts_of(types::VIRTUAL_HOST, host).map_err(wrong)?;
            let route = &accepted.resource;
            let host = self.host(&route.name, route.constraints.as_ref(), facts, host);
            accepted.hosts.push(host.map_err(wrong)?);
        }
        Ok(accepted)
    }

    /// A route configuration of a binary file, whose virtual hosts come one by
    /// one after it.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn route(
        &mut self,
        file: &str,
        index: usize,
        route: pieces::Route,
    ) -> Result<(Accepted, Parent), Vec<Mistake>> {
        let raw = Raw::of_route(file, index, route).map_err(alone)?;
        let wrapped = raw.spot.wrapped;
        let accepted = self.raw(file, raw)?;
        let parent = Parent {
            name: accepted.resource.name.clone(),
            constraints: accepted.resource.constraints.clone(),
            index,
            wrapped,
        };
        Ok((accepted, parent))
    }

    /// A resource of a binary file, and where it is.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn whole(
        &mut self,
        file: &str,
        index: usize,
        any: discovery::Any,
    ) -> Result<(Accepted, Spot), Vec<Mistake>> {
        let raw = Raw::new(file, index, any).map_err(alone)?;
        let spot = raw.spot;
        Ok((self.raw(file, raw)?, spot))
    }

    /// A virtual host of a route configuration of a binary file, and where it
    /// is.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn host_of(
        &mut self,
        file: &str,
        parent: &Parent,
        host: usize,
        body: Bytes,
    ) -> Result<(Resource, Spot), Vec<Mistake>> {
        let spot = Spot {
            host: Some(host),
            ..parent.spot()
        };
        let (facts, body) = match quick::look(types::VIRTUAL_HOST, &body) {
            Some(facts) => (facts, body),
            None => {
                let raw = Raw {
                    spot,
                    type_url: types::VIRTUAL_HOST.to_owned(),
                    body,
                    wrapper: None,
                };
                let read = checked(file, raw)?;
                let facts = facts::of_message(&read.message);
                (facts.map_err(|e| refused(spot, e.into()))?, read.body)
            }
        };
        let host = self.host(&parent.name, parent.constraints.as_ref(), facts, &body);
        Ok((host.map_err(|error| refused(spot, error))?, spot))
    }

    fn raw(&mut self, file: &str, raw: Raw) -> Result<Accepted, Vec<Mistake>> {
        let spot = raw.spot;
        let plain = quick::look(&raw.type_url, &raw.body);
        // One with virtual hosts in it has to be taken apart.
        let plain = plain.filter(|facts| facts.vhds.is_none() || !has_hosts(&raw.body));
        let accepted = match plain {
            Some(facts) => {
                // What it is a slice of should not stay for its sake.
                let body = Bytes::copy_from_slice(&raw.body);
                let resource = self.authored(&raw.type_url, facts, body, raw.wrapper.as_deref());
                resource.map(|resource| self.accepted(&raw.type_url, resource))
            }
            None => self.text(&checked(file, raw)?),
        };
        accepted.map_err(|error| refused(spot, error))
    }

    fn accepted(&mut self, type_url: &str, resource: Resource) -> Accepted {
        Accepted {
            type_url: self.shared.url(type_url),
            resource,
            hosts: Vec::new(),
        }
    }

    /// A virtual host out of a route configuration: for whom that is.
    fn host(
        &mut self,
        route: &Name,
        constraints: Option<&Constraints>,
        facts: Facts,
        body: &Bytes,
    ) -> Result<Resource, AcceptError> {
        let Some(name) = &facts.name else {
            let type_url = self.vhds();
            return Err(AcceptError::NoName { type_url });
        };
        let name = inside(route, name);
        hosts::check(&name)?;
        Ok(Resource {
            constraints: constraints.cloned(),
            facts: self.shared.facts(facts, None),
            ..Resource::new(name.clone(), hosts::renamed(body, &name)?)
        })
    }
}

/// Decoded, and everything that Envoy's rules say against it.
fn checked(file: &str, raw: Raw) -> Result<text::Resource, Vec<Mistake>> {
    let read = raw.decode(file).map_err(alone)?;
    let broken = read.validate();
    match broken.is_empty() {
        true => Ok(read),
        false => Err(broken
            .into_iter()
            .map(|e| Mistake::Text(Box::new(e)))
            .collect()),
    }
}

fn facts_of(type_url: &str, body: &Bytes) -> Result<Facts, AcceptError> {
    match quick::look(type_url, body) {
        Some(facts) => Ok(facts),
        None => Ok(facts::of(type_url, body)?),
    }
}

fn has_hosts(route: &Bytes) -> bool {
    !matches!(vhosts::split(route), Ok(None))
}

fn alone(error: Box<TextError>) -> Vec<Mistake> {
    vec![Mistake::Text(error)]
}

fn refused(spot: Spot, error: AcceptError) -> Vec<Mistake> {
    vec![Mistake::Accept { spot, error }]
}
