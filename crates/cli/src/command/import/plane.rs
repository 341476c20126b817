//! What a control plane has for a client: all listeners, clusters and scoped
//! routes, and what they refer to.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::time::timeout;
use trunkline::client::{Client, Query, Raw, State};
use trunkline::kind::{self, Kind};
use trunkline::{Name, Resource, TypeUrl, wire};
use trunkline_proto::discovery::Any;

use crate::admin::encode_file_form;
use crate::cli;
use crate::command::control_plane::{Dial, Servers};
use crate::failure::{Failure, Result};
use crate::kinds;
use crate::progress::Progress;

/// The node id without `--node`.
const NODE: &str = "trunkline-import";

/// The types of which a control plane is asked for all.
const ROOTS: [&str; 3] = [kind::LDS, kind::CDS, kind::SRDS];

/// Fetches the resources of a control plane, and returns them with its
/// addresses.
///
/// # Errors
/// The control plane is not reached, or does not answer in time.
pub(super) async fn fetch(peer: &cli::Peer) -> Result<(String, Vec<Any>)> {
    let (builder, servers) = dial_of(peer).builder()?;
    let mut fetching = Fetching {
        client: builder.build(),
        servers,
        patience: peer.patience,
        progress: Progress::new("fetched", 0),
        resources: Vec::new(),
        requested_names: BTreeSet::new(),
        missing_messages: Vec::new(),
    };
    fetching.run().await?;

    fetching.progress.end();
    for message in fetching.missing_messages {
        eprintln!("warning: {message}");
    }
    let resources = fetching.resources.iter();
    let resources = resources.map(|(url, resource)| encode_file_form(url, resource));
    Ok((fetching.servers.shown, resources.collect()))
}

/// Returns the flags that describe the control plane and its client.
fn dial_of(peer: &cli::Peer) -> Dial<'_> {
    let ca = peer.server_tls_ca.as_deref();
    let cert = peer.server_tls_cert.as_deref();
    let cert = cert.map(|path| ("--server-tls-cert", path));
    let key = peer.server_tls_key.as_deref();
    let key = key.map(|path| ("--server-tls-key", path));
    let token = peer.server_token_file.as_deref();
    Dial {
        servers: &peer.servers,
        bootstrap: peer.bootstrap.as_ref(),
        sotw: peer.sotw,
        params: &peer.params,
        node: (peer.node.as_ref(), NODE),
        ca: ca.map(|path| ("--server-tls-ca", path)),
        certificate: cert.zip(key),
        token: token.map(|path| ("--server-token-file", path)),
        tls_name: peer.server_tls_name.as_ref(),
    }
}

/// A control plane that is being asked.
struct Fetching {
    client: Client,
    servers: Servers,
    /// How long one answer is waited for.
    patience: Duration,
    progress: Progress,
    resources: Vec<(TypeUrl, Resource)>,
    /// Names that were asked for.
    requested_names: BTreeSet<(TypeUrl, Name)>,
    /// What was asked for and is not there, in sentences.
    missing_messages: Vec<String>,
}

impl Fetching {
    /// Fetches the roots, and then the resources that they refer to, directly
    /// or through others.
    async fn run(&mut self) -> Result<()> {
        for url in ROOTS {
            self.fetch_all(&TypeUrl::from(url)).await?;
        }
        let mut visited_count = 0;
        // Resources that a round fetches may refer to more, for the next round.
        while visited_count < self.resources.len() {
            let names = self.unfetched_references(visited_count);
            visited_count = self.resources.len();
            self.fetch_by_name(names).await?;
        }
        Ok(())
    }

    /// Fetches all resources of a type.
    async fn fetch_all(&mut self, type_url: &TypeUrl) -> Result<()> {
        let query = || Query::raw(type_url.as_str(), "*").map_err(Failure::usage);
        let mut watch = self.client.watch_many(query()?);
        let subscription = self.client.subscribe(query()?).map_err(Failure::usage)?;
        match timeout(self.patience, subscription.answered()).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) => return Err(self.unreachable_failure()),
            // Many control planes do not know scoped routes, and never respond.
            Err(_) if type_url.as_str() == kind::SRDS => return Ok(()),
            Err(_) => return Err(self.silence_failure(kinds::short(type_url))),
        }
        for (name, state) in watch.take() {
            self.requested_names
                .insert((type_url.clone(), name.clone()));
            self.record_state(type_url, &name, &state);
        }
        Ok(())
    }

    /// Returns the names that the resources from index `first` on refer to and
    /// that were not requested yet.
    fn unfetched_references(&self, first: usize) -> Vec<(TypeUrl, Name)> {
        let mut names = BTreeSet::new();
        for (type_url, resource) in &self.resources[first..] {
            let body = resource.body.clone().unwrap_or_default();
            let Ok(accepted) = wire::accept(type_url, body) else {
                continue;
            };
            for reference in &accepted.facts().references {
                let key = (reference.type_url.clone(), reference.name.clone());
                let is_new = !self.requested_names.contains(&key);
                // All resources of the root types were fetched: a name that is
                // not among them does not exist.
                let is_fetched_by_name = !ROOTS.contains(&key.0.as_str());
                if is_new && is_fetched_by_name && !Kind::of(&key.0).on_demand {
                    names.insert(key);
                }
            }
        }
        names.into_iter().collect()
    }

    /// Fetches resources by their names.
    async fn fetch_by_name(&mut self, names: Vec<(TypeUrl, Name)>) -> Result<()> {
        let mut subscriptions = Vec::new();
        for (type_url, name) in &names {
            let query = Query::raw(type_url.as_str(), name.as_str());
            let query = query.map_err(Failure::usage)?;
            subscriptions.push(self.client.subscribe(query).map_err(Failure::usage)?);
        }

        self.requested_names.extend(names.iter().cloned());

        for ((type_url, name), subscription) in names.iter().zip(&subscriptions) {
            let mut watch = subscription.watch();
            let label = format!("{}/{name}", kinds::short(type_url));
            let Ok(state) = timeout(self.patience, watch.ready()).await else {
                return Err(self.silence_failure(&label));
            };
            self.record_state(type_url, name, &state);
        }
        Ok(())
    }

    /// Records the resource of a name, or a message that the name has none.
    fn record_state(&mut self, type_url: &TypeUrl, name: &Name, state: &State<Raw>) {
        match state.value() {
            Some(value) => {
                let resource = Resource::clone(value.resource());
                self.resources.push((type_url.clone(), resource));
            }
            None => {
                let reason = state.error().map(|error| error.message.to_string());
                let reason = reason.unwrap_or_default();
                let short = kinds::short(type_url);
                let reason = trunkline_proto::redact::quoted(&reason);
                self.missing_messages
                    .push(format!("{short}/{name} is left out: {reason}"));
            }
        }
        let count = self.resources.len();
        self.progress
            .show_text(|| format!("fetched {count} resources"));
    }

    /// Makes the failure of an import that reaches no control plane.
    fn unreachable_failure(&self) -> Failure {
        let Servers { shown, hint } = &self.servers;
        Failure::unreachable(format!("no control plane is reached at {shown}; {hint}"))
    }

    /// Makes the failure of a control plane that does not answer `request` in time.
    fn silence_failure(&self, request: &str) -> Failure {
        let seconds = self.patience.as_secs_f64();
        let shown = &self.servers.shown;
        Failure::timed_out(format!(
            "{shown} has not answered {request} in {seconds} s; wait longer with --patience"
        ))
    }
}
