//! From a transport socket to the certificates that it means.

use std::path::Path;

use prost::Message as _;
use trunkline_proto::descriptor::full_name;
use trunkline_proto::envoy::envoy::config::cluster::v3::Cluster;
use trunkline_proto::envoy::envoy::config::core::v3::DataSource;
use trunkline_proto::envoy::envoy::config::core::v3::data_source::Specifier;
use trunkline_proto::envoy::envoy::config::core::v3::transport_socket::ConfigType;
use trunkline_proto::envoy::envoy::extensions::transport_sockets::tls::v3::common_tls_context::ValidationContextType;
use trunkline_proto::envoy::envoy::extensions::transport_sockets::tls::v3::{
    CertificateValidationContext, CommonTlsContext, TlsCertificate, UpstreamTlsContext, secret,
};

use crate::client::tree::ClusterSnapshot;
use crate::client::{Client, DataSourcePolicy, FileWatcher};

const TLS: &str = "envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext";
const RAW: &str = "envoy.extensions.transport_sockets.raw_buffer.v3.RawBuffer";

/// What a cluster says of TLS.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Settings {
    pub(super) context: UpstreamTlsContext,
}

/// Certificates and authorities, with the files that they may be in.
#[derive(Clone, Debug)]
pub(super) struct Material {
    pub(super) certificate: Option<(TlsCertificate, DataSourcePolicy)>,
    pub(super) validation: (CertificateValidationContext, DataSourcePolicy),
    /// Whether the certificate of a server must have the name that was dialled.
    /// Without matchers any name of the authorities is accepted, as gRPC and
    /// Envoy do (C60).
    pub(super) checks_dialled_name: bool,
}

impl Settings {
    /// Reads the transport socket of a cluster; `None` if the cluster is called
    /// in plaintext. An error says what is not supported.
    pub(super) fn read(cluster: &Cluster) -> Result<Option<Self>, String> {
        if !cluster.transport_socket_matches.is_empty() {
            return Err("transport_socket_matches are not supported".to_owned());
        }
        let Some(socket) = &cluster.transport_socket else {
            return Ok(None);
        };
        let Some(ConfigType::TypedConfig(any)) = &socket.config_type else {
            return Err("the transport socket has no typed_config".to_owned());
        };
        match full_name(&any.type_url) {
            RAW => Ok(None),
            TLS => {
                let decoded = UpstreamTlsContext::decode(&*any.value);
                let context = decoded.map_err(|_| "its TLS context cannot be decoded")?;
                Ok(Some(Self { context }))
            }
            other => Err(format!("the transport socket {other} is not supported")),
        }
    }

    /// Finds the certificates that the settings mean now, which come from
    /// secrets or files.
    pub(super) fn material(
        &self,
        cluster: &ClusterSnapshot,
        client: &Client,
    ) -> Result<Material, String> {
        let Some(common) = &self.context.common_tls_context else {
            return Err("its TLS has no common_tls_context".to_owned());
        };
        check_supported(common)?;
        let finder = Finder { cluster, client };
        Ok(Material {
            certificate: finder.find_certificate(common)?,
            validation: finder.find_validation(common)?,
            checks_dialled_name: self.context.auto_sni_san_validation,
        })
    }
}

/// Checks that the context asks for nothing that is not done here. The error
/// names the field.
fn check_supported(common: &CommonTlsContext) -> Result<(), String> {
    let fields = [
        ("custom_handshaker", common.custom_handshaker.is_some()),
        (
            "custom_tls_certificate_selector",
            common.custom_tls_certificate_selector.is_some(),
        ),
        (
            "several tls_certificates",
            common.tls_certificates.len() > 1,
        ),
    ];
    match fields.into_iter().find(|(_, is_set)| *is_set) {
        Some((field, _)) => Err(format!("{field} of its TLS is not supported")),
        None => Ok(()),
    }
}

/// Finds what a TLS context names.
struct Finder<'a> {
    cluster: &'a ClusterSnapshot,
    client: &'a Client,
}

impl Finder<'_> {
    /// Finds the certificate that is shown to servers, with the files that it
    /// may be in; `None` if none is shown.
    #[expect(deprecated, reason = "gRPC takes the older field as well")]
    fn find_certificate(
        &self,
        common: &CommonTlsContext,
    ) -> Result<Option<(TlsCertificate, DataSourcePolicy)>, String> {
        let newer = common.tls_certificate_provider_instance.as_ref();
        let newer = newer.map(|instance| &instance.instance_name);
        let older = common
            .tls_certificate_certificate_provider_instance
            .as_ref();
        let older = older.map(|instance| &instance.instance_name);
        if let Some(name) = newer.or(older) {
            let (certificate, key) = (self.find_provider(name)?.certificate.as_ref())
                .ok_or_else(|| format!("the certificate provider {name:?} has no certificate"))?;
            let policy = DataSourcePolicy::default();
            let policy = policy.allow_path(certificate).allow_path(key);
            let certificate = TlsCertificate {
                certificate_chain: Some(file_source(certificate)),
                private_key: Some(file_source(key)),
                ..TlsCertificate::default()
            };
            return Ok(Some((certificate, policy)));
        }

        // Without a provider, a secret or the context itself has the
        // certificate.
        let certificate = match common.tls_certificate_sds_secret_configs.first() {
            None => common.tls_certificates.first().cloned(),
            Some(config) => match self.find_secret(&config.name)? {
                secret::Type::TlsCertificate(certificate) => Some(certificate),
                _ => return Err(format!("the secret {:?} is no certificate", config.name)),
            },
        };
        let policy = self.client.data_sources();
        Ok(certificate.map(|certificate| (certificate, policy.clone())))
    }

    /// Finds the authorities by which servers are checked, with the files that
    /// they may be in.
    fn find_validation(
        &self,
        common: &CommonTlsContext,
    ) -> Result<(CertificateValidationContext, DataSourcePolicy), String> {
        let (mut context, older) = self.find_context(common)?;
        let newer = context.ca_certificate_provider_instance.as_ref();
        let newer = newer.map(|instance| instance.instance_name.clone());
        let Some(name) = newer.or(older) else {
            return Ok((context, self.client.data_sources().clone()));
        };

        let authorities = (self.find_provider(&name)?.ca.as_ref())
            .ok_or_else(|| format!("the certificate provider {name:?} has no authorities"))?;
        context.trusted_ca = Some(file_source(authorities));
        Ok((context, DataSourcePolicy::default().allow_path(authorities)))
    }

    /// Finds the validation context, and the name of a certificate provider
    /// that the older fields say.
    #[expect(deprecated, reason = "gRPC takes the older fields as well")]
    fn find_context(
        &self,
        common: &CommonTlsContext,
    ) -> Result<(CertificateValidationContext, Option<String>), String> {
        use ValidationContextType as Kind;
        match &common.validation_context_type {
            Some(Kind::ValidationContext(context)) => Ok((context.clone(), None)),
            Some(Kind::ValidationContextSdsSecretConfig(config)) => {
                Ok((self.find_validation_context(&config.name)?, None))
            }
            Some(Kind::ValidationContextCertificateProviderInstance(instance)) => {
                let context = CertificateValidationContext::default();
                Ok((context, Some(instance.instance_name.clone())))
            }
            Some(Kind::CombinedValidationContext(combined)) => {
                let mut context = (combined.default_validation_context.clone()).unwrap_or_default();
                if let Some(config) = &combined.validation_context_sds_secret_config {
                    // What the secret says comes over the default.
                    let secret = self.find_validation_context(&config.name)?.encode_to_vec();
                    let merge = context.merge(&*secret);
                    merge.map_err(|error| error.to_string())?;
                }
                let instance = (combined.validation_context_certificate_provider_instance).as_ref();
                Ok((context, instance.map(|i| i.instance_name.clone())))
            }
            Some(Kind::ValidationContextCertificateProvider(_)) | None => {
                Err("its TLS says no authority to check servers by".to_owned())
            }
        }
    }

    /// Finds a certificate provider of the bootstrap by its name.
    fn find_provider(&self, name: &str) -> Result<&FileWatcher, String> {
        let provider = self.client.certificate_provider(name);
        provider.ok_or_else(|| format!("the bootstrap has no certificate provider {name:?}"))
    }

    /// Finds a secret by its name, which has to be a validation context.
    fn find_validation_context(&self, name: &str) -> Result<CertificateValidationContext, String> {
        match self.find_secret(name)? {
            secret::Type::ValidationContext(context) => Ok(context),
            _ => Err(format!("the secret {name:?} is no validation context")),
        }
    }

    /// Finds the contents of a secret by its name. The error says why there is
    /// none.
    fn find_secret(&self, name: &str) -> Result<secret::Type, String> {
        let secret = self.cluster.secrets().find(|secret| secret.name() == name);
        let value = secret.as_ref().and_then(|secret| secret.value());
        let content = value.and_then(|value| value.r#type.clone());
        content.ok_or_else(|| {
            let error = secret.as_ref().and_then(|secret| secret.error());
            let why = error.map_or_else(String::new, |error| format!(": {}", error.message));
            format!("there is no secret {name:?}{why}")
        })
    }
}

/// Returns a data source that names a file.
fn file_source(path: &Path) -> DataSource {
    DataSource {
        specifier: Some(Specifier::Filename(path.to_string_lossy().into_owned())),
        ..DataSource::default()
    }
}

impl Material {
    /// Returns the files that certificates and authorities are in.
    pub(super) fn files(&self) -> impl Iterator<Item = &Path> {
        let certificate = self.certificate.iter().flat_map(|(certificate, _)| {
            [&certificate.certificate_chain, &certificate.private_key]
        });
        let authorities = [&self.validation.0.trusted_ca];
        let sources = certificate.chain(authorities).filter_map(Option::as_ref);
        sources.filter_map(|source| match &source.specifier {
            Some(Specifier::Filename(name)) => Some(Path::new(name)),
            _ => None,
        })
    }
}
