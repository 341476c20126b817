//! `envoy.config.core.v3.ConfigSource`.

use std::sync::Arc;
use std::time::Duration;

use trunkline_proto::envoy::envoy::config::core::v3::config_source::ConfigSourceSpecifier;
use trunkline_proto::envoy::envoy::config::core::v3::{self as message, PathConfigSource};

use super::super::problem::Problem;
use super::super::report::Scope;
use super::{Referrer, Resolver, data_source, duration};
use crate::client::{ConfigSource, PathSource, Specifier};

impl Resolver<'_> {
    /// Resolves a config source. Returns `None` after a mistake.
    pub(in super::super) fn resolve_source(
        self,
        source: &message::ConfigSource,
        scope: &Scope<'_>,
    ) -> Option<ConfigSource> {
        if source.resource_api_version().as_str_name() == "V2" {
            let scope = scope.field("resource_api_version");
            scope.unsupported::<()>("V2", "write V3");
        }

        let timeout = duration::read_or(
            source.initial_fetch_timeout.as_ref(),
            ConfigSource::INITIAL_FETCH_TIMEOUT,
            &scope.field("initial_fetch_timeout"),
        );
        let specifier = self.resolve_specifier(source, scope)?;
        Some(ConfigSource {
            specifier,
            // E2: zero is no time-out.
            initial_fetch_timeout: timeout.filter(|timeout| *timeout != Duration::ZERO),
        })
    }

    /// Resolves the kind of a config source. Returns `None` after a mistake.
    #[expect(deprecated, reason = "older bootstraps have `path`")]
    fn resolve_specifier(
        self,
        source: &message::ConfigSource,
        scope: &Scope<'_>,
    ) -> Option<Specifier> {
        use ConfigSourceSpecifier as Kind;
        match source.config_source_specifier.as_ref() {
            None => scope.missing(
                "the kind of source",
                "set one of ads, api_config_source, path_config_source",
            ),
            Some(Kind::Ads(_)) => self.resolve_ads(&scope.field("ads")),
            Some(Kind::Self_(_)) => self.resolve_self(&scope.field("self")),
            Some(Kind::ApiConfigSource(api)) => {
                let api = self.resolve_api(api, false, &scope.field("api_config_source"))?;
                Some(Specifier::Api(Arc::new(api)))
            }
            Some(Kind::PathConfigSource(path)) => {
                self.resolve_path(path, &scope.field("path_config_source"))
            }
            Some(Kind::Path(path)) => {
                let path =
                    data_source::check_file(path, self.referrer.author(), &scope.field("path"))?;
                let watched_directory = None;
                Some(Specifier::Path(PathSource {
                    path,
                    watched_directory,
                }))
            }
        }
    }

    /// Resolves `ads`, for which the bootstrap has to have an aggregated stream.
    fn resolve_ads(self, scope: &Scope<'_>) -> Option<Specifier> {
        match self.missing_ads {
            Some(field) => scope.mistake(Problem::NoAds { field }),
            None => Some(Specifier::Ads),
        }
    }

    /// Resolves `self`, which has no meaning in the bootstrap itself. Under
    /// gRPC's bootstrap `self` means `ads`, because the name of a resource
    /// decides which server is asked (C14).
    fn resolve_self(self, scope: &Scope<'_>) -> Option<Specifier> {
        match self.referrer {
            Referrer::Bootstrap => scope.unsupported(
                "self, the source of the resource around it,",
                "use ads or api_config_source",
            ),
            Referrer::Resource {
                self_is_ads: true, ..
            } => self.resolve_ads(scope),
            Referrer::Resource { .. } => Some(Specifier::SelfSource),
        }
    }

    /// Resolves a file, which the author of the source has to be allowed to name.
    fn resolve_path(self, source: &PathConfigSource, scope: &Scope<'_>) -> Option<Specifier> {
        let path =
            data_source::check_file(&source.path, self.referrer.author(), &scope.field("path"));
        let watched_directory = source.watched_directory.as_ref().map(|watched_directory| {
            let scope = scope.field("watched_directory.path");
            data_source::check_file(&watched_directory.path, self.referrer.author(), &scope)
        });
        Some(Specifier::Path(PathSource {
            path: path?,
            watched_directory: match watched_directory {
                None => None,
                Some(watched_directory) => Some(watched_directory?),
            },
        }))
    }
}
