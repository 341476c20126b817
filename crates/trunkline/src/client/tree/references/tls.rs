//! The secrets of transport sockets (SDS).

use trunkline_proto::envoy::envoy::config::core::v3::TransportSocket;
use trunkline_proto::envoy::envoy::config::core::v3::transport_socket::ConfigType;
use trunkline_proto::envoy::envoy::extensions::transport_sockets::quic::v3::{
    QuicDownstreamTransport, QuicUpstreamTransport,
};
use trunkline_proto::envoy::envoy::extensions::transport_sockets::tls::v3::common_tls_context::ValidationContextType;
use trunkline_proto::envoy::envoy::extensions::transport_sockets::tls::v3::downstream_tls_context::SessionTicketKeysType;
use trunkline_proto::envoy::envoy::extensions::transport_sockets::tls::v3::{
    CommonTlsContext, DownstreamTlsContext, SdsSecretConfig, UpstreamTlsContext,
};

use super::{Finder, unpack};
use crate::kind::SDS;

impl Finder<'_> {
    /// Adds the secrets of a transport socket of TLS or QUIC; others have none.
    pub(super) fn find_in_transport_socket(&mut self, socket: &TransportSocket) {
        let Some(ConfigType::TypedConfig(any)) = &socket.config_type else {
            return;
        };
        if let Some(tls) = unpack::<DownstreamTlsContext>(any) {
            self.find_in_downstream_tls(&tls);
        } else if let Some(tls) = unpack::<UpstreamTlsContext>(any) {
            self.find_in_common_tls(tls.common_tls_context.as_ref());
        } else if let Some(quic) = unpack::<QuicDownstreamTransport>(any) {
            quic.downstream_tls_context
                .iter()
                .for_each(|tls| self.find_in_downstream_tls(tls));
        } else if let Some(quic) = unpack::<QuicUpstreamTransport>(any) {
            let tls = quic.upstream_tls_context.as_ref();
            self.find_in_common_tls(tls.and_then(|tls| tls.common_tls_context.as_ref()));
        }
    }

    /// Adds the secrets of a server's TLS, those of session tickets included.
    fn find_in_downstream_tls(&mut self, tls: &DownstreamTlsContext) {
        self.find_in_common_tls(tls.common_tls_context.as_ref());
        let tickets = tls.session_ticket_keys_type.as_ref();
        if let Some(SessionTicketKeysType::SessionTicketKeysSdsSecretConfig(sds)) = tickets {
            self.add_secret(sds);
        }
    }

    /// Adds the secrets that both ends of TLS may have: certificates, and the
    /// authorities that are trusted.
    fn find_in_common_tls(&mut self, tls: Option<&CommonTlsContext>) {
        let Some(tls) = tls else {
            return;
        };
        for sds in &tls.tls_certificate_sds_secret_configs {
            self.add_secret(sds);
        }
        match &tls.validation_context_type {
            Some(ValidationContextType::ValidationContextSdsSecretConfig(sds)) => {
                self.add_secret(sds)
            }
            Some(ValidationContextType::CombinedValidationContext(combined)) => {
                let sds = combined.validation_context_sds_secret_config.iter();
                sds.for_each(|sds| self.add_secret(sds));
            }
            _ => {}
        }
    }

    /// Adds a secret, at the source that its reference names.
    fn add_secret(&mut self, sds: &SdsSecretConfig) {
        let source = sds.sds_config.as_ref();
        let key = self.referrer.with_source(SDS, &sds.name, source);
        self.add(key);
    }
}
