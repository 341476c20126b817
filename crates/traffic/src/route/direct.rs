//! Direct responses (36).

use bytes::Bytes;
use trunkline_proto::acceptance::{Place, Problem};
use trunkline_proto::envoy::envoy::config::core::v3::data_source::Specifier;
use trunkline_proto::envoy::envoy::config::route::v3::DirectResponseAction;

use crate::findings::Findings;

/// A response that the route itself has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirectResponse {
    /// The status, 200 to 599.
    pub status: u16,
    /// The body.
    pub body: Bytes,
}

impl DirectResponse {
    /// Compiles a direct response. Returns `None` if the status is out of
    /// range, or the body is not in the message.
    pub(super) fn compile(
        message: &DirectResponseAction,
        max_body: usize,
        place: &Place<'_>,
        findings: &mut Findings,
    ) -> Option<Self> {
        findings.unsupported(&place.field("body_format"), message.body_format.is_some());

        let status = u16::try_from(message.status).unwrap_or(0);
        if !(200..600).contains(&status) {
            findings.add(
                &place.field("status"),
                Problem::Value {
                    found: message.status.to_string(),
                    allowed: "200 to 599",
                },
            );
            return None;
        }

        let specifier = message
            .body
            .as_ref()
            .and_then(|body| body.specifier.as_ref());
        let body = match specifier {
            None => Bytes::new(),
            Some(Specifier::InlineString(text)) => text.clone().into(),
            Some(Specifier::InlineBytes(bytes)) => bytes.clone().into(),
            Some(Specifier::Filename(_) | Specifier::EnvironmentVariable(_)) => {
                // `trunkline_proto::data_sources` has replaced the names of files
                // that can be read by their contents.
                findings.add(&place.field("body"), Problem::Unsupported);
                return None;
            }
        };

        if body.len() > max_body {
            let problem = format!(
                "has {} bytes, more than {max_body}; raise max_direct_response_body_size_bytes",
                body.len()
            );
            findings.add(&place.field("body"), Problem::Other(problem));
        }
        Some(Self { status, body })
    }
}
