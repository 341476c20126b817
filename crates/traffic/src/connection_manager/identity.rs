//! What the connection manager says of itself: request ids, `via`, `server`.

use trunkline_proto::acceptance::{Place, Problem};
use trunkline_proto::envoy::envoy::extensions::filters::network::http_connection_manager::v3::{
    HttpConnectionManager,
    http_connection_manager::{ForwardClientCertDetails, ServerHeaderTransformation},
};

use super::trust::Sender;
use crate::findings::Findings;
use crate::headers::Headers;

/// What requests and responses are marked with.
#[derive(Debug, Clone)]
pub(super) struct Identity {
    generates_id: bool,
    keeps_external_id: bool,
    returns_id: bool,
    via: Box<str>,
    server: Box<str>,
    server_header: ServerHeader,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ServerHeader {
    Overwrite,
    AppendIfAbsent,
    PassThrough,
}

impl Identity {
    /// Compiles the rules about ids, `via` and `server`. Fields that are not
    /// supported are findings.
    pub(super) fn compile(
        message: &HttpConnectionManager,
        place: &Place<'_>,
        findings: &mut Findings,
    ) -> Self {
        let adds_agent = message.add_user_agent.is_some_and(|flag| flag.value);
        let forwards = message.forward_client_cert_details();
        let unsupported = [
            ("add_user_agent", adds_agent),
            (
                "forward_client_cert_details",
                forwards != ForwardClientCertDetails::Sanitize,
            ),
            ("local_reply_config", message.local_reply_config.is_some()),
            (
                "early_header_mutation_extensions",
                !message.early_header_mutation_extensions.is_empty(),
            ),
            (
                "request_id_extension",
                message.request_id_extension.is_some(),
            ),
        ];

        for (field, is_set) in unsupported {
            findings.unsupported(&place.field(field), is_set);
        }

        let server_header = match message.server_header_transformation() {
            ServerHeaderTransformation::Overwrite => ServerHeader::Overwrite,
            ServerHeaderTransformation::AppendIfAbsent => ServerHeader::AppendIfAbsent,
            ServerHeaderTransformation::PassThrough => ServerHeader::PassThrough,
        };
        if message.via.contains(['\r', '\n']) {
            findings.add(
                &place.field("via"),
                Problem::Other("is no value of a header".to_owned()),
            );
        }

        Self {
            generates_id: message.generate_request_id.is_none_or(|flag| flag.value),
            keeps_external_id: message.preserve_external_request_id,
            returns_id: message.always_set_request_id_in_response,
            via: message.via.as_str().into(),
            server: match message.server_name.as_str() {
                "" => "envoy".into(),
                name => name.into(),
            },
            server_header,
        }
    }

    /// Adds `via` and `x-request-id` to a request. At an edge, `fresh_id`
    /// replaces an id that the client has sent, unless the policy keeps
    /// external ids.
    pub(super) fn mark_request(&self, headers: &mut Headers, sender: Sender, fresh_id: &str) {
        if !self.via.is_empty() {
            headers.join("via", ", ", &self.via);
        }
        let is_replaced = sender.is_edge && !self.keeps_external_id;
        if self.generates_id && (is_replaced || !headers.has("x-request-id")) {
            headers.set("x-request-id", fresh_id.to_owned());
        }
    }

    /// Adds `date`, `server`, `x-request-id` and `via` to a response, by the
    /// policy and by the headers of its request.
    pub(super) fn mark_response(&self, headers: &mut Headers, request: &Headers, date: &str) {
        if !headers.has("date") {
            headers.append("date", date.to_owned());
        }

        let is_absent = !headers.has("server");
        match self.server_header {
            ServerHeader::Overwrite => headers.set("server", self.server.to_string()),
            ServerHeader::AppendIfAbsent if is_absent => {
                headers.append("server", self.server.to_string());
            }
            ServerHeader::AppendIfAbsent | ServerHeader::PassThrough => {}
        }

        let is_traced = request.has("x-envoy-force-trace");
        let id = request
            .text("x-request-id")
            .filter(|_| self.returns_id || is_traced);
        if let Some(id) = id {
            headers.set("x-request-id", id.to_owned());
        }

        if !self.via.is_empty() {
            headers.join("via", ", ", &self.via);
        }
    }
}
