//! TLS to control planes, from files that may change.
//!
//! The files are looked at before each connection, and read anew when they
//! changed. A pair that cannot be used changes nothing: files are often
//! replaced one after the other, and the last good pair is used meanwhile.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::client::ResolvesClientCert;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::sign::{CertifiedKey, SingleCertAndKey};
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore};

use super::ConnectError;
use super::dial::{Io, address};
use super::headers::authority;
use crate::client::{Address, ControlPlane, Pem, Security, TlsOptions};
use crate::pem::{self, Stamps, TlsError};

/// The most configurations that are kept. Control planes are few, but a
/// hostile one might name others without end.
const MAX_CONFIGS: usize = 64;

/// The protocol that is spoken over TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    Http1,
    Http2,
}

impl Protocol {
    /// Returns the name of the protocol in ALPN.
    fn alpn(self) -> Vec<u8> {
        match self {
            Self::Http1 => b"http/1.1".to_vec(),
            Self::Http2 => b"h2".to_vec(),
        }
    }
}

/// The configurations of TLS in use. Clones share them.
#[derive(Clone, Default)]
pub(super) struct TlsClients {
    configs: Arc<Mutex<HashMap<TlsOptions, CachedConfig>>>,
}

/// A configuration, and the files that it was made of.
struct CachedConfig {
    stamps: Stamps,
    config: Arc<ClientConfig>,
}

impl std::fmt::Debug for TlsClients {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TlsClients").finish_non_exhaustive()
    }
}

impl TlsClients {
    /// Checks the files of a control plane, and its name.
    pub(super) async fn check(&self, plane: &ControlPlane) -> Result<(), ConnectError> {
        if let Security::Tls(options) = &plane.security {
            server_name(plane, options)?;
            self.config(options).await?;
        }
        Ok(())
    }

    /// Does the handshake of a protocol on a socket, and checks the certificate of
    /// the server.
    pub(super) async fn connect<S: Io>(
        &self,
        plane: &ControlPlane,
        options: &TlsOptions,
        protocol: Protocol,
        socket: S,
    ) -> Result<TlsStream<S>, ConnectError> {
        let name = server_name(plane, options)?;
        let config = self.config(options).await?;
        let mut config = ClientConfig::clone(&config);
        config.alpn_protocols = vec![protocol.alpn()];
        let connector = TlsConnector::from(Arc::new(config));
        let stream = connector.connect(name, socket).await;
        stream.map_err(|error| {
            let address = address(plane);
            let cause = error.get_ref();
            let tls_error = cause.and_then(|cause| cause.downcast_ref::<rustls::Error>());
            match tls_error.cloned() {
                Some(source) => ConnectError::Handshake { address, source },
                None => ConnectError::Closed {
                    address,
                    protocol: "TLS",
                    source: Arc::new(error),
                },
            }
        })
    }

    /// Returns the configuration of some options, of the newest files that are
    /// good.
    async fn config(&self, options: &TlsOptions) -> Result<Arc<ClientConfig>, ConnectError> {
        let (clients, options) = (self.clone(), options.clone());
        // Files may be on a slow disk, and the system has hundreds of them.
        let config = tokio::task::spawn_blocking(move || clients.load(&options)).await;
        match config {
            Ok(config) => config,
            Err(panic) => std::panic::resume_unwind(panic.into_panic()),
        }
    }

    /// Returns the configuration of some options, and reads files that have
    /// changed; the last good one if they cannot be used. Blocks on the disk.
    fn load(&self, options: &TlsOptions) -> Result<Arc<ClientConfig>, ConnectError> {
        // Files that change after this have other stamps the next time.
        let stamps = Stamps::of(files(options));
        let last_config = {
            let configs = self.configs.lock().unwrap_or_else(PoisonError::into_inner);
            match configs.get(options) {
                Some(cached) if cached.stamps == stamps => return Ok(Arc::clone(&cached.config)),
                cached => cached.map(|cached| Arc::clone(&cached.config)),
            }
        };
        let config = match (build(options), last_config) {
            (Ok(config), _) => Arc::new(config),
            (Err(error), Some(last_config)) => {
                tracing::warn!(%error, "TLS files have changed and cannot be used; the last good ones are");
                return Ok(last_config);
            }
            (Err(error), None) => return Err(error),
        };

        let mut configs = self.configs.lock().unwrap_or_else(PoisonError::into_inner);
        if configs.len() >= MAX_CONFIGS && !configs.contains_key(options) {
            configs.clear();
        }
        let entry = CachedConfig {
            stamps,
            config: Arc::clone(&config),
        };
        configs.insert(options.clone(), entry);
        Ok(config)
    }
}

/// Returns the files of some options.
fn files(options: &TlsOptions) -> impl Iterator<Item = &Path> {
    let pair = options
        .certificate
        .iter()
        .flat_map(|(cert, key)| [cert, key]);
    let pems = options.ca.iter().chain(pair);
    pems.filter_map(|pem| match pem {
        Pem::File(path) => Some(path.as_path()),
        Pem::Inline(_) => None,
    })
}

/// Reads the files of some options, and makes a configuration without ALPN.
fn build(options: &TlsOptions) -> Result<ClientConfig, ConnectError> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let unusable = |error| ConnectError::Files(Arc::new(error));
    let roots = match &options.ca {
        None => system_roots()?,
        Some(ca) => {
            let (path, contents) = read("certificates of authorities", ca).map_err(unusable)?;
            pem::read_roots((&path, &contents)).map_err(unusable)?
        }
    };

    let certified_key = match &options.certificate {
        None => None,
        Some((cert, key)) => {
            let (cert_path, cert) = read("certificate of the client", cert).map_err(unusable)?;
            let (key_path, key) = read("key of the client", key).map_err(unusable)?;
            let pair = ((&*cert_path, &*cert), (&*key_path, &*key));
            Some(pem::read_certified_key(pair.0, pair.1, &provider).map_err(unusable)?)
        }
    };
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| unusable(TlsError::Versions(error)))?
        .with_root_certificates(roots);

    Ok(match certified_key {
        None => builder.with_no_client_auth(),
        Some(certified_key) => builder.with_client_cert_resolver(resolver(certified_key)),
    })
}

/// Returns a resolver that shows one certificate to every server.
fn resolver(certified_key: CertifiedKey) -> Arc<dyn ResolvesClientCert> {
    Arc::new(SingleCertAndKey::from(certified_key))
}

/// Reads a PEM. Returns it with its path, for messages; a PEM that stands in
/// the configuration has no path, and gets `name` instead.
fn read(name: &str, pem: &Pem) -> Result<(PathBuf, Vec<u8>), TlsError> {
    match pem {
        Pem::File(path) => Ok((path.clone(), pem::read_file(path)?)),
        Pem::Inline(contents) => Ok((PathBuf::from(name), contents.clone())),
    }
}

/// Returns the authorities that the system trusts. Those of them that cannot be
/// used are left out, as every program does.
fn system_roots() -> Result<RootCertStore, ConnectError> {
    let mut roots = RootCertStore::empty();
    let certificates = rustls_native_certs::load_native_certs();
    let (good, _) = roots.add_parsable_certificates(certificates.certs);
    match good {
        0 => Err(ConnectError::NoRoots),
        _ => Ok(roots),
    }
}

/// Returns the name that a server's certificate must have: that of the options,
/// or the host of the address; for a socket in the file system that of the
/// authority.
fn server_name(
    plane: &ControlPlane,
    options: &TlsOptions,
) -> Result<ServerName<'static>, ConnectError> {
    let name = match (&options.server_name, &plane.address) {
        (Some(name), _) => name.clone(),
        (None, Address::Tcp { host, .. }) => host.clone(),
        // A socket in the file system has no name of its own.
        (None, Address::Unix(_)) => {
            let authority = authority(plane);
            let host = authority
                .rsplit_once(':')
                .map_or(&*authority, |(host, _)| host);
            host.to_owned()
        }
    };
    ServerName::try_from(name.clone()).map_err(|_| ConnectError::ServerName { name })
}
