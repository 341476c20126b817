//! Transport sockets of clusters and of filter chains (C60, A29).
//!
//! Certificates come from providers that the bootstrap names, and from nowhere
//! else. A field that is not supported is a reason where to ignore it would be
//! less secure.

use super::{decode_body, matcher};
use crate::acceptance::extensions::Side;
use crate::acceptance::findings::Findings;
use crate::acceptance::place::{Place, clip};
use crate::acceptance::problem::{MAX_VALUE, Problem};
use crate::descriptor::full_name;
use crate::envoy::envoy::config::cluster::v3::Cluster;
use crate::envoy::envoy::config::core::v3::TransportSocket;
use crate::envoy::envoy::config::core::v3::transport_socket::ConfigType;
use crate::envoy::envoy::extensions::transport_sockets::http_11_proxy::v3::Http11ProxyUpstreamTransport;
use crate::envoy::envoy::extensions::transport_sockets::tls::v3::common_tls_context::{
    CombinedCertificateValidationContext, ValidationContextType,
};
use crate::envoy::envoy::extensions::transport_sockets::tls::v3::downstream_tls_context::OcspStaplePolicy;
use crate::envoy::envoy::extensions::transport_sockets::tls::v3::{
    CertificateProviderPluginInstance, CertificateValidationContext, CommonTlsContext,
    DownstreamTlsContext, UpstreamTlsContext,
};

const SOCKET_NAME: &str = "envoy.transport_sockets.tls";
const UPSTREAM: &str = "envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext";
const DOWNSTREAM: &str = "envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext";
const HTTP_PROXY: &str =
    "envoy.extensions.transport_sockets.http_11_proxy.v3.Http11ProxyUpstreamTransport";

/// The longest name of a server (A101).
const MAX_SNI: usize = 255;

/// Checks the transport socket of a cluster.
pub(super) fn check_cluster(cluster: &Cluster, findings: &mut Findings<'_>) {
    let root = Place::ROOT;
    if !cluster.transport_socket_matches.is_empty() {
        let place = root.field("transport_socket_matches");
        findings.reject(&place, Problem::Insecure);
    }

    let Some(socket) = &cluster.transport_socket else {
        return;
    };
    let place = root.field("transport_socket");
    // A86: a proxy contains the socket to the server, or none for plain text.
    if let Some(ConfigType::TypedConfig(any)) = &socket.config_type
        && full_name(&any.type_url) == HTTP_PROXY
    {
        let place = place.field("typed_config");
        let proxy: Option<Http11ProxyUpstreamTransport> =
            decode_body(HTTP_PROXY, &any.value, &place, findings);
        if let Some(inner) = proxy.and_then(|proxy| proxy.transport_socket) {
            check_upstream(&inner, &place.field("transport_socket"), findings);
        }
        return;
    }
    check_upstream(socket, &place, findings);
}

/// Checks the TLS socket of connections to a cluster.
fn check_upstream(socket: &TransportSocket, place: &Place<'_>, findings: &mut Findings<'_>) {
    let Some(body) = check_socket(socket, UPSTREAM, place, findings) else {
        return;
    };
    let place = place.field("typed_config");
    let Some(context) = decode_body::<UpstreamTlsContext>(UPSTREAM, body, &place, findings) else {
        return;
    };
    if context.sni.len() > MAX_SNI {
        let sni_length = format!("{} characters long", context.sni.len());
        let problem = Problem::value(sni_length, "at most 255");
        findings.reject(&place.field("sni"), problem);
    }
    let place = place.field("common_tls_context");
    match &context.common_tls_context {
        Some(common) => check_common(common, Side::Client, &place, findings),
        None => findings.reject(&place, Problem::Missing),
    }
}

/// Checks the transport socket of a filter chain.
pub(super) fn check_downstream(
    socket: &TransportSocket,
    place: &Place<'_>,
    findings: &mut Findings<'_>,
) {
    let Some(body) = check_socket(socket, DOWNSTREAM, place, findings) else {
        return;
    };
    let place = place.field("typed_config");
    let Some(context) = decode_body::<DownstreamTlsContext>(DOWNSTREAM, body, &place, findings)
    else {
        return;
    };

    if context.require_sni.as_ref().is_some_and(|sni| sni.value) {
        findings.reject(&place.field("require_sni"), Problem::Insecure);
    }
    if context.ocsp_staple_policy != OcspStaplePolicy::LenientStapling as i32 {
        findings.reject(&place.field("ocsp_staple_policy"), Problem::Insecure);
    }
    let common_place = place.field("common_tls_context");
    let Some(common) = &context.common_tls_context else {
        return findings.reject(&common_place, Problem::Missing);
    };

    check_common(common, Side::Server, &common_place, findings);
    let requires_certificate =
        (context.require_client_certificate.as_ref()).is_some_and(|flag| flag.value);
    if requires_certificate && common.validation_context_type.is_none() {
        let place = common_place.field("validation_context");
        findings.reject(&place, Problem::NoRoots);
    }
}

/// Returns the body of a socket, which has to be of the TLS type `message`
/// (C60). Rejects the body and returns `None` if the type is another one.
fn check_socket<'a>(
    socket: &'a TransportSocket,
    message: &str,
    place: &Place<'_>,
    findings: &mut Findings<'_>,
) -> Option<&'a [u8]> {
    if socket.name != SOCKET_NAME {
        let problem = Problem::value(
            format!("{:?}", clip(&socket.name, MAX_VALUE)),
            "\"envoy.transport_sockets.tls\"",
        );
        findings.reject(&place.field("name"), problem);
    }

    let place = place.field("typed_config");
    let Some(ConfigType::TypedConfig(any)) = &socket.config_type else {
        findings.reject(&place, Problem::Missing);
        return None;
    };
    let type_name = full_name(&any.type_url);
    if type_name != message {
        let type_name = clip(type_name, MAX_VALUE).to_owned();
        findings.reject(&place, Problem::Extension(type_name));
        return None;
    }
    Some(&any.value)
}

/// Checks the source of the own certificate, and the verification of the
/// peer's.
fn check_common(
    common: &CommonTlsContext,
    side: Side,
    place: &Place<'_>,
    findings: &mut Findings<'_>,
) {
    if common.tls_params.is_some() {
        findings.reject(&place.field("tls_params"), Problem::Insecure);
    }
    if common.custom_handshaker.is_some() {
        findings.reject(&place.field("custom_handshaker"), Problem::Insecure);
    }
    check_identity(common, side, place, findings);
    check_validation(common, side, place, findings);
}

/// Checks the source of the certificate of this side. Only a provider instance
/// is supported; a server needs one, and a client may have one (C60).
#[expect(
    deprecated,
    reason = "gRPC takes the older field if the newer is not set"
)]
fn check_identity(
    common: &CommonTlsContext,
    side: Side,
    place: &Place<'_>,
    findings: &mut Findings<'_>,
) {
    let instance_place = place.field("tls_certificate_provider_instance");
    if let Some(instance) = &common.tls_certificate_provider_instance {
        return check_instance(instance, &instance_place, findings);
    }
    if let Some(instance) = &common.tls_certificate_certificate_provider_instance {
        let place = place.field("tls_certificate_certificate_provider_instance");
        return check_provider(&instance.instance_name, &place, findings);
    }

    let mut has_other = false;
    for (field, is_set) in [
        ("tls_certificates", !common.tls_certificates.is_empty()),
        (
            "tls_certificate_sds_secret_configs",
            !common.tls_certificate_sds_secret_configs.is_empty(),
        ),
    ] {
        if is_set {
            has_other = true;
            findings.reject(&place.field(field), Problem::Insecure);
        }
    }

    if side == Side::Server && !has_other {
        findings.reject(&instance_place, Problem::Missing);
    }
}

/// Checks how the certificate of the peer is verified. A client has to verify
/// it, and needs root certificates; a server may (C60).
#[expect(
    deprecated,
    reason = "gRPC takes the older field if the newer is not set"
)]
fn check_validation(
    common: &CommonTlsContext,
    side: Side,
    place: &Place<'_>,
    findings: &mut Findings<'_>,
) {
    let context_place = place.field("validation_context");
    match &common.validation_context_type {
        None if side == Side::Server => {}
        None => findings.reject(&context_place, Problem::NoRoots),
        Some(ValidationContextType::ValidationContext(context)) => {
            check_context(context, None, side, &context_place, findings);
        }
        Some(ValidationContextType::CombinedValidationContext(combined)) => {
            let place = place.field("combined_validation_context");
            check_combined(combined, side, &place, findings);
        }

        Some(ValidationContextType::ValidationContextCertificateProviderInstance(instance)) => {
            let place = place.field("validation_context_certificate_provider_instance");
            check_provider(&instance.instance_name, &place, findings);
        }
        Some(ValidationContextType::ValidationContextSdsSecretConfig(_)) => {
            let place = place.field("validation_context_sds_secret_config");
            findings.reject(&place, Problem::Insecure);
        }
        Some(ValidationContextType::ValidationContextCertificateProvider(_)) => {
            let place = place.field("validation_context_certificate_provider");
            findings.reject(&place, Problem::Insecure);
        }
    }
}

/// Checks a combined validation context: its default context, or else the
/// provider in the older field beside it.
#[expect(
    deprecated,
    reason = "gRPC takes the older field if the newer is not set"
)]
fn check_combined(
    combined: &CombinedCertificateValidationContext,
    side: Side,
    place: &Place<'_>,
    findings: &mut Findings<'_>,
) {
    let instance = &combined.validation_context_certificate_provider_instance;
    let old_provider = instance.as_ref().map(|instance| &*instance.instance_name);
    let context_place = place.field("default_validation_context");
    match (&combined.default_validation_context, old_provider) {
        (Some(context), provider) => {
            check_context(context, provider, side, &context_place, findings);
        }
        (None, Some(provider)) => {
            let place = place.field("validation_context_certificate_provider_instance");
            check_provider(provider, &place, findings);
        }
        (None, None) => findings.reject(&context_place, Problem::NoRoots),
    }
}

/// Checks a validation context. `old_provider` is the provider in the older
/// field beside the context; it counts if the context names none.
fn check_context(
    context: &CertificateValidationContext,
    old_provider: Option<&str>,
    side: Side,
    place: &Place<'_>,
    findings: &mut Findings<'_>,
) {
    let requires_timestamp = context.require_signed_certificate_timestamp.as_ref();
    for (field, is_set) in [
        (
            "verify_certificate_spki",
            !context.verify_certificate_spki.is_empty(),
        ),
        (
            "verify_certificate_hash",
            !context.verify_certificate_hash.is_empty(),
        ),
        (
            "require_signed_certificate_timestamp",
            requires_timestamp.is_some_and(|flag| flag.value),
        ),
        ("crl", context.crl.is_some()),
        (
            "custom_validator_config",
            context.custom_validator_config.is_some(),
        ),
    ] {
        if is_set {
            findings.reject(&place.field(field), Problem::Insecure);
        }
    }

    check_roots(context, old_provider, side, place, findings);
    check_subjects(context, side, place, findings);
}

/// Checks the source of root certificates. Those of the system are for clients
/// only (A82).
fn check_roots(
    context: &CertificateValidationContext,
    old_provider: Option<&str>,
    side: Side,
    place: &Place<'_>,
    findings: &mut Findings<'_>,
) {
    let instance_place = place.field("ca_certificate_provider_instance");
    match (&context.ca_certificate_provider_instance, old_provider) {
        (Some(instance), _) => check_instance(instance, &instance_place, findings),
        (None, Some(old_provider)) => check_provider(old_provider, &instance_place, findings),
        (None, None) if context.system_root_certs.is_none() => {
            findings.reject(&instance_place, Problem::NoRoots);
        }
        (None, None) if side == Side::Server => {
            findings.reject(&place.field("system_root_certs"), Problem::Insecure);
        }
        (None, None) => {}
    }
}

/// Checks the names that the peer may have. One match is enough, and an empty
/// list matches every name (C60). A server must not have such a list, since it
/// does not compare names.
#[expect(deprecated, reason = "it is the field that gRPC reads")]
fn check_subjects(
    context: &CertificateValidationContext,
    side: Side,
    place: &Place<'_>,
    findings: &mut Findings<'_>,
) {
    if side == Side::Server && !context.match_subject_alt_names.is_empty() {
        let place = place.field("match_subject_alt_names");
        return findings.reject(&place, Problem::Insecure);
    }
    for (index, name) in context.match_subject_alt_names.iter().enumerate() {
        let place = place.item("match_subject_alt_names", index);
        matcher::check_text(name, &place, findings);
    }
}

/// Checks the instance of a certificate provider.
fn check_instance(
    instance: &CertificateProviderPluginInstance,
    place: &Place<'_>,
    findings: &mut Findings<'_>,
) {
    check_provider(&instance.instance_name, place, findings);
}

/// Rejects a provider that the bootstrap has not (C60).
fn check_provider(name: &str, place: &Place<'_>, findings: &mut Findings<'_>) {
    if !findings.policy().certificate_providers.contains(name) {
        let name = clip(name, MAX_VALUE).to_owned();
        findings.reject(&place.field("instance_name"), Problem::Provider(name));
    }
}
