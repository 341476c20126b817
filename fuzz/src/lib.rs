//! The few types, names and resources that the targets speak of.
//!
//! Few, so that an input soon names the same one again. Every number means one
//! of them, so no input is wasted.
#![forbid(unsafe_code)]

pub mod mcp;

use std::sync::Arc;
use std::time::Duration;

use arbitrary::Arbitrary;
use bytes::Bytes;
use trunkline_core::facts::{Facts, RareFacts, Reference};
use trunkline_core::kind::{CDS, EDS, LDS, RDS, SDS, VHDS};
use trunkline_core::message::{ErrorDetail, Locator, Node};
use trunkline_core::name::{Name, Selector};
use trunkline_core::params::{Constraints, Params};
use trunkline_core::resource::{ErrorCode, Resource, ResourceError, TypeUrl};

pub const TYPES: [&str; 7] = [CDS, EDS, LDS, RDS, VHDS, SDS, "type.googleapis.com/opaque"];

pub const NAMES: [&str; 12] = [
    "a",
    "b",
    "c",
    "*",
    "",
    "r/x.example",
    "xdstp://a/t/x",
    "xdstp://a/t/y",
    "xdstp://a/t/*",
    "xdstp://a/t/x?k=v",
    "xdstp://a/t/*?k=v",
    "xdstp://a/t/%zz",
];

const CONSTRAINTS: [&str; 6] = [
    "env=prod",
    "NOT env=prod",
    "env=test",
    "version exists",
    "NOT version exists AND env=prod",
    "never",
];

const PARAMS: [&[(&str, &str)]; 5] = [
    &[],
    &[("env", "prod")],
    &[("env", "test")],
    &[("env", "prod"), ("version", "v1")],
    &[("zone", "a")],
];

const AGENTS: [&str; 3] = ["envoy", "gRPC Go", "other"];

fn pick<T: Copy>(from: &[T], number: u8) -> T {
    from[usize::from(number) % from.len()]
}

#[derive(Arbitrary, Clone, Copy, Debug)]
pub struct Type(u8);

impl Type {
    pub fn url(self) -> TypeUrl {
        pick(&TYPES, self.0).into()
    }
}

#[derive(Arbitrary, Clone, Copy, Debug)]
pub struct Named(u8);

impl Named {
    pub fn text(self) -> &'static str {
        pick(&NAMES, self.0)
    }

    pub fn name(self) -> Name {
        Name::new(self.text())
    }

    pub fn ask(self) -> Option<Selector> {
        Selector::parse(self.text(), 100).ok()
    }
}

#[derive(Arbitrary, Clone, Copy, Debug)]
pub struct For(u8);

impl For {
    pub fn constraints(self) -> Constraints {
        pick(&CONSTRAINTS, self.0)
            .parse()
            .expect("it is written above")
    }
}

#[derive(Arbitrary, Clone, Copy, Debug)]
pub struct Says(u8);

impl Says {
    pub fn params(self) -> Params {
        Params::new(pick(&PARAMS, self.0).iter().copied()).expect("it is written above")
    }
}

#[derive(Arbitrary, Clone, Copy, Debug)]
pub struct Asked {
    name: Named,
    params: Option<Says>,
}

impl Asked {
    pub fn locator(self) -> Locator {
        Locator {
            name: self.name.text().to_owned(),
            params: self.params.map(Says::params),
        }
    }

    pub fn all(of: &[Self]) -> Vec<Locator> {
        of.iter().map(|asked| asked.locator()).collect()
    }
}

/// A resource by its few properties.
#[derive(Arbitrary, Clone, Debug)]
pub struct Content {
    pub name: Named,
    alias: Option<Named>,
    constraints: Option<For>,
    ttl_seconds: Option<u8>,
    /// Decides the version, too.
    body: u8,
    has_no_body: bool,
    refers_to: Vec<(Type, Named)>,
    vhds: Option<u8>,
}

impl Content {
    pub fn resource(&self) -> Arc<Resource> {
        let long = if self.body > 250 { 2 << 20 } else { 1 };
        let body = Bytes::from(vec![self.body % 4; long]);
        let mut references: Vec<_> = (self.refers_to.iter())
            .map(|(url, name)| Reference {
                type_url: url.url(),
                name: name.name(),
            })
            .collect();
        references.sort();
        references.dedup();
        let rare = RareFacts {
            vhds_version: self.vhds.map(|way| (way % 2).to_string().as_str().into()),
            ..RareFacts::default()
        };
        let facts = Facts {
            references: references.into(),
            rare: rare.boxed(),
            ..Facts::default()
        };
        let mut resource = Resource::new(self.name.name(), body);
        resource.aliases = self.alias.iter().map(|alias| alias.name()).collect();
        resource.constraints = self.constraints.map(For::constraints);
        resource.ttl = self.ttl_seconds.map(|s| Duration::from_secs(s.into()));
        resource.facts = Some(Box::new(facts));
        if self.has_no_body {
            resource.body = None;
        }
        Arc::new(resource)
    }
}

#[derive(Arbitrary, Clone, Copy, Debug)]
pub enum Failure {
    NotFound,
    PermissionDenied,
    Unavailable,
    Other(u8),
}

impl Failure {
    pub fn error(self) -> Arc<ResourceError> {
        let code = match self {
            Self::NotFound => ErrorCode::NotFound,
            Self::PermissionDenied => ErrorCode::PermissionDenied,
            Self::Unavailable => ErrorCode::Unavailable,
            Self::Other(number) => ErrorCode::Other(number.into()),
        };
        let message = "it fails".into();
        Arc::new(ResourceError { code, message })
    }
}

#[derive(Arbitrary, Clone, Copy, Debug)]
pub struct Peer {
    agent: u8,
    wraps: bool,
}

impl Peer {
    pub fn node(self) -> Node {
        let feature = "xds.config.resource-in-sotw".to_owned();
        Node {
            user_agent: pick(&AGENTS, self.agent).to_owned(),
            client_features: self.wraps.then_some(feature).into_iter().collect(),
            ..Node::default()
        }
    }
}

/// The error of a NACK.
pub fn rejection() -> ErrorDetail {
    ErrorDetail {
        code: 3,
        message: "ünfit".to_owned(),
    }
}
