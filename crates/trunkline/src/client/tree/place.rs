//! Where a resource of a tree is from.

use std::sync::Arc;
use std::time::Duration;

use trunkline_core::client::{Origin, SourceId};
use trunkline_core::name::{Name, Selector};
use trunkline_core::tree::Key;
use trunkline_proto::envoy::envoy::config::core::v3 as message;
use trunkline_proto::envoy::envoy::config::core::v3::config_source::ConfigSourceSpecifier;

use crate::client::config_source::{ConfigSource, Specifier};
use crate::client::handle::Running;

/// Where a resource of a tree is from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::client) enum Place {
    /// The bootstrap.
    Static,
    /// A source that is asked for it.
    Source {
        source: Arc<ConfigSource>,
        /// How long it is waited for; `None` is for ever (E2).
        wait: Option<Duration>,
    },
    /// A collection at a source, which is asked for all of it.
    Member(SourceId),
    /// The system's resolver.
    Dns,
    /// There is no such source, and why.
    Invalid(Arc<str>),
}

/// The key of a node of a client's trees.
pub(in crate::client) type NodeKey = Key<Place>;

/// Resolves the references of one resource.
pub(super) struct Referrer<'a> {
    pub(super) client: &'a Running,
    /// Where the resource is from that refers to others.
    pub(super) origin: Origin,
}

impl Referrer<'_> {
    /// Makes the key of a resource that is referred to by its name alone: it is
    /// one of the bootstrap, or the client's source for the type has it.
    pub(super) fn by_name(&self, type_url: &str, name: &str) -> NodeKey {
        let name = Name::new(name);
        let place = match self.has_static(type_url, &name) {
            true => Place::Static,
            false => self.place(type_url, &name, None, None),
        };
        Key::new(type_url, name, place)
    }

    /// Makes the key of a resource that is referred to with a config source.
    /// Without one it has to be a resource of the bootstrap; if there is none,
    /// its place is invalid.
    pub(super) fn with_source(
        &self,
        type_url: &str,
        name: &str,
        source: Option<&message::ConfigSource>,
    ) -> NodeKey {
        let name = Name::new(name);
        let place = match source {
            Some(source) => self.place_of_message(type_url, &name, source),
            None if self.has_static(type_url, &name) => Place::Static,
            None => Place::Invalid("no config source is named, and the bootstrap has none".into()),
        };
        Key::new(type_url, name, place)
    }

    /// Makes the key of a resource that the bootstrap names with its source.
    pub(super) fn at_source(&self, type_url: &str, name: &str, source: &ConfigSource) -> NodeKey {
        let name = Name::new(name);
        let place = self.place(type_url, &name, Some(source), None);
        Key::new(type_url, name, place)
    }

    /// Makes the key of a resource that is asked for where its referrer is from;
    /// of a static referrer, by its name alone.
    pub(super) fn at_origin(&self, type_url: &str, name: &str) -> NodeKey {
        match self.client.source_of_parent(Some(self.origin)) {
            Ok(source) => {
                let name = Name::new(name);
                let place = self.place(type_url, &name, Some(&source), None);
                Key::new(type_url, name, place)
            }
            Err(_) => self.by_name(type_url, name),
        }
    }

    /// Returns whether the bootstrap has a resource of this type and name.
    fn has_static(&self, type_url: &str, name: &Name) -> bool {
        let shared = &self.client.shared;
        shared.read(|state, _| state.machine.has_static(type_url, name))
    }

    /// Returns the place that a config source in a resource means, or an invalid
    /// one with the reason for people.
    fn place_of_message(
        &self,
        type_url: &str,
        name: &Name,
        source: &message::ConfigSource,
    ) -> Place {
        let result = match &source.config_source_specifier {
            Some(ConfigSourceSpecifier::Ads(_)) => Ok(ConfigSource::ads()),
            // `self` means the same as `ads`, if that is the parent's (C14).
            Some(ConfigSourceSpecifier::Self_(_)) => self
                .client
                .source_of_parent(Some(self.origin))
                .map_err(|error| error.to_string()),
            _ => match &self.client.settings.bootstrap {
                Some(bootstrap) => {
                    let policy = &self.client.settings.data_sources;
                    let result = ConfigSource::resolve(bootstrap, source, policy);
                    result.map_err(|error| error.to_string())
                }
                None => Err(
                    "a config source with control planes of its own needs a bootstrap".to_owned(),
                ),
            },
        };

        match result {
            Ok(resolved_source) => self.place(
                type_url,
                name,
                Some(&resolved_source),
                source.initial_fetch_timeout.as_ref(),
            ),
            Err(error) => Place::Invalid(error.into()),
        }
    }

    /// Returns the place of a name: at `source`, or else at the client's own
    /// source. `wait` is the fetch timeout that the referrer sets; without it that
    /// of the source holds.
    fn place(
        &self,
        type_url: &str,
        name: &Name,
        source: Option<&ConfigSource>,
        wait: Option<&trunkline_proto::envoy::google::protobuf::Duration>,
    ) -> Place {
        let selector = Selector::Name(name.clone());
        let settings = &self.client.settings;
        match settings.source_of(&type_url.into(), &selector, source) {
            Ok(source) => {
                let wait = match wait {
                    None => source.initial_fetch_timeout,
                    Some(wait) => wait_of(wait),
                };
                Place::Source {
                    source: Arc::new(source),
                    wait,
                }
            }
            Err(error) => Place::Invalid(error.to_string().into()),
        }
    }
}

/// Returns the wait that an `initial_fetch_timeout` means: zero is for ever (E2),
/// and a negative part counts as zero.
fn wait_of(wait: &trunkline_proto::envoy::google::protobuf::Duration) -> Option<Duration> {
    let seconds = u64::try_from(wait.seconds).unwrap_or_default();
    let nanos = u32::try_from(wait.nanos).unwrap_or_default();
    Some(Duration::new(seconds, nanos)).filter(|wait| !wait.is_zero())
}

/// Returns the place of a root, which the query of the user names: `parent` is
/// the origin of the resource that the user says it is named by.
pub(super) fn place_of_query(
    client: &Running,
    type_url: &str,
    name: &Name,
    source: Option<&ConfigSource>,
    parent: Option<Origin>,
) -> Place {
    let referrer = Referrer {
        client,
        origin: parent.unwrap_or(Origin::Static),
    };
    match source {
        None if referrer.has_static(type_url, name) => Place::Static,
        Some(source) if source.specifier == Specifier::SelfSource => {
            match client.source_of_parent(parent) {
                Ok(source) => referrer.place(type_url, name, Some(&source), None),
                Err(error) => Place::Invalid(error.to_string().into()),
            }
        }
        source => referrer.place(type_url, name, source, None),
    }
}
