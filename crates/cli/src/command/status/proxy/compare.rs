//! The resources of a client as a server has sent them, compared with those that
//! its Envoy has.

use std::collections::{BTreeMap, BTreeSet};

use trunkline::kind;

use super::dump::{self, Key, ProxyDump, ProxyResource};
use super::endpoints::Endpoints;
use super::served::{Equality, Served};
use crate::failure::Result;

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
    /// Makes a verdict without a difference.
    fn new(state: State, reason: impl Into<String>) -> Self {
        Self {
            state,
            reason: reason.into(),
            diff: String::new(),
        }
    }
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
            if let Some(verdict) = self.compare_resource(key)? {
                verdicts.push((key.clone(), verdict));
            }
        }
        Ok(verdicts)
    }

    /// Compares one resource. Returns `None` if neither side has it.
    fn compare_resource(&self, key: &Key) -> Result<Option<Verdict>> {
        let served = self.served.get(key).filter(|served| served.exists());
        let proxy = self.proxy.resources.get(key);
        match (served, proxy) {
            (Some(served), proxy) => {
                let empty = ProxyResource::default();
                self.compare_served(served, proxy.unwrap_or(&empty))
                    .map(Some)
            }
            (None, Some(proxy)) => Ok(self.judge_unserved(&key.0, proxy)),
            (None, None) => Ok(None),
        }
    }

    /// Judges a resource that the server does not serve to the client. Returns
    /// `None` for empty endpoints, which Envoy makes by itself.
    fn judge_unserved(&self, type_url: &str, proxy: &ProxyResource) -> Option<Verdict> {
        let body = proxy.active.as_ref().or(proxy.warming.as_ref())?;
        // Envoy has an assignment for each cluster, which is empty until a server
        // sends one.
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

    /// Compares a resource that the server serves with the active one of the
    /// proxy.
    fn compare_served(&self, served: &Served, proxy: &ProxyResource) -> Result<Verdict> {
        let active = proxy.active.as_ref();
        if served.status == "NACKED" {
            return judge_rejected(served, proxy);
        }
        if !dump::shows(&served.type_url) {
            let reason = "Envoy's dump does not show this type";
            return Ok(Verdict::new(State::NotCompared, reason));
        }
        if served.type_url == kind::SDS && active.is_some() {
            let reason = "Envoy does not show secrets";
            return Ok(Verdict::new(State::NotCompared, reason));
        }

        let equality = active.map(|body| served.compare_body(body)).transpose()?;
        Ok(match equality {
            Some(Equality::Same(note)) => Verdict::new(State::Same, note),
            equality => match (&proxy.error, &proxy.warming) {
                (Some(error), _) => Verdict {
                    diff: equality.map_or_else(String::new, Equality::into_diff),
                    ..Verdict::new(State::Rejected, error)
                },
                (None, Some(_)) => Verdict::new(State::Warming, ""),
                (None, None) => self.judge_unequal(served, proxy, equality),
            },
        })
    }

    /// Judges a resource that the proxy has in another form, or does not have.
    fn judge_unequal(
        &self,
        served: &Served,
        proxy: &ProxyResource,
        equality: Option<Equality>,
    ) -> Verdict {
        match equality {
            Some(Equality::Unreadable(reason)) => Verdict::new(State::NotCompared, reason),
            Some(equality) => Verdict {
                diff: equality.into_diff(),
                ..Verdict::new(State::Differs, served.remark_for(proxy))
            },
            None if served.type_url == kind::EDS && self.proxy.is_warming_for(&served.name) => {
                Verdict::new(State::Warming, "its cluster is warming")
            }
            None => Verdict::new(State::Missing, served.pending_remark()),
        }
    }
}

/// Judges a resource that the client has rejected. A NACK is about all
/// resources of its response, but the error in Envoy's dump is about this one,
/// so the dump takes precedence.
fn judge_rejected(served: &Served, proxy: &ProxyResource) -> Result<Verdict> {
    let error = proxy.error.as_ref().or(served.error.as_ref());
    let diff = match (&proxy.active, &served.rejected_resource) {
        (Some(active), Some(rejected)) if served.type_url != kind::SDS => {
            served.diff(active, rejected)?
        }
        _ => String::new(),
    };
    let verdict = Verdict::new(State::Rejected, error.cloned().unwrap_or_default());
    Ok(Verdict { diff, ..verdict })
}
