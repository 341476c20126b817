//! `trunkline status NODE --envoy-admin URL`: what a server has sent to an Envoy,
//! compared with what that says it has.
//!
//! | file | concern |
//! |---|---|
//! | `dump` | the resources of an Envoy, out of its `/config_dump` |
//! | `served` | a resource of the server, beside one of the Envoy |
//! | `compare` | all resources of both sides |
//! | `endpoints` | endpoints, as far as Envoy shows them |
//! | `show` | the result for people and programs |

mod compare;
mod dump;
mod endpoints;
mod served;
mod show;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;

use serde_json::Value;
use trunkline::{TypeUrl, kind};
use trunkline_proto::text::nearest;

use self::compare::{Sides, Verdict};
use self::dump::{Key, ProxyDump};
use self::served::Served;
use super::super::{encode_url, parse_list, print, run_request};
use super::type_states;
use crate::cli::StatusOutput;
use crate::client::{Client, EnvoyAdmin};
use crate::color::Palette;
use crate::failure::{Failure, Result};
use crate::kinds::did_you_mean;
use crate::output;

/// What is to be compared.
pub(super) struct ProxyRequest<'a> {
    /// The id of the client's node.
    pub(super) node: &'a str,
    /// The admin address of the Envoy.
    pub(super) envoy: &'a str,
    /// The types to compare; all, if there are none.
    pub(super) types: &'a [TypeUrl],
    pub(super) client: &'a Client,
    pub(super) output: StatusOutput,
}

/// Prints the state of each resource in the proxy, trouble first. Returns 1 if
/// a resource differs from the server's, and 0 otherwise.
///
/// # Errors
/// The comparison failed. The exit code is 2 or more.
pub(super) fn run(request: &ProxyRequest<'_>) -> Result<ExitCode> {
    let comparison = run_request(request.compare()).map_err(Failure::into_comparison_failure)?;
    let text = match request.output {
        StatusOutput::Json => output::to_json(&show::to_json(request.node, &comparison)),
        StatusOutput::Table => show::to_text(request.node, &comparison, Palette::of_stdout()),
    };
    print(text.as_bytes()).map_err(Failure::into_comparison_failure)?;
    let is_trouble = |(_, verdict): &(Key, Verdict)| verdict.state.is_trouble();
    Ok(u8::from(comparison.iter().any(is_trouble)).into())
}

impl ProxyRequest<'_> {
    /// Fetches the resources of the server and of the Envoy, and compares them.
    async fn compare(&self) -> Result<Vec<(Key, Verdict)>> {
        let proxy = self.fetch_dump().await?;
        let clients = self.fetch_client().await?;
        let (served, subscribed_types) = read_served(clients)?;
        let sides = Sides {
            served: &served,
            asked: &subscribed_types,
            proxy: &proxy,
        };

        let mut comparison = sides.compare()?;

        let is_selected = |url: &str| self.types.iter().any(|type_url| type_url.as_str() == url);
        comparison.retain(|((url, _), _)| self.types.is_empty() || is_selected(url));
        // The sort is stable: within a state, the order is by types and names.
        comparison.sort_by_key(|(_, verdict)| verdict.state);
        Ok(comparison)
    }

    /// Fetches the dump of the Envoy, and checks that the Envoy has the node id
    /// of the client.
    async fn fetch_dump(&self) -> Result<ProxyDump> {
        let envoy = EnvoyAdmin::new(self.envoy)?;
        let body = envoy.config_dump().await?;
        let dump: Value = serde_json::from_slice(&body).unwrap_or_default();
        let dump = ProxyDump::read(&dump);
        let dump = dump.ok_or_else(|| envoy.not_envoy("it has no `configs`"))?;
        match dump.node.as_deref() {
            None => Err(envoy.not_envoy("it has no bootstrap")),
            Some(id) if id != self.node => Err(Failure::wrong(format!(
                "the Envoy at {} has the node id {id:?}, and not {:?}; correct the one or the \
                 other",
                self.envoy, self.node
            ))),
            Some(_) => Ok(dump),
        }
    }

    /// Fetches the streams of the client with its resources, and checks that
    /// exactly one client has the node id.
    async fn fetch_client(&self) -> Result<Vec<Value>> {
        let node = encode_url(self.node);
        let path = format!("/debug/clients?node={node}&contents=true");
        let streams = parse_list(&self.client.get(&path).await?, "clients")?;
        match count_clients(&streams) {
            0 => Err(self.absence_failure().await?),
            1 => Ok(streams),
            count => Err(Failure::wrong(format!(
                "{count} clients with the node id {:?} are connected, so nobody can tell which \
                 of them this Envoy is; give each a `node.id` of its own",
                self.node
            ))),
        }
    }

    /// Makes the failure of a client that is not connected, with a similar node
    /// id if there is one.
    async fn absence_failure(&self) -> Result<Failure> {
        let clients = self.client.get("/api/v1/status").await?;
        let clients = parse_list(&clients, "clients")?;
        let ids = clients.iter().filter_map(|client| client["node"].as_str());
        let similar_id = nearest(self.node, ids.map(str::to_owned));
        Ok(Failure::wrong(format!(
            "no client with the node id {:?} is connected{}; see `trunkline status` for those \
             that are, and the log of the Envoy for why it is not",
            self.node,
            did_you_mean(similar_id.as_deref())
        )))
    }
}

/// Counts the clients that have these streams. A client has at most one
/// aggregated stream, one for clusters and one for listeners; for other types
/// it may have many.
fn count_clients(streams: &[Value]) -> usize {
    let has_type =
        |stream: &&Value, url: &str| type_states(stream).any(|state| state["type"] == url);
    let aggregated = streams.iter().filter(|stream| stream["aggregated"] == true);
    let clusters = streams.iter().filter(|stream| has_type(stream, kind::CDS));
    let listeners = streams.iter().filter(|stream| has_type(stream, kind::LDS));
    let count = aggregated.count().max(clusters.count());
    count.max(listeners.count()).max(streams.len().min(1))
}

/// Reads the resources of all streams of a client, and the types that it
/// subscribes to.
fn read_served(streams: Vec<Value>) -> Result<(BTreeMap<Key, Served>, BTreeSet<String>)> {
    let mut served: BTreeMap<Key, Served> = BTreeMap::new();
    let mut subscribed_types = BTreeSet::new();
    for mut stream in streams {
        let urls = type_states(&stream).filter_map(|state| state["type"].as_str());
        subscribed_types.extend(urls.map(str::to_owned));
        let resources = serde_json::from_value(stream["resources"].take());
        let resources: Vec<Served> = resources.map_err(|error| {
            Failure::wrong(format!(
                "the answer of the server is not understood: {error}"
            ))
        })?;
        for resource in resources {
            let key = (resource.type_url.clone(), resource.name.clone());
            served.entry(key).or_insert(resource);
        }
    }
    Ok((served, subscribed_types))
}
