//! What is subscribed to or watched: a type, a name, parameters, a source.

use std::marker::PhantomData;

use trunkline_core::client::Origin;
use trunkline_core::name::{Name, NameError, Selector};
use trunkline_core::params::Params;
use trunkline_core::resource::TypeUrl;
use trunkline_proto::acceptance::ResourceType;

use super::config_source::ConfigSource;
use super::raw::Raw;
use super::state::Loaded;

/// The longest name that is asked for.
const NAME_BYTES: usize = 4096;

/// What is subscribed to or watched.
///
/// A text is a name; others are made by [`Query::all`] and [`Query::glob`].
///
/// ```
/// use trunkline::client::Query;
/// use trunkline::envoy::config::cluster::v3::Cluster;
///
/// let by_name: Query<Cluster> = "backend".into();
/// let by_zone = Query::<Cluster>::name("backend").with_param("zone", "a");
/// assert_ne!(by_name, by_zone);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query<T> {
    pub(super) type_url: TypeUrl,
    pub(super) selector: Selector,
    pub(super) params: Vec<(String, String)>,
    pub(super) source: Option<ConfigSource>,
    /// The origin of the resource that names this one.
    pub(super) parent: Option<Origin>,
    value_type: PhantomData<fn() -> T>,
}

impl<T: ResourceType> Query<T> {
    /// Makes the query of one resource, by its name.
    #[must_use]
    pub fn name(name: &str) -> Self {
        Self::new(T::TYPE_URL, Selector::Name(Name::new(name)))
    }

    /// Makes the query of all resources of the type.
    #[must_use]
    pub fn all() -> Self {
        Self::new(T::TYPE_URL, Selector::Wildcard)
    }

    /// Makes the query of a collection, a name that ends in `/*`, or of all
    /// resources, `*`.
    ///
    /// # Errors
    /// If the text is no name and no glob.
    pub fn glob(text: &str) -> Result<Self, NameError> {
        let selector = Selector::parse(text, NAME_BYTES)?;
        Ok(Self::new(T::TYPE_URL, selector))
    }
}

impl Query<Raw> {
    /// Makes a query for resources of a type that is known by its URL only, as
    /// bytes. `*` is all of them.
    ///
    /// # Errors
    /// If the text is no name and no glob.
    pub fn raw(type_url: &str, text: &str) -> Result<Self, NameError> {
        let selector = Selector::parse(text, NAME_BYTES)?;
        Ok(Self::new(type_url, selector))
    }
}

impl<T> Query<T> {
    /// Makes a query without parameters, at the source that the bootstrap has.
    fn new(type_url: &str, selector: Selector) -> Self {
        Self {
            type_url: type_url.into(),
            selector,
            params: Vec::new(),
            source: None,
            parent: None,
            value_type: PhantomData,
        }
    }

    /// Adds a dynamic parameter to those of the bootstrap, or replaces one of
    /// them (TP2).
    #[must_use]
    pub fn with_param(mut self, key: &str, value: &str) -> Self {
        self.params.push((key.to_owned(), value.to_owned()));
        self
    }

    /// Asks this source, and not the one that the bootstrap has for the type or
    /// the name.
    #[must_use]
    pub fn from_source(mut self, source: ConfigSource) -> Self {
        self.source = Some(source);
        self
    }

    /// Tells which resource names this one, so that the config source `self`
    /// means that resource's own (C14).
    ///
    /// ```no_run
    /// use trunkline::client::{Client, ConfigSource, Loaded, Query, SourceError, Specifier};
    /// use trunkline::envoy::config::cluster::v3::Cluster;
    /// use trunkline::envoy::config::endpoint::v3::ClusterLoadAssignment;
    ///
    /// # fn run(client: &Client, cluster: &Loaded<Cluster>) -> Result<(), SourceError> {
    /// let endpoints = Query::<ClusterLoadAssignment>::name(&cluster.name)
    ///     .from_source(ConfigSource::from(Specifier::SelfSource))
    ///     .with_parent(cluster);
    /// let subscription = client.subscribe(endpoints)?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn with_parent<P>(mut self, parent: &Loaded<P>) -> Self {
        self.parent = Some(parent.origin());
        self
    }

    /// Returns the parameters: those of the query over the defaults, or the
    /// defaults alone if both together exceed the limits.
    pub(super) fn params(&self, defaults: &Params) -> Params {
        let own_params = self.params.iter().map(|(k, v)| (k.as_str(), v.as_str()));
        let params = defaults.iter().chain(own_params);
        Params::new(params).unwrap_or_else(|_| defaults.clone())
    }
}

impl<T: ResourceType> From<&str> for Query<T> {
    fn from(name: &str) -> Self {
        Self::name(name)
    }
}

impl<T: ResourceType> From<&String> for Query<T> {
    fn from(name: &String) -> Self {
        Self::name(name)
    }
}
