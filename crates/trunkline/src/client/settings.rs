//! Where a client asks for what: config sources by type and by authority.

use std::sync::Arc;

use trunkline_core::kind;
use trunkline_core::name::{Name, Selector};
use trunkline_core::params::Params;
use trunkline_core::resource::TypeUrl;

use super::bootstrap::{Bootstrap, DataSourcePolicy};
use super::config_source::{ConfigSource, Specifier};
use super::tree::Resolver;

/// Where a client asks for what.
#[derive(Clone, Debug, Default)]
pub(super) struct Settings {
    /// Control planes that were added by hand. They stand in the place of the
    /// bootstrap's aggregated stream.
    pub(super) ads: Option<ConfigSource>,
    pub(super) bootstrap: Option<Arc<Bootstrap>>,
    /// Dynamic parameters of every subscription, over those of the bootstrap
    /// (TP2).
    pub(super) params: Params,
    /// Which files resources may name.
    pub(super) data_sources: DataSourcePolicy,
    /// How hosts of clusters are resolved.
    pub(super) resolver: Resolver,
    /// The name of the client in metrics and CSDS (C50).
    pub(super) target: String,
}

/// Why there is no source for a subscription.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SourceError {
    /// The bootstrap has no source for the type.
    #[error(
        "no control plane is configured for {0}; add one to the bootstrap, or name a config source"
    )]
    NoSource(TypeUrl),
    /// The bootstrap does not have the authority of the name (C8).
    #[error("the bootstrap has no authority {0:?}; add it to `authorities`")]
    NoAuthority(String),
    /// `ads` was named, and the bootstrap has none.
    #[error(
        "the config source is `ads`, and the bootstrap has no aggregated stream; add `ads_config`"
    )]
    NoAds,
    /// `self` was named, and no resource that came from a control plane or a
    /// file names this one.
    #[error(
        "the config source is `self`, which means that of the resource that names this one, and \
         there is none; name another source, or the parent"
    )]
    NoParent,
    /// The streams of the source carry another type only.
    #[error(transparent)]
    Stream(#[from] trunkline_core::sink::SinkError),
}

impl Settings {
    /// Returns the source of a selector: the one that the query names, else
    /// that of the authority, else that of the type, else the aggregated
    /// stream.
    pub(super) fn source_of(
        &self,
        type_url: &TypeUrl,
        selector: &Selector,
        query_source: Option<&ConfigSource>,
    ) -> Result<ConfigSource, SourceError> {
        let source = match query_source {
            Some(source) => Some(source.clone()),
            None => self.source_of_authority(selector)?,
        };
        let source = source.or_else(|| self.source_of_type(type_url));
        let source = source.ok_or_else(|| SourceError::NoSource(type_url.clone()))?;

        match source.specifier {
            Specifier::Ads => self.ads().cloned().ok_or(SourceError::NoAds),
            Specifier::SelfSource => Err(SourceError::NoParent),
            _ => Ok(source),
        }
    }

    /// Returns the aggregated stream: that of the control planes that were added by
    /// hand, or else the bootstrap's.
    fn ads(&self) -> Option<&ConfigSource> {
        let bootstrap_ads = self.bootstrap.as_ref();
        let bootstrap_ads = bootstrap_ads.and_then(|bootstrap| bootstrap.ads.as_ref());
        self.ads.as_ref().or(bootstrap_ads)
    }

    /// Returns the source of the authority in a structured name (C8, E13).
    /// `Ok(None)` means a name without an authority, and an error an authority
    /// that the bootstrap does not know.
    fn source_of_authority(
        &self,
        selector: &Selector,
    ) -> Result<Option<ConfigSource>, SourceError> {
        let (Some(bootstrap), Some(authority)) = (&self.bootstrap, authority_of(selector)) else {
            return Ok(None);
        };
        let source = bootstrap.source_of_authority(&authority);
        // Without any authorities in the bootstrap, names with one go to the
        // source of their type.
        if source.is_none() && !authority.is_empty() && bootstrap.has_authorities() {
            return Err(SourceError::NoAuthority(authority));
        }
        Ok(source)
    }

    /// Returns the source of listeners or clusters in Envoy's bootstrap, and
    /// the aggregated stream for all other types.
    fn source_of_type(&self, type_url: &TypeUrl) -> Option<ConfigSource> {
        let bootstrap = self.bootstrap.as_ref();
        let type_source = bootstrap.and_then(|bootstrap| match type_url.as_str() {
            kind::LDS => bootstrap.lds.as_ref(),
            kind::CDS => bootstrap.cds.as_ref(),
            _ => None,
        });
        type_source.or(self.ads()).cloned()
    }

    /// Returns the selector to subscribe to. The wildcard of listeners or
    /// clusters becomes the collection that the bootstrap names for the type.
    pub(super) fn selector_of(&self, type_url: &TypeUrl, selector: Selector) -> Selector {
        let bootstrap = self.bootstrap.as_ref();
        let collection = bootstrap.and_then(|bootstrap| match (type_url.as_str(), &selector) {
            (kind::LDS, Selector::Wildcard) => bootstrap.lds_locator.clone(),
            (kind::CDS, Selector::Wildcard) => bootstrap.cds_locator.clone(),
            _ => None,
        });
        collection.map_or(selector, Selector::Glob)
    }

    /// Returns the dynamic parameters for a selector, without those of the
    /// query itself (TP2): the bootstrap's and the client's, or the client's
    /// alone if both together exceed the limits.
    pub(super) fn params_of(&self, type_url: &TypeUrl, selector: &Selector) -> Params {
        let Some(bootstrap) = &self.bootstrap else {
            return self.params.clone();
        };
        let name = Name::new(selector.as_str());
        let bootstrap_params = bootstrap.params_of(type_url.as_str(), &name);
        let params = bootstrap_params.iter().chain(self.params.iter());
        Params::new(params).unwrap_or_else(|_| self.params.clone())
    }

    /// Returns the parameters that servers are told in the node, for all names
    /// (TP2): the bootstrap's and the client's, or the client's alone if both
    /// together exceed the limits.
    pub(super) fn params_of_node(&self) -> Params {
        let bootstrap = self.bootstrap.as_ref();
        let params = bootstrap.map(|bootstrap| &bootstrap.parameters.all);
        let params = params.into_iter().flat_map(Params::iter);
        let params = Params::new(params.chain(self.params.iter()));
        params.unwrap_or_else(|_| self.params.clone())
    }
}

/// Returns the authority of a structured name, which may be empty; `None` for
/// another name.
fn authority_of(selector: &Selector) -> Option<String> {
    let name = Name::new(selector.as_str());
    name.xdstp().map(|name| name.authority().to_owned())
}
