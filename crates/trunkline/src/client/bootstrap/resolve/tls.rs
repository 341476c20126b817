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
    /// Resolves how connections to a cluster are made secure. A cluster without
    /// a transport socket gets plaintext.
    pub(super) fn resolve_security(self, cluster: &Cluster, scope: &Scope<'_>) -> Option<Security> {
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
                let Ok(context) = UpstreamTlsContext::decode(config.value.as_slice()) else {
                    let reason = "it cannot be decoded";
                    return scope.mistake(Problem::Invalid { reason });
                };
                self.resolve_tls(&context, &scope).map(Security::Tls)
            }
            type_url => scope.unsupported(type_url, "use UpstreamTlsContext, or none"),
        }
    }

    /// Resolves a client's TLS. The name that the server's certificate must have is
    /// the SNI or the one subject alternative name; both must agree.
    fn resolve_tls(self, context: &UpstreamTlsContext, scope: &Scope<'_>) -> Option<TlsOptions> {
        let empty = CommonTlsContext::default();
        let common = context.common_tls_context.as_ref().unwrap_or(&empty);
        let common_scope = scope.field("common_tls_context");
        if common.tls_params.is_some() {
            let scope = common_scope.field("tls_params");
            scope.warn_ignored("tls_params", "TLS 1.2 and 1.3 are spoken with safe ciphers");
        }

        refuse_providers(common, &common_scope);
        let certificate = self.read_certificate(common, &common_scope);
        let (ca, san) = self.read_validation(common, &common_scope)?;

        let sni = Some(context.sni.clone()).filter(|sni| !sni.is_empty());
        if let (Some(sni), Some(san)) = (&sni, &san)
            && sni != san
        {
            let what = "a name in match_typed_subject_alt_names that is not the sni";
            return common_scope.unsupported(what, "write the same name in both, or one of them");
        }
        Some(TlsOptions {
            ca,
            certificate: certificate?,
            server_name: sni.or(san),
        })
    }

    /// Returns the client's certificate and key. `Some(None)` means a client
    /// without one, and `None` a mistake.
    fn read_certificate(self, common: &CommonTlsContext, scope: &Scope<'_>) -> Option<Own> {
        let client_certificate = common.tls_certificates.first();
        if let Some(client_certificate) = client_certificate {
            return read_key_pair(client_certificate, &scope.index("tls_certificates", 0))
                .map(Some);
        }
        let Some(config) = common.tls_certificate_sds_secret_configs.first() else {
            return Some(None);
        };
        let scope = scope.index("tls_certificate_sds_secret_configs", 0);
        match self.find_static_secret(config, "tls_certificate", &scope)? {
            (scope, secret::Type::TlsCertificate(client_certificate)) => {
                read_key_pair(client_certificate, &scope.field("tls_certificate")).map(Some)
            }
            _ => unknown_secret(config, "tls_certificate", &scope),
        }
    }

    /// Returns the certificate authorities that are trusted, and the name that
    /// the server's certificate has to have.
    fn read_validation(self, common: &CommonTlsContext, scope: &Scope<'_>) -> Option<Trust> {
        use ValidationContextType as Kind;
        match common.validation_context_type.as_ref() {
            None => scope.mistake(Problem::NoCa),
            Some(Kind::ValidationContext(context)) => {
                read_trust(context, &scope.field("validation_context"))
            }
            Some(Kind::ValidationContextSdsSecretConfig(config)) => {
                self.read_secret_trust(config, &scope.field("validation_context_sds_secret_config"))
            }
            Some(Kind::CombinedValidationContext(combined)) => {
                let scope = scope.field("combined_validation_context");
                let config = combined.validation_context_sds_secret_config.as_ref();
                let default = combined.default_validation_context.as_ref();
                match (config, default) {
                    (Some(config), default) => self.read_combined_trust(config, default, &scope),
                    (None, Some(default)) => {
                        read_trust(default, &scope.field("default_validation_context"))
                    }
                    (None, None) => scope.mistake(Problem::NoCa),
                }
            }
            Some(_) => scope.unsupported("a certificate provider", FILES),
        }
    }

    /// Returns the trust of a secret. The secret's own name for the server goes
    /// before that of the default context.
    fn read_combined_trust(
        self,
        config: &SdsSecretConfig,
        default: Option<&CertificateValidationContext>,
        scope: &Scope<'_>,
    ) -> Option<Trust> {
        let secret_scope = scope.field("validation_context_sds_secret_config");
        let (ca, secret_name) = self.read_secret_trust(config, &secret_scope)?;
        let default_scope = scope.field("default_validation_context");
        let default_name = match default {
            Some(default) => read_server_name(default, &default_scope)?,
            None => None,
        };
        Some((ca, secret_name.or(default_name)))
    }

    /// Returns the trust of a static secret.
    fn read_secret_trust(self, config: &SdsSecretConfig, scope: &Scope<'_>) -> Option<Trust> {
        match self.find_static_secret(config, "validation_context", scope)? {
            (scope, secret::Type::ValidationContext(context)) => {
                read_trust(context, &scope.field("validation_context"))
            }
            _ => unknown_secret(config, "validation_context", scope),
        }
    }

    /// Returns a static secret and its scope. A secret that SDS would have to
    /// fetch is unsupported, and an unknown name a mistake.
    fn find_static_secret<'s>(
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
                Some((scope.at_path(&path), secret))
            }
            None => unknown_secret(config, kind, scope),
        }
    }
}

/// The client's own certificate and its key, if it has them.
type Own = Option<(Pem, Pem)>;
/// The authorities that are trusted, and the name that is verified.
type Trust = (Option<Pem>, Option<String>);

/// Reports that no static secret of the name holds a `kind`. Always returns `None`.
fn unknown_secret<T>(config: &SdsSecretConfig, kind: &'static str, scope: &Scope<'_>) -> Option<T> {
    let name = config.name.clone();
    scope.mistake(Problem::UnknownSecret { name, kind })
}

/// Reports certificates that come neither from files nor from secrets of the
/// bootstrap as unsupported.
fn refuse_providers(common: &CommonTlsContext, scope: &Scope<'_>) {
    #[expect(deprecated, reason = "older bootstraps have them there")]
    let deprecated_fields = [
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
    let fields = [
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

    let all_fields = deprecated_fields.iter().chain(&fields);
    for (_, field) in all_fields.filter(|(is_set, _)| *is_set) {
        scope.field(field).unsupported::<()>(*field, FILES);
    }
}

/// Reads a certificate and its key, in PEM and without a password.
fn read_key_pair(certificate: &TlsCertificate, scope: &Scope<'_>) -> Option<(Pem, Pem)> {
    let unsupported = [
        (certificate.pkcs12.is_some(), "pkcs12"),
        (certificate.password.is_some(), "password"),
        (
            certificate.private_key_provider.is_some(),
            "private_key_provider",
        ),
    ];
    for (_, field) in unsupported.iter().filter(|(is_set, _)| *is_set) {
        let remedy = "use certificate_chain and private_key in PEM, without a password";
        scope.field(field).unsupported::<()>(*field, remedy);
    }

    let (Some(chain), Some(key)) = (&certificate.certificate_chain, &certificate.private_key)
    else {
        return scope.missing(
            "certificate_chain or private_key",
            "a certificate and its key go together",
        );
    };
    // The clusters and secrets of a bootstrap are its author's, whoever refers
    // to them.
    let chain = data_source::read_pem(chain, Author::Bootstrap, &scope.field("certificate_chain"));
    let key = data_source::read_pem(key, Author::Bootstrap, &scope.field("private_key"));
    Some((chain?, key?))
}

/// Reads which servers are trusted. A setting that would weaken the check is a
/// mistake, and so is one that asks for a stricter check than there is here.
fn read_trust(context: &CertificateValidationContext, scope: &Scope<'_>) -> Option<Trust> {
    let name = read_server_name(context, scope);
    let accepts_all = context.trust_chain_verification() == TrustChainVerification::AcceptUntrusted;
    if accepts_all || context.allow_expired_certificate {
        let what = "trust in certificates that cannot be verified";
        return scope.unsupported(what, "name their authority in trusted_ca");
    }
    let ca = match (&context.trusted_ca, &context.system_root_certs) {
        (Some(ca), _) => {
            let scope = scope.field("trusted_ca");
            Some(data_source::read_pem(ca, Author::Bootstrap, &scope)?)
        }
        (None, Some(_)) => None,
        (None, None) => return scope.mistake(Problem::NoCa),
    };
    Some((ca, name?))
}

/// Returns the name that the server's certificate has to have: the one exact
/// DNS name among the subject alternative names, or `Some(None)` if none is
/// listed.
fn read_server_name(
    context: &CertificateValidationContext,
    scope: &Scope<'_>,
) -> Option<Option<String>> {
    report_stricter_checks(context, scope);

    #[expect(deprecated, reason = "older bootstraps have them there")]
    let older_matchers = context.match_subject_alt_names.iter();
    let typed_matchers = context.match_typed_subject_alt_names.iter();
    let matchers = typed_matchers
        .filter_map(|typed_matcher| typed_matcher.matcher.as_ref())
        .chain(older_matchers);
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

/// Reports the checks that a validation context asks for and that are not made
/// here: without them, more servers would be trusted than the bootstrap says.
fn report_stricter_checks(context: &CertificateValidationContext, scope: &Scope<'_>) {
    let checks = [
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
    for (_, field) in checks.iter().filter(|(is_set, _)| *is_set) {
        let remedy = "name an authority of the control plane alone in trusted_ca";
        scope.field(field).unsupported::<()>(*field, remedy);
    }
}
