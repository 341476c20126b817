//! A resource that a person wrote in a file, with its wrapper.

use std::time::Duration;

use bytes::{BufMut, Bytes};
use trunkline_core::facts::RareFacts;
use trunkline_core::name::Name;
use trunkline_core::params::Constraints;
use trunkline_core::resource::{Resource, TypeUrl, Version};
use trunkline_proto::{discovery, facts, text};

use super::accept::AcceptError;
use super::intake::{Accepted, Intake};
use super::ttl::read_ttl;
use super::{host_name, hosts};

/// Makes the resources that one resource of a file becomes.
///
/// The version is made from the body and its wrapper (S71), so the same text
/// gives the same version everywhere. A version in the file is ignored: nobody
/// could tell whether it changes when the contents do.
///
/// ```
/// use trunkline::proto::text;
/// use trunkline::{Server, wire::accept_text};
///
/// let yaml = r#"
/// resources:
/// - "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
///   name: backend
/// "#;
/// let file = text::read("clusters.yaml", yaml, &Default::default());
/// let accepted = accept_text(&file.resources[0])?;
/// Server::default().apply(accepted.changes().collect())?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// If the wrapper does not fit the resource, or it has no name.
pub fn accept_text(read: &text::Resource) -> Result<Accepted, AcceptError> {
    Intake::default().accept_text(read)
}

impl Intake {
    /// Makes a resource of its body and wrapper, for these clients: the whole
    /// resource, or one of its variants. `facts` are those of the body. The
    /// name in the wrapper replaces that in the body of a virtual host.
    pub(super) fn make_resource(
        &mut self,
        type_url: &str,
        facts: facts::Facts,
        body: Bytes,
        wrapper: &discovery::Resource,
        clients: Option<Constraints>,
    ) -> Result<Resource, AcceptError> {
        let body_name = facts.name.as_deref();
        let name = agreed_name(type_url, body_name, wrapper)?;
        let mut body = body;
        if host_name::is_host(type_url) {
            host_name::check_name(&name)?;
            if body_name != Some(name.as_str()) {
                body = hosts::rename(&body, &name)?;
            }
        }

        let wrapping = Wrapping::new(wrapper)?;
        Ok(Resource {
            version: wrapping.version(&body),
            constraints: clients,
            aliases: wrapping.aliases,
            ttl: wrapping.ttl,
            facts: self.shared.convert_facts(facts, wrapping.rare),
            ..Resource::new(name, body)
        })
    }
}

/// The wrapper of a resource without one.
pub(super) static BARE: discovery::Resource = discovery::Resource {
    version: String::new(),
    resource: None,
    name: String::new(),
    aliases: Vec::new(),
    ttl: None,
    cache_control: None,
    resource_name: None,
    metadata: None,
};

/// Returns the name of a resource. The names in the wrapper, plain and with
/// constraints, come before the one in the body, `body_name`. Two different
/// names are an error, unless clients do not subscribe by the name in the body.
pub(super) fn agreed_name(
    type_url: &str,
    body_name: Option<&str>,
    wrapper: &discovery::Resource,
) -> Result<Name, AcceptError> {
    let variant_name = wrapper.resource_name.as_ref().map(|name| &name.name);
    let wrapper_names = [Some(&wrapper.name), variant_name].into_iter().flatten();
    let wrapper_names = wrapper_names.filter(|name| !name.is_empty());
    let mut wrapper_names = wrapper_names.map(|name| Name::new(name));
    let body_name = body_name.map(Name::new);

    let name = match (wrapper_names.next(), &body_name) {
        (Some(first), _) => first,
        (None, Some(body_name)) => return Ok(body_name.clone()),
        (None, None) => return Err(no_name(type_url)),
    };

    let must_agree = facts::names_itself(type_url);
    if must_agree && body_name.is_none() {
        return Err(no_name(type_url));
    }

    let mut other_names = wrapper_names.chain(body_name.filter(|_| must_agree));
    match other_names.find(|other| *other != name) {
        None => Ok(name),
        Some(inside) => Err(AcceptError::TwoNames {
            outside: name,
            inside,
        }),
    }
}

/// Returns the error of a resource without a name.
fn no_name(type_url: &str) -> AcceptError {
    let type_url = TypeUrl::new(type_url);
    AcceptError::NoName { type_url }
}

/// The parts of a resource that can change without its body.
struct Wrapping {
    /// In order, each once.
    aliases: Box<[Name]>,
    ttl: Option<Duration>,
    rare: Option<RareFacts>,
}

impl Wrapping {
    /// Reads a wrapper. A TTL that is no valid duration is an error.
    fn new(wrapper: &discovery::Resource) -> Result<Self, AcceptError> {
        let aliases = wrapper.aliases.iter();
        let mut aliases: Vec<Name> = aliases.map(|alias| Name::new(alias)).collect();
        aliases.sort();
        aliases.dedup();

        let ttl = wrapper.ttl.map(|ttl| read_ttl(ttl).ok_or(AcceptError::Ttl));
        let rare = RareFacts {
            metadata: wrapper.metadata.clone(),
            do_not_cache: wrapper
                .cache_control
                .is_some_and(|control| control.do_not_cache),
            ..RareFacts::default()
        };
        Ok(Self {
            aliases: aliases.into(),
            ttl: ttl.transpose()?,
            rare: (rare != RareFacts::default()).then_some(rare),
        })
    }

    /// Makes a version of a body and this wrapper. A resource that is nothing
    /// but its body has the version of its body, wherever it comes from.
    fn version(&self, body: &Bytes) -> Version {
        let is_bare = self.aliases.is_empty() && self.ttl.is_none() && self.rare.is_none();
        if is_bare {
            return Version::of_body(body);
        }

        let mut parts = Vec::with_capacity(body.len() + 64);
        // Each part has its length before it, so that no two lists of parts are
        // the same bytes.
        let mut add_part = |bytes: &[u8]| {
            parts.put_u64_le(bytes.len() as u64);
            parts.put_slice(bytes);
        };
        add_part(body);
        add_part(&self.ttl.map_or(0, |ttl| ttl.as_nanos()).to_le_bytes());
        if let Some(rare) = &self.rare {
            add_part(&[u8::from(rare.do_not_cache)]);
            add_part(rare.metadata.as_deref().unwrap_or_default());
        } else {
            add_part(&[]);
        }
        for alias in &self.aliases {
            add_part(alias.as_str().as_bytes());
        }
        Version::of_body(&parts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trunkline_core::hosts::Domains;
    use trunkline_core::kind;

    const WRAPPED: &str = r#"
"@type": type.googleapis.com/envoy.service.discovery.v3.Resource
name: c
version: "17"
aliases: [z, w, z]
ttl: 1.5s
cache_control: {do_not_cache: true}
metadata: {filter_metadata: {a: {k: v}}}
resource_name:
  name: c
  dynamic_parameter_constraints: {constraint: {key: env, value: prod}}
resource:
  "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
  name: c
"#;

    fn accepted(text: &str) -> Result<Resource, AcceptError> {
        let read = text::read("f.yaml", text, &text::Options::default());
        assert_eq!(read.errors, [], "{text}");
        accept_text(&read.resources[0]).map(|mut accepted| accepted.variants.remove(0))
    }

    fn virtual_host(name: &str) -> String {
        format!(
            "\"@type\": type.googleapis.com/envoy.service.discovery.v3.Resource\nname: {name}\n\
             resource: {{\"@type\": {}, name: v, domains: [d]}}",
            kind::VHDS
        )
    }

    #[test]
    fn what_is_around_a_resource_goes_with_it() {
        let all = accepted(WRAPPED).unwrap();
        assert_eq!(all.name.as_str(), "c");
        assert_eq!(all.aliases[..], [Name::new("w"), Name::new("z")]);
        assert_eq!(all.ttl, Some(Duration::from_millis(1500)));
        assert_eq!(all.constraints.as_ref().unwrap().to_string(), "env=prod");
        let rare = all.facts().rare.as_deref().unwrap();
        assert!(rare.do_not_cache);
        assert!(rare.metadata.is_some());
    }

    #[test]
    fn s71_the_version_follows_all_that_a_client_gets() {
        let all = accepted(WRAPPED).unwrap();
        let same = WRAPPED
            .replace("\"17\"", "\"18\"")
            .replace("z, w, z", "w, z");
        assert_eq!(accepted(&same).unwrap().version, all.version);
        for (from, to) in [
            ("[z, w, z]", "[z]"),
            ("1.5s", "1.6s"),
            ("do_not_cache: true", "do_not_cache: false"),
            ("k: v", "k: w"),
            ("Cluster\n", "Cluster\n  alt_stat_name: a\n"),
        ] {
            let other = accepted(&WRAPPED.replace(from, to)).unwrap();
            assert_ne!(other.version, all.version, "{to}");
        }
        // Constraints identify the variant.
        let other = accepted(&WRAPPED.replace("prod", "test")).unwrap();
        assert_eq!(other.version, all.version);
        let bare = accepted(&format!("\"@type\": {}\nname: c", kind::CDS)).unwrap();
        assert_eq!(bare.version, Version::of_body(bare.body.as_ref().unwrap()));
    }

    #[test]
    fn a_resource_has_one_name() {
        for from in ["\nname: c\n", "\n  name: c\n  dynamic", "\n  name: c\n"] {
            let other = accepted(&WRAPPED.replace(from, &from.replace("name: c", "name: d")));
            assert!(
                matches!(other, Err(AcceptError::TwoNames { .. })),
                "{from:?}: {other:?}"
            );
        }
        let nameless = WRAPPED.replace("Cluster\n  name: c", "Cluster");
        assert!(matches!(
            accepted(&nameless),
            Err(AcceptError::NoName { .. })
        ));
    }

    /// Whatever the name in its body: Envoy removes it by that one.
    #[test]
    fn s36_a_virtual_host_is_called_as_it_is_asked_for() {
        let host = accepted(&virtual_host("r/d")).unwrap();
        assert_eq!(host.name.as_str(), "r/d");
        assert_eq!(host.body.as_deref(), Some(&b"\x0a\x03r/d\x12\x01d"[..]));
        assert_eq!(host.version, Version::of_body(host.body.as_ref().unwrap()));
        assert_eq!(host.facts().domains, Domains::new(["d"]));
        let name = Name::new("v");
        assert_eq!(
            accepted(&virtual_host("''")),
            Err(AcceptError::Unrouted { name })
        );
    }

    #[test]
    fn a_ttl_is_a_time_and_a_constraint_a_test() {
        assert_eq!(
            accepted(&WRAPPED.replace("1.5s", "0s")),
            Err(AcceptError::Ttl)
        );
        assert_eq!(
            accepted(&WRAPPED.replace("1.5s", "-1s")),
            Err(AcceptError::Ttl)
        );
        let untested = WRAPPED.replace(", value: prod", "");
        assert!(matches!(
            accepted(&untested),
            Err(AcceptError::Constraints(_))
        ));
    }
}
