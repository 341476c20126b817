//! Where a client asks for what: config sources by type and by authority.

use std::collections::BTreeMap;
use std::time::Duration;

use trunkline_core::kind;
use trunkline_core::name::{Name, Selector};
use trunkline_core::params::Params;
use trunkline_core::resource::TypeUrl;

use super::bootstrap::{Authority, AuthoritySource};
use super::config_source::{ConfigSource, Specifier};

/// Where a client asks for what.
#[derive(Clone, Debug, Default)]
pub(super) struct Settings {
    /// The aggregated stream.
    pub(super) ads: Option<ConfigSource>,
    /// Sources of single types: those of listeners and clusters in Envoy's
    /// bootstrap.
    pub(super) by_type: BTreeMap<TypeUrl, ConfigSource>,
    /// Sources of authorities of structured names (C8, E13).
    pub(super) authorities: BTreeMap<String, AuthoritySettings>,
    /// Dynamic parameters of every subscription (TP2).
    pub(super) params: Params,
}

/// What is particular to the names of an authority.
#[derive(Clone, Debug)]
pub(super) struct AuthoritySettings {
    pub(super) source: Option<ConfigSource>,
    pub(super) params: Params,
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
    /// `self` was named by somebody who is no resource.
    #[error("the config source is `self`, which only a resource can say; name another")]
    NoParent,
    /// The streams of the source carry another type only.
    #[error(transparent)]
    Stream(#[from] trunkline_core::sink::SinkError),
}

/// How long a name of an authority waits for its first response (C32).
const FETCH_TIMEOUT: Duration = Duration::from_secs(15);

impl Settings {
    /// Takes the sources of a bootstrap: the aggregated one, that of listeners,
    /// that of clusters; those of authorities, gRPC's and Envoy's (E13).
    pub(super) fn of_bootstrap(
        (ads, lds, cds): (
            Option<ConfigSource>,
            Option<ConfigSource>,
            Option<ConfigSource>,
        ),
        authorities: BTreeMap<String, Authority>,
        config_sources: Vec<AuthoritySource>,
        params: Params,
    ) -> Self {
        let by_type = [(kind::LDS, lds), (kind::CDS, cds)];
        let by_type = by_type
            .into_iter()
            .filter_map(|(url, source)| Some((url.into(), source?)));
        let named = authorities.into_iter().map(|(name, authority)| {
            let source = authority.servers.map(|api| ConfigSource {
                specifier: Specifier::Api(api),
                initial_fetch_timeout: Some(FETCH_TIMEOUT),
            });
            let params = authority.parameters.unwrap_or_else(|| params.clone());
            (name, AuthoritySettings { source, params })
        });
        let mut settings = Self {
            ads,
            by_type: by_type.collect(),
            authorities: named.collect(),
            params: params.clone(),
        };
        for of in config_sources {
            for name in of.authorities {
                // The first that matches counts (E13).
                let source = Some(of.source.clone());
                let params = params.clone();
                let new = AuthoritySettings { source, params };
                settings.authorities.entry(name).or_insert(new);
            }
        }
        settings
    }

    /// The source of a selector: the one that was named, else that of the
    /// authority, else that of the type, else the aggregated stream.
    pub(super) fn source_of(
        &self,
        type_url: &TypeUrl,
        selector: &Selector,
        named: Option<&ConfigSource>,
    ) -> Result<ConfigSource, SourceError> {
        let source = match named {
            Some(source) => source,
            None => match self.authority_of(selector)? {
                Some(AuthoritySettings {
                    source: Some(source),
                    ..
                }) => source,
                _ => {
                    let of_type = self.by_type.get(type_url).or(self.ads.as_ref());
                    of_type.ok_or_else(|| SourceError::NoSource(type_url.clone()))?
                }
            },
        };
        match source.specifier {
            Specifier::Ads => self.ads.clone().ok_or(SourceError::NoAds),
            Specifier::SelfSource => Err(SourceError::NoParent),
            _ => Ok(source.clone()),
        }
    }

    /// The parameters of a selector, before its own (TP2).
    pub(super) fn params_of(&self, selector: &Selector) -> Params {
        let authority = self.authority_of(selector).ok().flatten();
        let own = authority.map(|authority| &authority.params);
        let all = self
            .params
            .iter()
            .chain(own.into_iter().flat_map(Params::iter));
        Params::new(all).unwrap_or_else(|_| self.params.clone())
    }

    /// The settings of the authority that a structured name has (C8). Names
    /// without an authority have none.
    fn authority_of(&self, selector: &Selector) -> Result<Option<&AuthoritySettings>, SourceError> {
        let text = selector.as_str();
        let Some(name) = Name::new(text).xdstp() else {
            return Ok(None);
        };
        match (self.authorities.get(name.authority()), name.authority()) {
            (Some(found), _) => Ok(Some(found)),
            (None, "") => Ok(None),
            // Envoy's bootstraps may have none, and mean the default source.
            (None, _) if self.authorities.is_empty() => Ok(None),
            (None, missing) => Err(SourceError::NoAuthority(missing.to_owned())),
        }
    }
}
