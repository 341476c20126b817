//! TLS to endpoints: certificates of providers, of secrets, and in the cluster.

use std::path::Path;
use std::sync::Arc;

use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};
use tonic::Code;
use trunkline::client::{Bootstrap, Client};

use super::backend::{Backend, call};
use super::channel_world::World;
use super::secrets::{Authority, provider, trust};
use super::server::Serving;

const CONTEXT: &str =
    "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext";

/// A transport socket with these fields of its common context.
fn socket(common: &str) -> String {
    format!(
        "transport_socket: {{name: envoy.transport_sockets.tls, typed_config: \
         {{'@type': {CONTEXT}, common_tls_context: {{{common}}}}}}}"
    )
}

/// A server with a certificate for a name, which asks clients for one of the
/// same authority.
fn mutual(authority: &Authority, name: &str) -> ServerConfig {
    let (chain, key) = authority.pair(name);
    let mut roots = RootCertStore::empty();
    let root = CertificateDer::from_pem_slice(authority.pem.as_bytes()).unwrap();
    roots.add(root).unwrap();
    let clients = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider());
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(clients.build().unwrap())
        .with_single_cert(
            vec![CertificateDer::from_pem_slice(chain.as_bytes()).unwrap()],
            PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap(),
        )
        .unwrap();
    config.alpn_protocols = vec![b"h2".to_vec()];
    config
}

fn write_pair(authority: &Authority, folder: &Path) {
    let (chain, key) = authority.pair("client.test");
    std::fs::write(folder.join("cert.pem"), chain).unwrap();
    std::fs::write(folder.join("key.pem"), key).unwrap();
}

/// A world whose client has the certificate provider `files` of gRPC's
/// bootstrap.
fn with_provider(folder: &Path) -> World {
    let serving = Serving::start();
    let path = |name: &str| folder.join(name).display().to_string();
    let text = format!(
        r#"{{"xds_servers": [{{"server_uri": "{}", "channel_creds": [{{"type": "insecure"}}]}}],
            "node": {{"id": "me"}},
            "certificate_providers": {{"files": {{"plugin_name": "file_watcher", "config": {{
                "certificate_file": "{}", "private_key_file": "{}", "ca_certificate_file": "{}",
                "refresh_interval": "1s"}}}}}}}}"#,
        serving.address,
        path("cert.pem"),
        path("key.pem"),
        path("ca.pem"),
    );
    let bootstrap = Bootstrap::from_grpc("b.json", &text).unwrap();
    World::of(Client::builder().bootstrap(bootstrap).build(), serving)
}

#[tokio::test]
async fn a29_certificates_of_a_provider_are_used_and_read_again() {
    let (old, new) = (Authority::new("old"), Authority::new("new"));
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("ca.pem"), &old.pem).unwrap();
    write_pair(&old, folder.path());
    let a = Backend::secure(mutual(&old, "a.test")).await;
    let b = Backend::secure(mutual(&new, "b.test")).await;
    let mut world = with_provider(folder.path());
    world.cluster(
        "c",
        &socket(
            "tls_certificate_provider_instance: {instance_name: files}, validation_context: \
             {ca_certificate_provider_instance: {instance_name: files}, \
             match_subject_alt_names: [{suffix: .test}]}",
        ),
    );
    world.endpoints("c", &[(0, 1, vec![&a])], "{}");
    world.routes("{match: {prefix: /}, route: {cluster: c}}", "");
    world.serve();
    call(&world.channel).await.unwrap();
    // A connection that is made after the files have changed has the new ones.
    std::fs::write(folder.path().join("ca.pem"), &new.pem).unwrap();
    write_pair(&new, folder.path());
    world.endpoints("c", &[(0, 1, vec![&b])], "{}");
    world.serve();
    world.reach(&b).await;
}

#[tokio::test]
async fn a29_a_server_with_another_name_or_authority_is_not_called() {
    let (own, other) = (Authority::new("own"), Authority::new("other"));
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("ca.pem"), &own.pem).unwrap();
    write_pair(&own, folder.path());
    for (authority, name) in [(&own, "else.where"), (&other, "a.test")] {
        let backend = Backend::secure(mutual(authority, name)).await;
        let mut world = with_provider(folder.path());
        world.cluster(
            "c",
            &socket(
                "validation_context: {ca_certificate_provider_instance: {instance_name: files}, \
                 match_subject_alt_names: [{exact: a.test}]}",
            ),
        );
        world.endpoints("c", &[(0, 1, vec![&backend])], "{}");
        world.routes("{match: {prefix: /}, route: {cluster: c}}", "");
        world.serve();
        let refused = call(&world.channel).await.unwrap_err();
        assert_eq!(refused.code(), Code::Unavailable);
        assert!(refused.message().contains("certificate"), "{refused}");
        assert_eq!(backend.calls(), 0);
    }
}

#[tokio::test]
async fn a29_secrets_are_used_and_rotate_and_a_bad_one_leaves_the_last() {
    let (old, new) = (Authority::new("old"), Authority::new("new"));
    let a = Backend::secure(mutual(&old, "a.test")).await;
    let b = Backend::secure(mutual(&new, "b.test")).await;
    let mut world = World::start();
    world.cluster(
        "c",
        &socket(
            "tls_certificate_sds_secret_configs: [{name: leaf, sds_config: {ads: {}}}], \
             combined_validation_context: {default_validation_context: {\
             match_typed_subject_alt_names: [{san_type: DNS, matcher: {suffix: .test}}]}, \
             validation_context_sds_secret_config: {name: trust, sds_config: {ads: {}}}}",
        ),
    );
    world.endpoints("c", &[(0, 1, vec![&a])], "{}");
    world.routes("{match: {prefix: /}, route: {cluster: c}}", "");
    world.secrets = vec![old.leaf("client.test"), trust(&old.pem, None)];
    world.serve();
    call(&world.channel).await.unwrap();
    world.endpoints("c", &[(0, 1, vec![&b])], "{}");
    world.secrets = vec![new.leaf("client.test"), trust(&new.pem, None)];
    world.serve();
    world.reach(&b).await;
    // Whoever trusts nobody goes on with those who were trusted.
    let c = Backend::secure(mutual(&new, "c.test")).await;
    world.endpoints("c", &[(0, 1, vec![&c])], "{}");
    world.secrets = vec![new.leaf("client.test"), trust("", None)];
    world.serve();
    world.reach(&c).await;
}

#[tokio::test]
async fn a29_what_is_not_known_of_tls_is_refused_and_never_plaintext() {
    let a = Backend::start().await;
    let files = "validation_context: {trusted_ca: {filename: /etc/passwd}}";
    for (fields, why) in [
        (socket(""), "no authority"),
        (
            socket(
                "custom_handshaker: {name: own, typed_config: \
                 {'@type': type.googleapis.com/xds.type.v3.TypedStruct}}",
            ),
            "custom_handshaker",
        ),
        (
            socket("validation_context: {ca_certificate_provider_instance: {instance_name: none}}"),
            "no certificate provider \"none\"",
        ),
        (socket(files), "may not name"),
        (
            "transport_socket: {name: own, typed_config: {'@type': \
             type.googleapis.com/envoy.extensions.transport_sockets.alts.v3.Alts, \
             handshaker_service: x}}"
                .to_owned(),
            "is not supported",
        ),
    ] {
        let world = World::with(&fields, &[(0, 1, vec![&a])]);
        let refused = call(&world.channel).await.unwrap_err();
        assert!(refused.message().contains(why), "{refused}");
    }
    assert_eq!(a.calls(), 0);
}
