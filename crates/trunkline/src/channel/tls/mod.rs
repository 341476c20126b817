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
    kept: Mutex<Option<Kept>>,
}

/// A configuration, and what it was made of.
#[derive(Debug)]
struct Kept {
    material: Arc<Material>,
    stamps: Stamps,
    config: Arc<ClientConfig>,
}

impl Tls {
    /// Reads the transport socket of a cluster; `None` if it is called in
    /// plaintext. If the settings are those of `before`, that goes on, with the
    /// secrets of now.
    pub(super) fn read(
        of: &ClusterSnapshot,
        cluster: &Cluster,
        before: Option<&Arc<Self>>,
        client: &Client,
        authority: &str,
    ) -> Result<Option<Arc<Self>>, String> {
        let Some(settings) = Settings::read(cluster)? else {
            return Ok(None);
        };
        let material = Arc::new(settings.material(of, client)?);
        if let Some(same) = before.filter(|before| before.settings == settings) {
            *lock(&same.material) = material;
            return Ok(Some(Arc::clone(same)));
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
            kept: Mutex::default(),
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

    /// Returns the configuration of the newest files and secrets that are good.
    /// Reads files, so it may block.
    fn config(&self) -> Result<Arc<ClientConfig>, SecretError> {
        let material = Arc::clone(&lock(&self.material));
        // Files that change after this have other stamps the next time.
        let stamps = Stamps::of(material.files());
        let mut kept = lock(&self.kept);
        if let Some(same) = kept.as_ref()
            && Arc::ptr_eq(&same.material, &material)
            && same.stamps == stamps
        {
            return Ok(Arc::clone(&same.config));
        }
        match (build_config(&material), kept.as_ref()) {
            (Ok(config), _) => {
                let config = Arc::new(config);
                *kept = Some(Kept {
                    material,
                    stamps,
                    config: Arc::clone(&config),
                });
                Ok(config)
            }
            (Err(error), Some(last)) => {
                tracing::warn!(%error, "certificates have changed and cannot be used; the last good ones are");
                Ok(Arc::clone(&last.config))
            }
            (Err(error), None) => Err(error),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes the configuration of rustls for certificates and authorities, whose
/// files it reads.
fn build_config(material: &Material) -> Result<ClientConfig, SecretError> {
    let (context, policy) = &material.validation;
    let trust = validation(context, policy)?;
    let verifier = SecretVerifier::fixed(trust, material.checks_dialled);
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(TlsError::Versions)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier));
    let mut config = match &material.certificate {
        None => builder.with_no_client_auth(),
        Some((certificate, policy)) => {
            let certified = key_pair(certificate, policy)?;
            builder.with_client_cert_resolver(Arc::new(SingleCertAndKey::from(certified)))
        }
    };
    config.alpn_protocols = vec![PROTOCOL.to_vec()];
    Ok(config)
}
