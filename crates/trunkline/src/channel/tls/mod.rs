//! TLS to the endpoints of a cluster (A29): its transport socket, with
//! certificates of the bootstrap's providers, of secrets, or inside of it.
//!
//! Connections keep what they began with. A new one looks whether a file or a
//! secret has changed; one that cannot be used leaves the last good one.

mod material;

use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::sign::SingleCertAndKey;
use trunkline_proto::envoy::envoy::config::cluster::v3::Cluster;

use self::material::{Material, Settings};
use crate::client::Client;
use crate::client::secrets::material::{key_pair, validation};
use crate::client::secrets::{SecretError, SecretVerifier};
use crate::client::tree::ClusterSnapshot;
use crate::pem::{Stamps, TlsError};

/// The protocol of gRPC, which a server has to speak.
const PROTOCOL: &[u8] = b"h2";

type Error = Box<dyn std::error::Error + Send + Sync>;

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Tls {
    settings: Settings,
    /// The name that is dialled, unless it is the address of the endpoint.
    name: Option<ServerName<'static>>,
    material: Mutex<Arc<Material>>,
    /// The newest configuration that could be built.
    last: Mutex<Option<BuiltConfig>>,
}

/// A configuration, and what it was made of.
#[derive(Debug)]
struct BuiltConfig {
    material: Arc<Material>,
    stamps: Stamps,
    config: Arc<ClientConfig>,
}

impl Tls {
    /// Reads the transport socket of a cluster; `None` if it is called in
    /// plaintext. If the settings are those of `previous`, that one goes on,
    /// with the secrets as they are now.
    pub(super) fn read(
        snapshot: &ClusterSnapshot,
        cluster: &Cluster,
        previous: Option<&Arc<Self>>,
        client: &Client,
        authority: &str,
    ) -> Result<Option<Arc<Self>>, String> {
        let Some(settings) = Settings::read(cluster)? else {
            return Ok(None);
        };
        let material = Arc::new(settings.material(snapshot, client)?);
        if let Some(tls) = previous.filter(|tls| tls.settings == settings) {
            *lock(&tls.material) = material;
            return Ok(Some(Arc::clone(tls)));
        }

        let host = match settings.context.sni.as_str() {
            "" => authority
                .rsplit_once(':')
                .map_or(authority, |(host, _)| host),
            sni => sni,
        };
        let tls = Self {
            name: ServerName::try_from(host.to_owned()).ok(),
            settings,
            material: Mutex::new(material),
            last: Mutex::default(),
        };
        Ok(Some(Arc::new(tls)))
    }

    /// Does the handshake on a socket to an endpoint at this address. A server
    /// that does not speak HTTP/2 by ALPN is an error.
    pub(super) async fn connect(
        self: &Arc<Self>,
        address: IpAddr,
        socket: TcpStream,
    ) -> Result<TlsStream<TcpStream>, Error> {
        let tls = Arc::clone(self);
        // Files may be on a slow disk.
        let config = tokio::task::spawn_blocking(move || tls.config()).await;
        let config = config.map_err(|_| "the task that reads certificates has failed")??;

        let name = self.name.clone();
        let name = name.unwrap_or_else(|| ServerName::from(address));
        let stream = TlsConnector::from(config).connect(name, socket).await?;
        match stream.get_ref().1.alpn_protocol() {
            Some(PROTOCOL) => Ok(stream),
            _ => Err("the server does not speak HTTP/2 over TLS (ALPN)".into()),
        }
    }

    /// Returns the configuration of the newest files and secrets that are good,
    /// and builds it if they have changed. Reads files, so it may block.
    /// An error means that none were good yet.
    fn config(&self) -> Result<Arc<ClientConfig>, SecretError> {
        let material = Arc::clone(&lock(&self.material));
        // Files that change after this have other stamps the next time.
        let stamps = Stamps::of(material.files());
        let mut last = lock(&self.last);
        if let Some(built) = last.as_ref()
            && Arc::ptr_eq(&built.material, &material)
            && built.stamps == stamps
        {
            return Ok(Arc::clone(&built.config));
        }

        match (build_config(&material), last.as_ref()) {
            (Ok(config), _) => {
                let config = Arc::new(config);
                *last = Some(BuiltConfig {
                    material,
                    stamps,
                    config: Arc::clone(&config),
                });
                Ok(config)
            }
            (Err(error), Some(built)) => {
                tracing::warn!(%error, "certificates have changed and cannot be used; the last good ones are");
                Ok(Arc::clone(&built.config))
            }
            (Err(error), None) => Err(error),
        }
    }
}

/// Locks a part of the TLS. Ignores poison: a connection that panicked ends
/// alone.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes the configuration of rustls for certificates and authorities, whose
/// files it reads.
fn build_config(material: &Material) -> Result<ClientConfig, SecretError> {
    let (context, policy) = &material.validation;
    let trust = validation(context, policy)?;
    let verifier = SecretVerifier::fixed(trust, material.checks_dialled_name);
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(TlsError::Versions)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier));
    let mut config = match &material.certificate {
        None => builder.with_no_client_auth(),
        Some((certificate, policy)) => {
            let certified_key = key_pair(certificate, policy)?;
            builder.with_client_cert_resolver(Arc::new(SingleCertAndKey::from(certified_key)))
        }
    };
    config.alpn_protocols = vec![PROTOCOL.to_vec()];
    Ok(config)
}
