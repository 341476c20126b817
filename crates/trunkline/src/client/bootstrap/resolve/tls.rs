//! The transport socket of a cluster: TLS of a client.

use prost::Message as _;
use trunkline_proto::descriptor::full_name;
use trunkline_proto::envoy::envoy::config::cluster::v3::Cluster;
use trunkline_proto::envoy::envoy::config::core::v3::transport_socket::ConfigType;
use trunkline_proto::envoy::envoy::extensions::transport_sockets::tls::v3::certificate_validation_context::TrustChainVerification;
use trunkline_proto::envoy::envoy::extensions::transport_sockets::tls::v3::common_tls_context::ValidationContextType;
use trunkline_proto::envoy::envoy::extensions::transport_sockets::tls::v3::{
    CertificateValidationContext, CommonTlsContext, SdsSecretConfig, TlsCertificate,
    UpstreamTlsContext, secret,
};
use trunkline_proto::envoy::envoy::r#type::matcher::v3::string_matcher::MatchPattern;

use super::super::policy::Author;
use super::super::problem::Problem;
use super::super::report::Scope;
use super::{Resolver, data_source};
use crate::client::{Pem, Security, TlsOptions};

const TLS: &str = "envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext";
const RAW: &str = "envoy.extensions.transport_sockets.raw_buffer.v3.RawBuffer";

/// What to do about secrets that would come from a control plane.
const FILES: &str = "name files, which are read again when they change";

impl Resolver<'_> {
    /// Resolves how connections to a cluster are made secure.
    pub(super) fn security(self, cluster: &Cluster, scope: &Scope<'_>) -> Option<Security> {
        if !cluster.transport_socket_matches.is_empty() {
            let scope = scope.field("transport_socket_matches");
            scope.unsupported::<()>("transport_socket_matches", "use transport_socket");
        }
        let Some(socket) = cluster.transport_socket.as_ref() else {
            return Some(Security::Plaintext);
        };
        let scope = scope.field("transport_socket");
        let Some(ConfigType::TypedConfig(config)) = socket.config_type.as_ref() else {
            return scope.missing("typed_config", "add that of the transport socket");
        };
        match full_name(&config.type_url) {
            RAW => Some(Security::Plaintext),
            TLS => {
                let scope = scope.field("typed_config");
                match UpstreamTlsContext::decode(config.value.as_slice()) {
                    Ok(context) => self.tls(&context, &scope).map(Security::Tls),
                    Err(_) => scope.mistake(Problem::Invalid {
                        reason: "it cannot be decoded",
                    }),
                }
            }
            other => scope.unsupported(other, "use UpstreamTlsContext, or none"),
        }
    }

    fn tls(self, context: &UpstreamTlsContext, scope: &Scope<'_>) -> Option<TlsOptions> {
        let empty = CommonTlsContext::default();
        let common = context.common_tls_context.as_ref().unwrap_or(&empty);
        let common_scope = scope.field("common_tls_context");
        if common.tls_params.is_some() {
            let scope = common_scope.field("tls_params");
            scope.ignored("tls_params", "TLS 1.2 and 1.3 are spoken with safe ciphers");
        }
        refuse_providers(common, &common_scope);
        let certificate = self.certificate(common, &common_scope);
        let (ca, name) = self.validation(common, &common_scope)?;
        let sni = Some(context.sni.clone()).filter(|sni| !sni.is_empty());
        if let (Some(sni), Some(name)) = (&sni, &name)
            && sni != name
        {
            let what = "a name in match_typed_subject_alt_names that is not the sni";
            return common_scope.unsupported(what, "write the same name in both, or one of them");
        }
        Some(TlsOptions {
            ca,
            certificate: certificate?,
            server_name: sni.or(name),
        })
    }

    /// The client's own certificate and key; `Some(None)` if it has none.
    fn certificate(self, common: &CommonTlsContext, scope: &Scope<'_>) -> Option<Own> {
        let own = common.tls_certificates.first();
        if let Some(own) = own {
            return key_pair(own, &scope.index("tls_certificates", 0)).map(Some);
        }
        let Some(config) = common.tls_certificate_sds_secret_configs.first() else {
            return Some(None);
        };
        let scope = scope.index("tls_certificate_sds_secret_configs", 0);
        match self.static_secret(config, "tls_certificate", &scope)? {
            (scope, secret::Type::TlsCertificate(own)) => {
                key_pair(own, &scope.field("tls_certificate")).map(Some)
            }
            _ => unknown_secret(config, "tls_certificate", &scope),
        }
    }

    /// The authorities that are trusted, and the name that is verified.
    fn validation(self, common: &CommonTlsContext, scope: &Scope<'_>) -> Option<Trust> {
        use ValidationContextType as Kind;
        match common.validation_context_type.as_ref() {
            None => scope.mistake(Problem::NoCa),
            Some(Kind::ValidationContext(context)) => {
                trust(context, &scope.field("validation_context"))
            }
            Some(Kind::ValidationContextSdsSecretConfig(config)) => {
                self.secret_trust(config, &scope.field("validation_context_sds_secret_config"))
            }
            Some(Kind::CombinedValidationContext(both)) => {
                let scope = scope.field("combined_validation_context");
                let config = both.validation_context_sds_secret_config.as_ref();
                let default = both.default_validation_context.as_ref();
                match (config, default) {
                    (Some(config), default) => {
                        let scope_of = scope.field("validation_context_sds_secret_config");
                        let (ca, name) = self.secret_trust(config, &scope_of)?;
                        let scope = scope.field("default_validation_context");
                        let own = default.map(|default| names(default, &scope));
                        let own = own.unwrap_or(Some(None))?;
                        Some((ca, name.or(own)))
                    }
                    (None, Some(default)) => {
                        trust(default, &scope.field("default_validation_context"))
                    }
                    (None, None) => scope.mistake(Problem::NoCa),
                }
            }
            Some(_) => scope.unsupported("a certificate provider", FILES),
        }
    }

    fn secret_trust(self, config: &SdsSecretConfig, scope: &Scope<'_>) -> Option<Trust> {
        match self.static_secret(config, "validation_context", scope)? {
            (scope, secret::Type::ValidationContext(context)) => {
                trust(context, &scope.field("validation_context"))
            }
            _ => unknown_secret(config, "validation_context", scope),
        }
    }

    /// Finds a static secret, and the scope of it.
    fn static_secret<'s>(
        &self,
        config: &SdsSecretConfig,
        kind: &'static str,
        scope: &Scope<'s>,
    ) -> Option<(Scope<'s>, &secret::Type)> {
        if config.sds_config.is_some() {
            return scope.unsupported("a secret of a connection to a control plane by SDS", FILES);
        }
        match self.statics.secret(&config.name) {
            Some((index, secret)) => {
                let path = format!("static_resources.secrets[{index}]");
                Some((scope.elsewhere(&path), secret))
            }
            None => unknown_secret(config, kind, scope),
        }
    }
}

/// The client's own certificate and its key, if it has them.
type Own = Option<(Pem, Pem)>;
/// The authorities that are trusted, and the name that is verified.
type Trust = (Option<Pem>, Option<String>);

fn unknown_secret<T>(config: &SdsSecretConfig, kind: &'static str, scope: &Scope<'_>) -> Option<T> {
    let name = config.name.clone();
    scope.mistake(Problem::UnknownSecret { name, kind })
}

/// Refuses certificates that come from elsewhere than files and secrets of the
/// bootstrap.
fn refuse_providers(common: &CommonTlsContext, scope: &Scope<'_>) {
    #[expect(deprecated, reason = "older bootstraps have them there")]
    let old = [
        (
            common.tls_certificate_certificate_provider.is_some(),
            "tls_certificate_certificate_provider",
        ),
        (
            common
                .tls_certificate_certificate_provider_instance
                .is_some(),
            "tls_certificate_certificate_provider_instance",
        ),
    ];
    let new = [
        (
            common.tls_certificate_provider_instance.is_some(),
            "tls_certificate_provider_instance",
        ),
        (
            common.custom_tls_certificate_selector.is_some(),
            "custom_tls_certificate_selector",
        ),
        (common.custom_handshaker.is_some(), "custom_handshaker"),
    ];
    let all = old.iter().chain(&new);
    for (_, field) in all.filter(|(is_set, _)| *is_set) {
        scope.field(field).unsupported::<()>(*field, FILES);
    }
}

fn key_pair(own: &TlsCertificate, scope: &Scope<'_>) -> Option<(Pem, Pem)> {
    let unsupported = [
        (own.pkcs12.is_some(), "pkcs12"),
        (own.password.is_some(), "password"),
        (own.private_key_provider.is_some(), "private_key_provider"),
    ];
    for (_, field) in unsupported.iter().filter(|(is_set, _)| *is_set) {
        let remedy = "use certificate_chain and private_key in PEM, without a password";
        scope.field(field).unsupported::<()>(*field, remedy);
    }
    let (Some(chain), Some(key)) = (&own.certificate_chain, &own.private_key) else {
        return scope.missing(
            "certificate_chain or private_key",
            "a certificate and its key go together",
        );
    };
    // The clusters and secrets of a bootstrap are its author's, whoever refers
    // to them.
    let chain = data_source::pem(chain, Author::Bootstrap, &scope.field("certificate_chain"));
    let key = data_source::pem(key, Author::Bootstrap, &scope.field("private_key"));
    Some((chain?, key?))
}

/// Reads which servers are trusted. What would weaken the check, or is stricter
/// than it can be made, is a mistake.
fn trust(context: &CertificateValidationContext, scope: &Scope<'_>) -> Option<Trust> {
    let name = names(context, scope);
    let accepts_all = context.trust_chain_verification() == TrustChainVerification::AcceptUntrusted;
    if accepts_all || context.allow_expired_certificate {
        let what = "trust in certificates that cannot be verified";
        return scope.unsupported(what, "name their authority in trusted_ca");
    }
    let ca = match (&context.trusted_ca, &context.system_root_certs) {
        (Some(ca), _) => {
            let scope = scope.field("trusted_ca");
            Some(data_source::pem(ca, Author::Bootstrap, &scope)?)
        }
        (None, Some(_)) => None,
        (None, None) => return scope.mistake(Problem::NoCa),
    };
    Some((ca, name?))
}

/// The name that the certificate of the server must have: the one exact name of
/// a DNS host among the alternative names, if there are any.
fn names(context: &CertificateValidationContext, scope: &Scope<'_>) -> Option<Option<String>> {
    let unsupported = [
        (context.crl.is_some(), "crl"),
        (
            !context.verify_certificate_spki.is_empty(),
            "verify_certificate_spki",
        ),
        (
            !context.verify_certificate_hash.is_empty(),
            "verify_certificate_hash",
        ),
        (
            context.custom_validator_config.is_some(),
            "custom_validator_config",
        ),
    ];
    for (_, field) in unsupported.iter().filter(|(is_set, _)| *is_set) {
        let remedy = "name an authority of the control plane alone in trusted_ca";
        scope.field(field).unsupported::<()>(*field, remedy);
    }
    #[expect(deprecated, reason = "older bootstraps have them there")]
    let old = context.match_subject_alt_names.iter();
    let typed = context.match_typed_subject_alt_names.iter();
    let matchers = typed.filter_map(|typed| typed.matcher.as_ref()).chain(old);
    let patterns: Vec<_> = matchers
        .map(|matcher| matcher.match_pattern.as_ref())
        .collect();
    match patterns[..] {
        [] => Some(None),
        [Some(MatchPattern::Exact(name))] if !name.contains("://") => Some(Some(name.clone())),
        _ => scope.unsupported(
            "a list or a pattern of subject alternative names",
            "write one exact name of a host",
        ),
    }
}
