//! The resources of a client as a server has sent them, compared with those that
//! its Envoy has.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};
use trunkline::{Version, kind};
use trunkline_proto::redact::REDACTED;
use trunkline_proto::text::{self, Format};

use super::dump::{self, Key, ProxyDump, ProxyResource};
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

/// How a resource is in the proxy, the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum State {
    Rejected,
    Differs,
    Missing,
    OnlyInProxy,
    Warming,
    NotCompared,
    /// Only in the proxy, and of a type that it does not ask this server for.
    Elsewhere,
    /// Only in the proxy, and from its bootstrap.
    Static,
    Same,
}

impl State {
    /// Returns whether the proxy does not have what it should.
    pub(super) fn is_trouble(self) -> bool {
        self <= Self::Warming
    }
}

/// How a resource is in the proxy, and why.
#[derive(Debug, PartialEq)]
pub(super) struct Verdict {
    pub(super) state: State,
    /// In words; empty if there is nothing to say.
    pub(super) reason: String,
    /// The lines of YAML that differ, from the proxy's to the server's; empty if
    /// none is known to.
    pub(super) diff: String,
}

impl Verdict {
    fn new(state: State, reason: impl Into<String>) -> Self {
        Self {
            state,
            reason: reason.into(),
            diff: String::new(),
        }
    }
}

/// Whether two bodies are the same.
enum Equality {
    /// They are, as far as can be told: the words say how far.
    Same(&'static str),
    /// They are not: the lines that differ.
    Differs(String),
    /// The one of the proxy cannot be read.
    Unreadable(String),
}

/// The two sides of a comparison.
pub(super) struct Sides<'a> {
    pub(super) served: &'a BTreeMap<Key, Served>,
    /// The types that the client asks the server for.
    pub(super) asked: &'a BTreeSet<String>,
    pub(super) proxy: &'a ProxyDump,
}

impl Sides<'_> {
    /// Compares the resources of both sides, in the order of types and names.
    pub(super) fn compare(&self) -> Result<Vec<(Key, Verdict)>> {
        let keys: BTreeSet<&Key> = self
            .served
            .keys()
            .chain(self.proxy.resources.keys())
            .collect();
        let mut verdicts = Vec::new();
        for key in keys {
            if let Some(verdict) = self.compare_one(key)? {
                verdicts.push((key.clone(), verdict));
            }
        }
        Ok(verdicts)
    }

    /// Compares one resource; `None` if neither side has it.
    fn compare_one(&self, key: &Key) -> Result<Option<Verdict>> {
        let served = self.served.get(key).filter(|served| served.exists());
        let proxy = self.proxy.resources.get(key);
        match (served, proxy) {
            (Some(served), proxy) => {
                let nothing = ProxyResource::default();
                self.compare_served(served, proxy.unwrap_or(&nothing))
                    .map(Some)
            }
            (None, Some(proxy)) => Ok(self.judge_unserved(&key.0, proxy)),
            (None, None) => Ok(None),
        }
    }

    /// Judges a resource that the server does not serve to the client.
    fn judge_unserved(&self, type_url: &str, proxy: &ProxyResource) -> Option<Verdict> {
        let body = proxy.active.as_ref().or(proxy.warming.as_ref())?;
        // Envoy has endpoints for each cluster, and none if nobody gave it any.
        if type_url == kind::EDS && Endpoints::read(body).is_empty() {
            return None;
        }
        let state = match proxy.is_static {
            true => State::Static,
            false if !self.asked.contains(type_url) => State::Elsewhere,
            false => State::OnlyInProxy,
        };
        Some(Verdict::new(state, ""))
    }

    /// Compares a resource that the server serves.
    fn compare_served(&self, served: &Served, proxy: &ProxyResource) -> Result<Verdict> {
        let type_url = served.type_url.as_str();
        let active = proxy.active.as_ref();
        if served.status == "NACKED" {
            // A NACK is about all that was sent with it, Envoy's own word about one.
            let error = proxy.error.as_ref().or(served.error.as_ref());
            let diff = match (active, &served.rejected_resource) {
                (Some(active), Some(rejected)) if type_url != kind::SDS => {
                    served.diff(active, rejected)?
                }
                _ => String::new(),
            };
            let verdict = Verdict::new(State::Rejected, error.cloned().unwrap_or_default());
            return Ok(Verdict { diff, ..verdict });
        }
        if !dump::shows(type_url) {
            let reason = "Envoy's dump does not show this type";
            return Ok(Verdict::new(State::NotCompared, reason));
        }
        if type_url == kind::SDS && active.is_some() {
            return Ok(Verdict::new(
                State::NotCompared,
                "Envoy does not show secrets",
            ));
        }

        let equality = active.map(|body| served.equals(body)).transpose()?;
        if let Some(Equality::Same(words)) = equality {
            return Ok(Verdict::new(State::Same, words));
        }
        if let Some(error) = &proxy.error {
            return Ok(Verdict {
                diff: equality.map_or_else(String::new, Equality::into_diff),
                ..Verdict::new(State::Rejected, error)
            });
        }
        if proxy.warming.is_some() {
            return Ok(Verdict::new(State::Warming, ""));
        }
        Ok(match equality {
            Some(Equality::Unreadable(reason)) => Verdict::new(State::NotCompared, reason),
            Some(equality) => Verdict {
                diff: equality.into_diff(),
                ..Verdict::new(State::Differs, served.pending_or(proxy))
            },
            None => self.judge_missing(served),
        })
    }

    /// Judges a resource that the proxy does not have.
    fn judge_missing(&self, served: &Served) -> Verdict {
        let warming = || {
            self.proxy
                .endpoint_names(|cluster| cluster.warming.as_ref())
        };
        match served.type_url == kind::EDS && warming().contains(&served.name) {
            true => Verdict::new(State::Warming, "its cluster is warming"),
            false => Verdict::new(State::Missing, served.pending()),
        }
    }
}

impl Served {
    /// Returns whether there is such a resource: the client may ask for others.
    fn exists(&self) -> bool {
        match self.status.as_str() {
            "DOES_NOT_EXIST" => false,
            "ACKED" | "SENT" => self.resource.is_some(),
            _ => true,
        }
    }

    /// Says that the client has yet to answer, or the server.
    fn pending(&self) -> &'static str {
        match self.status.as_str() {
            "SENT" => "sent, and not answered yet",
            "REQUESTED" => "asked for, and not sent yet",
            _ => "",
        }
    }

    /// The same, or that the proxy has it from its bootstrap.
    fn pending_or(&self, proxy: &ProxyResource) -> &'static str {
        match proxy.is_static {
            true => "the proxy has it from its bootstrap",
            false => self.pending(),
        }
    }

    /// Compares the resource with a body of the proxy.
    fn equals(&self, body: &Value) -> Result<Equality> {
        let Some(resource) = &self.resource else {
            let reason = "the server does not know which version the proxy has";
            return Ok(Equality::Unreadable(reason.to_owned()));
        };
        if self.type_url != kind::EDS {
            let read = match read_body(body) {
                Ok(read) => read,
                Err(reason) => return Ok(Equality::Unreadable(reason)),
            };
            // Versions are made of canonical bytes.
            if self.version.as_deref() == Some(Version::of_body(&read).as_str()) {
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
    /// server, as far as both are shown.
    fn diff(&self, proxy: &Value, served: &Value) -> Result<String> {
        let (old, new) = match self.type_url == kind::EDS {
            true => {
                let served = Endpoints::read(served);
                let proxy = Endpoints::read(proxy).without_findings(&served);
                (proxy.show(), served.show())
            }
            false => {
                let read = read_body(proxy).ok();
                let shown = read.and_then(|body| show_redacted(&self.type_url, body));
                (shown.unwrap_or_default(), served.clone())
            }
        };
        Ok(write_diff(&output::to_yaml(&old)?, &output::to_yaml(&new)?))
    }
}

impl Equality {
    /// Returns the lines that differ.
    fn into_diff(self) -> String {
        match self {
            Self::Differs(diff) => diff,
            Self::Same(_) | Self::Unreadable(_) => String::new(),
        }
    }
}

/// Reads a body of a dump. Returns its canonical bytes, or why it cannot be read.
fn read_body(body: &Value) -> std::result::Result<Bytes, String> {
    let dump = json!({"configs": [body]}).to_string();
    let read = text::read_as(Format::Json, "dump", &dump, &text::Options::default());
    if let Some(error) = read.errors.first() {
        return Err(format!(
            "what the proxy has cannot be read here: {}",
            error.problem
        ));
    }
    let resource = read.resources.into_iter().next();
    let resource = resource.ok_or("what the proxy has cannot be read here")?;
    Ok(resource.body)
}
