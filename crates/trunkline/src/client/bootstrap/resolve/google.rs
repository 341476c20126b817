//! `google_grpc`: a control plane by a target of gRPC, and its credentials.

use std::path::PathBuf;

use prost::Message as _;
use trunkline_proto::envoy::envoy::config::core::v3::data_source::Specifier;
use trunkline_proto::envoy::envoy::config::core::v3::grpc_service::GoogleGrpc;
use trunkline_proto::envoy::envoy::config::core::v3::grpc_service::google_grpc::call_credentials::{
    CredentialSpecifier as Call, MetadataCredentialsFromPlugin,
    metadata_credentials_from_plugin::ConfigType,
};
use trunkline_proto::envoy::envoy::config::core::v3::grpc_service::google_grpc::channel_credentials::CredentialSpecifier as Channel;
use trunkline_proto::envoy::envoy::config::core::v3::grpc_service::google_grpc::SslCredentials;
use trunkline_proto::envoy::envoy::config::grpc_credential::v3::FileBasedMetadataConfig;

use super::super::problem::Problem;
use super::super::report::Scope;
use super::super::target;
use super::{Referrer, Resolver, data_source};
use crate::client::{ControlPlane, Secret, Security, TlsOptions};

const TOKEN: &str = "use access_token, or a file with a token by \
    envoy.grpc_credentials.file_based_metadata with the header_prefix \"Bearer \"";
const SSL: &str = "use ssl_credentials";

impl Resolver<'_> {
    /// Resolves a control plane that a `google_grpc` service names by its
    /// target.
    pub(super) fn resolve_google_grpc(
        self,
        service: &GoogleGrpc,
        scope: &Scope<'_>,
    ) -> Option<ControlPlane> {
        refuse_plugins(service, scope);
        let addresses = self.parse_target(&service.target_uri, &scope.field("target_uri"));
        let security = self.resolve_channel(service, scope);
        let call_credentials = service.call_credentials.iter().enumerate();
        let tokens: Vec<_> = call_credentials
            .map(|(index, call)| {
                let scope = scope.index("call_credentials", index);
                self.read_token(call.credential_specifier.as_ref(), &scope)
            })
            .collect();

        let mut addresses = addresses?.into_iter();
        let mut server = ControlPlane {
            security: security?,
            ..ControlPlane::plaintext(addresses.next()?)
        };
        server.alternatives = addresses.collect();
        for token in tokens {
            match token? {
                Token::Value(value) => server.metadata.push(("authorization".to_owned(), value)),
                Token::File(path) => server.token_file = Some(path),
            }
        }
        Some(server)
    }

    /// Resolves how connections are made secure. Without credentials, and with
    /// local ones, they are in plaintext.
    fn resolve_channel(self, service: &GoogleGrpc, scope: &Scope<'_>) -> Option<Security> {
        let credentials = service.channel_credentials.as_ref();
        match credentials.and_then(|credentials| credentials.credential_specifier.as_ref()) {
            None | Some(Channel::LocalCredentials(_)) => Some(Security::Plaintext),
            Some(Channel::SslCredentials(ssl)) => {
                let scope = scope.field("channel_credentials.ssl_credentials");
                self.resolve_ssl(ssl, &scope).map(Security::Tls)
            }
            Some(Channel::GoogleDefault(_)) => {
                let scope = scope.field("channel_credentials");
                scope.unsupported("google_default", SSL)
            }
        }
    }

    /// Parses a target. A target in a resource has to be one of the
    /// bootstrap's: another one is a mistake.
    fn parse_target(self, uri: &str, scope: &Scope<'_>) -> Option<Vec<crate::client::Address>> {
        let addresses = match target::parse(uri) {
            Ok(addresses) => addresses,
            Err(problem) => return scope.mistake(problem),
        };
        match self.referrer {
            // C15: a control plane sends nobody elsewhere.
            Referrer::Resource { servers, .. }
                if !addresses.iter().all(|address| servers.contains(address)) =>
            {
                let target = uri.to_owned();
                scope.mistake(Problem::UnknownServer { target })
            }
            _ => Some(addresses),
        }
    }

    /// Resolves the files or texts of TLS. Without authorities those of the system
    /// are trusted; a certificate without its key is a mistake.
    fn resolve_ssl(self, ssl: &SslCredentials, scope: &Scope<'_>) -> Option<TlsOptions> {
        let author = self.referrer.author();
        let read_pem = |source: Option<&_>, field| match source {
            None => Some(None),
            Some(source) => data_source::read_pem(source, author, &scope.field(field)).map(Some),
        };
        let ca = read_pem(ssl.root_certs.as_ref(), "root_certs");
        let chain = read_pem(ssl.cert_chain.as_ref(), "cert_chain");
        let key = read_pem(ssl.private_key.as_ref(), "private_key");

        let certificate = match (chain?, key?) {
            (Some(chain), Some(key)) => Some((chain, key)),
            (None, None) => None,
            _ => {
                let remedy = "a certificate and its key go together";
                return scope.missing("cert_chain or private_key", remedy);
            }
        };
        Some(TlsOptions {
            ca: ca?,
            certificate,
            server_name: None,
        })
    }

    /// Reads the token of every stream, or the path of its file. Credentials of
    /// other kinds are unsupported.
    fn read_token(self, call: Option<&Call>, scope: &Scope<'_>) -> Option<Token> {
        match call {
            Some(Call::AccessToken(token)) => Some(Token::Value(Secret(format!("Bearer {token}")))),
            Some(Call::FromPlugin(plugin)) => {
                let path = self.read_token_path(plugin, &scope.field("from_plugin"))?;
                Some(Token::File(path))
            }
            _ => scope.unsupported("this kind of call_credentials", TOKEN),
        }
    }

    /// Returns the path of the file with a token, which every stream reads
    /// anew. Plugins other than the file-based one, and tokens that are no
    /// bearer tokens, are unsupported.
    fn read_token_path(
        self,
        plugin: &MetadataCredentialsFromPlugin,
        scope: &Scope<'_>,
    ) -> Option<PathBuf> {
        let Some(ConfigType::TypedConfig(config)) = plugin.config_type.as_ref() else {
            return scope.unsupported(plugin.name.as_str(), TOKEN);
        };
        let config = FileBasedMetadataConfig::decode(config.value.as_slice()).ok();
        let config = config.filter(|_| plugin.name == FILE_BASED);
        let is_bearer = |config: &FileBasedMetadataConfig| {
            matches!(config.header_key.as_str(), "" | "authorization")
                && config.header_prefix == "Bearer "
        };
        let Some(config) = config.filter(is_bearer) else {
            return scope.unsupported(plugin.name.as_str(), TOKEN);
        };

        let scope = scope.field("typed_config.secret_data");
        let specifier = config.secret_data.and_then(|source| source.specifier);
        let Some(Specifier::Filename(name)) = specifier else {
            return scope.missing("filename", "name the file with the token");
        };
        data_source::check_file(&name, self.referrer.author(), &scope.field("filename"))
    }
}

/// Reports credentials that are not implemented as unsupported: a connection
/// without them would be less secure than the bootstrap wants.
fn refuse_plugins(service: &GoogleGrpc, scope: &Scope<'_>) {
    let factory = service.credentials_factory_name.as_str();
    let plugins = [
        (
            !service.channel_credentials_plugin.is_empty(),
            "channel_credentials_plugin",
            "use channel_credentials",
        ),
        (
            !service.call_credentials_plugin.is_empty(),
            "call_credentials_plugin",
            "use call_credentials",
        ),
        (
            !matches!(factory, "" | FILE_BASED),
            "credentials_factory_name",
            TOKEN,
        ),
    ];
    for (_, field, remedy) in plugins.into_iter().filter(|(is_set, ..)| *is_set) {
        scope.field(field).unsupported::<()>(field, remedy);
    }
}

/// The plugin with a token in a file.
const FILE_BASED: &str = "envoy.grpc_credentials.file_based_metadata";

/// A token of every stream.
enum Token {
    /// The value of its header.
    Value(Secret),
    /// A file that holds it.
    File(PathBuf),
}
