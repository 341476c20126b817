//! A resource of a client as its server has it, compared with a body of its Envoy.

use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};
use trunkline::{Version, kind};
use trunkline_proto::redact::REDACTED;
use trunkline_proto::text::{self, Format};

use super::dump::ProxyResource;
use super::endpoints::Endpoints;
use crate::admin::show_redacted;
use crate::failure::Result;
use crate::line_diff::write_diff;
use crate::output;

/// A resource of a client, as its server has it.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Served {
    #[serde(rename = "type")]
    pub(super) type_url: String,
    pub(super) name: String,
    pub(super) status: String,
    pub(super) version: Option<String>,
    pub(super) error: Option<String>,
    pub(super) resource: Option<Value>,
    pub(super) rejected_resource: Option<Value>,
}

/// Whether two bodies are the same.
pub(super) enum Equality {
    /// They are, as far as can be told: the words say how far.
    Same(&'static str),
    /// They are not: the lines that differ.
    Differs(String),
    /// The one of the proxy cannot be read.
    Unreadable(String),
}

impl Served {
    /// Returns whether there is such a resource: the client may ask for others.
    pub(super) fn exists(&self) -> bool {
        match self.status.as_str() {
            "DOES_NOT_EXIST" => false,
            "ACKED" | "SENT" => self.resource.is_some(),
            _ => true,
        }
    }

    /// Returns a remark that the client has yet to answer, or the server; empty if
    /// neither has.
    pub(super) fn pending_remark(&self) -> &'static str {
        match self.status.as_str() {
            "SENT" => "sent, and not answered yet",
            "REQUESTED" => "asked for, and not sent yet",
            _ => "",
        }
    }

    /// Returns the remark that the proxy has the resource from its bootstrap, or
    /// else [`Self::pending_remark`].
    pub(super) fn remark_for(&self, proxy: &ProxyResource) -> &'static str {
        match proxy.is_static {
            true => "the proxy has it from its bootstrap",
            false => self.pending_remark(),
        }
    }

    /// Compares the resource with a body of the proxy. The result says whether
    /// they differ, or why they cannot be compared.
    pub(super) fn compare_body(&self, body: &Value) -> Result<Equality> {
        let Some(resource) = &self.resource else {
            let reason = "the server does not know which version the proxy has";
            return Ok(Equality::Unreadable(reason.to_owned()));
        };
        if self.type_url != kind::EDS {
            let bytes = match read_body(body) {
                Ok(bytes) => bytes,
                Err(reason) => return Ok(Equality::Unreadable(reason)),
            };
            // A version is a hash of the canonical bytes, so equal versions mean
            // equal bodies.
            if self.version.as_deref() == Some(Version::of_body(&bytes).as_str()) {
                return Ok(Equality::Same(""));
            }
        }

        let diff = self.diff(body, resource)?;
        Ok(match diff.is_empty() {
            true if resource.to_string().contains(REDACTED) => {
                Equality::Same("but for secrets, which Envoy does not show")
            }
            true => Equality::Same(""),
            false => Equality::Differs(diff),
        })
    }

    /// Writes the lines in which a body of the proxy differs from one of the
    /// server. Secrets are redacted on both sides.
    pub(super) fn diff(&self, proxy: &Value, served: &Value) -> Result<String> {
        let (proxy_form, served_form) = match self.type_url == kind::EDS {
            true => {
                let served = Endpoints::read(served);
                let proxy = Endpoints::read(proxy).without_findings(&served);
                (proxy.to_json(), served.to_json())
            }
            false => {
                let body = read_body(proxy).ok();
                let proxy_json = body.and_then(|body| show_redacted(&self.type_url, body));
                (proxy_json.unwrap_or_default(), served.clone())
            }
        };
        Ok(write_diff(
            &output::to_yaml(&proxy_form)?,
            &output::to_yaml(&served_form)?,
        ))
    }
}

impl Equality {
    /// Returns the lines that differ.
    pub(super) fn into_diff(self) -> String {
        match self {
            Self::Differs(diff) => diff,
            Self::Same(_) | Self::Unreadable(_) => String::new(),
        }
    }
}

/// Encodes a body of a dump as canonical bytes.
///
/// # Errors
/// The body cannot be parsed. The error is a sentence for the user.
fn read_body(body: &Value) -> std::result::Result<Bytes, String> {
    let dump = json!({"configs": [body]}).to_string();
    let document = text::read_as(Format::Json, "dump", &dump, &text::Options::default());
    if let Some(error) = document.errors.first() {
        return Err(format!(
            "what the proxy has cannot be read here: {}",
            error.problem
        ));
    }
    let resource = document.resources.into_iter().next();
    let resource = resource.ok_or("what the proxy has cannot be read here")?;
    Ok(resource.body)
}
