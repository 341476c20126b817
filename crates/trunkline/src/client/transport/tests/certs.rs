//! Certificates for tests.

use std::path::Path;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::sign::SingleCertAndKey;

use crate::client::{Pem, TlsOptions};
use crate::pem;

/// An authority that signs certificates.
pub(super) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pub(super) pem: String,
}

impl Authority {
    pub(super) fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
        // Equal names would be one authority with another key.
        let name = format!("authority {}", fastrand::u64(..));
        params
            .distinguished_name
            .push(rcgen::DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let pem = params.self_signed(&key).unwrap().pem();
        let issuer = Issuer::new(params, key);
        Self { issuer, pem }
    }

    /// A certificate for a name, and its key.
    pub(super) fn sign(&self, name: &str) -> (String, String) {
        self.sign_with(CertificateParams::new(vec![name.to_owned()]).unwrap())
    }

    /// A certificate for a name that is not valid any more.
    pub(super) fn sign_expired(&self, name: &str) -> (String, String) {
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        params.not_before = rcgen::date_time_ymd(2020, 1, 1);
        params.not_after = rcgen::date_time_ymd(2020, 2, 1);
        self.sign_with(params)
    }

    fn sign_with(&self, params: CertificateParams) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let signed = params.signed_by(&key, &self.issuer).unwrap();
        (signed.pem(), key.serialize_pem())
    }

    /// The options of a client that trusts this authority.
    pub(super) fn trusted(&self) -> TlsOptions {
        TlsOptions {
            ca: Some(Pem::Inline(self.pem.clone().into_bytes())),
            certificate: None,
            server_name: Some("xds.test".to_owned()),
        }
    }

    /// A server with a certificate; one of clients must be of this authority if
    /// they need one.
    pub(super) fn server(&self, pair: &(String, String), mutual: bool) -> Arc<ServerConfig> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let path = Path::new("test");
        let (cert, key) = (pair.0.as_bytes(), pair.1.as_bytes());
        let certified = pem::read_certified_key((path, cert), (path, key), &provider).unwrap();
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .unwrap();
        let builder = match mutual {
            false => builder.with_no_client_auth(),
            true => {
                let roots = Arc::new(pem::read_roots((path, self.pem.as_bytes())).unwrap());
                let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider);
                builder.with_client_cert_verifier(verifier.build().unwrap())
            }
        };
        let mut config = builder.with_cert_resolver(Arc::new(SingleCertAndKey::from(certified)));
        config.alpn_protocols = vec![b"h2".to_vec()];
        Arc::new(config)
    }
}
